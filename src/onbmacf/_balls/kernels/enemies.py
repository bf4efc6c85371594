"""Algorithm 1 line 9 for every row: the distance to the nearest row of another label.

    Z, labels  ->  nearest_enemy_fast  ->  reach

The result holds distances only, no row numbers, so it does not matter which of two equally near enemies comes first.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.groups import Groups
from onbmacf._balls.kernels.compact import TOP
from onbmacf._balls.kernels.grid import Grid, bracket, code_of, to_grid
from onbmacf._balls.kernels.leaves import (
    GONE,
    LEAF,
    Leaves,
    box_gaps,
    build_leaves,
    join_leaves,
    leaf_sums,
    rows_to_box,
)
from onbmacf._balls.kernels.pairs import MANY_LEAVES, REACHED, enemies_by_pairs, probes_of, share_reached
from onbmacf._balls.kernels.sums import exact_sum, to_distances
from onbmacf._base.executor import run_all, shares
from onbmacf._base.jit import kernel, map_chunks, part
from onbmacf._base.missing import has_missing

CHUNK = 4  # leaves per task


def nearest_enemy_fast(
    Z: NDArray[np.float64],
    labels: NDArray[np.intp],
    metric: str = "manhattan",
    threads: int | None = None,
    client: Any = None,
    groups: Groups | None = None,
) -> NDArray[np.float64]:
    """Return, per row, the distance to the nearest row of another label (inf if there is none).

    With a Dask client, the leaves are divided among its workers, and each worker gets all rows to compare with.
    """
    grid = to_grid(Z, metric, groups)
    sizes = np.unique(labels, return_counts=True)[1]
    classes = np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1])
    forest = [build_leaves(grid, rows) for rows in classes]
    ends = np.cumsum([len(leaves.rows) for leaves in forest])
    leaves, best = join_leaves(forest), np.full(len(Z), np.inf)
    if client is None and _reach_most_boxes(grid, leaves, ends):
        return to_distances(enemies_by_pairs(grid, leaves, ends, threads), metric)

    def work(start: int, stop: int) -> None:
        _nearest(grid, leaves, ends, start, stop, best)

    if client is None:
        map_chunks(work, len(leaves.rows), CHUNK, threads)
    else:
        spans = shares(len(leaves.rows), client, least=CHUNK)
        parts = run_all(partial(_nearest_of, grid, leaves, ends), spans, describe="nearest enemies", client=client)
        best[leaves.rows[leaves.rows >= 0]] = np.concatenate(parts)
    return to_distances(best, metric)


def _reach_most_boxes(grid: Grid, leaves: Leaves, ends: Any) -> bool:
    """Say whether the nearest enemies of some rows are farther than most boxes."""
    if len(leaves.rows) < MANY_LEAVES:
        return False
    best = np.full(len(grid.Z), np.inf)
    for leaf in probes_of(leaves):
        _nearest(grid, leaves, ends, leaf, leaf + 1, best)
    return share_reached(grid, leaves, best) > REACHED


def _nearest_of(grid: Grid, leaves: Leaves, ends: Any, span: slice) -> NDArray[np.float64]:
    """Return the smallest sum of each row of some leaves, leaf by leaf."""
    best, rows = np.empty(len(grid.Z)), leaves.rows[span]
    _nearest(grid, leaves, ends, span.start, span.stop, best)
    return best[rows[rows >= 0]]


def _nearest(grid: Grid, leaves: Leaves, ends: Any, start: int, stop: int, best: Any) -> None:
    """Line 9 for the rows of leaves `start` to `stop`. Class k has the leaves `ends[k - 1]` to `ends[k]`."""
    lines = np.empty((4, LEAF), np.int16)
    for own in range(start, stop):
        label = np.searchsorted(ends, own, side="right")
        near = box_gaps(leaves, own, grid.ruler.metric)
        near[ends[label - 1] if label > 0 else 0 : ends[label]] = GONE
        _nearest_of_leaf(grid, leaves, own, near, np.argsort(near, kind="stable"), lines, best)


@kernel
def _nearest_of_leaf(grid: Grid, leaves: Leaves, own: int, near: Any, order: Any, lines: Any, best: Any) -> None:
    """Line 9: the smallest sums between the rows of leaf `own` and the rows of other leaves, the nearest boxes first.

    The smaller the sums so far, the fewer boxes can hold a smaller one. `lines` is room to work in.
    """
    metric, count, widest = grid.ruler.metric, leaves.live[own], np.int16(TOP)
    to_box, far, sums, maybe = lines[0], lines[1], lines[2], lines[3]
    for at in range(count):
        best[leaves.rows[own, at]], maybe[at] = np.inf, TOP
    for leaf in order:
        if near[leaf] > widest:
            break
        rows_to_box(leaves, own, leaf, metric, to_box, far)
        widest = np.int16(-1)
        for at in range(count):
            if to_box[at] <= maybe[at]:
                row = leaves.rows[own, at]
                if leaf_sums(grid.points[row], leaves, leaf, metric, sums) <= maybe[at]:
                    best[row] = _nearest_in_leaf(grid, leaves, leaf, row, best[row], maybe[at], sums)
                    maybe[at] = bracket(best[row], grid.ruler)[1]
            widest = max(widest, maybe[at])


@part
def _nearest_in_leaf(grid: Grid, leaves: Leaves, leaf: int, row: int, best: float, maybe: int, sums: Any) -> Any:
    """Return the smallest sum between `row` and the rows of one leaf, or the best so far."""
    for at in range(LEAF):
        if sums[at] <= maybe:
            total = exact_sum(grid.Z[row], grid.Z[leaves.rows[leaf, at]], grid.ruler.metric, grid.heights, grid.costs)
            if total < best:
                best, maybe = total, bracket(total, grid.ruler)[1]
    return best


def reach_of_fast(
    z: NDArray[np.float64], codes: NDArray[np.intp], Z: NDArray[np.float64], labels: NDArray[np.intp], metric: str
) -> NDArray[np.float64]:
    """Return, per new point, the distance to the nearest row with another label than its own."""
    best, lacks = np.full(len(z), np.inf), True if has_missing(z) or has_missing(Z) else None
    _nearest_other(np.ascontiguousarray(z), codes, np.ascontiguousarray(Z), labels, code_of(metric), lacks, best)
    return to_distances(best, metric)


@kernel
def _nearest_other(z: Any, codes: Any, Z: Any, labels: Any, metric: Any, lacks: Any, best: Any) -> None:
    for line in range(len(z)):
        for row in range(len(Z)):
            if labels[row] != codes[line]:
                best[line] = min(best[line], exact_sum(z[line], Z[row], metric, None, lacks))
