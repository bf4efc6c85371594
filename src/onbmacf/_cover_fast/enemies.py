"""Algorithm 1 line 9 for every row: the distance to the nearest row of another label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onbmacf._cover_fast.grid import bracket, to_grid
from onbmacf._cover_fast.leaves import LEAF, Leaves, box_sums, build_leaves, leaf_sums
from onbmacf._cover_fast.sums import exact_sum, to_distances
from onbmacf._numba import kernel, map_chunks

CHUNK = 8  # leaves per task


def nearest_enemy_fast(
    Z: NDArray[np.float64], labels: NDArray[np.intp], metric: str = "manhattan", threads: int | None = None
) -> NDArray[np.float64]:
    """Return, per row, the distance to the nearest row of another label (inf if there is none)."""
    grid = to_grid(Z, metric)
    classes = [build_leaves(grid, np.flatnonzero(labels == label)) for label in np.unique(labels)]
    best = np.full(len(Z), np.inf)
    for own in classes:
        for other in classes:
            if own is not other:

                def work(start: int, stop: int, own: Leaves = own, other: Leaves = other) -> None:
                    _nearest(Z, *grid, own.rows[start:stop].ravel(), other, best)

                map_chunks(work, len(own.rows), CHUNK, threads)
    return to_distances(best, metric)


@kernel
def _nearest(
    Z: Any, points: Any, tame: Any, step: Any, error: Any, metric: int, rows: Any, enemies: Leaves, best: Any
) -> None:
    """Line 9: lower `best[row]` to the smallest sum between the row and an enemy.

    The enemy found for the row before is a good first guess: the rows come leaf by leaf.
    """
    near, far = np.empty(len(enemies.rows), np.int16), np.empty(len(enemies.rows), np.int16)
    sums, guess = np.empty(LEAF, np.int16), enemies.rows[0, 0]
    for row in rows:
        if row < 0:
            break
        best[row] = min(best[row], exact_sum(Z[row], Z[guess], metric))
        box_sums(points[row], enemies.low, enemies.high, metric, near, far)
        first = near.argmin()
        for turn in range(-1, len(near)):
            leaf = first if turn < 0 else turn
            maybe = bracket(best[row], step, error, len(points[row]), metric)[1]
            if near[leaf] > maybe or turn == first:
                continue
            if leaf_sums(points[row], enemies.points[leaf], enemies.gone[leaf], metric, sums) > maybe:
                continue
            for at in range(LEAF):
                if sums[at] <= maybe:
                    total = exact_sum(Z[row], Z[enemies.rows[leaf, at]], metric)
                    if total < best[row]:
                        best[row], guess = total, enemies.rows[leaf, at]
