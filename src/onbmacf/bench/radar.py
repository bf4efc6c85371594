"""Radar plots of scaled scores: one axis per metric, one line per method."""

from typing import Any

import numpy as np
import pandas as pd

from onbmacf.bench.tables import METRICS

AXIS_NAMES = {
    "l0": "L0",
    "l1": "L1",
    "l2": "L2",
    "linf": "L∞",
    "violations": "violations",
    "redundancy": "redundancy",
    "ynn": "yNN",
    "success_rate": "success",
}
# Okabe and Ito's colours (safe for colour-blind readers), then line styles: also told apart in grey.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
STYLES = ("-", "--", ":")
OWN = "ONB-MACF"


def radar(scores: pd.DataFrame, title: str = "", ax: Any = None) -> Any:
    """Draw one closed line per method over the metrics (1 is best, outside); return the Axes.

    `scores` has a column `method` and the eight metrics; a missing value is drawn at 0.
    """
    if ax is None:
        ax = _new_axes()
    angles = np.linspace(0, 2 * np.pi, len(METRICS), endpoint=False)
    for place, (method, values) in enumerate(zip(scores["method"], scores[METRICS].to_numpy(), strict=True)):
        closed = np.append(np.nan_to_num(values.astype(float)), np.nan_to_num(values[0]))
        ax.plot(np.append(angles, angles[0]), closed, label=method, **_style(method, place))
    ax.set_xticks(angles, [AXIS_NAMES[metric] for metric in METRICS])
    ax.tick_params(axis="x", pad=12)
    ax.set_ylim(0, 1)
    ax.set_yticks([0.25, 0.5, 0.75, 1.0])
    ax.set_title(title, pad=18)
    ax.legend(loc="upper left", bbox_to_anchor=(1.08, 1.05), frameon=False, fontsize="small")
    return ax


def _style(method: str, place: int) -> dict[str, Any]:
    if str(method).startswith(OWN):
        return {"color": "black", "linewidth": 2.5, "zorder": 3, "linestyle": "-" if method == OWN else "--"}
    return {"color": COLOURS[place % len(COLOURS)], "linestyle": STYLES[place // len(COLOURS) % len(STYLES)]}


def _new_axes() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("radar plots need matplotlib: pip install 'onbmacf[bench]'.") from error
    return Figure(figsize=(7.5, 5), layout="constrained").add_subplot(projection="polar")
