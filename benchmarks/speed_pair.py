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

QUALITIES = ("distance", "changes", "plausibility")


class Run:
    """A prepared method and what each of its calls took."""

    def __init__(self, name, case, rows, **options):
        self.name, self.case, self.rows = name, case, rows
        self.model = Counted(case.pipeline)
        self.explain = METHODS[name](case, self.model, **options)
        self.found, self.spent, self.is_read = [], [], False

    def call(self, row):
        """Explain one row and note calls, rows asked, rows handed over, and milliseconds of processor and wall.

        Of a pipeline that is not wrapped, calls and rows are those that the answer says.
        """
        self.model.reset()
        wall, cpu = time.perf_counter(), time.process_time()
        found = self.explain(row)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        told = getattr(self.explain, "answers", None)
        counts = (self.model.n_calls, self.model.n_rows, self.model.n_rows)
        if told is not None:
            counts = (told.n_calls, told.n_questions, told.n_model_rows)
            self.is_read = told.n_copy_questions > 0
        return found, (*counts, 1000 * cpu, 1000 * wall)

    def result(self):
        """Return medians of the cost, and the quality of the answers."""
        names = ("calls", "rows_asked", "rows_given", "cpu_ms", "wall_ms")
        middle = dict(zip(names, np.median(self.spent, axis=0).tolist(), strict=True))
        worst = {"calls_worst": int(np.max(self.spent, axis=0)[0]), "rows": len(self.spent)}
        said = {"version": installed(PACKAGES[self.name]), "is_read": self.is_read}
        return middle | worst | quality(self.case, self.rows, self.found) | said


def quality(case, rows, found):
    """Return the share of rows with a valid answer, the means over these, and each row's distance (or None).

    Distances are those of the benchmark: the sum of moves as shares of a feature's range, another level counting 1.
    Plausibility is the share of the desired label among the 5 nearest rows of the table.
    """
    from onbmacf.bench.metrics import feature_differences, l0, l1

    valid = [frame is not None and case.pipeline.predict(frame)[0] == TARGET for frame in found]
    if not any(valid):
        return {"success": 0.0, **dict.fromkeys(QUALITIES), "distances": [None] * len(found)}
    points = np.vstack([encoded(case.task, frame) for frame, good in zip(found, valid, strict=True) if good])
    moved = feature_differences(case.task.Z[rows[valid]], points, case.task.blocks)
    values = dict(zip(QUALITIES, (l1(moved), l0(moved), case.neighbour_shares(points)), strict=True))
    each = iter(values["distance"].tolist())
    means = {name: float(numbers.mean()) for name, numbers in values.items()}
    return {"success": float(np.mean(valid)), **means, "distances": [next(each) if good else None for good in valid]}


def encoded(task, frame):
    """Return a row in the benchmark's units, whatever dtypes a method gave its columns."""
    return task.space.encode(frame.astype(task.table.dtypes.to_dict(), errors="ignore"))


def measure(table, model, cache, wanted):
    """Return the figures of every method on one pair, or why there are none."""
    case = load_case(table, model, cache)
    factuals = case.factuals(max(wanted.values()))
    prepared = {name: attempt(name, case, factuals[:most]) for name, most in wanted.items()}
    runs = [run for run in prepared.values() if isinstance(run, Run)]
    take_turns(runs, factuals)
    methods = {name: run.result() if isinstance(run, Run) else run for name, run in prepared.items()}
    return {"labels": case.digest, "methods": methods}


def attempt(name, case, rows):
    """Return a prepared method that has explained its first row, or what it raised."""
    try:
        run = Run(name, case, rows)
        run.call(rows[0])
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}
    return run


def take_turns(runs, factuals):
    """Let each method explain each of its rows; what lies in memory already is kept out of the garbage collection."""
    gc.collect()
    gc.freeze()
    for place, row in enumerate(factuals):
        for run in runs:
            if place < len(run.rows):
                found, spent = run.call(row)
                run.found.append(found)
                run.spent.append(spent)


def printed(function, *arguments):
    """Print what a function returns as one line of JSON, keeping all other output away from it."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        answer = function(*arguments)
    print(json.dumps(answer))


if __name__ == "__main__":
    table, model, cache, *parts = sys.argv[1:]
    printed(measure, table, model, cache, {name: int(most) for name, most in (part.split("=") for part in parts)})
