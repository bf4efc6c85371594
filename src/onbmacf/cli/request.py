"""What was asked on the command line, as one value. A shared option is declared once: a field of Request.

An option is called like its field: `target_column` is `--target-column`.
"""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from onbmacf.io.models import LOADERS, described

TABLE_HELP = (
    "A CSV file with a header (also .tsv, .csv.gz, .parquet, .xlsx, .ods); without it, the embedded heart data."
)
MODEL_HELP = (
    f"module:name, http://..., or a file: {described(loader for loader in LOADERS if not loader.is_pickle)}; with "
    f"--trust-pickle also {described(loader for loader in LOADERS if loader.is_pickle)}. Without it, a network is "
    "trained on the target column, or boosted trees where values are missing."
)


@dataclass(frozen=True)
class Request:
    """The options of one command. Empty means: not given."""

    table: Annotated[Path | None, typer.Argument(help=TABLE_HELP, show_default=False)] = None
    model: Annotated[str, typer.Option(help=MODEL_HELP)] = ""
    target_column: Annotated[str, typer.Option(help="The column to predict; not a feature.")] = ""
    output: Annotated[
        str, typer.Option(help="What the model returns, where it is not clear: label or probability.")
    ] = "auto"
    threshold: Annotated[
        float | None, typer.Option(help="Score or probability from which on the model says the second class.")
    ] = None
    classes: Annotated[
        tuple[str, ...], typer.Option(help="Names of the model's classes, in its order, the lower side first: a,b.")
    ] = ()
    between: Annotated[
        str,
        typer.Option(
            help="Range that a regressor should reach: 200,300 or 200, or ,300. Labels: below, inside, above."
        ),
    ] = ""
    trust_pickle: Annotated[bool, typer.Option("--trust-pickle", help="Load pickles too: they can run any code.")] = (
        False
    )
    target: Annotated[tuple[str, ...], typer.Option(help="Label to reach; any other label by default.")] = ()
    min_probability: Annotated[
        str,
        typer.Option(
            help="The least probability that the model must give the label, from 0 to 1; or 'lasting', which is 0.6: "
            "such answers hold after retraining more often."
        ),
    ] = ""
    immutable: Annotated[
        tuple[str, ...], typer.Option(help="Columns that must keep their value: a,b or the option given twice.")
    ] = ()
    vary: Annotated[
        tuple[str, ...], typer.Option(help="The only columns that may change: a,b. Instead of --immutable.")
    ] = ()
    fillable: Annotated[
        tuple[str, ...], typer.Option(help="Columns that may be filled in where a row lacks a value: a,b.")
    ] = ()
    rules: Annotated[
        Path | None, typer.Option(help="TOML file of rules: immutable, directions, ranges, costs and more.")
    ] = None
    drop: Annotated[tuple[str, ...], typer.Option(help="Columns to leave out.")] = ()
    id_column: Annotated[str, typer.Option(help="Column that names the rows; not a feature.")] = ""
    drop_missing: Annotated[bool, typer.Option("--drop-missing", help="Leave out rows with missing values.")] = False
    header: Annotated[
        bool | None, typer.Option(help="Whether the first line names the columns; guessed by default.")
    ] = None
    encoding: Annotated[
        str, typer.Option(help="Encoding of the CSV files; by default as their first bytes say, or UTF-8.")
    ] = ""
    sheet: Annotated[str, typer.Option(help="Sheet of a spreadsheet; the first by default.")] = ""
    dates: Annotated[
        tuple[str, ...], typer.Option(help="Columns of a CSV file that hold dates or times, such as 2024-05-31.")
    ] = ()
    kinds: Annotated[
        tuple[str, ...],
        typer.Option(
            help="Kinds of columns: zip=categorical,pay=continuous or size=S<M<L; read off the table by default."
        ),
    ] = ()
    rows: Annotated[str, typer.Option(help="Row numbers from 0: 3,17 or 20-29, or 'all'.")] = ""
    rows_file: Annotated[Path | None, typer.Option(help="CSV file of rows to explain.")] = None
    ids: Annotated[tuple[str, ...], typer.Option(help="Rows by their value in --id-column.")] = ()
    predicted: Annotated[str, typer.Option(help="Only rows that the model gives this label.")] = ""
    n: Annotated[int, typer.Option(min=1, help="Counterfactuals per row.")] = 1
    front: Annotated[
        bool,
        typer.Option(
            "--front",
            help="Instead of the n best, every counterfactual found that no other beats in distance, number of changes "
            "and plausibility at once.",
        ),
    ] = False
    ranges: Annotated[
        bool,
        typer.Option("--ranges", help="Also ask how far the changed values may move before the label is lost."),
    ] = False
    prove: Annotated[
        bool,
        typer.Option(
            "--prove",
            help="Prove that the first counterfactual is the nearest, or that none exists: for linear models, trees, "
            "forests, boosted trees and small networks.",
        ),
    ] = False
    prove_seconds: Annotated[
        float | None, typer.Option(help="The most seconds for the proof of one row; 1 by default.")
    ] = None
    map: Annotated[Path | None, typer.Option(help="Map written by `onbmacf map build`, used instead of a new fit.")] = (
        None
    )
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes; the answers do not depend on it.")] = 1
    strategy: Annotated[str, typer.Option(help="refined (default), or paper: Algorithm 3 as printed.")] = ""
    release: Annotated[
        str, typer.Option(help="What may be given up where nothing else is found: nothing, immutable or rules.")
    ] = ""
    max_model_rows: Annotated[
        int | None, typer.Option(help="The most points that the model may be asked about for one row.")
    ] = None
    max_model_calls: Annotated[int | None, typer.Option(help="The most calls of the model for one row.")] = None
    max_seconds: Annotated[
        float | None,
        typer.Option(
            help="The most seconds to explain all rows, without reading, training and fitting: then the best found so "
            "far is written, and rows that were not reached say so."
        ),
    ] = None
    plausibility: Annotated[
        float | None, typer.Option(help="From 0 (nearest) to 1 (well inside the wanted class).")
    ] = None
    private: Annotated[
        int | None, typer.Option(help="Answer from groups of at least so many rows, and keep no row in the map.")
    ] = None


def command_line() -> str:
    """Return the command as it was typed, for a report or to go on."""
    return shlex.join(["onbmacf", *sys.argv[1:]])
