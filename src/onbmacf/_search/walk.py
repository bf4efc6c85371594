"""Algorithm 3 lines 21-33: walk from the boundary towards the goal until the label changes.

    Candidates  ->  walk  ->  per candidate the first point of the ball's label, and the last before it of the factual's

All points of all walks are rounded and asked in one question (decision 0007). Symbols: docs/glossary.md.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from onbmacf._base import missing
from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._search.budget import UNASKED, LabelOf
from onbmacf._search.problem import Snap

EDGE = 1e-12  # rounding error forgiven to a point between two others
WAY_BACK = 16  # parts into which the way from a counterfactual back to its factual is cut


class Candidates(NamedTuple):
    """One line per shortlisted pair, the nearest of each factual first."""

    factual: Rows
    ball: Rows
    goal: Matrix  # the projected centre after reducing changes
    share: Matrix  # where the boundary cuts the way from the factual to the goal
    relaxation: Rows  # position in Relaxation


class LookedBack(NamedTuple):
    """What lies between a point and its factual, one line per point."""

    semifactual: Matrix  # the factual itself where there is none
    has_semifactual: Mask
    again: Rows  # the label of the point when it was asked again
    margin: Matrix  # share of the way; NaN where it was not asked


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


class WayBack(Protocol):
    """What looking back takes: the factuals, and how places on the way are made and asked about."""

    @property
    def z(self) -> Matrix: ...
    @property
    def codes(self) -> Rows: ...
    @property
    def snap(self) -> Snap: ...
    @property
    def ask_again(self) -> LabelOf: ...
    @property
    def is_allowed(self) -> Callable[[Matrix, Rows], Mask]: ...


def look_back(problem: WayBack, factual: Rows, point: Matrix, label: Rows) -> LookedBack:
    """Ask the model again about each point, and about the way from there back to the factual.

    The semifactual is the place nearest to the point that has the factual's label and keeps the rules. The margin is
    the share of the way on which the point's label holds without a gap.
    """
    places, line = way_back(problem, factual, point)
    start, goal = problem.z[factual[line]], point[line]
    said = problem.ask_again(places, factual[line])
    same = (said == problem.codes[factual[line]]) & (places != start).any(axis=1) & _lies_between(start, places, goal)
    same[same] = problem.is_allowed(places[same], factual[line[same]])
    said, same = said.reshape(-1, WAY_BACK), same.reshape(-1, WAY_BACK)
    has, first = same.any(axis=1), np.arange(0, len(line), WAY_BACK) + same.argmax(axis=1)
    semifactual = np.where(has[:, np.newaxis], places[first], problem.z[factual])
    return LookedBack(semifactual, has, said[:, 0], margins(said[:, 1:], label))


def way_back(problem: WayBack, factual: Rows, point: Matrix) -> tuple[Matrix, Rows]:
    """Return each point and the places between it and its factual, and the line of each."""
    shares = np.arange(WAY_BACK, 0, -1) / WAY_BACK  # the point first: a budget may end on the way
    line = np.repeat(np.arange(len(point)), WAY_BACK)
    start, goal = problem.z[factual[line]], point[line]
    places = problem.snap(between(start, goal, np.tile(shares, len(point))), start, goal)
    places[::WAY_BACK] = point
    return places, line


def margins(said: Rows, label: Rows) -> Matrix:
    """Return the share of the way on which the label holds, from what was said from the point on; NaN if unasked."""
    is_lost = said != label[:, np.newaxis]
    n_kept = np.where(is_lost.any(axis=1), is_lost.argmax(axis=1), said.shape[1])
    ends = said[np.arange(len(said)), np.minimum(n_kept, said.shape[1] - 1)]
    return np.where(ends == UNASKED, np.nan, n_kept / WAY_BACK)


def _lies_between(start: Matrix, points: Matrix, goal: Matrix) -> Mask:
    """Say which points are, in every column, between their factual and their goal: rules may push one beyond."""
    low, high = np.minimum(start, goal), np.maximum(start, goal)
    return np.asarray(((points >= low - EDGE) & (points <= high + EDGE)).all(axis=1))


def _first(mask: Mask) -> Rows:
    """Return the first true position of each line, the last position where there is none."""
    return np.where(mask.any(axis=1), mask.argmax(axis=1), mask.shape[1] - 1)


def between(start: Matrix, goal: Matrix, share: Matrix) -> Matrix:
    """Return the points at these shares of the way; at 1 the goal itself, to the bit."""
    points = missing.between(start, goal, share)
    return np.where(share[:, np.newaxis] == 1.0, goal, points)
