"""What the package answers, in one file: written before a change that must not alter answers, and compared after it.

    python benchmarks/unchanged.py before.json [--rows 4] [--tables saheart,titanic] [--models tree,forest]
    python benchmarks/unchanged.py after.json --compare before.json

The eight tables, five models each (trained here, as pipelines of scikit-learn), twelve ways to ask. Of every call the
whole `to_json()`, the statuses, and what the model was asked. Ends with 1 and names what differs.
"""

import argparse
import hashlib
import json
import os
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from common import names
from onbmacf import ONBMACF, Rule, Rules
from onbmacf.bench.datasets import DESCRIPTIONS, load_task
from optimum_problems import KINDS, models

MOST_ROWS = 3000  # of a table, to train and to fit
LIMITED = {"max_model_rows": 200, "max_model_calls": 4, "read_model": False}


def ways(table, schema):
    """Return options of the explainer and of `explain`, by name."""
    number = next(feature.name for feature in schema.features if feature.is_numeric)
    rules = Rules({number: Rule(direction="up")}, max_changes=3)
    return {
        "default": ({}, {}),
        "nearest": ({"plausibility": 0}, {"n": 3, "min_probability": 0}),
        "interior": ({"plausibility": 1, "read_model": False}, {}),
        "five": ({"n_counterfactuals": 5}, {}),
        "front": ({}, {"front": True}),
        "any": ({"read_model": False}, {"target": None, "min_probability": 0.6}),
        "ruled": ({}, {"rules": rules, "immutable": [table.columns[1]]}),
        "ranges": ({"effort": "half"}, {"ranges": True}),
        "paper": ({"strategy": "paper", "n_counterfactuals": 2}, {}),
        "limited": (LIMITED, {}),
        "private": ({"private": 3, "metric": "euclidean"}, {}),
        "labels": ({}, {}),  # the model is handed over as a function
    }


def answered(name, kinds, n_rows, data_dir):
    """Yield a name for each call, and what came back."""
    task = load_task(name, data_dir)
    table, schema = task.table.iloc[:MOST_ROWS], task.schema
    text = [feature.name for feature in schema.features if not feature.is_numeric]
    numbers = [column for column in table.columns if column not in text]
    for kind in kinds:
        steps = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), text), (StandardScaler(), numbers))
        model = make_pipeline(steps, models()[kind]).fit(table, task.y[: len(table)])
        said = model.predict(table)
        rows, target = table[said != said.max()].head(n_rows), said.max()
        for way, (options, asked) in ways(table, schema).items():
            explainer = ONBMACF(**options).fit(table, model.predict if way == "labels" else model, schema=schema)
            answers = explainer.explain(rows, **{"target": target, **asked})
            yield f"{name} {kind} {way}", record(answers)


def record(answers):
    """Return what is compared of one call."""
    text = answers.to_json()
    return {
        "statuses": [str(status) for status in answers.statuses],
        "counts": [answers.n_questions, answers.n_calls, answers.n_model_rows, answers.n_copy_questions],
        "digest": hashlib.sha256(text.encode()).hexdigest(),
    }


def main(arguments=None):
    """Ask, write, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--compare", type=Path, help="a file that was written before")
    parser.add_argument("--rows", type=int, default=4)
    parser.add_argument("--tables", type=names, default=list(DESCRIPTIONS))
    parser.add_argument("--models", type=names, default=list(KINDS))
    parser.add_argument("--data-dir", type=Path)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    found = {}
    for name in options.tables:
        found.update(answered(name, options.models, options.rows, options.data_dir))
        print(f"{name}: {len(found)} calls", flush=True)
    options.file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if options.compare is None:
        return 0
    before = json.loads(options.compare.read_text(encoding="utf-8"))
    other = [key for key, value in found.items() if before.get(key) != value]
    print(f"{len(other)} of {len(found)} differ", *other, sep="\n  ")
    return 1 if other else 0


if __name__ == "__main__":
    sys.exit(main())
