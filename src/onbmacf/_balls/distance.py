"""Distances over matrices: direct differences, columns left to right, so the sum never depends on the shape.

    A (m x d), B (k x d)  ->  distances  ->  m x k
    A (m x d), B (m x d)  ->  paired     ->  m

The expanded square (|a|^2 - 2ab + |b|^2) is never used: it loses all digits for near points far from zero. A difference
to a missing value shows in the sum, which is then made again from what differences cost (decision 0062).
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from onbmacf._balls.metrics import METRICS, Measure, Metric
from onbmacf._base.arrays import Matrix
from onbmacf._base.checks import error_words
from onbmacf._base.missing import as_costs, as_nan, may_lack
from onbmacf.errors import ParameterError

MANY_COLUMNS = 64  # from which on those without a difference are left out: most levels of a category with many
BLOCK_CELLS = 1 << 22  # 32 MB of float64 per block


def distances(A: Matrix, B: Matrix, metric: Metric) -> Matrix:
    """Return the distance of every line of A to every line of B."""
    if callable(metric):
        A, B = as_nan(A), as_nan(B)
        return np.array([[_called(metric, a, b) for b in B] for a in A], dtype=np.float64).reshape(len(A), len(B))
    total = np.zeros((len(A), len(B)))
    return _summed(total, _columns(A, B, A[:1]), lambda at: np.subtract.outer(A[:, at], B[:, at]), METRICS[metric])


def paired(A: Matrix, B: Matrix, metric: Metric) -> Matrix:
    """Return the distance of each line of A to the same line of B."""
    if callable(metric):
        return np.array([_called(metric, a, b) for a, b in zip(as_nan(A), as_nan(B), strict=True)], dtype=np.float64)
    return _summed(np.zeros(len(A)), _columns(A, B, B), lambda at: A[:, at] - B[:, at], METRICS[metric])


def _summed(total: Matrix, columns: Iterable[int], difference: Callable[[int], Matrix], measure: Measure) -> Matrix:
    """Add up the differences of all columns; again, where a value is missing, with what they cost."""
    for column in columns:
        measure.add(total, difference(column))
    if not may_lack(total):
        return measure.finish(total)
    total[...] = 0.0
    for column in columns:
        measure.add(total, as_costs(np.abs(difference(column))))
    return measure.finish(total)


def _columns(A: Matrix, B: Matrix, other: Matrix) -> Iterable[int]:
    """Return the columns to add up; of many, those in which A or B differs from `other`: the rest adds zeros."""
    if A.shape[1] <= MANY_COLUMNS or not len(A):
        return range(A.shape[1])
    return np.flatnonzero((other != A).any(axis=0) | (other != B).any(axis=0)).tolist()


def blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Cut rows into slices whose distances to `n_columns` others fit a block."""
    step = max(1, BLOCK_CELLS // max(1, n_columns))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def _called(metric: Callable[[Matrix, Matrix], float], a: Matrix, b: Matrix) -> float:
    try:
        value = float(metric(a, b))
    except Exception as error:
        raise ParameterError(f"metric must return a distance of at least 0, but raised {error_words(error)}") from error
    if not value >= 0:
        raise ParameterError(f"metric must return a distance of at least 0, got {value}.")
    return value
