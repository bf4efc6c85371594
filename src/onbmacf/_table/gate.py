"""The gate for rows: a row passes where every cell is what the model will be given, and lies at a finite point.

    frame  ->  admit  ->  Admitted: numbers, encoded points, and the reason for each row that does not pass
    numbers of any points  ->  as_given  ->  the numbers that the model gets

Each cell must survive number -> fitted dtype -> number: 300 does not fit int8, 5.5 is no whole number, 1e300 is no
float32. A float is rounded to the precision of its column, as it would be in the caller's own frame. What is admitted
is what is asked, checked against the rules and returned (docs/decisions/0056-one-gate-for-rows.md).
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from onbmacf._base.arrays import Mask, Matrix, in_steps
from onbmacf._columns.converters import UNIT_WORDS
from onbmacf._columns.kinds import LARGEST_EXACT
from onbmacf._table.cells import cast, shown
from onbmacf._table.form import TableForm
from onbmacf._table.space import FeatureSpace
from onbmacf.schema import Feature

FARTHEST = 1e80  # fitted ranges from the lowest fitted value: what lies nearer is apart from missing values


class Admitted(NamedTuple):
    """The rows of a call, one line each; numbers and points mean nothing where there is a fault."""

    N: Matrix
    z: Matrix
    faults: dict[int, str]  # why a row cannot be explained, by position


def admit(space: FeatureSpace, frame: pd.DataFrame) -> Admitted:
    """Turn rows into numbers and points; a row that cannot be turned exactly is kept out, with the reason."""
    N = space.form.numbers(frame)
    faults = space.form.faults(frame, N)
    is_misfit = np.zeros(N.shape, dtype=bool)
    for dtype, places in space.form.given_together:
        number = N[:, places]
        given = cast(number, dtype)
        is_misfit[:, places] = _changes(number, given, dtype)
        N[:, places] = given
    for position in _places(is_misfit):
        dtype = space.form.given_dtypes[position]
        what = f"is not a {'number' if dtype.kind == 'f' else 'whole number'} that fits its column's dtype {dtype}"
        _note(faults, is_misfit[:, position], space.schema.features[position], frame, what)
    for position, converter in space.form.converters:
        feature = space.schema.features[position]
        if feature.kind == "integer":  # a time of day in a column of days would be rounded silently
            what = f"is not a whole number of {UNIT_WORDS.get(converter.unit, 'units')}, as the fitted values are"
            number = np.where(np.isfinite(N[:, position]), N[:, position], 0.0)
            _note(faults, number % 1 != 0, feature, frame, what)
        what = f"is not kept in this column: {converter.precision}"
        _note(faults, ~converter.comes_back(frame[feature.name], N[:, position]), feature, frame, what)
    z = _encoded(space, N, faults)
    is_far = ~(np.abs(z[:, [block.start for block in space.blocks]]) <= FARTHEST) & ~np.isnan(N)  # levels never are
    for position in _places(is_far):
        what = "lies too far from the fitted values to compute with"
        _note(faults, is_far[:, position], space.schema.features[position], frame, what)
    z[list(faults)] = 0.0
    return Admitted(N, z, faults)


def _places(bad: Mask) -> list[int]:
    """Return the features that are marked in some row."""
    return np.flatnonzero(bad.any(axis=0)).tolist() if bad.any() else []


def _encoded(space: FeatureSpace, N: Matrix, faults: dict[int, str]) -> Matrix:
    """Return the points of the rows without a fault; 0 for the others."""
    with np.errstate(over="ignore"):
        if not faults:
            return space.encode_numbers(N)
        good = np.delete(np.arange(len(N)), list(faults))
        z = np.zeros((len(N), space.width))
        for lines in in_steps(len(good), space.width):
            z[good[lines]] = space.encode_numbers(N[good[lines]])
    return z


def as_given(form: TableForm, N: Matrix) -> Matrix:
    """Return numbers as the model gets them: in the precision and within the ends of their columns."""
    given = N
    for position, dtype in form.narrow_dtypes:
        given = N.copy() if given is N else given
        given[:, position] = cast(N[:, position], dtype)
    return given


def _changes(value: Matrix, given: Matrix, dtype: Any) -> Mask:
    """Say which numbers a dtype would change by more than its precision; whole ones by anything."""
    if dtype.kind == "f":
        precision = float(np.finfo(dtype).eps)
        with np.errstate(invalid="ignore", over="ignore"):
            return np.abs(given - value) > precision * np.abs(value)
    return (given != value) & ~np.isnan(value) | (np.abs(value) >= LARGEST_EXACT)


def _note(faults: dict[int, str], bad: Mask, feature: Feature, frame: pd.DataFrame, what: str) -> None:
    """Note what is wrong with the values of a feature in some rows, unless something else is wrong already."""
    for row in np.flatnonzero(bad).tolist():
        faults.setdefault(row, f"column {feature.name!r}: {shown(frame[feature.name].iloc[row])} {what}.")
