"""The table on a grid of 16-bit integers: four times as many SIMD lanes as float64, and a proven bracket per limit.

    Z  ->  to_grid  ->  Grid          limit  ->  sure_of, maybe_of  ->  its bracket

A coarse sum is the sum of the integer gaps between two grid points. A row is tame if each of its coordinates lies in
the window of its column. For two tame rows

    coarse sum <= sure   implies  sum <= limit            coarse sum > maybe   implies  sum > limit

so only the narrow band between the two is summed in float64. Any other row (an extreme outlier) is moved to the edge of
the window: this only shortens its gaps, so `maybe` is valid for it and `sure` is not. Squared gaps keep their upper 16
bits, which loses less than one unit per column.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.groups import Groups, compacted
from onbmacf._balls.metrics import CHEBYSHEV, EUCLIDEAN, MANHATTAN, METRICS
from onbmacf._base.missing import UNIT as MISSING_UNIT
from onbmacf._base.missing import has_missing, is_missing, known_ends

TOP = 16383  # the largest coarse sum
LACKING = -16384  # a missing value on the grid; others are from 0 to TOP
NUMBER = -1  # the width of a column that is not a category, the cost of one that is never missing
UNIT = 65536.0  # squared steps in one unit of a euclidean coarse sum
SLACK = 0.01  # in steps: far above the rounding error of any arithmetic on sums of up to TOP steps
TAILS = (0.0, 0.001, 0.01, 0.05)  # shares of a column's values that its window may leave out at either end
GROSS = 8.0  # leave out more only if it makes the windows this many times narrower
BULK = 0.8  # and only if this share of the rows stays inside them
SAMPLE = 20_000  # rows from which the windows are computed


class Ruler(NamedTuple):
    """The values that turn a limit into its bracket."""

    step: float  # the length of one grid step
    error: float  # in steps: how far the coarse distance of two tame rows can be from their true distance
    columns: int
    metric: int  # see code_of


class Grid(NamedTuple):
    """The rows and their grid points; a category is one column, the position of the active level."""

    Z: NDArray[np.float64]
    points: NDArray[np.int16]  # the same shape as Z
    tame: NDArray[np.bool_]  # per row: whether it lies inside every column's window
    ruler: Ruler
    heights: NDArray[np.float64] | None = None  # per column: of a category, 0 for a number; None without categories
    widths: NDArray[np.int16] | None = None  # per column: the coarse gap of a category (of a short one, 0), or NUMBER
    costs: NDArray[np.int16] | None = None  # per column: the coarse gap of a missing value, or NUMBER; None without any


class Window(NamedTuple):
    """Where the grid starts and ends in each column, and its step."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    step: float


def to_grid(Z: NDArray[np.float64], metric: str, groups: Groups | None = None) -> Grid:
    """Place the rows on the finest grid whose coarse sums stay within TOP."""
    compact = compacted(Z, groups)
    if groups is None or compact is None:
        return _grid(Z, metric)
    is_number, code = groups.heights == 0, code_of(metric)
    low, high, step = grid_window(compact, metric, groups.heights)
    grid = _grid(np.where(is_number, compact, 0.0), metric, Window(low, high, step))
    gaps = gaps_of(groups.heights, code) / step
    widths = np.floor(gaps + 1e-6).astype(np.int16)  # not above: coarse sums stay within TOP
    points = np.where(is_number, grid.points, np.where(is_number, 0.0, compact).astype(np.int16))
    ruler = grid.ruler._replace(error=grid.ruler.error + _length(np.abs(gaps - widths), code))
    widths = np.where(is_number, np.int16(NUMBER), widths)
    return Grid(compact, points, grid.tame, ruler, groups.heights, widths, grid.costs)


def _grid(Z: NDArray[np.float64], metric: str, window: Window | None = None) -> Grid:
    Z, code = np.require(Z, np.float64, ["C", "W"]), code_of(metric)
    points, tame, worst = np.empty(Z.shape, np.int16), np.ones(len(Z), bool), np.zeros(Z.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        low, high, step = window or grid_window(Z, metric)
        known = _filled(Z)
        for column in range(Z.shape[1]):
            place = (known[:, column] - low[column]) / step
            last = np.floor((high[column] - low[column]) / step)
            points[:, column] = np.nan_to_num(np.clip(np.rint(place), 0.0, last))
            misses = np.abs(place - points[:, column])
            tame &= misses <= 1.0
            worst[column] = misses.max(initial=0.0, where=misses <= 1.0)
    grid = Grid(Z, points, tame, Ruler(step, _length(2 * worst, code) + SLACK, Z.shape[1], code))
    return _with_missing(grid) if has_missing(Z) else grid


def _with_missing(grid: Grid) -> Grid:
    """Put missing values where they belong, and say what their gaps are."""
    ruler, costs = grid.ruler, _costs(grid.Z) / grid.ruler.step
    whole = np.floor(costs + 1e-6).astype(np.int16)  # not above: coarse sums stay within TOP
    points = np.where(is_missing(grid.Z), np.int16(LACKING), grid.points)
    ruler = ruler._replace(error=ruler.error + _length(np.abs(costs - whole), ruler.metric))
    return grid._replace(points=points, ruler=ruler, costs=np.where(costs > 0, whole, np.int16(NUMBER)))


def _costs(Z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return per column what a missing value costs; 0 where none is missing."""
    return np.where(is_missing(Z), -Z, 0.0).max(axis=0, initial=0.0) / MISSING_UNIT


def _filled(Z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rows with the lowest value of the column in place of missing ones."""
    return np.where(is_missing(Z), known_ends(Z)[0], Z) if has_missing(Z) else Z


def grid_window(Z: NDArray[np.float64], metric: str, heights: NDArray[np.float64] | None = None) -> Window:
    """Return the window of these rows; that of a category is the gap of two levels, at least that to a missing one."""
    code = code_of(metric)
    with np.errstate(over="ignore", invalid="ignore"):
        known = _filled(Z)
        low, high = _windows(known if heights is None else np.where(heights == 0, known, 0.0), code)
        if has_missing(Z):
            high = np.maximum(high, low + _costs(Z))
        if heights is not None:
            high = high + gaps_of(heights, code)
        step = _step(high - low, code)
        if has_missing(Z):  # the gaps of two values stay within TOP, too: one beyond it is to a missing value
            step = max(step, _step(high - low, CHEBYSHEV))
        return Window(low, high, step)


def code_of(metric: str) -> int:
    """Return the number by which the kernels know a metric."""
    code = METRICS[metric].kernel
    assert code is not None, f"no kernel for {metric}"
    return code


def gaps_of(heights: NDArray[np.float64], metric: int) -> NDArray[np.float64]:
    """Return how far apart two rows are that differ in one category; 0 for a number."""
    if metric == MANHATTAN:
        return 2 * heights
    return np.sqrt(2.0) * heights if metric == EUCLIDEAN else heights


def _windows(Z: NDArray[np.float64], metric: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return each column's window: its range, or most of it where extreme outliers stretch the range."""
    lowest, highest = Z.min(axis=0), Z.max(axis=0)
    low, high = lowest, highest
    sample = Z[:: -(-len(Z) // SAMPLE)]
    for tail in TAILS[1:]:
        inner = np.quantile(sample, [tail, 1 - tail], axis=0, method="nearest")
        reserve = 2 * (inner[1] - inner[0])
        lower, upper = np.maximum(lowest, inner[0] - reserve), np.minimum(highest, inner[1] + reserve)
        gross = _length(high - low, metric) > GROSS * _length(upper - lower, metric)
        if gross and ((sample >= lower) & (sample <= upper)).all(axis=1).mean() >= BULK:
            low, high = lower, upper
    return low, high


def _length(gaps: NDArray[np.float64], metric: int) -> float:
    """Return the distance that these gaps, one per column, add up to."""
    if metric == MANHATTAN:
        return float(gaps.sum())
    return float(np.sqrt((gaps**2).sum()) if metric == EUCLIDEAN else gaps.max())


def _step(widths: NDArray[np.float64], metric: int) -> float:
    """Return the smallest step that keeps coarse sums within TOP; a step below 1 is made one over a whole number.

    The values 0 and 1 of binary columns then lie on the grid and add no error.
    """
    step = _length(widths, metric) / (np.sqrt(TOP * UNIT) if metric == EUCLIDEAN else TOP) * (1 + 1e-9)
    if not 0.0 < step < np.inf:
        return 1.0
    return 1.0 / np.floor(1.0 / step) if 1e-9 < step < 1.0 else step


def most_of(limits: NDArray[np.float64], ruler: Ruler) -> NDArray[np.int16]:
    """Return `maybe` of many limits."""
    with np.errstate(over="ignore"):
        outer = (np.sqrt(limits) if ruler.metric == EUCLIDEAN else limits) / ruler.step + ruler.error
        return np.minimum(outer * outer / UNIT if ruler.metric == EUCLIDEAN else outer, TOP).astype(np.int16)
