"""The options of the commands. A shared option is declared once, as a field of Arguments.

    @offers("table", "model", "out")
    def build(request: Arguments, out: Annotated[Path, typer.Option(help="Map to write.")] = Path("map.onb")): ...

typer sees a function with the parameters table, model and out, in this order; build gets Arguments and out. An option
is called like its field: `target_column` is `--target-column`.
"""

import inspect
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache, wraps
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from onbmacf._base.asked import ASKED
from onbmacf.errors import ParameterError
from onbmacf.io.models import LOADERS, described

# Groups that several commands offer, in the order of the help.
SOURCE = ("table", "model", "target_column")
READING = ("id_column", "drop", "drop_missing", "header", "encoding", "sheet", "dates", "kinds", "labels")
SEARCH = ("strategy", "plausibility", "release", "private")
LIMITS = ("max_model_rows", "max_model_calls", "max_seconds")
SHOWN = ("ranges", "prove", "prove_seconds")
MODEL_OUTPUT = ("output", "threshold", "classes", "between", "trust_pickle")

OF_SCHEMA, OF_OPTIONS = ("immutable", "vary", "rules"), ("n", "plausibility")  # asked when the map is fitted

TABLE_HELP = (
    "A CSV file with a header (also .tsv, .csv.gz, .parquet, .xlsx, .ods); without it, the embedded heart data."
)
MODEL_HELP = (
    f"module:name, http://..., or a file: {described(loader for loader in LOADERS if not loader.is_pickle)}; with "
    f"--trust-pickle also {described(loader for loader in LOADERS if loader.is_pickle)}. Without it, a network is "
    "trained on the target column, or boosted trees where values are missing."
)


@dataclass(frozen=True)
class Arguments:
    """The options of one command; an option that was not typed is empty."""

    table: Annotated[Path | None, typer.Argument(help=TABLE_HELP, show_default=False)] = None
    model: Annotated[str, typer.Option(help=MODEL_HELP)] = ""
    target_column: Annotated[str, typer.Option(help="The column to predict; not a feature.")] = ""
    output: Annotated[
        str, typer.Option(help="What the model returns, where it is not clear: label or probability.")
    ] = "auto"
    threshold: Annotated[
        float | None, typer.Option(help="A score or probability of at least this means the second class.")
    ] = None
    classes: Annotated[
        tuple[str, ...], typer.Option(help="Names of the model's classes, in its order, the lower side first: a,b.")
    ] = ()
    between: Annotated[
        str,
        typer.Option(
            help="Range that a regressor should reach: 200,300 or 200, or ,300. Labels: below, inside, above."
        ),
    ] = ""
    trust_pickle: Annotated[bool, typer.Option("--trust-pickle", help="Load pickles too: they can run any code.")] = (
        False
    )
    target: Annotated[tuple[str, ...], typer.Option(help="Label to reach; any other label by default.")] = ()
    min_probability: Annotated[str, typer.Option(help=ASKED["min_probability"].says)] = ""
    immutable: Annotated[
        tuple[str, ...], typer.Option(help="Columns that must keep their value: a,b or the option given twice.")
    ] = ()
    vary: Annotated[
        tuple[str, ...], typer.Option(help="The only columns that may change: a,b. Instead of --immutable.")
    ] = ()
    fillable: Annotated[
        tuple[str, ...], typer.Option(help="Columns that may be filled in where a row lacks a value: a,b.")
    ] = ()
    rules: Annotated[
        Path | None, typer.Option(help="TOML file of rules: immutable, directions, ranges, costs and more.")
    ] = None
    labels: Annotated[Path | None, typer.Option(help="TOML file of what people call columns, units and codes.")] = None
    drop: Annotated[tuple[str, ...], typer.Option(help="Columns to leave out.")] = ()
    id_column: Annotated[str, typer.Option(help="Column that names the rows; not a feature.")] = ""
    drop_missing: Annotated[bool, typer.Option("--drop-missing", help="Leave out rows with missing values.")] = False
    header: Annotated[
        bool | None, typer.Option(help="Whether the first line names the columns; guessed by default.")
    ] = None
    encoding: Annotated[
        str, typer.Option(help="Encoding of the CSV files; by default as their first bytes say, or UTF-8.")
    ] = ""
    sheet: Annotated[str, typer.Option(help="Sheet of a spreadsheet; the first by default.")] = ""
    dates: Annotated[
        tuple[str, ...], typer.Option(help="Columns of a CSV file that hold dates or times, such as 2024-05-31.")
    ] = ()
    kinds: Annotated[
        tuple[str, ...],
        typer.Option(
            help="Kinds of columns: zip=categorical,pay=continuous or size=S<M<L; read off the table by default."
        ),
    ] = ()
    rows: Annotated[str, typer.Option(help="Row numbers from 0: 3,17 or 20-29, or 'all'.")] = ""
    rows_file: Annotated[Path | None, typer.Option(help="CSV file of rows to explain.")] = None
    ids: Annotated[tuple[str, ...], typer.Option(help="Rows by their value in --id-column.")] = ()
    predicted: Annotated[str, typer.Option(help="Only rows that the model gives this label.")] = ""
    n: Annotated[int, typer.Option(min=1, help=ASKED["n"].says)] = 1
    front: Annotated[bool, typer.Option("--front", help=ASKED["front"].says)] = False
    ranges: Annotated[bool, typer.Option("--ranges", help=ASKED["ranges"].says)] = False
    prove: Annotated[bool, typer.Option("--prove", help=ASKED["prove"].says)] = False
    prove_seconds: Annotated[float | None, typer.Option(help=ASKED["prove_seconds"].says)] = None
    map: Annotated[Path | None, typer.Option(help="Map written by `onbmacf map build`, used instead of a new fit.")] = (
        None
    )
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes; the answers do not depend on it.")] = 1
    strategy: Annotated[str, typer.Option(help="refined (default), or paper: Algorithm 3 as printed.")] = ""
    release: Annotated[
        str, typer.Option(help="What may be given up where nothing else is found: nothing, immutable or rules.")
    ] = ""
    max_model_rows: Annotated[
        int | None, typer.Option(help="The most points that the model may be asked about for one row.")
    ] = None
    max_model_calls: Annotated[int | None, typer.Option(help="The most calls of the model for one row.")] = None
    max_seconds: Annotated[float | None, typer.Option(help=ASKED["max_seconds"].says)] = None
    plausibility: Annotated[float | None, typer.Option(help=ASKED["plausibility"].says)] = None
    private: Annotated[
        int | None, typer.Option(help="Answer from groups of at least so many rows, and keep no row in the map.")
    ] = None

    def check(self) -> None:
        """Raise an error, before any work, where options contradict each other or cannot be read."""
        if self.immutable and self.vary:
            raise ParameterError("give --immutable or --vary: one is what the other leaves out.")
        if self.prove_seconds is not None and not self.prove:
            raise ParameterError("--prove-seconds is the time for a proof: give --prove, too.")
        self.explain_arguments()

    def inputs(self) -> list[Path]:
        """Return the paths that the command reads; the model's need not be a file."""
        model = Path(self.model) if self.model else None
        paths = (self.table, self.rules, self.labels, self.map, self.rows_file, model)
        return [path for path in paths if path is not None]

    def explain_arguments(self) -> dict[str, Any]:
        """Return the arguments of `ONBMACF.explain` beside rows and target; those not typed keep their defaults."""
        names = set(ASKED) - {"target", *OF_SCHEMA, *OF_OPTIONS, "min_probability"}
        typed = {name: getattr(self, name) for name in ASKED if name in names}
        arguments = {name: value for name, value in typed.items() if value is not None and value is not False}
        if self.min_probability:
            arguments["min_probability"] = _probability(self.min_probability)
        return arguments


def _probability(word: str) -> float | str:
    """Return a least probability as the library takes it.

    >>> _probability("0.8"), _probability("lasting")
    (0.8, 'lasting')
    """
    if word == "lasting":
        return word
    try:
        return float(word)
    except ValueError:
        raise ParameterError(f"--min-probability must be in [0, 1], or 'lasting', got {word!r}.") from None


def command_line() -> str:
    """Return the command as it was typed, for a report or to continue a stopped command."""
    return shlex.join(["onbmacf", *sys.argv[1:]])


def flag(name: str, on: bool = True) -> str:
    """Return how an option is typed.

    >>> flag("target_column"), flag("header", on=False)
    ('--target-column', '--no-header')
    """
    return f"--{'' if on else 'no-'}{name.replace('_', '-')}"


def offers(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of these names, in this order: fields of Arguments, and the command's parameters."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        specific = dict(list(inspect.signature(command, eval_str=True).parameters.items())[1:])  # without the request
        if not set(specific) <= set(names):
            raise TypeError(f"{command.__name__} does not offer its own {set(specific) - set(names)}.")
        parameters = [_for_typer(specific[name] if name in specific else _shared()[name]) for name in names]

        @wraps(command)
        def run(**values: Any) -> None:
            values = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
            arguments = Arguments(**{name: value for name, value in values.items() if name not in specific})
            command(arguments, **{name: value for name, value in values.items() if name in specific})

        run.__signature__ = Signature(parameters, return_annotation=None)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters} | {"return": None}
        return run

    return decorate


@cache
def _shared() -> dict[str, Parameter]:
    """Return the fields of Arguments as parameters of a function."""
    hints = get_type_hints(Arguments, include_extras=True)
    return {
        field.name: Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name])
        for field in fields(Arguments)
    }


def _for_typer(parameter: Parameter) -> Parameter:
    """Return a parameter as typer wants it: passed by name, and a list where we have a tuple."""
    kind, *more = get_args(parameter.annotation)
    if get_origin(kind) is not tuple:
        return parameter.replace(kind=Parameter.KEYWORD_ONLY)
    several = Annotated[list[get_args(kind)[0]], *more]  # type: ignore[misc, valid-type]
    return parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=several, default=list(parameter.default))
