"""Where NICE is out of reach: the nearest answer that keeps the immutable features, found by trying every value.

    python benchmarks/dial_out_of_reach.py [--rows 100] [--cache build/dial] [--tables compas,titanic]

NICE may change what is immutable here. For each row of `benchmarks/dial.py` every point that keeps the immutable
features, with values that may be returned, and that is nearer than the answer at `plausibility=0`, is asked of the
model. The nearest of them is the nearest answer there is. A pair whose mean nearest distance is above NICE's mean
cannot be won, whatever the search.
"""

import argparse
from itertools import product
from pathlib import Path

import numpy as np

from dial import MODELS, SEED, pair_of
from onbmacf.bench import metrics
from onbmacf.bench.methods.onb import OnbMacf

AT_ONCE = 50_000
SLIGHT = 1e-9


def thresholds(model, column):
    """Return where a model of trees splits a column, sorted; None where it is none."""
    estimator = getattr(model, "estimator", None)
    if hasattr(estimator, "_bin_mapper"):
        return np.sort(estimator._bin_mapper.bin_thresholds_[column])
    if hasattr(estimator, "estimators_"):
        trees = [tree.tree_ for tree in estimator.estimators_]
        return np.unique(np.concatenate([tree.threshold[tree.feature == column] for tree in trees]))
    return None


def options(task, model, z, at, most):
    """Return the other values of a feature that cost less than `most`, one line each, and what they cost."""
    block, feature = task.blocks[at], task.schema.features[at]
    own, span = z[block], float(task.space.span[at])
    if feature.kind == "categorical":
        values = np.eye(len(own))
    elif feature.kind == "continuous":
        step = 10.0 ** -task.space.readable[at]
        low = task.space.low[at]
        raw = np.arange(np.ceil(low / step), np.floor((low + span) / step) + 1) * step
        values = ((raw - low) / span)[:, np.newaxis]
        splits = thresholds(model, block.start)
        if splits is not None:  # between two splits all values are alike: the nearest stands for them
            part = np.searchsorted(splits, values[:, 0].astype(np.float32)) * 2 + (values[:, 0] > own[0])
            order = np.lexsort((np.abs(values[:, 0] - own[0]), part))
            values = values[order[np.r_[True, np.diff(part[order]) != 0]]]
    else:
        values = (np.arange(round(span) + 1) / span)[:, np.newaxis]
    costs = np.abs(values - own).max(axis=1)
    is_other = (costs > SLIGHT) & (costs < most)
    return values[is_other], costs[is_other]


def nearest(task, model, z, most):
    """Return the distance of the nearest answer that keeps the immutable features, if it is below `most`."""
    free = [at for at, feature in enumerate(task.schema.features) if not feature.immutable]
    found = {at: options(task, model, z, at, most) for at in free}
    longest = max(free, key=lambda at: len(found[at][0]))
    others = [at for at in free if at != longest]
    points, costs = [], []
    for places in product(*(range(-1, len(found[at][0])) for at in others)):
        base, cost = z.copy(), 0.0
        for at, place in zip(others, places, strict=True):
            if place >= 0:
                base[task.blocks[at]] = found[at][0][place]
                cost += found[at][1][place]
        if cost >= most:
            continue
        values, more = found[longest]
        near = cost + more < most
        some = np.repeat(base[np.newaxis], near.sum() + 1, axis=0)
        some[1:, task.blocks[longest]] = values[near]
        points.append(some)
        costs.append(np.append(cost, cost + more[near]))
    points, costs = np.concatenate(points), np.concatenate(costs)
    order = np.argsort(costs, kind="stable")
    for start in range(0, len(order), AT_ONCE):
        part = order[start : start + AT_ONCE]
        hits = part[model.label_of(points[part]) == task.target]
        if len(hits):
            return float(costs[hits].min()), len(points)
    return most, len(points)


def compared(pair):
    """Return per row that both explain: the nearest distance, NICE's, and whether NICE changes an immutable one."""
    task = pair.task
    ours = OnbMacf(plausibility=0.0).fit(task, pair.model, SEED).explain(pair.factuals)
    is_held = np.array([feature.immutable for feature in task.schema.features])
    lines = []
    for z, mine, theirs in zip(pair.factuals, ours, pair.nice, strict=True):
        if mine is None or theirs is None:
            continue
        far, nice = (
            metrics.feature_differences(z[np.newaxis], np.atleast_2d(point)[:1], task.blocks)[0]
            for point in (mine, theirs)
        )
        least, n_asked = nearest(task, pair.model, z, far.sum() + SLIGHT)
        lines.append((least, far.sum(), nice.sum(), (nice[is_held] > metrics.CHANGED).any(), n_asked))
    return np.array(lines, dtype=float)


def main():
    """Print one line per pair."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--tables", default="compas,titanic")
    parser.add_argument("--models", default=",".join(MODELS))
    arguments = parser.parse_args()
    for table in arguments.tables.split(","):
        for name in arguments.models.split(","):
            lines = compared(pair_of(table, name, arguments.rows, arguments.cache))
            least, far, nice, is_changed = lines[:, 0], lines[:, 1], lines[:, 2], lines[:, 3] > 0
            is_nearer = is_changed & (nice < least - SLIGHT)
            print(
                f"{table} {name}: {len(lines)} rows, mean nearest {least.mean():.3f}, dial 0 {far.mean():.3f}, NICE "
                f"{nice.mean():.3f}; NICE changes an immutable feature in {is_changed.sum()} and is nearer than any "
                f"answer that keeps them in {is_nearer.sum()}; {lines[:, 4].mean():.0f} points asked per row",
                flush=True,
            )


if __name__ == "__main__":
    main()
