"""Told to stop: SIGTERM is treated like Ctrl-C, so that what is done is kept and no process is left behind."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

CTRL_C, TERMINATED = 130, 143  # exit codes: 128 and the number of the signal


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
