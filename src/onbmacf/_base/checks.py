"""Argument checks shared by several modules. Messages have one form: `name must be ..., got ...`."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

from onbmacf.errors import ParameterError


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Return a whole number of at least `least`; bools and floats are not whole numbers."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ParameterError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    return int(value)


def check_between(name: str, value: Any, low: float, high: float) -> float:
    """Return a number strictly between low and high."""
    if isinstance(value, bool) or not isinstance(value, Real) or not low < float(value) < high:
        raise ParameterError(f"{name} must be in ({low}, {high}), got {value!r}.")
    return float(value)


def check_within(name: str, value: Any, low: float, high: float) -> float:
    """Return a number from low to high, both included."""
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
        raise ParameterError(f"{name} must be in [{low}, {high}], got {value!r}.")
    return float(value)


def check_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """Return a value that is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ParameterError(f"{name} must be one of {listed(choices)}, got {value!r}.")
    return value


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
