"""`onbmacf bench run` and `onbmacf bench report`: options in, one library call, files out."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from onbmacf.bench.cells import Cell

app = typer.Typer(no_args_is_help=True, help="Comparisons with other methods: run them, write tables and plots.")

DEFAULT_FOLDER = Path("bench-run")


@app.command()
def run(
    folder: Path = typer.Option(
        DEFAULT_FOLDER, "--folder", help="Where results and networks are kept; a stopped run continues from there."
    ),
    data_dir: Path | None = typer.Option(None, "--data-dir", help="Folder of the CSV files (or set ONBMACF_DATA)."),
    datasets: str = typer.Option("", "--datasets", help="Comma-separated; the paper's eight by default."),
    methods: str = typer.Option("", "--methods", help="Comma-separated; the paper's by default."),
    factuals: int = typer.Option(200, "--factuals", min=1, help="Rows to explain per dataset."),
    counterfactuals: int = typer.Option(1, "--counterfactuals", min=1, help="Counterfactuals asked for per row."),
    seed: int = typer.Option(0, "--seed", min=0, help="Seed of the network and of the methods."),
    reverse: bool = typer.Option(False, "--reverse", help="Explain rows of the desired class instead of the other."),
    protocol: str = typer.Option("paper", "--protocol", help="Which rows are explained: paper, unknown or known."),
    model: str = typer.Option("network", "--model", help="network, forest or boosting; paper has the network alone."),
    design: bool = typer.Option(
        False, "--design", help="All cells of docs/benchmark: 28 tables, three models, ten seeds; options say the rest."
    ),
    paper_sizes: bool = typer.Option(False, "--paper-sizes", help="Subsample adult and credit as the paper did."),
    retrainings: int = typer.Option(
        10, "--retrainings", min=0, help="Networks trained again, to see which counterfactuals still hold."
    ),
    noisy: int = typer.Option(50, "--noisy", min=0, help="Rows asked again with noise, to see which changes stay."),
    jobs: int = typer.Option(1, "--jobs", min=1, help="Number of cells computed at the same time."),
    time_limit: float = typer.Option(1800.0, "--time-limit", min=1, help="Seconds per cell."),
    retry: bool = typer.Option(False, "--retry", help="Compute failed cells again."),
    strict: bool = typer.Option(False, "--strict", help="Exit with 1 if a cell failed or a method never succeeded."),
) -> None:
    """Run methods on datasets; results that are already there are kept.

    A cell is one method on one dataset.

    Example: onbmacf bench run --data-dir data --datasets irish,saheart --methods NICE,ONB-MACF --jobs 2
    """
    settings: dict[str, Any] = {
        "n_factuals": factuals,
        "n_counterfactuals": counterfactuals,
        "seed": seed,
        "target": 0 if reverse else 1,
        "paper_sizes": paper_sizes,
        "n_retrainings": retrainings,
        "n_noisy": noisy,
        "protocol": protocol,
        "model": model,
    }
    names, chosen = _chosen("datasets", datasets), _chosen("methods", methods)
    from onbmacf.bench.cells import Cell

    cells = [Cell(dataset, method, **settings) for dataset in names for method in chosen]
    if design:
        cells = _designed(names if datasets else [], chosen if methods else [])
    _run(cells, folder, data_dir=data_dir, jobs=jobs, time_limit=time_limit, retry=retry)
    if not _conclude(folder) and strict:
        raise typer.Exit(1)


@app.command()
def report(
    folder: Path = typer.Option(DEFAULT_FOLDER, "--folder", help="A folder that `bench run` has filled."),
    out: Path = typer.Option(Path("bench-report"), "--out", help="Where the tables and plots go."),
    plots: bool = typer.Option(True, "--plots/--no-plots", help="Draw the radar plots."),
) -> None:
    """Write the tables (Markdown, CSV, LaTeX), the radar plots and the comparison with the paper.

    Of a run with --design: intervals, ranks and tests, as CSV and figures.

    Example: onbmacf bench report --folder bench-run --out bench-report
    """
    from onbmacf.bench.cells import read_manifest

    if any(cell["protocol"] != "paper" for cell in read_manifest(folder)["cells"]):
        from onbmacf.bench import comparison

        written = comparison.write(folder, out)
        typer.echo(f"{len(written)} files in {out}; start with {out / 'comparison_intervals.csv'}.")
        return
    from onbmacf.bench.report import write_report

    written = write_report(folder, out, plots=plots)
    typer.echo(f"{len(written)} files in {out}; start with {out / 'report.md'}.")


def _chosen(what: str, words: str) -> list[str]:
    """Return the names asked for; by default the paper's tables, and its methods beside this package's own."""
    from onbmacf.bench.datasets import DESCRIPTIONS
    from onbmacf.bench.keel import TABLES
    from onbmacf.bench.methods import PAPER, REGISTRY
    from onbmacf.errors import ParameterError

    default = list(DESCRIPTIONS if what == "datasets" else PAPER)
    known = [*DESCRIPTIONS, *TABLES] if what == "datasets" else list(REGISTRY)
    names = [word.strip() for word in words.split(",") if word.strip()]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ParameterError(f"--{what} must be among {', '.join(known)}, got {', '.join(unknown)}.")
    return names or default


def _designed(datasets: list[str], methods: list[str]) -> "list[Cell]":
    """Return the cells of the design, of some tables and methods where they are named."""
    from onbmacf.bench.design import cells

    return [
        cell
        for cell in cells()
        if (not datasets or cell.dataset in datasets) and (not methods or cell.method in methods)
    ]


def _run(cells: "list[Cell]", folder: Path, **settings: Any) -> None:
    """Run cells, with progress on stderr; Ctrl-C is one line and exit code 130, SIGTERM the same and 143."""
    from onbmacf._base.limits import exit_code
    from onbmacf.bench.run import run as run_cells

    try:
        run_cells(cells, folder, say=lambda line: typer.echo(line, err=True), **settings)
    except KeyboardInterrupt as error:
        typer.echo("Stopped. Finished cells are kept; the same command continues from there.", err=True)
        raise typer.Exit(exit_code(error)) from None


def _conclude(folder: Path) -> bool:
    """Print how a run ended; return whether every cell is done and every method has a success."""
    from onbmacf.bench.cells import collect, digest

    lines, cells = collect(folder)
    counts = cells["status"].value_counts()
    successes = lines.groupby("method", sort=False)["n_found"].max()
    barren = [method for method in cells["method"].drop_duplicates() if not successes.get(method, 0)]
    typer.echo(", ".join(f"{count} {status}" for status, count in counts.items()))
    if barren:
        typer.echo(f"methods without any success: {', '.join(barren)}")
    typer.echo(f"digest {digest(lines, cells)}")
    return not barren and bool((cells["status"] == "done").all())
