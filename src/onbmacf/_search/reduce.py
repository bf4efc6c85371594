"""Algorithm 3 lines 4-6: projected centres of opposing balls, and the changes that are not needed put back.

    Pairs  ->  projected, viable  ->  pairs and their projected centres  ->  reduce_changes or cut_changes  ->  goals

All pairs of a factual and a ball move together: one question to the model per stage, one per feature for the
reduction. "Line n" is line n of Algorithm 3. Departures: docs/decisions/0008 and 0009.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from onbmacf._balls.distance import paired
from onbmacf._balls.geometry import Balls
from onbmacf._balls.metrics import Metric
from onbmacf._base.arrays import Mask, Matrix, Rows, take
from onbmacf._base.enums import Relaxation
from onbmacf._base.missing import gaps
from onbmacf._search.halving import Bracket, narrow, questions
from onbmacf._search.problem import Asking, Features, LabelOf, Pairs, Problem
from onbmacf._search.undo import changed_in_order, keeping, undone

PASSES = 4  # changes that are found to be needed before a point with many is left alone
FEW = 4  # changes of a point that are looked at one by one before the best points are known
Keeps = Callable[[Matrix, Rows], Mask]  # points, lines -> whether they keep the label of their line


def passes(features: Features) -> list[Relaxation]:
    """Return what may be given up, in order (lines 11-14)."""
    last = [Relaxation.IMMUTABILITY] if features.may_release else []
    return [Relaxation.NONE, Relaxation.PROJECTION, *last]


def stays_inside(z: Matrix, pairs: Pairs, balls: Balls, features: Features, metric: Metric) -> Mask:
    """Line 5, first condition: the projected centre lies in its ball. Only immutable columns move: no model needed."""
    centers = balls.points[pairs.ball]
    moved = paired(locked(z, centers, pairs, features), centers, metric)
    return (moved < balls.radii[pairs.ball]) | (moved == 0)


class Projected(NamedTuple):
    """Centres of balls with the factual's immutable values, and whether their label is known."""

    pairs: Pairs
    points: Matrix
    is_known: Mask


def projected(problem: Problem, pairs: Pairs, relaxation: Relaxation, centers: Matrix | None = None) -> Projected:
    """Line 4: the centre of each pair's ball, with the factual's immutable values unless they are given up.

    A centre is a fitted row, whose label is known: only what the projection moves must be asked about. `centers` are
    other rows of the balls, to be taken in place of them.
    """
    z, features = problem.z, problem.features
    centers = problem.balls.points[pairs.ball] if centers is None else centers
    points = features.with_held(z[pairs.factual], centers, relaxation is Relaxation.IMMUTABILITY)
    if features.constrain is not None:
        points = features.constrain(points, z[pairs.factual])
    return Projected(pairs, points, (points == centers).all(axis=1) & problem.knows_centers)


def viable(problem: Problem, found: Projected) -> tuple[Pairs, Matrix]:
    """Line 5: the pairs whose projected centre has the ball's label, and these centres."""
    pairs, is_viable = found.pairs, found.is_known.copy()
    rest = np.flatnonzero(~is_viable)
    label = problem.balls.labels[pairs.ball]
    is_viable[rest] = problem.label_of(found.points[rest], pairs.factual[rest]) == label[rest]
    return take(pairs, is_viable), found.points[is_viable]


def few_enough(start: Matrix, points: Matrix, features: Features) -> Mask:
    """Say which points change no more features than the rules allow."""
    if features.max_changes is None:
        return np.ones(len(points), dtype=bool)
    return n_changed(start, points, features) <= features.max_changes


def n_changed(start: Matrix, points: Matrix, features: Features) -> Rows:
    """Return how many features each point changes."""
    return np.asarray(np.logical_or.reduceat(points != start, features.starts, axis=1).sum(axis=1))


def keeper(pairs: Pairs, balls: Balls, label_of: LabelOf) -> Keeps:
    """Return the test whether points of some pairs have the label of their ball."""
    return lambda points, lines: label_of(points, pairs.factual[lines]) == balls.labels[pairs.ball[lines]]


def locked(z: Matrix, centers: Matrix, pairs: Pairs, features: Features) -> Matrix:
    """Return centres with the values that their factuals must keep."""
    return features.with_held(z[pairs.factual], centers)


def reduce_changes(
    start: Matrix, goal: Matrix, features: Features, keeps: Keeps, largest_first: Mask | None = None
) -> Matrix:
    """Line 6: put features back to the factual's value, smallest difference first, while the label stays.

    start has the factual of each goal; keeps(points, lines) says which trial points keep the label. One-hot columns
    of a category are one feature; ties in the difference go by column order (decision 0009).
    """
    goal = goal.copy()
    difference = np.add.reduceat(gaps(goal, start), features.starts, axis=1)
    signed = difference if largest_first is None else np.where(largest_first[:, np.newaxis], -difference, difference)
    order = np.argsort(signed, axis=1, kind="stable")
    n_changes = (difference > 0).sum(axis=1)
    for rank in range(len(features.starts)):
        feature = order[:, rank]
        differs = difference[np.arange(len(goal)), feature] > 0
        lines = np.flatnonzero(differs & (n_changes > 1))  # with one change left, undoing it gives the factual
        if not len(lines):
            continue
        is_feature = features.of_column == feature[lines, np.newaxis]
        trial = np.where(is_feature, start[lines], goal[lines])
        stays = keeps(trial, lines)
        goal[lines[stays]] = trial[stays]
        n_changes[lines[stays]] -= 1
    return goal


def cut_changes(
    start: Matrix, goal: Matrix, features: Features, asking: Asking, largest_first: Mask | None = None
) -> Matrix:
    """Undo changes that are not needed, many at once.

    Changes are put in order, the largest first (or the smallest). Halving finds how many of the first are enough; the
    last of these is needed and moves to the front. Halving again finds how many must follow it, and so on: while there
    are FEW left or PASSES are not over. A point that needs more seldom wins, and only the best are looked at again.
    """
    order, n_changes = _what_stays(start, goal, features, largest_first)
    n_needed = np.zeros_like(n_changes)  # changes at the front of the order that are known to be needed
    at = Bracket(np.zeros_like(n_changes), n_changes.copy(), goal.copy())

    def with_first(lines: Rows, n_kept: Rows) -> Matrix:
        return _with_first(start, goal, order, features, lines, n_kept)

    while len(lines := np.flatnonzero(at.high - at.low > 1)):
        also = _few_left(start, at, lines, features, asking.places)
        narrow(at, lines, start, with_first, asking.holds, asking.places - len(also[1]), also)
        done = lines[at.high[lines] - at.low[lines] <= 1]
        _to_front(order, done, at.high[done] - 1, n_needed[done])
        n_needed[done] += 1
        goes_on = (n_needed[done] < PASSES) | (at.high[done] <= FEW + 1)
        at.low[done] = np.where(goes_on, np.minimum(n_needed[done] - 1, at.high[done]), at.high[done])
    return at.best


def first_cuts(
    start: Matrix, goal: Matrix, features: Features, places: int, largest_first: Mask | None = None
) -> tuple[Matrix, Rows]:
    """Return the points that `cut_changes` may ask about first, as many as fit, and the line of each."""
    order, n_changes = _what_stays(start, goal, features, largest_first)
    some = np.flatnonzero(n_changes > 1)
    if not len(some) or len(some) > places:
        return goal[:0], some[:0]
    line, n_kept = questions(np.zeros_like(n_changes[some]), n_changes[some], places)
    return _with_first(start, goal, order, features, some[line], n_kept), some[line]


def _what_stays(start: Matrix, goal: Matrix, features: Features, largest_first: Mask | None) -> tuple[Rows, Rows]:
    """Return the changed features of each line, those that go last in front, and how many there are."""
    order, n_changes = changed_in_order(start, goal, features, largest_first)
    place = n_changes[:, np.newaxis] - 1 - np.arange(order.shape[1])  # backwards
    return np.take_along_axis(order, np.where(place < 0, np.arange(order.shape[1]), place), axis=1), n_changes


def _with_first(start: Matrix, goal: Matrix, order: Rows, features: Features, lines: Rows, n_kept: Rows) -> Matrix:
    is_kept = np.arange(order.shape[1]) < n_kept[:, np.newaxis]
    return keeping(start, goal, order, features, lines, is_kept)


def _few_left(start: Matrix, at: Bracket, lines: Rows, features: Features, places: int) -> tuple[Matrix, Rows]:
    """Return every set of the changes of the lines with the fewest left, as far as they fit: all they can ask about."""
    lines = lines[at.high[lines] <= FEW + 1]
    lines = lines[np.argsort(at.high[lines], kind="stable")]
    n_sets = np.cumsum(2.0 ** at.high[lines])
    few = lines[n_sets <= places - 2 * (len(lines) - np.arange(len(lines)))]  # the others need places, too
    points, line = undone(start[few], at.best[few], features)
    return points, few[line]


def _to_front(order: Rows, lines: Rows, source: Rows, target: Rows) -> None:
    """Move in each of these lines the entry at `source` forward to `target`; those between move back by one."""
    place = np.arange(order.shape[1])
    source, target = source[:, np.newaxis], target[:, np.newaxis]
    taken = np.where(place == target, source, np.where((place > target) & (place <= source), place - 1, place))
    order[lines] = np.take_along_axis(order[lines], taken, axis=1)
