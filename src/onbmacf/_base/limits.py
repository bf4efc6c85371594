"""What ends a call early or forbids it: a deadline, nobody who waits for it, a signal to stop, too little memory."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
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
    check_awaited()
    return deadline != NEVER and time() >= deadline


def seconds_left(deadline: float, most: float) -> float:
    """Return how many seconds are left, and no more than `most`."""
    return most if deadline == NEVER else max(0.0, min(most, deadline - time()))


# --- nobody waits any more --------------------------------------------------------------------------------------------

# Unlike a deadline it changes no answer: what is there in time is what there is without it (docs/operate.md).
_AWAITED_UNTIL: ContextVar[float] = ContextVar("awaited_until", default=NEVER)


class OverdueError(BaseException):
    """Nobody waits for the answer any more. No Exception: those are taken for the model's, and asked about again."""


def awaited_until(moment: float, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return function(*arguments); from a time of day on it asks the model nothing more and ends with OverdueError."""
    token = _AWAITED_UNTIL.set(moment)
    try:
        return function(*arguments)
    finally:
        _AWAITED_UNTIL.reset(token)


def as_awaited(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for another process that is awaited there as long as it is here."""
    moment = _AWAITED_UNTIL.get()
    return function if moment == NEVER else partial(awaited_until, moment, function)


def check_awaited() -> None:
    """Raise OverdueError where nobody waits any more; called before each question to the model."""
    moment = _AWAITED_UNTIL.get()
    if moment != NEVER and time() >= moment:
        raise OverdueError


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
