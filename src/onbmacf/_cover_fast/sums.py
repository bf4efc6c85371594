"""Distances as the kernels compare them: the running sum (or maximum) before any root is taken.

    manhattan  sum |a - b|        euclidean  sum (a - b)^2        chebyshev  max |a - b|

Columns are taken left to right, as the plain algorithm does, so each sum has the plain algorithm's bits. Rounding is
monotone, so the sum over the nearest (farthest) corner of a box, taken in the same order, is never above (below) the
sum of any row in the box: box tests are exact, with no margin.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onbmacf._numba import kernel

MANHATTAN, EUCLIDEAN, CHEBYSHEV = 0, 1, 2
METRICS = {"manhattan": MANHATTAN, "euclidean": EUCLIDEAN, "chebyshev": CHEBYSHEV}


def to_limits(reach: NDArray[np.float64], metric: str) -> NDArray[np.float64]:
    """Return the largest sum inside each ball: a row is covered where `sum <= limit`.

    That is `distance < reach`, or `distance == 0` where reach is 0. The root is monotone, so the largest square
    whose root is below `reach` lies within a few steps of its square.
    """
    below = np.nextafter(reach, 0.0)
    if metric != "euclidean":
        return below
    limits = below * below
    for _ in range(8):
        higher = np.nextafter(limits, np.inf)
        limits = np.where(np.sqrt(higher) <= below, higher, limits)
    for _ in range(8):
        limits = np.where(np.sqrt(limits) > below, np.nextafter(limits, 0.0), limits)
    return limits


def to_distances(sums: NDArray[np.float64], metric: str) -> NDArray[np.float64]:
    """Return the distances that belong to these sums."""
    return np.sqrt(sums) if metric == "euclidean" else sums


@kernel
def add_term(total, gap, metric):
    """Add one column's gap (not negative) to a running sum."""
    if metric == MANHATTAN:
        return total + gap
    if metric == EUCLIDEAN:
        return total + gap * gap
    return max(total, gap)


@kernel
def box_sums(z, low, high, metric):
    """Return the sums from `z` to the nearest and to the farthest corner of a box."""
    near, far = 0.0, 0.0
    for column in range(len(z)):
        below, above = low[column] - z[column], z[column] - high[column]
        near = add_term(near, max(below, above, 0.0), metric)
        far = add_term(far, max(-below, -above), metric)
    return near, far


@kernel
def row_sums(z, columns, start, stop, metric, sums):
    """Write the sum from `z` to each row at positions `start` to `stop` into `sums`, columns left to right."""
    length = stop - start
    sums[:length] = 0.0
    for column in range(len(z)):
        value, others = z[column], columns[column, start:stop]
        if metric == MANHATTAN:
            for at in range(length):
                sums[at] += abs(value - others[at])
        elif metric == EUCLIDEAN:
            for at in range(length):
                sums[at] += (value - others[at]) * (value - others[at])
        else:
            for at in range(length):
                sums[at] = max(sums[at], abs(value - others[at]))
