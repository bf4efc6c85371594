"""The explainer as an estimator: its parameters, copies of it, and what changes after fit."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from onbmacf import ONBMACF
from onbmacf._search.options import NAMES, Options
from onbmacf.errors import ParameterError

TABLE = pd.DataFrame({"x": [0.0, 1.0, 3.0, 4.5], "r": [0.1, 0.2, 0.3, 0.4]})


def model(rows):
    return (rows["x"] > 2).astype(int)


def test_a_clone_has_the_same_parameters_and_no_map():
    fitted = ONBMACF(3, plausibility=1, metric="euclidean").fit(TABLE, model)
    other = clone(fitted)
    assert isinstance(other, ONBMACF)
    assert other.get_params() == fitted.get_params()
    with pytest.raises(ParameterError, match="not fitted"):
        other.explain(TABLE)


def test_parameters_are_read_and_set_by_name():
    explainer = ONBMACF(2).set_params(plausibility=0.25, n_jobs=3)
    assert (explainer.plausibility, explainer.n_jobs, explainer.n_counterfactuals) == (0.25, 3, 2)
    assert set(explainer.get_params()) == set(NAMES)
    assert ONBMACF(**explainer.get_params()).get_params() == explainer.get_params()


@pytest.mark.parametrize("change", ["set_params", "with_options"])
def test_an_unknown_parameter_is_an_error_that_names_the_allowed_ones(change):
    with pytest.raises(
        ParameterError, match=r"no option 'n_conterfactuals'. Did you mean 'n_counterfactuals'\?"
    ) as error:
        getattr(ONBMACF(), change)(n_conterfactuals=3)
    assert all(repr(name) in str(error.value) for name in NAMES)
    with pytest.raises(TypeError, match=r"^there is no option 'n_conterfactuals'. Did you mean"):
        ONBMACF(n_conterfactuals=3)


def test_only_the_number_of_counterfactuals_may_be_given_by_position():
    with pytest.raises(TypeError, match="only n_counterfactuals may be given by position, got 2 values"):
        ONBMACF(1, "euclidean")


def test_the_representation_shows_what_differs_from_the_defaults():
    assert repr(ONBMACF()) == "ONBMACF()"
    assert repr(ONBMACF(2, release="nothing", plausibility=0.5)) == "ONBMACF(n_counterfactuals=2, release='nothing')"
    fitted = repr(ONBMACF().fit(TABLE, model))
    assert fitted == f"<ONBMACF() fitted on {len(TABLE)} rows of {TABLE.shape[1]} features, with 2 labels>"


def test_the_constructor_stores_and_checks_nothing():
    explainer = ONBMACF(-1, metric="nonsense")
    with pytest.raises(ParameterError, match="metric must be one of"):
        explainer.fit(TABLE, model)
    with pytest.raises(ParameterError, match=r"n_counterfactuals must be .* got -1"):
        explainer.set_params(metric="manhattan").fit(TABLE, model)


def test_other_options_share_the_map_and_leave_the_first_explainer_alone():
    first = ONBMACF().fit(TABLE, model)
    second = first.with_options(n_counterfactuals=3)
    assert second.fitted_ is first.fitted_
    assert (first.n_counterfactuals, second.n_counterfactuals) == (1, 3)
    assert len(second.explain(TABLE.head(1))[0].counterfactuals) > len(first.explain(TABLE.head(1))[0].counterfactuals)


OF_FIT = [
    ("metric", "'euclidean'", "'manhattan'"),
    ("competitors", "'all'", "'uncovered'"),
    ("predict_chunk", "64", "512"),
]


@pytest.mark.parametrize("option, now, then", OF_FIT)
def test_an_option_of_the_fit_cannot_change_any_more(option, now, then):
    explainer = ONBMACF().fit(TABLE, model).with_options(**{option: eval(now)})
    with pytest.raises(ParameterError, match=f"{option} was {then} in fit and is {now} now. Fit again."):
        explainer.explain(TABLE)


def test_options_are_frozen_where_they_are_read():
    with pytest.raises(AttributeError, match="n_jobs"):
        Options().n_jobs = 2
    explainer = ONBMACF().fit(TABLE, model)
    with pytest.raises(AttributeError, match="labels"):
        explainer.fitted_.labels = np.zeros(4)


def test_an_explainer_can_be_pickled_with_its_map():
    explainer = ONBMACF(2).fit(TABLE, model)
    other = pickle.loads(pickle.dumps(explainer))
    assert other.explain(TABLE).sentences() == explainer.explain(TABLE).sentences()


class Batched:
    """A model whose probabilities, and nothing else, change with the size of the call."""

    classes_ = np.array([False, True])

    def predict(self, rows):
        return np.asarray(model(rows), dtype=bool)

    def predict_proba(self, rows):
        sure = 0.9 + 1e-6 * len(rows)
        return np.where(self.predict(rows)[:, np.newaxis], [1 - sure, sure], [sure, 1 - sure])


@pytest.mark.parametrize("asked, sizes", [(model, (16, 32)), (Batched(), (32,))], ids=["any size", "one size"])
def test_counts_are_of_one_call_and_include_the_padding(asked, sizes):
    """Calls are padded only where the model's answers depend on their size."""
    explainer = ONBMACF(predict_chunk=32).fit(TABLE, asked)
    first, second = explainer.explain(TABLE), explainer.explain(TABLE)
    assert (first.n_calls, first.n_questions) == (second.n_calls, second.n_questions)
    assert 32 * first.n_calls >= first.n_model_rows >= first.n_questions > 4
    is_padded = first.n_model_rows > first.n_questions
    assert (explainer.call_sizes_, is_padded) == (sizes, len(sizes) == 1)
    assert not is_padded or first.n_model_rows == 32 * first.n_calls
