"""`onbmacf map build` and `onbmacf map info`: save a cover once, and look into it."""

from pathlib import Path
from typing import Annotated

import typer

from onbmacf.cli import request as words
from onbmacf.cli.request import Request
from onbmacf.cli.terminal import say, show

app = typer.Typer(
    no_args_is_help=True, help="Save a map of a table and a model, and inspect it.", rich_markup_mode=None
)


@app.command()
def build(
    table: words.TableArgument = None,
    model: words.ModelOption = "",
    target_column: words.TargetColumnOption = "",
    out: Annotated[Path, typer.Option("--out", help="Map to write.")] = Path("map.onb"),
    immutable: words.ImmutableOption = [],  # noqa: B006 - typer's way
    rules: words.RulesOption = None,
    id_column: words.IdOption = "",
    drop: words.DropOption = [],  # noqa: B006
    drop_missing: words.MissingOption = False,
    header: words.HeaderOption = None,
    encoding: words.EncodingOption = "utf-8",
    strategy: words.StrategyOption = "",
    plausibility: words.PlausibilityOption = None,
    output: words.OutputOption = "auto",
    trust_pickle: words.TrustOption = False,
) -> None:
    """Cover a table as a model labels it, and save the map; the model is not in it.

    \b
    onbmacf map build people.csv --target-column income --immutable sex --out people.onb
    onbmacf explain people.csv --target-column income --map people.onb --rows 3,17
    """
    request = Request.of(locals())
    from onbmacf.cli.job import prepare

    job = prepare(request)
    job.explainer.save(out)
    say(f"{len(job.explainer.cover_):,} balls over {len(job.table):,} rows. Map: {out}")


@app.command()
def info(path: Annotated[Path, typer.Argument(help="Map written by `onbmacf map build`.")]) -> None:
    """Say what is in a map: rows, columns, labels, balls, options.

    Example: onbmacf map info people.onb
    """
    from onbmacf.cli.map_info import map_info

    show(map_info(path))
