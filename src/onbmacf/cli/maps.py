"""`onbmacf map build` and `onbmacf map info`: save a fitted map, and show what is in it."""

from pathlib import Path
from typing import Annotated

import typer

from onbmacf.cli.options import ASKING, READING, SEARCH, SOURCE, offers
from onbmacf.cli.request import Request
from onbmacf.cli.terminal import say, show

app = typer.Typer(
    no_args_is_help=True, help="Save a map of a table and a model, or show what is in one.", rich_markup_mode=None
)

OutOption = Annotated[Path, typer.Option(help="Map to write.")]


@app.command()
@offers(*SOURCE, "out", "immutable", "rules", *READING, *SEARCH, *ASKING)
def build(request: Request, out: OutOption = Path("map.onb")) -> None:
    """Fit a map of a table and a model, and save it; the file does not hold the model.

    \b
    onbmacf map build people.csv --target-column income --immutable sex --out people.onb
    onbmacf explain people.csv --target-column income --map people.onb --rows 3,17
    """
    from onbmacf.cli.job import prepare
    from onbmacf.cli.output_file import output_file

    with output_file(out, request):
        job = prepare(request)
        job.explainer.save(out)
    say(f"{len(job.explainer.cover_):,} balls over {len(job.table):,} rows. Map: {out}")


@app.command()
def info(path: Annotated[Path, typer.Argument(help="Map written by `onbmacf map build`.")]) -> None:
    """Show what is in a map: rows, columns, labels, balls, options.

    Example: onbmacf map info people.onb
    """
    from onbmacf.cli.map_info import map_info

    show(map_info(path))
