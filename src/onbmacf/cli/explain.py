"""`onbmacf explain`: a table and a model in, counterfactuals out."""

from pathlib import Path
from typing import Annotated

import typer

from onbmacf.cli import request as words
from onbmacf.cli.request import Request, command_line
from onbmacf.cli.terminal import say, show

FormatOption = Annotated[
    str, typer.Option("--format", help="table, csv, json, sentences or markdown; a file's name says which.")
]
OutOption = Annotated[
    Path | None, typer.Option("--out", help="File to write; work that is stopped goes on from there.")
]


def explain(
    table: words.TableArgument = None,
    model: words.ModelOption = "",
    target_column: words.TargetColumnOption = "",
    rows: words.RowsOption = "",
    ids: words.IdsOption = [],  # noqa: B006 - typer's way
    rows_file: words.RowsFileOption = None,
    predicted: words.PredictedOption = "",
    target: words.TargetOption = [],  # noqa: B006
    n: words.NOption = 1,
    immutable: words.ImmutableOption = [],  # noqa: B006
    rules: words.RulesOption = None,
    format_: FormatOption = "",
    out: OutOption = None,
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
    """Say which change of a row would make the model decide otherwise.

    \b
    onbmacf explain
    onbmacf explain people.csv --target-column income --rows 3,17
    onbmacf explain people.csv --model income.skops --target-column income --immutable age,sex --out answers.csv
    onbmacf explain people.csv --model mymodule:predict --predicted refused --n 3 --format sentences

    Rows are numbered from 0. Without --rows, --ids or --rows-file, the first 10 rows are explained that the model does
    not give the target label. Ctrl-C keeps what is done; with --out the same command goes on.
    """
    request = Request.of(locals())
    from onbmacf.cli.outputs import kind_of

    _run(request, kind_of(format_, out), out)


def _run(request: Request, kind: str, out: Path | None) -> None:
    from onbmacf.cli.job import FIRST, chosen_rows, prepare
    from onbmacf.cli.outputs import summary
    from onbmacf.cli.parts import StoppedError, explain_in_parts, parts_beside
    from onbmacf.explanation import Explanations

    job = prepare(request)
    rows = chosen_rows(job, request, None if request.predicted else FIRST, seed=-1)
    try:
        answers = explain_in_parts(job.explainer, rows, job.target, parts_beside(out, job.explainer, job.target))
    except StoppedError as stopped:
        if out is None and stopped.answers:
            _deliver(Explanations.concat(stopped.answers), kind, None)
        say(f"{str(stopped).capitalize()}.{' To go on: ' + command_line() if out else ' With --out it could go on.'}")
        raise typer.Exit(130) from None
    _deliver(answers, kind, out)
    say(summary(answers) + (f" Written to {out}." if out else ""))


def _deliver(answers: object, kind: str, out: Path | None) -> None:
    from onbmacf._base.files import write_atomically
    from onbmacf.cli.outputs import written

    text = written(answers, kind, width=None if out is None else 120)  # type: ignore[arg-type]
    if out is None:
        show(text)
    else:
        write_atomically(out, text.encode("utf-8", "backslashreplace"))
