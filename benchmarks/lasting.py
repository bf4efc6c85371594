"""What makes answers last as long as NICE's, and what it costs: eight tables, three models, least probabilities.

    python benchmarks/lasting.py [--rows 100] [--cache FOLDER] [--tables adult,heloc] [--models network,forest,boosting]

Per pair of a table and a model the first rows that the model refuses are explained with several values of
`min_probability`, the immutable features held, and by NICE, which may change all of them. Every answer is shown to five
models that no search has seen: the comparison's networks trained again on other rows, or forests and boosted trees
trained on bootstrap samples of 90 % of the rows. Distances and shares are means over the rows that all of them explain.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dial import MODELS, SEED, Pair, pair_of
from onbmacf import ONBMACF, committee
from onbmacf.bench import metrics
from onbmacf.bench.datasets import DESCRIPTIONS
from onbmacf.bench.network import retrained_networks
from onbmacf.bench.protocol import EstimatorModel, Model

LEAST = (0.0, 0.55, 0.6, 0.65, 0.7)
RETRAININGS = 5
NICE = "NICE"


class OnRawRows:
    """A model of encoded rows that takes raw ones and gives probabilities, as a user's model does."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.classes_ = np.array([0, 1])

    def predict(self, rows: pd.DataFrame) -> np.ndarray:
        """Return the labels."""
        return self.pair.model.label_of(self.pair.task.space.encode(rows))

    def predict_proba(self, rows: pd.DataFrame) -> np.ndarray:
        """Return the probabilities of both labels."""
        second = np.asarray(self.pair.model.probability_of(self.pair.task.space.encode(rows)), dtype=np.float64)
        return np.column_stack([1 - second, second])


def retrained(pair: Pair, folder: Path | None) -> Sequence[Model]:
    """Return models like the pair's that no search has seen."""
    if not isinstance(pair.model, EstimatorModel):
        return retrained_networks(pair.task, SEED, RETRAININGS, folder)
    made = committee(pair.model.estimator, pair.task.Z, pair.task.y, RETRAININGS, seed=SEED, share=0.9, replace=True)
    return [EstimatorModel(member) for member in made]


def answers(pair: Pair) -> dict[str, list[Any]]:
    """Return one point or None per factual, by least probability; NICE's too."""
    found = {NICE: [None if points is None else np.atleast_2d(points)[0] for points in pair.nice]}
    explainer = ONBMACF().fit(pair.task.table, OnRawRows(pair), schema=pair.task.schema)
    rows = pair.task.space.decode(pair.factuals)
    for least in LEAST:
        batch = explainer.explain(rows, pair.task.target, min_probability=least).batch
        points: list[Any] = [None] * len(rows)
        for factual, point in zip(batch.factual, pair.task.space.encode(batch.values), strict=True):
            points[factual] = point
        found[f"{least:.2f}"] = points
    return found


def measured(pair: Pair, folder: Path | None) -> pd.DataFrame:
    """Return distance, share that holds and share answered, one line per least probability and one for NICE."""
    found, models = answers(pair), retrained(pair, folder)
    rows = [row for row in range(len(pair.factuals)) if all(points[row] is not None for points in found.values())]
    lines = {}
    for name, points in found.items():
        chosen = np.stack([points[row] for row in rows])
        differences = metrics.feature_differences(pair.factuals[rows], chosen, pair.task.blocks)
        lines[name] = {
            "l1": metrics.l1(differences).mean(),
            "holds": metrics.stability(chosen, models, pair.task.target).mean(),
            "answered": np.mean([point is not None for point in points]),
        }
    return pd.DataFrame(lines).T


def compared(lines: pd.DataFrame) -> pd.DataFrame:
    """Return means over the pairs, and on how many a line holds as often as NICE's and is no farther."""
    nice = lines.xs(NICE, level="answer").reindex(lines.index.droplevel("answer")).to_numpy()
    lasts = lines["holds"].to_numpy() >= nice[:, 1]
    near = lines["l1"].to_numpy() <= nice[:, 0]
    marked = lines.assign(lasts=lasts, near=near, both=lasts & near, ratio=lines["l1"].to_numpy() / nice[:, 0])
    means = marked.groupby(level="answer")[["l1", "ratio", "holds", "answered"]].mean()
    return means.join(marked.groupby(level="answer")[["lasts", "near", "both"]].sum())


def main() -> None:
    """Measure all pairs, print each as it is done, and the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--tables", default=",".join(DESCRIPTIONS))
    parser.add_argument("--models", default=",".join(MODELS))
    options = parser.parse_args()
    parts = {}
    for table in options.tables.split(","):
        for name in options.models.split(","):
            parts[table, name] = measured(pair_of(table, name, options.rows, options.cache), options.cache)
            print(table, name, parts[table, name].round(3).to_string(), sep="\n", flush=True)
    lines = pd.concat(parts, names=["table", "model", "answer"])
    for figure in ("holds", "l1"):
        wide = lines.reset_index().pivot_table(figure, ["table", "model"], "answer")
        print(figure, wide.round(3).to_string(), sep="\n")
    print(compared(lines).round(3).to_string())


if __name__ == "__main__":
    main()
