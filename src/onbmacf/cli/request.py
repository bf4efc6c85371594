"""What was asked on the command line, as one value, and the options that several commands share."""

import shlex
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

TABLE_HELP = "A CSV file with a header (also .tsv, .csv.gz, .parquet); without it, the embedded heart data."
MODEL_HELP = (
    "module:callable, or a file: .onnx, .skops, xgboost (.ubj, .json), lightgbm (.txt), catboost (.cbm), or with "
    "--trust-pickle .joblib and .pkl. Without it one is trained on the target column."
)

TableArgument = Annotated[Path | None, typer.Argument(help=TABLE_HELP, show_default=False)]
ModelOption = Annotated[str, typer.Option("--model", help=MODEL_HELP)]
TargetColumnOption = Annotated[str, typer.Option("--target-column", help="The column to predict; not a feature.")]
OutputOption = Annotated[
    str, typer.Option("--output", help="What the model returns where it is not plain: label or probability.")
]
TrustOption = Annotated[bool, typer.Option("--trust-pickle", help="Load pickled models: they can run any code.")]
TargetOption = Annotated[list[str], typer.Option("--target", help="Label to reach; any other label by default.")]
ImmutableOption = Annotated[
    list[str], typer.Option("--immutable", help="Columns that must keep their value: a,b or given twice.")
]
RulesOption = Annotated[Path | None, typer.Option("--rules", help="TOML file of rules: directions, ranges, costs ...")]
DropOption = Annotated[list[str], typer.Option("--drop", help="Columns to leave out.")]
IdOption = Annotated[str, typer.Option("--id-column", help="Column that names the rows; not a feature.")]
MissingOption = Annotated[bool, typer.Option("--drop-missing", help="Leave out rows with missing values.")]
HeaderOption = Annotated[
    bool | None, typer.Option("--header/--no-header", help="Whether the first line names the columns; guessed.")
]
EncodingOption = Annotated[str, typer.Option("--encoding", help="Of the CSV files.")]
RowsOption = Annotated[str, typer.Option("--rows", help="Row numbers from 0: 3,17 or 20-29, or 'all'.")]
RowsFileOption = Annotated[Path | None, typer.Option("--rows-file", help="CSV file of rows to explain.")]
IdsOption = Annotated[list[str], typer.Option("--ids", help="Rows by their value in --id-column.")]
PredictedOption = Annotated[str, typer.Option("--predicted", help="Only rows that the model gives this label.")]
NOption = Annotated[int, typer.Option("--n", min=1, help="Counterfactuals per row.")]
MapOption = Annotated[Path | None, typer.Option("--map", help="Map written by `onbmacf map build`: skips the fit.")]
JobsOption = Annotated[int, typer.Option("--jobs", min=1, help="Processes that explain; the answers are the same.")]
StrategyOption = Annotated[str, typer.Option("--strategy", help="refined (default), or paper: Algorithm 3 as printed.")]
PlausibilityOption = Annotated[
    float | None, typer.Option("--plausibility", help="From 0 (nearest) to 1 (well inside the wanted class).")
]


@dataclass(frozen=True)
class Request:
    """The words of one command. Empty means: not said."""

    table: Path | None = None
    model: str = ""
    target_column: str = ""
    output: str = "auto"
    trust_pickle: bool = False
    target: tuple[str, ...] = ()
    immutable: tuple[str, ...] = ()
    rules: Path | None = None
    drop: tuple[str, ...] = ()
    id_column: str = ""
    drop_missing: bool = False
    header: bool | None = None
    encoding: str = "utf-8"
    rows: str = ""
    rows_file: Path | None = None
    ids: tuple[str, ...] = ()
    predicted: str = ""
    n: int = 1
    map: Path | None = None
    jobs: int = 1
    strategy: str = ""
    plausibility: float | None = None

    @classmethod
    def of(cls, words: dict[str, Any]) -> "Request":
        """Pick a command's arguments that are part of a request; a trailing underscore is not part of a name."""
        said = {name.rstrip("_"): tuple(word) if isinstance(word, list) else word for name, word in words.items()}
        picked: dict[str, Any] = {entry.name: said[entry.name] for entry in fields(cls) if entry.name in said}
        return cls(**picked)


def command_line() -> str:
    """Return the command as it was typed, for a report or to go on."""
    return shlex.join(["onbmacf", *sys.argv[1:]])
