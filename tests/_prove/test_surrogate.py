"""The surrogate of a model that gives labels alone: the trees' own numbers, and answers that it makes nearer."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from onbmacf import ONBMACF
from onbmacf._prove.copies import N_LEAVES, N_TREES, Surrogate
from onbmacf._search import table as search_table


def rows_of(seed, n_labels):
    rng = np.random.default_rng(seed)
    N = rng.normal(size=(300, 4)).round(2)
    labels = np.digitize(N[:, 0] + N[:, 1] * N[:, 2], np.linspace(-1, 1, n_labels + 1)[1:-1])
    N[rng.random(N.shape) < 0.1] = np.nan
    return N, labels


@pytest.mark.parametrize("n_labels", [2, 3, 5])
def test_it_says_what_the_trees_say(n_labels):
    N, labels = rows_of(n_labels, n_labels)
    trees = HistGradientBoostingClassifier(max_iter=N_TREES, max_leaf_nodes=N_LEAVES, early_stopping=False)
    expected = trees.fit(N, labels).decision_function(N[::-1] * 1.1)
    found = Surrogate.of(N, labels, n_labels)(N[::-1] * 1.1)
    assert (found[:, -1] == -np.inf).all()
    found = found[:, 1] - found[:, 0] if n_labels == 2 else found[:, :-1]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_a_label_that_no_row_has_is_the_least_likely():
    N, labels = rows_of(0, 2)
    found = Surrogate.of(N, 2 * labels, 3)(N)
    assert (found[:, [1, 3]] == -np.inf).all()
    assert np.isfinite(found[:, [0, 2]]).all()


def test_one_label_teaches_nothing():
    N, labels = rows_of(0, 2)
    assert Surrogate.of(N, labels * 0, 2) is None


def test_a_model_of_labels_gets_answers_about_as_near_as_one_of_scores():
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.random((800, 8)).round(3), columns=list("abcdefgh"))
    weights = np.array([3.0, 2.0, 2.0, 1.0, 1.0, 0.5, 0.5, 0.0])

    class Scored:
        classes_ = np.array([0, 1])

        def predict(self, rows):
            return (self.predict_proba(rows)[:, 1] > 0.5).astype(int)

        def predict_proba(self, rows):
            own = 1 / (1 + np.exp(-4 * ((rows.to_numpy() ** 2) @ weights - 4)))
            return np.column_stack([1 - own, own])

    model = Scored()
    rows = table[model.predict(table) == 0].head(60)
    scored, labelled = (
        ONBMACF(plausibility=0, read_model=False).fit(table, given).explain(rows, target=1).batch.distance.sum()
        for given in (model, model.predict)
    )
    assert labelled < 1.05 * scored


def test_a_rare_label_is_learnt_from_a_large_table(monkeypatch):
    monkeypatch.setattr(search_table, "MOST_DONORS", 50)
    table = pd.DataFrame({"x": np.arange(999.0)})
    explainer = ONBMACF().fit(table, lambda rows: np.where(rows["x"] == 501, "rare", "usual"))
    fitted = explainer.fitted_
    assert len(fitted.map.table.sample) < 200
    rare, usual = fitted.guess(np.array([[3.0]]))[0, :2]
    assert -np.inf < rare < usual
