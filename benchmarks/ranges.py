"""Draw fresh points in every printed range and every box, and ask the model about them.

    python benchmarks/ranges.py --rows 50 --points 50 --out ranges.json

Eight tables at the paper's sizes, three models each: the benchmark's network, a random forest of 100 trees, boosted
trees. Half of the points in a range are readable values, half have all the digits of a float64. Without the tables
nothing is drawn; ONBMACF_DATA or --data-dir says where they are.
"""

import argparse
import json
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

MODELS = ("network", "forest", "boosting")


def main() -> None:
    """Print one line per table and model, and a last one for all."""
    warnings.simplefilter("ignore")
    arguments = _arguments()
    figures = []
    for name in arguments.tables.split(","):
        for kind in arguments.models.split(","):
            figures.append(measured(name, kind, arguments))
            print(figures[-1], flush=True)
    frame = pd.DataFrame(figures)
    print(as_page(frame))
    if arguments.out:
        arguments.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def _arguments() -> argparse.Namespace:
    from onbmacf.bench.datasets import DESCRIPTIONS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("ONBMACF_DATA"))
    parser.add_argument("--tables", default=",".join(DESCRIPTIONS))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--points", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0, help="of the fresh points; the ranges have no seed")
    parser.add_argument("--out", type=Path, help="JSON file of the figures")
    return parser.parse_args()


def measured(name: str, kind: str, arguments: argparse.Namespace) -> dict:
    """Return the figures of one table and model."""
    from onbmacf import ONBMACF
    from onbmacf.bench.datasets import load_task

    task = load_task(name, arguments.data_dir and Path(arguments.data_dir), paper_sizes=True)
    model = model_of(kind, task)
    explainer = ONBMACF().fit(task.table, model, schema=task.schema)
    rows = task.table.sample(arguments.rows, random_state=1)
    plain = explainer.explain(rows, min_probability=0)
    start = time.process_time()
    answers = explainer.explain(rows, ranges=True, min_probability=0)
    seconds = time.process_time() - start
    random = np.random.default_rng(arguments.seed)
    found = [one for answer in answers for one in answer.counterfactuals]
    in_ranges = [
        drawn(explainer, one, {f: r}, arguments.points, random) for one in found for f, r in one.ranges.items()
    ]
    in_boxes = [drawn(explainer, one, one.box, arguments.points, random) for one in found if len(one.changed) > 1]
    own = [own for one in found for own in one.ranges.values()]
    return {
        "table": name,
        "model": kind,
        "counterfactuals": len(found),
        "ranges": len(own),
        "one value": sum(str(r).startswith("exactly") for r in own),
        "width": round(float(np.median(widths(explainer, own) or [np.nan])), 3),
        "points": sum(map(len, in_ranges)),
        "failed": failures(model, in_ranges),
        "boxes": len(in_boxes),
        "box points": sum(map(len, in_boxes)),
        "box failed": failures(model, in_boxes),
        "questions": (answers.n_questions - plain.n_questions) / max(1, len(found)),
        "seconds": round(seconds, 1),
    }


def model_of(kind: str, task):
    """Return a model of the table's own rows, trained on all of them (the network: on three quarters)."""
    if kind == "network":
        from onbmacf.bench.network import trained_network

        network = trained_network(task, 0)
        return lambda rows: network.label_of(task.space.encode(rows))
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    text = [name for name in task.table.columns if not pd.api.types.is_numeric_dtype(task.table[name].dtype)]
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    trees = {
        "forest": RandomForestClassifier(100, random_state=0),
        "boosting": HistGradientBoostingClassifier(random_state=0),
    }[kind]
    columns = make_column_transformer((one_hot, text), remainder="passthrough")
    return make_pipeline(columns, trees).fit(task.table, task.y).predict


def drawn(explainer, found, ranges, n: int, random) -> pd.DataFrame:
    """Return n rows with fresh values in some ranges, the other values as answered, and the label as a last column."""
    space = explainer.fitted_.space
    rows = pd.DataFrame([found.values.to_list()] * n, columns=found.values.index)
    rows = rows.astype(dict(zip(space.schema.names, space.form.dtypes, strict=True)))
    for name, own in ranges.items():
        at = space.schema.names.index(name)
        values = fresh(own, space.schema.features[at].kind, space.readable[at], n, random)
        rows[name] = pd.Series(values, dtype=object).astype(space.form.dtypes[at])
    return rows.assign(**{"the label": found.label})


def fresh(own, kind: str, decimals: int | None, n: int, random) -> list:
    """Return n values of a range, drawn at random."""
    if own.levels is not None:
        return [own.levels[at] for at in random.integers(len(own.levels), size=n)]
    low, high = float(own.low), float(own.high)
    if kind == "integer":
        return random.integers(int(low), int(high), size=n, endpoint=True).tolist()
    values = random.uniform(low, high, n)
    readable = np.clip(np.round(values, decimals), low, high)
    return np.where(np.arange(n) % 2, values, readable).tolist()


def failures(model, parts: list[pd.DataFrame]) -> int:
    """Return how many points do not have the label."""
    if not parts:
        return 0
    rows = pd.concat(parts, ignore_index=True)
    wanted = rows.pop("the label")
    return int((np.asarray(model(rows)) != wanted.to_numpy()).sum())


def widths(explainer, ranges) -> list[float]:
    """Return the width of each interval as a share of the feature's fitted range."""
    space, ends = explainer.fitted_.space, explainer.fitted_.ranges
    span = {name: max(high - low, 1e-300) for name, (low, high) in zip(space.schema.names, ends, strict=True)}
    return [float(own.high - own.low) / span[own.feature] for own in ranges if own.levels is None]


def as_page(frame: pd.DataFrame) -> str:
    """Return the figures as the table of the page."""
    from onbmacf._text.frames import as_markdown

    total = frame.sum(numeric_only=True).to_frame().T
    whole = pd.concat([frame, total.assign(table="all", model="", width=np.nan, questions=np.nan)], ignore_index=True)
    whole = whole.assign(questions=whole["questions"].round())
    counts = [name for name in whole.columns if name not in ("table", "model", "width", "questions", "seconds")]
    return as_markdown(whole.astype(dict.fromkeys(counts, int)))


if __name__ == "__main__":
    main()
