"""The radar: scores of methods side by side, one closed line each."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from onbmacf.audit.arguments import typed, with_columns
from onbmacf.plots._axes import COLOURS, STYLES, add_legend, axes_on, name, set_ticks


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


def _style(method: Any, place: int, own: str) -> dict[str, Any]:
    if own and str(method).startswith(own):
        return {"color": "black", "linewidth": 2.5, "zorder": 3, "linestyle": "-" if method == own else "--"}
    colours = COLOURS[:-1]  # black is reserved for this package's methods
    return {"color": colours[place % len(colours)], "linestyle": STYLES[place // len(colours) % len(STYLES)]}
