"""Distances as the kernels compare them: the running sum (or maximum), before any square root.

    manhattan  sum |a - b|        euclidean  sum (a - b)^2        chebyshev  max |a - b|

Columns are added left to right, as in the plain algorithm, so every sum is equal to the plain one bit for bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.metrics import METRICS


def to_limits(reach: NDArray[np.float64], metric: str) -> NDArray[np.float64]:
    """Return the largest sum inside each ball: a row is covered where `sum <= limit`.

    That is `distance < reach`, or `distance == 0` where reach is 0. Roots are correctly rounded and monotone,
    so the largest square whose root is below `reach` is within a few floating-point steps of its square.
    """
    below = np.nextafter(reach, 0.0)
    if metric != "euclidean":
        return below
    with np.errstate(over="ignore", under="ignore"):
        limits = below * below
        for _ in range(4):
            higher = np.nextafter(limits, np.inf)
            limits = np.where(np.sqrt(higher) <= below, higher, limits)
        for _ in range(4):
            limits = np.where(np.sqrt(limits) > below, np.nextafter(limits, 0.0), limits)
    return limits


def to_distances(sums: NDArray[np.float64], metric: str) -> NDArray[np.float64]:
    """Return the distances that belong to these sums."""
    return METRICS[metric].finish(sums)


def to_sums(distances: NDArray[np.float64], metric: str) -> NDArray[np.float64]:
    """Return sums that are not below those of which these distances were made."""
    return np.nextafter(distances * distances, np.inf) * (1 + 1e-15) if metric == "euclidean" else distances
