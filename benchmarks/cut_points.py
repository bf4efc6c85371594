"""Whether a model trained again without the thresholds that no answer crosses is as accurate.

    python benchmarks/cut_points.py [--quick] [--json FILE] [--write docs/questions/which-rules-fire.md]

Four tables, a tree and a forest each, five folds twice. In each fold: train, explain 200 rows of the training part, and
count with `audit.cut_points` which thresholds they cross. Then train a new model of the same kind on the same rows with
each number replaced by the bin between the thresholds that were crossed, so that all others are merged, and compare
both on the rows left out. Beside it the same with as many thresholds of each feature drawn at random from the model's
own: what is lost with these is the price of coarser numbers, whichever they are. A model is trained again, not edited:
a threshold moved within a tree leaves behind leaves that were made of other rows.
"""

import argparse
import warnings

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from common import QUICK, SEED, about, add_output, machine, save
from common import table as markdown
from onbmacf import ONBMACF, audit
from onbmacf.bench.datasets import load_task

TABLES = ("saheart", "titanic", "wine", "heloc")
MODELS = {
    "tree": lambda: DecisionTreeClassifier(min_samples_leaf=5, random_state=SEED),
    "forest": lambda: RandomForestClassifier(50, min_samples_leaf=5, random_state=SEED),
}
MOST_ROWS, N_EXPLAINED, FOLDS, REPEATS = 2000, 200, 5, 2


def trained(kind, rows, labels, levels):
    """Return a model of a kind behind one column per level."""
    steps = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), levels), remainder="passthrough")
    return make_pipeline(steps, MODELS[kind]()).fit(rows, labels)


def binned(rows, thresholds):
    """Return rows with each number replaced by its bin; without a threshold, a feature is one bin."""
    bins = {name: np.searchsorted(np.sort(cuts), rows[name], side="left") for name, cuts in thresholds.items()}
    return rows.assign(**bins)


def thresholds_of(points, numbers):
    """Return the thresholds of each numeric feature in lines of `cut_points`."""
    return {name: points.loc[points["feature"] == name, "threshold"].to_numpy() for name in numbers}


def drawn(every, kept, rng):
    """Return as many thresholds of each feature as are kept, drawn from all."""
    return {name: rng.choice(every[name], len(kept[name]), replace=False) for name in every}


def of_fold(kind, rows, y, schema, fold, n_explained, rng):
    """Return a fold's thresholds, those crossed, and the accuracy of the three models on the rows left out."""
    train, test = fold
    numbers = [feature.name for feature in schema.features if feature.is_numeric]
    levels = [feature.name for feature in schema.features if not feature.is_numeric]
    model = trained(kind, rows.iloc[train], y[train], levels)
    explainer = ONBMACF().fit(rows.iloc[train], model, schema=schema)
    some = rows.iloc[rng.choice(train, min(n_explained, len(train)), replace=False)]
    points = audit.cut_points(explainer.explain(some, immutable=[]), explainer)  # any feature may be crossed
    every, kept = (thresholds_of(lines, numbers) for lines in (points, points[~points["never_used"]]))
    found = [model.score(rows.iloc[test], y[test])]
    for cuts in (kept, drawn(every, kept, rng)):
        coarse = binned(rows, cuts)
        found.append(trained(kind, coarse.iloc[train], y[train], levels).score(coarse.iloc[test], y[test]))
    return [sum(map(len, every.values())), sum(map(len, kept.values())), *found]


def measured(name, kind, n_explained=N_EXPLAINED, most_rows=MOST_ROWS, repeats=REPEATS):
    """Return the means over the folds of one table and model, and how the accuracies differ, fold by fold."""
    task, rng = load_task(name), np.random.default_rng(SEED)
    chosen = np.sort(rng.choice(len(task.table), min(most_rows, len(task.table)), replace=False))
    rows, y = task.table.iloc[chosen].reset_index(drop=True), task.y[chosen]
    folds = RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=repeats, random_state=SEED).split(rows, y)
    figures = np.array([of_fold(kind, rows, y, task.schema, fold, n_explained, rng) for fold in folds])
    n_every, n_kept, before, merged, random = map(float, figures.mean(axis=0))
    change = figures[:, 3] - figures[:, 2]
    return {
        "table": name,
        "model": kind,
        "rows": len(y),
        "thresholds": round(n_every),
        "crossed": n_kept / n_every,
        "majority": float(max(y.mean(), 1 - y.mean())),
        "before": before,
        "merged": merged,
        "drawn": random,
        "change": float(change.mean()),
        "spread": float(change.std(ddof=1)),
    }


def line_of(one):
    """Return a line of the table."""
    figures = [f"{one[name]:.3f}" for name in ("majority", "before", "merged", "drawn")]
    change = f"{one['change']:+.3f} ({one['spread']:.3f})"
    return [one["table"], one["model"], f"{one['thresholds']:,}", f"{one['crossed']:.0%}", *figures, change]


def main():
    """Measure all, print the table, and write it where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_output(parser)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sizes = {"n_explained": 20, "most_rows": 300, "repeats": 1} if options.quick else {}
    lines = []
    for name in TABLES:
        for kind in MODELS:
            lines.append(measured(name, kind, **sizes))
            print(lines[-1], flush=True)
    heads = ["table", "model", "thresholds", "crossed", "majority", "accuracy", "merged", "at random", "change (sd)"]
    facts = machine()
    text = f"{QUICK if options.quick else ''}{markdown(heads, [line_of(one) for one in lines])}\n{about(facts)}\n"
    print(text)
    save(options, {"machine": facts, "seed": SEED, "lines": lines}, {"cut_points": text})


if __name__ == "__main__":
    main()
