"""Columns whose values are measured as numbers but are none: dates, times, durations, periods, decimals.

    column  ->  converter_of  ->  Converter, or None for any other column
    column  ->  Converter.numbers  ->  float64        float64  ->  Converter.values  ->  the caller's own dtype

Dates are whole days since 1970 where every value is a midnight, otherwise seconds, or microseconds where seconds do not
do. A kind of column is one line in CONVERSIONS (docs/decisions/0068-columns.md).
"""

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.arrays import objects
from onbmacf._base.checks import error_words, is_absent
from onbmacf.errors import TableError

UNITS = {"D": 86_400_000_000, "s": 1_000_000, "us": 1}  # microseconds in a unit
UNIT_WORDS = {"D": "days", "s": "seconds", "us": "microseconds"}
MOMENTS = ("date", "time", "period")  # what `holds` calls points in time
NAT = np.iinfo(np.int64).min  # what numpy makes of a missing time


@dataclass(frozen=True)
class Converter:
    """How the values of one column become numbers and come back."""

    kind: str  # a key of CONVERSIONS
    dtype: Any  # the caller's
    unit: str = ""  # "D", "s" or "us" of times; of decimals the number of their places

    def numbers(self, column: "pd.Series[Any]") -> NDArray[np.float64]:
        """Return the values as numbers: NaN where one is missing, infinity where one is of another kind."""
        try:
            if self.kind != "decimal" and _has_number(column):
                raise TypeError("a number is no date")
            return CONVERSIONS[self.kind].numbers(column, self)
        except (TypeError, ValueError, ArithmeticError, AttributeError):
            return np.array([self._single(value) for value in column.tolist()], dtype=np.float64)

    def values(self, numbers: NDArray[np.float64]) -> "pd.Series[Any]":
        """Return numbers as values in the caller's dtype."""
        array = self.array(numbers)
        return pd.Series(array, dtype=array.dtype, copy=False)

    def array(self, numbers: NDArray[np.float64]) -> Any:
        """Return numbers as an array in the caller's dtype."""
        return CONVERSIONS[self.kind].array(numbers, self)

    def comes_back(self, column: "pd.Series[Any]", numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Say which values are the same when their numbers are made values again; what has no number is."""
        same, known = np.ones(len(numbers), dtype=bool), np.flatnonzero(np.isfinite(numbers))
        given = column.iloc[known]
        try:
            made = self.array(numbers[known])
            if given.dtype == made.dtype and given.dtype.kind in "mM":
                same[known] = np.asarray(given.array == made, dtype=bool)
                return same
        except (ValueError, ArithmeticError):  # a decimal with too many digits, in one of the cells
            made = [self._made(numbers[at : at + 1]) for at in known]
        same[known] = [_is_same(value, own, self) for value, own in zip(given.tolist(), made, strict=True)]
        return same

    def _made(self, number: NDArray[np.float64]) -> Any:
        try:
            return self.array(number)[0]
        except (ValueError, ArithmeticError):
            return None

    @property
    def precision(self) -> str:
        """In words: how exactly values are kept."""
        if self.kind == "decimal":
            return f"its decimals have {self.unit} places at most, and as many digits as float64 holds"
        if self.kind == "period":
            return f"its periods are {self.dtype}"
        zone = zone_of(self.dtype)
        clock = "" if self.kind == "duration" else f", in {zone}" if zone is not None else ", without a time zone"
        return f"its values are kept in {UNIT_WORDS[self.unit]}{clock}"

    def _single(self, value: Any) -> float:
        if is_absent(value):
            return np.nan
        if self.kind != "decimal" and _is_number(value):
            return np.inf
        try:
            return float(CONVERSIONS[self.kind].numbers(pd.Series([value], dtype=object), self)[0])
        except (TypeError, ValueError, ArithmeticError, AttributeError):
            return np.inf


def _is_same(value: Any, made: Any, by: Converter) -> bool:
    """Say whether a value is the one that was made of its number, in whatever type it was given."""
    try:
        if by.kind == "decimal":
            return bool(value == made if isinstance(value, Decimal) else float(value) == float(made))
        if by.kind == "period":
            return bool(pd.Period(value, freq=by.dtype.freq) == made)
        if by.kind == "duration":
            return bool(pd.Timedelta(value) == pd.Timedelta(made))
        given, own = pd.Timestamp(value), pd.Timestamp(made)
        if isinstance(value, str) and given.tz is None:  # text is read on the clock of the column
            given = given.tz_localize(own.tz)
        return bool(given == own)
    except (TypeError, ValueError, ArithmeticError):
        return False


def converter_of(column: "pd.Series[Any]") -> Converter | None:
    """Return how a column is converted; None for numbers, text, categories and what nobody can measure."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "fiub":
        return None
    try:
        return next((kind.made(column) for kind in CONVERSIONS.values() if kind.fits(column)), None)
    except (TypeError, ValueError, ArithmeticError) as error:  # times with and without a zone, a signalling NaN
        raise TableError(f"column {column.name!r} cannot be read: {error_words(error)}") from error


def days_in(by: Converter | None) -> float:
    """Return how many days a unit of a column is; 1 for periods and for what is a number anyway."""
    is_time = by is not None and by.kind in ("date", "time", "duration")
    return UNITS[by.unit] / UNITS["D"] if is_time and by is not None else 1.0


def size_unit(by: Converter | None) -> str:
    """Return in what changes of a column are measured: "days" or "periods"; nothing where it is its own unit."""
    if by is None or by.kind == "decimal":
        return ""
    return "periods" if by.kind == "period" else "days"


def holds(by: Converter | None) -> str:
    """Return in a word what a column holds, where it is neither numbers nor levels: a time of whole days is a date.

    >>> holds(None), holds(Converter("time", np.dtype("M8[us]"), "D")), holds(Converter("duration", None, "s"))
    ('', 'date', 'duration')
    """
    if by is None or by.kind == "decimal":
        return ""
    return "date" if by.unit == "D" and by.kind == "time" else by.kind


def measured(column: "pd.Series[Any]") -> NDArray[np.float64]:
    """Return a column as numbers for figures: times and durations in days, periods counted, NaN for a missing value.

    >>> measured(pd.Series([pd.Timestamp("1970-01-02"), pd.Timestamp("1970-01-03 12:00")])).tolist()
    [1.0, 2.5]
    """
    by = converter_of(column)
    if by is None:
        return np.asarray(pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan))
    return by.numbers(column) * days_in(by)


def unit_words(by: Converter | None) -> str:
    """Return in words what the numbers of a column count: columns with the same words can be compared.

    >>> unit_words(None), unit_words(Converter("time", np.dtype("M8[us]"), "s"))
    ('numbers', 'seconds since 1970')
    """
    if by is None or by.kind == "decimal":
        return "numbers"
    if by.kind == "period":
        return str(by.dtype)
    zone = zone_of(by.dtype)
    since = "" if by.kind == "duration" else " since 1970" if zone is None else f" since 1970 in {zone}"
    return UNIT_WORDS[by.unit] + since


def _objects(column: "pd.Series[Any]", *kinds: type) -> bool:
    """Say whether a column of objects holds values of these types and nothing else."""
    if not pd.api.types.is_object_dtype(column.dtype):
        return False
    present = column.dropna().tolist()
    return bool(present) and all(type(value) in kinds for value in present)


def _has_number(column: "pd.Series[Any]") -> bool:
    """Say whether a column has plain numbers, which pandas would take for nanoseconds."""
    is_open = pd.api.types.is_object_dtype(column.dtype)
    return column.dtype.kind in "fiub" or (is_open and any(map(_is_number, column.tolist())))


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, np.timedelta64)  # which numpy makes a number


def _arrow(column: "pd.Series[Any]", *names: str) -> bool:
    dtype = column.dtype
    return isinstance(dtype, pd.ArrowDtype) and str(dtype.pyarrow_dtype).startswith(names)


def _microseconds(times: "pd.Series[Any]") -> NDArray[np.float64]:
    """Return times or durations in microseconds, exactly as long as they are within 285 years of 1970."""
    by_unit = times.array if isinstance(times.dtype, np.dtype) else times.dt  # the latter takes ten times as long
    plain = by_unit.as_unit("us").to_numpy(dtype="datetime64[us]" if times.dtype.kind == "M" else "timedelta64[us]")
    whole = plain.astype(np.int64)
    return np.where(whole == NAT, np.nan, whole)


def _unit_of(microseconds: NDArray[np.float64]) -> str:
    present = microseconds[~np.isnan(microseconds)]
    return next(unit for unit, size in UNITS.items() if (present % size == 0).all())


def _wall(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return times as the clock on the wall shows them, without a time zone."""
    times = column if column.dtype.kind == "M" else pd.to_datetime(column)
    return times if getattr(times.dtype, "tz", None) is None else times.dt.tz_localize(None)


def _universal(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return times of a time zone in UTC, without it; others as they are."""
    times = column if column.dtype.kind == "M" else pd.to_datetime(column)
    return times if getattr(times.dtype, "tz", None) is None else times.dt.tz_convert("UTC").dt.tz_localize(None)


def _made_of_times(column: "pd.Series[Any]") -> Converter:
    """Whole days are counted on the wall's clock, so that a change of clocks does not matter; others in UTC."""
    unit = _unit_of(_microseconds(_wall(column)))
    unit = unit if unit == "D" else _unit_of(_microseconds(_universal(column)))
    return Converter("time", column.dtype, unit)


def zone_of(dtype: Any) -> Any:
    """Return the time zone of a dtype; None where it has none."""
    tz = getattr(dtype, "tz", None)
    return tz if tz is not None or not isinstance(dtype, pd.ArrowDtype) else getattr(dtype.pyarrow_dtype, "tz", None)


def _numbers_of_times(column: "pd.Series[Any]", by: Converter) -> NDArray[np.float64]:
    zone = zone_of(by.dtype)
    times = column if column.dtype.kind == "M" else pd.to_datetime(column)
    if zone is not None and getattr(times.dtype, "tz", None) is None:
        times = times.dt.tz_localize(zone)
    elif zone is not None:
        times = times.dt.tz_convert(zone)
    return _microseconds(_wall(times) if by.unit == "D" else _universal(times)) / UNITS[by.unit]


def _times(numbers: NDArray[np.float64], by: Converter) -> Any:
    times = pd.DatetimeIndex(_whole(numbers, by.unit).view("datetime64[us]"))
    zone = zone_of(by.dtype)
    if zone is not None and by.unit == "D":
        times = times.tz_localize(zone, ambiguous=np.ones(len(times), dtype=bool), nonexistent="shift_forward")
    elif zone is not None:
        times = times.tz_localize("UTC").tz_convert(zone)
    if pd.api.types.is_object_dtype(by.dtype):
        return times.to_pydatetime()
    return times.astype(by.dtype).array


def _whole(numbers: NDArray[np.float64], unit: str) -> NDArray[np.int64]:
    """Return numbers in a unit as whole microseconds; a missing one as numpy has it."""
    lacks = np.isnan(numbers)
    return np.where(lacks, NAT, np.round(np.where(lacks, 0.0, numbers)).astype(np.int64) * UNITS[unit])


def _dates(numbers: NDArray[np.float64], by: Converter) -> Any:
    return _of_objects(pd.DatetimeIndex(_whole(numbers, "D").view("datetime64[us]")).date, by)


def _of_objects(values: NDArray[Any], by: Converter) -> Any:
    """Return objects as they are, or in the dtype of pyarrow that the caller has them in."""
    return values if pd.api.types.is_object_dtype(by.dtype) else pd.array(values, dtype=by.dtype)


def _durations(numbers: NDArray[np.float64], by: Converter) -> Any:
    found = pd.TimedeltaIndex(_whole(numbers, by.unit).view("timedelta64[us]"))
    return found.to_pytimedelta() if pd.api.types.is_object_dtype(by.dtype) else found.astype(by.dtype).array


def _numbers_of_periods(column: "pd.Series[Any]", by: Converter) -> NDArray[np.float64]:
    whole = column.astype(by.dtype).array.asi8
    return np.where(whole == NAT, np.nan, whole.astype(np.float64))


def _periods(numbers: NDArray[np.float64], by: Converter) -> Any:
    lacks = np.isnan(numbers)
    whole = np.where(lacks, NAT, np.round(np.where(lacks, 0.0, numbers)).astype(np.int64))
    return pd.arrays.PeriodArray(whole, dtype=by.dtype)


def _made_of_decimals(column: "pd.Series[Any]") -> Converter:
    places = [-int(value.as_tuple().exponent) for value in column.dropna().tolist() if value.is_finite()]
    return Converter("decimal", column.dtype, str(max([0, *places])))


def _decimals(numbers: NDArray[np.float64], by: Converter) -> Any:
    step = Decimal(1).scaleb(-int(by.unit))
    found = [None if np.isnan(value) else Decimal(repr(float(value))).quantize(step) for value in numbers]
    return _of_objects(objects(found), by)


class Conversion(NamedTuple):
    """How one kind of column is recognised, and converted both ways."""

    fits: "Callable[[pd.Series[Any]], bool]"
    made: "Callable[[pd.Series[Any]], Converter]"
    numbers: "Callable[[pd.Series[Any], Converter], NDArray[np.float64]]"
    array: Callable[[NDArray[np.float64], Converter], Any]


CONVERSIONS: dict[str, Conversion] = {  # the first that fits
    "date": Conversion(
        lambda c: _arrow(c, "date") or _objects(c, datetime.date),
        lambda c: Converter("date", c.dtype, "D"),
        lambda c, by: _microseconds(pd.to_datetime(c.astype(object))) / UNITS["D"],
        _dates,
    ),
    "time": Conversion(
        lambda c: (
            pd.api.types.is_datetime64_any_dtype(c.dtype)
            or _arrow(c, "timestamp")
            or _objects(c, datetime.datetime, pd.Timestamp)
        ),
        _made_of_times,
        _numbers_of_times,
        _times,
    ),
    "duration": Conversion(
        lambda c: (
            pd.api.types.is_timedelta64_dtype(c.dtype)
            or _arrow(c, "duration")
            or _objects(c, datetime.timedelta, pd.Timedelta)
        ),
        lambda c: Converter("duration", c.dtype, _unit_of(_microseconds(pd.to_timedelta(c)))),
        lambda c, by: _microseconds(pd.to_timedelta(c)) / UNITS[by.unit],
        _durations,
    ),
    "period": Conversion(
        lambda c: isinstance(c.dtype, pd.PeriodDtype),
        lambda c: Converter("period", c.dtype),
        _numbers_of_periods,
        _periods,
    ),
    "decimal": Conversion(
        lambda c: _arrow(c, "decimal") or _objects(c, Decimal),
        _made_of_decimals,
        lambda c, by: np.array([np.nan if pd.isna(value) else float(value) for value in c.tolist()], dtype=np.float64),
        _decimals,
    ),
}
