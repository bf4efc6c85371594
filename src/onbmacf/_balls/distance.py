"""Distances over matrices: direct differences, columns left to right, so the sum never depends on the shape.

    A (m x d), B (k x d)  ->  distances  ->  m x k
    A (m x d), B (m x d)  ->  paired     ->  m

The expanded square (|a|^2 - 2ab + |b|^2) is never used: it loses all digits for near points far from zero.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onbmacf._base.checks import check_choice
from onbmacf.errors import ParameterError

Matrix = NDArray[np.float64]
Metric = str | Callable[[Matrix, Matrix], float]

METRICS = ("manhattan", "euclidean", "chebyshev")
BLOCK_CELLS = 1 << 22  # 32 MB of float64 per block


def check_metric(metric: Any) -> Metric:
    """Return a metric's name or a callable of two points."""
    return metric if callable(metric) else check_choice("metric", metric, METRICS)


def distances(A: Matrix, B: Matrix, metric: Metric) -> Matrix:
    """Return the distance of every line of A to every line of B."""
    if callable(metric):
        return np.array([[_called(metric, a, b) for b in B] for a in A], dtype=np.float64).reshape(len(A), len(B))
    total = np.zeros((len(A), len(B)))
    for column in range(A.shape[1]):
        _add(total, np.subtract.outer(A[:, column], B[:, column]), metric)
    return np.sqrt(total) if metric == "euclidean" else total


def paired(A: Matrix, B: Matrix, metric: Metric) -> Matrix:
    """Return the distance of each line of A to the same line of B."""
    if callable(metric):
        return np.array([_called(metric, a, b) for a, b in zip(A, B, strict=True)], dtype=np.float64)
    total = np.zeros(len(A))
    for column in range(A.shape[1]):
        _add(total, A[:, column] - B[:, column], metric)
    return np.sqrt(total) if metric == "euclidean" else total


def blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Cut rows into slices whose distances to `n_columns` others fit a block."""
    step = max(1, BLOCK_CELLS // max(1, n_columns))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def _add(total: Matrix, difference: Matrix, metric: str) -> None:
    if metric == "euclidean":
        total += np.square(difference, out=difference)
    elif metric == "chebyshev":
        np.maximum(total, np.abs(difference, out=difference), out=total)
    else:
        total += np.abs(difference, out=difference)


def _called(metric: Callable[[Matrix, Matrix], float], a: Matrix, b: Matrix) -> float:
    value = float(metric(a, b))
    if not value >= 0:
        raise ParameterError(f"metric must return a distance of at least 0, got {value}.")
    return value
