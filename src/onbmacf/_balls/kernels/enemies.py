"""Algorithm 1 line 9 for every row: the distance to the nearest row of another label.

    Z, labels  ->  nearest_enemy_fast  ->  reach
    points, Z, labels  ->  enemies_among_fast, reach_of_fast  ->  reach of each point

The result holds distances only, no row numbers, so it does not matter which of two equally near enemies comes first.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.groups import Groups
from onbmacf._balls.kernels.compiled import loops
from onbmacf._balls.kernels.grid import Grid, code_of, to_grid
from onbmacf._balls.kernels.leaves import GONE, Leaves, box_gaps, build_leaves, join_leaves
from onbmacf._balls.kernels.pairs import MANY_LEAVES, REACHED, enemies_by_pairs, probes_of, share_reached
from onbmacf._balls.kernels.sums import to_distances, to_sums
from onbmacf._base.executor import map_chunks, run_all, shares
from onbmacf._base.missing import has_missing

CHUNK = 4  # leaves per task


def nearest_enemy_fast(
    Z: NDArray[np.float64],
    labels: NDArray[np.intp],
    metric: str = "manhattan",
    threads: int | None = None,
    client: Any = None,
    groups: Groups | None = None,
) -> NDArray[np.float64]:
    """Return, per row, the distance to the nearest row of another label (inf if there is none).

    With a Dask client, the leaves are divided among its workers, and each worker gets all rows to compare with.
    """
    grid = to_grid(Z, metric, groups)
    sizes = np.unique(labels, return_counts=True)[1]
    classes = np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1])
    forest = [build_leaves(grid, rows) for rows in classes]
    ends = np.cumsum([len(leaves.rows) for leaves in forest])
    leaves, best = join_leaves(forest), np.full(len(Z), np.inf)
    if client is None and _reach_most_boxes(grid, leaves, ends):
        return to_distances(enemies_by_pairs(grid, leaves, ends, threads), metric)

    def work(start: int, stop: int) -> None:
        _nearest(grid, leaves, ends, start, stop, best)

    if client is None:
        map_chunks(work, len(leaves.rows), CHUNK, threads)
    else:
        spans = shares(len(leaves.rows), client, least=CHUNK)
        parts = run_all(partial(_nearest_of, grid, leaves, ends), spans, describe="nearest enemies", client=client)
        best[leaves.rows[leaves.rows >= 0]] = np.concatenate(parts)
    return to_distances(best, metric)


def _reach_most_boxes(grid: Grid, leaves: Leaves, ends: Any) -> bool:
    """Say whether the nearest enemies of some rows are farther than most boxes."""
    if len(leaves.rows) < MANY_LEAVES:
        return False
    best = np.full(len(grid.Z), np.inf)
    for leaf in probes_of(leaves):
        _nearest(grid, leaves, ends, leaf, leaf + 1, best)
    return share_reached(grid, leaves, best) > REACHED


def _nearest_of(grid: Grid, leaves: Leaves, ends: Any, span: slice) -> NDArray[np.float64]:
    """Return the smallest sum of each row of some leaves, leaf by leaf."""
    best, rows = np.full(len(grid.Z), np.inf), leaves.rows[span]
    _nearest(grid, leaves, ends, span.start, span.stop, best)
    return best[rows[rows >= 0]]


def _nearest(grid: Grid, leaves: Leaves, ends: Any, start: int, stop: int, best: Any) -> None:
    """Line 9 for the rows of leaves `start` to `stop`. Class k has the leaves `ends[k - 1]` to `ends[k]`."""
    views = loops.Views(grid, leaves)
    for own in range(start, stop):
        label = np.searchsorted(ends, own, side="right")
        near = box_gaps(leaves, own, grid.ruler.metric)
        near[ends[label - 1] if label > 0 else 0 : ends[label]] = GONE
        loops.nearest_of_leaf(views, own, near, np.argsort(near, kind="stable"), best)


def reach_of_fast(
    z: NDArray[np.float64], codes: NDArray[np.intp], Z: NDArray[np.float64], labels: NDArray[np.intp], metric: str
) -> NDArray[np.float64]:
    """Return, per new point, the distance to the nearest row with another label than its own."""
    best, lacks = np.full(len(z), np.inf), has_missing(z) or has_missing(Z)
    codes, labels = codes.astype(np.intp, copy=False), labels.astype(np.intp, copy=False)
    z, Z = np.ascontiguousarray(z), np.ascontiguousarray(Z)
    loops.nearest_other(z, codes, Z, labels, code_of(metric), lacks, best)
    return to_distances(best, metric)


def enemies_among_fast(
    points: NDArray[np.float64],
    codes: NDArray[np.intp],
    Z: NDArray[np.float64],
    labels: NDArray[np.intp],
    metric: str,
    threads: int | None = None,
    groups: Groups | None = None,
    known: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return, per point, the distance to the nearest row with another label than its own, or what is known if less.

    As `reach_of_fast`, for many points: rows and points lie in leaves.
    """
    grid, n_points = to_grid(np.concatenate([points, Z]), metric, groups), len(points)
    classes, own_classes = np.unique(labels), np.unique(codes)
    parts = [n_points + np.flatnonzero(labels == label) for label in classes]
    parts += [np.flatnonzero(codes == label) for label in own_classes]
    forest: list[Any] = [None] * len(parts)

    def build(start: int, stop: int) -> None:
        forest[start:stop] = [build_leaves(grid, rows) for rows in parts[start:stop]]

    map_chunks(build, len(parts), 1, threads)
    ends = np.cumsum([0, *(len(leaves.rows) for leaves in forest)])
    leaves, first, best = join_leaves(forest), int(ends[len(classes)]), np.full(len(grid.Z), np.inf)
    if known is not None:
        best[:n_points] = to_sums(known, metric)

    def work(start: int, stop: int) -> None:
        views = loops.Views(grid, leaves)
        for own in range(first + start, first + stop):
            label = own_classes[np.searchsorted(ends, own, side="right") - 1 - len(classes)]
            near = box_gaps(leaves, own, grid.ruler.metric)
            near[first:] = GONE
            for same in np.flatnonzero(classes == label):
                near[ends[same] : ends[same + 1]] = GONE
            loops.nearest_of_leaf(views, own, near, np.argsort(near, kind="stable"), best)

    map_chunks(work, int(ends[-1]) - first, CHUNK, threads)
    found = to_distances(best[:n_points], metric)
    return found if known is None else np.minimum(found, known)
