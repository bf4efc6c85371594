"""Time large maps, each in its own process; print one line of JSON.

    python speed_maps.py row ROWS COLUMNS      one row explained on a map of so many synthetic rows, and many together
    python speed_maps.py levels LEVELS ROWS    a fit with one category of so many levels
    python speed_maps.py wide COLUMNS ROWS     rows explained one by one on a table of so many columns
    python speed_maps.py columns ROWS FEW MANY    covers of two tables, and how many times as long the wider one takes

Tables are those of speed_cover.py; their model is the score that labels them, so the model costs next to nothing.
"""

import json
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from speed_cover import peak_mb

N_EXPLAINED = 30
N_WIDE = 8  # rows of a wide table


class Score:
    """The model of `synthetic` in speed_cover.py."""

    def __init__(self, n_rows, n_columns):
        rng = np.random.default_rng(0)
        self.rows = rng.random((n_rows, n_columns))
        self.weights = rng.normal(size=n_columns)
        self.median = np.median(self.score(self.rows))

    def score(self, rows):
        """Return the score that is compared with its median."""
        rows = np.asarray(rows)
        return (rows * self.weights).sum(axis=1) + 0.3 * np.sin(7 * rows[:, 0])

    def __call__(self, rows):
        """Return the labels of rows."""
        return (self.score(rows) > self.median).astype(int)


def stopped(work, *arguments):
    """Return what a call returns, and the processor time that it took."""
    start = time.process_time()
    found = work(*arguments)
    return found, time.process_time() - start


def time_row(n_rows, n_columns):
    """Fit a table, then explain rows one by one and together; milliseconds of processor time."""
    from onbmacf import ONBMACF

    model = Score(n_rows, n_columns)
    explainer, fit_seconds = stopped(ONBMACF().fit, model.rows, model)
    new = np.random.default_rng(5).random((N_EXPLAINED, n_columns))
    explainer.explain(new)  # indexes are made
    alone = [1000 * stopped(explainer.explain, new[[line]])[1] for line in range(N_EXPLAINED)]
    together = 1000 * stopped(explainer.explain, new)[1] / N_EXPLAINED
    return {
        "balls": len(explainer.cover_),
        "fit_seconds": fit_seconds,
        "one_row_ms": float(np.median(alone)),
        "worst_row_ms": max(alone),
        "together_ms": together,
        "peak_mb": peak_mb(),
    }


def time_levels(n_levels, n_rows):
    """Fit a table with two numbers and one category of many levels; seconds of processor time."""
    import pandas as pd

    from onbmacf import ONBMACF

    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((n_rows, 2)), columns=["a", "b"])
    table["c"] = [f"level {level}" for level in rng.permutation(np.arange(n_rows) % n_levels)]
    explainer, fit_seconds = stopped(ONBMACF().fit, table, lambda rows: (rows["a"] + rows["b"] > 1).astype(int))
    return {"fit_seconds": fit_seconds, "explain_seconds": stopped(explainer.explain, table.head(1))[1]}


def time_wide(n_columns, n_rows):
    """Explain rows of a wide table one by one; milliseconds of processor time."""
    from onbmacf import ONBMACF

    model = Score(n_rows, n_columns)
    explainer, fit_seconds = stopped(ONBMACF().fit, model.rows, model)
    explainer.explain(model.rows[:1])
    alone = [1000 * stopped(explainer.explain, model.rows[[line]])[1] for line in range(1, 1 + N_WIDE)]
    return {"fit_seconds": fit_seconds, "one_row_ms": float(np.median(alone)), "worst_row_ms": max(alone)}


def time_columns(n_rows, few, many):
    """Cover two tables, each in its own process; the ratio is of processor time."""
    script = str(Path(__file__).with_name("speed_cover.py"))
    commands = [[sys.executable, script, "cover", str(n_rows), str(columns), "fast"] for columns in (few, many)]
    runs = [json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout) for command in commands]
    return {
        f"x {few}": runs[0],
        f"x {many}": runs[1],
        "ratio": runs[1]["processor_seconds"] / runs[0]["processor_seconds"],
    }


WHAT = {"row": time_row, "levels": time_levels, "wide": time_wide, "columns": time_columns}


def main():
    """Measure what the arguments ask for."""
    warnings.simplefilter("ignore")
    what, *sizes = sys.argv[1:]
    print(json.dumps(WHAT[what](*map(int, sizes))))


if __name__ == "__main__":
    main()
