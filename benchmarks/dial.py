"""The dial against NICE: distance, changes and neighbours of the answers, on eight tables with three models.

    python benchmarks/dial.py [--rows 100] [--cache FOLDER] [--tables adult,heloc] [--models network,forest,boosting]

Per pair of a table and a model the first rows that the model refuses are explained at the default dial and at
`plausibility=1`, the immutable features held, and by NICE, which may change all of them. A pair is won where the mean
distance (L1), the mean number of changes (L0) and the mean share of neighbours of the wanted label (yNN) are all at
least as good, over the rows that both explain. At dial 1 every answer must have 5 of 5 neighbours of the label wherever
a fitted row with the factual's immutable values has.
"""

import argparse
import hashlib
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.neighbors import NearestNeighbors

from onbmacf.bench import metrics
from onbmacf.bench.datasets import DESCRIPTIONS, load_task
from onbmacf.bench.methods.nice import NICE
from onbmacf.bench.methods.onb import OnbMacf
from onbmacf.bench.network import trained_network
from onbmacf.bench.protocol import EstimatorModel, Model, Task, factual_rows

SEED = 0
MODELS = ("network", "forest", "boosting")


@dataclass(frozen=True)
class Pair:
    """A table, a model, the factuals, and what NICE says of them."""

    task: Task
    model: Model
    factuals: np.ndarray
    labels: np.ndarray  # the model's, of the table's rows
    nice: list[Any]


def trained(task: Task, name: str, folder: Path | None) -> Model:
    """Return a model of the task by its name."""
    if name == "network":
        return trained_network(task, SEED, folder)
    makers = {
        "forest": RandomForestClassifier(100, min_samples_leaf=5, random_state=SEED, n_jobs=1),
        "boosting": HistGradientBoostingClassifier(max_iter=100, random_state=SEED),
    }
    return EstimatorModel(makers[name].fit(task.Z, task.y))


def pair_of(table: str, name: str, most: int, folder: Path | None) -> Pair:
    """Return the pair, from the folder if it is there."""
    key = hashlib.sha256(f"{table} {name} {most} {SEED}".encode()).hexdigest()[:12]
    path = None if folder is None else folder / f"{table}-{name}-{key}.pickle"
    if path is not None and path.exists():
        return pickle.loads(path.read_bytes())  # written below
    task = load_task(table, paper_sizes=True)
    model = trained(task, name, folder)
    Z = task.Z[factual_rows(task, model, most)]
    nice = NICE().fit(task, model, SEED).explain(Z)
    pair = Pair(task, model, Z, model.label_of(task.Z), nice)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(pair))
    return pair


def figures(pair: Pair, found: list[Any], rows: np.ndarray, index: NearestNeighbors) -> dict[str, float]:
    """Return the means over some rows."""
    if not len(rows):
        return {"l1": np.nan, "l0": np.nan, "ynn": np.nan}
    points = np.stack([np.atleast_2d(found[row])[0] for row in rows])
    differences = metrics.feature_differences(pair.factuals[rows], points, pair.task.blocks)
    near = metrics.ynn(points, index, pair.labels, pair.task.target)
    return {
        "l1": float(metrics.l1(differences).mean()),
        "l0": float(metrics.l0(differences).mean()),
        "ynn": float(near.mean()),
    }


def fall_short(pair: Pair, explainer: Any, found: list[Any]) -> tuple[int, int]:
    """Return how many answers at dial 1 have fewer than all neighbours though a fitted row has; and of how many."""
    task, fitted = pair.task, explainer.fitted_
    full = np.flatnonzero(pair.labels == task.target)
    space = fitted.space
    full = full[fitted.neighbours.share(fitted.Z[full], fitted.labels[full]) == 1.0]
    held = task.Z[:, task.immutable_columns]
    short = total = 0
    for z, points in zip(pair.factuals, found, strict=True):
        own = z[task.immutable_columns]
        if not (held[full] == own).all(axis=1).any():
            continue
        total += 1
        if points is None:
            short += 1
            continue
        point = space.encode(task.space.decode(np.atleast_2d(points)[:1]))
        code = list(explainer.classes_).index(task.target)
        short += bool(fitted.neighbours.share(point, np.array([code]))[0] < 1.0)
    return short, total


def measured(pair: Pair) -> dict[str, Any]:
    """Explain the factuals of a pair at both ends and compare with NICE."""
    method = OnbMacf().fit(pair.task, pair.model, SEED)
    ours = method.explain(pair.factuals)
    method.explainer_.set_params(plausibility=1.0)
    plausible = method.explain(pair.factuals)
    rows = np.array(
        [i for i, (a, b) in enumerate(zip(ours, pair.nice, strict=True)) if a is not None and b is not None]
    )
    index = NearestNeighbors(n_neighbors=metrics.NEIGHBOURS).fit(pair.task.Z)
    mine, theirs = figures(pair, ours, rows, index), figures(pair, pair.nice, rows, index)
    short, total = fall_short(pair, method.explainer_, plausible)
    wins = mine["l1"] <= theirs["l1"], mine["l0"] <= theirs["l0"], mine["ynn"] >= theirs["ynn"]
    return {
        **mine,
        **{f"{key} NICE": value for key, value in theirs.items()},
        "won": all(wins),
        "lost": " ".join(name for name, won in zip(("l1", "l0", "ynn"), wins, strict=True) if not won),
        "rows": len(rows),
        "short": short,
        "of": total,
    }


def main() -> None:
    """Measure all pairs, print each as it is done, and a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--tables", default=",".join(DESCRIPTIONS))
    parser.add_argument("--models", default=",".join(MODELS))
    options = parser.parse_args()
    lines = []
    for table in options.tables.split(","):
        for name in options.models.split(","):
            lines.append({"table": table, "model": name, **measured(pair_of(table, name, options.rows, options.cache))})
            print({key: round(v, 3) if isinstance(v, float) else v for key, v in lines[-1].items()}, flush=True)
    frame = pd.DataFrame(lines)
    print(frame.round(3).to_string(index=False))
    print(f"won {frame.won.sum()} of {len(frame)}; at dial 1 {frame.short.sum()} of {frame['of'].sum()} fall short")


if __name__ == "__main__":
    main()
