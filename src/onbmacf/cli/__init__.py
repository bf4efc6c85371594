"""The command line: words and files in, one library call, text and files out. No heavy import until a command runs.

main  ->  explain | audit | notice | schema | serve | map | bench | demo  ->  exit code

Exit codes: 0, 2 (an error in one line), 130 (Ctrl-C), 143 (SIGTERM), 1 (a bug).
"""

import os
import sys
from itertools import pairwise
from typing import Annotated, Any

try:
    import typer
except ImportError as error:  # pragma: no cover - depends on the installation
    raise ImportError("the command line needs the extra 'cli': pip install 'onbmacf[cli]'") from error

from onbmacf import __version__
from onbmacf._base.limits import exit_code, termination_is_an_interrupt
from onbmacf.bench.cli import app as bench_app
from onbmacf.cli import explain, maps, reports, schema, serve
from onbmacf.cli.terminal import in_options, plain_warnings, say, show, survive_any_text
from onbmacf.errors import OnbmacfError, ParameterError

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
