"""How often a person who is measured again, with a little noise, gets the same advice.

    python benchmarks/steady.py [--tables heloc,wine] [--models network,xgboost] [--rows 50] [--noise 0.005]

Three quarters of the rows train the model and are the map; of the others, those without the desired label are explained
as they are, and three times with noise: each number is moved by a normal share of its range, whole numbers stay whole.
The advice is the same where the same features change. Distances are sums of moves as shares of a feature's range.
*kept* asks again with `vary`: only what the first answer changed may change; where there is no such answer, anew.
"""

import argparse
import sys

import numpy as np
import pandas as pd

from common import CACHE, SEED, TARGET, names, nice_folder, table
from speed_models import Case, by_type, pipeline_of

AGAIN = 3
HEADS = ["table", "model", "method", "same features", "distance", "over the default's", "noise"]


def main():
    """Print a line per table, model and method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=names, default=["saheart", "heloc", "wine", "give_me_some_credit"])
    parser.add_argument("--models", type=names, default=["network", "forest", "xgboost"])
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--noise", type=float, default=0.005, help="standard deviation, as a share of the range")
    parser.add_argument("--most", type=int, default=10_000, help="rows that are known")
    options = parser.parse_args()
    sys.path.insert(0, str(nice_folder(CACHE)))
    lines = [line for name in options.tables for model in options.models for line in measured(name, model, options)]
    print(table(HEADS, lines))


def measured(name, model, options):
    """Return a line per method: how often the same features change, and the mean distance of the answers."""
    from onbmacf.bench.datasets import load_task

    task = load_task(name)
    order = np.random.default_rng(SEED).permutation(len(task.table))
    known = np.sort(order[: int(0.75 * len(order))][: options.most])
    train = task.table.iloc[known].reset_index(drop=True)
    case = Known(train, task.y[known], pipeline_of(train, model).fit(train, task.y[known]))
    others = task.table.iloc[np.sort(order[int(0.75 * len(order)) :])]
    rows = others[case.model.predict(others) != TARGET].iloc[: options.rows].reset_index(drop=True)
    frames = [rows, *(noisy(train, rows, options.noise, seed) for seed in range(AGAIN))]
    moved = np.mean([apart(task, rows, frame).sum(axis=1).mean() for frame in frames[1:]])
    answers = ours(case, frames) | {"NICE": nice(case, frames)}
    usual = None
    for method, found in answers.items():
        moves = [apart(task, *pair) for pair in zip(frames, found, strict=True)]
        same, far = sameness(moves), np.nanmean([each.sum(axis=1) for each in moves])
        usual = usual or far
        yield [name, model, method, f"{same:.2f}", f"{far:.3f}", f"{far / usual:.2f}", f"{moved:.3f}"]


class Known(Case):
    """The rows that a model and a map know."""

    def __init__(self, rows, y, model):
        own = {"rows": rows, "truth": y, "model": model}
        for name, value in own.items():
            object.__setattr__(self, name, value)

    table = property(lambda self: self.rows)
    y = property(lambda self: self.truth)


def noisy(known, rows, noise, seed):
    """Return rows with each number moved a little, within what is known."""
    rng, out = np.random.default_rng(seed), rows.copy()
    for name in by_type(known)[1]:
        low, high = known[name].min(), known[name].max()
        values = rows[name].to_numpy(float) + rng.normal(0, noise * (high - low), len(rows))
        if known[name].nunique() > 2:
            whole = (known[name] == known[name].round()).all()
            out[name] = np.clip(np.rint(values) if whole else values, low, high).astype(known[name].dtype)
    return out


def ours(case, frames):
    """Return this package's answers to each frame of rows, anew and kept; a row without one is missing everywhere."""
    from onbmacf import ONBMACF

    explainer = ONBMACF().fit(case.table, case.model)
    first, *others = [explained(explainer, rows) for rows in frames]
    changed = first.ne(frames[0]) & first.notna()
    advice = [list(case.table.columns[row]) or list(case.table.columns) for row in changed.to_numpy()]
    again = [explained(explainer, rows, vary=advice) for rows in frames[1:]]
    kept = [held.where(held.notna(), anew) for held, anew in zip(again, others, strict=True)]
    return {"default": [first, *others], "kept": [first, *kept]}


def explained(explainer, rows, **question):
    """Return a frame with the answer to each row."""
    batch = explainer.explain(rows, target=TARGET, min_probability=0, **question).batch
    return batch.values.set_axis(batch.factual).reindex(range(len(rows)))


def nice(case, frames):
    """Return NICE's answers, with its sparsity reward."""
    from nice import NICE

    levels = {name: {value: at for at, value in enumerate(pd.factorize(case.table[name])[1])} for name in case.table}
    text = by_type(case.table)[0]
    numbers, codes, rows_of = case.coded()
    explainer = NICE(
        X_train=numbers.copy(),
        y_train=case.y,
        predict_fn=lambda rows: case.model.predict_proba(rows_of(rows)),
        cat_feat=codes,
        optimization="sparsity",
    )
    found = []
    for rows in frames:
        coded = rows.assign(**{name: rows[name].map(levels[name]) for name in text}).to_numpy(float)
        still = case.model.predict(rows) != TARGET
        each = [rows_of(explainer.explain(row[np.newaxis], [TARGET])) for row in coded[still]]
        answers = pd.concat(each).set_axis(np.flatnonzero(still)).reindex(range(len(rows)))
        found.append(answers)
    return found


def apart(task, rows, others):
    """Return how far each feature moved, as a share of its range; NaN in every feature where there is no answer."""
    from onbmacf.bench.metrics import feature_differences

    moves = np.full((len(rows), len(task.blocks)), np.nan)
    known = others.notna().all(axis=1).to_numpy()
    dtypes = rows.dtypes.to_dict()
    Z = [task.space.encode(part[known].astype(dtypes)) for part in (rows, others)]
    moves[known] = feature_differences(*Z, task.blocks)
    return moves


def sameness(moves):
    """Return in which share of the cases the same features change as without noise; both have an answer."""
    first, same = moves[0], []
    for other in moves[1:]:
        both = ~np.isnan(first + other).any(axis=1)
        same.append(((first[both] > 1e-9) == (other[both] > 1e-9)).all(axis=1))
    return np.concatenate(same).mean()


if __name__ == "__main__":
    main()
