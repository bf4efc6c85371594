"""What is tried beyond the balls: every combination of allowed values where they are few, and values seen in the table.

factual  ->  all points it may become  ->  those with a wanted label: the best there is, or a proof of none
factual  ->  values of the table, singly and in pairs  ->  those with a wanted label
"""

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows, take
from onbmacf._search.problem import Features, Problem
from onbmacf._search.ranking import Points

TOGETHER = 1 << 16  # points that are asked about together
SINGLES = 32  # values of one feature that are tried alone
PAIRED = 6  # values of each of two features that are tried together
MOST_PAIRED = 2048  # points with two changes per factual


def all_joint(problem: Problem, factuals: Rows, most: int) -> tuple[list[Points], Mask]:
    """Ask about every point that a factual may become, for those with at most so many; also say which they are."""
    done = np.zeros(len(problem.z), dtype=bool)
    found: list[Points] = []
    waiting: list[tuple[int, Matrix]] = []
    for factual in factuals:
        points = problem.reach(int(factual), most)
        if points is not None:
            waiting.append((int(factual), points))
            done[factual] = True
        if sum(len(points) for _, points in waiting) > TOGETHER:
            found.append(_needed(problem, _accepted(problem, waiting)))
            waiting = []
    if waiting:
        found.append(_needed(problem, _accepted(problem, waiting)))
    return found, done


def seen_values(problem: Problem, factuals: Rows) -> list[Points]:
    """Try values that the table has, on each factual: one free feature alone, then, if none will do, two."""
    found = []
    for factual in factuals:
        if problem.is_late():
            break
        values = [_values(problem, int(factual), at) for at in range(len(problem.features.starts))]
        alone = [_with(problem.z[[factual]], problem.features, at, own) for at, own in enumerate(values)]
        points = _accepted(problem, [(int(factual), _placed(problem, int(factual), np.concatenate(alone)))])
        if not len(points.factual) and problem.features.max_changes != 1:
            pairs = _pairs(problem.z[[factual]], problem.features, values)
            points = _accepted(problem, [(int(factual), _placed(problem, int(factual), pairs))])
        found.append(points)
    return found


def _accepted(problem: Problem, asked: list[tuple[int, Matrix]]) -> Points:
    """Return the points that have a wanted label."""
    width, n_balls = problem.z.shape[1], len(problem.balls.radii)
    factual = np.repeat([factual for factual, _ in asked], [len(points) for _, points in asked]).astype(np.intp)
    points = np.concatenate([np.empty((0, width)), *(points for _, points in asked)])
    labels = problem.label_of(points, factual)
    is_known = (labels >= 0) & (labels < problem.wanted.shape[1])
    good = np.flatnonzero(is_known & problem.wanted[factual, np.where(is_known, labels, 0)])
    no_ball, nothing = np.full(len(good), n_balls, dtype=np.intp), np.zeros(len(good), dtype=np.intp)
    return Points(factual[good], no_ball, labels[good], points[good], points[good], nothing)


def _needed(problem: Problem, points: Points) -> Points:
    """Keep the points of which no change can be undone: with any one put back, the label is another."""
    labels = [(int(factual), int(label)) for factual, label in zip(points.factual, points.label, strict=True)]
    keys = {(*label, point.tobytes()) for label, point in zip(labels, points.point + 0.0, strict=True)}
    kept = np.ones(len(labels), dtype=bool)
    for at in range(len(problem.features.starts)):
        columns = problem.features.of_column == at
        undone = np.where(columns, problem.z[points.factual], points.point) + 0.0  # no -0.0: bytes are compared
        for line in np.flatnonzero((undone != points.point).any(axis=1)):
            kept[line] &= (*labels[line], undone[line].tobytes()) not in keys
    return take(points, kept)


def _values(problem: Problem, factual: int, at: int) -> Matrix:
    """Return values of a free feature other than the factual's, spread evenly over those that occur."""
    columns = problem.features.of_column == at
    values = problem.seen(at)
    if not problem.features.may_change(problem.z[factual])[at]:
        return values[:0]
    return _spread(values[(values != problem.z[factual, columns]).any(axis=1)], SINGLES)


def _spread(values: Matrix, most: int) -> Matrix:
    return values[np.unique(np.linspace(0, len(values) - 1, most).astype(np.intp))] if len(values) > most else values


def _with(points: Matrix, features: Features, at: int, values: Matrix) -> Matrix:
    """Return each point once with each value of a feature."""
    changed = np.repeat(points, len(values), axis=0)
    changed[:, features.of_column == at] = np.tile(values, (len(points), 1))
    return changed


def _pairs(z: Matrix, features: Features, values: list[Matrix]) -> Matrix:
    """Return a factual with two features changed; as many pairs of features as MOST_PAIRED allows."""
    few = {at: _spread(own, PAIRED) for at, own in enumerate(values) if len(own)}
    points, total = [z[:0]], 0
    for one in few:
        for other in (at for at in few if at > one):
            total += len(few[one]) * len(few[other])
            if total > MOST_PAIRED:
                return np.concatenate(points)
            points.append(_with(_with(z, features, one, few[one]), features, other, few[other]))
    return np.concatenate(points)


def _placed(problem: Problem, factual: int, points: Matrix) -> Matrix:
    """Return points with values that may be returned, each once and none of them the factual."""
    z = np.repeat(problem.z[[factual]], len(points), axis=0)
    points = problem.snap(points, z, points)
    return np.unique(points[(points != z).any(axis=1)], axis=0)
