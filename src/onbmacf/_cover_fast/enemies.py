"""Algorithm 1 line 9 for every row: the distance to the nearest row of another label."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onbmacf._cover_fast.sums import METRICS, box_sums, row_sums, to_distances
from onbmacf._cover_fast.tree import Tree, build_tree
from onbmacf._numba import kernel, map_chunks

CHUNK = 1024  # rows per task
DEPTH = 256  # stack entries: more than any tree needs


def nearest_enemy_fast(
    Z: NDArray[np.float64], labels: NDArray[np.intp], metric: str = "manhattan", threads: int | None = None
) -> NDArray[np.float64]:
    """Return, per row, the distance to the nearest row of another label (inf if there is none)."""
    trees = [build_tree(Z, np.flatnonzero(labels == label)) for label in np.unique(labels)]
    sums = np.full(len(Z), np.inf)
    for own in trees:
        for other in trees:
            if own is not other:

                def work(start: int, stop: int, own: Tree = own, other: Tree = other) -> None:
                    _nearest(Z, own.rows[start:stop], other, METRICS[metric], sums)

                map_chunks(work, len(own.rows), CHUNK, threads)
    return to_distances(sums, metric)


@kernel
def _nearest(Z, rows, tree, metric, best):
    """Line 9: lower `best[row]` to the smallest sum between the row and the rows of `tree`."""
    stack, bounds = np.empty(DEPTH, np.int64), np.empty(DEPTH)
    sums = np.empty(tree.live.max())
    for row in rows:
        z = Z[row]
        stack[0], bounds[0], top = 0, 0.0, 1
        while top > 0:
            top -= 1
            node = stack[top]
            if bounds[top] >= best[row]:
                continue
            child = tree.child[node]
            if child == 0:
                start, stop = tree.start[node], tree.start[node] + tree.live[node]
                row_sums(z, tree.columns, start, stop, metric, sums)
                best[row] = min(best[row], _smallest(sums[: stop - start]))
                continue
            left, _ = box_sums(z, tree.low[child], tree.high[child], metric)
            right, _ = box_sums(z, tree.low[child + 1], tree.high[child + 1], metric)
            nearer = 0 if left <= right else 1
            stack[top], bounds[top] = child + 1 - nearer, max(left, right)
            stack[top + 1], bounds[top + 1] = child + nearer, min(left, right)
            top += 2


@kernel
def _smallest(sums):
    """Return the smallest sum; floats that are not negative order like their bits, and integers compare in lanes."""
    bits = sums.view(np.int64)
    least = bits[0]
    for at in range(len(bits)):
        least = min(least, bits[at])
    out = np.empty(1, np.int64)
    out[0] = least
    return out.view(np.float64)[0]
