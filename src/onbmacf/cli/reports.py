"""The commands that write a document: `onbmacf audit`, a report on a model; `onbmacf notice`, a page for one person."""

import os
from collections.abc import Hashable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from onbmacf.cli.explain import MODEL_OUTPUT, READING, SEARCH, SHOWN, SOURCE, Arguments, offers
from onbmacf.cli.terminal import command_line, say, show

if TYPE_CHECKING:
    from onbmacf.cli.preparation import Setup
    from onbmacf.explanations import Explanations

ReportOption = Annotated[Path, typer.Option(help="Report to write: .html or .md.")]
ByOption = Annotated[
    tuple[str, ...], typer.Option(help="Columns whose groups are compared; by default the immutable ones.")
]
BandsOption = Annotated[
    tuple[str, ...],
    typer.Option(help="Where bands of a column of --by begin: age=30,50 or born=1980-01-01; may be given again."),
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
AUDIT_ROWS = ("rows", "rows_file", "predicted")
REPORT = ("most", "seed", "n", "cases", "actions", "against", "full", "title", "author", "purpose")

NoticeOption = Annotated[
    Path | None, typer.Option(help="Notice to write: .html, .md or .json; by default it is printed.")
]
LanguageOption = Annotated[str, typer.Option(help="Language of the notice: en or es.")]
ContactOption = Annotated[str, typer.Option(help="Whom the person may write to or call.")]
ReviewOption = Annotated[str, typer.Option(help="How the person can have the decision looked at again.")]
DateOption = Annotated[str, typer.Option(help="Date of the notice; today by default.")]
NOTICE_WANTED = ("rows", "ids", "rows_file", "target", "immutable", "vary", "rules")
NOTICE = ("out", "language", "contact", "review", "date")

# --- audit ------------------------------------------------------------------------------------------------------------


class ReportOptions(NamedTuple):
    """What the report should be like: the options of `audit` that no other command has."""

    by: tuple[str, ...]
    bands: tuple[str, ...]
    most: int
    seed: int
    cases: int
    actions: int
    against: str
    full: bool
    title: str
    author: str
    purpose: str


@offers(
    *SOURCE,
    "out",
    "by",
    "bands",
    "target",
    "min_probability",
    "min_neighbours",
    "immutable",
    "fillable",
    "rules",
    *AUDIT_ROWS,
    *SHOWN,
    *REPORT,
    *READING,
    *SEARCH,
    "map",
    *MODEL_OUTPUT,
    "jobs",
)
def audit(
    arguments: Arguments,
    out: ReportOption = Path("report.html"),
    by: ByOption = (),
    bands: BandsOption = (),
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
    from onbmacf.cli.outputs import check_installed, output_file

    _check_suffix(out)
    check_installed("a report", ["jinja2", "matplotlib"], "report")
    with output_file(out, arguments):
        options = ReportOptions(by, bands, most, seed, cases, actions, against, full, title, author, purpose)
        _audit(arguments, out, options)


def _check_suffix(out: Path) -> None:
    """Raise before any work where the name does not say which kind of report."""
    from onbmacf._base.checks import listed
    from onbmacf.errors import ParameterError
    from onbmacf.report.render import SUFFIXES

    if out.suffix.lower() not in SUFFIXES:
        raise ParameterError(f"--out must end in {listed(SUFFIXES)}, got {out.name!r}.")


def _audit(arguments: Arguments, out: Path, options: ReportOptions) -> None:
    """Explain, write the report, and delete the parts, in this order."""
    from onbmacf._text.wording import visible
    from onbmacf.cli.inputs import bands_of
    from onbmacf.cli.outputs import StoppedError, check_room, explain_in_parts, kept_parts, parts_beside, summary
    from onbmacf.cli.preparation import chosen_rows, prepare

    setup = prepare(arguments)
    groups = _group_columns(setup, arguments, options.by)
    bands = bands_of(options.bands, groups)
    rows = chosen_rows(setup, arguments, options.most, options.seed)
    parts = parts_beside(out, setup.explainer, setup.target, setup.arguments)
    check_room(out, rows.shape, arguments.n)
    try:
        answers = explain_in_parts(setup.explainer, rows, setup.target, parts, setup.arguments)
    except StoppedError as stopped:
        say(f"{str(stopped).capitalize()}. To go on: {command_line()}")
        raise typer.Exit(stopped.code) from None
    with kept_parts(parts.folder):
        report = _report(setup, arguments, answers, groups, bands, options)
        report.save(out)
    parts.clear(rows)
    for sentence in report.content["findings"]:
        show(f"- {visible(sentence)}")
    say(summary(answers) + f" Report: {out}")


def _group_columns(setup: "Setup", arguments: Arguments, by: tuple[str, ...]) -> list[Any]:
    """Return the columns whose groups are compared; an error where one of them is left out."""
    from onbmacf.cli.inputs import columns_of, split
    from onbmacf.errors import ParameterError

    columns = list(setup.table.columns)
    left_out = {name for word in arguments.drop for name in (word, *split(word))}
    for name in (name for word in by for name in split(word)):
        if name in left_out and name not in columns:
            raise ParameterError(
                f"--by names {name!r}, which --drop leaves out. Keep the column, with a model that takes no notice of "
                f"it (--model module:function), or compare from Python: audit_report(..., by={{{name!r}: values}})."
            )
    immutable = [one.name for one in setup.explainer.schema_.features if one.immutable and not one.held]
    return columns_of(by, columns, "--by") or immutable


def _report(
    setup: "Setup",
    arguments: Arguments,
    answers: "Explanations",
    groups: list[Any],
    bands: dict[Hashable, list[Any]],
    options: ReportOptions,
) -> Any:
    from onbmacf.cli.preparation import fitted_again
    from onbmacf.report import About, audit_report

    seconds = os.environ.get("SOURCE_DATE_EPOCH")  # a fixed date, for builds that must be reproducible
    when = datetime.now(UTC) if seconds is None else datetime.fromtimestamp(int(seconds), UTC)
    about = About(
        options.title or f"Audit of {Path(setup.source).name}",
        setup.source,
        setup.model_name,
        setup.files,
        command_line(),
        setup.notes,
        options.author,
        when.date().isoformat(),
        options.purpose,
    )
    truth, against = _usable_truth(setup), None
    if options.against:
        other = fitted_again(setup, arguments, options.against)
        others = other.explain(answers.rows, target=setup.target, **setup.arguments)
        against = (Path(options.against).name, other, others)
    return audit_report(
        setup.explainer,
        answers,
        target=setup.target,
        by=groups,
        bands=bands,
        truth=truth,
        against=against,
        n_cases=options.cases,
        n_actions=options.actions,
        full=options.full,
        seed=options.seed,
        about=about,
    )


def _usable_truth(setup: "Setup") -> Any:
    """Return the true labels of the table as the model's labels; None, and a note, where they are others."""
    from onbmacf.cli.inputs import same_label

    if setup.truth is None or setup.target is None or len(setup.truth) != len(setup.explainer.Z_):
        return None
    known = {str(label): label for label in setup.explainer.classes_.tolist()}
    truth = setup.truth.map(lambda value: same_label(value, known), na_action="ignore")
    if truth.isna().all():
        name = setup.truth.name
        say(f"note: {name!r} has none of the model's labels: how often decisions are right is not compared.")
        return None
    return truth


# --- notice -----------------------------------------------------------------------------------------------------------


@offers(*SOURCE, *NOTICE_WANTED, *NOTICE, *READING, *SEARCH, "map", *MODEL_OUTPUT)
def notice(
    arguments: Arguments,
    out: NoticeOption = None,
    language: LanguageOption = "en",
    contact: ContactOption = "",
    review: ReviewOption = "",
    date: DateOption = "",
) -> None:
    """Write a notice about one decision: main reasons, what would change it, what would not.

    \b
    onbmacf notice --rows 3
    onbmacf notice people.csv --target-column income --rows 17 --target high --out notice.html
    onbmacf notice people.csv --model income.skops --target-column income --rows 17 --language es --out notice.md

    It is about one row, named with --rows, --ids or --rows-file.
    """
    _check_notice(arguments, out, language)
    from onbmacf.cli.preparation import chosen_rows, prepare
    from onbmacf.report import notice as write

    setup = prepare(arguments)
    row = chosen_rows(setup, arguments, None)
    page = write(
        setup.explainer, row, target=setup.target, language=language, contact=contact, review=review, date=date or None
    )
    if out is None:
        show(page.markdown())
    else:
        say(f"Written to {page.save(out)}.")


def _check_notice(arguments: Arguments, out: Path | None, language: str) -> None:
    """Raise before any work where the notice could not be written."""
    from onbmacf._base.checks import listed
    from onbmacf.errors import ParameterError
    from onbmacf.report.notice import KINDS, catalogue

    catalogue(language)
    if out is not None and out.suffix.lower() not in KINDS:
        raise ParameterError(f"--out must end in {listed(KINDS)}, got {out.name!r}.")
    if not (arguments.rows or arguments.ids or arguments.rows_file):
        raise ParameterError("a notice is about one row: name it with --rows, --ids or --rows-file.")
