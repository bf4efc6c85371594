"""Radar plots of the benchmark's scaled scores: one axis per metric, one line per method."""

from typing import Any

import pandas as pd

from onbmacf import plots

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
OWN = "ONB-MACF"


def radar(scores: pd.DataFrame, title: str = "", ax: Any = None) -> Any:
    """Draw one closed line per method over the eight metrics; return the Axes."""
    return plots.radar(scores, AXIS_NAMES, own=OWN, title=title, ax=ax)
