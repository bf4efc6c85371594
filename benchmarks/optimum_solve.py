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

from optimum_programs import (
    TIE,
    Options,
    cheaper,
    layers_of,
    leaves_reached,
    moves_of,
    nearest_by_program,
    options_of,
    point_of,
    score_program,
    trees_of,
)

SLACK = 5e-6  # encoded units between the bound and a point that the model accepts
MARGINS = (1e-7, 1e-6, 1e-5)  # scores beyond the boundary at which the model is asked
SAME = 1e-9
NEAR = 1.05  # times the optimum
GRID = 17  # values per number in a first look at a model of scores
AT_ONCE = 60_000  # points per call


@dataclass
class Optimum:
    """The result for one factual. status: proven, none (proven: no counterfactual), unproven."""

    row: int
    status: str
    distance: float | None
    bound: float | None
    n_changes: int | None  # of the nearest counterfactual
    least_changes: int | None  # of any counterfactual; None where it is not proven
    near_changes: int | None  # of any that is at most 5 % farther than the nearest
    seconds: float
    point: list | None

    as_dict = asdict


def solve(problem, row, seconds):
    """Return the optimum of one factual."""
    started = time.process_time()
    z = problem.task.Z[row]
    of_kind = {"logistic": _smooth, "network": _smooth, "tree": _tree}.get(problem.kind, _trees)
    point, bound, least, near = of_kind(problem, z, seconds)
    if point is None:
        status, bound = ("none", None) if bound == np.inf else ("unproven", None)
        return Optimum(int(row), status, None, bound, None, None, None, _since(started), None)
    distance = distance_of(problem, z, point)
    status = "proven" if _accepts(problem, point) and distance - bound <= SLACK else "unproven"
    counts = (n_changes(problem, z, point), least, near)
    return Optimum(int(row), status, distance, float(bound), *counts, _since(started), point.tolist())


def _since(started):
    return round(time.process_time() - started, 3)


def distance_of(problem, z, point):
    """Return the Manhattan distance, another level of a category counting 1."""
    return float(sum(np.abs(point[f.block] - z[f.block]).max() for f in problem.features))


def n_changes(problem, z, point):
    """Return the number of features that differ."""
    return sum(bool(np.abs(point[f.block] - z[f.block]).max() > SAME) for f in problem.features)


def _accepts(problem, point):
    return problem.label_of(point[np.newaxis])[0] == problem.task.target


def _tree(problem, z, seconds):
    """Return a nearest point of a single tree, the bound, and the least numbers of changes: by its leaves."""
    trees = trees_of(problem.estimator)
    options = options_of(trees, problem.features, z)
    reached = [(point_of(options, chosen), cost) for chosen, cost in leaves_reached(trees, problem.features, options)]
    if not reached:
        return None, np.inf, None, None
    point, bound = min(reached, key=lambda found: found[1])
    counts = [(n_changes(problem, z, other), cost) for other, cost in reached]
    near = min(count for count, cost in counts if cost <= NEAR * bound + SAME)
    return point, bound, min(count for count, _ in counts), near


def _trees(problem, z, seconds):
    """Return a nearest point of several trees, the bound, and the least numbers of changes."""
    trees = trees_of(problem.estimator)
    options = options_of(trees, problem.features, z)
    known, most = known_point(problem, z)
    known, most, few = swept(problem, z, options, known, most)
    point, bound = _cheapest(problem, trees, cheaper(options, most), most, seconds)
    point, bound = (known, min(bound, most)) if point is None and known is not None else (point, bound)
    if point is None:
        return None, bound, None, None
    here = n_changes(problem, z, point)
    least = few or (here if here <= 3 else _fewest(problem, z, trees, options, here, None, seconds))
    if here == least:
        return point, bound, least, here
    limit = NEAR * distance_of(problem, z, point)
    near = cheaper(options, limit)
    return point, bound, least, _fewest(problem, z, trees, near, here, (near, limit), seconds)


def _cheapest(problem, trees, options, most, seconds, budget=None):
    """Return the cheapest point and the bound; ties of the score with the threshold are asked of the model."""
    most = most if np.isfinite(most) else 2.0 * len(options)
    bound = None
    for margin in (-TIE, TIE, 1e-6):
        chosen, solution = nearest_by_program(trees, problem.features, options, most, margin, seconds, budget)
        bound = solution.bound if bound is None else bound
        if chosen is not None and _accepts(problem, point_of(options, chosen)):
            return point_of(options, chosen), bound
    return None, bound


def _fewest(problem, z, trees, options, most, budget, seconds):
    """Return the least number of changes, `most` at most; None where that is not proven."""
    # every change costs 1, whatever the value
    counted = [Options(o.values, (np.arange(len(o.costs)) != o.own).astype(float), o.own) for o in options]
    point, bound = _cheapest(problem, trees, counted, float(most), seconds, budget)
    count = None if point is None else n_changes(problem, z, point)
    return count if count is not None and count - bound < 1 - SAME else None


def _smooth(problem, z, seconds):
    """Return a nearest point of a linear model or a network, the bound, and the least numbers of changes."""
    layers = layers_of(problem.estimator)
    known, most = known_point(problem, z)
    known, most, few = swept(problem, z, grid_options(problem.features, z), known, most)
    point, bound = _nearest_of_scores(problem, z, layers, known, most, seconds)
    if point is None:
        return None, bound, None, None
    here = n_changes(problem, z, point)
    least = 1 if 1 in (few, here) else _fewest_of_scores(problem, z, layers, float(len(problem.features)), seconds)
    if here == least:
        return point, bound, least, here
    return point, bound, least, _fewest_of_scores(problem, z, layers, NEAR * distance_of(problem, z, point), seconds)


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
                if _accepts(problem, point):
                    is_nearer = known is None or distance_of(problem, z, point) <= distance_of(problem, z, known)
                    return point if is_nearer else known, solution.bound
    return known, solution.bound


def moved(problem, z, moves, values):
    """Return the point of some amounts: whole numbers on the table's own grid, numbers within the range."""
    amounts = values[: len(moves.costs)]
    point = z + moves.shift @ np.where(moves.is_whole, np.round(amounts), amounts)
    for feature in problem.features:
        if feature.is_whole and not feature.is_fixed:
            step = int(np.round(point[feature.block.start] * feature.span))
            point[feature.block.start] = feature.grid[np.clip(step, 0, len(feature.grid) - 1)]
    return np.clip(point, 0.0, 1.0)


def _fewest_of_scores(problem, z, layers, limit, seconds):
    """Return the least number of changes within a distance; None where that is not proven."""
    moves = moves_of(problem.features, z, limit)
    program = score_program(layers, z, moves, problem.features, limit, MARGINS[1], count_changes=True)
    solution = program.solve(seconds)
    if solution.values is None:
        return None
    point = moved(problem, z, moves, solution.values)
    count = n_changes(problem, z, point)
    return count if _accepts(problem, point) and count - solution.bound < 1 - SAME else None


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
    cheapest = [np.delete(choice.costs, choice.own).min(initial=np.inf) for choice in options]
    for size in (1, 2):
        for group in combinations(range(len(options)), size):
            if few is not None and sum(cheapest[at] for at in group) >= most:
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


def grid_options(features, z):
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
