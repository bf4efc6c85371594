"""Gaps in one column, coarse and exact: the parts of the kernels that know of categories and of missing values.

`heights` has one entry per column, 0 for a number; `widths` too, NUMBER for a number: a category that is short beside
the others may have a coarse gap of 0. `costs` has one entry per column: the coarse gap of a missing value to any other,
NUMBER where none is missing. Without categories, or missing values, they are None, a type of its own: the code for them
is then left out when kernels are compiled.

A missing value lies at LACKING on the grid, so far below all others that a gap beyond TOP is one to a missing value. A
box that holds both begins at LACKING: a row that is above the box may be nearer to a missing value than to its end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.metrics import EUCLIDEAN
from onbmacf._base.jit import inlined
from onbmacf._base.missing import LEAST, MOST, UNIT

TOP = 16383  # the largest coarse sum
LACKING = -16384  # a missing value on the grid; others are from 0 to TOP
NUMBER = -1  # the width of a column that is not a category, the cost of one that is never missing


def gaps_of(heights: NDArray[np.float64], metric: int | None) -> NDArray[np.float64]:
    """Return how far apart two rows are that differ in one category; 0 for a number."""
    if metric is None:
        return 2 * heights
    return np.sqrt(2.0) * heights if metric == EUCLIDEAN else heights


@inlined
def width_of(widths: Any, column: int) -> Any:
    """Return the coarse gap of a category, or NUMBER: without categories, that is known when kernels are compiled."""
    return np.int16(NUMBER) if widths is None else widths[column]


@inlined
def height_of(heights: Any, column: int) -> Any:
    """Return the height of a category, 0 for a number."""
    return 0.0 if heights is None else heights[column]


@inlined
def exact_gap(left: Any, right: Any, costs: Any) -> Any:
    """Return the gap of two numbers, or what it costs that one of them is missing."""
    gap = abs(left - right)
    if costs is None:
        return gap
    return gap / UNIT if LEAST <= gap <= MOST else gap


@inlined
def box_gap(value: Any, low: Any, high: Any, costs: Any) -> Any:
    """Return the gap that no number of a box is below, exact to the bit."""
    gap = max(low - value, value - high, 0.0)
    if costs is None:
        return gap
    if LEAST <= gap <= MOST:
        return gap / UNIT
    return min(gap, -low / UNIT) if -MOST <= low <= -LEAST else gap


@inlined
def coarse_gap(here: Any, there: Any, width: Any, cost: Any) -> Any:
    """Return the coarse gap of two rows in one column."""
    if width != NUMBER:
        return width if here != there else np.int16(0)
    gap = np.int16(abs(np.int16(here - there)))
    return cost if cost != NUMBER and gap > TOP else gap


@inlined
def nearest_gap(here: Any, low: Any, high: Any, width: Any, cost: Any) -> Any:
    """Return the coarse gap in one column that no row of a box is below."""
    below, above = np.int16(low - here), np.int16(here - high)
    gap = max(below, above, np.int16(0))
    if cost != NUMBER:
        return cost if gap > TOP else min(gap, cost) if low < 0 else gap
    return width if width != NUMBER and gap > 0 else gap


@inlined
def farthest_gap(here: Any, low: Any, high: Any, width: Any, cost: Any) -> Any:
    """Return the coarse gap in one column that no row of a box is above."""
    above, below = np.int16(high - here), np.int16(here - low)
    gap = max(above, below)
    if cost != NUMBER and gap > TOP:
        return cost if here < 0 or high < 0 else max(cost, above, here)  # the lowest value of the box is not known
    return width if width != NUMBER and gap > 0 else gap
