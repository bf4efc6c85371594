"""Argument checks shared by several modules. Messages have one form: `name must be ..., got ...`."""

from collections.abc import Collection, Hashable, Iterable, Mapping
from difflib import get_close_matches
from math import inf, nan
from numbers import Integral, Real
from typing import Any

from onbmacf.errors import ParameterError

MOST_SHOWN = 60  # characters of a value in a message


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Return a whole number of at least `least`; bools and floats are not whole numbers."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ParameterError(f"{name} must be a whole number of at least {least}, got {shortened(value)}.")
    return int(value)


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
    """Return values as a readable list, cut off after `most` of them."""
    words = [repr(value) for value in values]
    tail = f", ... ({len(words) - most} more)" if len(words) > most else ""
    return ", ".join(words[:most]) + tail


def did_you_mean(word: Any, known: Iterable[Any]) -> str:
    """Return ' Did you mean ...?' for the closest spelling, or nothing."""
    spelled = {str(value): value for value in known}
    close = get_close_matches(str(word), spelled, n=1)
    return f" Did you mean {spelled[close[0]]!r}?" if close else ""
