"""The table on a grid of 16-bit integers: four times the lanes of float64, with a certified bracket around each limit.

    Z  ->  to_grid  ->  Grid          limit  ->  bracket  ->  (sure, maybe)

Coarse sums are sums of integer gaps between grid points. For two rows on the grid,

    coarse sum <= sure   implies  sum <= limit            coarse sum > maybe   implies  sum > limit

so only the thin band between is summed in float64. A row with a coordinate outside the window of its column (a gross
outlier) is put on the window's edge and is not `tame`: that can only shorten its gaps, so `maybe` still holds for it
and `sure` does not. Squared gaps keep their upper 16 bits, which loses less than one unit per column.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onbmacf._cover_fast.sums import EUCLIDEAN, MANHATTAN, METRICS
from onbmacf._numba import inlined

TOP = 16383  # the largest coarse sum of two rows
SLACK = 0.01  # steps: far above every rounding error of the grid's own arithmetic
TAIL = 0.001  # share of a column that may lie outside its window at either end, before widening


class Grid(NamedTuple):
    """Rows as grid points; two tame rows' coarse distance is within `error` steps of their distance."""

    points: NDArray[np.int16]  # (rows, features)
    tame: NDArray[np.bool_]  # per row: inside every column's window
    step: float  # length of one grid step
    error: float
    metric: int


def to_grid(Z: NDArray[np.float64], metric: str) -> Grid:
    """Put the rows on the finest grid whose coarse sums fit."""
    code = METRICS[metric]
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = _windows(Z)
        step = _step(high - low, code)
        exact = (Z - low) / step
        points = np.rint(np.clip(np.nan_to_num(exact), 0.0, np.floor((high - low) / step)))
        misses = np.abs(exact - points)
    tame = (misses <= 1.0).all(axis=1)
    worst = misses[tame].max(axis=0, initial=0.0)
    error = float({MANHATTAN: 2 * worst.sum(), EUCLIDEAN: 2 * np.sqrt((worst**2).sum())}.get(code, 2 * worst.max()))
    return Grid(points.astype(np.int16), tame, step, error + SLACK, code)


def _windows(Z: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return each column's window: the bulk of its values, twice its width added at both ends, cut to its range."""
    low, high = np.quantile(Z, [TAIL, 1 - TAIL], axis=0, method="nearest")
    reserve = 2 * (high - low)
    return np.maximum(Z.min(axis=0), low - reserve), np.minimum(Z.max(axis=0), high + reserve)


def _step(widths: NDArray[np.float64], metric: int) -> float:
    """Return the smallest step that keeps coarse sums within TOP; one over a whole number where it can."""
    if metric == MANHATTAN:
        step = widths.sum() / TOP
    elif metric == EUCLIDEAN:
        step = np.sqrt((widths**2).sum() / (TOP * 65536.0))
    else:
        step = widths.max() / TOP
    if not 0.0 < step < np.inf:
        return 1.0
    step = float(step) * (1 + 1e-9)
    return 1.0 / np.floor(1.0 / step) if 1e-9 < step < 1.0 else step


@inlined
def bracket(limit: Any, step: Any, error: Any, columns: int, metric: int) -> Any:
    """Return (sure, maybe) for a limit: see the top of this file."""
    distance = np.sqrt(limit) if metric == EUCLIDEAN else limit
    inner, outer = distance / step - error, distance / step + error
    if metric == EUCLIDEAN:
        inner = inner * inner / 65536.0 - columns if inner > 0.0 else -1.0
        outer = outer * outer / 65536.0
    sure = np.int16(min(inner, TOP)) if inner >= 0.0 else np.int16(-1)
    return sure, np.int16(min(outer, TOP))


@inlined
def plus(total: Any, gap: Any, metric: int) -> Any:
    """Return a coarse sum with one column's gap added (16 bits in, 16 bits out)."""
    if metric == MANHATTAN:
        return np.int16(total + gap)
    if metric == EUCLIDEAN:
        return np.int16(total + ((np.int32(gap) * np.int32(gap)) >> 16))
    return max(total, gap)
