"""Algorithm 1 lines 6-19 for one class: the lazy greedy cover.

A ball's gain only falls while rows get covered, so a gain counted earlier is an upper bound. The heap holds one bound
per row; the top row is counted afresh and wins if nothing else can beat it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onbmacf._cover_fast.sums import METRICS, box_sums, row_sums, to_limits
from onbmacf._cover_fast.tree import Tree, build_tree
from onbmacf._numba import kernel, map_chunks

CHUNK = 256  # rows per task
DEPTH = 256  # stack entries: more than any tree needs


def greedy_cover_fast(
    Z: NDArray[np.float64],
    reach: NDArray[np.float64],
    metric: str = "manhattan",
    competitors: str = "uncovered",
    threads: int | None = None,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Cover the rows of one class: the centers in the order chosen, and per row the ball that covered it first."""
    limits = to_limits(reach, metric)
    tree = build_tree(Z, np.arange(len(Z)))
    gains = np.empty(len(Z), np.int64)

    def work(start: int, stop: int) -> None:
        _count_all(Z, limits, tree.rows[start:stop], tree, METRICS[metric], gains)

    map_chunks(work, len(Z), CHUNK, threads)
    heap = np.sort((len(Z) - gains) * len(Z) + np.arange(len(Z)))
    owner = np.full(len(Z), -1, np.int64)
    centers = np.empty(len(Z), np.int64)
    size, balls, left = len(Z), 0, len(Z)
    while left > 0:
        size, balls, left = _advance(
            Z, limits, tree, METRICS[metric], competitors == "all", heap, size, owner, centers, balls
        )
        tree = build_tree(Z, np.flatnonzero(owner < 0)) if left else tree
    return centers[:balls].copy(), owner


@kernel
def _count_all(Z, limits, rows, tree, metric, gains):
    """Line 10 for each of `rows`: how many rows of the tree its ball covers."""
    stack, sums = np.empty(DEPTH, np.int64), np.empty(tree.live.max())
    for row in rows:
        gains[row] = _count(Z[row], limits[row], tree, metric, stack, sums)


@kernel
def _count(z, limit, tree, metric, stack, sums):
    """Line 10: the size of P, the live rows of the tree within `limit` of `z`."""
    gain = 0
    stack[0], top = 0, 1
    while top > 0:
        top -= 1
        node = stack[top]
        near, far = box_sums(z, tree.low[node], tree.high[node], metric)
        if near > limit or tree.live[node] == 0:
            continue
        if far <= limit:
            gain += tree.live[node]
        elif tree.child[node] == 0:
            start, stop = tree.start[node], tree.start[node] + tree.live[node]
            row_sums(z, tree.columns, start, stop, metric, sums)
            for at in range(stop - start):
                gain += sums[at] <= limit
        else:
            stack[top], stack[top + 1] = tree.child[node], tree.child[node] + 1
            top += 2
    return gain


@kernel
def _take(z, limit, tree, metric, stack, sums, owner, ball):
    """Line 18: give every live row within `limit` of `z` to `ball` and take it out of the tree."""
    stack[0], top = 0, 1
    while top > 0:
        top -= 1
        node = stack[top]
        near, far = box_sums(z, tree.low[node], tree.high[node], metric)
        if near > limit or tree.live[node] == 0:
            continue
        if tree.child[node] > 0:
            stack[top], stack[top + 1] = tree.child[node], tree.child[node] + 1
            top += 2
            continue
        start, live = tree.start[node], tree.live[node]
        row_sums(z, tree.columns, start, start + live, metric, sums)
        kept = start
        for at in range(start, start + live):
            if sums[at - start] <= limit:
                owner[tree.rows[at]] = ball
            else:
                tree.rows[kept] = tree.rows[at]
                tree.columns[:, kept] = tree.columns[:, at]
                kept += 1
        gone = start + live - kept
        while node >= 0:
            tree.live[node] -= gone
            node = tree.parent[node]


@kernel
def _sift(heap, size):
    """Let the top of the heap sink to its place."""
    at, key = 0, heap[0]
    while 2 * at + 1 < size:
        least = 2 * at + 1
        if least + 1 < size and heap[least + 1] < heap[least]:
            least += 1
        if heap[least] >= key:
            break
        heap[at] = heap[least]
        at = least
    heap[at] = key


@kernel
def _advance(Z, limits, tree, metric, all_compete, heap, size, owner, centers, balls):
    """Lines 6-19 until half of the tree's rows are covered."""
    stack, sums = np.empty(DEPTH, np.int64), np.empty(tree.live.max())
    total, goal = len(Z), tree.live[0] // 2
    while tree.live[0] > goal:
        row = heap[0] % total
        gain = 0
        if all_compete or owner[row] < 0:  # line 8
            gain = _count(Z[row], limits[row], tree, metric, stack, sums)  # lines 9-10
        heap[0] = (total - gain) * total + row
        if gain == 0:
            size -= 1
            heap[0] = heap[size]
        elif (size < 2 or heap[0] < heap[1]) and (size < 3 or heap[0] < heap[2]):  # line 11
            _take(Z[row], limits[row], tree, metric, stack, sums, owner, balls)
            centers[balls] = row  # line 17
            balls += 1
            continue
        _sift(heap, size)
    return size, balls, tree.live[0]
