"""Rows grouped into leaves of neighbours, each in a box: boxes are skipped or counted as a whole, the rest is scanned.

    Grid, rows  ->  build_leaves  ->  Leaves

A leaf holds the grid points of up to 128 rows column by column, so that one instruction works on many rows.
Box tests are exact: integer gaps to the nearest (farthest) corner are never above (below) those to a row inside.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.kernels.grid import NUMBER, TOP, Grid
from onbmacf._balls.metrics import CHEBYSHEV, EUCLIDEAN

LEAF = 128  # rows in a leaf
TOGETHER = 16  # rows of a leaf whose sums are looked at together
GONE = TOP + 1  # start value of the coarse sums of covered rows, and of the empty places of the last leaf


class Leaves(NamedTuple):
    """Leaves as parallel arrays."""

    rows: NDArray[np.intp]  # (leaves, LEAF): row numbers, -1 in empty places
    points: NDArray[np.int16]  # (leaves, features, LEAF)
    gone: NDArray[np.int16]  # (leaves, LEAF): 0 or GONE
    live: NDArray[np.intp]  # per leaf: number of rows that are not gone
    tame: NDArray[np.bool_]  # per leaf: whether all its rows are tame
    low: NDArray[np.int16]  # (features, leaves): the box
    high: NDArray[np.int16]
    widths: NDArray[np.int16] | None = None  # see Grid
    costs: NDArray[np.int16] | None = None  # see Grid


def build_leaves(grid: Grid, rows: NDArray[np.intp]) -> Leaves:
    """Put the rows into leaves, halving the widest side of a box until its rows fit into one leaf."""
    order = kd_order(grid.points, rows)
    count = -(-len(order) // LEAF)
    places = np.full(count * LEAF, -1, np.intp)
    places[: len(order)] = order
    filled = np.where(places < 0, order[-1], places).reshape(count, LEAF)
    points = np.ascontiguousarray(grid.points[filled].transpose(0, 2, 1))
    gone = np.where(places < 0, GONE, 0).astype(np.int16).reshape(count, LEAF)
    return Leaves(
        rows=places.reshape(count, LEAF),
        points=points,
        gone=gone,
        live=(gone == 0).sum(axis=1, dtype=np.intp),
        tame=np.all(grid.tame[filled], axis=1),
        low=np.ascontiguousarray(points.min(axis=2).T),
        high=np.ascontiguousarray(points.max(axis=2).T),
        widths=grid.widths,
        costs=grid.costs,
    )


def kd_order(points: NDArray[np.int16], rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the rows reordered so that each run of LEAF rows is a leaf."""
    order, spans = rows.copy(), [(0, len(rows))]
    while spans:
        start, stop = spans.pop()
        leaves = -(-(stop - start) // LEAF)
        if leaves > 1:
            here = points[order[start:stop]]
            side = np.argmax(here.max(axis=0).astype(int) - here.min(axis=0))
            half = leaves // 2 * LEAF
            order[start:stop] = order[start:stop][np.argpartition(here[:, side], half)]
            spans += [(start, start + half), (start + half, stop)]
    return order


def join_leaves(forest: list[Leaves]) -> Leaves:
    """Return the leaves of several classes as one structure, class after class."""
    sides = {"low", "high"}  # leaves are their second axis
    joined = {
        name: np.concatenate([getattr(leaves, name) for leaves in forest], axis=1 if name in sides else 0)
        for name in Leaves._fields
        if name not in ("widths", "costs")
    }
    return Leaves(**joined, widths=forest[0].widths, costs=forest[0].costs)


def box_gaps(leaves: Leaves, own: int, metric: int) -> NDArray[np.int16]:
    """Return the coarse sums between the box of leaf `own` and every box: no two rows of theirs are nearer."""
    return gaps_to_boxes(leaves, leaves.low[:, own, np.newaxis], leaves.high[:, own, np.newaxis], metric)


def gaps_to_boxes(leaves: Leaves, low: NDArray[np.int16], high: NDArray[np.int16], metric: int) -> NDArray[np.int16]:
    """Return the coarse sums between one box, given by its sides (features, 1), and every box."""
    gaps = np.maximum(np.maximum(leaves.low - high, low - leaves.high), np.int16(0))
    if leaves.costs is not None:
        costs, lacks = leaves.costs[:, np.newaxis], (leaves.low < 0) | (low < 0)
        near = np.where(gaps > TOP, costs, np.where(lacks, np.minimum(gaps, costs), gaps))
        gaps = np.where(costs != NUMBER, near, gaps)
    if leaves.widths is not None:
        widths = leaves.widths[:, np.newaxis]
        gaps = np.where((widths != NUMBER) & (gaps > 0), widths, gaps)
    if metric == CHEBYSHEV:
        return gaps.max(axis=0)
    if metric == EUCLIDEAN:
        gaps = ((gaps.astype(np.int32) ** 2) >> 16).astype(np.int16)
    return gaps.sum(axis=0, dtype=np.int16)
