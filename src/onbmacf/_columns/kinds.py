"""The kind of a column that the caller did not describe, read off its dtype and its values.

    column  ->  guess  ->  kind, immutable, levels     (or a TableError that names the column)
    column  ->  observed_levels, is_own_text, is_code; its name  ->  suggested

Nothing is guessed silently: numbers stored as text, columns that mix types and dtypes that have no distance are errors.
"""

import re
from collections import Counter
from collections.abc import Sequence
from math import log
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from onbmacf._columns.converters import converter_of
from onbmacf._columns.moments import is_date_text
from onbmacf.errors import TableError

Kind = Literal["continuous", "integer", "ordinal", "categorical", "binary"]
KINDS: tuple[str, ...] = get_args(Kind)
NUMERIC = ("continuous", "integer")
OWN_ROWS, OWN_SHARE = 20, 0.95  # text is a row's own where so many have some, and so large a share of it differs
LEAST_STEPS, BY_CHANCE = 3, log(100)  # numbers that are multiples of a step, and how unlikely that must be
LARGEST_EXACT = 2.0**53  # beyond this, float64 cannot represent every whole number
NUMBER = re.compile(
    r"""\s*[$€£]?\s*[+-]?
    (?: \d{1,3} (?:[,.'\u2019\u00a0\u202f ]\d{3})+ (?:[.,]\d+)?   # 4,000 and 1.234.567,8
      | \d+ (?:[.,]\d*)? | [.,]\d+ )                               # 12,5 and .5
    (?:[eE][+-]?\d+)? \s*[%$€£]?\s*""",
    re.VERBOSE,
)
WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[a-z]+")  # of a column's name: birth_date, BirthDate, birth date
CODES = {"id", "uuid", "zip", "zipcode", "postcode", "postal", "plz", "code", "phone", "iban", "ssn"}
GROWS = {"age", "years", "tenure", "seniority", "experience", "since", "residence", "prior", "priors", "previous"}
GROWS |= {"past", "before", "ever", "claims", "accidents", "convictions", "arrests", "pregnancies"}
STAYS = {"sex", "gender", "race", "ethnicity", "nationality", "origin", "religion", "disability", "born", "birth"}
STAYS |= {"birthday", "birthdate", "dob"}
SERIAL = 1_000  # numbers of one width from here on, each in one row and next to each other, are serial numbers
ANY_DATE = re.compile(r"(\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-]\d{4})(?!\d)")
LOOKED_AT = 100  # values, to see whether they are dates
LEAST_NUMBERS = 0.5  # share of the values that look like numbers from which on the others are marks, not names


def observed_levels(column: "pd.Series[Any]") -> tuple[Any, ...]:
    """Return the levels seen in a column: categories in their order, anything else sorted; a missing value is none."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return tuple(column.cat.remove_unused_categories().cat.categories.tolist())
    found = column.dropna().drop_duplicates().tolist()  # of times, those of pandas
    try:
        return tuple(sorted(found))
    except TypeError:
        return tuple(sorted(found, key=lambda level: (type(level).__name__, str(level))))


def is_own_text(column: "pd.Series[Any]") -> bool:
    """Whether nearly every row has a text of its own there, as names, identifiers and free text are (decision 0022).

    >>> is_own_text(pd.Series([f"P{number}" for number in range(20)])), is_own_text(pd.Series(["a", "b"] * 10))
    (True, False)
    """
    is_text = pd.api.types.is_string_dtype(column.dtype) or pd.api.types.is_object_dtype(column.dtype)
    if not is_text or isinstance(column.dtype, pd.CategoricalDtype):
        return False
    present = column.dropna()
    if len(present) < OWN_ROWS or not isinstance(present.iloc[0], str):
        return False
    return bool(present.nunique() >= OWN_SHARE * len(present))


def is_code(column: "pd.Series[Any]") -> bool:
    """Whether numbers only name something: a postcode, the number of a customer, or text such as 01067 (decision 0022).

    >>> is_code(pd.Series([1067, 80331, 1069], name="zip")), is_code(pd.Series([30, 41, 52], name="age"))
    (True, False)
    >>> is_code(pd.Series(range(4000, 4030))), is_code(pd.Series(["01067", "80331"]))
    (True, True)
    """
    is_number = pd.api.types.is_numeric_dtype(column.dtype)
    if is_number and (converter_of(column) is not None or not _is_whole(column)):
        return False
    values = column.dropna().drop_duplicates()
    if not is_number:
        return are_padded(values.tolist())
    if len(values) < 3:
        return False
    low, high = float(values.min()), float(values.max())
    is_serial = len(values) == len(column) >= OWN_ROWS and low >= SERIAL and high - low < 3 * len(values)
    return not CODES.isdisjoint(_words(column.name)) or (is_serial and len(f"{low:.0f}") == len(f"{high:.0f}"))


def are_padded(values: Sequence[Any]) -> bool:
    """Say whether all values are digits of one width, some after a zero: 01067 is no number."""
    is_digits = bool(values) and all(isinstance(value, str) and re.fullmatch(r"\d{2,}", value) for value in values)
    return is_digits and len({len(value) for value in values}) == 1 and any(value[0] == "0" for value in values)


def are_dates(values: Sequence[Any]) -> bool:
    """Whether all values are text that says dates, as ISO 8601 writes them.

    >>> are_dates(["2024-05-31", "2024-06-01"]), are_dates(["31.05.2024"]), are_dates([])
    (True, False, False)
    """
    return bool(values) and all(map(is_date_text, values[:LOOKED_AT]))


def look_like_dates(values: Sequence[Any]) -> bool:
    """Whether all values are text that says dates, in any order of day, month and year.

    >>> look_like_dates(["31.05.2024", "1/6/2024"]), look_like_dates(["1.5", "2.5"])
    (True, False)
    """
    return bool(values) and all(isinstance(value, str) and ANY_DATE.match(value) for value in values[:LOOKED_AT])


def suggested(name: Any, is_number: bool) -> str:
    """Return what the name of a column suggests: that it only goes "up", or is "immutable"; empty where it does not.

    >>> suggested("n_past_claims", True), suggested("BirthDate", False), suggested("income", True)
    ('up', 'immutable', '')
    """
    words = _words(name)
    if not STAYS.isdisjoint(words):
        return "immutable"
    return "up" if is_number and not GROWS.isdisjoint(words) else ""


def _words(name: Any) -> set[str]:
    return {word.lower() for word in WORDS.findall(str(name))}


def step_of(column: "pd.Series[Any]") -> int | None:
    """Return the step in which whole numbers were written down, where it is more than 1 and hardly by chance.

    Multiples of 5 among three different numbers are 1 in 125 by chance, of 2 among six 1 in 64.

    >>> step_of(pd.Series([0, 15, 5, 10])), step_of(pd.Series([38_000, 7_000, 12_000])), step_of(pd.Series([2, 4, 8]))
    (5, 1000, None)
    """
    values = np.unique(np.abs(column.dropna().to_numpy(dtype=np.float64)))
    values = values[values > 0]
    if len(values) < LEAST_STEPS or not values[-1] < LARGEST_EXACT:
        return None
    step = int(np.gcd.reduce(values.astype(np.int64)))
    return step if len(values) * log(step) > BY_CHANCE else None


def guess(column: "pd.Series[Any]", immutable: bool) -> tuple[Kind, bool, tuple[Any, ...] | None]:
    """Return kind, immutable and levels of a column that was not described by the caller."""
    dtype = column.dtype
    converter = converter_of(column)
    if converter is not None:
        return ("continuous" if converter.kind == "decimal" else "integer"), immutable, None
    if isinstance(dtype, pd.CategoricalDtype):
        if dtype.ordered:
            return "ordinal", immutable, tuple(dtype.categories.tolist())
        return _levelled(column), immutable, None
    if pd.api.types.is_bool_dtype(dtype):
        return "binary", immutable, (False, True)
    if pd.api.types.is_complex_dtype(dtype):
        raise _no_distance(column)
    if pd.api.types.is_numeric_dtype(dtype):
        return ("integer" if _is_whole(column) else "continuous"), immutable, None
    if pd.api.types.is_string_dtype(dtype) or pd.api.types.is_object_dtype(dtype):
        return _guess_objects(column, immutable)
    raise _no_distance(column)


def _guess_objects(column: "pd.Series[Any]", immutable: bool) -> tuple[Kind, bool, tuple[Any, ...] | None]:
    present = column[column.notna()]
    inferred = present.infer_objects()
    if not pd.api.types.is_object_dtype(inferred.dtype) and not pd.api.types.is_string_dtype(inferred.dtype):
        return guess(inferred, immutable)
    is_text = present.map(lambda value: isinstance(value, str)).to_numpy(dtype=bool)
    if not is_text.all():
        if not is_text.any():
            raise _no_distance(column)
        text, other = present[is_text].iloc[0], present[~is_text].iloc[0]
        raise TableError(
            f"column {column.name!r} mixes text and other values, e.g. {text!r} and {other!r}. Convert it to one type."
        )
    if found := numbers_as_text(present.tolist()):
        raise TableError(
            f"column {column.name!r} holds {found}. Give them as numbers, with a point for decimals "
            "and nothing in place of marks, or, if they are names, say that the kind is categorical (--kinds); "
            f"in Python, pd.to_numeric or kinds={{{column.name!r}: 'categorical'}}."
        )
    return _levelled(column), immutable, None


def _levelled(column: "pd.Series[Any]") -> Kind:
    return "binary" if column.nunique() == 2 else "categorical"


def _is_whole(column: "pd.Series[Any]") -> bool:
    if pd.api.types.is_integer_dtype(column.dtype):
        return True
    values = column.dropna().to_numpy(dtype=np.float64)
    return bool(np.all(np.abs(values) < LARGEST_EXACT) and np.all(np.trunc(values) == values))


def _no_distance(column: "pd.Series[Any]") -> TableError:
    return TableError(
        f"column {column.name!r} has dtype {column.dtype}, for which no distance is defined. Allowed: "
        "numbers, bool, text, categories, dates, times, durations, periods and decimals."
    )


def numbers_as_text(texts: Sequence[str]) -> str:
    """Return how a column of text looks like numbers; empty where it holds names.

    At least half of its values look like numbers, and no other has a digit: '3+' or '10-20' is the name of a group.

    >>> numbers_as_text(["12,5", "7", "?"])
    "text of which 2 of 3 values look like numbers, e.g. '12,5', and others do not, e.g. '?'"
    >>> numbers_as_text(["0", "1", "2", "3+"])
    ''
    """
    if are_padded(texts):
        return ""
    counts = Counter(texts)
    numbers = [text for text in counts if NUMBER.fullmatch(text)]
    others = [text for text in counts if not NUMBER.fullmatch(text)]
    n_numbers = sum(counts[text] for text in numbers)
    if not n_numbers or n_numbers < LEAST_NUMBERS * len(texts) or any(re.search(r"\d", text) for text in others):
        return ""
    if not others:
        return f"numbers stored as text, e.g. {_example(numbers)!r}"
    words = f"text of which {n_numbers:,} of {len(texts):,} values look like numbers, e.g. {_example(numbers)!r}"
    return f"{words}, and others do not, e.g. {others[0]!r}"


def _example(texts: list[str]) -> str:
    """Return the first text, sooner one that is not plainly a number."""
    return next((text for text in texts if not re.fullmatch(r"[-+]?\d+(\.\d+)?", text)), texts[0])
