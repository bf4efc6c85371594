"""Whether a cell of a caller's table holds a value at all, whatever stands for none."""

from typing import Any

import pandas as pd


def is_absent(value: Any) -> bool:
    """Say whether a cell holds no value.

    >>> [is_absent(value) for value in (None, float("nan"), pd.NA, pd.NaT, 0, "", [None])]
    [True, True, True, True, False, False, False]
    """
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))
