"""Dates, times, durations and periods in rules: text until the column is known, then numbers in its unit.

    value  ->  bound  ->  text ("2024-05-31", "7 days", "2024Q2"), or the number that it is
    text, Converter  ->  end_in, step_in  ->  Amount: a number in the column's unit that reads as the text

Text is read in one way only: dates as ISO 8601 writes them, durations with their units (decision 0068).
"""

import datetime
import re
from collections.abc import Callable, Hashable, Iterable
from decimal import Decimal
from math import isfinite, isinf
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._base.checks import did_you_mean, is_number, listed, plain_number, shortened
from onbmacf._columns.converters import UNITS, Converter, converter_of, zone_of
from onbmacf.errors import ParameterError, TableError

ALLOWED = {  # by kind of column
    "date": "a date such as '2024-05-31'",
    "time": "a date or a time such as '2024-05-31' or '2024-05-31 12:30'",
    "duration": "a duration such as '7 days', '36h' or pd.Timedelta(hours=36)",
    "period": "a period such as '2024-05', not longer than those of the column",
    "decimal": "a finite number",
}


class Amount(float):
    """A number in the unit of a column, which reads as the caller wrote it.

    >>> low = Amount(19_874, "2024-05-31")
    >>> print(low, low + 1)
    2024-05-31 19875.0
    """

    text: str

    def __new__(cls, value: float, text: str) -> "Amount":
        made = super().__new__(cls, value)
        made.text = text
        return made

    def __getnewargs__(self) -> Any:
        return float(self), self.text

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return repr(self.text)

    def __format__(self, how: str) -> str:
        return self.text


def bound(name: str, value: Any) -> Any:
    """Check for an end or a step of a rule: numbers stay numbers, anything else that can be measured becomes text.

    >>> bound("low", datetime.date(2024, 5, 31)), bound("step", pd.Timedelta(days=7)), bound("high", 65)
    ('2024-05-31', '7 days', 65)
    """
    value = float(value) if isinstance(value, Decimal) and not value.is_snan() else value
    if not isinstance(value, np.timedelta64) and is_number(value):  # which numpy makes a number
        return value if isinstance(value, Amount) else plain_number(value)
    kinds = (str, datetime.date, datetime.timedelta, np.datetime64, np.timedelta64, pd.Period)
    text = written(value) if isinstance(value, kinds) else ""
    if not any(_reads(read, text) for read in (read_time, read_duration, _read_period, pd.PeriodDtype)):
        allowed = "a number, a date, a time, a duration or a period"
        raise ParameterError(f"{name} must be {allowed}, got {shortened(value)}.")
    return text


def written(value: Any) -> str:
    """Return a date, time, duration or period as the text that is read back as the same; text as it is.

    >>> written(pd.Timestamp("2024-05-31")), written(datetime.timedelta(hours=36)), written(pd.Period("2024Q2"))
    ('2024-05-31', '1 days 12:00:00', '2024Q2')
    """
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, datetime.timedelta | np.timedelta64):
        value = pd.Timedelta(value)
    elif isinstance(value, np.datetime64):
        value = pd.Timestamp(value)
    return str(value).removesuffix(" 00:00:00").removeprefix("0 days ")


def read_time(text: str) -> pd.Timestamp:
    """Return the time that a text in the form of ISO 8601 says."""
    return pd.Timestamp(datetime.datetime.fromisoformat(text))


def is_date_text(value: Any) -> bool:
    """Say whether a value is text that says a date.

    >>> is_date_text("2024-05-31"), is_date_text("20240531"), is_date_text("soon")
    (True, False, False)
    """
    return isinstance(value, str) and bool(re.match(r"\d{4}-\d\d-\d\d", value)) and _reads(read_time, value)


def is_moment_text(value: Any) -> bool:
    """Say whether the end of a range is a point in time, as text: a date, a time or a period, but no duration.

    >>> [is_moment_text(value) for value in ("2024-05-31 12:30", "2024Q2", "7 days", 65)]
    [True, True, False, False]
    """
    text = value.text if isinstance(value, Amount) else value
    return isinstance(text, str) and any(_reads(read, text) for read in (read_time, _read_period))


def read_duration(text: str) -> pd.Timedelta:
    """Return the duration that a text says; a number alone has no unit."""
    if re.fullmatch(r"[-+.\d]*", text) or pd.isna(found := pd.Timedelta(text)):
        raise ValueError(text)
    return found


def _read_period(text: str) -> Any:
    if not re.match(r"\d{4}", text):
        raise ValueError(text)
    return pd.Period(text)


def _reads(read: Callable[[str], Any], text: str) -> bool:
    try:
        read(text)
    except (ValueError, TypeError, OverflowError):
        return False
    return True


def value_in(text: str, by: Converter) -> Any:
    """Return the value of a column that a text says; a ValueError where it says none."""
    if by.kind == "duration":
        return read_duration(text)
    if by.kind == "period":
        period, freq = _read_period(text), by.dtype.freq
        first, last = (period.asfreq(freq, how=how) for how in ("start", "end"))
        if first != last:
            raise ValueError(text)
        return first
    found, zone = read_time(text), zone_of(by.dtype)
    if found.tz is not None and zone is None:
        raise ValueError(text)
    return found.tz_localize(zone) if found.tz is None else found


def with_dates(table: pd.DataFrame, names: Iterable[Hashable]) -> pd.DataFrame:
    """Return a table in which some columns of text are dates or times; an error that names the first other value."""
    names = [names] if isinstance(names, str) else list(names)
    for name in names:
        if name not in table.columns:
            known = did_you_mean(name, table.columns)
            raise TableError(f"dates names {name!r}, which is not a column.{known} Columns: {listed(table.columns)}.")
    found = {name: _dates(table[name]) for name in names if converter_of(table[name]) is None}
    return pd.DataFrame({name: found.get(name, table[name]) for name in table.columns}) if found else table


def _dates(column: "pd.Series[Any]") -> "pd.Series[Any]":
    for row, value in enumerate(column.tolist()):
        if not pd.isna(value) and not (isinstance(value, str) and _reads(read_time, value.strip())):
            allowed = "written as 2024-05-31 or 2024-05-31 12:30"
            raise TableError(f"column {column.name!r} must hold dates {allowed}, got {value!r} at position {row}.")
    try:
        return pd.to_datetime(column, format="ISO8601")
    except ValueError as error:
        raise TableError(f"column {column.name!r} cannot be read as dates: {error}") from error


def allowed_in(by: Converter) -> str:
    """Return in words what the values of a column are."""
    is_local = by.kind in ("date", "time") and zone_of(by.dtype) is None
    return f"{ALLOWED[by.kind]}, without a time zone" if is_local else ALLOWED[by.kind]


def end_in(name: str, value: Any, by: Converter | None) -> float:
    """Return an end of a range as a number in the unit of a column; an error that names it where it is of no use."""
    if by is None or by.kind == "decimal":
        return _number(name, value)
    if isinstance(value, Amount) or (is_number(value) and isinf(value)):
        return value
    try:
        number = float(by.numbers(pd.Series([value_in(_text(value), by)]))[0])
        if not isfinite(number):
            raise ValueError(number)
        return Amount(number, value)
    except (ValueError, TypeError, OverflowError):
        raise ParameterError(f"{name} must be {allowed_in(by)}, got {shortened(value)}.") from None


def step_in(name: str, value: Any, by: Converter | None) -> float | None:
    """Return a step as a number in the unit of a column."""
    if by is None or by.kind == "decimal":
        return None if value is None else _number(name, value)
    if value is None or isinstance(value, Amount):
        return value
    try:
        if by.kind == "period":
            return value if is_number(value) else Amount(_periods(value, by), value)
        return Amount(read_duration(_text(value)) / pd.Timedelta(UNITS[by.unit], "us"), value)
    except (ValueError, TypeError, OverflowError):
        allowed = "a whole number of periods" if by.kind == "period" else ALLOWED["duration"]
        raise ParameterError(f"{name} must be {allowed}, got {shortened(value)}.") from None


def _periods(text: str, by: Converter) -> int:
    """Return how many periods of a column a text such as '3M' is."""
    given, usual = pd.PeriodDtype(text).freq, by.dtype.freq
    if given.base != usual.base:
        raise ValueError(text)
    return int(given.n)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _number(name: str, value: Any) -> float:
    if isinstance(value, str):
        raise ParameterError(f"{name} must be a number, as the column's values are, got {shortened(value)}.")
    found: float = value
    return found
