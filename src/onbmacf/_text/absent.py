"""Whether a cell of a caller's table holds a value at all, whatever stands for none."""

from decimal import Decimal
from typing import Any


def is_absent(value: Any) -> bool:
    """Say whether a cell holds no value.

    >>> import pandas as pd
    >>> [is_absent(value) for value in (None, float("nan"), pd.NA, pd.NaT, 0, "", [None])]
    [True, True, True, True, False, False, False]
    """
    import pandas as pd  # here, since the words of the command line's help need no tables

    if isinstance(value, Decimal):
        return value.is_nan()  # pandas cannot look at a signalling one
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))
