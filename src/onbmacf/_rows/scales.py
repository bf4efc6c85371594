"""What the encoding of a table is made of: the range of each feature, its weight and its decimals.

N (fitted rows as numbers)  ->  scales_of, exact_decimals, readable_of  ->  FeatureSpace
"""

from typing import Any

import numpy as np

from onbmacf._base.arrays import Matrix
from onbmacf._base.missing import WEIGHTS
from onbmacf._rows.form import TableForm
from onbmacf._rows.precision import readable_decimals
from onbmacf.errors import ParameterError, TableError
from onbmacf.schema import Schema

MOST_DECIMALS = 15
HEADROOM = 2.0**49  # value * 10**decimals stays below this, so that decimal rounding removes the error of scaling


def weight_of(schema: Schema, name: Any) -> float:
    """Return what a change of a feature costs, relative to others."""
    rule = schema.rules.features.get(name)
    return 1.0 if rule is None else rule.weight


def weights_of(schema: Schema) -> Matrix:
    """Return the weight of each feature."""
    weights = [weight_of(schema, feature.name) for feature in schema.features]
    for feature, weight in zip(schema.features, weights, strict=True):
        if feature.missing and not WEIGHTS[0] <= weight <= WEIGHTS[1]:
            raise ParameterError(
                f"rule for {feature.name!r}: the weight of a feature with missing values must be from {WEIGHTS[0]:g} "
                f"to {WEIGHTS[1]:g}, got {weight!r}."
            )
    return np.array(weights)


def present(values: Matrix) -> Matrix:
    """Return the values that are not missing."""
    lacks = np.isnan(values)
    return values[~lacks] if lacks.any() else values


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
        elif feature.kind == "ordinal":
            span[position] = len(feature.levels or ()) - 1
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
    largest = max(np.abs(values).max(), 1e-280)
    return int(min(most, np.floor(np.log10(HEADROOM / largest))))


def readable_of(form: TableForm, N: Matrix) -> tuple[int | None, ...]:
    """Return the decimals of each continuous feature: the caller's own word, or read off the values."""
    return tuple(
        None
        if feature.kind != "continuous"
        else readable_decimals(present(N[:, place]), form.dtypes[place])
        if feature.decimals is None
        else feature.decimals
        for place, feature in enumerate(form.schema.features)
    )
