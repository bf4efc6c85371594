"""Algorithm 1 lines 6-19 for one class: the lazy greedy cover.

    Z, reach of one class  ->  greedy_cover_fast  ->  centers, owner
    centers, radii of one class, Z  ->  first_balls_fast  ->  owner of further rows

A ball's gain can only shrink as rows get covered, so a gain counted earlier is an upper bound. The heap holds
one bound per row. The gain of the top row is counted again, and the row wins if no other bound exceeds it. Where the
rows of small balls are listed (`pairs`), they are counted again from their lists.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.groups import Groups
from onbmacf._balls.kernels.compiled import loops
from onbmacf._balls.kernels.grid import Grid, to_grid
from onbmacf._balls.kernels.leaves import Leaves, box_gaps, build_leaves
from onbmacf._balls.kernels.pairs import HIT, MANY_LEAVES, REACHED, gains_by_pairs, probes_of, share_reached
from onbmacf._balls.kernels.sums import to_limits
from onbmacf._base.executor import map_chunks, run_all, shares

CHUNK = 4  # leaves per task


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
    owner, centers = np.full(len(Z), -1, np.intp), np.empty(len(Z), np.intp)
    greedy = loops.Greedy(limits, members, all_compete, np.sort(_keys(gains)), owner, centers)
    left = goal = len(Z)
    while left > 0:
        if left <= goal:  # half of the rows that the leaves were built of are covered
            leaves = build_leaves(grid, np.flatnonzero(owner < 0)) if left < len(Z) else leaves
            views, places, goal = loops.Views(grid, leaves), _places(len(Z), leaves), left // 2
        balls, left = greedy.advance(views, leaves, places, goal)
    return centers[:balls].copy(), owner


def first_balls_fast(
    centers: NDArray[np.float64],
    radii: NDArray[np.float64],
    Z: NDArray[np.float64],
    metric: str,
    groups: Groups | None = None,
) -> NDArray[np.intp]:
    """Return, per row of one class, the first ball that covers it; -1 where none does."""
    n_balls = len(centers)
    grid = to_grid(np.concatenate([centers, Z]), metric, groups)
    limits, owner = np.zeros(len(grid.Z)), np.full(len(grid.Z), -1, np.intp)
    limits[:n_balls] = to_limits(radii, metric)
    leaves = build_leaves(grid, np.arange(n_balls, len(grid.Z)))
    none = np.empty((len(grid.Z), 0), np.int32), False, np.empty(0, np.int64)
    loops.Greedy(limits, *none, owner, np.arange(n_balls)).give(loops.Views(grid, leaves), leaves)
    return owner[n_balls:]


def _keys(gains: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return one number per row, ordered by largest gain first, then by lowest row."""
    rows = np.arange(len(gains), dtype=np.int64)
    return (len(gains) - gains) * np.int64(len(gains)) + rows


def _places(n_rows: int, leaves: Leaves) -> NDArray[np.intp]:
    """Return per row its place in the leaves, leaf after leaf."""
    places, filled = np.full(n_rows, -1, np.intp), leaves.rows >= 0
    places[leaves.rows[filled]] = np.flatnonzero(filled)
    return places


def _first_gains(
    grid: Grid, limits: NDArray[np.float64], leaves: Leaves, threads: int | None, client: Any
) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
    """Return an upper bound on the gain of each row's ball, and the rows of small balls; no columns: none is listed."""
    if client is None and _few_in_reach_of_most(grid, limits, leaves):
        return gains_by_pairs(grid, limits, leaves, threads)
    return _bound_gains(grid, limits, leaves, threads, client), np.empty((len(limits), 0), np.int32)


def _few_in_reach_of_most(grid: Grid, limits: NDArray[np.float64], leaves: Leaves) -> bool:
    """Say whether some balls reach most boxes, and yet hold rows of few leaves."""
    if len(leaves.rows) < MANY_LEAVES or share_reached(grid, leaves, limits) <= REACHED:
        return False
    gains = np.concatenate([_bound_of(grid, limits, leaves, slice(leaf, leaf + 1)) for leaf in probes_of(leaves)])
    return float(np.minimum(gains / len(leaves.rows), 1.0).mean()) < HIT


def _bound_gains(
    grid: Grid, limits: NDArray[np.float64], leaves: Leaves, threads: int | None, client: Any = None
) -> NDArray[np.intp]:
    """Return an upper bound on the gain of each row's ball."""
    gains = np.zeros(len(limits), np.intp)

    def work(start: int, stop: int) -> None:
        _bound(grid, limits, leaves, start, stop, gains)

    if client is None:
        map_chunks(work, len(leaves.rows), CHUNK, threads)
    else:
        spans = shares(len(leaves.rows), client, least=CHUNK)
        parts = run_all(partial(_bound_of, grid, limits, leaves), spans, describe="ball sizes", client=client)
        gains[leaves.rows[leaves.rows >= 0]] = np.concatenate(parts)
    return gains


def _bound_of(grid: Grid, limits: NDArray[np.float64], leaves: Leaves, span: slice) -> NDArray[np.intp]:
    """Return the bound of each row of some leaves, leaf by leaf."""
    gains, rows = np.zeros(len(limits), np.intp), leaves.rows[span]
    _bound(grid, limits, leaves, span.start, span.stop, gains)
    return gains[rows[rows >= 0]]


def _bound(grid: Grid, limits: Any, leaves: Leaves, start: int, stop: int, gains: Any) -> None:
    """Line 10 for the rows of leaves `start` to `stop`, from the grid alone: at least as many as the ball covers."""
    views = loops.Views(grid, leaves)
    for own in range(start, stop):
        loops.bound_of_leaf(views, own, box_gaps(leaves, own, grid.ruler.metric), limits, gains)
