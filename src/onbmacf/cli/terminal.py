"""What the terminal shows beside the result: notes, progress, warnings. All of it goes to stderr, as plain text."""

import sys
import time
import warnings
from typing import Any

from onbmacf._text.wording import visible
from onbmacf.cli.options import in_options

EVERY = 2.0  # seconds between two lines of progress


def say(text: str) -> None:
    """Write one line to stderr; nothing in it is markup or a control sequence."""
    print(visible(text), file=sys.stderr, flush=True)


def show(text: str, is_drawn: bool = False) -> None:
    """Write a result to stdout, in the terminal's own encoding.

    A terminal gets control characters written out, unless we have drawn the text ourselves; a file or a pipe gets
    what the format says, to the byte.
    """
    if sys.stdout is None:  # as `>&-` leaves it
        raise OSError("there is no standard output to write to: leave it open, or name a file with --out.")
    if sys.stdout.isatty() and not is_drawn:
        text = "\n".join(visible(line) for line in text.split("\n"))
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()


def survive_any_text() -> None:
    """Escape characters that the terminal's encoding lacks, rather than fail."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def plain_warnings() -> None:
    """Print our warnings as one line each, and those of other libraries not at all."""
    warnings.showwarning = _as_line
    warnings.simplefilter("ignore")
    warnings.filterwarnings("always", category=_ours())


def minutes(seconds: float) -> str:
    """Return a time as text: seconds, or minutes where there are many."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


class Progress:
    """Prints how many rows are done and the time left: a line every few seconds, also where there is no terminal."""

    def __init__(self, total: int, done: int = 0) -> None:
        self.total, self.before, self.done = total, done, done
        self.started = self.last = time.monotonic()

    def advance(self, n_rows: int) -> None:
        """Count rows as done; print a line if the last one was some seconds ago."""
        self.done += n_rows
        now = time.monotonic()
        if now - self.last >= EVERY and self.done < self.total:
            self.last = now
            left = (now - self.started) / max(self.done - self.before, 1) * (self.total - self.done)
            say(f"{self.done:,} of {self.total:,} rows explained, about {minutes(left)} left")


def _ours() -> Any:
    from onbmacf.errors import OnbmacfWarning

    return OnbmacfWarning


def _as_line(message: Any, *_: Any, **__: Any) -> None:
    say(f"note: {in_options(str(message))}")
