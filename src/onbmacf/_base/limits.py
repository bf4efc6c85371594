"""What ends a call early or forbids it: a deadline, a signal to stop, too little memory."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from time import time
from typing import Any

from onbmacf._base.checks import real_number, shortened
from onbmacf.errors import NotEnoughMemoryError, ParameterError

NEVER = inf
CTRL_C, TERMINATED = 130, 143  # exit codes: 128 and the number of the signal
CGROUP = Path("/sys/fs/cgroup")  # limits of a container


# --- deadline ---------------------------------------------------------------------------------------------------------


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


# --- told to stop -----------------------------------------------------------------------------------------------------


class TerminatedError(KeyboardInterrupt):
    """SIGTERM came."""


def exit_code(error: BaseException | None) -> int:
    """Return the exit code of a command that was stopped by this, or because of it."""
    while error is not None:
        if isinstance(error, TerminatedError):
            return TERMINATED
        error = error.__cause__ or error.__context__
    return CTRL_C


@contextmanager
def termination_is_an_interrupt() -> Iterator[None]:
    """Let SIGTERM raise TerminatedError in here; only the main thread can, elsewhere nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(*_: Any) -> None:
    raise TerminatedError


# --- memory -----------------------------------------------------------------------------------------------------------


def check_memory(needed: float, what: str, remedy: str) -> None:
    """Raise an error if more than the available bytes are needed; do nothing where these are not known."""
    free = available_bytes()
    if free is not None and needed > free:
        raise NotEnoughMemoryError(
            f"{what} needs about {needed / 1e9:,.1f} GB of memory, and {free / 1e9:,.1f} GB are available. {remedy}"
        )


def available_bytes() -> int | None:
    """Return how many bytes this process can still allocate without swapping, or None if unknown."""
    known = [limit for limit in (_machine(), _container()) if limit is not None]
    return min(known, default=None)


def _machine() -> int | None:
    """Return the memory that the system reports as available, or else all physical memory."""
    try:
        told = Path("/proc/meminfo").read_text(encoding="ascii")
        return int(dict(line.split(":", 1) for line in told.splitlines())["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _container() -> int | None:
    """Return what is left of a container's limit; the page cache counts as free, since it can be reclaimed."""
    try:
        limit = int((CGROUP / "memory.max").read_text(encoding="ascii"))  # "max": no limit
        used = int((CGROUP / "memory.current").read_text(encoding="ascii"))
        stat = dict(line.split() for line in (CGROUP / "memory.stat").read_text(encoding="ascii").splitlines())
        return max(0, limit - used + int(stat.get("file", 0)))
    except (OSError, ValueError):
        return None
