"""One row: a counterfactual's changed features before and after, and its Pareto front of distance and plausibility.

Counterfactual, Explanation or the answers for one row  ->  chosen  ->  bars of numbers, boxes of levels
"""

from itertools import zip_longest
from math import isfinite
from numbers import Real
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._text.wording import marked, quoted, shown, visible
from onbmacf.audit.arguments import as_answers, typed, with_columns
from onbmacf.errors import ParameterError
from onbmacf.explanation import Counterfactual, Explanation
from onbmacf.explanations import Explanations
from onbmacf.plots._axes import (
    COLOURS,
    LONGEST,
    MARKERS,
    add_legend,
    axes_on,
    bare,
    name,
    set_ticks,
    set_titles,
    width_for,
    write,
)

THICK = 0.36
CROWDED = 12  # points of a front, beyond which only the best have their number of changes
FRONT = ("distance", "plausibility", "n_changes")
BEFORE = 10  # characters shown before the first that differs
ROOMY, TIGHT, MANY = 0.75, 0.48, 10  # inches per feature, and per feature beyond this many
LOOKS: tuple[dict[str, Any], ...] = (
    {"facecolor": "#DDDDDD", "hatch": "///"},
    {"facecolor": COLOURS[0], "hatch": ""},
)
BOXES: tuple[dict[str, Any], ...] = (
    {"facecolor": "#EEEEEE", "edgecolor": "#666666", "linestyle": "--"},
    {"facecolor": "#D6E9F5", "edgecolor": COLOURS[0], "linestyle": "-"},
)


@typed
def before_after(counterfactual: Any, ax: Any = None, *, place: int = 0) -> Any:
    """Draw one counterfactual: a pair of bars per changed feature, and per effect, with the values before and after.

    Features have different units, so each pair has a scale of its own: its longer bar has length 1. Levels and other
    values that are not numbers have boxes instead of bars. For a row without a counterfactual, the reason is written.

    Parameters
    ----------
    counterfactual : Counterfactual, Explanation or Explanations
        For example ``answers[0].counterfactuals[0]``, ``answers[0]``, or the answers for one row.
    ax : matplotlib Axes or Figure, optional
        Where to draw; a Figure is given the size that the plot needs. A new figure of pyplot by default.
    place : int, default 0
        Which of an explanation's counterfactuals.

    Returns
    -------
    Axes
        One pair of bars or boxes per changed feature.

    Examples
    --------
    >>> ax = plots.before_after(answers[0])
    >>> [text.get_text() for text in ax.texts]
    ['12', '4.2']

    """
    found = chosen(counterfactual, place)
    if isinstance(found, Explanation):
        return reason_on(found, ax)
    from matplotlib.patches import Patch

    names = [*found.changed, *found.effects]
    height = 0.9 + ROOMY * max(min(len(names), MANY), 1) + TIGHT * max(len(names) - MANY, 0)
    ax = axes_on(ax, (width_for(map(found.words.name, names), 7.2), height))
    words = found.words
    values = [(found.factual[feature], found.values[feature]) for feature in names]
    lengths = np.array([_lengths(old, new) for old, new in values]).reshape(-1, 2)
    places = np.arange(len(names))
    for side, looks in enumerate(LOOKS):
        at = places + (side - 0.5) * THICK
        ax.barh(at, lengths[:, side], height=THICK, edgecolor="black", linewidth=0.8, **looks)
    for row, (feature, pair) in enumerate(zip(names, values, strict=True)):
        old, new = (visible(words.value(feature, value)) for value in pair)
        for side, text in enumerate(_told_apart(old, new)):
            _write_value(ax, lengths[row], row, side, text)
    ticks = [_tick(words.name(feature), feature in found.released) for feature in found.changed]
    ticks += [_tick(f"{words.name(feature)} (follows)", False) for feature in found.effects]
    set_ticks(ax.yaxis, places, ticks)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xticks([])
    ax.set_xlim(min(0.0, lengths.min(initial=0.0)) * 1.05, 1.45)
    set_titles(ax, f"Changes that lead to {quoted(found.label)}")
    handles = [Patch(edgecolor="black", linewidth=0.8, **looks) for looks in LOOKS]
    add_legend(ax, handles, ["before", "after"], fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    bare(ax, "top", "right", "bottom")
    return ax


@typed
def front(points: Any, ax: Any = None) -> Any:
    """Draw counterfactuals by distance and plausibility; those that none beats in both are joined.

    Parameters
    ----------
    points : Explanations, Explanation or DataFrame
        What ``explain(..., front=True)`` returned, or a frame with the columns ``distance``, ``plausibility`` and
        ``n_changes``, as `Explanations.to_frame` has them. The number beside a point is its number of changes;
        of more than 12 points, only the joined ones have it.
    ax : matplotlib Axes or Figure, optional
        Where to draw; a Figure is given the size that the plot needs. A new figure of pyplot by default.

    Returns
    -------
    Axes
        Distance in encoded units, plausibility from 0 to 1.

    Examples
    --------
    >>> both = explainer.explain(table.iloc[[3]], target="fine", front=True)
    >>> ax = plots.front(both)
    >>> ax.get_ylabel()
    'plausibility'

    """
    points = points if isinstance(points, pd.DataFrame) else as_answers(points).to_frame()
    with_columns("points", points, FRONT, "Explanations.to_frame")
    ax = axes_on(ax)
    order = points.sort_values(["distance", "plausibility"], ascending=[True, False], kind="stable")
    best = order["plausibility"] > order["plausibility"].cummax().shift(fill_value=-np.inf)
    kept, others = order[best], order[~best]
    handles = [ax.plot(kept["distance"], kept["plausibility"], "-o", color=COLOURS[0], markersize=8)[0]]
    names = ["best in distance and plausibility"]
    if len(others):
        looks = {"color": "#888888", "markerfacecolor": "white"}
        handles += ax.plot(others["distance"], others["plausibility"], MARKERS[1], **looks)
        names.append("others")
    written = order if len(order) <= CROWDED else kept  # numbers of many points would lie on one another
    for distance, plausibility, n_changes in written[list(FRONT)].itertuples(index=False):
        write(ax, distance, plausibility, f"{n_changes:.0f}", right=6, va="bottom", fontsize="small")
    ax.set_ylim(-0.06, 1.1)
    set_titles(ax, "", "distance (nearer to the left); beside each point: how many features change", "plausibility")
    add_legend(ax, handles, names, fontsize="small", loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    bare(ax)
    return ax


def chosen(given: Any, place: int = 0) -> Counterfactual | Explanation:
    """Return the counterfactual that is meant, or the explanation if it has none."""
    if isinstance(given, Explanations):
        if len(given) != 1:
            raise ParameterError(f"this plot is of one row, got answers for {len(given):,}: pick one, e.g. answers[0].")
        given = given[0]
    if isinstance(given, Counterfactual) or (isinstance(given, Explanation) and not given.counterfactuals):
        return given
    if not isinstance(given, Explanation):
        raise ParameterError(f"give an explanation or one of its counterfactuals, got {type(given).__name__}.")
    if not 0 <= place < len(given.counterfactuals):
        raise ParameterError(f"the explanation has {len(given.counterfactuals)} counterfactuals, got place={place!r}.")
    return given.counterfactuals[place]


def reason_on(explanation: Explanation, ax: Any) -> Any:
    """Write why there is nothing to draw."""
    ax = axes_on(ax, (6.4, 1.6))
    text = fill(f"{explanation.status}: {visible(explanation.reason)}", 70)
    ax.text(0.5, 0.5, text, ha="center", va="center", transform=ax.transAxes, fontsize="small", parse_math=False)
    set_titles(ax, f"No counterfactual for row {shown(explanation.factual.name)}")
    ax.set_axis_off()
    return ax


def _write_value(ax: Any, lengths: Any, row: int, side: int, text: str) -> None:
    """Write a value beside its bar, or into a box where it has none."""
    y = row + (side - 0.5) * THICK
    looks: dict[str, Any] = {"va": "center", "fontsize": "small"}
    if lengths.any():
        write(ax, max(lengths[side], 0), y, text, right=4, **looks)
    else:
        write(ax, 0, y, text, right=8, bbox={"boxstyle": "round,pad=0.25", "linewidth": 0.9, **BOXES[side]}, **looks)


def _lengths(old: Any, new: Any) -> tuple[float, float]:
    """Return both values as shares of the larger one; 0 for values that are not numbers."""
    if not all(isinstance(value, Real) and not isinstance(value, bool | np.bool_) for value in (old, new)):
        return 0.0, 0.0
    old, new = (float(value) if isfinite(value) else 0.0 for value in (old, new))
    largest = max(abs(old), abs(new)) or 1.0
    return old / largest, new / largest


def _tick(called: str, is_released: bool) -> str:
    """Return a feature's name, short enough that its mark is not cut off."""
    mark = marked("", released=("",)) if is_released else ""
    return name(called, LONGEST - len(mark)) + mark


def _told_apart(old: str, new: str) -> tuple[str, str]:
    """Return two texts, from shortly before they differ where they would be the same once cut."""
    if old == new or name(old) != name(new):
        return old, new
    start = next(at for at, (one, other) in enumerate(zip_longest(old, new)) if one != other) - BEFORE
    return f"\u2026{old[start:]}", f"\u2026{new[start:]}"
