"""`onbmacf map build` and `onbmacf map info`: save a fitted map, and show what is in it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onbmacf.cli.explain import MODEL_OUTPUT, READING, SEARCH, SOURCE, Arguments, offers
from onbmacf.cli.terminal import command_line, say, show

if TYPE_CHECKING:
    from onbmacf._disk.map_file import SavedMap

app = typer.Typer(
    no_args_is_help=True, help="Save a map of a table and a model, or show what is in one.", rich_markup_mode=None
)

CoverageOption = Annotated[
    float, typer.Option(help="Of a folder of parquet files: the least share of the rows that lie in a ball.")
]
OutOption = Annotated[Path, typer.Option(help="Map to write.")]


@app.command()
@offers(*SOURCE, "out", "immutable", "fillable", "rules", *READING, *SEARCH, "cover_rows", "coverage", *MODEL_OUTPUT)
def build(arguments: Arguments, out: OutOption = Path("map.onb"), coverage: CoverageOption = 0.999) -> None:
    """Fit a map of a table and a model, and save it; the file does not hold the model.

    \b
    onbmacf map build people.csv --target-column income --immutable sex --out people.onb
    onbmacf explain people.csv --target-column income --map people.onb --rows 3,17
    onbmacf map build lake/ --model income.skops --target-column income --out lake.onb

    A folder of parquet files may be larger than memory. Its map holds a sample of the rows, and finished passes over
    the files are kept beside it until it is written: the same command, typed again after Ctrl-C, continues from there.
    """
    from onbmacf.cli.outputs import output_file
    from onbmacf.cli.preparation import prepare

    with output_file(out, arguments):
        if arguments.table is not None and arguments.table.is_dir():
            return _build_of_folder(arguments, out, coverage)
        setup = prepare(arguments)
        setup.explainer.save(out)
    say(f"{len(setup.explainer.cover_):,} balls over {len(setup.table):,} rows. Map: {out}")
    return None


def _build_of_folder(arguments: Arguments, out: Path, coverage: float) -> None:
    from shutil import rmtree

    from onbmacf._base.limits import exit_code
    from onbmacf.cli.preparation import fitted_folder

    passes = out.with_name(out.name + ".passes")
    try:
        explainer = fitted_folder(arguments, coverage, passes)
    except KeyboardInterrupt as stopped:
        say(f"Stopped. Finished passes are kept in {passes}. To go on: {command_line()}")
        raise typer.Exit(exit_code(stopped)) from None
    explainer.save(out)
    rmtree(passes, ignore_errors=True)
    whole = explainer.fitted_.whole
    assert whole is not None
    say(
        f"{len(explainer.cover_):,} balls that hold {100 * whole.share:.4g} % of {whole.n_rows:,} rows, and none of "
        f"another label; neighbours among {whole.n_sampled:,} of them. Map: {out}"
    )


@app.command()
def info(path: Annotated[Path, typer.Argument(help="Map written by `onbmacf map build`.")]) -> None:
    """Show what is in a map: rows, columns, labels, balls, options.

    Example: onbmacf map info people.onb
    """
    from onbmacf._disk.map_file import read_map

    show(map_text(read_map(path), f"{path} ({path.stat().st_size:,} bytes)"))


def _sampled(fitted: "SavedMap") -> list[tuple[str, str]]:
    """Return what a cover of a sample covers; nothing for one of all rows."""
    import numpy as np

    cover, whole = fitted.cover, fitted.whole
    if whole is not None:
        n_rows, share = f"{whole.n_rows:,}", f"{100 * whole.share:.4g} %"
        said = f"{n_rows} rows, {share} of them in a ball of their label and none in one of another"
        return [("stands for", said), ("neighbours", f"among {whole.n_sampled:,} of these rows")]
    if not cover.is_sampled:
        return []
    n_covered = np.count_nonzero(~np.isnan(cover.reach))
    said = f"a sample of {n_covered:,} rows; {100 * cover.share:.3g} % of all rows lie in a ball"
    return [("covered", f"{said}, and none in a ball of another label")]


def map_text(fitted: "SavedMap", file: str) -> str:
    """Return what a map covers and how, one fact per line. The model is not in the file and is not needed."""
    import numpy as np

    from onbmacf._text.wording import quoted, rounded, visible

    cover, private = fitted.cover, fitted.options.get("private")
    radii = " / ".join(rounded(q) for q in np.quantile(cover.radii, [0, 0.5, 1]))
    facts = [
        ("file", file),
        ("rows", f"{len(fitted.Z):,}"),
        (
            "holds",
            "the fitted table: every row can be read back exactly, with the model's label"
            if private is None
            else f"means and commonest levels of groups of at least {private} rows, and no row itself",
        ),
        ("balls", f"{len(cover):,}, {int(cover.is_degenerate.sum()):,} of them with radius 0"),
        *_sampled(fitted),
        ("radius", f"{radii} (smallest, median, largest)"),
    ]
    for code, label in enumerate(fitted.classes):
        rows, balls = int((fitted.labels == code).sum()), int((cover.labels == code).sum())
        facts.append((f"label {quoted(label)}", f"{rows:,} rows in {balls:,} balls"))
    for feature in fitted.space.schema.features:
        facts.append((f"column {feature.name}", feature.shown_kind + (", immutable" if feature.immutable else "")))
    facts += [(name, repr(value)) for name, value in fitted.options.items()]
    facts += [("warning", message) for message in fitted.warnings]
    width = min(28, max(len(visible(name)) for name, _ in facts))
    return "".join(f"{visible(name):<{width}}  {visible(text)}\n" for name, text in facts)
