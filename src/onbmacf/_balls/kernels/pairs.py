"""Every row with every row, each pair once: Algorithm 1 lines 9 and 10 where boxes exclude next to nothing.

    Grid, Leaves  ->  enemies_by_pairs  ->  the smallest sum to a row of another class, per row
    Grid, Leaves, limits  ->  gains_by_pairs  ->  a bound on the gain of each row's ball, and the rows of small balls

With 20 uniform columns no box can be left out, so a coarse sum serves both of its rows: half of the work. Leaves
are taken in groups, and groups in rounds of pairs that share no group: tasks of one round never write to the same row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.kernels.compact import TOP
from onbmacf._balls.kernels.grid import Grid, Ruler, bracket, most_of
from onbmacf._balls.kernels.leaves import LEAF, Leaves, gaps_to_boxes, leaf_sums
from onbmacf._balls.kernels.sums import exact_sum
from onbmacf._base.jit import inlined, kernel, map_chunks, part

GROUP = 32  # leaves: two groups of 20 columns stay near the processor
MANY_LEAVES = 512  # from which on it is worth finding out whether boxes exclude anything
PROBES = 8  # leaves that are looked at to find out, and rows of each
REACHED = 0.7  # share of the boxes within reach of a row from which on pairs are faster
HIT = 0.1  # share of the leaves that may hold a row of a ball: counting one by one is slow
MEMBERS = 32  # rows of a ball that are listed


def probes_of(leaves: Leaves) -> list[int]:
    """Return some leaves, spread over all."""
    return np.unique(np.linspace(0, len(leaves.rows) - 1, PROBES).astype(int)).tolist()


def share_reached(grid: Grid, leaves: Leaves, sums: NDArray[np.float64]) -> float:
    """Return the share of all boxes that rows of the probed leaves cannot leave out; `sums` has one entry per row."""
    rows = np.concatenate([leaves.rows[leaf, :: LEAF // PROBES] for leaf in probes_of(leaves)])
    rows = rows[rows >= 0]
    points, most = grid.points[rows][:, :, np.newaxis], most_of(sums[rows], grid.ruler)
    gaps = [gaps_to_boxes(leaves, point, point, grid.ruler.metric) for point in points]
    return float(np.mean([gap <= limit for gap, limit in zip(gaps, most, strict=True)]))


def each_pair(work: Callable[[int, int], None], count: int, threads: int | None) -> None:
    """Call `work(left, right)` for all left <= right < count; calls that run at the same time share no number.

    In round r, number i meets (r - i) modulo count and no other.
    """
    for turn in range(count):
        pairs = [(left, (turn - left) % count) for left in range(count) if left <= (turn - left) % count]

        def work_on(start: int, stop: int, pairs: list[tuple[int, int]] = pairs) -> None:
            for left, right in pairs[start:stop]:
                work(left, right)

        map_chunks(work_on, len(pairs), 1, threads)


def enemies_by_pairs(
    grid: Grid, leaves: Leaves, ends: NDArray[np.int64], threads: int | None = None
) -> NDArray[np.float64]:
    """Return each row's smallest sum to a row of another class. Class k has the leaves `ends[k - 1]` to `ends[k]`."""
    best, maybe = np.full(leaves.rows.shape, np.inf), np.full(leaves.rows.shape, TOP, np.int16)
    cuts = np.unique(np.concatenate([np.arange(0, ends[-1], GROUP), ends]))
    label = np.searchsorted(ends, cuts[:-1], side="right")

    def work(left: int, right: int) -> None:
        if label[left] != label[right]:
            spans = cuts[left], cuts[left + 1], cuts[right], cuts[right + 1]
            _compare_enemies(grid, leaves, *spans, best, maybe, np.empty(LEAF, np.int16))

    each_pair(work, len(cuts) - 1, threads)
    found = np.empty(len(grid.Z))
    found[leaves.rows[leaves.rows >= 0]] = best[leaves.rows >= 0]
    return found


@kernel
def _compare_enemies(
    grid: Grid, leaves: Leaves, start: int, stop: int, first: int, last: int, best: Any, maybe: Any, sums: Any
) -> None:
    """Line 9 between the rows of two groups of leaves of different classes; `best` and `maybe` are by place."""
    for own in range(start, stop):
        for leaf in range(first, last):
            for at in range(leaves.live[own]):
                leaf_sums(grid.points[leaves.rows[own, at]], leaves, leaf, grid.ruler.metric, sums)
                if any_within(sums, maybe[own, at], maybe[leaf]):
                    _improve(grid, leaves, own, at, leaf, best, maybe, sums)


@inlined
def any_within(sums: Any, most: Any, each: Any) -> Any:
    """Say whether a coarse sum of a leaf is within `most`, or within the entry of `each` in its own place."""
    least = np.int16(1)
    for at in range(LEAF):
        least = min(least, np.int16(sums[at] - max(most, each[at])))
    return least <= 0


@part
def _improve(grid: Grid, leaves: Leaves, own: int, at: int, leaf: int, best: Any, maybe: Any, sums: Any) -> None:
    """Lower the smallest sums of one row and of the rows of one leaf."""
    row = leaves.rows[own, at]
    for there in range(LEAF):
        if sums[there] <= max(maybe[own, at], maybe[leaf, there]):
            other = leaves.rows[leaf, there]
            total = exact_sum(grid.Z[row], grid.Z[other], grid.ruler.metric, grid.heights, grid.costs)
            _lower(best, maybe, own, at, total, grid.ruler)
            _lower(best, maybe, leaf, there, total, grid.ruler)


@inlined
def _lower(best: Any, maybe: Any, leaf: int, at: int, total: Any, ruler: Ruler) -> None:
    if total < best[leaf, at]:
        best[leaf, at], maybe[leaf, at] = total, bracket(total, ruler)[1]


def gains_by_pairs(
    grid: Grid, limits: NDArray[np.float64], leaves: Leaves, threads: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return a bound on each ball's gain, and the rows that may lie in it: -1 behind the last, and where too many."""
    gains, members = np.zeros(len(limits), np.int64), np.full((len(limits), MEMBERS), -1, np.int32)
    maybe = most_of(limits, grid.ruler)[leaves.rows]  # that of some row in empty places, whose sums are beyond it
    cuts = np.append(np.arange(0, len(leaves.rows), GROUP), len(leaves.rows))

    def work(left: int, right: int) -> None:
        spans = cuts[left], cuts[left + 1], cuts[right], cuts[right + 1]
        _count_members(grid, leaves, *spans, maybe, gains, members, np.empty(LEAF, np.int16))

    each_pair(work, len(cuts) - 1, threads)
    members[gains > MEMBERS] = -1
    return gains, members


@kernel
def _count_members(
    grid: Grid,
    leaves: Leaves,
    start: int,
    stop: int,
    first: int,
    last: int,
    maybe: Any,
    gains: Any,
    members: Any,
    sums: Any,
) -> None:
    """Line 10 between the rows of two groups of leaves, which may be the same one; `maybe` is by place."""
    for own in range(start, stop):
        for leaf in range(max(own, first), last):
            for at in range(leaves.live[own]):
                leaf_sums(grid.points[leaves.rows[own, at]], leaves, leaf, grid.ruler.metric, sums)
                if any_within(sums, maybe[own, at], maybe[leaf]):
                    _list(leaves, own, at, leaf, maybe, gains, members, sums)


@part
def _list(leaves: Leaves, own: int, at: int, leaf: int, maybe: Any, gains: Any, members: Any, sums: Any) -> None:
    """List the rows of one leaf in the ball of one row, and this row in their balls."""
    row = leaves.rows[own, at]
    for there in range(LEAF):
        other = leaves.rows[leaf, there]
        if sums[there] <= maybe[own, at]:
            _add(gains, members, row, other)
        if own != leaf and sums[there] <= maybe[leaf, there]:
            _add(gains, members, other, row)


@inlined
def _add(gains: Any, members: Any, row: int, other: int) -> None:
    if gains[row] < members.shape[1]:
        members[row, gains[row]] = other
    gains[row] += 1
