"""`onbmacf explain`: a table and a model in, counterfactuals out. `onbmacf demo`: the same with the embedded table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from onbmacf.cli.options import LIMITS, MODEL_OUTPUT, READING, SEARCH, SHOWN, SOURCE, Arguments, command_line, offers
from onbmacf.cli.terminal import say, show

if TYPE_CHECKING:
    from onbmacf.explainer import ONBMACF
    from onbmacf.explanation import Explanation
    from onbmacf.explanations import Explanations

FormatOption = Annotated[
    str, typer.Option(help="table, csv, json, sentences or markdown; by default as --out ends, or a table.")
]
OutOption = Annotated[Path | None, typer.Option(help="File to write; a stopped command continues from there.")]
ROWS = ("rows", "ids", "rows_file", "predicted")
WANTED = ("target", "n", "front", "min_probability", "immutable", "vary", "fillable", "rules")
PeopleOption = Annotated[int, typer.Option("--people", min=1, help="How many people at risk to explain.")]
NOption = Annotated[int, typer.Option("--n", min=1, help="Counterfactuals per person.")]

# --- explain ----------------------------------------------------------------------------------------------------------


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
    from onbmacf.cli.outputs import check_names, check_room, kept_parts, summary
    from onbmacf.cli.parts import StoppedError, explain_in_parts, parts_beside
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
