"""Algorithm 1 lines 6-19 for one class: the lazy greedy cover.

    Z, reach of one class  ->  greedy_cover_fast  ->  centers, owner

A ball's gain can only shrink as rows get covered, so a gain counted earlier is an upper bound. The heap holds
one bound per row. The gain of the top row is counted again, and the row wins if no other bound exceeds it. Where the
rows of small balls are listed (`pairs`), they are counted again from their lists.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.groups import Groups
from onbmacf._balls.kernels.grid import Grid, bracket, to_grid
from onbmacf._balls.kernels.leaves import (
    GONE,
    LEAF,
    Leaves,
    box_gaps,
    box_sums,
    build_leaves,
    count_within,
    leaf_sums,
    rows_to_box,
)
from onbmacf._balls.kernels.pairs import HIT, MANY_LEAVES, REACHED, gains_by_pairs, probes_of, share_reached
from onbmacf._balls.kernels.sums import exact_sum, to_limits
from onbmacf._base.executor import run_all, shares
from onbmacf._base.jit import kernel, map_chunks, part

CHUNK = 4  # leaves per task
TURNS = 2000  # steps of the heap per call, so that Ctrl-C is noticed between calls


class Lists(NamedTuple):
    """The rows of small balls, and where rows are. Without lists, None: the code for them is then not compiled."""

    members: NDArray[np.int32]  # (rows, MEMBERS): -1 behind the last, and first where a ball is not listed
    places: NDArray[np.int64]  # per row that was uncovered when the leaves were built: its place among all of theirs


def greedy_cover_fast(
    Z: NDArray[np.float64],
    reach: NDArray[np.float64],
    metric: str = "manhattan",
    competitors: str = "uncovered",
    threads: int | None = None,
    client: Any = None,
    groups: Groups | None = None,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Cover the rows of one class; return the centers in the order chosen, and per row its first ball.

    With a Dask client, its workers compute the bounds; balls are then chosen one by one in this process.
    """
    grid, limits, all_compete = to_grid(Z, metric, groups), to_limits(reach, metric), competitors == "all"
    leaves = build_leaves(grid, np.arange(len(Z)))
    gains, members = _first_gains(grid, limits, leaves, threads, client)
    heap, lists = np.sort(_keys(gains)), _lists(members, leaves)
    owner, centers = np.full(len(Z), -1), np.empty(len(Z), np.intp)
    size, balls, left, goal = len(Z), 0, len(Z), len(Z) // 2
    while left > 0:
        boxes, sums = np.empty((2, len(leaves.rows)), np.int16), np.empty(LEAF, np.int16)
        size, balls, left = _advance(
            grid, limits, leaves, lists, all_compete, heap, size, owner, centers, balls, left, goal, boxes, sums
        )
        if 0 < left <= goal:
            leaves, goal = build_leaves(grid, np.flatnonzero(owner < 0)), left // 2
            lists = _lists(members, leaves)
    return centers[:balls].copy(), owner


def _keys(gains: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one number per row, ordered by largest gain first, then by lowest row."""
    return (len(gains) - gains) * len(gains) + np.arange(len(gains))


def _lists(members: NDArray[np.int32] | None, leaves: Leaves) -> Lists | None:
    """Return the lists with the places that rows have in these leaves."""
    if members is None:
        return None
    places, filled = np.full(len(members), -1), leaves.rows >= 0
    places[leaves.rows[filled]] = np.flatnonzero(filled)
    return Lists(members, places)


def _first_gains(
    grid: Grid, limits: NDArray[np.float64], leaves: Leaves, threads: int | None, client: Any
) -> tuple[NDArray[np.int64], NDArray[np.int32] | None]:
    """Return an upper bound on the gain of each row's ball, and the rows of small balls, if they are listed."""
    if client is None and _few_in_reach_of_most(grid, limits, leaves):
        return gains_by_pairs(grid, limits, leaves, threads)
    return _bound_gains(grid, limits, leaves, threads, client), None


def _few_in_reach_of_most(grid: Grid, limits: NDArray[np.float64], leaves: Leaves) -> bool:
    """Say whether some balls reach most boxes, and yet hold rows of few leaves."""
    if len(leaves.rows) < MANY_LEAVES or share_reached(grid, leaves, limits) <= REACHED:
        return False
    gains = np.concatenate([_bound_of(grid, limits, leaves, slice(leaf, leaf + 1)) for leaf in probes_of(leaves)])
    return float(np.minimum(gains / len(leaves.rows), 1.0).mean()) < HIT


def _bound_gains(
    grid: Grid, limits: NDArray[np.float64], leaves: Leaves, threads: int | None, client: Any = None
) -> NDArray[np.int64]:
    """Return an upper bound on the gain of each row's ball."""
    gains = np.zeros(len(limits), np.int64)

    def work(start: int, stop: int) -> None:
        _bound(grid, limits, leaves, start, stop, gains)

    if client is None:
        map_chunks(work, len(leaves.rows), CHUNK, threads)
    else:
        spans = shares(len(leaves.rows), client, least=CHUNK)
        parts = run_all(partial(_bound_of, grid, limits, leaves), spans, describe="ball sizes", client=client)
        gains[leaves.rows[leaves.rows >= 0]] = np.concatenate(parts)
    return gains


def _bound_of(grid: Grid, limits: NDArray[np.float64], leaves: Leaves, span: slice) -> NDArray[np.int64]:
    """Return the bound of each row of some leaves, leaf by leaf."""
    gains, rows = np.zeros(len(limits), np.int64), leaves.rows[span]
    _bound(grid, limits, leaves, span.start, span.stop, gains)
    return gains[rows[rows >= 0]]


def _bound(grid: Grid, limits: Any, leaves: Leaves, start: int, stop: int, gains: Any) -> None:
    """Line 10 for the rows of leaves `start` to `stop`, from the grid alone: at least as many as the ball covers."""
    lines = np.empty((4, LEAF), np.int16)
    for own in range(start, stop):
        _bound_of_leaf(grid, limits, leaves, own, box_gaps(leaves, own, grid.ruler.metric), lines, gains)


@kernel
def _bound_of_leaf(grid: Grid, limits: Any, leaves: Leaves, own: int, between: Any, lines: Any, gains: Any) -> None:
    """Line 10 for the rows of one leaf; `between` says how near its box is to every box, `lines` is room to work in."""
    near, far, sums, maybe = lines[0], lines[1], lines[2], lines[3]
    metric, count, widest = grid.ruler.metric, leaves.live[own], np.int16(-1)
    for at in range(count):
        maybe[at] = bracket(limits[leaves.rows[own, at]], grid.ruler)[1]
        widest = max(widest, maybe[at])
    for leaf in range(len(between)):
        if between[leaf] > widest:
            continue
        rows_to_box(leaves, own, leaf, metric, near, far)
        for at in range(count):
            row = leaves.rows[own, at]
            if far[at] <= maybe[at]:
                gains[row] += leaves.live[leaf]
            elif near[at] <= maybe[at] and leaf_sums(grid.points[row], leaves, leaf, metric, sums) <= maybe[at]:
                gains[row] += count_within(sums, maybe[at])


@part
def _listed_gain(grid: Grid, limit: Any, leaves: Leaves, lists: Lists, row: int, owner: Any, ball: int) -> Any:
    """Return what `_gain` returns, from the list of rows that may lie in the ball."""
    gain, Z, metric = 0, grid.Z, grid.ruler.metric
    for other in lists.members[row]:
        if other < 0 or owner[other] >= 0:
            continue
        if exact_sum(Z[row], Z[other], metric, grid.heights, grid.costs) <= limit:
            gain += 1
            if ball >= 0:
                leaf, at = lists.places[other] // LEAF, lists.places[other] % LEAF
                owner[other], leaves.gone[leaf, at] = ball, GONE
                leaves.live[leaf] -= 1
    return gain


@part
def _gain(
    grid: Grid, limit: Any, leaves: Leaves, lists: Any, row: int, near: Any, far: Any, sums: Any, owner: Any, ball: int
) -> Any:
    """Line 10: the size of P, the uncovered rows within the limit of `row`; lines 17-18: give them to `ball`, if any.

    `near` and `far` are written when counting, and read again when giving, which is one function: it is compiled once.
    """
    gain, Z, metric, counts = 0, grid.Z, grid.ruler.metric, ball < 0
    if lists is not None and lists.members[row, 0] >= 0:
        return _listed_gain(grid, limit, leaves, lists, row, owner, ball)
    if counts:
        box_sums(grid.points[row], leaves, metric, near, far)
    sure, maybe = bracket(limit, grid.ruler)
    for leaf in range(len(near)):
        if near[leaf] > maybe or leaves.live[leaf] == 0:
            continue
        certain = sure if counts and grid.tame[row] and leaves.tame[leaf] else np.int16(-1)
        if far[leaf] <= certain:
            gain += leaves.live[leaf]
        elif leaf_sums(grid.points[row], leaves, leaf, metric, sums) <= maybe:
            inside = count_within(sums, certain)
            gain += inside
            if inside == count_within(sums, maybe):
                continue
            for at in range(LEAF):
                other = leaves.rows[leaf, at]
                if not certain < sums[at] <= maybe:
                    continue
                if exact_sum(Z[row], Z[other], metric, grid.heights, grid.costs) <= limit:
                    gain += 1
                    if not counts:
                        owner[other], leaves.gone[leaf, at] = ball, GONE
                        leaves.live[leaf] -= 1
    return gain


@part
def _sift(heap: Any, size: int) -> None:
    """Move the top of the heap down to its place."""
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
    grid: Grid,
    limits: Any,
    leaves: Leaves,
    lists: Any,
    all_compete: bool,
    heap: Any,
    size: int,
    owner: Any,
    centers: Any,
    balls: int,
    left: int,
    goal: int,
    boxes: Any,
    sums: Any,
) -> Any:
    """Lines 6-19 for TURNS steps of the heap, or until at most `goal` rows are uncovered.

    Line 11 requires strictly more, so a tie goes to the lower row number, which has the lower key.
    """
    near, far, total = boxes[0], boxes[1], len(limits)
    nobody: Any = np.int64(-1)  # a plain -1 would be a type of its own, and `_gain` compiled twice
    for _ in range(TURNS):
        if left <= goal:  # line 6
            break
        row, gain = heap[0] % total, 0
        if all_compete or owner[row] < 0:  # line 8
            gain = _gain(grid, limits[row], leaves, lists, row, near, far, sums, owner, nobody)  # lines 9-10
        heap[0] = (total - gain) * total + row
        if gain == 0:  # covered, or nothing left to gain
            size -= 1
            heap[0] = heap[size]
        elif (size < 2 or heap[0] < heap[1]) and (size < 3 or heap[0] < heap[2]):  # line 11
            if _gain(grid, limits[row], leaves, lists, row, near, far, sums, owner, balls) != gain:
                raise RuntimeError("A ball covered other rows than were counted: the bracket of the grid is wrong.")
            centers[balls], left = row, left - gain
            balls += 1
        _sift(heap, size)
    return size, balls, left
