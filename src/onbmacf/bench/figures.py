"""Figures of the comparison: which methods a test parts, and scores with their intervals.

ranks, critical difference  ->  critical_difference_diagram        intervals  ->  interval_plot
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from onbmacf.bench.statistics import cliques
from onbmacf.plots._axes import COLOURS, MARKERS, add_legend, axes_on, bare, set_ticks, set_titles, write

OWN = "ONB-MACF"


def critical_difference_diagram(ranks: pd.Series, difference: float, title: str = "", ax: Any = None) -> Any:
    """Draw average ranks along an axis, the best at the left; bars join methods that the test does not part.

    Methods are read from the sides, as in Demsar (2006): the better half at the left, the other at the right.
    """
    ordered = ranks.sort_values(kind="stable")
    places, n_methods = ordered.to_numpy(dtype=float), len(ordered)
    bars, half = cliques(places, difference), (n_methods + 1) // 2
    low, high = np.floor(places[0]), max(np.ceil(places[-1]), np.floor(places[0]) + 1)
    room = 0.45 * (high - low)  # at each side, for names
    floor = 0.35 * len(bars) + 0.4
    ax = axes_on(ax, (8.0, 1.1 + 0.24 * (half + len(bars))))
    ax.plot([low, high], [0, 0], color="black", linewidth=1)
    for tick in np.arange(low, high + 1):
        ax.plot([tick, tick], [0, 0.12], color="black", linewidth=1)
        write(ax, tick, 0.2, f"{tick:g}", ha="center", va="bottom", fontsize="small")
    for order, (method, rank) in enumerate(ordered.items()):
        at_left = order < half
        depth = -floor - 0.5 * (order if at_left else n_methods - 1 - order)
        end = low - 0.05 * (high - low) if at_left else high + 0.05 * (high - low)
        looks: dict[str, Any] = {"color": "black", "linewidth": 2.0 if str(method).startswith(OWN) else 0.8}
        ax.plot([rank, rank, end], [0, depth, depth], **looks)
        weight = "bold" if str(method).startswith(OWN) else "normal"
        align: dict[str, Any] = {"ha": "right", "right": -4} if at_left else {"ha": "left", "right": 4}
        write(ax, end, depth, f"{method} ({rank:.2f})", va="center", fontsize="small", fontweight=weight, **align)
    for level, (first, last) in enumerate(bars):
        at = -0.3 - 0.35 * level
        ax.plot([places[first] - 0.03, places[last] + 0.03], [at, at], color=COLOURS[0], linewidth=4, alpha=0.8)
    ax.plot([low, low + difference], [0.95, 0.95], color=COLOURS[5], linewidth=3)
    write(ax, low + difference, 0.95, f"critical difference {difference:.2f}", right=5, va="center", fontsize="small")
    set_titles(ax, title)
    ax.set_xlim(low - room, high + room)
    ax.set_axis_off()
    return ax


def interval_plot(
    groups: Mapping[str, pd.DataFrame],
    order: Sequence[str],
    x: str,
    *,
    title: str = "",
    zero: bool = False,
    ax: Any = None,
) -> Any:
    """Draw one line per method: a mean and its interval for each group (columns `method`, `mean`, `low`, `high`).

    With `zero` a line parts the differences for and against.
    """
    ax = axes_on(ax, (7.5, 0.9 + 0.34 * len(order)))
    handles = []
    for place, frame in enumerate(groups.values()):
        lines = frame.set_index("method").reindex(order)
        heights = np.arange(len(order)) + 0.24 * (place - (len(groups) - 1) / 2)
        mean = lines["mean"].to_numpy(dtype=float)
        around = [mean - lines["low"].to_numpy(dtype=float), lines["high"].to_numpy(dtype=float) - mean]
        looks: dict[str, Any] = {"fmt": MARKERS[place], "color": COLOURS[place], "markersize": 5, "linewidth": 1.5}
        handles.append(ax.errorbar(mean, heights, xerr=np.maximum(around, 0.0), **looks))
    if zero:
        ax.axvline(0.0, color="black", linewidth=1)
    set_ticks(ax.yaxis, range(len(order)), order)
    ax.invert_yaxis()
    ax.grid(axis="x", color="#DDDDDD", linewidth=0.6)
    ax.set_axisbelow(True)
    set_titles(ax, title, x)
    if len(groups) > 1:
        add_legend(ax, handles, groups, loc="upper right" if zero else "lower right", fontsize="small")
    bare(ax)
    return ax
