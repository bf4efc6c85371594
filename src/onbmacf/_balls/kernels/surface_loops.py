"""The loops over new points in float64, compiled when the package is built.

    BallLeaves, Query  ->  Surfaces  ->  bound_leaves, scan_leaves
    points, rows  ->  nearest_other

The constants of calls, and why there is a local array: see the top of loops.py.
"""

from __future__ import annotations

import numpy as np

try:
    import cython
except ImportError:  # the source runs as it is
    from onbmacf._base import plain_cython as cython

from onbmacf._base.missing import LEAST as _LEAST
from onbmacf._base.missing import MOST as _MOST
from onbmacf._base.missing import UNIT as _MISSING

if cython.compiled:
    from cython.cimports.libc.math import sqrt
    from cython.cimports.onbmacf._balls.kernels.constants import CHEBYSHEV, EUCLIDEAN, LEAF, MANHATTAN
else:
    from math import sqrt

    from onbmacf._balls.kernels.leaves import LEAF
    from onbmacf._balls.metrics import CHEBYSHEV, EUCLIDEAN, MANHATTAN

COMPILED = cython.compiled

INFINITE = cython.declare(cython.double, np.inf)
LEAST = cython.declare(cython.double, _LEAST)
MOST = cython.declare(cython.double, _MOST)
MISSING = cython.declare(cython.double, _MISSING)


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
@cython.cfunc
@cython.exceptval(check=False)
def box_gap(value: cython.double, low: cython.double, high: cython.double, lacks: cython.bint) -> cython.double:
    """Return the gap that no number of a box is below, exact to the bit."""
    below: cython.double = low - value
    gap: cython.double = value - high
    gap = below if below > gap else gap
    gap = gap if gap > 0.0 else 0.0
    if not lacks:
        return gap
    if LEAST <= gap <= MOST:
        return gap / MISSING
    below = -low / MISSING
    return below if -MOST <= low <= -LEAST and below < gap else gap


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


@cython.final
@cython.cclass
class Surfaces:
    """Leaves of balls, and points with what is asked about them; one per thread, with room to work in."""

    balls: cython.const[cython.Py_ssize_t][:, ::1]
    points: cython.const[cython.double][:, :, ::1]
    radii: cython.const[cython.double][:, ::1]
    widest: cython.const[cython.double][::1]
    labels: cython.const[cython.Py_ssize_t][::1]
    low: cython.const[cython.double][:, ::1]
    high: cython.const[cython.double][:, ::1]
    metric: cython.int
    z: cython.const[cython.double][:, ::1]
    wanted: cython.const[cython.uchar][:, ::1]
    base: cython.const[cython.double][::1]
    share: cython.double
    lacks: cython.bint
    columns: cython.Py_ssize_t
    totals: cython.double[::1]

    def __init__(self, leaves, query):
        self.balls, self.points, self.radii, self.widest = leaves.balls, leaves.points, leaves.radii, leaves.widest
        self.labels, self.low, self.high, self.metric = leaves.labels, leaves.low, leaves.high, leaves.metric
        self.z, self.wanted, self.base = query.z, query.wanted.view(np.uint8), query.base
        self.share, self.lacks, self.columns = query.share, query.lacks, query.z.shape[1]
        self.totals = np.empty(LEAF)


@cython.nogil
@cython.cfunc
@cython.exceptval(check=False)
def _bound(
    total: cython.double, radius: cython.double, base: cython.double, share: cython.double, metric: cython.int
) -> cython.double:
    """Return the bound that belongs to a sum and a radius."""
    return ((sqrt(total) if metric == EUCLIDEAN else total) - radius - base) * share


@cython.nogil
@cython.cfunc
@cython.exceptval(check=False)
def _bound_line(
    surfaces: Surfaces,
    line: cython.Py_ssize_t,
    near: cython.double[:, ::1],
    to: cython.Py_ssize_t,
    metric: cython.int,
    lacks: cython.bint,
) -> cython.void:
    cython.declare(leaf=cython.Py_ssize_t, column=cython.Py_ssize_t, value=cython.double, gap=cython.double)
    for leaf in range(near.shape[1]):
        near[to, leaf] = 0.0
    for column in range(surfaces.columns):
        value = surfaces.z[line, column]
        for leaf in range(near.shape[1]):
            gap = box_gap(value, surfaces.low[column, leaf], surfaces.high[column, leaf], lacks)
            near[to, leaf] = with_gap(near[to, leaf], gap, metric)
    for leaf in range(near.shape[1]):
        gap = _bound(near[to, leaf], surfaces.widest[leaf], surfaces.base[line], surfaces.share, metric)
        near[to, leaf] = gap if surfaces.wanted[line, surfaces.labels[leaf]] else INFINITE


def bound_leaves(
    surfaces: Surfaces, start: cython.Py_ssize_t, stop: cython.Py_ssize_t, near: cython.double[:, ::1]
) -> None:
    """Write what no ball of a leaf is below, per point and leaf; infinity where its label is not wanted."""
    line: cython.Py_ssize_t
    with cython.nogil:
        for line in range(start, stop):
            if surfaces.lacks:
                _bound_line(surfaces, line, near, line - start, surfaces.metric, True)
            elif surfaces.metric == MANHATTAN:
                _bound_line(surfaces, line, near, line - start, MANHATTAN, False)
            elif surfaces.metric == EUCLIDEAN:
                _bound_line(surfaces, line, near, line - start, EUCLIDEAN, False)
            else:
                _bound_line(surfaces, line, near, line - start, CHEBYSHEV, False)


@cython.nogil
@cython.cfunc
@cython.exceptval(check=False)
def _ball_sums(
    surfaces: Surfaces, line: cython.Py_ssize_t, leaf: cython.Py_ssize_t, metric: cython.int, lacks: cython.bint
) -> cython.void:
    """Write the bounds of the balls of one leaf."""
    cython.declare(at=cython.Py_ssize_t, column=cython.Py_ssize_t, value=cython.double)
    totals = cython.declare(cython.double[128])
    for at in range(LEAF):
        totals[at] = 0.0
    for column in range(surfaces.columns):
        value = surfaces.z[line, column]
        for at in range(LEAF):
            totals[at] = with_gap(totals[at], exact_gap(value, surfaces.points[leaf, column, at], lacks), metric)
    for at in range(LEAF):
        surfaces.totals[at] = _bound(totals[at], surfaces.radii[leaf, at], surfaces.base[line], surfaces.share, metric)


def scan_leaves(
    surfaces: Surfaces,
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    near: cython.const[cython.double][:, ::1],
    order: cython.const[cython.Py_ssize_t][:, ::1],
    found: cython.Py_ssize_t[:, ::1],
    bounds: cython.double[:, ::1],
) -> None:
    """Keep the smallest bounds so far in a heap, the largest on top; stop at the first leaf that is beyond it."""
    cython.declare(
        line=cython.Py_ssize_t,
        turn=cython.Py_ssize_t,
        leaf=cython.Py_ssize_t,
        at=cython.Py_ssize_t,
        ball=cython.Py_ssize_t,
        bound=cython.double,
    )
    with cython.nogil:
        for line in range(start, stop):
            for turn in range(near.shape[1]):
                leaf = order[line - start, turn]
                if near[line - start, leaf] > bounds[line, 0] or near[line - start, leaf] == INFINITE:
                    break
                if surfaces.lacks:
                    _ball_sums(surfaces, line, leaf, surfaces.metric, True)
                elif surfaces.metric == MANHATTAN:
                    _ball_sums(surfaces, line, leaf, MANHATTAN, False)
                elif surfaces.metric == EUCLIDEAN:
                    _ball_sums(surfaces, line, leaf, EUCLIDEAN, False)
                else:
                    _ball_sums(surfaces, line, leaf, CHEBYSHEV, False)
                for at in range(LEAF):
                    bound, ball = surfaces.totals[at], surfaces.balls[leaf, at]
                    if bound < bounds[line, 0] or (bound == bounds[line, 0] and ball < found[line, 0]):
                        _replace_top(bounds, found, line, bound, ball)


@cython.nogil
@cython.cfunc
@cython.exceptval(check=False)
def _replace_top(
    bounds: cython.double[:, ::1],
    balls: cython.Py_ssize_t[:, ::1],
    line: cython.Py_ssize_t,
    bound: cython.double,
    ball: cython.Py_ssize_t,
) -> cython.void:
    """Put a bound and its ball in the place of the largest, and move it down to where it belongs."""
    at: cython.Py_ssize_t = 0
    most: cython.Py_ssize_t
    while 2 * at + 1 < bounds.shape[1]:
        most = 2 * at + 1
        if most + 1 < bounds.shape[1] and _is_after(
            bounds[line, most + 1], balls[line, most + 1], bounds[line, most], balls[line, most]
        ):
            most += 1
        if not _is_after(bounds[line, most], balls[line, most], bound, ball):
            break
        bounds[line, at] = bounds[line, most]
        balls[line, at] = balls[line, most]
        at = most
    bounds[line, at] = bound
    balls[line, at] = ball


@cython.nogil
@cython.cfunc
@cython.exceptval(check=False)
def _is_after(
    bound: cython.double, ball: cython.Py_ssize_t, other: cython.double, other_ball: cython.Py_ssize_t
) -> cython.bint:
    return bound > other or (bound == other and ball > other_ball)
