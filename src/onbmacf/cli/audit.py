"""`onbmacf audit`: a table and a model in, one report out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onbmacf.cli.options import ASKING, READING, SEARCH, SOURCE, offers
from onbmacf.cli.request import Request, command_line
from onbmacf.cli.terminal import say, show

if TYPE_CHECKING:
    from onbmacf.cli.job import Job
    from onbmacf.cli.parts import Parts
    from onbmacf.explanations import Explanations
    from onbmacf.report import About

OutOption = Annotated[Path, typer.Option(help="Report to write: .html or .md.")]
ByOption = Annotated[
    tuple[str, ...], typer.Option(help="Columns whose groups are compared; by default the immutable ones.")
]
MostOption = Annotated[int, typer.Option(min=1, help="Largest number of rows to explain, drawn at random.")]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of the random draw and of the intervals.")]
CasesOption = Annotated[int, typer.Option(min=0, help="Number of single rows shown in the report.")]
TitleOption = Annotated[str, typer.Option(help="Title of the report.")]
ROWS = ("rows", "rows_file", "predicted")
REPORT = ("most", "seed", "n", "cases", "title")


@offers(
    *SOURCE,
    "out",
    "by",
    "target",
    "min_probability",
    "immutable",
    "rules",
    *ROWS,
    *REPORT,
    *READING,
    *SEARCH,
    "map",
    *ASKING,
    "jobs",
)
def audit(
    request: Request,
    out: OutOption = Path("report.html"),
    by: ByOption = (),
    most: MostOption = 1000,
    seed: SeedOption = 0,
    cases: CasesOption = 6,
    title: TitleOption = "",
) -> None:
    """Write a report: which features decide, how the burden differs by group, whether immutable features must change.

    \b
    onbmacf audit
    onbmacf audit people.csv --target-column income --out report.html
    onbmacf audit people.csv --model income.skops --target-column income --immutable sex,age --target high

    Without --rows, the rows that the model does not give the target label are explained: all, or --most of them drawn
    at random.
    """
    from onbmacf.cli.output_file import check_installed, output_file

    _check_suffix(out)
    check_installed("a report", ["jinja2", "matplotlib"], "report")
    with output_file(out, request):
        _audit(request, out, by, most, seed, cases, title)


def _audit(request: Request, out: Path, by: tuple[str, ...], most: int, seed: int, n_cases: int, title: str) -> None:
    """Explain, write the report, and delete the parts, in this order."""
    from onbmacf.cli.job import prepare
    from onbmacf.cli.output_file import kept_parts
    from onbmacf.cli.outputs import summary
    from onbmacf.cli.parts import parts_beside
    from onbmacf.cli.rows import chosen_rows
    from onbmacf.cli.words import columns_of
    from onbmacf.report import audit_report

    job = prepare(request)
    groups: list[Any] = columns_of(by, list(job.table.columns), "--by") or [*job.explainer.schema_.immutable]
    rows = chosen_rows(job, request, most, seed)
    parts = parts_beside(out, job.explainer, job.target, job.asked)
    answers = _answers(job, request, out, rows, parts)
    asked = {"target": job.target, "by": groups, "n_cases": n_cases, "seed": seed, "about": _about(job, title)}
    with kept_parts(parts.folder):
        report = audit_report(job.explainer, answers, **asked)
        report.save(out)
    parts.clear(rows)
    for sentence in report.content["findings"]:
        show(_line(sentence))
    say(summary(answers) + f" Report: {out}")


def _answers(job: "Job", request: Request, out: Path, rows: Any, parts: "Parts") -> "Explanations":
    from onbmacf.cli.output_file import check_room
    from onbmacf.cli.parts import StoppedError, explain_in_parts

    check_room(out, rows.shape, request.n)
    try:
        return explain_in_parts(job.explainer, rows, job.target, parts, job.asked)
    except StoppedError as stopped:
        say(f"{str(stopped).capitalize()}. To go on: {command_line()}")
        raise typer.Exit(stopped.code) from None


def _about(job: "Job", title: str) -> "About":
    from onbmacf.report import About

    title = title or f"Audit of {Path(job.source).name}"
    return About(title, job.source, job.model_name, job.files, command_line(), job.notes)


def _line(sentence: str) -> str:
    from onbmacf._text.wording import visible

    return f"- {visible(sentence)}"


def _check_suffix(out: Path) -> None:
    """Raise before any work where the name does not say which kind of report."""
    from onbmacf._base.checks import listed
    from onbmacf.errors import ParameterError
    from onbmacf.report.render import SUFFIXES

    if out.suffix.lower() not in SUFFIXES:
        raise ParameterError(f"--out must end in {listed(SUFFIXES)}, got {out.name!r}.")
