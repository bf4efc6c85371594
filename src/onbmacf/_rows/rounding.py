"""Rounding many values at once, each to the decimals of its feature: to the bit what `numpy.round` does per feature.

values, the feature of each  ->  Rounding.of  ->  rounded values
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from onbmacf._base.arrays import Matrix, Rows


class Rounding(NamedTuple):
    """Powers of ten per feature; the one that does nothing is 1."""

    up: Matrix  # values are multiplied by this before they are made whole: decimals
    down: Matrix | None  # or divided by this: tens, hundreds, ...; None if none is

    @classmethod
    def to(cls, decimals: Sequence[int]) -> "Rounding":
        """Return how to round to these decimals, one number per feature."""
        up, down = ([_power_of_ten(sign * count) for count in decimals] for sign in (1, -1))
        return cls(np.array(up), np.array(down) if max(down, default=1.0) > 1 else None)

    def of(self, values: Matrix, features: Rows) -> Matrix:
        """Return the values rounded.

        >>> Rounding.to([1, -2]).of(np.array([0.25, 0.35, 250.0]), np.array([0, 0, 1])).tolist()
        [0.2, 0.4, 200.0]
        """
        up = self.up[features]
        if self.down is None:
            return np.rint(values * up) / up
        down = self.down[features]
        return np.rint(values * up / down) / up * down


def _power_of_ten(exponent: int) -> float:
    """Return 10 to a power, at least 1, as `numpy.round` has it: tens multiplied, which is not exact beyond 10**22."""
    return prod([10.0] * exponent, start=1.0)
