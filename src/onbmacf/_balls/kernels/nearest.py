"""The k nearest rows of new points, with the same grid and leaves as the cover: exact, ties go to the lower row.

Z  ->  NearestRows  ->  rows of the k nearest, nearest first, per point
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.groups import Groups, compacted
from onbmacf._balls.kernels.compiled import loops
from onbmacf._balls.kernels.grid import NUMBER, SLACK, Ruler, grid_window, to_grid
from onbmacf._balls.kernels.leaves import build_leaves
from onbmacf._base.executor import map_chunks

CHUNK = 64  # points per task, and more where there are few rows
CELLS = 1 << 22  # of points x rows x columns that are worth a task


class NearestRows:
    """An index of rows under the Euclidean metric."""

    def __init__(self, Z: NDArray[np.float64], groups: Groups | None = None) -> None:
        grid = to_grid(Z, "euclidean", groups)
        self._Z, self._groups = Z, None if grid.heights is None else groups
        low, high, step = grid_window(grid.Z, "euclidean", grid.heights)
        every = np.full(len(low), NUMBER, np.int16)
        is_level = np.zeros(len(low), np.int8) if grid.heights is None else (grid.heights > 0).astype(np.int8)
        costs = every if grid.costs is None else grid.costs
        self._window = (low, float(step), np.floor((high - low) / step), is_level, costs)
        # A new point can be half a step off the grid in every column, and so can a row; a gap of levels, one step.
        n_columns = grid.Z.shape[1]
        error = float(np.sqrt(n_columns)) + SLACK
        self._grid = grid._replace(ruler=Ruler(grid.ruler.step, error, n_columns, grid.ruler.metric))
        self._leaves = build_leaves(grid, np.arange(len(Z)))

    def rows(self, points: NDArray[np.float64], k: int, threads: int | None = None) -> NDArray[np.intp]:
        """Return the row numbers of the k nearest rows of each point, nearest first."""
        compact = points if self._groups is None else compacted(points, self._groups)
        coarse = np.empty((0, 0), np.int16) if compact is None else np.empty(compact.shape, np.int16)
        if compact is None or not loops.to_window(compact, *self._window, coarse):
            from onbmacf._balls.neighbours import nearest_rows  # which imports this class

            return nearest_rows(self._Z, points, k)
        return self._rows(np.ascontiguousarray(compact), coarse, k, threads)

    def _rows(
        self, points: NDArray[np.float64], coarse: NDArray[np.int16], k: int, threads: int | None = None
    ) -> NDArray[np.intp]:
        """Return the same for points on the grid, too."""
        found = np.full((len(points), k), len(self._Z), dtype=np.intp)  # beyond all rows, as a distance beyond all

        def work(start: int, stop: int) -> None:
            loops.nearest_rows(loops.Views(self._grid, self._leaves, points, coarse), start, stop, np.empty(k), found)

        map_chunks(work, len(points), max(CHUNK, CELLS // self._grid.points.size), threads)
        for line in (found[:, -1] == len(self._Z)).nonzero()[0].tolist():  # rows at an infinite distance: the lowest
            kept = found[line][found[line] < len(self._Z)]
            found[line] = np.append(kept, np.setdiff1d(np.arange(len(kept) + k), kept))[:k]
        return found

    def share_of_numbers(
        self,
        N: NDArray[np.float64],
        scales: Any,
        k: int,
        row_labels: NDArray[np.intp],
        labels: NDArray[np.intp],
    ) -> NDArray[np.float64] | None:
        """Return the share of the k nearest rows that have a label, of points in the caller's units.

        None where a value is missing in a column in which no row lacks one, or a category has too many levels.
        """
        if N.shape[1] != self._grid.points.shape[1]:
            return None
        points, coarse = np.empty(N.shape), np.empty(N.shape, np.int16)
        loops.to_unit(np.ascontiguousarray(N), *scales, points)
        if not loops.to_window(points, *self._window, coarse):
            return None
        return (row_labels[self._rows(points, coarse, k)] == labels[:, np.newaxis]).sum(axis=1) / k
