"""Which points of a factual are worth more work, and which n are returned: the scores of the refined strategy.

    Points  ->  promising  ->  the best of each set of changed features        Points  ->  choose  ->  n per factual

A score is the distance plus a little for each changed feature, and a price for neighbours of another label that rises
with the option `plausibility` (docs/decisions/0025-refined-strategy.md).
"""

from typing import NamedTuple

import numpy as np

from onbmacf._balls.distance import paired
from onbmacf._base.arrays import Mask, Matrix, Rows, take
from onbmacf._search.pairs import places
from onbmacf._search.problem import Features, Problem
from onbmacf._search.reduce import few_enough, locked

SPARSITY = 0.03  # what one more changed feature costs in the ranking, in units of distance
TIE_BREAK = 1e-9  # the same where only the distance counts
PRICE = 0.3  # distance that it costs at plausibility=0.5 to have no neighbour of the label,
PER_DISTANCE = 0.2  # and so much more for each unit of distance to the nearest projected centre
POWER = 1.5  # of the share of neighbours that are missing: the first ones count more than the last
CENTERS = 30  # opposing balls, by their bound, among which the nearest projected centre is looked for
OVERLAP = 1.0  # what it costs to change the same features as a counterfactual chosen before
ALIKE = 0.01  # of a feature's range: points that change the same features and are so near each other are one answer
SAME = 12  # decimals in which two points agree that no returned value can distinguish


class Points(NamedTuple):
    """Accepted points: whose they are, which ball they come from, and what was given up."""

    factual: Rows
    ball: Rows
    label: Rows
    point: Matrix
    whole: Matrix  # the projected centre the point was reduced from
    relaxation: Rows


def promising(problem: Problem, points: Points, most: int, last: Mask | None = None) -> Rows:
    """Return the most promising lines of each factual: the best of each set of changed features first; `last` last."""
    score, changed = _scores(problem, points), _changed(problem.z, points, problem.features)
    key = changed @ (2.0 ** np.arange(changed.shape[1])) if changed.shape[1] < 53 else _set_numbers(changed)
    by_set = np.lexsort((points.ball, score, key, points.factual))
    turn = np.empty(len(by_set), dtype=np.intp)  # how many lines of the same factual and set are better
    first = np.r_[True, (np.diff(points.factual[by_set]) != 0) | (np.diff(key[by_set]) != 0)][: len(by_set)]
    group = np.maximum.accumulate(np.where(first, np.arange(len(by_set)), 0))
    turn[by_set] = np.arange(len(by_set)) - group
    behind = np.zeros(len(turn), dtype=bool) if last is None else last
    order = np.lexsort((points.ball, score, turn, behind, points.factual))
    rank = np.arange(len(order)) - np.searchsorted(points.factual[order], points.factual[order])
    return order[rank < most]


def choose(problem: Problem, points: Points, by_distance: Mask) -> Points:
    """Pick n per factual: the lowest score first, each later one penalised for changing what earlier ones change.

    For factuals marked `by_distance` the number of changes only breaks ties. The k-th choice does not depend on n: the
    first k of n + 1 are the first k of n. A point that changes the same features as one before by almost the same is no
    other answer.
    """
    z, features = problem.z, problem.features
    points = take(points, np.flatnonzero(few_enough(z[points.factual], points.point, features)))
    per_change = np.where(by_distance[points.factual], TIE_BREAK, SPARSITY)
    changed, score = _changed(z, points, features), _scores(problem, points, per_change)
    if problem.options.plausibility > 0:
        score = _priced(problem, points, score)
    picked: list[Rows] = []
    penalty, free = np.zeros(len(score)), np.ones(len(score), dtype=bool)
    for _ in range(problem.n):
        best = _best_per_factual(points.factual, np.where(free, score + penalty, np.inf))
        if not len(best):
            break
        picked.append(best)
        free &= ~_is_like(points, changed, best, problem)
        penalty = np.maximum(penalty, OVERLAP * _overlaps(points.factual, changed, best, len(z)))
    rows = np.concatenate(picked) if picked else np.empty(0, dtype=np.intp)
    return take(points, rows[np.argsort(points.factual[rows], kind="stable")])


def unique(points: Points) -> Points:
    """Drop points of a factual that repeat one before, and keep the factuals together."""
    table = np.column_stack([points.factual, np.round(points.point, SAME)]) + 0.0  # no -0.0: bytes are compared
    _, first = np.unique(table.view(f"V{table.shape[1] * table.itemsize}").ravel(), return_index=True)
    rows = np.sort(first)
    return take(points, rows[np.argsort(points.factual[rows], kind="stable")])


def price_of(problem: Problem) -> Matrix:
    """Return per factual what a point may be farther for the sake of all its neighbours: nothing at 0, anything at 1.

    Between, it is in proportion to what lies before the factual: its distance to the nearest projected centre.
    """
    plausibility = problem.options.plausibility
    if plausibility == 1.0:
        return np.full(len(problem.z), 1e6)
    return plausibility / (1.0 - plausibility) * (PRICE + PER_DISTANCE * _to_nearest_center(problem))


def _to_nearest_center(problem: Problem) -> Matrix:
    """Return each factual's distance to the nearest projected centre, among the first by their bound."""
    near, _ = problem.pairs.first(CENTERS)
    centers = locked(problem.z, problem.balls.points[near.ball], near, problem.features)
    apart = paired(problem.z[near.factual], centers, problem.options.metric)
    nearest = np.full(len(problem.z), np.inf)
    np.minimum.at(nearest, near.factual, apart)
    return np.where(np.isfinite(nearest), nearest, 0.0)


def _priced(problem: Problem, points: Points, score: Matrix) -> Matrix:
    """Add to the scores what the neighbours cost, the lowest scores first; infinite where that cannot matter.

    A line that, with all neighbours in its favour, is still behind n lines that were looked at cannot be chosen, so
    its neighbours need no look.
    """
    price, slack = price_of(problem), OVERLAP if problem.n > 1 else 0.0
    place = places(points.factual, score)
    total, limit = np.full(len(score), np.inf), np.full(points.factual.max(initial=-1) + 1, np.inf)
    tried, size = 0, 8 + problem.n
    while tried <= place.max(initial=-1):
        now = np.flatnonzero((place >= tried) & (place < tried + size) & (score <= limit[points.factual]))
        missing = 1.0 - problem.share(points.point[now], points.label[now])
        total[now] = score[now] + price[points.factual[now]] * missing**POWER
        nth = np.flatnonzero(places(points.factual, total) == problem.n - 1)
        limit[points.factual[nth]] = total[nth] + slack
        tried, size = tried + size, 2 * size
    return total


def _is_like(points: Points, changed: Mask, best: Rows, problem: Problem) -> Mask:
    """Say which lines are those of `best`, or change the same features and lie beside them."""
    taken = np.full(len(problem.z), -1)
    taken[points.factual[best]] = best
    is_like = taken[points.factual] >= 0
    own = taken[points.factual[is_like]]
    is_same = (changed[is_like] == changed[own]).all(axis=1)
    apart = paired(points.point[is_like], points.point[own], problem.options.metric)
    is_like[is_like] = is_same & (apart <= ALIKE)
    return is_like


def _overlaps(factual: Rows, changed: Mask, best: Rows, n_factuals: int) -> Matrix:
    """Return per line the Jaccard overlap of its changes with those of its factual's line in `best`."""
    taken = np.zeros((n_factuals, changed.shape[1]), dtype=bool)
    taken[factual[best]] = changed[best]
    both = (changed & taken[factual]).sum(axis=1)
    either = np.maximum(1, (changed | taken[factual]).sum(axis=1))
    return np.asarray(both / either)


def _best_per_factual(factual: Rows, score: Matrix) -> Rows:
    return np.flatnonzero((places(factual, score) == 0) & np.isfinite(score))


def _scores(problem: Problem, points: Points, per_change: float | Matrix = SPARSITY) -> Matrix:
    apart = paired(problem.z[points.factual], points.point, problem.options.metric)
    return apart + per_change * _changed(problem.z, points, problem.features).sum(axis=1)


def _changed(z: Matrix, points: Points, features: Features) -> Mask:
    return np.logical_or.reduceat(points.point != z[points.factual], features.starts, axis=1)


def _set_numbers(changed: Mask) -> Matrix:
    return np.unique(changed, axis=0, return_inverse=True)[1].reshape(-1).astype(np.float64)
