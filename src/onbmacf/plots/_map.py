"""The ball cover, and one explanation's walk over it, in two features and their own units."""

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.metrics import METRICS
from onbmacf._base.checks import did_you_mean, listed
from onbmacf._base.missing import as_nan
from onbmacf._columns.converters import days_in
from onbmacf._text.wording import quoted
from onbmacf.audit.arguments import typed
from onbmacf.errors import ParameterError
from onbmacf.explainer import ONBMACF
from onbmacf.explanation import Counterfactual, Explanation
from onbmacf.explanations import Explanations
from onbmacf.plots._axes import (
    COLOURS,
    MARKERS,
    STYLES,
    add_legend,
    axes_on,
    bare,
    name,
    note,
    number_of,
    set_ticks,
    set_titles,
    write_moments,
)
from onbmacf.plots._single import chosen

INK = "#222222"
SIZE = 14  # of a row's mark, in square points
PALER_ROWS = 1500  # beyond this number, marks are paler and smaller
LAYERS = 4  # balls on one another, beyond which each is paler
MOST_SHAPES = 5000  # rows that a vector graphic holds as shapes
MOST_LABELS = 12  # of a legend
FEW_TICKS, MOST_TICKS = 5, 20  # levels along an axis: written level, and named at all


@typed
def cover(explainer: ONBMACF, x: Hashable, y: Hashable, *, largest: int | None = 40, ax: Any = None) -> Any:
    """Draw a fitted explainer's rows and balls on two features.

    What is drawn of a ball is its projection: with more than two features, rows of other labels may lie behind it. The
    more rows and balls there are, the paler each is drawn. A line above says how many balls are drawn where not all
    are, and how many rows are not, because they lack one of the two values.

    Parameters
    ----------
    explainer : ONBMACF
        Fitted, with one of the named metrics.
    x, y : hashable
        Names of two features whose values have an order.
    largest : int or None, default 40
        The most balls to draw, those with the most rows; None draws all.
    ax : matplotlib Axes or Figure, optional
        Where to draw; a Figure is given the size that the plot needs. A new figure of pyplot by default.

    Returns
    -------
    Axes
        Both axes are in the features' own units.

    Examples
    --------
    >>> ax = plots.cover(explainer, "tobacco", "ldl")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('tobacco', 'ldl')

    """
    columns = [_column(explainer.fitted_.space, feature) for feature in (x, y)]
    rows = _points(explainer.fitted_.space, explainer.Z_, columns)
    ax = axes_on(ax, (7.2, 4.4))
    handles, names = _draw_rows(ax, explainer, rows)
    balls = explainer.cover_
    sizes = np.bincount(balls.owner[balls.owner >= 0], minlength=len(balls))
    drawn = np.argsort(-sizes, kind="stable")[:largest]
    drawn = drawn[~np.isnan(rows[balls.centers[drawn]]).any(axis=1)]  # a centre that lacks a value
    _look_at(ax, rows)
    _draw_balls(ax, explainer, drawn, columns)
    set_titles(ax, "", *map(explainer.schema_.labels.axis, (x, y)))
    note(ax, _left_out(balls, drawn, int(np.isnan(rows).any(axis=1).sum())))
    _write_values(ax, explainer.fitted_.space, columns)
    _add_key(ax, handles, names)
    bare(ax)
    return ax


def _draw_rows(ax: Any, explainer: Any, rows: NDArray[np.float64]) -> tuple[list[Any], list[str]]:
    """Draw the rows label by label; return the marks of a legend and their names."""
    from matplotlib.lines import Line2D

    paleness = min(1.0, np.sqrt(PALER_ROWS / max(len(rows), 1)))
    size = SIZE * max(paleness, 0.2)
    handles, names = [], []
    for code, label in enumerate(explainer.classes_):
        mine = explainer.labels_ == code
        marker, colour = MARKERS[code % len(MARKERS)], COLOURS[code % len(COLOURS)]
        looks = {"marker": marker, "facecolors": colour, "edgecolors": "white", "linewidths": 0.4 * paleness}
        looks |= {"alpha": max(paleness, 0.12), "rasterized": len(rows) > MOST_SHAPES}
        ax.scatter(*rows[mine].T, s=size, zorder=2, **looks)
        handles.append(Line2D([], [], linestyle="", marker=marker, color=colour))
        names.append(f"{quoted(label)}: {int(mine.sum()):,} rows")
    return handles, names


def _left_out(balls: Any, drawn: NDArray[np.intp], n_lacking: int) -> str:
    """Return how many balls are drawn, how many rows they cover, and how many rows lack a place; empty if none is."""
    share = 100 * np.isin(balls.owner, drawn).mean()
    said = []
    if len(drawn) < len(balls):
        said.append(f"{len(drawn):,} of {len(balls):,} balls, with {share:.0f} % of the rows")
    if n_lacking:
        said.append(f"{n_lacking:,} rows lack a value and are not drawn")
    return "; ".join(said)


def _add_key(ax: Any, handles: list[Any], names: list[str]) -> None:
    """Add the legend; of many labels, those with the most rows come first and the rest are counted."""
    from matplotlib.lines import Line2D

    if len(names) > MOST_LABELS + 1:
        handles = [*handles[:MOST_LABELS], Line2D([], [], linestyle="")]
        names = [*names[:MOST_LABELS], f"and {len(names) - MOST_LABELS} other labels"]
    add_legend(ax, handles, names, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small")


@typed
def walk(explanation: Any, x: Hashable, y: Hashable, *, place: int = 0, ax: Any = None) -> Any:
    """Draw the way from a row to its counterfactual on two numeric features, past the semifactual.

    Parameters
    ----------
    explanation : Explanation, Explanations or Counterfactual
        The answer for one row, for example ``answers[0]``; without the explanation, the row's own label is not written.
    x, y : hashable
        Names of two numeric features.
    place : int, default 0
        Which of the row's counterfactuals.
    ax : matplotlib Axes or Figure, optional
        Where to draw, for example what `cover` returned; a new figure of pyplot by default.

    Returns
    -------
    Axes
        Both axes are in the features' own units.

    Examples
    --------
    >>> ax = plots.walk(answers[0], "tobacco", "ldl", ax=plots.cover(explainer, "tobacco", "ldl"))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ["factual: 'risk'", "semifactual: still 'risk'", "counterfactual: 'fine'"]

    """
    found = chosen(explanation, place)
    if isinstance(found, Explanation):
        raise ParameterError(f"the explanation has 0 counterfactuals, got place={place!r}: {found.reason}")
    stops = _stops(found, _label_of(explanation))
    path = np.array([[_number(values, feature) for feature in (x, y)] for values, *_ in stops])
    ax = axes_on(ax)
    write_moments(ax.xaxis, found.values[x])
    write_moments(ax.yaxis, found.values[y])
    ax.plot(*path.T, color=INK, linewidth=1.6, zorder=4)
    handles = [
        ax.plot(*point, marker, markersize=13 if marker == "*" else 8, color=INK, markerfacecolor=fill, zorder=5)[0]
        for point, (_, _, marker, fill) in zip(path, stops, strict=True)
    ]
    set_titles(ax, "", *map(found.words.axis, (x, y)))
    if ax.get_legend() is not None:  # the cover's, which another legend would replace
        ax.add_artist(ax.get_legend())
    names = [text for _, text, *_ in stops]
    add_legend(ax, handles, names, loc="upper left", bbox_to_anchor=(1.0, 0.6), fontsize="small")
    bare(ax)
    return ax


def _label_of(given: Any) -> Any:
    """Return the label of the row that is explained; None where a counterfactual alone is given."""
    if isinstance(given, Counterfactual):
        return None
    return given[0].label if isinstance(given, Explanations) else given.label


def _stops(found: Counterfactual, label: Any) -> list[tuple[Any, str, str, str]]:
    """Return the stops of a walk: values, words, marker and fill."""
    start = "factual" if label is None else f"factual: {quoted(label)}"
    still = "semifactual" if label is None else f"semifactual: still {quoted(label)}"
    stops = [(found.factual, start, "o", "white")]
    if found.semifactual is not None:
        stops.append((found.semifactual.values, still, "s", "#BBBBBB"))
    return [*stops, (found.values, f"counterfactual: {quoted(found.label)}", "*", INK)]


def _draw_balls(ax: Any, explainer: Any, drawn: NDArray[np.intp], columns: list[int]) -> None:
    """Draw balls, the paler the more of them lie on one another."""
    from matplotlib.patches import Polygon

    if explainer.fitted_.embedding is not None:
        raise ParameterError("balls lie in the points that space makes of rows, not in columns of the table.")
    if explainer.metric not in METRICS:
        raise ParameterError(f"balls can be drawn for {listed(METRICS)}, not for a metric given as a function.")
    outlines = [_outline(explainer, int(ball), columns) for ball in drawn]
    layers = max(1.0, sum(_share_of_view(ax, corners) for corners in outlines))
    fill, line = 0.07 * min(1.0, LAYERS / layers), 0.8 * max(min(1.0, LAYERS / layers), 0.2)
    for ball, corners in zip(drawn, outlines, strict=True):
        code = int(explainer.cover_.labels[ball])
        colour, style = COLOURS[code % len(COLOURS)], STYLES[code % len(STYLES)]
        ax.add_patch(Polygon(corners, facecolor=colour, alpha=fill, edgecolor="none", zorder=1))
        looks: dict[str, Any] = {"edgecolor": colour, "linewidth": 0.8, "linestyle": style, "alpha": line}
        ax.add_patch(Polygon(corners, zorder=1 if len(explainer.Z_) < PALER_ROWS else 3, fill=False, **looks))


def _share_of_view(ax: Any, corners: NDArray[np.float64]) -> float:
    """Return how much of what is looked at lies in the box around a ball."""
    view = np.array([ax.get_xlim(), ax.get_ylim()])
    inside = np.clip(corners, view[:, 0], view[:, 1])
    return float(np.prod(np.ptp(inside, axis=0) / np.ptp(view, axis=1)))


def _outline(explainer: Any, ball: int, columns: list[int]) -> NDArray[np.float64]:
    """Return the corners of a ball's projection, in the features' own units."""
    balls = explainer.cover_
    space = explainer.fitted_.space
    center = explainer.Z_[balls.centers[ball]][[space.blocks[column].start for column in columns]]
    return _own_units(space, center + balls.radii[ball] * METRICS[explainer.metric].outline, columns)


def _look_at(ax: Any, rows: NDArray[np.float64]) -> None:
    """Set the limits from the rows, because balls may reach far beyond them."""
    low, high = np.nanmin(rows, axis=0), np.nanmax(rows, axis=0)
    margin = 0.08 * np.where(high > low, high - low, 1.0)
    ax.set_xlim(low[0] - margin[0], high[0] + margin[0])
    ax.set_ylim(low[1] - margin[1], high[1] + margin[1])


def _column(space: Any, feature: Hashable) -> int:
    names = list(space.schema.names)
    if feature not in names:
        raise ParameterError(f"{feature!r} is not a column.{did_you_mean(feature, names)} Columns: {listed(names)}.")
    if space.schema.kinds[feature] == "categorical":
        raise ParameterError(f"{feature!r} is categorical: its levels have no order along an axis.")
    return names.index(feature)


def _points(space: Any, Z: NDArray[np.float64], columns: list[int]) -> NDArray[np.float64]:
    """Return rows in the features' own units; NaN, which is not drawn, for a missing value."""
    return _own_units(space, as_nan(Z[:, [space.blocks[column].start for column in columns]]), columns)


def _own_units(space: Any, points: NDArray[np.float64], columns: list[int]) -> NDArray[np.float64]:
    """Return encoded points of two features in their own units; times in days."""
    days = np.array([days_in(space.form.converter(column)) for column in columns])
    return np.asarray(space.low[columns] + points * space.span[columns]) * days


def _write_values(ax: Any, space: Any, columns: list[int]) -> None:
    """Name levels along the axes, and write dates, times, durations and periods along those that have them."""
    for axis, column in zip((ax.xaxis, ax.yaxis), columns, strict=True):
        feature = space.schema.features[column]
        if not feature.is_numeric:
            every = -(-len(feature.levels) // MOST_TICKS)  # of many levels, some are named
            looks = {"rotation": 45, "ha": "right"} if axis is ax.xaxis and len(feature.levels) > FEW_TICKS else {}
            levels = [space.schema.labels.value(feature.name, level) for level in feature.levels[::every]]
            set_ticks(axis, range(0, len(feature.levels), every), levels, **looks)
        if (converter := space.form.converter(column)) is not None:
            write_moments(axis, converter.values(np.zeros(1)).iloc[0])


def _number(values: Any, feature: Hashable) -> float:
    if feature not in values.index:
        raise ParameterError(f"{feature!r} is not a column. Columns: {listed(values.index)}.")
    try:
        return number_of(values[feature])
    except (TypeError, ValueError):
        raise ParameterError(f"{name(feature)!r} is not a number: a walk is drawn on two numeric features.") from None
