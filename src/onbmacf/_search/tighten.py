"""Shrink every change of an accepted point until no smaller one is accepted.

    start (the factual), point (accepted)  ->  tighten  ->  a point no farther in any feature, accepted

`accepts(points, lines)` says which points hold: the model gives the label to be reached, no rule is broken and, where
it is asked for, the neighbourhood is plausible. Every step moves features towards the factual and keeps what is
accepted, so L0, L1, L2 and Linf never grow. All lines move together: one question per step.
"""

from collections.abc import Callable

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._search.problem import Features, Snap

Accepts = Callable[[Matrix, Rows], Mask]

HALVINGS = 5  # of a change or a way: one part in 32 is as fine as it gets


def tighten(start: Matrix, point: Matrix, features: Features, accepts: Accepts, snap: Snap) -> Matrix:
    """Along the segment, then feature by feature, until no whole change can be undone."""
    point = shrink_segment(start, point, accepts, snap)
    point = shrink_features(start, point, features, accepts, snap)
    return undo_all(start, point, features, accepts)


def shrink_segment(start: Matrix, point: Matrix, accepts: Accepts, snap: Snap, halvings: int = HALVINGS) -> Matrix:
    """Halve the way from start to point towards the nearest accepted point."""
    low, high, best = np.zeros(len(point)), np.ones(len(point)), point.copy()
    for _ in range(halvings):
        middle = (low + high) / 2
        trial = snap(start + middle[:, np.newaxis] * (point - start), start, point)
        hit = _accepted(trial, best, start, accepts)
        best[hit] = trial[hit]
        high, low = np.where(hit, middle, high), np.where(hit, low, middle)
    return best


def shrink_features(start: Matrix, point: Matrix, features: Features, accepts: Accepts, snap: Snap) -> Matrix:
    """Take each changed feature back: whole if that is accepted, else by halving; smallest change first."""
    point = point.copy()
    order, n_changed = changed_in_order(start, point, features)
    for rank in range(order.shape[1]):
        lines = np.flatnonzero(rank < n_changed)
        is_feature = features.of_column == order[lines, rank][:, np.newaxis]
        here, there = start[lines], point[lines].copy()
        low, high = np.zeros(len(lines)), np.ones(len(lines))
        for turn in range(HALVINGS + 1):
            middle = np.zeros(len(lines)) if turn == 0 else (low + high) / 2
            moved = np.where(is_feature, here + middle[:, np.newaxis] * (there - here), point[lines])
            trial = np.where(is_feature, snap(moved, here, there), point[lines])
            hit = _accepted(trial, point[lines], here, _among(accepts, lines))
            point[lines[hit]] = trial[hit]
            high, low = np.where(hit, middle, high), np.where(hit, low, middle)
    return point


def undo_all(start: Matrix, point: Matrix, features: Features, accepts: Accepts) -> Matrix:
    """Undo whole changes, smallest first, until undoing any single one is refused."""
    point = point.copy()
    lines = np.arange(len(point))
    while len(lines):
        order, n_changed = changed_in_order(start[lines], point[lines], features)
        touched = np.zeros(len(lines), dtype=bool)
        for rank in range(order.shape[1]):
            some = np.flatnonzero(rank < n_changed)
            is_feature = features.of_column == order[some, rank][:, np.newaxis]
            trial = np.where(is_feature, start[lines[some]], point[lines[some]])
            is_move = (trial != start[lines[some]]).any(axis=1)
            hit = np.zeros(len(some), dtype=bool)
            hit[is_move] = accepts(trial[is_move], lines[some[is_move]])
            point[lines[some[hit]]] = trial[hit]
            touched[some[hit]] = True
        lines = lines[touched]
    return point


def changed_in_order(start: Matrix, point: Matrix, features: Features) -> tuple[Rows, Rows]:
    """Return per line its changed features by the size of their change, and how many there are.

    The table is as wide as the line with the most changes; ties go by column order.
    """
    difference = np.add.reduceat(np.abs(point - start), features.starts, axis=1)
    is_changed = np.logical_or.reduceat(point != start, features.starts, axis=1)
    key = np.where(is_changed, difference, np.inf)
    n_changed = is_changed.sum(axis=1)
    return np.argsort(key, axis=1, kind="stable")[:, : n_changed.max(initial=0)], n_changed


def _among(accepts: Accepts, lines: Rows) -> Accepts:
    return lambda points, some: accepts(points, lines[some])


def _accepted(trial: Matrix, current: Matrix, start: Matrix, accepts: Accepts) -> Mask:
    """Ask only about points that are neither where the line stands already nor the factual itself."""
    same = (trial == current).all(axis=1)
    is_new = ~same & (trial != start).any(axis=1)
    hit = same
    hit[is_new] = accepts(trial[is_new], np.flatnonzero(is_new))
    return hit
