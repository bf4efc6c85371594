"""A point in time at which a call must come to an end, and whether it has passed.

The clock is the machine's own time of day: workers in other processes and on other machines have it, too.
"""

from math import inf
from time import time
from typing import Any

from onbmacf._base.checks import real_number, shortened
from onbmacf.errors import ParameterError

NEVER = inf


def deadline_after(seconds: Any) -> float:
    """Return the time of day at which so many seconds have passed; never for None."""
    if seconds is None:
        return NEVER
    if not 0 < real_number(seconds) < inf:
        raise ParameterError(f"max_seconds must be a number above 0, got {shortened(seconds)}.")
    return time() + float(seconds)


def is_over(deadline: float) -> bool:
    """Say whether a deadline has passed.

    >>> is_over(NEVER), is_over(0.0)
    (False, True)
    """
    return deadline != NEVER and time() >= deadline


def seconds_left(deadline: float, most: float) -> float:
    """Return how many seconds are left, and no more than `most`."""
    return most if deadline == NEVER else max(0.0, min(most, deadline - time()))
