"""`onbmacf explain`: a table and a model in, counterfactuals out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onbmacf.cli.options import ASKING, LIMITS, READING, SEARCH, SHOWN, SOURCE, offers
from onbmacf.cli.request import Request, command_line
from onbmacf.cli.terminal import say, show

if TYPE_CHECKING:
    from onbmacf.cli.parts import StoppedError
    from onbmacf.explanations import Explanations

FormatOption = Annotated[
    str, typer.Option(help="table, csv, json, sentences or markdown; by default as --out ends, or a table.")
]
OutOption = Annotated[Path | None, typer.Option(help="File to write; a stopped command continues from there.")]
ROWS = ("rows", "ids", "rows_file", "predicted")
WANTED = ("target", "n", "front", "min_probability", "immutable", "vary", "fillable", "rules")


@offers(*SOURCE, *ROWS, *WANTED, *SHOWN, "format", "out", *READING, *SEARCH, *LIMITS, "map", *ASKING, "jobs")
def explain(request: Request, format: FormatOption = "", out: OutOption = None) -> None:
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
    from onbmacf.cli.output_file import check_installed, output_file
    from onbmacf.cli.outputs import kind_of

    kind = kind_of(format, out)
    if kind == "table":
        check_installed("a table", ["rich"], "cli")
    with output_file(out, request):
        _explain(request, kind, out)


def _explain(request: Request, kind: str, out: Path | None) -> None:
    """Explain, write, and delete the parts, in this order."""
    from onbmacf.cli.job import prepare
    from onbmacf.cli.output_file import check_names, check_room, kept_parts
    from onbmacf.cli.outputs import summary
    from onbmacf.cli.parts import StoppedError, explain_in_parts, parts_beside
    from onbmacf.cli.rows import FIRST, chosen_rows

    job = prepare(request)
    rows = chosen_rows(job, request, None if request.predicted else FIRST)
    check_names(kind, rows.columns)
    check_room(out, rows.shape, request.n)
    parts = parts_beside(out, job.explainer, job.target, job.asked)
    try:
        answers = explain_in_parts(job.explainer, rows, job.target, parts, job.asked)
    except StoppedError as stopped:
        raise _stopped(stopped, kind, out) from None
    with kept_parts(parts.folder):
        _deliver(answers, kind, out)
    parts.clear(rows)
    say(summary(answers) + (f" Written to {out}." if out else ""))


def _stopped(stopped: "StoppedError", kind: str, out: Path | None) -> typer.Exit:
    """Show what there is, say how to go on, and return the way out."""
    from onbmacf.explanations import Explanations

    if out is None and stopped.answers:
        _deliver(Explanations.concat(stopped.answers), kind, None)
    more = f"To go on: {command_line()}" if out else "With --out FILE, the same command could go on."
    say(f"{str(stopped).capitalize()}. {more}")
    return typer.Exit(stopped.code)


def _deliver(answers: "Explanations", kind: str, out: Path | None) -> None:
    from onbmacf._base.files import write_atomically
    from onbmacf.cli.outputs import written

    text = written(answers, kind, width=None if out is None else 120)
    if out is None:
        show(text, is_drawn=kind == "table")
    else:
        write_atomically(out, text.encode("utf-8", "backslashreplace"))
