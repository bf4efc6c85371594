"""Values that come from outside (rules, TOML files, the manifests of maps): a check per key, with names and bounds.

    RULE = {"low": number(), "step": optional(number(above=0)), "direction": optional(word("up", "down"))}
    checked("rule for 'age'", {"low": "a"}, RULE)  ->  ParameterError: rule for 'age': low must be a number, got 'a'.

A check takes the name of a value and the value, and returns the value or raises a ParameterError that names it.
"""

from collections.abc import Callable, Collection, Hashable, Mapping
from math import inf, isnan
from numbers import Integral, Real
from typing import Any

from onbmacf._base.checks import did_you_mean, listed, shortened
from onbmacf.errors import ParameterError

Check = Callable[[str, Any], Any]


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
        is_within = is_number(value) and low <= value <= high and (value > above or above == -inf)
        if not is_within or (finite and value in (inf, -inf)):
            raise ParameterError(f"{name} must be a number{at_least}{at_most}, got {shortened(value)}.")
        return value

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


def is_number(value: Any) -> bool:
    """Say whether a value is a number that float64 can hold."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and not isnan(float(value))
    except OverflowError:
        return False
