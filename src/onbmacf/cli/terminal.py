"""What the terminal shows: results on stdout; notes, warnings, errors and progress on stderr, all as plain text.

Messages of the library name its arguments; here they name the options that set them.
"""

import re
import shlex
import sys
import time
import warnings
from typing import Any

from onbmacf._text.wording import visible
from onbmacf.errors import OnbmacfWarning

PROGRESS_SECONDS = 2.0  # between two lines of progress
ARGUMENTS = (  # of the library, each set by the option of the same name
    "classes",
    "encoding",
    "header",
    "fillable",
    "front",
    "immutable",
    "max_model_calls",
    "max_model_rows",
    "max_seconds",
    "min_probability",
    "output",
    "plausibility",
    "private",
    "prove",
    "prove_seconds",
    "ranges",
    "release",
    "sheet",
    "strategy",
    "target",
    "threshold",
    "trust_pickle",
    "vary",
)
# A message may show an argument with its value, begin with it, or name one that has an underscore and so is no word.
_WITH_VALUE = re.compile(rf"\b({'|'.join(ARGUMENTS)})=(True|False|'[^']*'|\"[^\"]*\")")
_LEADING = re.compile(rf"^({'|'.join(ARGUMENTS)})(?= (?:must be|needs|names|is empty|asks|does|looks) )")
_NAMED = re.compile(rf"(?<![\w'\"-])({'|'.join(name for name in ARGUMENTS if '_' in name)})(?![\w'\"=])")


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


def plain_warnings() -> None:
    """Print our warnings as one line each, and those of other libraries not at all."""

    def as_line(message: Any, *_: Any, **__: Any) -> None:
        say(f"note: {in_options(str(message))}")

    warnings.showwarning = as_line
    warnings.simplefilter("ignore")
    warnings.filterwarnings("always", category=OnbmacfWarning)


def in_options(message: str) -> str:
    """Return a message of the library that names options instead of arguments.

    >>> in_options('Pass its encoding, e.g. encoding="latin-1".')
    'Pass its encoding, e.g. --encoding latin-1.'
    >>> in_options("plausibility must be in [0, 1], got 3.0.")
    '--plausibility must be in [0, 1], got 3.0.'
    >>> in_options("prove asks the model beyond max_model_rows: leave one of them out.")
    '--prove asks the model beyond --max-model-rows: leave one of them out.'
    """

    def with_value(found: re.Match[str]) -> str:
        name, value = found[1], found[2]
        return flag(name, value == "True") if value in ("True", "False") else f"{flag(name)} {value[1:-1]}"

    message = _LEADING.sub(lambda found: flag(found[1]), _WITH_VALUE.sub(with_value, message))
    return _NAMED.sub(lambda found: flag(found[1]), message)


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
