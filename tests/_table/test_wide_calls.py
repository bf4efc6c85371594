"""Wide tables: few calls for one row, and the same answers in calls of any size."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from onbmacf import ONBMACF
from onbmacf._table.model import LARGER

WIDE = 16  # features, as in heloc and larger tables


class Counting:
    """A model that counts the rows of its calls, and whose probabilities may drift in large ones."""

    def __init__(self, model, drift=0.0):
        self.model, self.classes_, self.drift, self.sizes = model, model.classes_, drift, []

    def predict(self, rows):
        self.sizes.append(len(rows))
        return self.model.predict(rows)

    def predict_proba(self, rows):
        self.sizes.append(len(rows))
        return self.model.predict_proba(rows) * (1 - self.drift * (len(rows) > 512))


class Linear:
    """A model that sums each row by itself: with matrix products the last bits may depend on the size of a call."""

    classes_ = np.array([0, 1])

    def __init__(self, table, labels):
        own = LogisticRegression(max_iter=500).fit(table, labels)
        self.weights, self.constant = own.coef_[0], own.intercept_[0]

    def predict(self, rows):
        return (self._scores(rows) > 0).astype(int)

    def predict_proba(self, rows):
        share = 1 / (1 + np.exp(-self._scores(rows)))
        return np.column_stack([1 - share, share])

    def _scores(self, rows):
        return (rows.to_numpy() * self.weights).sum(axis=1) + self.constant


def _trees(table, labels):
    return HistGradientBoostingClassifier(max_iter=30).fit(table, labels)


@pytest.fixture(scope="module")
def table():
    return _made(WIDE + 8)[0]


@pytest.fixture(scope="module", params=[Linear, _trees])
def model(request, table):
    return request.param(table, _made(WIDE + 8)[1])


@pytest.fixture(scope="module")
def rows(table, model):
    return table[model.predict(table) == 0].head(12)


def _made(n_features):
    numbers, labels = make_classification(600, n_features, n_informative=n_features, n_redundant=0, random_state=3)
    return pd.DataFrame(numbers.round(2), columns=[f"x{at}" for at in range(n_features)]), labels


def _explained(explainer, rows):
    answers = [explainer.explain(rows.iloc[[place]], target=1) for place in range(len(rows))]
    return pd.concat([own.to_frame() for own in answers]), [own.n_calls for own in answers]


def test_a_row_alone_takes_few_calls_and_has_the_answer_of_any_other_size(table, model, rows):
    counted = Counting(model)
    wide, narrow = ONBMACF().fit(table, counted), ONBMACF(predict_chunk=50).fit(table, Counting(model))
    counted.sizes.clear()
    (found, n_calls), (others, n_more) = _explained(wide, rows), _explained(narrow, rows)
    assert sum(n_calls) == len(counted.sizes) < sum(n_more)
    assert max(n_calls) <= 12
    pd.testing.assert_frame_equal(found, others)
    pd.testing.assert_frame_equal(found, wide.explain(rows, target=1).to_frame())


def test_a_model_that_says_something_else_in_large_calls_is_not_asked_in_them(table, model, rows):
    drifting = Counting(model, drift=1e-9)
    explainer = ONBMACF().fit(table, drifting)
    drifting.sizes.clear()
    _explained(explainer, rows.head(3))
    explainer.explain(rows, target=1)
    assert max(drifting.sizes) <= 512


@pytest.mark.parametrize(
    "options, call", [({"max_model_rows": 900}, {}), ({"max_model_calls": 9}, {}), ({}, {"max_seconds": 600})]
)
def test_within_limits_and_a_time_a_call_has_at_most_a_chunk(table, model, rows, options, call):
    counted = Counting(model)
    explainer = ONBMACF().fit(table, counted).with_options(**options)
    counted.sizes.clear()
    explainer.explain(rows.head(4), target=1, **call)
    assert max(counted.sizes) <= 512


def test_a_map_that_is_loaded_learns_the_same_sizes_and_many_rows_still_larger_ones(table, model, tmp_path):
    path = tmp_path / "wide.map"
    fitted = ONBMACF().fit(table, model)
    fitted.save(path)
    counted = Counting(model)
    explainer = ONBMACF.load(path, counted)
    assert explainer.call_sizes_ == fitted.call_sizes_
    counted.sizes.clear()
    large = explainer.explain(table.head(200), target=1)
    assert 512 < max(counted.sizes) <= LARGER * 512
    assert large.n_model_rows == sum(counted.sizes)
    single = np.flatnonzero(large.statuses == "found")[:3]
    for place in single:
        alone = explainer.explain(table.iloc[[place]], target=1)
        pd.testing.assert_frame_equal(alone.to_frame(), large[place : place + 1].to_frame())
