"""Gaps of rows in which a category is one column, coarse and exact: the parts of the kernels that know of categories.

`heights` has one entry per column, 0 for a number; `widths` too, NUMBER for a number: a category that is short beside
the others may have a coarse gap of 0. Without categories they are None, a type of its own:
the code for categories is then left out when kernels are compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.metrics import EUCLIDEAN
from onbmacf._base.jit import inlined

NUMBER = -1  # the width of a column that is not a category


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
def coarse_gap(here: Any, there: Any, width: Any) -> Any:
    """Return the coarse gap of two rows in one column."""
    if width != NUMBER:
        return width if here != there else np.int16(0)
    return np.int16(abs(np.int16(here - there)))


@inlined
def nearest_gap(here: Any, low: Any, high: Any, width: Any) -> Any:
    """Return the coarse gap in one column that no row of a box is below."""
    below, above = np.int16(low - here), np.int16(here - high)
    gap = max(below, above, np.int16(0))
    return width if width != NUMBER and gap > 0 else gap


@inlined
def farthest_gap(here: Any, low: Any, high: Any, width: Any) -> Any:
    """Return the coarse gap in one column that no row of a box is above."""
    gap = max(np.int16(high - here), np.int16(here - low))
    return width if width != NUMBER and gap > 0 else gap
