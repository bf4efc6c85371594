"""What the terminal shows: results on stdout; notes, warnings, errors and progress on stderr, all as plain text."""

import shlex
import sys
import time

from onbmacf._text.wording import visible

PROGRESS_SECONDS = 2.0  # between two lines of progress


def say(text: str) -> None:
    """Write one line to stderr; nothing in it is markup or a control sequence."""
    print(visible(text), file=sys.stderr, flush=True)


def show(text: str, is_drawn: bool = False) -> None:
    """Write a result to stdout, in the terminal's own encoding.

    On a terminal control characters are written out, unless we have drawn the text ourselves; a file or a pipe gets
    the exact bytes of the format.
    """
    if sys.stdout is None:  # as `>&-` leaves it
        raise OSError("there is no standard output to write to: leave it open, or name a file with --out.")
    if sys.stdout.isatty() and not is_drawn:
        text = "\n".join(visible(line) for line in text.split("\n"))
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()


def command_line() -> str:
    """Return the command as it was typed, for a report or to continue a stopped command."""
    return shlex.join(["onbmacf", *sys.argv[1:]])


def survive_any_text() -> None:
    """Escape characters that the terminal's encoding lacks, rather than fail."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def flag(name: str, on: bool = True) -> str:
    """Return how an option is typed.

    >>> flag("target_column"), flag("header", on=False)
    ('--target-column', '--no-header')
    """
    return f"--{'' if on else 'no-'}{name.replace('_', '-')}"


class Progress:
    """Prints how many rows are done and the time left: a line every few seconds, also where there is no terminal."""

    def __init__(self, total: int, done: int = 0) -> None:
        self.total, self.before, self.done = total, done, done
        self.started = self.last = time.monotonic()

    def advance(self, n_rows: int) -> None:
        """Count rows as done; print a line if the last one was some seconds ago."""
        self.done += n_rows
        now = time.monotonic()
        if now - self.last >= PROGRESS_SECONDS and self.done < self.total:
            self.last = now
            seconds = (now - self.started) / max(self.done - self.before, 1) * (self.total - self.done)
            left = f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
            say(f"{self.done:,} of {self.total:,} rows explained, about {left} left")
