"""What the encoding of a table is made of: the range, weight and number of decimals of each feature."""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from onbmacf._base.arrays import Matrix, Rows
from onbmacf._table.form import TableForm
from onbmacf.errors import TableError
from onbmacf.schema import Feature, Schema

FEW = 2  # decimals that a table may have whatever its range
DIGITS = 3  # the range has 10**3 to 10**4 steps
MOST = 290  # decimals: 10**290 times a small number is still a number of float64
SHORTEST = 1e-280  # range of a feature: within a shorter one, MOST decimals write too few values
MOST_DECIMALS = 15  # that float64 brings back as they were written
MOST_COLUMNS = 1000  # levels of an immutable category that have a column each: with as many rows, they fill the memory
ASIDE = 2.0**34  # of identifiers: a million of them are less than 1e-4 apart, and two more than rounding errors
HEADROOM = 2.0**49  # value * 10**decimals stays below this, so that decimal rounding removes the error of scaling


# --- rounding ---------------------------------------------------------------------------------------------------------


class Rounding(NamedTuple):
    """Powers of ten per feature; the one that does nothing is 1."""

    up: Matrix  # values are multiplied by this before they are made whole: decimals
    down: Matrix | None  # or divided by this: tens, hundreds, ...; None if none is

    @classmethod
    def to(cls, decimals: Sequence[int]) -> "Rounding":
        """Return how to round to these decimals, one number per feature."""
        # Tens multiplied, as `numpy.round` does it: beyond 10**22 that is not what 10.0**count gives.
        up, down = ([prod([10.0] * (sign * count), start=1.0) for count in decimals] for sign in (1, -1))
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


# --- decimals ---------------------------------------------------------------------------------------------------------


def of_range(span: float) -> int:
    """Return the decimals with which a range has 1,000 to 10,000 steps; whole numbers at least.

    >>> of_range(31.2), of_range(0.05), of_range(250_000)
    (2, 5, 0)
    """
    return 0 if span <= 0 else int(np.clip(DIGITS - np.floor(np.log10(span)), 0, MOST))


def own_decimals(values: Matrix, dtype: object, most: int, n_others: int = 0) -> int | None:
    """Return the fewest decimals that write all values exactly, in their own precision; None if `most` do not.

    So many others may need more.
    """
    narrow = dtype if isinstance(dtype, np.dtype) and dtype.kind == "f" else np.dtype(np.float64)
    exact = values.astype(narrow)
    for decimals in range(most + 1):
        if np.count_nonzero(np.round(values, decimals).astype(narrow) != exact) <= n_others:
            return decimals
    return None


# --- scales -----------------------------------------------------------------------------------------------------------


def weight_of(schema: Schema, name: Any) -> float:
    """Return what a change of a feature costs, relative to others."""
    rule = schema.rules.features.get(name)
    return 1.0 if rule is None else rule.weight


def weights_of(schema: Schema) -> Matrix:
    """Return the weight of each feature."""
    return np.array([weight_of(schema, feature.name) for feature in schema.features])


def present(values: Matrix) -> Matrix:
    """Return the values that are not missing."""
    lacks = np.isnan(values)
    return values[~lacks] if lacks.any() else values


def is_aside(feature: Feature) -> bool:
    """Say whether a category is set aside: held, or immutable with more levels than are worth a column each."""
    is_many = feature.immutable and len(feature.levels or ()) > MOST_COLUMNS
    return feature.kind == "categorical" and (feature.held or is_many)


def scales_of(form: TableForm, N: Matrix) -> tuple[Matrix, Matrix]:
    """Return per feature its lowest value and its length: the range of numbers, the number of ranks less 1, else 1."""
    low, span = np.zeros(N.shape[1]), np.ones(N.shape[1])
    for position, feature in enumerate(form.schema.features):
        if feature.is_numeric:
            low[position] = np.nanmin(N[:, position])
            with np.errstate(over="ignore"):
                span[position] = np.nanmax(N[:, position]) - low[position]
            if not np.isfinite(span[position]):
                raise TableError(f"column {feature.name!r} spans more than float64 can hold. Rescale it.")
            if 0 < span[position] < SHORTEST:
                raise TableError(
                    f"column {feature.name!r} spans {span[position]:g}, less than the {SHORTEST:g} in which float64 "
                    "has values to change to. Rescale it."
                )
        elif feature.kind == "ordinal":
            span[position] = len(feature.levels or ()) - 1
        elif is_aside(feature):
            span[position] = ASIDE
    span[span == 0] = 1.0  # a constant column is kept, and nothing is divided by zero
    return low, span


def exact_decimals(values: Matrix, dtype: Any) -> int | None:
    """Return decimals to which unscaled values can be rounded so that fitted ones come back exactly, or None."""
    most = most_decimals(values, MOST_DECIMALS)
    narrow = dtype if isinstance(dtype, np.dtype) and dtype.kind == "f" else np.dtype(np.float64)
    if most >= 0 and np.array_equal(np.round(values, most).astype(narrow), values.astype(narrow)):
        return most
    return None


def most_decimals(values: Matrix, most: int) -> int:
    """Return the most decimals to which values can be rounded without a loss; rounding removes the error of scaling."""
    largest = max(np.abs(values).max(), SHORTEST)
    return int(min(most, np.floor(np.log10(HEADROOM / largest))))


def readable_of(form: TableForm, N: Matrix) -> tuple[int | None, ...]:
    """Return the decimals of each continuous feature: the caller's own word, or read off the values."""
    decimals: list[int | None] = []
    for place, feature in enumerate(form.schema.features):
        found = feature.decimals if feature.kind == "continuous" else None
        if feature.kind == "continuous" and found is None:
            values = present(N[:, place])
            needed = of_range(float(values.max() - values.min()))
            found = own_decimals(values, form.dtypes[place], max(FEW, needed))
            found = needed if found is None else found
        decimals.append(found)
    return tuple(decimals)
