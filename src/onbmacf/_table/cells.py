"""One column of the caller's cells <-> numbers, exactly: what is missing becomes NaN, what is no number none.

    column  ->  exact_numbers, level_codes  ->  one number per cell
    dtype   ->  given_dtype, cast           ->  numbers as the model gets them

Dates, durations, periods, complex numbers and text are not numbers here, whatever pandas can make of them.
"""

from decimal import Decimal
from functools import cache
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._base.arrays import Mask, Matrix
from onbmacf._base.checks import is_absent
from onbmacf._columns.kinds import LARGEST_EXACT

FEW_ROWS = 64  # so many values are looked up one by one, sooner than different ones are told apart
MOST_SHOWN = 60  # characters of a value in a message


def exact_numbers(column: Any) -> Matrix:
    """Return the cells of an array as float64: NaN where one is missing, infinite where one is no number."""
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "fiub":
        return column.astype(np.float64)
    if isinstance(getattr(dtype, "numpy_dtype", None), np.dtype) and dtype.numpy_dtype.kind in "fiub":
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.array([_number(value) for value in column.tolist()], dtype=np.float64)


def _number(value: Any) -> float:
    if isinstance(value, complex | np.complexfloating) and value.imag == 0:
        value = value.real
    if not isinstance(value, Real | Decimal | np.bool_):
        return np.nan if is_absent(value) else np.inf
    try:
        return float(value)
    except OverflowError:
        return np.inf
    except (TypeError, ValueError):  # pandas' and decimal's own words for "missing"
        return np.nan


def comes_back(column: Any, numbers: Matrix) -> Mask:
    """Say which cells are the same as their numbers; missing ones are."""
    dtype, lacks = getattr(column.dtype, "numpy_dtype", column.dtype), np.isnan(numbers)
    if isinstance(dtype, np.dtype) and dtype.kind in "iu":
        return lacks | (np.abs(numbers) < LARGEST_EXACT)
    if isinstance(dtype, np.dtype) and dtype.kind in "fb":
        return lacks | (dtype.itemsize <= 8) | (np.asarray(column) == numbers)
    both = zip(column.tolist(), numbers.tolist(), strict=True)
    return lacks | np.array([bool(value == number) for value, number in both], dtype=bool)


def level_codes(column: Any, code_of: dict[Any, int]) -> Matrix:
    """Return the code of each level; NaN where it is missing, -1 where it is unseen or nothing that can be a level."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        known = [_code(code_of, level) for level in column.categories.tolist()]
        return np.array([*known, np.nan], dtype=np.float64)[column.codes]
    if len(column) > FEW_ROWS:
        try:
            found, values = pd.factorize(column)
            known = [_code(code_of, level) for level in values]
            return np.array([*known, np.nan], dtype=np.float64)[found]  # factorize gives -1 for a missing value
        except TypeError:  # values that cannot be hashed, such as lists
            pass
    codes = np.array([_code(code_of, level) for level in column], dtype=np.float64)
    for place in np.flatnonzero(codes < 0).tolist():
        if is_absent(column[place]):
            codes[place] = np.nan
    return codes


def _code(code_of: dict[Any, int], level: Any) -> int:
    try:
        return code_of.get(level, -1)
    except Exception:  # a value that cannot be hashed, or a class of the caller's own, in which anything may happen
        return -1


def given_dtype(dtype: Any, kind: str, array_dtype: Any) -> Any:
    """Return the numpy dtype in which the model gets the numbers of a column."""
    if array_dtype is not None and array_dtype.kind in "fiu":
        return array_dtype
    plain = getattr(dtype, "numpy_dtype", getattr(dtype, "subtype", dtype))
    if isinstance(plain, np.dtype) and plain.kind in "fiub":
        return plain
    return np.dtype(np.int64 if kind == "integer" else np.float64)


def cast(values: Matrix, dtype: Any) -> Matrix:
    """Return numbers as they are in a dtype, or at its nearest end; NaN stays NaN."""
    if dtype == np.float64:
        return values
    low, high = ends(dtype)
    lacks = np.isnan(values)
    is_whole = not lacks.any()
    known = values if is_whole else np.where(lacks, 0.0, values)
    inside = np.minimum(np.maximum(known, low), high).astype(dtype).astype(np.float64)
    return inside if is_whole else np.where(lacks, np.nan, inside)


def cast_within(values: Matrix, dtype: Any, low: float, high: float) -> Matrix:
    """Return numbers as they are in a dtype; one that its rounding takes beyond an end is the next one inside."""
    given = cast(values, dtype)
    if dtype.kind != "f" or dtype.itemsize >= 8:
        return given
    narrow = given.astype(dtype)
    inside = np.where(given > high, np.nextafter(narrow, dtype.type(-np.inf)), narrow)
    inside = np.where(given < low, np.nextafter(narrow, dtype.type(np.inf)), inside)
    return inside.astype(np.float64)


def widened(values: Matrix, dtype: Any) -> Matrix:
    """Return numbers of a narrow float dtype as they are written: float32 has 0.1 as 0.10000000149.

    >>> widened(cast(np.array([0.1, 12.3]), np.dtype("f4")), np.dtype("f4")).tolist()
    [0.1, 12.3]
    """
    if dtype.kind != "f" or dtype.itemsize >= 8:
        return values
    return np.array([float(str(value)) for value in values.astype(dtype)], dtype=np.float64)


@cache
def ends(dtype: Any) -> tuple[float, float]:
    """Return the lowest and the highest number of a dtype that float64 holds, too."""
    if dtype.kind == "f":
        wide = np.finfo(np.float64 if dtype.itemsize > 8 else dtype)
        return float(wide.min), float(wide.max)
    if dtype.kind == "b":
        return 0.0, 1.0
    limits = np.iinfo(dtype)
    return float(limits.min), float(min(limits.max, 2**63 - 1024 if dtype.kind == "i" else 2**64 - 2048))


def shown(value: Any) -> str:
    """Return a value in words that fit into a message, whatever it is.

    >>> shown(10**400), shown(np.float64(5.5))
    ('a whole number of 401 digits', '5.5')
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, int) and abs(value) >= 10**MOST_SHOWN:
        n_digits = int(abs(value).bit_length() * 0.30102999566398120)  # log10(2): Python refuses to write long numbers
        return f"a whole number of {n_digits + (abs(value) >= 10**n_digits)} digits"
    try:
        words = repr(value).replace("\n", " ")
    except Exception:  # a class of the caller's own, in which anything may happen
        return f"a value of type {type(value).__name__}"
    return words if len(words) <= MOST_SHOWN else f"{words[:MOST_SHOWN]}..."
