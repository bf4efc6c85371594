"""Algorithm 3 lines 21-33: walk from the boundary towards the goal until the label changes.

    Candidates  ->  walk  ->  per candidate the first point of the ball's label, and the last before it of the factual's

All points of all walks are rounded and asked in one question (decision 0007). Symbols: docs/glossary.md.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._search.problem import LabelOf, Snap

EDGE = 1e-12  # rounding error forgiven to a point between two others
WAY_BACK = 16  # parts into which the way to a refined counterfactual is cut


class Candidates(NamedTuple):
    """One line per shortlisted pair, the nearest of each factual first."""

    factual: Rows
    ball: Rows
    goal: Matrix  # the projected centre after reducing changes
    share: Matrix  # where the boundary cuts the way from the factual to the goal
    relaxation: Rows  # position in Relaxation


class Walked(NamedTuple):
    """Where each walk ended, one line per candidate."""

    counterfactual: Matrix
    semifactual: Matrix  # the factual itself where there is none
    has_semifactual: Mask


def stops(share: Matrix, step_ratio: float, max_steps: int) -> Matrix:
    """Return the shares of the way that are tried: the boundary, ever shorter steps, the goal."""
    steps = np.arange(max_steps + 1)
    towards = 1.0 - step_ratio**steps  # line 26, the sum of the strides so far
    shares = share[:, np.newaxis] + towards * (1.0 - share[:, np.newaxis])
    return np.concatenate([shares, np.ones((len(share), 1))], axis=1)  # line 32


def walk(
    z: Matrix,
    labels: Rows,
    candidates: Candidates,
    ball_labels: Rows,
    label_of: LabelOf,
    snap: Snap,
    step_ratio: float,
    max_steps: int,
) -> Walked:
    """Lines 21-33 for every candidate at once; `labels` are the factuals' own, ball_labels one per candidate."""
    shares = stops(candidates.share, step_ratio, max_steps)
    n_walks, n_stops = shares.shape
    line = np.repeat(np.arange(n_walks), n_stops)
    factual = candidates.factual[line]
    goal = candidates.goal[line]
    points = snap(between(z[factual], goal, shares.ravel()), z[factual], goal)
    is_new = (shares.ravel() < 1.0) | (np.arange(len(line)) % n_stops == n_stops - 1)  # the goal is asked once
    said = np.full(len(line), np.iinfo(np.intp).min)
    said[is_new] = label_of(points[is_new], factual[is_new])
    answers = said.reshape(n_walks, n_stops)
    points = points.reshape(n_walks, n_stops, z.shape[1])
    hit = _first(answers == ball_labels[:, np.newaxis])  # line 27; if none says so, line 32: the goal
    before = np.arange(n_stops) < hit[:, np.newaxis]
    moved = (points != z[candidates.factual][:, np.newaxis]).any(axis=2)
    between_ends = _lies_between(z[factual], points.reshape(-1, z.shape[1]), goal).reshape(n_walks, n_stops)
    same = before & moved & between_ends & (answers == labels[candidates.factual][:, np.newaxis])  # decision 0013
    last = n_stops - 1 - _first(same[:, ::-1])
    has = same.any(axis=1)
    walks = np.arange(n_walks)
    semifactual = np.where(has[:, np.newaxis], points[walks, last], z[candidates.factual])
    return Walked(points[walks, hit], semifactual, has)


def way_back(z: Matrix, labels: Rows, factual: Rows, point: Matrix, label_of: LabelOf, snap: Snap) -> Walked:
    """Look at the way from the factual to each point: the semifactual is the last place of the factual's label."""
    n_stops = WAY_BACK - 1
    shares = np.arange(1, WAY_BACK) / WAY_BACK
    line = np.repeat(np.arange(len(point)), n_stops)
    start, goal = z[factual[line]], point[line]
    places = snap(start + np.tile(shares, len(point))[:, np.newaxis] * (goal - start), start, goal)
    same = label_of(places, factual[line]) == labels[factual[line]]
    same &= (places != start).any(axis=1) & _lies_between(start, places, goal)
    same = same.reshape(len(point), n_stops)
    last = n_stops - 1 - _first(same[:, ::-1])
    has = same.any(axis=1)
    found = places.reshape(len(point), n_stops, z.shape[1])[np.arange(len(point)), last]
    return Walked(point, np.where(has[:, np.newaxis], found, z[factual]), has)


def margins(start: Matrix, point: Matrix, holds: Callable[[Matrix, Rows], Mask]) -> Matrix:
    """Return the share of the way back to the factual that each point can go before its label is lost.

    Looked at in sixteenths of the way; holds(points, lines) says where the label is still there.
    """
    shares = 1.0 - np.arange(1, WAY_BACK) / WAY_BACK
    line = np.repeat(np.arange(len(point)), len(shares))
    places = start[line] + np.tile(shares, len(point))[:, np.newaxis] * (point[line] - start[line])
    kept = holds(places, line).reshape(len(point), len(shares))
    lost = np.where(kept.all(axis=1), len(shares), (~kept).argmax(axis=1))
    return lost / WAY_BACK


def _lies_between(start: Matrix, points: Matrix, goal: Matrix) -> Mask:
    """Say which points are, in every column, between their factual and their goal: rules may push one beyond."""
    low, high = np.minimum(start, goal), np.maximum(start, goal)
    return np.asarray(((points >= low - EDGE) & (points <= high + EDGE)).all(axis=1))


def _first(mask: Mask) -> Rows:
    """Return the first true position of each line, the last position where there is none."""
    return np.where(mask.any(axis=1), mask.argmax(axis=1), mask.shape[1] - 1)


def between(start: Matrix, goal: Matrix, share: Matrix) -> Matrix:
    """Return the points at these shares of the way; at 1 the goal itself, to the bit."""
    points = start + share[:, np.newaxis] * (goal - start)
    return np.where(share[:, np.newaxis] == 1.0, goal, points)
