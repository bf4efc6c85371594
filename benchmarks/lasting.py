"""What makes answers last: models trained again, and rows measured again, beside NICE.

    python benchmarks/lasting.py [--rows 100] [--cache FOLDER] [--tables adult,heloc] [--models network,forest,boosting]
    python benchmarks/lasting.py heloc [--rows 200] [--noisy-rows 100] [--models "xgboost 100x4,network 32-16"]
                                       [--data-dir data]

Eight tables with three models: the first rows that a model refuses are explained with several values of
`min_probability`, the immutable features held, and by NICE, which may change all of them. Every answer is shown to five
models that no search has seen: the comparison's networks trained again on other rows, or forests and boosted trees
trained on bootstrap samples of 90 % of the rows. Distances and shares are means over the rows that all of them explain.

heloc, with xgboost (100 trees of depth 4) and a 32-16 network: rejected rows are explained in several ways, with
committees too, and the counterfactuals are shown to models that no search has seen: ten trained on other 90 % of the
rows, and ten on bootstrap samples. Then the rows get noise, are explained again, and the sets of changed features are
compared; *advice kept* may change only what the answer without noise changed, and asks anew where that gives none.
Times are those of the processor.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
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

from dial import MODELS, SEED, Pair, pair_of
from onbmacf import ONBMACF, committee
from onbmacf.bench import metrics
from onbmacf.bench.datasets import DESCRIPTIONS, load_task
from onbmacf.bench.methods.nice import NICE
from onbmacf.bench.network import retrained_networks
from onbmacf.bench.protocol import EstimatorModel, Model, Task

LEAST = (0.0, 0.55, 0.6, 0.65, 0.7)
RETRAININGS = 5
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


def main() -> None:
    """Measure the eight tables, or heloc."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("tables", "heloc"), default="tables")
    parser.add_argument("--rows", type=int, help="per model (default: 100 of each table, 200 of heloc)")
    parser.add_argument("--noisy-rows", type=int, default=100, help="of heloc; 0 for none")
    parser.add_argument("--tables", default=",".join(DESCRIPTIONS))
    parser.add_argument("--models", help="by name (default: all)")
    parser.add_argument("--cache", type=Path, help="trained models and NICE's answers")
    parser.add_argument("--data-dir", type=Path, help="where heloc is")
    options = parser.parse_args()
    if options.what == "tables":
        models = (options.models or ",".join(MODELS)).split(",")
        return report_tables(options.tables.split(","), models, options.rows or 100, options.cache)
    warnings.filterwarnings("ignore")
    task = load_task("heloc", options.data_dir)
    print(f"Python {sys.version.split()[0]}, {', '.join(f'{name} {version(name)}' for name in LIBRARIES)}", flush=True)
    for name in (options.models or ",".join(ESTIMATORS)).split(","):
        report_heloc(name, task, options.rows or 200, options.noisy_rows)
    return None


def report_tables(tables: list[str], models: list[str], n_rows: int, cache: Path | None) -> None:
    """Measure all pairs, print each as it is done, and the summary."""
    parts = {}
    for table in tables:
        for name in models:
            parts[table, name] = measured(pair_of(table, name, n_rows, cache), cache)
            print(table, name, parts[table, name].round(3).to_string(), sep="\n", flush=True)
    lines = pd.concat(parts, names=["table", "model", "answer"])
    for figure in ("holds", "l1"):
        wide = lines.reset_index().pivot_table(figure, ["table", "model"], "answer")
        print(figure, wide.round(3).to_string(), sep="\n")
    print(compared(lines).round(3).to_string())


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
    found = {"NICE": [None if points is None else np.atleast_2d(points)[0] for points in pair.nice]}
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
    nice = lines.xs("NICE", level="answer").reindex(lines.index.droplevel("answer")).to_numpy()
    lasts = lines["holds"].to_numpy() >= nice[:, 1] - 1e-9  # equal shares may differ in their last bit
    near = lines["l1"].to_numpy() <= nice[:, 0] + 1e-9
    marked = lines.assign(lasts=lasts, near=near, both=lasts & near, ratio=lines["l1"].to_numpy() / nice[:, 0])
    means = marked.groupby(level="answer")[["l1", "ratio", "holds", "answered"]].mean()
    return means.join(marked.groupby(level="answer")[["lasts", "near", "both"]].sum())


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


def report_heloc(name: str, task: Task, n_rows: int, n_noisy: int) -> None:
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
    again = {way: lambda rows, _, explain=explain: explain(rows) for way, explain in ways.items()}
    for way in ("min_probability=0", "min_probability=0.6"):
        ways[f"{way}, advice kept"], again[f"{way}, advice kept"] = ways[way], keeping(ways[way])
    noise = {way: under_noise(task, model, rows.head(n_noisy), ways[way], again[way]) for way in ways}
    show(pd.DataFrame([{"method": way, **figures} for way, figures in noise.items()]))


def explainers(task: Task, model: Any, members: tuple[Any, ...]) -> dict[str, Explain]:
    """Return the compared ways to explain rows."""
    plain = ONBMACF().fit(task.table, model, schema=task.schema)
    agreed = plain.with_options(committee=members[:SIZE])
    larger = plain.with_options(committee=members)
    nice = NICE().fit(task, Raw(task, model), 0)
    return {
        "min_probability=0": best(plain, min_probability=0),
        "the same, plausibility=0": best(plain.with_options(plausibility=0), min_probability=0),
        "min_probability=0.6": best(plain, min_probability=0.6),
        "agreement=0.8": best(agreed.with_options(agreement=0.8)),
        "agreement=1": best(agreed.with_options(agreement=1)),
        f"agreement=1, {LARGER} members": best(larger.with_options(agreement=1)),
        "agreement=1, plausibility=0": best(agreed.with_options(agreement=1, plausibility=0)),
        "NICE": lambda rows: task.space.decode(np.stack(nice.explain(task.space.encode(rows)))).set_axis(rows.index),
    }


def best(explainer: ONBMACF, **asked: Any) -> Explain:
    """Return a function from rows to their first counterfactuals."""

    def explain(rows: pd.DataFrame, **more: Any) -> pd.DataFrame:
        batch = explainer.explain(rows, target=1, **asked, **more).batch
        return batch.values.set_axis(rows.index[batch.factual]).reindex(rows.index)

    return explain


def keeping(explain: Callable[..., pd.DataFrame]) -> Callable[[pd.DataFrame, np.ndarray], pd.DataFrame]:
    """Return a function from rows, and which features their first answers changed, to answers that change these."""

    def explain_again(rows: pd.DataFrame, advice: np.ndarray) -> pd.DataFrame:
        held = explain(rows, vary=[list(rows.columns[features]) or list(rows.columns) for features in advice])
        return held.where(held.notna(), explain(rows))

    return explain_again


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
    size = {"distance": moved.sum(axis=1).mean(), "changes": (moved > metrics.CHANGED).sum(axis=1).mean()}
    return {"found": len(found), **size, **shares, "seconds": seconds}


def under_noise(
    task: Task,
    model: Any,
    rows: pd.DataFrame,
    explain: Explain,
    again: Callable[[pd.DataFrame, np.ndarray], pd.DataFrame],
) -> dict[str, Any]:
    """Return, per level of noise, how often the same features change with and without it, and how far with it."""
    before, figures = changed(task, rows, explain(rows)), {}
    for level in LEVELS:
        other = noisy(task, rows, level)
        still = model.predict(other) == 0
        found = again(other[still], before[still])
        after = changed(task, other[still], found)
        both, either = (before[still] & after).sum(axis=1), (before[still] | after).sum(axis=1)
        figures[f"same, {level:.1%}"] = (both == either).mean()
        figures[f"overlap, {level:.1%}"] = (both / np.maximum(either, 1)).mean()
        known = found.dropna().astype(task.table.dtypes)
        moved = np.abs(task.space.encode(known) - task.space.encode(other.loc[known.index]))
        figures[f"distance, {level:.1%}"] = moved.sum(axis=1).mean()
    return figures


def changed(task: Task, rows: pd.DataFrame, found: pd.DataFrame) -> np.ndarray:
    """Return which features differ; none of a row without a counterfactual."""
    whole = found.where(found.notna(), rows).astype(task.table.dtypes)
    return metrics.changed_features(task.space.encode(rows), task.space.encode(whole), task.blocks)


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
