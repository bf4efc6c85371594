"""The k nearest rows of new points, with the same grid and leaves as the cover: exact, ties go to the lower row.

Z  ->  NearestRows  ->  rows of the k nearest, nearest first, per point
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.groups import Groups, compacted
from onbmacf._balls.kernels.compact import LACKING, NUMBER, TOP
from onbmacf._balls.kernels.grid import SLACK, Grid, Ruler, bracket, grid_window, to_grid
from onbmacf._balls.kernels.leaves import LEAF, Leaves, box_sums, build_leaves, leaf_sums
from onbmacf._balls.kernels.sums import exact_sum
from onbmacf._balls.metrics import EUCLIDEAN
from onbmacf._balls.neighbours import nearest_rows
from onbmacf._base.jit import kernel, map_chunks, part
from onbmacf._base.missing import has_missing, is_missing

CHUNK = 64  # points per task


class NearestRows:
    """An index of rows under the Euclidean metric."""

    def __init__(self, Z: NDArray[np.float64], groups: Groups | None = None) -> None:
        grid = to_grid(Z, "euclidean", groups)
        self._Z, self._groups = Z, None if grid.heights is None else groups
        self._low, self._high, self._step = grid_window(grid.Z, "euclidean", grid.heights)
        # A new point can be half a step off the grid in every column, and so can a row; a gap of levels, one step.
        n_columns = grid.Z.shape[1]
        error = float(np.sqrt(n_columns)) + SLACK
        self._grid = grid._replace(ruler=Ruler(grid.ruler.step, error, n_columns, grid.ruler.metric))
        self._leaves = build_leaves(grid, np.arange(len(Z)))

    def rows(self, points: NDArray[np.float64], k: int, threads: int | None = None) -> NDArray[np.intp]:
        """Return the row numbers of the k nearest rows of each point, nearest first."""
        compact = points if self._groups is None else compacted(points, self._groups)
        if compact is None or not self._knows(compact):  # a category without a single active level
            return nearest_rows(self._Z, points, k)
        points, last = np.ascontiguousarray(compact), np.floor((self._high - self._low) / self._step)
        coarse = np.clip(np.rint((points - self._low) / self._step), 0.0, last).astype(np.int16)
        if self._grid.heights is not None:
            coarse = np.where(self._grid.heights > 0, points, coarse).astype(np.int16)
        if self._grid.costs is not None:
            coarse = np.where(is_missing(points), np.int16(LACKING), coarse)
        found = np.full((len(points), k), -1, dtype=np.int64)

        def work(start: int, stop: int) -> None:
            boxes, sums = np.empty((2, len(self._leaves.rows)), np.int16), np.empty(LEAF, np.int16)
            _nearest_rows(self._grid, self._leaves, points, coarse, start, stop, boxes, sums, np.empty(k), found)

        map_chunks(work, len(points), CHUNK, threads)
        return found

    def _knows(self, points: NDArray[np.float64]) -> bool:
        """Say whether values are missing only in columns in which rows lack some, too."""
        if not has_missing(points):
            return True
        return self._grid.costs is not None and not is_missing(points)[:, self._grid.costs == NUMBER].any()


@kernel
def _nearest_rows(
    grid: Grid,
    leaves: Leaves,
    points: Any,
    coarse: Any,
    start: int,
    stop: int,
    boxes: Any,
    sums: Any,
    totals: Any,
    found: Any,
) -> None:
    """Write the nearest rows of each point; `boxes`, `sums` and `totals` are room to work in.

    The metric is a constant here and below, so that the code of the others is not compiled.
    """
    near, far = boxes[0], boxes[1]
    for line in range(start, stop):
        box_sums(coarse[line], leaves, EUCLIDEAN, near, far)
        _nearest_of(grid, leaves, points[line], coarse[line], near, sums, totals, found[line])


@part
def _nearest_of(grid: Grid, leaves: Leaves, z: Any, point: Any, near: Any, sums: Any, totals: Any, rows: Any) -> None:
    """Keep the smallest sums so far in order; skip boxes and rows that cannot be below the last one."""
    maybe, last = np.int16(TOP), len(totals) - 1
    for at in range(len(totals)):
        totals[at] = np.inf
    closest = 0
    for leaf in range(len(near)):
        closest = leaf if near[leaf] < near[closest] else closest
    for turn in range(-1, len(near)):
        leaf = closest if turn < 0 else turn
        if near[leaf] > maybe or turn == closest:
            continue
        if leaf_sums(point, leaves, leaf, EUCLIDEAN, sums) > maybe:
            continue
        for at in range(LEAF):
            if sums[at] > maybe:
                continue
            row = leaves.rows[leaf, at]
            total = exact_sum(z, grid.Z[row], EUCLIDEAN, grid.heights, grid.costs)
            if total < totals[last] or (total == totals[last] and row < rows[last]):
                _insert(totals, rows, total, row)
                maybe = bracket(totals[last], grid.ruler)[1]


@part
def _insert(totals: Any, rows: Any, total: float, row: int) -> None:
    """Insert a sum and its row in order, dropping the last."""
    at = len(totals) - 1
    while at > 0 and (total < totals[at - 1] or (total == totals[at - 1] and row < rows[at - 1])):
        totals[at], rows[at] = totals[at - 1], rows[at - 1]
        at -= 1
    totals[at], rows[at] = total, row
