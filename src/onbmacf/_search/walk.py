"""Algorithm 3 lines 21-33: walk from the boundary towards the goal until the label changes; and the way back.

    Candidates  ->  walk  ->  per candidate the first point of the ball's label, and the last before it of the factual's
    points  ->  confirm  ->  what the model says when it is asked again, and how far back to the factual that holds

All points of all walks are rounded and asked in one question (decision 0007). Symbols: docs/glossary.md.
"""

from typing import NamedTuple

import numpy as np

from onbmacf._base import missing
from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._search.budget import UNASKED
from onbmacf._search.problem import Problem, Snap

EDGE = 1e-12  # rounding error forgiven to a point between two others
WAY_BACK = 16  # parts into which the way from a counterfactual back to its factual is cut


class Candidates(NamedTuple):
    """One line per shortlisted pair, the nearest of each factual first."""

    factual: Rows
    ball: Rows
    goal: Matrix  # the projected centre after reducing changes
    share: Matrix  # where the boundary cuts the way from the factual to the goal
    relaxation: Rows  # position in Relaxation


def walk(problem: Problem, candidates: Candidates, label: Rows) -> tuple[Matrix, Matrix, Mask]:
    """Lines 21-33 for every candidate at once; `label` is that of each one's ball.

    Return the counterfactuals, the semifactuals, and whether there is one: the factual stands where there is none.
    """
    options, share = problem.options, candidates.share[:, np.newaxis]
    towards = 1.0 - options.step_ratio ** np.arange(options.max_steps + 1)  # line 26, the sum of the strides so far
    shares = np.concatenate([share + towards * (1.0 - share), np.ones_like(share)], axis=1)  # line 32: the goal
    n_walks, n_stops = shares.shape
    factual, goal = np.repeat(candidates.factual, n_stops), np.repeat(candidates.goal, n_stops, axis=0)
    start = problem.z[factual]
    points = problem.snap(between(start, goal, shares.ravel()), start, goal)
    is_new = shares < 1.0
    is_new[:, -1] = True  # the goal is asked about once
    said = np.full(shares.shape, UNASKED, dtype=np.intp)
    said[is_new] = problem.questions.ask(points[is_new.ravel()], factual[is_new.ravel()])
    is_hit = said == label[:, np.newaxis]  # line 27
    is_hit[:, -1] = True  # if none says so, line 32
    hit = is_hit.argmax(axis=1)
    is_less = (said == problem.codes[candidates.factual, np.newaxis]) & (np.arange(n_stops) < hit[:, np.newaxis])
    is_less &= lies_between(start, points, goal).reshape(shares.shape)  # decision 0013
    first = n_stops * np.arange(n_walks)
    less = points[first + n_stops - 1 - is_less[:, ::-1].argmax(axis=1)]
    has_less = is_less.any(axis=1)
    less = np.where(has_less[:, np.newaxis], less, problem.z[candidates.factual])
    return points[first + hit], less, has_less


def confirm(problem: Problem, factual: Rows, points: Matrix, label: Rows) -> tuple[Rows, Matrix]:
    """Ask again about points with these labels, and about the way back; return what the model says, and the margins."""
    places = way_back(problem.z[factual], points, problem.snap)
    said = problem.questions.ask_again(places, np.repeat(factual, WAY_BACK)).reshape(-1, WAY_BACK)
    return said[:, 0], margins(said[:, 1:], label)


def way_back(start: Matrix, points: Matrix, snap: Snap) -> Matrix:
    """Return each point, and after it the places between it and its factual, nearest to the point first."""
    shares = np.arange(WAY_BACK, 0, -1) / WAY_BACK  # the point first: a budget may end on the way
    start, goal = np.repeat(start, WAY_BACK, axis=0), np.repeat(points, WAY_BACK, axis=0)
    places = snap(between(start, goal, np.tile(shares, len(points))), start, goal)
    places[::WAY_BACK] = points
    return places


def margins(said: Rows, label: Rows) -> Matrix:
    """Return the share of the way on which the label holds, from what was said from the point on; NaN if unasked."""
    is_lost = said != label[:, np.newaxis]
    n_kept = np.where(is_lost.any(axis=1), is_lost.argmax(axis=1), said.shape[1])
    ends = said[np.arange(len(said)), np.minimum(n_kept, said.shape[1] - 1)]
    return np.where(ends == UNASKED, np.nan, n_kept / WAY_BACK)


def lies_between(start: Matrix, points: Matrix, goal: Matrix) -> Mask:
    """Say which points are not their factual and, in every column, between it and the goal: rules may push beyond."""
    low, high = np.minimum(start, goal) - EDGE, np.maximum(start, goal) + EDGE
    return np.asarray((points != start).any(axis=1) & ((points >= low) & (points <= high)).all(axis=1))


def between(start: Matrix, goal: Matrix, share: Matrix) -> Matrix:
    """Return the points at these shares of the way; at 1 the goal itself, to the bit."""
    return np.where(share[:, np.newaxis] == 1.0, goal, missing.between(start, goal, share))
