"""`onbmacf audit`: a table and a model in, one report out."""

from pathlib import Path
from typing import Annotated, Any

import typer

from onbmacf.cli import request as words
from onbmacf.cli.request import Request, command_line
from onbmacf.cli.terminal import say, show

OutOption = Annotated[Path, typer.Option("--out", help="Report to write: .html or .md.")]
ByOption = Annotated[
    list[str], typer.Option("--by", help="Columns whose groups are compared; by default the immutable ones.")
]
MostOption = Annotated[int, typer.Option("--most", min=1, help="Rows to explain at most, drawn by chance.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Of the draw and of the intervals.")]
CasesOption = Annotated[int, typer.Option("--cases", min=0, help="Single rows shown in the report.")]
TitleOption = Annotated[str, typer.Option("--title", help="Title of the report.")]


def audit(
    table: words.TableArgument = None,
    model: words.ModelOption = "",
    target_column: words.TargetColumnOption = "",
    out: OutOption = Path("report.html"),
    by: ByOption = [],  # noqa: B006 - typer's way
    target: words.TargetOption = [],  # noqa: B006
    immutable: words.ImmutableOption = [],  # noqa: B006
    rules: words.RulesOption = None,
    rows: words.RowsOption = "",
    rows_file: words.RowsFileOption = None,
    predicted: words.PredictedOption = "",
    most: MostOption = 1000,
    seed: SeedOption = 0,
    n: words.NOption = 1,
    cases: CasesOption = 6,
    title: TitleOption = "",
    id_column: words.IdOption = "",
    drop: words.DropOption = [],  # noqa: B006
    drop_missing: words.MissingOption = False,
    header: words.HeaderOption = None,
    encoding: words.EncodingOption = "utf-8",
    strategy: words.StrategyOption = "",
    plausibility: words.PlausibilityOption = None,
    map_: words.MapOption = None,
    output: words.OutputOption = "auto",
    trust_pickle: words.TrustOption = False,
    jobs: words.JobsOption = 1,
) -> None:
    """Write a report: which features decide, who bears the burden, whether immutable features are what it takes.

    \b
    onbmacf audit
    onbmacf audit people.csv --target-column income --out report.html
    onbmacf audit people.csv --model income.skops --target-column income --immutable sex,age --target high

    Without --rows, rows that the model does not give the target label are explained: all, or --most drawn by chance.
    """
    request = Request.of(locals())
    _check_out(out)
    _run(request, out, tuple(by), most, seed, cases, title)


def _run(request: Request, out: Path, by: tuple[str, ...], most: int, seed: int, cases: int, title: str) -> None:
    from onbmacf.cli.job import chosen_rows, prepare
    from onbmacf.cli.outputs import summary
    from onbmacf.cli.parts import StoppedError, explain_in_parts, parts_beside
    from onbmacf.io.tables import columns_of
    from onbmacf.report import audit_report

    job = prepare(request)
    groups: list[Any] = columns_of(by, list(job.table.columns), "--by") or [*job.explainer.schema_.immutable]
    rows = chosen_rows(job, request, most, seed)
    try:
        answers = explain_in_parts(job.explainer, rows, job.target, parts_beside(out, job.explainer, job.target))
    except StoppedError as stopped:
        say(f"{str(stopped).capitalize()}. To go on: {command_line()}")
        raise typer.Exit(130) from None
    about = _about(job, title)
    report = audit_report(job.explainer, answers, target=job.target, by=groups, n_cases=cases, seed=seed, about=about)
    report.save(out)
    for sentence in report.content["findings"]:
        show(_line(sentence))
    say(summary(answers) + f" Report: {out}")


def _about(job: Any, title: str) -> Any:
    from onbmacf.report import About

    title = title or f"Audit of {Path(job.source).name}"
    return About(title, job.source, job.model_name, job.files, command_line(), job.notes)


def _line(sentence: str) -> str:
    from onbmacf._text.wording import visible

    return f"- {visible(sentence)}"


def _check_out(out: Path) -> None:
    """Say before any work that a report cannot be written like this."""
    from onbmacf._base.checks import listed
    from onbmacf.errors import ParameterError
    from onbmacf.report.render import SUFFIXES

    if out.suffix.lower() not in SUFFIXES:
        raise ParameterError(f"--out must end in {listed(SUFFIXES)}, got {out.name!r}.")
    if not out.parent.is_dir():
        raise ParameterError(f"--out: there is no folder {out.parent}.")
