"""The metrics, each one entry: how differences add up, what a category costs, what a ball looks like.

A new metric is one entry in METRICS. Without a number of the compiled kernels (`kernel`) it is computed by the plain
functions, as a function of two points is; without a `power` nothing is proven with it, and a proof says so. A function
may say its own: `power = 1` or `2`, where differences to this power, column by column, add up to its distance to it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeGuard

import numpy as np

from onbmacf._base.arrays import Matrix
from onbmacf._base.checks import check_choice

Metric = str | Callable[[Matrix, Matrix], float]

MOST_COMPARED = 50  # levels of a category, each with each other
MANHATTAN, EUCLIDEAN, CHEBYSHEV = 0, 1, 2  # numbers by which the compiled kernels know a metric


@dataclass(frozen=True)
class Measure:
    """A metric by its parts."""

    add: Callable[[Matrix, Matrix], Any]  # (total, difference): add one column's differences to the totals, in place
    finish: Callable[[Matrix], Matrix]  # totals -> distances
    height: float  # value of a category's active column at which another category costs 1
    outline: Matrix  # corners of a ball of radius 1 in two dimensions
    kernel: int | None = None
    power: int | None = None  # differences to this power add up to distances to it; 0: the largest one counts


def _add_absolute(total: Matrix, difference: Matrix) -> None:
    total += np.abs(difference, out=difference)


def _add_square(total: Matrix, difference: Matrix) -> None:
    total += np.square(difference, out=difference)


def _keep_largest(total: Matrix, difference: Matrix) -> None:
    np.maximum(total, np.abs(difference, out=difference), out=total)


def _as_it_is(total: Matrix) -> Matrix:
    return total


_TURN = np.linspace(0, 2 * np.pi, 60)
_DIAMOND = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
_SQUARE = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
_CIRCLE = np.column_stack([np.cos(_TURN), np.sin(_TURN)])

METRICS: dict[str, Measure] = {
    "manhattan": Measure(_add_absolute, _as_it_is, 0.5, _DIAMOND, MANHATTAN, 1),
    "euclidean": Measure(_add_square, np.sqrt, float(np.sqrt(0.5)), _CIRCLE, EUCLIDEAN, 2),
    "chebyshev": Measure(_keep_largest, _as_it_is, 1.0, _SQUARE, CHEBYSHEV, 0),
}


def check_metric(metric: Any) -> Metric:
    """Return a metric's name or a callable of two points."""
    return metric if callable(metric) else check_choice("metric", metric, METRICS)


def one_hot_height(metric: Metric) -> float:
    """Return the height of an active level at which a changed category costs 1; for a function of points, 1."""
    return METRICS[metric].height if isinstance(metric, str) else 1.0


def has_kernel(metric: Metric) -> TypeGuard[str]:
    """Say whether the compiled kernels know a metric."""
    return isinstance(metric, str) and METRICS[metric].kernel is not None


def power_of(metric: Metric) -> int | None:
    """Return how differences add up, for a search that knows it; None for any other way."""
    return METRICS[metric].power if isinstance(metric, str) else None


def single_costs(metric: Callable[[Matrix, Matrix], float], blocks: Sequence[slice], heights: Matrix) -> Matrix:
    """Return what one change costs in a function of points: a number's whole range, the cheapest other level."""
    width, costs = blocks[-1].stop, np.empty(len(blocks))
    for at, block in enumerate(blocks):
        n_levels = min(block.stop - block.start, MOST_COMPARED)
        points = np.zeros((max(2, n_levels), width))
        np.fill_diagonal(points[-n_levels:, block.start : block.start + n_levels], heights[at])
        costs[at] = min(metric(one, other) for one, other in combinations(points, 2))
    return costs


def proven_power(metric: Metric) -> int | None:
    """Return the same for proofs, which believe a function that says how its differences add up: 1 or 2."""
    if isinstance(metric, str):
        return power_of(metric)
    said = getattr(metric, "power", None)
    return said if said in (1, 2) else None
