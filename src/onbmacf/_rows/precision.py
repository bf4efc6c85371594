"""How many decimals a changed value has: as few as a reader needs, and the model is asked about those very values.

    fitted values of a continuous feature  ->  readable_decimals  ->  number of decimals

The table's own decimals where it has few (prices in cents stay cents); otherwise so many that the fitted range has
between 1,000 and 10,000 steps (docs/decisions/0045-readable-values.md).
"""

import numpy as np

from onbmacf._base.arrays import Matrix

FEW = 2  # decimals that a table may have whatever its range
DIGITS = 3  # the range has 10**3 to 10**4 steps
MOST = 290  # float64 has no more


def readable_decimals(values: Matrix, dtype: object) -> int:
    """Return the decimals of the values that a continuous feature may change to."""
    needed = of_range(float(values.max() - values.min()))
    own = own_decimals(values, dtype, max(FEW, needed))
    return needed if own is None else own


def of_range(span: float) -> int:
    """Return the decimals with which a range has 1,000 to 10,000 steps; whole numbers at least.

    >>> of_range(31.2), of_range(0.05), of_range(250_000)
    (2, 5, 0)
    """
    return 0 if span <= 0 else int(np.clip(DIGITS - np.floor(np.log10(span)), 0, MOST))


def own_decimals(values: Matrix, dtype: object, most: int) -> int | None:
    """Return the fewest decimals that write all values exactly, in their own precision; None if `most` do not."""
    narrow = dtype if isinstance(dtype, np.dtype) and dtype.kind == "f" else np.dtype(np.float64)
    exact = values.astype(narrow)
    for decimals in range(most + 1):
        if np.array_equal(np.round(values, decimals).astype(narrow), exact):
            return decimals
    return None
