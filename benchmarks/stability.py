"""How many answers hold after retraining, and how many change the same features of a slightly different row.

    python benchmarks/stability.py --data-dir data

On heloc, with xgboost (100 trees of depth 4) and a 32-16 network: rejected rows are explained in several ways, and the
counterfactuals are shown to models that no search has seen: ten trained on other 90 % of the rows, and ten on bootstrap
samples. Then the rows get noise, are explained again, and the sets of changed features are compared. Times are those of
the processor.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier

from onbmacf import ONBMACF, committee
from onbmacf.bench.datasets import load_task
from onbmacf.bench.methods.nice import NICE
from onbmacf.bench.metrics import CHANGED, changed_features
from onbmacf.bench.protocol import Task

MEMBERS, UNSEEN, BOOTSTRAP, NOISE = 0, 1000, 2000, 3000  # seeds
SIZE, LARGER = 10, 15  # members of a committee
LEVELS = (0.005, 0.02)  # standard deviations of the noise, as shares of a feature's range
ESTIMATORS = {
    "xgboost 100x4": XGBClassifier(n_estimators=100, max_depth=4, learning_rate=0.1, n_jobs=1, random_state=0),
    "xgboost 100x4 at 0.3": XGBClassifier(n_estimators=100, max_depth=4, n_jobs=1, random_state=0),  # its default rate
    "network 32-16": make_pipeline(StandardScaler(), MLPClassifier((32, 16), early_stopping=True, random_state=0)),
}
LIBRARIES = ("numpy", "scikit-learn", "xgboost")
Explain = Callable[[pd.DataFrame], pd.DataFrame]  # rows -> one counterfactual each, NaN where there is none


@dataclass(frozen=True)
class Raw:
    """A model of raw rows, as the benchmark's methods want it: of encoded ones."""

    task: Task
    model: Any

    def probability_of(self, Z: Any) -> Any:
        """Return the probability of label 1."""
        return np.asarray(self.model.predict_proba(self.task.space.decode(Z)), dtype=np.float64)[:, 1]

    def label_of(self, Z: Any) -> Any:
        """Return the label."""
        return np.asarray(self.model.predict(self.task.space.decode(Z)))


def main() -> None:
    """Print one table per model and question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--noisy-rows", type=int, default=100)
    parser.add_argument("--models", default=",".join(ESTIMATORS))
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    task = load_task("heloc", arguments.data_dir)
    print(f"Python {sys.version.split()[0]}, {', '.join(f'{name} {version(name)}' for name in LIBRARIES)}", flush=True)
    for name in arguments.models.split(","):
        report(name, task, arguments.rows, arguments.noisy_rows)


def report(name: str, task: Task, n_rows: int, n_noisy: int) -> None:
    """Print both tables for one model."""
    estimator, model = ESTIMATORS[name], ESTIMATORS[name].fit(task.table, task.y)
    rows = task.table[model.predict(task.table) == 0].head(n_rows)
    ways = explainers(task, model, committee(estimator, task.table, task.y, k=LARGER, seed=MEMBERS))
    for explain in ways.values():
        explain(rows.head(3))  # what is made on first use is there, and the members are known
    unseen = {
        "valid": committee(estimator, task.table, task.y, seed=UNSEEN),
        "valid, bootstrap": committee(estimator, task.table, task.y, seed=BOOTSTRAP, replace=True),
    }
    print(f"\n{name}: {len(rows)} rejected rows\n")
    show(pd.DataFrame([{"method": way, **after_retraining(task, rows, ways[way], unseen)} for way in ways]))
    if not n_noisy:
        return
    print(f"\n{name}: {n_noisy} rejected rows with noise\n")
    show(pd.DataFrame([{"method": way, **under_noise(task, model, rows.head(n_noisy), ways[way])} for way in ways]))


def explainers(task: Task, model: Any, members: tuple[Any, ...]) -> dict[str, Explain]:
    """Return the compared ways to explain rows."""
    plain = ONBMACF().fit(task.table, model, schema=task.schema)
    agreed = plain.with_options(committee=members[:SIZE])
    larger = plain.with_options(committee=members)
    nice = NICE().fit(task, Raw(task, model), 0)
    return {
        "default": best(plain),
        "plausibility=0": best(plain.with_options(plausibility=0)),
        "min_probability=0.6": best(plain, min_probability=0.6),
        "agreement=0.8": best(agreed.with_options(agreement=0.8)),
        "agreement=1": best(agreed.with_options(agreement=1)),
        f"agreement=1, {LARGER} members": best(larger.with_options(agreement=1)),
        "agreement=1, plausibility=0": best(agreed.with_options(agreement=1, plausibility=0)),
        "NICE": lambda rows: task.space.decode(np.stack(nice.explain(task.space.encode(rows)))).set_axis(rows.index),
    }


def best(explainer: ONBMACF, **asked: Any) -> Explain:
    """Return a function from rows to their first counterfactuals."""

    def explain(rows: pd.DataFrame) -> pd.DataFrame:
        batch = explainer.explain(rows, target=1, **asked).batch
        return batch.values.set_axis(rows.index[batch.factual]).reindex(rows.index)

    return explain


def after_retraining(
    task: Task, rows: pd.DataFrame, explain: Explain, unseen: dict[str, tuple[Any, ...]]
) -> dict[str, Any]:
    """Return distance, changes, the share that unseen models agree on, and CPU seconds."""
    started = time.process_time()
    found = explain(rows).dropna()
    seconds = time.process_time() - started
    found = found.astype(task.table.dtypes)
    moved = np.abs(task.space.encode(found) - task.space.encode(rows.loc[found.index]))
    shares = {name: np.mean([model.predict(found) == 1 for model in models]) for name, models in unseen.items()}
    size = {"distance": moved.sum(axis=1).mean(), "changes": (moved > CHANGED).sum(axis=1).mean()}
    return {"found": len(found), **size, **shares, "seconds": seconds}


def under_noise(task: Task, model: Any, rows: pd.DataFrame, explain: Explain) -> dict[str, Any]:
    """Return, per level of noise, how often the changed features are the same for the row with and without it."""
    before, figures = changed(task, rows, explain(rows)), {}
    for level in LEVELS:
        other = noisy(task, rows, level)
        still = model.predict(other) == 0
        after = changed(task, other[still], explain(other[still]))
        both, either = (before[still] & after).sum(axis=1), (before[still] | after).sum(axis=1)
        figures[f"same, {level:.1%}"] = (both == either).mean()
        figures[f"overlap, {level:.1%}"] = (both / np.maximum(either, 1)).mean()
    return figures


def changed(task: Task, rows: pd.DataFrame, found: pd.DataFrame) -> np.ndarray:
    """Return which features differ; none of a row without a counterfactual."""
    whole = found.where(found.notna(), rows).astype(task.table.dtypes)
    return changed_features(task.space.encode(rows), task.space.encode(whole), task.blocks)


def noisy(task: Task, rows: pd.DataFrame, level: float) -> pd.DataFrame:
    """Return rows with normal noise on every number, rounded as the column is and kept in the fitted range."""
    span = task.table.max() - task.table.min()
    drawn = np.random.default_rng([NOISE, round(1000 * level)]).normal(size=rows.shape) * level * span.to_numpy()
    moved = (rows + drawn).clip(task.table.min(), task.table.max(), axis=1)
    whole = [name for name in rows if (task.table[name] % 1 == 0).all()]
    return moved.assign(**{name: moved[name].round() for name in whole}).astype(rows.dtypes)


def show(table: pd.DataFrame) -> None:
    """Print a table as Markdown; distances and times also as multiples of the first line's."""
    for name in [name for name in ("distance", "seconds") if name in table]:
        table[f"{name} / default"] = table[name] / table[name].iloc[0]
    print("| " + " | ".join(table) + " |\n|---|" + "---:|" * (table.shape[1] - 1))
    for line in table.itertuples(index=False):
        print("| " + " | ".join(f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in line) + " |")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
