"""Methods side by side, and the front from nearest to most plausible."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from onbmacf.audit.arguments import as_answers, typed, with_columns
from onbmacf.plots._axes import COLOURS, MARKERS, STYLES, add_legend, axes_on, bare, name, set_ticks, set_titles, write

CROWDED = 12  # points of a front, beyond which only the best have their number of changes
FRONT = ("distance", "plausibility", "n_changes")


@typed
def radar(
    scores: pd.DataFrame,
    metrics: Mapping[str, str] | Iterable[str],
    *,
    own: str = "",
    title: str = "",
    ax: Any = None,
) -> Any:
    """Draw one closed line per method over several metrics.

    Parameters
    ----------
    scores : DataFrame
        A column ``method`` and one per metric, scaled to 0 to 1 (1 is best, and outside); a missing value is drawn
        at 0.
    metrics : sequence of str or mapping of str to str
        The columns to draw; as a mapping, with what to call them.
    own : str, optional
        Methods whose names start with it are drawn in black.
    title : str, optional
        Written above.
    ax : matplotlib Axes, optional
        Where to draw, with polar coordinates; a new figure by default.

    Returns
    -------
    Axes
        With polar coordinates.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame({"method": ["a", "b"], "near": [0.9, 0.4], "sparse": [0.5, 1.0], "valid": [1.0, 1.0]})
    >>> len(plots.radar(scores, ["near", "sparse", "valid"]).lines)
    2

    """
    names = dict(metrics) if isinstance(metrics, Mapping) else {metric: metric for metric in metrics}
    with_columns("scores", scores, ["method", *names], "its methods and metrics")
    ax = axes_on(ax, (7.5, 5), "polar")
    angles = np.linspace(0, 2 * np.pi, len(names), endpoint=False)
    for place, (method, values) in enumerate(zip(scores["method"], scores[list(names)].to_numpy(), strict=True)):
        closed = np.nan_to_num(np.append(values, values[:1]).astype(float))
        ax.plot(np.append(angles, angles[0]), closed, label=method, **_style(method, place, own))
    set_ticks(ax.xaxis, angles, names.values())
    ax.tick_params(axis="x", pad=12)
    ax.set_ylim(0, 1)
    ax.set_yticks([0.25, 0.5, 0.75, 1.0])
    ax.set_title(name(title), pad=18, parse_math=False)
    add_legend(ax, list(ax.lines), scores["method"], loc="upper left", bbox_to_anchor=(1.08, 1.05), fontsize="small")
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
    set_titles(ax, "", "distance (nearer to the left)", "plausibility")
    add_legend(ax, handles, names, fontsize="small", loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    bare(ax)
    return ax


def _style(method: Any, place: int, own: str) -> dict[str, Any]:
    if own and str(method).startswith(own):
        return {"color": "black", "linewidth": 2.5, "zorder": 3, "linestyle": "-" if method == own else "--"}
    colours = COLOURS[:-1]  # black is reserved for this package's methods
    return {"color": colours[place % len(colours)], "linestyle": STYLES[place // len(colours) % len(STYLES)]}
