"""Checks of arguments and of values from outside (rules, TOML files, manifests of maps), and errors in words.

Messages have one form: `name must be ..., got ...`.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches
from math import inf, isnan, nan
from numbers import Integral, Real
from typing import Any

from onbmacf.errors import ParameterError

MOST_SHOWN = 60  # characters of a value in a message
MOST_SAID = 500  # characters of a message
LARGEST_INT = 2**63  # beyond this, numpy makes objects of whole numbers
Check = Callable[[str, Any], Any]  # what a value is called, and the value -> the value, or an error


# --- arguments --------------------------------------------------------------------------------------------------------


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Return a whole number of at least `least`; bools and floats are not whole numbers."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ParameterError(f"{name} must be a whole number of at least {least}, got {shortened(value)}.")
    return int(value)


def is_absent(value: Any) -> bool:
    """Say whether a cell holds no value.

    >>> import pandas as pd
    >>> [is_absent(value) for value in (None, float("nan"), pd.NA, pd.NaT, 0, "", [None])]
    [True, True, True, True, False, False, False]
    """
    import pandas as pd  # here, for the command line's help needs no tables

    if isinstance(value, Decimal):
        return value.is_nan()  # pandas cannot look at a signalling one
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def real_number(value: Any) -> float:
    """Return a number as float64: NaN for what is none, infinity for what is too large.

    >>> real_number(3), real_number(True), real_number("3"), real_number(-(10**400))
    (3.0, nan, nan, -inf)
    """
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    try:
        return float(value) if is_number else nan
    except OverflowError:
        return inf if value > 0 else -inf


def whole_number(text: str) -> int:
    """Return the number that up to 18 digits write; -1 for any other text, since Python refuses to read thousands.

    >>> whole_number("17"), whole_number("-3"), whole_number("9" * 5000)
    (17, -1, -1)
    """
    return int(text) if text.isdecimal() and len(text) <= 18 else -1


def check_between(name: str, value: Any, low: float, high: float) -> float:
    """Return a number strictly between low and high."""
    if not low < real_number(value) < high:
        raise ParameterError(f"{name} must be in ({low}, {high}), got {shortened(value)}.")
    return float(value)


def check_within(name: str, value: Any, low: float, high: float) -> float:
    """Return a number from low to high, both included."""
    if not low <= real_number(value) <= high:
        raise ParameterError(f"{name} must be in [{low}, {high}], got {shortened(value)}.")
    return float(value)


def check_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """Return a value that is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ParameterError(f"{name} must be one of {listed(choices)}, got {shortened(value)}.")
    return value


def names_of(role: str, names: Any) -> list[Hashable]:
    """Return names of columns as a list; a text is one name, None is none."""
    if isinstance(names, str) or names is None:
        return [] if names is None else [names]
    if not isinstance(names, Iterable) or isinstance(names, Mapping):
        raise ParameterError(f"{role} must be names of columns in a list, got {shortened(names)}.")
    return list(names)


def shortened(value: Any) -> str:
    """Return a value as it is written, cut off where it is long."""
    try:
        text = repr(value)
    except Exception:  # a whole number of thousands of digits, or a class of the caller's own
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def listed(values: Iterable[Any], most: int = 12) -> str:
    """Return values as a readable list, cut off after `most` of them, and each where it is long."""
    values = list(values)
    tail = f", ... ({len(values) - most} more)" if len(values) > most else ""
    return ", ".join(shortened(value) for value in values[:most]) + tail


def did_you_mean(word: Any, known: Iterable[Any]) -> str:
    """Return ' Did you mean ...?' for the closest spelling, or nothing."""
    if isinstance(word, str) and len(word) > MOST_SAID:  # to compare it would take its length squared
        return ""
    spelled = {str(value): value for value in known}
    close = get_close_matches(str(word), spelled, n=1)
    return f" Did you mean {shortened(spelled[close[0]])}?" if close else ""


# --- values from outside ----------------------------------------------------------------------------------------------


def checked(where: str, entry: Any, keys: Mapping[str, Check], required: Collection[str] = ()) -> dict[str, Any]:
    """Return a table of values, each checked by its key; unknown and missing keys are errors that name them."""
    for key in table(where, entry):
        if key not in keys:
            hint = did_you_mean(key, keys)
            raise ParameterError(f"{where}: unknown key {shortened(key)}.{hint} Allowed: {listed(keys, 99)}.")
    for key in required:
        if key not in entry:
            raise ParameterError(f"{where}: the key {key!r} is missing.")
    return {key: keys[key](f"{where}: {key}", value) for key, value in entry.items()}


def table(name: str, value: Any) -> Mapping[Any, Any]:
    """Check for a table with any keys."""
    if not isinstance(value, Mapping):
        raise ParameterError(f"{name} must be a table, got {shortened(value)}.")
    return value


def number(low: float = -inf, high: float = inf, *, above: float = -inf, finite: bool = False) -> Check:
    """Return a check for a number within bounds, which is not NaN."""
    at_least = f" of at least {low:g}" if low > -inf else f" above {above:g}" if above > -inf else ""
    at_most = f" up to {high:g}" if high < inf else ""

    def check(name: str, value: Any) -> Any:
        found = plain_number(value)
        is_within = low <= found <= high and (found > above or above == -inf)
        if not is_within or (finite and found in (inf, -inf)):
            raise ParameterError(f"{name} must be a number{at_least}{at_most}, got {shortened(value)}.")
        return found

    return check


def count(low: int = 0, high: int | None = None) -> Check:
    """Return a check for a whole number within bounds."""
    bounds = f"from {low} to {high:,}" if high is not None else f"of at least {low}"

    def check(name: str, value: Any) -> int:
        is_count = isinstance(value, Integral) and not isinstance(value, bool)
        if not is_count or value < low or (high is not None and value > high):
            raise ParameterError(f"{name} must be a whole number {bounds}, got {shortened(value)}.")
        return int(value)

    return check


def word(*choices: str) -> Check:
    """Return a check for one of some words, or for any text."""

    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or (choices and value not in choices):
            allowed = f"one of {listed(choices)}" if choices else "text"
            raise ParameterError(f"{name} must be {allowed}, got {shortened(value)}.")
        return value

    return check


def flag(name: str, value: Any) -> bool:
    """Check for True or False."""
    if not isinstance(value, bool):
        raise ParameterError(f"{name} must be true or false, got {shortened(value)}.")
    return value


def level(name: str, value: Any) -> Any:
    """Check for a level, a label or a column's name: text, a number, or anything else that can be a key."""
    if not isinstance(value, Hashable) or value is None or (isinstance(value, float) and isnan(value)):
        raise ParameterError(f"{name} must be text, a number or a bool, got {shortened(value)}.")
    return value


def optional(check: Check) -> Check:
    """Return a check that also takes None."""
    return lambda name, value: None if value is None else check(name, value)


def sequence(check: Check, length: int | None = None, least: int = 0) -> Check:
    """Return a check for a list whose entries pass another; the result is a tuple."""
    size = f" of {length}" if length is not None else f" of at least {least}" if least else ""

    def check_each(name: str, value: Any) -> tuple[Any, ...]:
        if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
            raise ParameterError(f"{name} must be a list{size}, got {shortened(value)}.")
        entries = tuple(value)
        if (length is not None and len(entries) != length) or len(entries) < least:
            raise ParameterError(f"{name} must be a list{size}, got {shortened(value)}.")
        return tuple(check(f"{name}[{place}]", entry) for place, entry in enumerate(entries))

    return check_each


def plain_number(value: Any) -> float:
    """Return a number as one of Python's that numpy makes no object of; NaN for what float64 cannot hold.

    >>> plain_number(65), plain_number(2**64), plain_number(10**400), plain_number("3")
    (65, 1.8446744073709552e+19, nan, nan)
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        return nan
    try:
        number = float(value)
    except OverflowError:
        return nan
    return int(value) if isinstance(value, Integral) and abs(number) < LARGEST_INT else number


def is_number(value: Any) -> bool:
    """Say whether a value is a number that float64 can hold."""
    return not isnan(plain_number(value))


# --- errors in words --------------------------------------------------------------------------------------------------


def message_of(error: BaseException) -> str:
    """Return the message of an exception, cut off where it is long; the name of its class where it has none.

    >>> message_of(KeyError("dose")), message_of(StopIteration())
    ("'dose'", 'StopIteration')
    """
    try:
        text = str(error)
    except Exception as other:
        text = f"{type(error).__name__}, whose message cannot be read ({type(other).__name__})"
    return (text if len(text) <= MOST_SAID else f"{text[:MOST_SAID]}...") or type(error).__name__


def error_words(error: BaseException) -> str:
    """Return the class and the message of an exception.

    >>> error_words(ValueError("no dose")), error_words(StopIteration())
    ('ValueError: no dose', 'StopIteration')
    """
    name, message = type(error).__name__, message_of(error)
    return message if message.startswith(name) else f"{name}: {message}"
