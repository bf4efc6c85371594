"""Points of the caller's own in place of the encoding: what `space=` makes of rows, checked.

rows as numbers  ->  the caller's rows  ->  space  ->  Embedding.points, in which balls and neighbours live

Rows, changes and their distances stay in the table (docs/decisions/0135-space.md).
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, log10
from typing import Any

import numpy as np

from onbmacf._base.arrays import Matrix
from onbmacf._base.checks import shortened
from onbmacf._table.form import TableForm
from onbmacf.errors import ParameterError

DIGITS = 9  # of the largest number of a point: the last ones of a network's layer differ with the rows of a call
N_TWICE, SAME = 16, 1e-6  # rows that are asked again alone, and how near both answers must be
ROWS_AT_ONCE = 1 << 12
TINY = 1e-100


@dataclass(frozen=True, eq=False)
class Embedding:
    """A function from rows to points."""

    function: Callable[[Any], Any]
    form: TableForm
    width: int = 0  # columns of its points; 0 before it is known
    unit: float = 1.0  # the largest number in a fitted point

    @classmethod
    def of(cls, function: Any, form: TableForm, N: Matrix) -> "tuple[Embedding, Matrix]":
        """Return the function with what is known of it, and the points of the fitted rows."""
        if not callable(function):
            raise ParameterError(f"space must be a function from rows to points, got {shortened(function)}.")
        raw = cls(function, form)._asked(N)
        unit = max(float(np.abs(raw).max()), TINY)
        alone = cls(function, form, raw.shape[1])._asked(N[:1])
        again = cls(function, form, raw.shape[1])._asked(N[:N_TWICE])
        apart = max(float(np.abs(raw[: len(some)] - some).max()) for some in (alone, again))
        if apart > SAME * unit:
            name = cls(function, form).name
            raise ParameterError(f"space={name} makes other points of the same rows when it is asked again.")
        made = cls(function, form, raw.shape[1], unit)
        return made, made._rounded(raw)

    @property
    def name(self) -> str:
        """What the function is called: all that a saved map holds of it."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def points(self, N: Matrix) -> Matrix:
        """Return the points of rows."""
        return self._rounded(self._asked(N)) if len(N) else np.empty((0, self.width))

    def _rounded(self, points: Matrix) -> Matrix:
        return np.round(points, DIGITS - floor(log10(self.unit)))

    def _asked(self, N: Matrix) -> Matrix:
        starts = range(0, len(N), ROWS_AT_ONCE)
        return np.concatenate([self._of(N[start : start + ROWS_AT_ONCE]) for start in starts])

    def _of(self, N: Matrix) -> Matrix:
        points = np.asarray(self.function(self.form.rows_for_model(N)))
        if points.ndim != 2 or len(points) != len(N) or points.dtype.kind not in "fiub" or not points.shape[1]:
            shape = f"an array of shape {points.shape} and dtype {points.dtype}"
            due = "one row of numbers each is due"
            raise ParameterError(f"space={self.name} returned {shape} for {len(N):,} rows: {due}.")
        if self.width and points.shape[1] != self.width:
            raise ParameterError(f"space={self.name} returned {points.shape[1]} columns, and {self.width} in fit.")
        points = np.ascontiguousarray(points, dtype=np.float64)
        if not np.isfinite(points).all():
            n_bad = int((~np.isfinite(points)).any(axis=1).sum())
            raise ParameterError(f"space={self.name} returned {n_bad} of {len(N):,} points that are not finite.")
        return points
