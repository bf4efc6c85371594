"""The paper's eight tables as Tasks.

    DESCRIPTIONS (data)  +  a file found or fetched (sources.py)  ->  load_task  ->  Task

Label 1 is the desired class everywhere: more than 50K, not high risk, no delinquency, a good risk, the leaving
certificate taken, *no* heart disease (the file's 1 is disease), survived, a wine of quality 6 or more.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._columns.kinds import Kind
from onbmacf._table.space import FeatureSpace
from onbmacf.bench import sources
from onbmacf.bench.protocol import Labels, Task
from onbmacf.errors import ParameterError
from onbmacf.schema import Schema

ONE_HOT_HEIGHT = 1.0  # the network's inputs: an active level is 1


@dataclass(frozen=True)
class Description:
    """What is not in the file itself."""

    target: str
    desired: tuple[Any, ...]  # values of the target column that count as label 1
    class_names: tuple[str, str]  # of label 0 and label 1
    immutable: tuple[str, ...] = ()
    kinds: Mapping[Hashable, Kind] = field(default_factory=dict)  # where inference from the column would be wrong
    ordinal: Mapping[Hashable, tuple[str, ...]] = field(default_factory=dict)
    paper_rows: int | None = None  # rows that the paper kept by stratified subsampling


# PMLB, and therefore the paper, puts the unknown prestige above the highest. Kept as one more rank.
_PRESTIGE = (*map(str, sources.IRISH_SCORES), "?")

DESCRIPTIONS: dict[str, Description] = {
    "adult": Description("income", (1,), ("at most 50K", "more than 50K"), ("age", "sex"), paper_rows=24_416),
    "compas": Description(
        "score", (1,), ("high risk", "not high risk"), ("age", "race", "sex"), {"two_year_recid": "binary"}
    ),
    "give_me_some_credit": Description(
        "SeriousDlqin2yrs",
        (1,),
        ("delinquent", "not delinquent"),
        ("age",),
        {"MonthlyIncome": "continuous"},
        paper_rows=23_105,
    ),
    "heloc": Description("RiskPerformance", (1,), ("bad risk", "good risk")),
    "irish": Description(
        "Leaving_Certificate",
        ("taken",),
        ("not taken", "taken"),
        ("Sex",),
        ordinal={"Prestige_score": _PRESTIGE},
    ),
    "saheart": Description("chd", (0,), ("disease", "no disease"), ("age",)),
    "titanic": Description("survived", ("yes",), ("died", "survived"), ("gender", "age", "country")),
    "wine": Description("quality", (6, 7, 8, 9), ("below 6", "6 or more")),
}


def load_task(name: str, data_dir: Path | None = None, *, target: int = 1, paper_sizes: bool = False) -> Task:
    """Return a dataset as a Task; with `target=0` the undesired label is to be reached."""
    if name not in DESCRIPTIONS:
        raise ParameterError(f"dataset must be one of {', '.join(DESCRIPTIONS)}, got {name!r}.")
    source = sources.locate(name, data_dir)
    frame = pd.read_csv(source.path, compression="infer").dropna().reset_index(drop=True)
    description = DESCRIPTIONS[name]
    if paper_sizes and description.paper_rows is not None:
        frame = _subsample(frame, description, description.paper_rows)
    return as_task(name, frame, description, target, source.digest)


def as_task(name: str, frame: pd.DataFrame, description: Description, target: int = 1, digest: str = "") -> Task:
    """Return a table with its target column as a Task."""
    table = frame.drop(columns=description.target)
    schema = Schema.infer(table, immutable=description.immutable, kinds=description.kinds, ordinal=description.ordinal)
    space = FeatureSpace.fit(table, schema, ONE_HOT_HEIGHT)
    y = _labels(frame, description)
    return Task(name, table, space.schema, space, space.encode(table), y, target, description.class_names, digest)


def _labels(frame: pd.DataFrame, description: Description) -> Labels:
    return frame[description.target].isin(description.desired).to_numpy().astype(np.intp)


def _subsample(frame: pd.DataFrame, description: Description, rows: int) -> pd.DataFrame:
    """Keep a seeded random share of each class, in file order."""
    y = _labels(frame, description)
    random = np.random.default_rng(0)
    positives = round(rows * y.mean())
    kept = [_draw(random, y == 1, positives), _draw(random, y == 0, rows - positives)]
    return frame.iloc[np.sort(np.concatenate(kept))].reset_index(drop=True)


def _draw(random: np.random.Generator, among: NDArray[np.bool_], count: int) -> NDArray[np.intp]:
    return random.choice(np.flatnonzero(among), size=count, replace=False)
