"""Shared by all plots: new axes, colours each paired with a marker or style, and names drawn as plain text."""

from collections.abc import Iterable
from typing import Any

from onbmacf._text.wording import visible

# Okabe and Ito's colours; they differ enough in brightness to be distinguished in grey too.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
STYLES = ("-", "--", ":")
LONGEST = 40  # characters of a name that are shown


def new_axes(size: tuple[float, float] = (6.4, 4.0), projection: str | None = None) -> Any:
    """Return axes on a figure of their own, outside pyplot."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need the extra 'plot': pip install 'onbmacf[plot]'.") from error
    return Figure(figsize=size, layout="constrained").add_subplot(projection=projection)


def name(value: Any, longest: int = LONGEST) -> str:
    """Return a name or value as one short line of text."""
    text = visible(value)
    return text if len(text) <= longest else text[: longest - 1] + "\u2026"


def set_ticks(axis: Any, places: Iterable[float], names: Iterable[Any], **looks: Any) -> None:
    """Label an axis (ax.xaxis or ax.yaxis) with names drawn as plain text."""
    axis.set_ticks(list(places), [name(value) for value in names], parse_math=False, **looks)


def set_titles(ax: Any, title: str = "", x: str = "", y: str = "") -> None:
    """Write title and axis names as plain text."""
    for write, text in ((ax.set_title, title), (ax.set_xlabel, x), (ax.set_ylabel, y)):
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
