"""Every row with every row, each pair once: Algorithm 1 lines 9 and 10 where boxes exclude next to nothing.

    Grid, Leaves  ->  enemies_by_pairs  ->  the smallest sum to a row of another class, per row
    Grid, Leaves, limits  ->  gains_by_pairs  ->  a bound on the gain of each row's ball, and the rows of small balls

With 20 uniform columns no box can be left out, so a coarse sum serves both of its rows: half of the work. Leaves
are taken in groups, and groups in rounds of pairs that share no group: tasks of one round never write to the same row.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.kernels.compiled import loops
from onbmacf._balls.kernels.grid import TOP, Grid, most_of
from onbmacf._balls.kernels.leaves import LEAF, Leaves, gaps_to_boxes
from onbmacf._base.executor import map_chunks

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
    grid: Grid, leaves: Leaves, ends: NDArray[np.intp], threads: int | None = None
) -> NDArray[np.float64]:
    """Return each row's smallest sum to a row of another class. Class k has the leaves `ends[k - 1]` to `ends[k]`."""
    best, maybe = np.full(leaves.rows.shape, np.inf), np.full(leaves.rows.shape, TOP, np.int16)
    cuts = np.unique(np.concatenate([np.arange(0, ends[-1], GROUP), ends]))
    label = np.searchsorted(ends, cuts[:-1], side="right")

    def work(left: int, right: int) -> None:
        if label[left] != label[right]:
            spans = cuts[left], cuts[left + 1], cuts[right], cuts[right + 1]
            loops.compare_enemies(loops.Views(grid, leaves), *spans, best, maybe)

    each_pair(work, len(cuts) - 1, threads)
    found = np.empty(len(grid.Z))
    found[leaves.rows[leaves.rows >= 0]] = best[leaves.rows >= 0]
    return found


def gains_by_pairs(
    grid: Grid, limits: NDArray[np.float64], leaves: Leaves, threads: int | None = None
) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
    """Return a bound on each ball's gain, and the rows that may lie in it: -1 behind the last, and where too many."""
    gains, members = np.zeros(len(limits), np.intp), np.full((len(limits), MEMBERS), -1, np.int32)
    maybe = most_of(limits, grid.ruler)[leaves.rows]  # that of some row in empty places, whose sums are beyond it
    cuts = np.append(np.arange(0, len(leaves.rows), GROUP), len(leaves.rows))

    def work(left: int, right: int) -> None:
        spans = cuts[left], cuts[left + 1], cuts[right], cuts[right + 1]
        loops.count_members(loops.Views(grid, leaves), *spans, maybe, gains, members)

    each_pair(work, len(cuts) - 1, threads)
    members[gains > MEMBERS] = -1
    return gains, members
