"""Measure one table with one pipeline, one row per call, in a process of its own; print one line of JSON.

    python speed_pair.py TABLE MODEL CACHE METHOD=ROWS ...

The methods take turns row by row, so that whatever else the machine does meets all of them. Preparing a method and its
first call are not measured.
"""

import contextlib
import gc
import io
import json
import sys
import time
import warnings

import numpy as np

from speed_machine import installed
from speed_pipelines import TARGET, Counted, load_case
from speed_rivals import METHODS, PACKAGES


class Run:
    """A prepared method and what each of its calls took."""

    def __init__(self, name, case, rows, **options):
        self.name, self.case, self.rows = name, case, rows
        self.model = Counted(case.pipeline)
        self.explain = METHODS[name](case, self.model, **options)
        self.found, self.spent = [], []

    def call(self, row):
        """Explain one row and note calls, rows asked, rows handed over, and milliseconds of processor and wall."""
        self.model.reset()
        wall, cpu = time.perf_counter(), time.process_time()
        found = self.explain(row)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        asked = getattr(self.explain, "questions", self.model.n_rows)
        return found, (self.model.n_calls, asked, self.model.n_rows, 1000 * cpu, 1000 * wall)

    def result(self):
        """Return medians of the cost, and the quality of the answers."""
        names = ("calls", "rows_asked", "rows_given", "cpu_ms", "wall_ms")
        middle = dict(zip(names, np.median(self.spent, axis=0).tolist(), strict=True))
        worst = {"calls_worst": int(np.max(self.spent, axis=0)[0]), "rows": len(self.spent)}
        return middle | worst | quality(self.case, self.rows, self.found) | {"version": installed(PACKAGES[self.name])}


def quality(case, rows, found):
    """Return the share of rows with a valid answer, and the means of distance, changes and plausibility of these.

    Distances are those of the benchmark: the sum of moves as shares of a feature's range, another level counting 1.
    Plausibility is the share of the desired label among the 5 nearest rows of the table.
    """
    from onbmacf.bench.metrics import feature_differences, l0, l1

    kept = [(row, frame) for row, frame in zip(rows, found, strict=True) if frame is not None]
    kept = [(row, frame) for row, frame in kept if case.pipeline.predict(frame)[0] == TARGET]
    if not kept:
        return {"success": 0.0, "distance": None, "changes": None, "plausibility": None}
    points = np.vstack([encoded(case.task, frame) for _, frame in kept])
    moved = feature_differences(case.task.Z[[row for row, _ in kept]], points, case.task.blocks)
    near = case.neighbour_shares(points)
    means = {"distance": l1(moved), "changes": l0(moved), "plausibility": near}
    return {"success": len(kept) / len(rows), **{name: float(values.mean()) for name, values in means.items()}}


def encoded(task, frame):
    """Return a row in the benchmark's units, whatever dtypes a method gave its columns."""
    return task.space.encode(frame.astype(task.table.dtypes.to_dict(), errors="ignore"))


def measure(table, model, cache, wanted):
    """Return the figures of every method on one pair, or why there are none."""
    case = load_case(table, model, cache)
    factuals = case.factuals(max(wanted.values()))
    runs, results = [], {}
    for name, most in wanted.items():
        try:
            runs.append(Run(name, case, factuals[:most]))
            runs[-1].call(factuals[0])
        except Exception as error:
            results[name] = {"failed": f"{type(error).__name__}: {error}"}
            runs = [run for run in runs if run.name != name]
    gc.collect()
    gc.freeze()
    for place, row in enumerate(factuals):
        for run in runs:
            if place < len(run.rows):
                found, spent = run.call(row)
                run.found.append(found)
                run.spent.append(spent)
    return {name: results.get(name) or next(r for r in runs if r.name == name).result() for name in wanted}


def main():
    """Measure what the arguments ask for, keeping the output of the methods away from the result."""
    table, model, cache, *wanted = sys.argv[1:]
    rows = {name: int(most) for name, most in (part.split("=") for part in wanted)}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        answer = measure(table, model, cache, rows)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
