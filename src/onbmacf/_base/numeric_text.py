"""Text that looks like numbers: decimal commas, thousands separators, units of money, and marks for what is missing.

column of text  ->  numbers_as_text  ->  what was found, in words; empty where the texts are names
"""

import re
from typing import Any

import pandas as pd

DIGIT = re.compile(r"\d")
NUMBER = re.compile(
    r"""\s*[$€£]?\s*[+-]?
    (?: \d{1,3} (?:[,.'\u2019\u00a0\u202f ]\d{3})+ (?:[.,]\d+)?   # 4,000 and 1.234.567,8
      | \d+ (?:[.,]\d*)? | [.,]\d+ )                               # 12,5 and .5
    (?:[eE][+-]?\d+)? \s*[%$€£]?\s*""",
    re.VERBOSE,
)
LEAST = 0.5  # share of the values that look like numbers from which on the others are marks, not names


def numbers_as_text(column: "pd.Series[Any]") -> str:
    """Return how a column of text looks like numbers; empty where it holds names.

    At least half of its values look like numbers, and no other has a digit: '3+' or '10-20' is the name of a group.

    >>> numbers_as_text(pd.Series(["12,5", "7", "?"]))
    "text of which 2 of 3 values look like numbers, e.g. '12,5', and others do not, e.g. '?'"
    >>> numbers_as_text(pd.Series(["0", "1", "2", "3+"]))
    ''
    """
    counts = column.value_counts(sort=False)
    is_number = pd.Series([NUMBER.fullmatch(str(text)) is not None for text in counts.index], index=counts.index)
    n_numbers, others = int(counts[is_number].sum()), counts.index[~is_number]
    if n_numbers < LEAST * len(column) or not n_numbers or any(DIGIT.search(str(text)) for text in others):
        return ""
    example = repr(_example(counts.index[is_number]))
    if not len(others):
        return f"numbers stored as text, e.g. {example}"
    words = f"text of which {n_numbers:,} of {len(column):,} values look like numbers, e.g. {example}"
    return f"{words}, and others do not, e.g. {str(others[0])!r}"


def _example(texts: Any) -> str:
    """Return the first text, sooner one that is not plainly a number."""
    odd = [text for text in texts if not re.fullmatch(r"[-+]?\d+(\.\d+)?", str(text))]
    return str([*odd, *texts][0])
