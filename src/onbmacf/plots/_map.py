"""The ball cover, and one explanation's walk over it, in two features and their own units."""

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.metrics import METRICS
from onbmacf._base.checks import did_you_mean, listed
from onbmacf._text.wording import quoted
from onbmacf.errors import ParameterError
from onbmacf.plots._axes import COLOURS, MARKERS, STYLES, add_legend, bare, name, new_axes, set_ticks, set_titles

INK = "#222222"


def cover(explainer: Any, x: Hashable, y: Hashable, *, largest: int | None = 40, ax: Any = None) -> Any:
    """Draw a fitted explainer's rows and balls on two features.

    What is drawn of a ball is its projection: with more than two features, rows of other labels may lie behind it.

    Parameters
    ----------
    explainer : ONBMACF
        Fitted, with one of the named metrics.
    x, y : hashable
        Names of two features whose values have an order.
    largest : int or None, default 40
        The most balls to draw, those with the most rows; None draws all.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

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
    ax = new_axes() if ax is None else ax
    columns = [_column(explainer.fitted_.space, feature) for feature in (x, y)]
    rows = _points(explainer.fitted_.space, explainer.Z_, columns)
    handles, names = [], []
    for code, label in enumerate(explainer.classes_):
        mine = explainer.labels_ == code
        looks = {"marker": MARKERS[code % len(MARKERS)], "facecolors": COLOURS[code % len(COLOURS)]}
        handles.append(ax.scatter(*rows[mine].T, s=14, linewidths=0.4, edgecolors="white", zorder=2, **looks))
        names.append(f"{quoted(label)}: {int(mine.sum()):,} rows")
    for ball in _most_populous(explainer.cover_, largest):
        _draw_ball(ax, explainer, int(ball), columns)
    _look_at(ax, rows)
    set_titles(ax, "", str(x), str(y))
    _name_levels(ax, explainer.schema_, x, y)
    add_legend(ax, handles, names, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small")
    bare(ax)
    return ax


def walk(explanation: Any, x: Hashable, y: Hashable, *, place: int = 0, ax: Any = None) -> Any:
    """Draw the way from a row to its counterfactual on two numeric features, past the semifactual.

    Parameters
    ----------
    explanation : Explanation
        The answer for one row, for example ``answers[0]``.
    x, y : hashable
        Names of two numeric features.
    place : int, default 0
        Which of the row's counterfactuals.
    ax : matplotlib Axes, optional
        Where to draw, for example what `cover` returned; a new figure by default.

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
    ax = new_axes() if ax is None else ax
    if not 0 <= place < len(explanation.counterfactuals):
        raise ParameterError(
            f"the explanation has {len(explanation.counterfactuals)} counterfactuals, got place={place!r}."
        )
    found = explanation.counterfactuals[place]
    stops = [(found.factual, f"factual: {quoted(explanation.label)}", "o", "white")]
    if found.semifactual is not None:
        stops.append((found.semifactual.values, f"semifactual: still {quoted(explanation.label)}", "s", "#BBBBBB"))
    stops.append((found.values, f"counterfactual: {quoted(found.label)}", "*", INK))
    path = np.array([[_number(values, feature) for feature in (x, y)] for values, *_ in stops])
    ax.plot(*path.T, color=INK, linewidth=1.6, zorder=4)
    handles = [
        ax.plot(*point, marker, markersize=13 if marker == "*" else 8, color=INK, markerfacecolor=fill, zorder=5)[0]
        for point, (_, _, marker, fill) in zip(path, stops, strict=True)
    ]
    set_titles(ax, "", str(x), str(y))
    _keep_legend(ax)
    add_legend(
        ax, handles, [text for _, text, *_ in stops], loc="upper left", bbox_to_anchor=(1.0, 0.6), fontsize="small"
    )
    bare(ax)
    return ax


def _draw_ball(ax: Any, explainer: Any, ball: int, columns: list[int]) -> None:
    from matplotlib.patches import Polygon

    if explainer.metric not in METRICS:
        raise ParameterError(f"balls can be drawn for {listed(METRICS)}, not for a metric given as a function.")
    balls = explainer.cover_
    center = explainer.Z_[balls.centers[ball]][[explainer.fitted_.space.blocks[column].start for column in columns]]
    corners = center + balls.radii[ball] * METRICS[explainer.metric].outline
    low, span = explainer.fitted_.space.low[columns], explainer.fitted_.space.span[columns]
    code = int(balls.labels[ball])
    colour, style = COLOURS[code % len(COLOURS)], STYLES[code % len(STYLES)]
    ax.add_patch(Polygon(low + corners * span, facecolor=colour, alpha=0.07, edgecolor="none", zorder=1))
    looks: dict[str, Any] = {"edgecolor": colour, "linewidth": 0.8, "linestyle": style, "alpha": 0.8, "fill": False}
    ax.add_patch(Polygon(low + corners * span, zorder=1, **looks))


def _look_at(ax: Any, rows: NDArray[np.float64]) -> None:
    """Set the limits from the rows, because balls may reach far beyond them."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    margin = 0.08 * np.where(high > low, high - low, 1.0)
    ax.set_xlim(low[0] - margin[0], high[0] + margin[0])
    ax.set_ylim(low[1] - margin[1], high[1] + margin[1])


def _most_populous(balls: Any, largest: int | None) -> NDArray[np.intp]:
    sizes = np.bincount(balls.owner[balls.owner >= 0], minlength=len(balls))
    return np.argsort(-sizes, kind="stable")[:largest]


def _column(space: Any, feature: Hashable) -> int:
    names = list(space.schema.names)
    if feature not in names:
        raise ParameterError(f"{feature!r} is not a column.{did_you_mean(feature, names)} Columns: {listed(names)}.")
    if space.schema.kinds[feature] == "categorical":
        raise ParameterError(f"{feature!r} is categorical: its levels have no order along an axis.")
    return names.index(feature)


def _points(space: Any, Z: NDArray[np.float64], columns: list[int]) -> NDArray[np.float64]:
    encoded = Z[:, [space.blocks[column].start for column in columns]]
    return np.asarray(space.low[columns] + encoded * space.span[columns])


def _name_levels(ax: Any, schema: Any, x: Hashable, y: Hashable) -> None:
    levels = {feature.name: feature.levels for feature in schema.features if not feature.is_numeric}
    for axis, feature in ((ax.xaxis, x), (ax.yaxis, y)):
        if feature in levels:
            set_ticks(axis, range(len(levels[feature])), levels[feature])


def _number(values: Any, feature: Hashable) -> float:
    if feature not in values.index:
        raise ParameterError(f"{feature!r} is not a column. Columns: {listed(values.index)}.")
    try:
        return float(values[feature])
    except (TypeError, ValueError):
        raise ParameterError(f"{name(feature)!r} is not a number: a walk is drawn on two numeric features.") from None


def _keep_legend(ax: Any) -> None:
    """Keep a legend that is already there when another one is added."""
    if ax.get_legend() is not None:
        ax.add_artist(ax.get_legend())
