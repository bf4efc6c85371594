"""Shared by all plots: new axes, colours each paired with a marker or style, plain text, and times along an axis."""

import datetime
from collections.abc import Iterable
from textwrap import fill
from typing import Any

import pandas as pd

from onbmacf._columns.moments import written
from onbmacf._text.wording import visible
from onbmacf.errors import ParameterError

# Okabe and Ito's colours; they differ enough in brightness to be distinguished in grey too.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
STYLES = ("-", "--", ":")
LONGEST = 40  # characters of a name that are shown
WRAPPED = 48  # characters of a line of a title
USUAL = 14  # characters of a name for which a figure has room
TIME_TICKS = 6  # of durations and periods


def axes_on(given: Any, size: tuple[float, float] = (6.4, 4.0), projection: str | None = None) -> Any:
    """Return the axes to draw on: those given, new ones on the figure given, or of pyplot, which a notebook shows."""
    if given is not None and not hasattr(given, "add_subplot"):
        if not hasattr(given, "xaxis"):
            raise ParameterError(f"ax must be Axes or a Figure of matplotlib, got {type(given).__name__}.")
        return given
    if given is None:
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise ImportError("plots need the extra 'plot': pip install 'onbmacf[plot]'.") from error
        given = pyplot.figure(figsize=size, layout="constrained")
    elif hasattr(given, "set_size_inches"):  # a part of a figure has no size of its own
        given.set_size_inches(size)
        given.set_layout_engine("constrained")
    made = given.add_subplot(projection=projection)
    made._ipython_display_ = _shown_already
    return made


def _shown_already() -> None:
    """Print nothing below a picture that a notebook shows by itself: axes that a cell ends with read <Axes: ...>."""


def name(value: Any, longest: int = LONGEST) -> str:
    """Return a name or value as one short line of text; of a long one, its beginning and its end.

    >>> name("a very long name of a column, the first of 2", 20)
    'a very lon\u2026irst of 2'
    """
    text = visible(value)
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 2
    return f"{text[: longest - 1 - tail]}\u2026{text[len(text) - tail :]}"


def names_apart(values: Iterable[Any], longest: int = LONGEST) -> list[str]:
    """Return names cut to a length; those that would look alike, from where they differ.

    >>> names_apart(["the level called 1 of two levels", "the level called 2 of two levels"], 16)
    ['\u20261 of two levels', '\u20262 of two levels']
    """
    texts = [visible(value) for value in values]
    alike: dict[str, list[str]] = {}
    for text in dict.fromkeys(texts):
        alike.setdefault(name(text, longest), []).append(text)
    return [name(_from_where_they_differ(text, alike[name(text, longest)]), longest) for text in texts]


def _from_where_they_differ(text: str, alike: list[str]) -> str:
    if len(alike) == 1:
        return text
    pairs = enumerate(zip(min(alike), max(alike), strict=False))  # what the first and the last share, all share
    start = next((at for at, (one, other) in pairs if one != other), 0)
    return f"\u2026{text[start:]}"


def width_for(names: Iterable[Any], inches: float = 6.4) -> float:
    """Return the width of a figure whose vertical axis has these names."""
    return inches + 0.07 * max([len(name(value)) - USUAL for value in names] + [0])


def note(ax: Any, text: str) -> None:
    """Write a small grey line above the axes: what is not drawn."""
    if text:
        ax.set_title(visible(text), fontsize="small", color="#555555", loc="left", parse_math=False)


def set_ticks(axis: Any, places: Iterable[float], names: Iterable[Any], **looks: Any) -> None:
    """Label an axis (ax.xaxis or ax.yaxis) with names drawn as plain text."""
    axis.set_ticks(list(places), names_apart(names), parse_math=False, **looks)


def count_along(axis: Any) -> None:
    """Put the ticks of an axis at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def set_titles(ax: Any, title: str = "", x: str = "", y: str = "") -> None:
    """Write title and axis names as plain text."""
    if title:
        ax.set_title(fill(visible(title), WRAPPED), parse_math=False)
    for write, text in ((ax.set_xlabel, x), (ax.set_ylabel, y)):
        if text:
            write(visible(text), parse_math=False)


def write(ax: Any, x: float, y: float, text: Any, *, right: float = 0, **looks: Any) -> Any:
    """Write plain text at a place, or some points to the right of it."""
    placed = {"xytext": (right, 0), "textcoords": "offset points", "parse_math": False}
    return ax.annotate(name(text), (x, y), **placed, **looks)


def add_legend(ax: Any, handles: list[Any], names: Iterable[Any], **looks: Any) -> None:
    """Add a legend; names are set afterwards, because matplotlib hides names with a leading underscore."""
    legend = ax.legend(handles, [str(place) for place in range(len(handles))], frameon=False, **looks)
    for text, value in zip(legend.get_texts(), names, strict=True):
        text.set_parse_math(False)
        text.set_text(name(value))


def bare(ax: Any, *sides: str) -> None:
    """Hide sides of the frame (by default top and right)."""
    for side in sides or ("top", "right"):
        ax.spines[side].set_visible(False)


# --- dates, times, durations and periods: days since 1970, days, or numbers of periods --------------------------------


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
        axis.set_major_locator(MaxNLocator(TIME_TICKS, integer=True))
        axis.set_major_formatter(FuncFormatter(lambda at, _: str(pd.Period(ordinal=round(at), freq=value.freq))))
    elif isinstance(value, datetime.timedelta):
        axis.set_major_locator(MaxNLocator(TIME_TICKS))
        axis.set_major_formatter(FuncFormatter(lambda at, _: written(pd.Timedelta(at, "D").round("s"))))
    elif isinstance(value, datetime.date):
        locator = AutoDateLocator(minticks=3, maxticks=8)
        axis.set_major_locator(locator)
        axis.set_major_formatter(ConciseDateFormatter(locator))
