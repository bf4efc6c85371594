"""What one change less is worth in an exchange, and how finely the only change of a point is halved."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF
from onbmacf._search import nearer
from onbmacf._search.problem import Features
from onbmacf._search.ranking import Points

COLUMNS = np.arange(4)
FEATURES = Features(COLUMNS, COLUMNS, np.zeros(4, dtype=bool))


def points_of(factual, changes):
    """Return a problem of factuals at 0, and points with these changes."""
    factual, point = np.array(factual), np.array(changes, dtype=float)
    nothing = np.zeros(len(point), dtype=np.intp)
    problem = SimpleNamespace(z=np.zeros((2, 4)), features=FEATURES, options=SimpleNamespace(metric="manhattan"))
    return problem, Points(factual, nothing, nothing, point, point, nothing)


def test_an_exchange_may_be_a_little_farther_for_one_change_less_and_must_gain_for_one_more():
    start = np.zeros((4, 4))
    old = np.array([[0.2, 0.2, 0, 0]] * 3 + [[0.4, 0, 0, 0]])
    new = np.array([[0.415, 0, 0, 0], [0.417, 0, 0, 0], [0.2, 0, 0.2001, 0], [0.2, 0.19, 0, 0]])
    is_better = nearer._is_better(start, new, old, FEATURES, "manhattan")
    assert is_better.tolist() == [True, False, False, False]
    enough = np.array([[0.2, 0.18, 0, 0]])
    assert nearer._is_better(start[3:], enough, old[3:], FEATURES, "manhattan").all()


def test_the_only_change_of_the_best_point_is_halved_most_and_all_fit_into_one_call():
    rng = np.random.default_rng(0)
    for n_changes in rng.integers(1, 4, (50, nearer.TIGHT)):
        problem, points = points_of([0] * nearer.TIGHT, np.arange(4) < n_changes[:, np.newaxis])
        parts = nearer._parts(problem, points.factual, points.point)
        sizes = np.where(n_changes == 1, parts - 1, n_changes * (parts - 1))
        assert sizes.sum() <= 512
        assert parts.tolist() == [2 ** (5 if k > 1 else 6 if rank else 7) for rank, k in enumerate(n_changes)]


@pytest.mark.parametrize(("edge", "most"), [(0.3071, 0.0001), (0.41237, 0.0002), (0.83333, 0.0004)])
def test_a_single_change_ends_close_to_the_edge(edge, most):
    table = pd.DataFrame(np.random.default_rng(1).random((300, 2)).round(5), columns=["a", "b"])
    explainer = ONBMACF(plausibility=0).fit(table, lambda rows: (rows["a"] >= edge).astype(int))
    answers = explainer.explain(table[table["a"] < 0.2].head(20), target=1)
    beyond = np.array([answer.counterfactuals[0].values["a"] for answer in answers]) - edge
    assert beyond.min() >= 0
    assert beyond.mean() <= most
