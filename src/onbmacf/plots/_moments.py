"""Dates, times, durations and periods along an axis: days since 1970, days, or numbers of periods, written as they are.

column's converter  ->  scale_of        ->  what its numbers are multiplied with
one value           ->  number_of       ->  its place along the axis
axis, value         ->  write_moments   ->  ticks that read as such values
"""

import datetime
from typing import Any

import pandas as pd

from onbmacf._columns.moments import written

MOST_TICKS = 6


def number_of(value: Any) -> float:
    """Return the place of a value along an axis; a TypeError or ValueError where it has none.

    >>> number_of(pd.Timestamp("1970-01-02 12:00")), number_of(pd.Timedelta(hours=6)), number_of(2.5)
    (1.5, 0.25, 2.5)
    """
    if isinstance(value, pd.Period):
        return float(value.ordinal)
    if isinstance(value, datetime.timedelta):
        return float(pd.Timedelta(value) / pd.Timedelta(1, "D"))
    if isinstance(value, datetime.date):
        time = pd.Timestamp(value)
        is_midnight = time == time.normalize()  # whole days are counted on the wall's clock, other times in UTC
        wall = time.tz_localize(None) if is_midnight or time.tz is None else time.tz_convert("UTC").tz_localize(None)
        return float((wall - pd.Timestamp(0)) / pd.Timedelta(1, "D"))
    return float(value)


def write_moments(axis: Any, value: Any) -> None:
    """Give an axis ticks that read as values of this kind; none for numbers."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    if isinstance(value, pd.Period):
        axis.set_major_locator(MaxNLocator(MOST_TICKS, integer=True))
        axis.set_major_formatter(FuncFormatter(lambda at, _: str(pd.Period(ordinal=round(at), freq=value.freq))))
    elif isinstance(value, datetime.timedelta):
        axis.set_major_locator(MaxNLocator(MOST_TICKS))
        axis.set_major_formatter(FuncFormatter(lambda at, _: written(pd.Timedelta(at, "D").round("s"))))
    elif isinstance(value, datetime.date):
        locator = AutoDateLocator(minticks=3, maxticks=8)
        axis.set_major_locator(locator)
        axis.set_major_formatter(ConciseDateFormatter(locator))
