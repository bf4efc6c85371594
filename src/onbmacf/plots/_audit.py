"""Plots of an audit: how often features change, alone and in pairs, burden per group, what common actions reach."""

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from onbmacf import audit
from onbmacf._base.checks import check_choice, listed
from onbmacf._text.wording import whole_percent
from onbmacf.audit.arguments import answers_in_words, as_answers, typed, with_columns
from onbmacf.audit.groups import OTHER
from onbmacf.audit.recourse import BURDEN
from onbmacf.errors import ParameterError
from onbmacf.explanations import Explanations
from onbmacf.plots._axes import (
    COLOURS,
    LONGEST,
    MARKERS,
    add_legend,
    axes_on,
    bare,
    count_along,
    names_apart,
    note,
    set_ticks,
    set_titles,
    width_for,
    write,
)

SHORT = 24  # characters of a name on two axes at once
AXIS_NAMES = {
    "selected": "share with the favourable decision",
    "share_found": "share with a counterfactual",
    "share_released": "share with immutable features released",
    "distance": "mean distance to the first counterfactual",
    "n_changes": "mean number of changed features",
    "cost": "mean cost",
}


@typed
def change_frequencies(changes: Any, most: int = 15, ax: Any = None) -> Any:
    """Draw how often each feature changes, split by direction.

    Parameters
    ----------
    changes : Explanations, Explanation or DataFrame
        What `explain` returned, or what `audit.changes_by_feature` made of it; that knows the order of levels.
    most : int, default 15
        The most features to draw; those that change most often come first.
    ax : matplotlib Axes or Figure, optional
        Where to draw; a Figure is given the size that the plot needs. A new figure of pyplot by default.

    Returns
    -------
    Axes
        One bar per feature, in counterfactuals.

    Examples
    --------
    >>> ax = plots.change_frequencies(answers)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['tobacco', 'ldl']

    """
    if not isinstance(changes, pd.DataFrame):
        changes = audit.changes_by_feature(answers_in_words(changes))
    with_columns("changes", changes, ("feature", "count", "share", "up", "down"), "audit.changes_by_feature")
    shown = changes[changes["count"] > 0].head(most)
    ax = axes_on(ax, (width_for(shown["feature"]), 1.2 + 0.32 * max(len(shown), 2)))
    places, left = np.arange(len(shown)), np.zeros(len(shown))
    handles, names = [], []
    for direction, size, colour, hatch in _by_direction(shown):
        if size.sum() > 1e-9:
            looks = {"color": COLOURS[colour], "hatch": hatch, "edgecolor": "black", "linewidth": 0.6}
            handles.append(ax.barh(places, size, left=left, **looks))
            names.append(direction)
        left = left + size.to_numpy()
    for place, (count, share) in enumerate(zip(shown["count"], shown["share"], strict=True)):
        write(ax, count, place, f"{count:,} ({whole_percent(share)} %)", right=3, va="center", fontsize="small")
    set_ticks(ax.yaxis, places, shown["feature"])
    ax.invert_yaxis()
    ax.set_xlim(0, 1.25 * max(shown["count"].max(), 1) if len(shown) else 1)
    rest = int((changes["count"] > 0).sum()) - len(shown)
    count_along(ax.xaxis)
    set_titles(ax, "", "counterfactuals that change the feature")
    if rest:
        looks = {"va": "top", "fontsize": "small", "color": "#555555"}
        write(ax, 0, len(shown) - 0.3, f"and {rest} other features", right=3, **looks)
        ax.set_ylim(len(shown) + 0.3, -0.6)
    if handles:
        add_legend(ax, handles, names, fontsize="small", loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
    bare(ax)
    return ax


def _by_direction(shown: pd.DataFrame) -> list[tuple[str, "pd.Series[Any]", int, str]]:
    """Return the parts of the bars: their name, sizes, colour and hatch.

    What goes neither up nor down is a level, or a number that was missing and is filled in.
    """
    up, down = (shown["count"] * shown[way].fillna(0) for way in ("up", "down"))
    rest, is_number = shown["count"] - up - down, shown["up"].notna()
    levels, filled = rest.where(~is_number, 0), rest.where(is_number, 0)
    return [
        ("up", up, 0, ""),
        ("down", down, 1, "///"),
        ("to another level", levels, 4, "xx"),
        ("filled in", filled, 2, ".."),
    ]


@typed
def pair_heatmap(matrix: Any, most: int = 12, ax: Any = None) -> Any:
    """Draw how often two features change together, with the numbers.

    Parameters
    ----------
    matrix : Explanations, Explanation or DataFrame
        What `explain` returned, or what `audit.pair_matrix` made of it.
    most : int, default 12
        The most features to draw; those that change most often are.
    ax : matplotlib Axes or Figure, optional
        Where to draw; a Figure is given the size that the plot needs. A new figure of pyplot by default.

    Returns
    -------
    Axes
        Counts of counterfactuals; on the diagonal, of those that change the feature at all.

    Examples
    --------
    >>> ax = plots.pair_heatmap(answers)
    >>> [text.get_text() for text in ax.texts]
    ['19', '3', '5']

    """
    if not isinstance(matrix, pd.DataFrame):
        matrix = audit.pair_matrix(answers_in_words(matrix))
    counts = matrix.to_numpy(dtype=float)
    order = np.argsort(-np.diag(counts), kind="stable")
    order = order[np.diag(counts)[order] > 0]
    rest, order = max(len(order) - most, 0), order[:most]
    counts, names = counts[np.ix_(order, order)], names_apart([matrix.index[place] for place in order], SHORT)
    side = 1.4 + 0.5 * len(names) + 0.07 * max(map(len, names), default=0)
    ax = axes_on(ax, (side + 0.8, side))
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
    note(ax, f"{rest} other features are not drawn" if rest else "")
    bare(ax)
    return ax


@typed
def burden(groups: Any, measure: str = "distance", ax: Any = None, *, by: Any = None) -> Any:
    """Draw a measure's mean and interval per group.

    Parameters
    ----------
    groups : Explanations or DataFrame
        What `explain` returned, or what `audit.burden` made of it.
    measure : str, default "distance"
        One of the measures in `groups`; `AXIS_NAMES` has what they are called on the axis.
    ax : matplotlib Axes or Figure, optional
        Where to draw; a Figure is given the size that the plot needs. A new figure of pyplot by default.

    by : hashable or array-like, optional
        With answers: a column of the explained rows, or one value per row. Numbers are drawn in bands, rare levels as
        one group, as `audit.as_groups` makes them.

    Returns
    -------
    Axes
        One mark with its interval per group.

    Examples
    --------
    >>> ax = plots.burden(answers, "n_changes", by="famhist")
    >>> ax.get_xlabel()
    'mean number of changed features'

    """
    groups = groups if isinstance(groups, pd.DataFrame) else _burden_of(as_answers(groups), by)
    with_columns("groups", groups, BURDEN, "audit.burden")
    check_choice("measure", measure, tuple(groups["measure"].drop_duplicates()))
    shown = groups[groups["measure"] == measure]
    kinds = names_apart(shown["group"], LONGEST - 12)
    labels = [f"{group} (n = {n_rows:,})" for group, n_rows in zip(kinds, shown["n_rows"], strict=True)]
    ax = axes_on(ax, (width_for(labels), 0.9 + 0.4 * max(len(shown), 2)))
    for place, line in enumerate(shown.itertuples()):
        whiskers = [[line.estimate - line.low], [line.high - line.estimate]]
        looks = {"color": COLOURS[place % len(COLOURS)], "marker": MARKERS[place % len(MARKERS)]}
        spread = None if np.isnan(whiskers).any() else np.maximum(whiskers, 0)
        ax.errorbar([line.estimate], [place], xerr=spread, capsize=4, markersize=8, linewidth=1.6, **looks)
    set_ticks(ax.yaxis, range(len(shown)), labels)
    ax.set_ylim(len(shown) - 0.5, -0.5)
    ax.grid(axis="x", alpha=0.3)
    set_titles(ax, "", AXIS_NAMES.get(measure, measure))
    bare(ax)
    return ax


@typed
def action_curve(curve: pd.DataFrame, ax: Any = None) -> Any:
    """Draw the share of rows helped against the mean cost, as actions are added.

    Parameters
    ----------
    curve : DataFrame
        As `audit.Actions.curve` returns it.
    ax : matplotlib Axes or Figure, optional
        Where to draw; a Figure is given the size that the plot needs. A new figure of pyplot by default.

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
    with_columns("curve", curve, ("k", "mean_cost", "effectiveness"), "audit.Actions.curve")
    ax = axes_on(ax, (6.4, 3.2))
    ax.plot(curve["mean_cost"], curve["effectiveness"], color=COLOURS[0], marker=MARKERS[0], linewidth=1.6)
    for line in curve.itertuples():
        write(ax, float(line.mean_cost), float(line.effectiveness), str(line.k), right=6, va="bottom", fontsize="small")
    ax.set_ylim(0, 1.08)
    ax.grid(alpha=0.3)
    set_titles(ax, "", "mean cost (distance) of those helped", "share of refused rows helped")
    bare(ax)
    return ax


def _burden_of(answers: Explanations, by: Any) -> pd.DataFrame:
    """Return the burden of groups that are few enough to be drawn."""
    if by is None:
        columns = listed(answers.rows.columns)
        raise ParameterError(f"say which groups to draw: by= a column of the rows, or one value per row. {columns}.")
    said = answers.words.answers(answers)
    if isinstance(by, Hashable):
        by = said.rows[answers.words.name(by)] if by in answers.rows.columns else by
    if not isinstance(by, pd.Series):
        return audit.burden(answers, by)
    grouped = audit.as_groups(by)
    frame = audit.burden(answers, grouped)
    return frame if pd.api.types.is_numeric_dtype(by.dtype) else _counted(frame, by.nunique() - grouped.nunique() + 1)


def _counted(frame: pd.DataFrame, n_others: int) -> pd.DataFrame:
    """Return the group of rare levels under their number, behind the others."""
    is_rest = frame["group"] == OTHER
    frame = frame.assign(group=frame["group"].astype(object).where(~is_rest, f"{n_others} others"))
    return pd.concat([frame[~is_rest], frame[is_rest]])
