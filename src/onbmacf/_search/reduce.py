"""Algorithm 3 lines 4-6: projected centres of opposing balls, and the changes that are not needed put back.

    Pairs  ->  project  ->  the viable pairs and their projected centres  ->  reduce_changes or cut_changes  ->  goals

All pairs of a factual and a ball move together: one question to the model per stage, one per feature for the
reduction. "Line n" is line n of Algorithm 3. Departures: docs/decisions/0008 and 0009.
"""

from collections.abc import Callable

import numpy as np

from onbmacf._balls.distance import paired
from onbmacf._balls.geometry import Balls
from onbmacf._balls.metrics import Metric
from onbmacf._base.arrays import Mask, Matrix, Rows, take
from onbmacf._base.enums import Relaxation
from onbmacf._search.problem import Features, LabelOf, Pairs

Keeps = Callable[[Matrix, Rows], Mask]  # points, lines -> whether they keep the label of their line


def passes(features: Features) -> list[Relaxation]:
    """Return what may be given up, in order (lines 11-14)."""
    last = [Relaxation.IMMUTABILITY] if features.may_release else []
    return [Relaxation.NONE, Relaxation.PROJECTION, *last]


def stays_inside(z: Matrix, pairs: Pairs, balls: Balls, features: Features, metric: Metric) -> Mask:
    """Line 5, first condition: the projected centre lies in its ball. Only immutable columns move: no model needed."""
    centers = balls.points[pairs.ball]
    moved = paired(_locked(z, centers, pairs, features), centers, metric)
    return (moved < balls.radii[pairs.ball]) | (moved == 0)


def project(
    z: Matrix, pairs: Pairs, balls: Balls, features: Features, label_of: LabelOf, relaxation: Relaxation
) -> tuple[Pairs, Matrix]:
    """Lines 4, 5: centres with the factual's immutable values, of those pairs in which they keep the ball's label.

    The relaxations first drop that the projected centre must be inside its ball, then the immutability itself.
    """
    projected = balls.points[pairs.ball]
    if relaxation is not Relaxation.IMMUTABILITY:
        projected = _locked(z, projected, pairs, features)
    elif features.constrain is None:
        return pairs, projected  # a centre is a fitted row: inside its ball and of its label
    if features.constrain is not None:
        projected = features.constrain(projected, z[pairs.factual])
    viable = label_of(projected, pairs.factual) == balls.labels[pairs.ball]
    return take(pairs, viable), projected[viable]


def few_enough(start: Matrix, points: Matrix, features: Features) -> Mask:
    """Say which points change no more features than the rules allow."""
    if features.max_changes is None:
        return np.ones(len(points), dtype=bool)
    changed = np.logical_or.reduceat(points != start, features.starts, axis=1)
    return changed.sum(axis=1) <= features.max_changes


def keeper(pairs: Pairs, balls: Balls, label_of: LabelOf) -> Keeps:
    """Return the test whether points of some pairs have the label of their ball."""
    return lambda points, lines: label_of(points, pairs.factual[lines]) == balls.labels[pairs.ball[lines]]


def _locked(z: Matrix, centers: Matrix, pairs: Pairs, features: Features) -> Matrix:
    return np.where(features.is_immutable[features.of_column], z[pairs.factual], centers)


def reduce_changes(
    start: Matrix, goal: Matrix, features: Features, keeps: Keeps, largest_first: bool = False
) -> Matrix:
    """Line 6: put features back to the factual's value, smallest difference first, while the label stays.

    start has the factual of each goal; keeps(points, lines) says which trial points keep the label. One-hot columns
    of a category are one feature; ties in the difference go by column order (decision 0009).
    """
    goal = goal.copy()
    difference = np.add.reduceat(np.abs(goal - start), features.starts, axis=1)
    order = np.argsort(-difference if largest_first else difference, axis=1, kind="stable")
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


def cut_changes(start: Matrix, goal: Matrix, features: Features, keeps: Keeps, largest_first: bool = False) -> Matrix:
    """Put back all but a few features at once, then the few one by one: as `reduce_changes`, in fewer questions.

    How many of the largest differences (or smallest) must stay is found by halving.
    """
    goal = goal.copy()
    difference = np.add.reduceat(np.abs(goal - start), features.starts, axis=1)
    first = np.where(difference > 0, difference, np.inf) if largest_first else -difference  # these stay
    rank = np.argsort(np.argsort(first, axis=1, kind="stable"), axis=1, kind="stable")
    enough = (difference > 0).sum(axis=1)  # kept features with which the label stays
    too_few = np.zeros(len(goal), dtype=np.intp)  # and with which it does not
    while len(lines := np.flatnonzero(enough - too_few > 1)):
        middle = (too_few[lines] + enough[lines]) // 2
        goes_back = (rank[lines] >= middle[:, np.newaxis])[:, features.of_column]
        trial = np.where(goes_back, start[lines], goal[lines])
        stays = keeps(trial, lines)
        goal[lines[stays]] = trial[stays]
        enough[lines[stays]], too_few[lines[~stays]] = middle[stays], middle[~stays]
    return reduce_changes(start, goal, features, keeps, largest_first)
