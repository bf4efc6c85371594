"""What a caller may hand over: containers of rows, told by what they can do, and text that looks like numbers."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

OWN = ("pandas", "numpy")
TABLES = ("to_pandas", "__arrow_c_stream__", "__dataframe__")  # what tables of other libraries have
DIGIT = re.compile(r"\d")
NUMBER = re.compile(
    r"""\s*[$€£]?\s*[+-]?
    (?: \d{1,3} (?:[,.'\u2019\u00a0\u202f ]\d{3})+ (?:[.,]\d+)?   # 4,000 and 1.234.567,8
      | \d+ (?:[.,]\d*)? | [.,]\d+ )                               # 12,5 and .5
    (?:[eE][+-]?\d+)? \s*[%$€£]?\s*""",
    re.VERBOSE,
)
LEAST = 0.5  # share of the values that look like numbers from which on the others are marks, not names


# --- containers of rows -----------------------------------------------------------------------------------------------


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


# --- text that looks like numbers -------------------------------------------------------------------------------------


def numbers_as_text(texts: Sequence[str]) -> str:
    """Return how a column of text looks like numbers; empty where it holds names.

    At least half of its values look like numbers, and no other has a digit: '3+' or '10-20' is the name of a group.

    >>> numbers_as_text(["12,5", "7", "?"])
    "text of which 2 of 3 values look like numbers, e.g. '12,5', and others do not, e.g. '?'"
    >>> numbers_as_text(["0", "1", "2", "3+"])
    ''
    """
    counts = Counter(texts)
    numbers = [text for text in counts if NUMBER.fullmatch(text)]
    others = [text for text in counts if not NUMBER.fullmatch(text)]
    n_numbers = sum(counts[text] for text in numbers)
    if not n_numbers or n_numbers < LEAST * len(texts) or any(DIGIT.search(text) for text in others):
        return ""
    if not others:
        return f"numbers stored as text, e.g. {_example(numbers)!r}"
    words = f"text of which {n_numbers:,} of {len(texts):,} values look like numbers, e.g. {_example(numbers)!r}"
    return f"{words}, and others do not, e.g. {others[0]!r}"


def _example(texts: list[str]) -> str:
    """Return the first text, sooner one that is not plainly a number."""
    return next((text for text in texts if not re.fullmatch(r"[-+]?\d+(\.\d+)?", text)), texts[0])
