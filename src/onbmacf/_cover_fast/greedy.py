"""Algorithm 1 lines 6-19 for one class: the lazy greedy cover.

A ball's gain only falls while rows get covered, so a gain counted earlier is an upper bound. The heap holds one bound
per row; the top row is counted afresh, and wins if no other bound beats it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onbmacf._cover_fast.grid import bracket, to_grid
from onbmacf._cover_fast.leaves import GONE, LEAF, Leaves, box_sums, build_leaves, count_within, leaf_sums
from onbmacf._cover_fast.sums import exact_sum, to_limits
from onbmacf._numba import kernel, map_chunks

CHUNK = 4  # leaves per task


def greedy_cover_fast(
    Z: NDArray[np.float64],
    reach: NDArray[np.float64],
    metric: str = "manhattan",
    competitors: str = "uncovered",
    threads: int | None = None,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Cover the rows of one class: the centers in the order chosen, and per row the ball that covered it first."""
    limits, grid = to_limits(reach, metric), to_grid(Z, metric)
    leaves = build_leaves(grid, np.arange(len(Z)))
    gains = np.empty(len(Z), np.int64)

    def work(start: int, stop: int) -> None:
        rows = leaves.rows[start:stop].ravel()
        _bound_all(grid.points, grid.step, grid.error, grid.metric, limits, leaves, rows, gains)

    map_chunks(work, len(leaves.rows), CHUNK, threads)
    heap = np.sort((len(Z) - gains) * len(Z) + np.arange(len(Z)))
    owner, centers = np.full(len(Z), -1, np.int64), np.empty(len(Z), np.int64)
    size, balls, left = len(Z), 0, len(Z)
    while left > 0:
        size, balls, left = _advance(Z, *grid, limits, leaves, competitors == "all", heap, size, owner, centers, balls)
        leaves = build_leaves(grid, np.flatnonzero(owner < 0)) if left else leaves
    return centers[:balls].copy(), owner


@kernel
def _bound_all(
    points: Any, step: Any, error: Any, metric: int, limits: Any, leaves: Leaves, rows: Any, gains: Any
) -> None:
    """Line 10 for each of `rows`, from the grid alone: at least as many as its ball covers."""
    near, far = np.empty(len(leaves.rows), np.int16), np.empty(len(leaves.rows), np.int16)
    sums = np.empty(LEAF, np.int16)
    for row in rows:
        if row < 0:
            break
        maybe = bracket(limits[row], step, error, len(points[row]), metric)[1]
        box_sums(points[row], leaves.low, leaves.high, metric, near, far)
        gains[row] = 0
        for leaf in range(len(near)):
            if far[leaf] <= maybe:
                gains[row] += leaves.live[leaf]
            elif near[leaf] <= maybe:
                if leaf_sums(points[row], leaves.points[leaf], leaves.gone[leaf], metric, sums) <= maybe:
                    gains[row] += count_within(sums, maybe)


@kernel
def _count(
    Z: Any, points: Any, tame: Any, step: Any, error: Any, metric: int, limits: Any, leaves: Leaves, row: int, near: Any, far: Any
) -> Any:
    """Line 10: the size of P, the live rows within the limit of `row`."""
    gain, sums = 0, np.empty(LEAF, np.int16)
    sure, maybe = bracket(limits[row], step, error, len(points[row]), metric)
    box_sums(points[row], leaves.low, leaves.high, metric, near, far)
    for leaf in range(len(near)):
        if near[leaf] > maybe or leaves.live[leaf] == 0:
            continue
        certain = sure if tame[row] and leaves.tame[leaf] else np.int16(-1)
        if far[leaf] <= certain:
            gain += leaves.live[leaf]
        elif leaf_sums(points[row], leaves.points[leaf], leaves.gone[leaf], metric, sums) <= maybe:
            inside = count_within(sums, certain)
            gain += inside
            if count_within(sums, maybe) > inside:
                for at in range(LEAF):
                    if certain < sums[at] <= maybe:
                        gain += exact_sum(Z[row], Z[leaves.rows[leaf, at]], metric) <= limits[row]
    return gain


@kernel
def _take(
    Z: Any, points: Any, tame: Any, step: Any, error: Any, metric: int, limits: Any, leaves: Leaves, row: int, near: Any,
    owner: Any, ball: int,
) -> Any:
    """Line 18: give the live rows within the limit of `row` to `ball`; return how many."""
    gain, sums = 0, np.empty(LEAF, np.int16)
    maybe = bracket(limits[row], step, error, len(points[row]), metric)[1]
    for leaf in range(len(near)):
        if near[leaf] > maybe or leaves.live[leaf] == 0:
            continue
        if leaf_sums(points[row], leaves.points[leaf], leaves.gone[leaf], metric, sums) > maybe:
            continue
        for at in range(LEAF):
            if sums[at] <= maybe and exact_sum(Z[row], Z[leaves.rows[leaf, at]], metric) <= limits[row]:
                owner[leaves.rows[leaf, at]] = ball
                leaves.gone[leaf, at] = GONE
                leaves.live[leaf] -= 1
                gain += 1
    return gain


@kernel
def _sift(heap: Any, size: int) -> None:
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
def _advance(
    Z: Any, points: Any, tame: Any, step: Any, error: Any, metric: int, limits: Any, leaves: Leaves,
    all_compete: bool, heap: Any, size: int, owner: Any, centers: Any, balls: int,
) -> Any:
    """Lines 6-19 until half of the leaves' rows are covered."""
    near, far = np.empty(len(leaves.rows), np.int16), np.empty(len(leaves.rows), np.int16)
    total, left = len(Z), leaves.live.sum()
    goal = left // 2
    while left > goal:
        row = heap[0] % total
        gain = 0
        if all_compete or owner[row] < 0:  # line 8
            gain = _count(Z, points, tame, step, error, metric, limits, leaves, row, near, far)  # lines 9-10
        heap[0] = (total - gain) * total + row
        if gain == 0:
            size -= 1
            heap[0] = heap[size]
        elif (size < 2 or heap[0] < heap[1]) and (size < 3 or heap[0] < heap[2]):  # line 11
            left -= _take(Z, points, tame, step, error, metric, limits, leaves, row, near, owner, balls)
            centers[balls] = row  # line 17
            balls += 1
            continue
        _sift(heap, size)
    return size, balls, left
