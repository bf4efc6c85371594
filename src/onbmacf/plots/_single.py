"""One counterfactual: the changed features, before and after."""

from itertools import zip_longest
from numbers import Real
from typing import Any

import numpy as np

from onbmacf._text.wording import marked, quoted, shown, visible
from onbmacf.plots._axes import COLOURS, LONGEST, add_legend, bare, name, new_axes, set_ticks, set_titles, write

THICK = 0.36
BEFORE = 10  # characters shown before the first that differs


def before_after(counterfactual: Any, ax: Any = None) -> Any:
    """Draw one counterfactual: a pair of bars per changed feature, with the values before and after.

    Features have different units, so each pair has a scale of its own: its longer bar has length 1. Levels that are
    not numbers are written without a bar.

    Parameters
    ----------
    counterfactual : Counterfactual
        For example ``answers[0].counterfactuals[0]``.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        One pair of bars per changed feature.

    Examples
    --------
    >>> ax = plots.before_after(answers[0].counterfactuals[0])
    >>> [text.get_text() for text in ax.texts]
    ['12', '4.27']

    """
    names = list(counterfactual.changed)
    ax = new_axes((6.4, 0.9 + 0.75 * max(len(names), 1))) if ax is None else ax
    before = [counterfactual.factual[feature] for feature in names]
    after = [counterfactual.values[feature] for feature in names]
    lengths = np.array([_lengths(old, new) for old, new in zip(before, after, strict=True)]).reshape(-1, 2)
    places = np.arange(len(names))
    looks = {"height": THICK, "edgecolor": "black", "linewidth": 0.8}
    old_bars = ax.barh(places - THICK / 2, lengths[:, 0], color="#DDDDDD", hatch="///", **looks)
    new_bars = ax.barh(places + THICK / 2, lengths[:, 1], color=COLOURS[0], **looks)
    for place, (old, new) in enumerate(zip(before, after, strict=True)):
        for side, text in enumerate(_told_apart(visible(shown(old)), visible(shown(new)))):
            x, y = max(lengths[place, side], 0), place + (side - 0.5) * THICK
            write(ax, x, y, text, right=4, va="center", fontsize="small")
    set_ticks(ax.yaxis, places, [_tick(feature, counterfactual.released) for feature in names])
    ax.invert_yaxis()
    ax.set_xticks([])
    ax.set_xlim(min(0.0, lengths.min(initial=0.0)) * 1.05, 1.45)
    set_titles(ax, f"Changes that lead to {quoted(counterfactual.label)}")
    add_legend(ax, [old_bars, new_bars], ["before", "after"], fontsize="small", loc="lower right")
    bare(ax, "top", "right", "bottom")
    return ax


def _lengths(old: Any, new: Any) -> tuple[float, float]:
    """Return both values as shares of the larger one; 0 for values that are not numbers."""
    if not all(isinstance(value, Real) and not isinstance(value, bool | np.bool_) for value in (old, new)):
        return 0.0, 0.0
    largest = max(abs(float(old)), abs(float(new)))
    return float(old) / largest, float(new) / largest


def _tick(feature: Any, released: tuple[Any, ...]) -> str:
    """Return a feature's name, short enough that its mark is not cut off."""
    mark = marked("", released=("",)) if feature in released else ""
    return name(feature, LONGEST - len(mark)) + mark


def _told_apart(old: str, new: str) -> tuple[str, str]:
    """Return two texts, from shortly before they differ where they would be the same once cut."""
    if old == new or name(old) != name(new):
        return old, new
    start = next(at for at, (one, other) in enumerate(zip_longest(old, new)) if one != other) - BEFORE
    return f"\u2026{old[start:]}", f"\u2026{new[start:]}"
