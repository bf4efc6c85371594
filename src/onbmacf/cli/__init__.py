"""The command line: words and files in, one library call, text and files out. No heavy import until a command runs.

main  ->  explain | audit | notice | schema | serve | map | bench | demo  ->  exit code

Messages of the library name its arguments; here they name the options that set them.

Exit codes: 0, 2 (an error in one line), 130 (Ctrl-C), 143 (SIGTERM), 1 (a bug).
"""

import os
import re
import sys
import warnings
from dataclasses import fields
from itertools import pairwise
from typing import Annotated, Any

try:
    import typer
except ImportError as error:  # pragma: no cover - depends on the installation
    raise ImportError("the command line needs the extra 'cli': pip install 'onbmacf[cli]'") from error

from onbmacf import __version__
from onbmacf._base.limits import exit_code, termination_is_an_interrupt
from onbmacf._text.wording import for_all_borders
from onbmacf.bench.cli import app as bench_app
from onbmacf.cli import explain, maps, reports, schema, serve
from onbmacf.cli.terminal import flag, say, show, survive_any_text
from onbmacf.errors import OnbmacfError, OnbmacfWarning, ParameterError

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)
app.command("explain")(explain.explain)
app.command("audit")(reports.audit)
app.command("notice")(reports.notice)
app.command("schema")(schema.schema)
app.command("serve")(serve.serve)
app.command("demo")(explain.demo)
app.add_typer(maps.app, name="map")
app.add_typer(bench_app, name="bench")

# Errors of the command line itself, wherever this release of typer keeps them.
_UsageError: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

# Options that no message means as an argument of the library: it has no such argument, or the name is a word.
WORDS = {"between", "dates", "drop", "drop_missing", "id_column", "ids", "jobs", "kinds", "map", "model", "n"}
WORDS |= {"predicted", "rows", "rows_file", "rules", "table", "target_column"}
ARGUMENTS = [field.name for field in fields(explain.Arguments) if field.name not in WORDS]
# A message may show an argument with its value, begin with it, or name one that has an underscore and so is no word.
_WITH_VALUE = re.compile(rf"\b({'|'.join(ARGUMENTS)})=(True|False|'[^']*'|\"[^\"]*\")")
_LEADING = re.compile(rf"^({'|'.join(ARGUMENTS)})(?= (?:must be|needs|names|is empty|asks|does|looks) )")
_NAMED = re.compile(rf"(?<![\w'\"-])({'|'.join(name for name in ARGUMENTS if '_' in name)})(?![\w'\"=])")


@app.callback(invoke_without_command=True)
def about(
    version_: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error; may stand anywhere.")] = False,
) -> None:
    """Counterfactuals and semifactuals for any classifier, from a ball cover of the training rows (ONB-MACF).

    \b
    onbmacf explain                                                  the embedded heart data
    onbmacf explain people.csv --target-column income --rows 3,17    trains a network and says so
    onbmacf audit people.csv --target-column income --out report.html
    onbmacf notice people.csv --target-column income --rows 17 --out notice.html
    onbmacf schema people.csv --target-column income --out people.toml    what may change and how, to edit
    onbmacf serve                                                    a page for people, a service for programs
    onbmacf COMMAND --help                                           options and more examples
    """
    if version_:
        show(__version__)
        raise typer.Exit


def main() -> None:
    """Run the command line; an error that the caller can fix becomes one line and exit code 2."""
    survive_any_text()
    plain_warnings()
    debug = "--debug" in sys.argv
    arguments = [word for word in sys.argv[1:] if word != "--debug"]
    try:
        _check_not_empty(arguments)
        with termination_is_an_interrupt():
            sys.exit(app(args=arguments, prog_name="onbmacf", standalone_mode=False) or 0)
    except BrokenPipeError:  # the reader of our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        if debug:
            raise
        sys.exit(_print_error(error))


def _check_not_empty(words: list[str]) -> None:
    """Raise an error if an option has an empty value, as ``--model "$MODEL"`` has where the variable is not set."""
    empty = [option for option, word in pairwise(["", *words]) if not word and option.startswith("--")]
    empty += [word[:-1] for word in words if word.startswith("--") and word.endswith("=") and word.count("=") == 1]
    if empty:
        raise ParameterError(f"{empty[0]} is empty: give it a value, or leave it out.")


def _print_error(error: Exception) -> int:
    """Print an error as one line and return the exit code."""
    if type(error).__name__ == "Abort":
        return exit_code(error)
    if type(error).__name__ == "NoArgsIsHelpError":  # no word at all: the help, as it is laid out
        for line in str(error).splitlines():
            say(line)
        return 2
    if isinstance(error, _UsageError):
        words = error.format_message() or "a command is missing: see --help."
    elif isinstance(error, OnbmacfError | ImportError | OSError):
        words = in_options(str(error))
    else:
        say(f"onbmacf: unexpected {type(error).__name__}: {error} (--debug shows where)")
        return 1
    say(f"onbmacf: {' '.join(words.split())}")
    return 2


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

    message = _WITH_VALUE.sub(with_value, for_all_borders(message))
    message = _LEADING.sub(lambda found: flag(found[1]), message)
    return _NAMED.sub(lambda found: flag(found[1]), message)
