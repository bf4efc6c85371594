"""A point in time at which a call must come to an end, and whether it has passed.

The clock is the machine's own time of day: workers in other processes and on other machines have it, too.
"""

from math import inf, isfinite
from time import time
from typing import Any

from onbmacf.errors import ParameterError

NEVER = inf


def deadline_after(seconds: Any) -> float:
    """Return the time of day at which so many seconds have passed; never for None."""
    if seconds is None:
        return NEVER
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not (isfinite(seconds) and seconds > 0):
        raise ParameterError(f"max_seconds must be a number above 0, got {seconds!r}.")
    return time() + seconds


def is_over(deadline: float) -> bool:
    """Say whether a deadline has passed.

    >>> is_over(NEVER), is_over(0.0)
    (False, True)
    """
    return deadline != NEVER and time() >= deadline


def seconds_left(deadline: float, most: float) -> float:
    """Return how many seconds are left, and no more than `most`."""
    return most if deadline == NEVER else max(0.0, min(most, deadline - time()))
