"""What a container of rows is, told by what it can do: no other library is imported for it.

rows without names  ->  plain_array  ->  array of cells
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

OWN = ("pandas", "numpy")
TABLES = ("to_pandas", "__arrow_c_stream__", "__dataframe__")  # what tables of other libraries have


def is_foreign_table(rows: Any) -> bool:
    """Say whether something is a table, or a column, of another library than pandas."""
    is_own = type(rows).__module__.split(".")[0] in OWN
    return not is_own and any(hasattr(rows, name) for name in TABLES)


def kind_of(rows: Any) -> str:
    """Return the library and the type of something in words.

    >>> kind_of(np.zeros(2))
    'numpy ndarray'
    """
    return f"{type(rows).__module__.split('.')[0]} {type(rows).__name__}"


def plain_array(rows: Any, error: type[Exception], as_objects: bool = True) -> NDArray[Any]:
    """Return rows without names as an array: cells of a list each as it is, unless told otherwise; masked: missing."""
    if "sparse" in type(rows).__module__:
        raise error(f"{type(rows).__name__} is sparse: only dense rows are supported. Call .toarray() first.")
    if isinstance(rows, np.ma.MaskedArray):
        return np.asarray(np.ma.filled(rows.astype(object), None))
    try:
        return np.array(rows, dtype=object) if as_objects and isinstance(rows, list | tuple) else np.asarray(rows)
    except Exception as cause:
        raise error(f"{type(rows).__name__} cannot be read as rows and columns: {cause}") from cause
