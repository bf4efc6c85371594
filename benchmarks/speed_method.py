"""Time one method on one prepared problem, in the environment that runs this file; print one line of JSON.

    python speed_method.py ours|ours_read|nice FOLDER network|forest MOST_ROWS MOST_SECONDS

Preparing the method is not timed, nor is the first row, which warms it up. NICE explains row by row, because it has no
batch mode.
"""

import contextlib
import io
import json
import sys
import time
import warnings
from functools import partial
from importlib.metadata import version

import numpy as np

from speed_model import FileModel

TARGET = 1  # the label to reach


class Problem:
    """The input of all methods: the rows as numbers (categories as codes), their true labels, the rows to explain."""

    def __init__(self, folder, kind):
        with np.load(f"{folder}/{kind}.rows.npz") as arrays:
            self.numbers, self.y, self.factuals = arrays["numbers"], arrays["y"], arrays["factuals"]
            self.kinds, self.n_values = arrays["kinds"].tolist(), arrays["n_values"].tolist()
        self.names = [f"x{place}" for place in range(self.numbers.shape[1])]
        self.categories = [place for place, kind in enumerate(self.kinds) if kind in ("categorical", "binary")]


def ours(problem, model, **options):
    """Return this package's explain function: all rows in one call, arrays as with NICE."""
    from onbmacf import ONBMACF, Feature, Schema

    levels = [None if k in ("continuous", "integer") else tuple(range(int(n))) for k, n in spelled(problem)]
    schema = Schema(
        tuple(Feature(n, k, levels=v) for n, k, v in zip(problem.names, problem.kinds, levels, strict=True))
    )
    explainer = ONBMACF(**options).fit(problem.numbers, model, schema=schema)

    def explain(rows):
        found = explainer.explain(problem.numbers[rows], target=TARGET)
        explain.is_read = found.n_copy_questions > 0
        values = np.full((len(rows), len(problem.names)), np.nan)
        values[found.batch.factual] = found.batch.values.to_numpy(dtype=np.float64)
        return values

    return explain


def spelled(problem):
    """Return kind and number of values of each feature."""
    return zip(problem.kinds, problem.n_values, strict=True)


def nice(problem, model):
    """Return the explain function of NICE, with its sparsity reward."""
    from nice import NICE

    explainer = NICE(
        X_train=problem.numbers.copy(),
        y_train=problem.y,
        predict_fn=model.predict_proba,
        cat_feat=problem.categories,
        optimization="sparsity",
    )
    return lambda rows: np.vstack([explainer.explain(problem.numbers[[row]], [TARGET]) for row in rows])


METHODS = {"ours": partial(ours, read_model=False), "ours_read": ours, "nice": nice}
PACKAGES = {"ours": "onbmacf", "ours_read": "onbmacf", "nice": "NICEx"}
IN_ONE_CALL = ("ours", "ours_read")


def stopped(function, *arguments):
    """Return the result of a function, and how many seconds it took."""
    start = time.perf_counter()
    answer = function(*arguments)
    return answer, time.perf_counter() - start


def measure(name, folder, kind, most_rows, most_seconds):
    """Return the number of explained rows, the seconds, and how much of them the model took."""
    problem, model = Problem(folder, kind), FileModel(folder, kind)
    explain, prepared = stopped(METHODS[name], problem, model)
    factuals = problem.factuals[:most_rows]
    batches = [factuals] if name in IN_ONE_CALL else [factuals[[place]] for place in range(len(factuals))]
    explain(factuals[:1])
    model.n_calls = model.n_rows = model.seconds = 0
    found, start, cpu = [], time.perf_counter(), time.process_time()
    for batch in batches:
        found.append(explain(batch))
        seconds = time.perf_counter() - start
        if seconds > most_seconds:
            break
    cost = {"calls": model.n_calls, "model_rows": model.n_rows, "model_seconds": model.seconds}
    cost |= {"cpu_seconds": time.process_time() - cpu, "version": version(PACKAGES[name])}
    cost["is_read"] = getattr(explain, "is_read", False)
    return {"fit_seconds": prepared, "seconds": seconds, **cost, **judged(problem, model, np.vstack(found))}


def judged(problem, model, found):
    """Return how many rows were explained, how many reached the label, and how many features differ."""
    rows = problem.numbers[problem.factuals[: len(found)]]
    there = ~np.isnan(found).any(axis=1)
    reached = model.predict(found[there]) == TARGET
    changes = (np.abs(found[there] - rows[there]) > 1e-9).sum(axis=1)
    return {
        "rows": len(found),
        "reached": int(reached.sum()),
        "mean_changes": float(changes.mean()) if there.any() else None,
    }


def main():
    """Measure what the arguments ask for, keeping the output of the methods away from the result."""
    name, folder, kind, most_rows, most_seconds = sys.argv[1:]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        answer = measure(name, folder, kind, int(most_rows), float(most_seconds))
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
