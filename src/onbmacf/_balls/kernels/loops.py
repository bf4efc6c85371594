"""The loops over rows on the grid, compiled when the package is built.

    Grid, Leaves  ->  Views  ->  nearest_of_leaf, bound_of_leaf, Greedy, compare_enemies, count_members, nearest_rows
    new points, rows  ->  nearest_other        numbers  ->  to_unit, to_window  ->  points on the grid

One module, because the compiler works a function into another only within a module, and because it is compiled twice,
for any processor and for those with AVX2. Where a metric is an argument, it is a constant of the call: the compiler
makes one function per metric, and no inner loop asks for it. Sums over a leaf are kept in a local array: nothing else
can change them, so they are held in registers.

A missing value lies at LACKING on the grid, so far below all others that a gap beyond TOP is one to a missing value. A
box that holds both begins at LACKING: a row that is above the box may be nearer to a missing value than to its end.
"""

from __future__ import annotations

import numpy as np

try:
    import cython
except ImportError:  # the source runs as it is
    from onbmacf._base import plain_cython as cython

from onbmacf._balls.kernels.grid import UNIT as _UNIT
from onbmacf._base.missing import LEAST as _LEAST
from onbmacf._base.missing import MOST as _MOST
from onbmacf._base.missing import UNIT as _MISSING

if cython.compiled:
    from cython.cimports.libc.math import rint, sqrt
    from cython.cimports.onbmacf._balls.kernels.constants import (
        CHEBYSHEV,
        EUCLIDEAN,
        GONE,
        LACKING,
        LEAF,
        MANHATTAN,
        NUMBER,
        PROCESSOR_HAS_AVX2,
        TOGETHER,
        TOP,
    )
else:
    from math import sqrt

    from numpy import rint

    from onbmacf._balls.kernels.grid import LACKING, NUMBER, TOP
    from onbmacf._balls.kernels.leaves import GONE, LEAF, TOGETHER
    from onbmacf._balls.metrics import CHEBYSHEV, EUCLIDEAN, MANHATTAN

    PROCESSOR_HAS_AVX2 = False

COMPILED = cython.compiled
TURNS = 2000  # steps of the heap per call, so that Ctrl-C is noticed between calls

UNIT = cython.declare(cython.double, _UNIT)
INFINITE = cython.declare(cython.double, np.inf)
LEAST = cython.declare(cython.double, _LEAST)
MOST = cython.declare(cython.double, _MOST)
MISSING = cython.declare(cython.double, _MISSING)


def has_avx2() -> bool:
    """Say whether this processor runs the loops compiled for AVX2."""
    return bool(PROCESSOR_HAS_AVX2)


@cython.final
@cython.cclass
class Views:
    """The arrays of a grid and its leaves, and room to work in: one per thread."""

    Z: cython.const[cython.double][:, ::1]
    own: cython.const[cython.double][:, ::1]  # the rows that are compared with those of Z: the same, or new points
    points: cython.const[cython.short][:, ::1]  # of `own`, on the grid
    tame: cython.const[cython.uchar][::1]
    step: cython.double
    error: cython.double
    metric: cython.int
    columns: cython.Py_ssize_t
    is_plain: cython.bint  # no category, no missing value
    lacks: cython.bint  # a value is missing
    heights: cython.const[cython.double][::1]
    widths: cython.const[cython.short][::1]
    costs: cython.const[cython.short][::1]

    rows: cython.const[cython.Py_ssize_t][:, ::1]
    places: cython.const[cython.short][:, :, ::1]  # Leaves.points
    gone: cython.const[cython.short][:, ::1]
    live: cython.const[cython.Py_ssize_t][::1]
    whole: cython.const[cython.uchar][::1]  # Leaves.tame
    low: cython.const[cython.short][:, ::1]
    high: cython.const[cython.short][:, ::1]
    count: cython.Py_ssize_t  # of leaves

    near: cython.short[::1]  # per leaf: coarse sums to the nearest and the farthest corner of its box
    far: cython.short[::1]
    to_near: cython.short[::1]  # the same for the rows of one leaf and one box
    to_far: cython.short[::1]
    sums: cython.short[::1]  # coarse sums to the rows of one leaf
    maybe: cython.short[::1]  # brackets of the rows of one leaf

    def __init__(self, grid, leaves, own=None, points=None):
        self.Z = grid.Z
        self.own = grid.Z if own is None else own
        self.points = grid.points if points is None else points
        self.tame = grid.tame.view(np.uint8)
        self.step, self.error, self.metric = grid.ruler.step, grid.ruler.error, grid.ruler.metric
        self.columns = grid.points.shape[1]
        self.lacks = grid.costs is not None
        self.is_plain = grid.heights is None and grid.costs is None
        none = np.full(grid.points.shape[1], NUMBER, np.int16)
        self.heights = np.zeros(len(none)) if grid.heights is None else grid.heights
        self.widths = none if grid.widths is None else grid.widths
        self.costs = none if grid.costs is None else grid.costs
        self.rows, self.places, self.gone, self.live = leaves.rows, leaves.points, leaves.gone, leaves.live
        self.whole, self.low, self.high = leaves.tame.view(np.uint8), leaves.low, leaves.high
        self.count = len(leaves.rows)
        self.near, self.far = np.empty((2, len(leaves.rows)), np.int16)
        self.to_near, self.to_far, self.sums, self.maybe = np.empty((4, LEAF), np.int16)

    def room(self, name):
        """Return what a function has written."""
        rooms = {"near": self.near, "far": self.far, "to_near": self.to_near, "to_far": self.to_far, "sums": self.sums}
        return np.asarray(rooms[name])


# Coarse gaps and sums: 16-bit integers.


@cython.nogil
@cython.cfunc
@cython.exceptval(check=False)
def plus(total: cython.short, gap: cython.short, metric: cython.int) -> cython.short:
    """Return a coarse sum with one column's gap added; a square keeps its upper 16 bits."""
    if metric == MANHATTAN:
        return cython.cast(cython.short, total + gap)
    if metric == EUCLIDEAN:
        return cython.cast(cython.short, total + ((cython.cast(cython.int, gap) * cython.cast(cython.int, gap)) >> 16))
    return gap if gap > total else total


@cython.nogil
@cython.cfunc
@cython.exceptval(check=False)
def gap_of(here: cython.short, there: cython.short, metric: cython.int) -> cython.short:
    """Return the coarse gap of two numbers; with its sign, where it will be squared."""
    gap: cython.short = here - there
    if metric == EUCLIDEAN:
        return gap
    return cython.cast(cython.short, abs(cython.cast(cython.int, gap)))


@cython.nogil
@cython.cfunc
@cython.exceptval(check=False)
def nearest_gap(here: cython.short, low: cython.short, high: cython.short, cost: cython.short) -> cython.short:
    """Return the coarse gap in one column that no row of a box is below."""
    gap: cython.short = max(cython.cast(cython.short, low - here), cython.cast(cython.short, here - high))
    gap = gap if gap > 0 else 0
    if cost == NUMBER:
        return gap
    if gap > TOP:
        return cost
    return cost if low < 0 and cost < gap else gap


@cython.nogil
@cython.cfunc
@cython.exceptval(check=False)
def farthest_gap(here: cython.short, low: cython.short, high: cython.short, cost: cython.short) -> cython.short:
    """Return the coarse gap in one column that no row of a box is above."""
    above: cython.short = high - here
    below: cython.short = here - low
    gap: cython.short = above if above > below else below
    if cost == NUMBER or gap <= TOP:
        return gap
    if here < 0 or high < 0:
        return cost
    above = above if above > here else here  # the lowest value of the box is not known
    return above if above > cost else cost


@cython.nogil
@cython.cfunc
@cython.exceptval(check=False)
def _leaf_sums(views: Views, row: cython.Py_ssize_t, leaf: cython.Py_ssize_t, metric: cython.int) -> cython.short:
    cython.declare(
        at=cython.Py_ssize_t,
        column=cython.Py_ssize_t,
        here=cython.short,
        gap=cython.short,
        width=cython.short,
        cost=cython.short,
    )
    least: cython.short = GONE
    sums = cython.declare(cython.short[128])
    for at in range(LEAF):
        sums[at] = views.gone[leaf, at]
    for column in range(views.columns):
        here, width, cost = views.points[row, column], views.widths[column], views.costs[column]
        if width != NUMBER:
            for at in range(LEAF):
                gap = width if here != views.places[leaf, column, at] else 0
                sums[at] = plus(sums[at], gap, metric)
        elif cost != NUMBER:
            for at in range(LEAF):
                gap = gap_of(here, views.places[leaf, column, at], MANHATTAN)
                sums[at] = plus(sums[at], cost if gap > TOP else gap, metric)
        else:
            for at in range(LEAF):
                sums[at] = plus(sums[at], gap_of(here, views.places[leaf, column, at], metric), metric)
    for at in range(LEAF):
        least = sums[at] if sums[at] < least else least
    for at in range(LEAF):
        views.sums[at] = sums[at]
    return least


@cython.nogil
@cython.ccall
@cython.exceptval(check=False)
def leaf_sums(views: Views, row: cython.Py_ssize_t, leaf: cython.Py_ssize_t) -> cython.short:
    """Write the coarse sums from a row to the rows of one leaf; return the smallest, or GONE if that is beyond."""
    if views.metric == MANHATTAN:
        return _leaf_sums(views, row, leaf, MANHATTAN)
    if views.metric == EUCLIDEAN:
        return _leaf_sums(views, row, leaf, EUCLIDEAN)
    return _leaf_sums(views, row, leaf, CHEBYSHEV)


@cython.nogil
@cython.cfunc
@cython.exceptval(check=False)
def _box_sums(views: Views, row: cython.Py_ssize_t, metric: cython.int, has_far: cython.bint) -> cython.void:
    cython.declare(
        leaf=cython.Py_ssize_t,
        column=cython.Py_ssize_t,
        here=cython.short,
        width=cython.short,
        cost=cython.short,
        gap=cython.short,
    )
    for leaf in range(views.count):
        views.near[leaf] = views.far[leaf] = 0
    for column in range(views.columns):
        here, width, cost = views.points[row, column], views.widths[column], views.costs[column]
        if width != NUMBER:
            for leaf in range(views.count):
                gap = nearest_gap(here, views.low[column, leaf], views.high[column, leaf], NUMBER)
                views.near[leaf] = plus(views.near[leaf], width if gap > 0 else 0, metric)
                if has_far:
                    gap = farthest_gap(here, views.low[column, leaf], views.high[column, leaf], NUMBER)
                    views.far[leaf] = plus(views.far[leaf], width if gap > 0 else 0, metric)
        elif cost != NUMBER:
            for leaf in range(views.count):
                gap = nearest_gap(here, views.low[column, leaf], views.high[column, leaf], cost)
                views.near[leaf] = plus(views.near[leaf], gap, metric)
                if has_far:
                    gap = farthest_gap(here, views.low[column, leaf], views.high[column, leaf], cost)
                    views.far[leaf] = plus(views.far[leaf], gap, metric)
        else:
            for leaf in range(views.count):
                gap = nearest_gap(here, views.low[column, leaf], views.high[column, leaf], NUMBER)
                views.near[leaf] = plus(views.near[leaf], gap, metric)
                if has_far:
                    gap = farthest_gap(here, views.low[column, leaf], views.high[column, leaf], NUMBER)
                    views.far[leaf] = plus(views.far[leaf], gap, metric)


@cython.nogil
@cython.ccall
@cython.exceptval(check=False)
def box_sums(views: Views, row: cython.Py_ssize_t) -> cython.void:
    """Write the coarse sums from a row to the nearest and the farthest corner of every box."""
    if views.metric == MANHATTAN:
        _box_sums(views, row, MANHATTAN, True)
    elif views.metric == EUCLIDEAN:
        _box_sums(views, row, EUCLIDEAN, True)
    else:
        _box_sums(views, row, CHEBYSHEV, True)


@cython.nogil
@cython.cfunc
@cython.exceptval(check=False)
def near_sums(views: Views, row: cython.Py_ssize_t) -> cython.void:
    """Write the coarse sums to the nearest corner of every box, where neighbours are looked for: Euclidean ones."""
    _box_sums(views, row, EUCLIDEAN, False)


@cython.nogil
@cython.cfunc
@cython.exceptval(check=False)
def _rows_to_box(views: Views, own: cython.Py_ssize_t, leaf: cython.Py_ssize_t, metric: cython.int) -> cython.void:
    cython.declare(
        at=cython.Py_ssize_t,
        column=cython.Py_ssize_t,
        low=cython.short,
        high=cython.short,
        width=cython.short,
        cost=cython.short,
        gap=cython.short,
    )
    near = cython.declare(cython.short[128])
    far = cython.declare(cython.short[128])
    for at in range(LEAF):
        near[at] = far[at] = 0
    for column in range(views.columns):
        low, high = views.low[column, leaf], views.high[column, leaf]
        width, cost = views.widths[column], views.costs[column]
        if width != NUMBER:
            for at in range(LEAF):
                gap = nearest_gap(views.places[own, column, at], low, high, NUMBER)
                near[at] = plus(near[at], width if gap > 0 else 0, metric)
                gap = farthest_gap(views.places[own, column, at], low, high, NUMBER)
                far[at] = plus(far[at], width if gap > 0 else 0, metric)
        elif cost != NUMBER:
            for at in range(LEAF):
                near[at] = plus(near[at], nearest_gap(views.places[own, column, at], low, high, cost), metric)
                far[at] = plus(far[at], farthest_gap(views.places[own, column, at], low, high, cost), metric)
        else:
            for at in range(LEAF):
                near[at] = plus(near[at], nearest_gap(views.places[own, column, at], low, high, NUMBER), metric)
                far[at] = plus(far[at], farthest_gap(views.places[own, column, at], low, high, NUMBER), metric)
    for at in range(LEAF):
        views.to_near[at], views.to_far[at] = near[at], far[at]


@cython.nogil
@cython.ccall
@cython.exceptval(check=False)
def rows_to_box(views: Views, own: cython.Py_ssize_t, leaf: cython.Py_ssize_t) -> cython.void:
    """Write the coarse sums from every row of leaf `own` to the nearest and the farthest corner of the box of `leaf`.

    Rows of a leaf are compared with another leaf together, as long as that one is near the processor.
    """
    if views.metric == MANHATTAN:
        _rows_to_box(views, own, leaf, MANHATTAN)
    elif views.metric == EUCLIDEAN:
        _rows_to_box(views, own, leaf, EUCLIDEAN)
    else:
        _rows_to_box(views, own, leaf, CHEBYSHEV)


@cython.nogil
@cython.ccall
@cython.exceptval(check=False)
def count_within(views: Views, most: cython.short) -> cython.short:
    """Return how many coarse sums of a leaf are at most `most`."""
    at: cython.Py_ssize_t
    count: cython.short = 0
    for at in range(LEAF):
        count += 1 if views.sums[at] <= most else 0
    return count


@cython.nogil
@cython.ccall
@cython.exceptval(check=False)
def any_within(
    views: Views, most: cython.short, each: cython.const[cython.short][:, ::1], leaf: cython.Py_ssize_t
) -> cython.bint:
    """Say whether a coarse sum of a leaf is within `most`, or within the entry of `each` in its own place."""
    cython.declare(at=cython.Py_ssize_t, bound=cython.short)
    within: cython.short = 0
    for at in range(LEAF):
        bound = most if most > each[leaf, at] else each[leaf, at]
        within |= 1 if views.sums[at] <= bound else 0
    return within != 0


# Exact sums, and what of the grid belongs to them.


@cython.nogil
@cython.cfunc
@cython.exceptval(check=False)
def with_gap(total: cython.double, gap: cython.double, metric: cython.int) -> cython.double:
    """Return a sum with one column's gap added."""
    if metric == MANHATTAN:
        return total + gap
    if metric == EUCLIDEAN:
        return total + gap * gap
    return gap if gap > total else total


@cython.nogil
@cython.cfunc
@cython.exceptval(check=False)
def exact_gap(left: cython.double, right: cython.double, lacks: cython.bint) -> cython.double:
    """Return the gap of two numbers, or what it costs that one of them is missing."""
    gap: cython.double = abs(left - right)
    return gap / MISSING if lacks and LEAST <= gap <= MOST else gap


@cython.nogil
@cython.ccall
@cython.exceptval(check=False)
def exact_sum(views: Views, row: cython.Py_ssize_t, other: cython.Py_ssize_t) -> cython.double:
    """Return the sum between a row of `own` and one of Z, columns left to right, as in the plain algorithm."""
    cython.declare(column=cython.Py_ssize_t, height=cython.double, gap=cython.double)
    metric: cython.int = views.metric
    total: cython.double = 0.0
    if views.is_plain and metric == MANHATTAN:
        for column in range(views.columns):
            total += abs(views.own[row, column] - views.Z[other, column])
        return total
    if views.is_plain and metric == EUCLIDEAN:
        for column in range(views.columns):
            gap = views.own[row, column] - views.Z[other, column]
            total += gap * gap
        return total
    for column in range(views.columns):
        height = views.heights[column]
        if height > 0.0:
            if views.own[row, column] != views.Z[other, column]:
                total = with_gap(with_gap(total, height, metric), height, metric)
        else:
            total = with_gap(total, exact_gap(views.own[row, column], views.Z[other, column], views.lacks), metric)
    return total


@cython.nogil
@cython.ccall
@cython.exceptval(check=False)
def sure_of(views: Views, limit: cython.double) -> cython.short:
    """Return `sure` of a limit: see the top of grid.py."""
    inner: cython.double = (sqrt(limit) if views.metric == EUCLIDEAN else limit) / views.step - views.error
    if inner <= 0.0:
        return 0 if inner == 0.0 and views.metric != EUCLIDEAN else -1
    if views.metric == EUCLIDEAN:
        inner = inner * inner / UNIT - views.columns
        if inner < 0.0:
            return -1
    return cython.cast(cython.short, inner if inner < TOP else TOP)


@cython.nogil
@cython.ccall
@cython.exceptval(check=False)
def maybe_of(views: Views, limit: cython.double) -> cython.short:
    """Return `maybe` of a limit: see the top of grid.py."""
    outer: cython.double = (sqrt(limit) if views.metric == EUCLIDEAN else limit) / views.step + views.error
    if views.metric == EUCLIDEAN:
        outer = outer * outer / UNIT
    return cython.cast(cython.short, outer if outer < TOP else TOP)


# Line 9: the nearest enemies.


def nearest_of_leaf(
    views: Views,
    own: cython.Py_ssize_t,
    near: cython.const[cython.short][::1],
    order: cython.const[cython.Py_ssize_t][::1],
    best: cython.double[::1],
) -> None:
    """Line 9: the smallest sums between the rows of leaf `own` and the rows of other leaves, the nearest boxes first.

    `best` holds what is known of them so far. The smaller the sums so far, the fewer boxes can hold a smaller one.
    """
    cython.declare(turn=cython.Py_ssize_t, leaf=cython.Py_ssize_t, at=cython.Py_ssize_t, row=cython.Py_ssize_t)
    count: cython.Py_ssize_t = views.live[own]
    widest: cython.short = -1
    with cython.nogil:
        for at in range(count):
            views.maybe[at] = maybe_of(views, best[views.rows[own, at]])
            widest = max(widest, views.maybe[at])
        for turn in range(views.count):
            leaf = order[turn]
            if near[leaf] > widest:
                break
            rows_to_box(views, own, leaf)
            widest = -1
            for at in range(count):
                if views.to_near[at] <= views.maybe[at]:
                    row = views.rows[own, at]
                    if leaf_sums(views, row, leaf) <= views.maybe[at]:
                        best[row] = _nearest_in_leaf(views, leaf, row, best[row], views.maybe[at])
                        views.maybe[at] = maybe_of(views, best[row])
                widest = max(widest, views.maybe[at])


@cython.nogil
@cython.cfunc
@cython.exceptval(check=False)
def _nearest_in_leaf(
    views: Views, leaf: cython.Py_ssize_t, row: cython.Py_ssize_t, best: cython.double, maybe: cython.short
) -> cython.double:
    """Return the smallest sum between `row` and the rows of one leaf, or the best so far."""
    cython.declare(at=cython.Py_ssize_t, total=cython.double)
    for at in range(LEAF):
        if views.sums[at] <= maybe:
            total = exact_sum(views, row, views.rows[leaf, at])
            if total < best:
                best = total
                maybe = maybe_of(views, total)
    return best


# Lines 6-19: the greedy cover.


def bound_of_leaf(
    views: Views,
    own: cython.Py_ssize_t,
    between: cython.const[cython.short][::1],
    limits: cython.const[cython.double][::1],
    gains: cython.Py_ssize_t[::1],
) -> None:
    """Line 10 for the rows of one leaf, from the grid alone; `between` says how near its box is to every box."""
    cython.declare(leaf=cython.Py_ssize_t, at=cython.Py_ssize_t, row=cython.Py_ssize_t)
    count: cython.Py_ssize_t = views.live[own]
    widest: cython.short = -1
    with cython.nogil:
        for at in range(count):
            views.maybe[at] = maybe_of(views, limits[views.rows[own, at]])
            widest = max(widest, views.maybe[at])
        for leaf in range(views.count):
            if between[leaf] > widest:
                continue
            rows_to_box(views, own, leaf)
            for at in range(count):
                row = views.rows[own, at]
                if views.to_far[at] <= views.maybe[at]:
                    gains[row] += views.live[leaf]
                elif views.to_near[at] <= views.maybe[at] and leaf_sums(views, row, leaf) <= views.maybe[at]:
                    gains[row] += count_within(views, views.maybe[at])


@cython.final
@cython.cclass
class Greedy:
    """How far lines 6-19 have come for one class."""

    limits: cython.const[cython.double][::1]
    members: cython.const[cython.int][:, ::1]  # see gains_by_pairs; without columns where no ball is listed
    all_compete: cython.bint
    heap: cython.longlong[::1]
    owner: cython.Py_ssize_t[::1]
    centers: cython.Py_ssize_t[::1]
    size: cython.Py_ssize_t  # of the heap
    balls: cython.Py_ssize_t
    left: cython.Py_ssize_t  # uncovered rows

    gone: cython.short[:, ::1]  # of the leaves, to be written
    live: cython.Py_ssize_t[::1]
    places: cython.const[cython.Py_ssize_t][::1]  # per uncovered row: its place in the leaves, leaf after leaf

    def __init__(self, limits, members, all_compete, heap, owner, centers):
        self.limits, self.members, self.all_compete = limits, members, all_compete
        self.heap, self.owner, self.centers = heap, owner, centers
        self.size = self.left = len(owner)
        self.balls = 0

    def advance(self, views: Views, leaves, places, goal: cython.Py_ssize_t) -> tuple[int, int]:
        """Lines 6-19 for TURNS steps of the heap, or until at most `goal` rows are uncovered.

        Return how many balls there are, and how many rows are uncovered.
        """
        is_right: cython.bint
        turns: cython.Py_ssize_t = TURNS
        self.gone, self.live, self.places = leaves.gone, leaves.live, places
        with cython.nogil:
            is_right = _advance(self, views, turns, goal)
        if not is_right:
            raise RuntimeError("A ball covered other rows than were counted: the bracket of the grid is wrong.")
        return self.balls, self.left

    def give(self, views: Views, leaves) -> None:
        """Lines 16-17 alone: give every row of the leaves to the first of the centers whose ball covers it."""
        cython.declare(ball=cython.Py_ssize_t)
        self.gone, self.live = leaves.gone, leaves.live
        with cython.nogil:
            for ball in range(self.centers.shape[0]):
                box_sums(views, self.centers[ball])
                _gain(self, views, self.centers[ball], ball)


@cython.nogil
@cython.cfunc
@cython.exceptval(check=False)
def _advance(greedy: Greedy, views: Views, turns: cython.Py_ssize_t, goal: cython.Py_ssize_t) -> cython.bint:
    """Line 11 requires strictly more, so a tie goes to the lower row number, which has the lower key."""
    total: cython.longlong = greedy.limits.shape[0]
    cython.declare(row=cython.Py_ssize_t, gain=cython.Py_ssize_t, key=cython.longlong, _turn=cython.Py_ssize_t)
    for _turn in range(turns):
        if greedy.left <= goal:  # line 6
            break
        row, gain = greedy.heap[0] % total, 0
        if greedy.all_compete or greedy.owner[row] < 0:  # line 8
            gain = _gain(greedy, views, row, -1)  # lines 9-10
        key = (total - gain) * total + row
        greedy.heap[0] = key
        if gain == 0:  # covered, or nothing left to gain
            greedy.size -= 1
            greedy.heap[0] = greedy.heap[greedy.size]
        elif (greedy.size < 2 or key < greedy.heap[1]) and (greedy.size < 3 or key < greedy.heap[2]):  # line 11
            if _gain(greedy, views, row, greedy.balls) != gain:
                return False
            greedy.centers[greedy.balls] = row
            greedy.left -= gain
            greedy.balls += 1
        _sift(greedy)
    return True


@cython.nogil
@cython.cfunc
@cython.exceptval(check=False)
def _gain(greedy: Greedy, views: Views, row: cython.Py_ssize_t, ball: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Line 10: the size of P, the uncovered rows within the limit of `row`; lines 17-18: give them to `ball`, if any.

    The sums to boxes are written when counting, and read again when giving.
    """
    cython.declare(leaf=cython.Py_ssize_t, at=cython.Py_ssize_t, other=cython.Py_ssize_t, inside=cython.Py_ssize_t)
    gain: cython.Py_ssize_t = 0
    counts: cython.bint = ball < 0
    limit: cython.double = greedy.limits[row]
    sure: cython.short = sure_of(views, limit)
    maybe: cython.short = maybe_of(views, limit)
    certain: cython.short
    if greedy.members.shape[1] > 0 and greedy.members[row, 0] >= 0:
        return _listed_gain(greedy, views, row, ball)
    if counts:
        box_sums(views, row)
    for leaf in range(views.count):
        if views.near[leaf] > maybe or views.live[leaf] == 0:
            continue
        certain = sure if counts and views.tame[row] and views.whole[leaf] else -1
        if views.far[leaf] <= certain:
            gain += views.live[leaf]
        elif leaf_sums(views, row, leaf) <= maybe:
            inside = count_within(views, certain)
            gain += inside
            if inside == count_within(views, maybe):
                continue
            for at in range(LEAF):
                if not certain < views.sums[at] <= maybe:
                    continue
                other = views.rows[leaf, at]
                if exact_sum(views, row, other) <= limit:
                    gain += 1
                    if not counts:
                        greedy.owner[other] = ball
                        greedy.gone[leaf, at] = GONE
                        greedy.live[leaf] -= 1
    return gain


@cython.nogil
@cython.cfunc
@cython.exceptval(check=False)
def _listed_gain(greedy: Greedy, views: Views, row: cython.Py_ssize_t, ball: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return what `_gain` returns, from the list of rows that may lie in the ball."""
    cython.declare(at=cython.Py_ssize_t, other=cython.Py_ssize_t, place=cython.Py_ssize_t)
    gain: cython.Py_ssize_t = 0
    for at in range(greedy.members.shape[1]):
        other = greedy.members[row, at]
        if other < 0 or greedy.owner[other] >= 0:
            continue
        if exact_sum(views, row, other) <= greedy.limits[row]:
            gain += 1
            if ball >= 0:
                place = greedy.places[other]
                greedy.owner[other] = ball
                greedy.gone[place // LEAF, place % LEAF] = GONE
                greedy.live[place // LEAF] -= 1
    return gain


@cython.nogil
@cython.cfunc
@cython.exceptval(check=False)
def _sift(greedy: Greedy) -> cython.void:
    """Move the top of the heap down to its place."""
    at: cython.Py_ssize_t = 0
    least: cython.Py_ssize_t
    key: cython.longlong = greedy.heap[0]
    while 2 * at + 1 < greedy.size:
        least = 2 * at + 1
        if least + 1 < greedy.size and greedy.heap[least + 1] < greedy.heap[least]:
            least += 1
        if greedy.heap[least] >= key:
            break
        greedy.heap[at] = greedy.heap[least]
        at = least
    greedy.heap[at] = key


# Lines 9 and 10 for every pair of rows once.


def compare_enemies(
    views: Views,
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    best: cython.double[:, ::1],
    maybe: cython.short[:, ::1],
) -> None:
    """Line 9 between the rows of two groups of leaves of different classes; `best` and `maybe` are by place."""
    cython.declare(
        own=cython.Py_ssize_t,
        leaf=cython.Py_ssize_t,
        at=cython.Py_ssize_t,
        there=cython.Py_ssize_t,
        row=cython.Py_ssize_t,
        total=cython.double,
    )
    with cython.nogil:
        for own in range(start, stop):
            for leaf in range(first, last):
                for at in range(views.live[own]):
                    row = views.rows[own, at]
                    leaf_sums(views, row, leaf)
                    if not any_within(views, maybe[own, at], maybe, leaf):
                        continue
                    for there in range(LEAF):
                        if views.sums[there] > maybe[own, at] and views.sums[there] > maybe[leaf, there]:
                            continue
                        total = exact_sum(views, row, views.rows[leaf, there])
                        if total < best[own, at]:
                            best[own, at] = total
                            maybe[own, at] = maybe_of(views, total)
                        if total < best[leaf, there]:
                            best[leaf, there] = total
                            maybe[leaf, there] = maybe_of(views, total)


def count_members(
    views: Views,
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    maybe: cython.const[cython.short][:, ::1],
    gains: cython.Py_ssize_t[::1],
    members: cython.int[:, ::1],
) -> None:
    """Line 10 between the rows of two groups of leaves, which may be the same one; `maybe` is by place."""
    cython.declare(
        own=cython.Py_ssize_t,
        leaf=cython.Py_ssize_t,
        at=cython.Py_ssize_t,
        there=cython.Py_ssize_t,
        row=cython.Py_ssize_t,
        other=cython.Py_ssize_t,
    )
    most: cython.Py_ssize_t = members.shape[1]
    with cython.nogil:
        for own in range(start, stop):
            for leaf in range(max(own, first), last):
                for at in range(views.live[own]):
                    row = views.rows[own, at]
                    leaf_sums(views, row, leaf)
                    if not any_within(views, maybe[own, at], maybe, leaf):
                        continue
                    for there in range(LEAF):
                        other = views.rows[leaf, there]
                        if views.sums[there] <= maybe[own, at]:
                            if gains[row] < most:
                                members[row, gains[row]] = other
                            gains[row] += 1
                        if own != leaf and views.sums[there] <= maybe[leaf, there]:
                            if gains[other] < most:
                                members[other, gains[other]] = row
                            gains[other] += 1


# The nearest rows of new points.


def nearest_other(
    z: cython.const[cython.double][:, ::1],
    codes: cython.const[cython.Py_ssize_t][::1],
    Z: cython.const[cython.double][:, ::1],
    labels: cython.const[cython.Py_ssize_t][::1],
    metric: cython.int,
    lacks: cython.bint,
    best: cython.double[::1],
) -> None:
    """Line 9 for new points: the smallest sum between each and the rows with another label."""
    cython.declare(line=cython.Py_ssize_t, row=cython.Py_ssize_t, column=cython.Py_ssize_t, total=cython.double)
    with cython.nogil:
        for line in range(z.shape[0]):
            for row in range(Z.shape[0]):
                if labels[row] == codes[line]:
                    continue
                total = 0.0
                for column in range(Z.shape[1]):
                    total = with_gap(total, exact_gap(z[line, column], Z[row, column], lacks), metric)
                best[line] = total if total < best[line] else best[line]


def to_unit(
    N: cython.const[cython.double][:, ::1],
    low: cython.const[cython.double][::1],
    span: cython.const[cython.double][::1],
    unit: cython.const[cython.double][::1],
    is_level: cython.const[cython.char][::1],
    absent: cython.const[cython.double][::1],
    points: cython.double[:, ::1],
) -> None:
    """Write numbers in the caller's units as columns of 0 to 1, and levels as their positions."""
    cython.declare(line=cython.Py_ssize_t, column=cython.Py_ssize_t, x=cython.double)
    with cython.nogil:
        for line in range(N.shape[0]):
            for column in range(N.shape[1]):
                x = N[line, column]
                if x != x:
                    x = absent[column]
                elif not is_level[column]:
                    x = (x - low[column]) / span[column] * unit[column]
                points[line, column] = x


def to_window(
    points: cython.const[cython.double][:, ::1],
    low: cython.const[cython.double][::1],
    step: cython.double,
    last: cython.const[cython.double][::1],
    is_level: cython.const[cython.char][::1],
    costs: cython.const[cython.short][::1],
    coarse: cython.short[:, ::1],
) -> cython.bint:
    """Write where new points lie on the grid; say whether values are missing only where rows lack some, too."""
    cython.declare(line=cython.Py_ssize_t, column=cython.Py_ssize_t, x=cython.double)
    is_known: cython.bint = True
    with cython.nogil:
        for line in range(points.shape[0]):
            for column in range(points.shape[1]):
                x = points[line, column]
                if -MOST <= x <= -LEAST:
                    is_known = is_known and costs[column] != NUMBER
                    coarse[line, column] = LACKING
                elif is_level[column]:
                    coarse[line, column] = cython.cast(cython.short, x)
                else:
                    x = rint((x - low[column]) / step)
                    x = x if x > 0.0 else 0.0  # what is no number lies at the window's edge, too
                    coarse[line, column] = cython.cast(cython.short, x if x < last[column] else last[column])
    return is_known


def nearest_rows(
    views: Views,
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    totals: cython.double[::1],
    found: cython.Py_ssize_t[:, ::1],
) -> None:
    """Write the nearest rows of each of the points that are `own` in the views; `totals` is room to work in.

    The smallest sums so far are kept in order; boxes and rows that cannot be below the last one are skipped.
    """
    cython.declare(
        line=cython.Py_ssize_t,
        turn=cython.Py_ssize_t,
        leaf=cython.Py_ssize_t,
        closest=cython.Py_ssize_t,
        at=cython.Py_ssize_t,
        block=cython.Py_ssize_t,
        first=cython.Py_ssize_t,
        row=cython.Py_ssize_t,
    )
    last: cython.Py_ssize_t = totals.shape[0] - 1
    cython.declare(maybe=cython.short, total=cython.double)
    with cython.nogil:
        for line in range(start, stop):
            near_sums(views, line)
            maybe, closest = TOP, 0
            for at in range(last + 1):
                totals[at] = INFINITE
            for leaf in range(views.count):
                closest = leaf if views.near[leaf] < views.near[closest] else closest
            for turn in range(-1, views.count):
                leaf = closest if turn < 0 else turn
                if views.near[leaf] > maybe or turn == closest or leaf_sums(views, line, leaf) > maybe:
                    continue
                for block in range(LEAF // TOGETHER):
                    first = block * TOGETHER
                    if not any_of(views, first, maybe):
                        continue
                    for at in range(first, first + TOGETHER):
                        if views.sums[at] > maybe:
                            continue
                        row = views.rows[leaf, at]
                        total = exact_sum(views, line, row)
                        if total < totals[last] or (total == totals[last] and row < found[line, last]):
                            _insert(totals, found, line, total, row)
                            maybe = maybe_of(views, totals[last])


@cython.nogil
@cython.cfunc
@cython.exceptval(check=False)
def any_of(views: Views, first: cython.Py_ssize_t, most: cython.short) -> cython.bint:
    """Say whether one of some coarse sums that follow each other is at most so large: in a few instructions."""
    at: cython.Py_ssize_t
    within: cython.short = 0
    for at in range(TOGETHER):
        within |= 1 if views.sums[first + at] <= most else 0
    return within != 0


@cython.nogil
@cython.cfunc
@cython.exceptval(check=False)
def _insert(
    totals: cython.double[::1],
    found: cython.Py_ssize_t[:, ::1],
    line: cython.Py_ssize_t,
    total: cython.double,
    row: cython.Py_ssize_t,
) -> cython.void:
    """Insert a sum and its row in order, dropping the last."""
    at: cython.Py_ssize_t = totals.shape[0] - 1
    while at > 0 and (total < totals[at - 1] or (total == totals[at - 1] and row < found[line, at - 1])):
        totals[at] = totals[at - 1]
        found[line, at] = found[line, at - 1]
        at -= 1
    totals[at] = total
    found[line, at] = row
