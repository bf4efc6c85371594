"""From found counterfactuals to one tidy table.

    factuals, found  ->  evaluate  ->  lines (one per factual)      cell files  ->  collect  ->  all lines, all cells

A counterfactual counts only if the model gives it the target label when it is asked again.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from onbmacf.bench import metrics
from onbmacf.bench.cells import MANIFEST
from onbmacf.bench.protocol import Found, Matrix, Model, Task
from onbmacf.errors import StoreError

OF_A_LINE = [
    "l0",
    "l1",
    "l2",
    "linf",
    "violations",
    "redundancy",
    "ynn",
    "redundancy_columns",
    "data_distance",
    "pairwise_distance",
    "distinct_changes",
    "n_ways",
    "stability",
]
CELL_COLUMNS = ["dataset", "method", "status", "error", "n_factuals", "features", "fit_seconds", "explain_seconds"]


def evaluate(
    task: Task, model: Model, rows: NDArray[np.intp], found: Sequence[Found], retrained: Sequence[Model] = ()
) -> pd.DataFrame:
    """Return one line per factual: whether a counterfactual was found, and its metrics (NaN if not)."""
    Z = task.Z[rows]
    valid = [_valid(answer, task, model) for answer in found]
    lines = pd.DataFrame({"row": rows, "n_found": [len(answers) for answers in valid]})
    lines[OF_A_LINE] = np.nan
    lines["changed"] = None
    hit = np.flatnonzero(lines["n_found"] > 0)
    if len(hit):
        best = np.stack([valid[place][0] for place in hit])
        for name, values in _metrics(task, model, Z[hit], best).items():
            lines.loc[hit, name] = values
        lines.loc[hit, "stability"] = metrics.stability(best, retrained, task.target)
        lines["pairwise_distance"] = [metrics.pairwise_distance(answers, task.blocks) for answers in valid]
        lines["distinct_changes"] = [
            metrics.distinct_changes(z, answers, task.blocks) for z, answers in zip(Z, valid, strict=True)
        ]
        lines["n_ways"] = [
            metrics.n_ways(z, answers, task.blocks, task.is_immutable, model.label_of, task.target)
            for z, answers in zip(Z, valid, strict=True)
        ]
        lines["changed"] = _changed_names(task, Z, valid)
    return lines


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of the last run in a folder."""
    path = folder / MANIFEST
    if not path.is_file():
        raise StoreError(f"no benchmark run in {folder}: {MANIFEST} is missing. Start one with: onbmacf bench run.")
    return json.loads(path.read_text(encoding="utf-8"))


def collect(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the lines of all cells of a run, and one line per cell; a cell not yet run has status "missing"."""
    cells, lines = [], []
    for entry in read_manifest(folder)["cells"]:
        path = folder / entry["file"]
        cell = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {**entry, "status": "missing"}
        cells.append({name: cell.get(name) for name in CELL_COLUMNS})
        lines.append(_lines_of(cell))
    table = pd.concat([part for part in lines if len(part)] or lines[:1], ignore_index=True)
    return table, pd.DataFrame(cells)


def summary(lines: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Return one line per cell: means over the successes, the success rate, seconds per factual."""
    keys = ["dataset", "method"]
    means = lines.groupby(keys, sort=False)[OF_A_LINE].mean()
    means["success_rate"] = (lines["n_found"] > 0).groupby([lines[key] for key in keys], sort=False).mean()
    table = cells.merge(means.reset_index(), on=keys, how="left")
    table["average_time"] = table["explain_seconds"] / table["n_factuals"]
    return table


def digest(lines: pd.DataFrame, cells: pd.DataFrame) -> str:
    """Return a SHA-256 of everything that a run found, without the times."""
    text = lines.to_csv(index=False) + cells[["dataset", "method", "status", "error", "n_factuals"]].to_csv(index=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _valid(answer: Found, task: Task, model: Model) -> Matrix:
    """Return the counterfactuals of an answer that have the target label; an empty matrix for None."""
    width = task.Z.shape[1]
    if answer is None:
        return np.empty((0, width))
    rows = np.atleast_2d(np.asarray(answer, dtype=np.float64))
    if rows.shape[1] != width or not np.isfinite(rows).all():
        raise ValueError(f"a counterfactual must be {width} finite numbers, got shape {rows.shape}.")
    return rows[model.label_of(rows) == task.target]


def _metrics(task: Task, model: Model, Z: Matrix, best: Matrix) -> dict[str, Matrix]:
    labels = model.label_of(task.Z)
    differences = metrics.feature_differences(Z, best, task.blocks)
    index = NearestNeighbors().fit(task.Z)
    return {
        "l0": metrics.l0(differences),
        "l1": metrics.l1(differences),
        "l2": metrics.l2(differences),
        "linf": metrics.linf(differences),
        "violations": metrics.violations(differences, task.is_immutable),
        "redundancy": metrics.redundancy(Z, best, task.blocks, model.label_of, task.target),
        "redundancy_columns": metrics.redundancy_columns(Z, best, model.label_of, task.target),
        "ynn": metrics.ynn(best, index, labels, task.target),
        "data_distance": metrics.distance_to_rows(best, task.Z[labels == task.target], task.blocks),
    }


def _changed_names(task: Task, Z: Matrix, valid: list[Matrix]) -> list[list[str] | None]:
    names = np.array([str(name) for name in task.schema.names], dtype=object)
    return [
        names[metrics.changed_features(z[np.newaxis], answers[:1], task.blocks)[0]].tolist() if len(answers) else None
        for z, answers in zip(Z, valid, strict=True)
    ]


def _lines_of(cell: dict[str, Any]) -> pd.DataFrame:
    columns = ["row", "n_found", *OF_A_LINE, "changed", "remark"]
    lines = pd.DataFrame(cell.get("lines", {}), columns=columns)
    lines[OF_A_LINE] = lines[OF_A_LINE].astype(np.float64)
    lines.insert(0, "dataset", cell["dataset"])
    lines.insert(1, "method", cell["method"])
    return lines
