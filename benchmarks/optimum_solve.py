"""One problem, one factual: the nearest counterfactual and the least number of changes, each with its proof.

    problem, row  ->  known counterfactuals (table rows, one and two changes)  ->  exact search below them  ->  Optimum

The set searched is the package's: numbers within the fitted range, whole numbers whole, one level per category, fixed
features as they are; distances are Manhattan in encoded units. The optimum is an infimum where a number may come as
near to a boundary as it likes: `bound` is the proven lower bound of the closed problem, `distance` that of a point
which the model itself gives the label, at most SLACK farther. Otherwise the problem counts as unproven.
"""

import time
from dataclasses import asdict, dataclass
from itertools import combinations

import numpy as np

from optimum_program import INFEASIBLE
from optimum_smooth import layers_of, moves_of, score_program
from optimum_trees import (
    TIE,
    Options,
    cheaper,
    nearest_by_program,
    nearest_leaf,
    options_of,
    point_of,
    trees_of,
)

SLACK = 1e-4  # encoded units between the bound and a point that the model accepts
MARGINS = (1e-7, 1e-6, 1e-5)  # scores beyond the boundary at which the model is asked
GRID = 17  # values per number in a first look at a smooth model
AT_ONCE = 60_000  # points per call in a sweep
SAME = 1e-9


@dataclass
class Optimum:
    """The result for one factual. status: proven, none (proven: no counterfactual), unproven."""

    row: int
    status: str
    distance: float | None
    bound: float | None
    n_changes: int | None  # of the nearest counterfactual
    least_changes: int | None  # of any counterfactual; None where it is not proven
    seconds: float
    point: list | None

    as_dict = asdict


def solve(problem, row, seconds):
    """Return the optimum of one factual."""
    started = time.process_time()
    z = problem.task.Z[row]
    if problem.kind in ("logistic", "network"):
        point, bound, least = _smooth(problem, z, seconds)
    else:
        point, bound, least = _trees(problem, z, seconds)
    distance = None if point is None else distance_of(problem, z, point)
    status = _status(problem, z, point, distance, bound)
    n_changes = None if point is None else int(_changed(problem, z, point).sum())
    spent = round(time.process_time() - started, 3)
    bound = None if not np.isfinite(bound) else bound
    return Optimum(int(row), status, distance, bound, n_changes, least, spent, None if point is None else point.tolist())


def distance_of(problem, z, point):
    """Return the Manhattan distance, another level of a category counting 1."""
    return float(sum(np.abs(point[f.block] - z[f.block]).max() for f in problem.features))


def _changed(problem, z, point):
    return np.array([np.abs(point[f.block] - z[f.block]).max() > SAME for f in problem.features])


def _status(problem, z, point, distance, bound):
    if point is None:
        return "none" if bound == np.inf else "unproven"
    if problem.label_of(point[np.newaxis])[0] != problem.task.target:
        return "unproven"
    return "proven" if distance - bound <= SLACK else "unproven"


def _trees(problem, z, seconds):
    """Return a nearest point, the bound, and the least number of changes of a model of trees."""
    trees = trees_of(problem.estimator)
    options = options_of(trees, problem.features, z)
    if problem.kind == "tree":
        chosen, cost = nearest_leaf(trees, problem.features, options)
        _, least = nearest_leaf(trees, problem.features, counted(options))
        return (None, np.inf, None) if chosen is None else (point_of(options, chosen), cost, int(least))
    known, most = known_point(problem, z)
    known, most, few = swept(problem, z, options, known, most)
    point, bound = _nearest_of_trees(problem, trees, options, known, most, seconds)
    if point is None:
        return point, bound, None
    return point, bound, _least_of_trees(problem, z, trees, options, point, few, seconds)


def _nearest_of_trees(problem, trees, options, known, most, seconds):
    """Return the nearest point and the bound; ties of the score with the threshold are asked of the model."""
    options = cheaper(options, most)
    most = most if np.isfinite(most) else 2.0 * len(options)
    bound = None
    for margin in (-TIE, TIE, 1e-6):
        chosen, solution = nearest_by_program(trees, problem.features, options, most, margin, seconds)
        bound = solution.bound if bound is None else bound
        if solution.status == INFEASIBLE:  # nothing as near as what is known
            return known, (bound if known is None else min(bound, most))
        if chosen is not None:
            point = point_of(options, chosen)
            if problem.label_of(point[np.newaxis])[0] == problem.task.target:
                return point, bound
    return known, bound


def counted(options):
    """Return the options at the cost of a change: 1, whatever the value."""
    return [Options(o.values, (np.arange(len(o.costs)) != o.own).astype(float), o.own) for o in options]


def _least_of_trees(problem, z, trees, options, point, few, seconds):
    """Return the least number of changes: one and two are swept, more are solved; None where that is not proven."""
    if few is not None:
        return few
    here = int(_changed(problem, z, point).sum())
    if here == 3:
        return 3
    chosen, solution = nearest_by_program(trees, problem.features, counted(options), float(here), TIE, seconds)
    return int(np.ceil(solution.bound - 1e-6)) if chosen is not None and solution.status == 0 else None


def known_point(problem, z, nearest=500):
    """Return the nearest of the table's rows, with fixed features put back, that the model gives the label."""
    Z = problem.task.Z.copy()
    for feature in problem.features:
        if feature.is_fixed:
            Z[:, feature.block] = z[feature.block]
    starts = [feature.block.start for feature in problem.features]
    distances = np.maximum.reduceat(np.abs(Z - z), starts, axis=1).sum(axis=1)
    order = np.argsort(distances, kind="stable")
    for lines in (order[:nearest], order[nearest:]):
        hits = lines[problem.label_of(Z[lines]) == problem.task.target] if len(lines) else lines
        if len(hits):
            return Z[hits[0]], float(distances[hits[0]])
    return None, np.inf


def swept(problem, z, options, known, most):
    """Try every one and two options; return the nearest point known, its distance, and the least changes if 1 or 2.

    All of one change are tried, and all of two unless one does; then only those that are nearer.
    """
    few = None
    for size in (1, 2):
        for group in combinations(range(len(options)), size):
            if few == 1 and size == 2 and min(_others(options[at]).min(initial=np.inf) for at in group) > most:
                continue
            points, costs = _points(problem, z, options, group, np.inf if few is None else most)
            for start in range(0, len(points), AT_ONCE):
                part = slice(start, start + AT_ONCE)
                hits = problem.label_of(points[part]) == problem.task.target
                if hits.any():
                    few = few or size
                    place = np.flatnonzero(hits)[costs[part][hits].argmin()] + start
                    if costs[place] < most:
                        known, most = points[place], float(costs[place])
    return known, most, few


def _others(choice):
    return np.delete(choice.costs, choice.own)


def _points(problem, z, options, group, most):
    """Return the points that change all features of a group, of those that cost at most `most`."""
    places = [np.delete(np.arange(len(options[at].costs)), options[at].own) for at in group]
    grid = np.stack(np.meshgrid(*places, indexing="ij"), axis=-1).reshape(-1, len(group))
    costs = sum(options[at].costs[grid[:, k]] for k, at in enumerate(group))
    grid, costs = grid[costs < most], costs[costs < most]
    points = np.tile(z, (len(grid), 1))
    for k, at in enumerate(group):
        points[:, problem.features[at].block] = options[at].values[grid[:, k]]
    return points, costs


def _smooth(problem, z, seconds):
    """Return a nearest point, the bound, and the least number of changes of a linear model or a network."""
    layers = layers_of(problem.estimator)
    known, most = known_point(problem, z)
    known, most, few = swept(problem, z, _grid_options(problem.features, z), known, most)
    point, bound = _nearest_of_scores(problem, z, layers, known, most, seconds)
    if point is None:
        return point, bound, None
    return point, bound, 1 if few == 1 else _least_of_scores(problem, z, layers, point, seconds)


def _grid_options(features, z):
    """Return some values of each feature: a first look at a model of scores."""
    found = []
    for feature in features:
        own = z[feature.block]
        if feature.is_fixed:
            values = own[np.newaxis]
        elif feature.is_group:
            values = np.eye(len(own))
        else:
            grid = feature.grid if feature.is_whole else np.linspace(0, 1, GRID)
            places = np.unique(np.linspace(0, len(grid) - 1, GRID).round().astype(int))
            values = np.unique(np.append(grid[places], own[0]))[:, np.newaxis]
        costs = np.abs(values - own).max(axis=1)
        found.append(Options(values, costs, int(costs.argmin())))
    return found


def _nearest_of_scores(problem, z, layers, known, most, seconds):
    """Return the nearest point and the bound: solved on the boundary, then put a little beyond it."""
    limit = most + 0.01 if np.isfinite(most) else float(len(problem.features))
    moves = moves_of(problem.features, z, limit)
    closed = score_program(layers, z, moves, problem.features, limit, 0.0)
    solution = closed.solve(seconds)
    if solution.values is None:
        return known, solution.bound if known is None else min(most, solution.bound)
    for margin in MARGINS:
        open_ = score_program(layers, z, moves, problem.features, limit, margin)
        for program in (open_.fixed(solution.values), open_):
            found = program.solve(seconds)
            if found.values is not None:
                point = moved(problem, z, moves, found.values)
                if problem.label_of(point[np.newaxis])[0] == problem.task.target:
                    return _nearer(problem, z, point, known), solution.bound
    return known, solution.bound


def _nearer(problem, z, point, known):
    if known is None or distance_of(problem, z, point) <= distance_of(problem, z, known):
        return point
    return known


def moved(problem, z, moves, values):
    """Return the point of some amounts: whole numbers on the table's own grid, numbers within the range."""
    amounts = values[: len(moves.costs)]
    point = z + moves.shift @ np.where(moves.is_whole, np.round(amounts), amounts)
    for feature in problem.features:
        if feature.is_whole and not feature.is_fixed:
            step = int(np.round(point[feature.block.start] * feature.span))
            point[feature.block.start] = feature.grid[np.clip(step, 0, len(feature.grid) - 1)]
    return np.clip(point, 0.0, 1.0)


def _least_of_scores(problem, z, layers, point, seconds):
    """Return the least number of changes; None where that is not proven."""
    here = int(_changed(problem, z, point).sum())
    if here == 1:
        return 1
    moves = moves_of(problem.features, z, float(len(problem.features)))
    program = score_program(layers, z, moves, problem.features, np.inf, MARGINS[0], count_changes=True)
    solution = program.solve(seconds)
    return int(np.ceil(solution.bound - 1e-6)) if solution.status == 0 else None
