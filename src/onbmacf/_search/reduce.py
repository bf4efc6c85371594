"""Algorithm 3 lines 4-6: projected centres of opposing balls, and the changes that are not needed put back.

    Pairs  ->  projected, viable  ->  pairs and their projected centres  ->  reduce_changes  ->  goals

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
from onbmacf._search.budget import LabelOf
from onbmacf._search.problem import Features, Pairs, Problem

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


def projected(problem: Problem, pairs: Pairs, relaxation: Relaxation) -> Projected:
    """Line 4: the centre of each pair's ball, with the factual's immutable values unless they are given up.

    A centre is a fitted row, whose label is known: only what the projection moves must be asked about.
    """
    z, features = problem.z, problem.features
    centers = problem.balls.points[pairs.ball]
    points = features.with_held(z[pairs.factual], centers, relaxation is Relaxation.IMMUTABILITY)
    if features.constrain is not None:
        points = features.constrain(points, z[pairs.factual])
    return Projected(pairs, points, (points == centers).all(axis=1) & problem.asked.knows_centers)


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


def reduce_changes(start: Matrix, goal: Matrix, features: Features, keeps: Keeps) -> Matrix:
    """Line 6: put features back to the factual's value, smallest difference first, while the label stays.

    start has the factual of each goal; keeps(points, lines) says which trial points keep the label. One-hot columns
    of a category are one feature; ties in the difference go by column order (decision 0009).
    """
    goal = goal.copy()
    difference = np.add.reduceat(gaps(goal, start), features.starts, axis=1)
    order = np.argsort(difference, axis=1, kind="stable")
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
