"""What a cell asks, and of what: known rows, a model trained on them, and the factuals.

    Task, seed  ->  separated  ->  Split (known rows as a Task, positions of the unknown rows)
    Split, kind  ->  trained  ->  Model        Split, Model, protocol  ->  factuals

Protocols: "paper" asks for the first rows of the table to which the model gives the undesired label, as CARLA does;
most of them trained the model, and all are in the map. "unknown" draws the factuals from rows that neither the model
nor a method nor a metric has seen. "known" draws them from the rows that all of these have: the difference is what
knowing a row is worth. Why, and how many: docs/decisions/0136-comparison.md.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from onbmacf.bench.protocol import EstimatorModel, Labels, Matrix, Model, Task

PROTOCOLS = ("paper", "unknown", "known")
KNOWN_SHARE = 0.75
MOST_KNOWN = 2000
MOST_UNKNOWN = 2000
SEEDS = 10  # of a comparison: a model trained again is that of another seed, on other known rows

ESTIMATORS: dict[str, Callable[[int], Any]] = {
    "forest": lambda seed: RandomForestClassifier(random_state=seed),
    "boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
}
MODELS = ("network", *ESTIMATORS)


@dataclass(frozen=True, eq=False)
class Split:
    """A table in two: what is known, and rows that nobody has seen."""

    known: Task
    known_rows: NDArray[np.intp]  # of the table, in random order: the lines of `known`
    unknown_rows: NDArray[np.intp]  # of the table, in random order
    Z: Matrix  # the unknown rows
    y: Labels


@dataclass(frozen=True, eq=False)
class Case:
    """What a method is fitted on, what it is asked, and what its answers are tried on."""

    task: Task
    model: Model
    rows: NDArray[np.intp]  # of the table: the factuals
    Z: Matrix
    retrained: list[Model]
    accuracy: float  # on rows that the model was not trained on


def separated(task: Task, seed: int) -> Split:
    """Return a seeded split; the encoding (levels, ranges) is that of the whole table, as a data dictionary has it.

    An unknown row with a level that no known row has is left out: some methods could not be asked.
    """
    shuffled = np.random.default_rng(seed).permutation(len(task.y))
    n_known = min(int(KNOWN_SHARE * len(shuffled)), MOST_KNOWN)
    known, unknown = shuffled[:n_known], shuffled[n_known : n_known + MOST_UNKNOWN]
    table = task.table.iloc[known].reset_index(drop=True)
    levelled = [feature.name for feature in task.schema.features if not feature.is_numeric]
    for name in levelled:
        unknown = unknown[task.table[name].iloc[unknown].isin(table[name].unique())]
    task_of_known = replace(task, table=table, Z=task.Z[known], y=task.y[known])
    return Split(task_of_known, known, unknown, task.Z[unknown], task.y[unknown])


def trained(kind: str, task: Task, seed: int, folder: Path | None = None) -> Model:
    """Return a model of a kind, trained on all rows of a task."""
    if kind == "network":
        from onbmacf.bench.network import trained_network

        return trained_network(task, seed, folder, share=1.0)
    return EstimatorModel(ESTIMATORS[kind](seed).fit(task.Z, task.y))


def separated_case(split: Split, model: Model, others: list[Model], protocol: str, most: int) -> Case:
    """Return what is asked under the protocols "unknown" and "known": the first rows with the undesired label."""
    task = split.known
    Z, rows = (split.Z, split.unknown_rows) if protocol == "unknown" else (task.Z, split.known_rows)
    chosen = np.flatnonzero(model.label_of(Z) != task.target)[:most]
    accuracy = float((model.label_of(split.Z) == split.y).mean())
    return Case(task, model, rows[chosen], Z[chosen], others, accuracy)
