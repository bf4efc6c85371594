"""Counterfactuals that are easily found: the nearest row of the table, and every point with one or two changes.

    problem, factual, options  ->  known_point, swept  ->  a point, its distance, the least changes if they are 1 or 2

What the exact search may spend is limited by the nearest of them.
"""

from itertools import combinations

import numpy as np

from optimum_trees import Options

GRID = 17  # values per number in a first look at a model of scores
AT_ONCE = 60_000  # points per call


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
