"""`onbmacf audit`: a table and a model in, one report out."""

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from onbmacf.cli.options import ASKING, READING, SEARCH, SHOWN, SOURCE, offers
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
AuthorOption = Annotated[str, typer.Option(help="Who answers for the report.")]
PurposeOption = Annotated[str, typer.Option(help="What the report is for.")]
FullOption = Annotated[bool, typer.Option("--full", help="Show all details unfolded, also in print.")]
ActionsOption = Annotated[int, typer.Option(min=0, help="Actions to look for that help many rows; 0 for none.")]
AgainstOption = Annotated[str, typer.Option(help="Another model, or another date of it, to compare with: as --model.")]


class Wanted(NamedTuple):
    """What the report should be like: the command's own options."""

    by: tuple[str, ...]
    most: int
    seed: int
    cases: int
    actions: int
    against: str
    full: bool
    title: str
    author: str
    purpose: str


ROWS = ("rows", "rows_file", "predicted")
REPORT = ("most", "seed", "n", "cases", "actions", "against", "full", "title", "author", "purpose")


@offers(
    *SOURCE,
    "out",
    "by",
    "target",
    "min_probability",
    "immutable",
    "fillable",
    "rules",
    *ROWS,
    *SHOWN,
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
    actions: ActionsOption = 3,
    against: AgainstOption = "",
    full: FullOption = False,
    title: TitleOption = "",
    author: AuthorOption = "",
    purpose: PurposeOption = "",
) -> None:
    """Write a report: whether groups are treated differently, which features decide, what would help many.

    \b
    onbmacf audit
    onbmacf audit people.csv --target-column income --out report.html
    onbmacf audit people.csv --model income.skops --target-column income --immutable sex,age --target high

    Without --rows, the rows that the model does not give the target label are explained: all, or --most of them drawn
    at random. True labels, to compare how often decisions are right, are those of --target-column.
    """
    from onbmacf.cli.output_file import check_installed, output_file

    _check_suffix(out)
    check_installed("a report", ["jinja2", "matplotlib"], "report")
    with output_file(out, request):
        _audit(request, out, Wanted(by, most, seed, cases, actions, against, full, title, author, purpose))


def _audit(request: Request, out: Path, wanted: Wanted) -> None:
    """Explain, write the report, and delete the parts, in this order."""
    from onbmacf.cli.job import prepare
    from onbmacf.cli.output_file import kept_parts
    from onbmacf.cli.outputs import summary
    from onbmacf.cli.parts import parts_beside
    from onbmacf.cli.rows import chosen_rows
    from onbmacf.cli.words import columns_of
    from onbmacf.report import audit_report

    job = prepare(request)
    usual = [feature.name for feature in job.explainer.schema_.features if feature.immutable and not feature.held]
    _check_kept(wanted.by, request.drop, list(job.table.columns))
    groups: list[Any] = columns_of(wanted.by, list(job.table.columns), "--by") or usual
    rows = chosen_rows(job, request, wanted.most, wanted.seed)
    parts = parts_beside(out, job.explainer, job.target, job.asked)
    answers = _answers(job, request, out, rows, parts)
    with kept_parts(parts.folder):
        asked = {**_asked(job, wanted), "against": _against(job, request, wanted.against, answers)}
        report = audit_report(job.explainer, answers, target=job.target, by=groups, **asked)
        report.save(out)
    parts.clear(rows)
    for sentence in report.content["findings"]:
        show(_line(sentence))
    say(summary(answers) + f" Report: {out}")


def _check_kept(by: tuple[str, ...], dropped: tuple[str, ...], columns: list[Any]) -> None:
    """Raise where groups are wanted of a column that is left out."""
    from onbmacf.cli.words import split
    from onbmacf.errors import ParameterError

    left_out = {name for word in dropped for name in (word, *split(word))}
    for name in (name for word in by for name in split(word)):
        if name in left_out and name not in columns:
            raise ParameterError(
                f"--by names {name!r}, which --drop leaves out. Keep the column, with a model that takes no notice of "
                f"it (--model module:function), or compare from Python: audit_report(..., by={{{name!r}: values}})."
            )


def _asked(job: "Job", wanted: Wanted) -> dict[str, Any]:
    """Return the options of the report."""
    about = replace(_about(job, wanted.title), author=wanted.author, purpose=wanted.purpose, date=today())
    counts = {"n_cases": wanted.cases, "n_actions": wanted.actions, "full": wanted.full, "seed": wanted.seed}
    return {**counts, "about": about, "truth": usable_truth(job)}


def today() -> str:
    """Return the date of the report; the variable SOURCE_DATE_EPOCH fixes it."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    when = datetime.now(UTC) if seconds is None else datetime.fromtimestamp(int(seconds), UTC)
    return when.date().isoformat()


def usable_truth(job: "Job") -> Any:
    """Return the true labels of the table as the model's labels; None, and a note, where they are others."""
    from onbmacf.cli.words import same_label

    if job.truth is None or job.target is None or len(job.truth) != len(job.explainer.Z_):
        return None
    known = {str(label): label for label in job.explainer.classes_.tolist()}
    truth = job.truth.map(lambda value: same_label(value, known), na_action="ignore")
    if truth.isna().all():
        say(f"note: {job.truth.name!r} has none of the model's labels: how often decisions are right is not compared.")
        return None
    return truth


def _against(job: "Job", request: Request, spec: str, answers: "Explanations") -> Any:
    """Return the other model's name, explainer and answers for the same rows; None without one."""
    if not spec:
        return None
    from onbmacf.cli.job import fitted_again

    other = fitted_again(job, request, spec)
    return Path(spec).name, other, other.explain(answers.rows, target=job.target, **job.asked)


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
