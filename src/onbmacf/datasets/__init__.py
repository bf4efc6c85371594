"""The embedded table: South African heart disease, 462 men of the Western Cape.

Public figures of Rossouw et al. (1983), as used in The Elements of Statistical Learning: nine features and `chd`,
coronary heart disease. Values and order are those of the KEEL copy (SHA-256 82d9144a...).
"""

from importlib.resources import files
from typing import Any

import pandas as pd


def load_heart() -> "tuple[pd.DataFrame, pd.Series[Any]]":
    """Return the heart table and its target `chd` (1 = disease).

    >>> table, chd = load_heart()
    >>> table.shape, int(chd.sum())
    ((462, 9), 160)
    """
    with (files("onbmacf.datasets") / "heart.csv").open(encoding="utf-8") as file:
        table = pd.read_csv(file)
    chd = table.pop("chd")
    return table, chd
