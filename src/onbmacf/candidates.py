"""Algorithm 3 lines 2-14: which balls to walk to, and how far their boundaries are.

    factuals, opposing balls  ->  project  ->  reduce_changes  ->  crossing  ->  the n nearest: Candidates

All pairs of a factual and a ball move together: one question to the model per stage, one per feature for the
reduction. `label_of(points, factual)` answers for encoded points, given the line of the factual each belongs to.
Symbols: docs/glossary.md. "Line n" is line n of Algorithm 3. Departures: docs/decisions/0008 to 0010, 0014.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onbmacf.distance import Matrix, Metric, paired
from onbmacf.explanation import Relaxation
from onbmacf.geometry import Balls, crossing

Rows = NDArray[np.intp]
LabelOf = Callable[[Matrix, Rows], Rows]


class Pairs(NamedTuple):
    """Factuals and balls to be tried together, sorted by factual, then by ball."""

    factual: Rows
    ball: Rows


class Features(NamedTuple):
    """Which columns belong to which feature, and which features must stay."""

    starts: Rows  # first column of each feature
    of_column: Rows  # feature of each column
    is_immutable: NDArray[np.bool_]


class Candidates(NamedTuple):
    """One line per shortlisted pair, the nearest of each factual first."""

    factual: Rows
    ball: Rows
    goal: Matrix  # the projected centre after reducing changes
    share: Matrix  # where the boundary cuts the way from the factual to the goal
    relaxation: Rows  # position in Relaxation


def shortlist(
    z: Matrix,
    home: Rows,
    pairs: Pairs,
    balls: Balls,
    features: Features,
    label_of: LabelOf,
    *,
    n: int,
    metric: Metric,
    boundary: str,
) -> Candidates:
    """Lines 2-14: per factual the n candidates with the nearest boundary point, relaxing where there is none."""
    found: list[Candidates] = []
    for step, relaxation in enumerate(Relaxation):
        if not len(pairs.factual):
            break
        kept, goal = project(z, pairs, balls, features, label_of, relaxation, metric)
        goal = reduce_changes(z, goal, kept, balls.labels, features, label_of)  # line 6
        ball = balls.at(kept.ball)
        share = crossing(z[kept.factual], goal, balls.at(home[kept.factual]), ball, metric, boundary)  # line 7
        near = nearest(z, kept, goal, share, n, metric)  # lines 8, 9
        relaxed = np.full(len(near), step, dtype=np.intp)
        found.append(Candidates(kept.factual[near], kept.ball[near], goal[near], share[near], relaxed))
        left = ~np.isin(pairs.factual, kept.factual)  # lines 11, 13
        pairs = Pairs(pairs.factual[left], pairs.ball[left])
    return _joined(found, z.shape[1])


def project(
    z: Matrix,
    pairs: Pairs,
    balls: Balls,
    features: Features,
    label_of: LabelOf,
    relaxation: Relaxation,
    metric: Metric,
) -> tuple[Pairs, Matrix]:
    """Lines 4, 5: centres with the factual's immutable values, of those pairs in which that is viable.

    Viable: inside the ball (only immutable columns have moved, so the model need not be asked for this) and of
    the ball's label. The relaxations drop the first condition, then the immutability itself.
    """
    centers = balls.points[pairs.ball]
    if relaxation is Relaxation.IMMUTABILITY:
        return pairs, centers  # a centre is a fitted row: inside its ball and of its label
    locked = features.is_immutable[features.of_column]
    projected = np.where(locked, z[pairs.factual], centers)
    if relaxation is Relaxation.NONE:
        moved = paired(projected, centers, metric)
        inside = (moved < balls.radii[pairs.ball]) | (moved == 0)
        pairs, projected = _only(pairs, inside), projected[inside]
    viable = label_of(projected, pairs.factual) == balls.labels[pairs.ball]
    return _only(pairs, viable), projected[viable]


def reduce_changes(
    z: Matrix, goal: Matrix, pairs: Pairs, ball_labels: Rows, features: Features, label_of: LabelOf
) -> Matrix:
    """Line 6: put features back to the factual's value, smallest difference first, while the label stays.

    One-hot columns of a category are one feature; ties in the difference go by column order (decision 0009).
    """
    goal = goal.copy()
    factual = z[pairs.factual]
    difference = np.add.reduceat(np.abs(goal - factual), features.starts, axis=1)
    order = np.argsort(difference, axis=1, kind="stable")
    n_changes = (difference > 0).sum(axis=1)
    for rank in range(len(features.starts)):
        feature = order[:, rank]
        differs = difference[np.arange(len(goal)), feature] > 0
        lines = np.flatnonzero(differs & (n_changes > 1))  # with one change left, undoing it gives the factual
        is_feature = features.of_column == feature[lines, np.newaxis]
        trial = np.where(is_feature, factual[lines], goal[lines])
        stays = label_of(trial, pairs.factual[lines]) == ball_labels[pairs.ball[lines]]
        goal[lines[stays]] = trial[stays]
        n_changes[lines[stays]] -= 1
    return goal


def nearest(z: Matrix, pairs: Pairs, goal: Matrix, share: Matrix, n: int, metric: Metric) -> Rows:
    """Lines 8, 9: lines of the n pairs per factual whose boundary point is nearest; ties by ball order."""
    start = z[pairs.factual]
    distance = paired(start, between(start, goal, share), metric)
    order = np.lexsort((pairs.ball, distance, pairs.factual))
    sorted_factual = pairs.factual[order]
    first = np.searchsorted(sorted_factual, sorted_factual)
    return order[np.arange(len(order)) - first < n]


def between(start: Matrix, goal: Matrix, share: Matrix) -> Matrix:
    """Return the points at these shares of the way; at 1 the goal itself, to the bit."""
    points = start + share[:, np.newaxis] * (goal - start)
    return np.where(share[:, np.newaxis] == 1.0, goal, points)


def _only(pairs: Pairs, mask: NDArray[np.bool_]) -> Pairs:
    return Pairs(pairs.factual[mask], pairs.ball[mask])


def _joined(found: list[Candidates], width: int) -> Candidates:
    if not found:
        empty = np.empty(0, dtype=np.intp)
        return Candidates(empty, empty, np.empty((0, width)), np.empty(0), empty)
    factual, ball, goal, share, relaxation = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(factual, kind="stable")
    return Candidates(factual[order], ball[order], goal[order], share[order], relaxation[order])
