"""Plots of the audit's frames."""

from typing import Any

import numpy as np
import pandas as pd

from onbmacf._base.checks import check_choice
from onbmacf.plots._axes import COLOURS, MARKERS, add_legend, bare, new_axes, set_ticks, set_titles, write

AXIS_NAMES = {
    "selected": "share with the favourable decision",
    "share_found": "share with a counterfactual",
    "share_released": "share with immutable features released",
    "distance": "mean distance to the first counterfactual",
    "n_changes": "mean number of changed features",
    "cost": "mean cost",
}


def change_frequencies(changes: pd.DataFrame, most: int = 15, ax: Any = None) -> Any:
    """Draw how often each feature changes, split by direction.

    Parameters
    ----------
    changes : DataFrame
        As `audit.changes_by_feature` returns it.
    most : int, default 15
        The most features to draw; those that change most often come first.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        One bar per feature, in counterfactuals.

    Examples
    --------
    >>> ax = plots.change_frequencies(audit.changes_by_feature(answers, schema))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['tobacco', 'ldl']

    """
    shown = changes[changes["count"] > 0].head(most)
    ax = new_axes((6.4, 0.9 + 0.32 * max(len(shown), 2))) if ax is None else ax
    places = np.arange(len(shown))
    up, down = (shown["count"] * shown[way].fillna(0) for way in ("up", "down"))
    parts = [("up", up, 0, ""), ("down", down, 1, "///"), ("to another level", shown["count"] - up - down, 4, "...")]
    left = np.zeros(len(shown))
    handles, names = [], []
    for direction, size, colour, hatch in parts:
        if size.sum() > 1e-9:
            looks = {"color": COLOURS[colour], "hatch": hatch, "edgecolor": "black", "linewidth": 0.6}
            handles.append(ax.barh(places, size, left=left, **looks))
            names.append(direction)
        left = left + size.to_numpy()
    for place, (count, share) in enumerate(zip(shown["count"], shown["share"], strict=True)):
        write(ax, count, place, f"{count:,} ({100 * share:.0f} %)", right=3, va="center", fontsize="small")
    set_ticks(ax.yaxis, places, shown["feature"])
    ax.invert_yaxis()
    ax.set_xlim(0, 1.25 * max(shown["count"].max(), 1) if len(shown) else 1)
    set_titles(ax, "", "counterfactuals that change the feature")
    if handles:
        add_legend(ax, handles, names, fontsize="small", loc="lower right")
    bare(ax)
    return ax


def pair_heatmap(matrix: pd.DataFrame, most: int = 12, ax: Any = None) -> Any:
    """Draw how often two features change together, with the numbers.

    Parameters
    ----------
    matrix : DataFrame
        As `audit.pair_matrix` returns it.
    most : int, default 12
        The most features to draw; those that change most often are.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        Counts of counterfactuals; on the diagonal, of those that change the feature at all.

    Examples
    --------
    >>> ax = plots.pair_heatmap(audit.pair_matrix(answers))
    >>> [text.get_text() for text in ax.texts]
    ['19', '3', '5']

    """
    counts = matrix.to_numpy(dtype=float)
    order = np.argsort(-np.diag(counts), kind="stable")[:most]
    order = order[np.diag(counts)[order] > 0]
    counts, names = counts[np.ix_(order, order)], [matrix.index[place] for place in order]
    side = 2.2 + 0.5 * len(names)
    ax = new_axes((side + 0.8, side)) if ax is None else ax
    lower = np.ma.masked_where(np.triu(np.ones_like(counts, dtype=bool), 1), counts)
    edges = np.arange(len(names) + 1) - 0.5
    if names:
        ax.pcolormesh(edges, edges, lower, cmap="Blues", vmin=0, vmax=max(counts.max(), 1))
    ax.set_aspect("equal")
    ax.invert_yaxis()
    for row, column in zip(*np.tril_indices(len(names)), strict=True):
        dark = counts[row, column] > 0.55 * counts.max()
        looks: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": "small"}
        looks |= {"color": "white" if dark else "black", "fontweight": "bold" if row == column else "normal"}
        write(ax, float(column), float(row), f"{counts[row, column]:.0f}", **looks)
    set_ticks(ax.xaxis, range(len(names)), names, rotation=45, ha="right")
    set_ticks(ax.yaxis, range(len(names)), names)
    bare(ax)
    return ax


def burden(groups: pd.DataFrame, measure: str = "distance", ax: Any = None) -> Any:
    """Draw a measure's mean and interval per group.

    Parameters
    ----------
    groups : DataFrame
        As `audit.burden` returns it.
    measure : str, default "distance"
        One of the measures in `groups`; `AXIS_NAMES` has what they are called on the axis.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        One mark with its interval per group.

    Examples
    --------
    >>> ax = plots.burden(audit.burden(answers, "famhist"), "n_changes")
    >>> ax.get_xlabel()
    'mean number of changed features'

    """
    check_choice("measure", measure, tuple(groups["measure"].drop_duplicates()))
    shown = groups[groups["measure"] == measure]
    ax = new_axes((6.4, 0.9 + 0.4 * max(len(shown), 2))) if ax is None else ax
    for place, line in enumerate(shown.itertuples()):
        whiskers = [[line.estimate - line.low], [line.high - line.estimate]]
        looks = {"color": COLOURS[place % len(COLOURS)], "marker": MARKERS[place % len(MARKERS)]}
        spread = None if np.isnan(whiskers).any() else np.maximum(whiskers, 0)
        ax.errorbar([line.estimate], [place], xerr=spread, capsize=4, markersize=8, linewidth=1.6, **looks)
    labels = [f"{line.group} (n = {line.n_rows:,})" for line in shown.itertuples()]
    set_ticks(ax.yaxis, range(len(shown)), labels)
    ax.set_ylim(len(shown) - 0.5, -0.5)
    ax.grid(axis="x", alpha=0.3)
    set_titles(ax, "", AXIS_NAMES.get(measure, measure))
    bare(ax)
    return ax


def action_curve(curve: pd.DataFrame, ax: Any = None) -> Any:
    """Draw the share of rows helped against the mean cost, as actions are added.

    Parameters
    ----------
    curve : DataFrame
        As `audit.Actions.curve` returns it.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        One mark per number of actions, joined in order.

    Examples
    --------
    >>> ax = plots.action_curve(audit.actions(answers, explainer, k=2).curve())
    >>> ax.get_ylabel()
    'share of refused rows helped'

    """
    ax = new_axes((6.4, 3.2)) if ax is None else ax
    ax.plot(curve["mean_cost"], curve["effectiveness"], color=COLOURS[0], marker=MARKERS[0], linewidth=1.6)
    for line in curve.itertuples():
        write(ax, float(line.mean_cost), float(line.effectiveness), str(line.k), right=6, va="bottom", fontsize="small")
    ax.set_ylim(0, 1.08)
    ax.grid(alpha=0.3)
    set_titles(ax, "", "mean cost (distance) of those helped", "share of refused rows helped")
    bare(ax)
    return ax
