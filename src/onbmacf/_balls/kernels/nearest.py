"""The k nearest rows of new points, with the same grid and leaves as the cover: exact, ties go to the lower row.

Z  ->  NearestRows  ->  rows of the k nearest, nearest first, per point
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.groups import Groups, compacted
from onbmacf._balls.kernels.compiled import loops
from onbmacf._balls.kernels.grid import LACKING, NUMBER, SLACK, Ruler, grid_window, to_grid
from onbmacf._balls.kernels.leaves import build_leaves
from onbmacf._base.executor import map_chunks
from onbmacf._base.missing import has_missing, is_missing

CHUNK = 64  # points per task, and more where there are few rows
CELLS = 1 << 22  # of points x rows x columns that are worth a task


class NearestRows:
    """An index of rows under the Euclidean metric."""

    def __init__(self, Z: NDArray[np.float64], groups: Groups | None = None) -> None:
        grid = to_grid(Z, "euclidean", groups)
        self._Z, self._groups = Z, None if grid.heights is None else groups
        self._low, high, self._step = grid_window(grid.Z, "euclidean", grid.heights)
        self._last = np.floor((high - self._low) / self._step)
        # A new point can be half a step off the grid in every column, and so can a row; a gap of levels, one step.
        n_columns = grid.Z.shape[1]
        error = float(np.sqrt(n_columns)) + SLACK
        self._grid = grid._replace(ruler=Ruler(grid.ruler.step, error, n_columns, grid.ruler.metric))
        self._leaves = build_leaves(grid, np.arange(len(Z)))

    def rows(self, points: NDArray[np.float64], k: int, threads: int | None = None) -> NDArray[np.intp]:
        """Return the row numbers of the k nearest rows of each point, nearest first."""
        compact = points if self._groups is None else compacted(points, self._groups)
        if compact is None or not self._knows(compact):  # a category without a single active level
            from onbmacf._balls.neighbours import nearest_rows  # which imports this class

            return nearest_rows(self._Z, points, k)
        return self.rows_of_compact(compact, k, threads)

    def rows_of_compact(self, compact: NDArray[np.float64], k: int, threads: int | None = None) -> NDArray[np.intp]:
        """Return the same for points with one column per feature: the number, or the position of the active level."""
        points = np.ascontiguousarray(compact)
        scaled = (points - self._low) / self._step
        coarse = np.minimum(np.maximum(np.rint(scaled, out=scaled), 0.0, out=scaled), self._last).astype(np.int16)
        if self._grid.heights is not None:
            coarse = np.where(self._grid.heights > 0, points, coarse).astype(np.int16)
        if self._grid.costs is not None:
            coarse = np.where(is_missing(points), np.int16(LACKING), coarse)
        found = np.full((len(points), k), len(self._Z), dtype=np.intp)  # beyond all rows, as a distance beyond all

        def work(start: int, stop: int) -> None:
            loops.nearest_rows(loops.Views(self._grid, self._leaves, points, coarse), start, stop, np.empty(k), found)

        map_chunks(work, len(points), max(CHUNK, CELLS // self._grid.points.size), threads)
        for line in (found[:, -1] == len(self._Z)).nonzero()[0].tolist():  # rows at an infinite distance: the lowest
            kept = found[line][found[line] < len(self._Z)]
            found[line] = np.append(kept, np.setdiff1d(np.arange(len(kept) + k), kept))[:k]
        return found

    def takes_compact(self, compact: NDArray[np.float64]) -> bool:
        """Say whether such points can be looked up."""
        return (self._groups is not None or compact.shape[1] == self._Z.shape[1]) and self._knows(compact)

    def _knows(self, points: NDArray[np.float64]) -> bool:
        """Say whether values are missing only in columns in which rows lack some, too."""
        if not has_missing(points):
            return True
        return self._grid.costs is not None and not is_missing(points)[:, self._grid.costs == NUMBER].any()
