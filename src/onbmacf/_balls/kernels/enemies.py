"""Algorithm 1 line 9 for every row: the distance to the nearest row of another label.

    Z, labels  ->  nearest_enemy_fast  ->  reach

The result holds distances only, no row numbers, so it does not matter which of two equally near enemies comes first.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.kernels.grid import Grid, bracket, to_grid
from onbmacf._balls.kernels.leaves import GONE, LEAF, Leaves, box_sums, build_leaves, join_leaves, leaf_sums
from onbmacf._balls.kernels.sums import exact_sum, to_distances
from onbmacf._base.executor import run_all, shares
from onbmacf._base.jit import kernel, map_chunks

CHUNK = 4  # leaves per task


def nearest_enemy_fast(
    Z: NDArray[np.float64],
    labels: NDArray[np.intp],
    metric: str = "manhattan",
    threads: int | None = None,
    client: Any = None,
) -> NDArray[np.float64]:
    """Return, per row, the distance to the nearest row of another label (inf if there is none).

    With a Dask client, the leaves are divided among its workers, and each worker gets all rows to compare with.
    """
    grid = to_grid(Z, metric)
    sizes = np.unique(labels, return_counts=True)[1]
    classes = np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1])
    forest = [build_leaves(grid, rows) for rows in classes]
    ends = np.cumsum([len(leaves.rows) for leaves in forest])
    leaves, best = join_leaves(forest), np.full(len(Z), np.inf)

    def work(start: int, stop: int) -> None:
        _nearest(grid, leaves, ends, start, stop, best)

    if client is None:
        map_chunks(work, len(leaves.rows), CHUNK, threads)
    else:
        spans = shares(len(leaves.rows), client, least=CHUNK)
        parts = run_all(partial(_nearest_of, grid, leaves, ends), spans, describe="nearest enemies", client=client)
        best[leaves.rows[leaves.rows >= 0]] = np.concatenate(parts)
    return to_distances(best, metric)


def _nearest_of(grid: Grid, leaves: Leaves, ends: Any, span: slice) -> NDArray[np.float64]:
    """Return the smallest sum of each row of some leaves, leaf by leaf."""
    best, rows = np.empty(len(grid.Z)), leaves.rows[span]
    _nearest(grid, leaves, ends, span.start, span.stop, best)
    return best[rows[rows >= 0]]


@kernel
def _nearest(grid: Grid, leaves: Leaves, ends: Any, start: int, stop: int, best: Any) -> None:
    """Line 9 for the rows of leaves `start` to `stop`. Class k has the leaves `ends[k - 1]` to `ends[k]`.

    The nearest enemy of the previous row, a neighbour, is a good first guess.
    """
    near, far = np.empty(len(leaves.rows), np.int16), np.empty(len(leaves.rows), np.int16)
    sums = np.empty(LEAF, np.int16)
    for own in range(start, stop):
        label = np.searchsorted(ends, own, side="right")
        first, last, guess = ends[label - 1] if label > 0 else 0, ends[label], -1
        for row in leaves.rows[own, : leaves.live[own]]:
            box_sums(grid.points[row], leaves, grid.ruler.metric, near, far)
            near[first:last] = GONE
            best[row], guess = _nearest_to(grid, leaves, row, guess, near, sums)


@kernel
def _nearest_to(grid: Grid, leaves: Leaves, row: int, guess: int, near: Any, sums: Any) -> Any:
    """Line 9: the smallest sum between `row` and the rows of the leaves, and the row that has it (-1: none).

    The nearest box comes first: the smaller the sum so far, the fewer boxes can hold a smaller one.
    """
    metric, z = grid.ruler.metric, grid.Z[row]
    best = exact_sum(z, grid.Z[guess], metric) if guess >= 0 else np.inf
    maybe = bracket(best, grid.ruler)[1]
    closest = near.argmin()
    for turn in range(-1, len(near)):
        leaf = closest if turn < 0 else turn
        if near[leaf] > maybe or turn == closest:
            continue
        if leaf_sums(grid.points[row], leaves, leaf, metric, sums) > maybe:
            continue
        for at in range(LEAF):
            if sums[at] <= maybe:
                total = exact_sum(z, grid.Z[leaves.rows[leaf, at]], metric)
                if total < best:
                    best, guess = total, leaves.rows[leaf, at]
                    maybe = bracket(best, grid.ruler)[1]
    return best, guess
