"""Text that looks like numbers: decimal commas, thousands separators, units of money, and marks for what is missing.

column of text  ->  numbers_as_text  ->  what was found, in words; empty where the texts are names
"""

import re
from collections import Counter
from collections.abc import Sequence

DIGIT = re.compile(r"\d")
NUMBER = re.compile(
    r"""\s*[$€£]?\s*[+-]?
    (?: \d{1,3} (?:[,.'\u2019\u00a0\u202f ]\d{3})+ (?:[.,]\d+)?   # 4,000 and 1.234.567,8
      | \d+ (?:[.,]\d*)? | [.,]\d+ )                               # 12,5 and .5
    (?:[eE][+-]?\d+)? \s*[%$€£]?\s*""",
    re.VERBOSE,
)
LEAST = 0.5  # share of the values that look like numbers from which on the others are marks, not names


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
