"""`onbmacf explain`, the options that other commands share with it, and `onbmacf demo`.

    @offers("table", "model", "out")
    def build(arguments: Arguments, out: Annotated[Path, typer.Option(help="Map to write.")] = Path("map.onb")): ...

typer sees a function with the parameters table, model and out, in this order; build gets Arguments and out. An option
is called like its field: `target_column` is `--target-column`.

A new option of `explain` is a field of Arguments, called like a field of `ASKED`, whose words are its help, and its
name in a group below: every command that offers the group has it.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache, wraps
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import typer

from onbmacf._base.asked import ASKED
from onbmacf.cli.terminal import command_line, say, show
from onbmacf.errors import ParameterError
from onbmacf.io.models import LOADERS, described

if TYPE_CHECKING:
    from onbmacf.explainer import ONBMACF
    from onbmacf.explanation import Explanation
    from onbmacf.explanations import Explanations

# Groups that several commands offer, in the order of the help.
SOURCE = ("table", "model", "target_column")
READING = ("id_column", "drop", "drop_missing", "header", "encoding", "sheet", "dates", "kinds", "labels")
SEARCH = ("strategy", "plausibility", "release", "private")
LIMITS = ("max_model_rows", "max_model_calls", "max_seconds")
SHOWN = ("ranges", "prove", "prove_seconds")
MODEL_OUTPUT = ("output", "threshold", "classes", "between", "trust_pickle")
ROWS = ("rows", "ids", "rows_file", "predicted")
WANTED = (
    "target",
    "n",
    "front",
    "min_probability",
    "min_neighbours",
    "immutable",
    "vary",
    "fillable",
    "rules",
    "relations",
)
# Arguments of `ONBMACF.explain` that the map is fitted with here, or that choose its rows.
FITTED = {"target", "n", "plausibility", "immutable", "vary", "rules"}

TABLE_HELP = (
    "A CSV file with a header (also .tsv, .csv.gz, .parquet, .xlsx, .ods); without it, the embedded heart data."
)
MODEL_HELP = (
    f"module:name, http://..., or a file: {described(loader for loader in LOADERS if not loader.is_pickle)}; with "
    f"--trust-pickle also {described(loader for loader in LOADERS if loader.is_pickle)}. Without it, a network is "
    "trained on the target column, or boosted trees where values are missing."
)

# --- the options ------------------------------------------------------------------------------------------------------


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
    min_neighbours: Annotated[int | None, typer.Option(min=0, max=5, help=ASKED["min_neighbours"].says)] = None
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
    relations: Annotated[
        tuple[str, ...],
        typer.Option(
            help='A rule between features; once per rule: "if education rises, age must rise", "a + b = 100".'
        ),
    ] = ()
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
    cover_rows: Annotated[
        int | None,
        typer.Option(min=2, help="Rows that balls are made of; by default all, or some of many."),
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
        """Return the arguments of `ONBMACF.explain` that were typed, without those that the map is fitted with."""
        shared = [field for field in fields(self) if field.name in ASKED.keys() - FITTED]
        arguments = {one.name: value for one in shared if (value := getattr(self, one.name)) != one.default}
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


# --- explain ----------------------------------------------------------------------------------------------------------

FormatOption = Annotated[
    str, typer.Option(help="table, csv, json, sentences or markdown; by default as --out ends, or a table.")
]
OutOption = Annotated[Path | None, typer.Option(help="File to write; a stopped command continues from there.")]
PeopleOption = Annotated[int, typer.Option("--people", min=1, help="How many people at risk to explain.")]
NOption = Annotated[int, typer.Option("--n", min=1, help="Counterfactuals per person.")]


@offers(*SOURCE, *ROWS, *WANTED, *SHOWN, "format", "out", *READING, *SEARCH, *LIMITS, "map", *MODEL_OUTPUT, "jobs")
def explain(arguments: Arguments, format: FormatOption = "", out: OutOption = None) -> None:
    """Show which changes to a row would make the model decide otherwise.

    \b
    onbmacf explain
    onbmacf explain people.csv --target-column income --rows 3,17
    onbmacf explain people.csv --model income.skops --target-column income --immutable age,sex --out answers.csv
    onbmacf explain people.csv --model mymodule:predict --predicted refused --n 3 --format sentences
    onbmacf explain people.csv --model income.skops --target-column income --vary pay --prove --ranges

    Rows are numbered from 0. Without --rows, --ids or --rows-file, the first 10 rows that the model does not give the
    target label are explained. Ctrl-C prints the answers so far; with --out it keeps them, and the same command
    continues from there.
    """
    from onbmacf.cli.outputs import check_installed, kind_of, output_file

    kind = kind_of(format, out)
    if kind == "table":
        check_installed("a table", ["rich"], "cli")
    with output_file(out, arguments):
        _explain(arguments, kind, out)


def _explain(arguments: Arguments, kind: str, out: Path | None) -> None:
    """Explain, write, and delete the parts, in this order."""
    from onbmacf.cli.outputs import (
        StoppedError,
        check_names,
        check_room,
        explain_in_parts,
        kept_parts,
        parts_beside,
        summary,
    )
    from onbmacf.cli.preparation import FIRST, chosen_rows, prepare
    from onbmacf.explanations import Explanations

    setup = prepare(arguments)
    rows = chosen_rows(setup, arguments, None if arguments.predicted else FIRST)
    check_names(kind, rows.columns)
    check_room(out, rows.shape, arguments.n)
    parts = parts_beside(out, setup.explainer, setup.target, setup.arguments)
    try:
        answers = explain_in_parts(setup.explainer, rows, setup.target, parts, setup.arguments)
    except StoppedError as stopped:
        if out is None and stopped.answers:
            _deliver(Explanations.concat(stopped.answers), kind, None)
        more = f"To go on: {command_line()}" if out else "With --out FILE, the same command could go on."
        say(f"{str(stopped).capitalize()}. {more}")
        raise typer.Exit(stopped.code) from None
    with kept_parts(parts.folder):
        _deliver(answers, kind, out)
    parts.clear(rows)
    say(summary(answers) + (f" Written to {out}." if out else ""))


def _deliver(answers: "Explanations", kind: str, out: Path | None) -> None:
    from onbmacf._base.files import write_atomically
    from onbmacf.cli.outputs import written

    text = written(answers, kind, width=None if out is None else 120)
    if out is None:
        show(text, is_drawn=kind == "table")
    else:
        write_atomically(out, text.encode("utf-8", "backslashreplace"))


# --- demo -------------------------------------------------------------------------------------------------------------


class Demo(NamedTuple):
    """A fitted explainer of the heart table, and its answers."""

    explainer: "ONBMACF"
    answers: "Explanations"


def demo(people: PeopleOption = 5, n: NOption = 1) -> None:
    """Explain a heart-disease network on the embedded data.

    Example: onbmacf demo --people 3 --n 2
    """
    show(demo_text(run_demo(people, n)))


def run_demo(n_people: int = 5, n_counterfactuals: int = 1) -> Demo:
    """Train the network, map the table with age immutable, and explain the first people predicted at risk."""
    from onbmacf.cli.inputs import labelled_heart
    from onbmacf.datasets import heart_network
    from onbmacf.explainer import ONBMACF
    from onbmacf.schema import Schema

    table, labels = labelled_heart()
    model = heart_network().fit(table, labels)
    schema = Schema.infer(table, immutable=["age"])
    explainer = ONBMACF(n_counterfactuals).fit(table, model, schema=schema)
    at_risk = table[model.predict(table) == "at risk"]
    return Demo(explainer, explainer.explain(at_risk.head(n_people), target="healthy"))


def demo_text(demo: Demo) -> str:
    """Return the demo as text: for each person the changes, the semifactual and one sentence."""
    rows, balls = len(demo.explainer.Z_), len(demo.explainer.cover_)
    head = (
        f"South African heart disease: {rows} men, covered by {balls} balls of one label each.\n"
        "A network (32-16) predicts who is at risk. Age must stay as it is. What would change its mind?"
    )
    return "\n\n".join([head, *(_person(answer) for answer in demo.answers)])


def _person(answer: "Explanation") -> str:
    from onbmacf._text.wording import marked, shown

    lines = [f"Person {answer.factual.name}, {answer.factual['age']} years: {answer.label}"]
    for found in answer.counterfactuals:
        lines.append(f"  {'feature':<12}{'before':>10}{'after':>10}{'even if':>10}   -> {found.label}")
        for name in found.changed:
            even_if = "-" if found.semifactual is None else shown(found.semifactual.values[name])
            before, after = shown(found.factual[name]), shown(found.values[name])
            lines.append(f"  {marked(name, found.released):<12}{before:>10}{after:>10}{even_if:>10}")
    return "\n".join([*lines, *(f"  {sentence}" for sentence in answer.sentences())])
