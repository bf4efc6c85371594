"""What an explanation costs beside the model: processor time of `explain`, less what its calls of the model take.

    python benchmarks/speed_own.py [--rows 40] [--batch 200] [--tables heart,mixed] [--profile LINES] [--json FILE]

heart ships with the package; mixed is drawn here, in the shape of German credit: 1,000 rows, 7 numbers, 13 categories.
The model costs next to nothing. Rows are explained one by one, then all in one call; each call is made three times and
the quickest counts, for other work on a machine only ever adds time. `--profile` also prints the functions in which one
row after the other spends most.
"""

import argparse
import cProfile
import json
import pstats
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from speed_machine import machine
from speed_pipelines import TARGET

SEED = 0
N_ROWS, N_NUMBERS, N_CATEGORIES = 1000, 7, 13
TURNS = 3  # the quickest of so many counts


class Cheap:
    """A model that costs next to nothing: a curved score of a few numbers and one level; it keeps what it was asked."""

    classes_ = np.array([0, 1])

    def __init__(self, table):
        self.numbers = list(table.select_dtypes("number").columns)[:4]
        self.text = next(name for name in table.columns if name not in table.select_dtypes("number").columns)
        self.level = table[self.text].iloc[0]
        own = table[self.numbers].to_numpy(dtype=np.float64)
        self.middle, self.width, self.asked = own.mean(axis=0), own.std(axis=0), []
        self.cut = float(np.quantile(self.scores(table), 0.7))

    def scores(self, rows):
        """Return one number per row."""
        own = (rows[self.numbers].to_numpy(dtype=np.float64) - self.middle) / self.width
        return np.tanh(own).sum(axis=1) + own[:, 0] * own[:, 1] / 4 + 0.5 * (rows[self.text] == self.level).to_numpy()

    def predict(self, rows):
        """Return the label of each row."""
        self.asked.append(rows)
        return (self.scores(rows) > self.cut).astype(np.intp)

    def seconds(self):
        """Return the processor time that the calls since the last time took; clocks beside each would cost more."""
        asked, self.asked = self.asked, []
        start = time.process_time()
        for rows in asked:
            (self.scores(rows) > self.cut).astype(np.intp)
        return time.process_time() - start


def heart():
    """Return the table that ships with the package."""
    from onbmacf.bench.datasets import load_task

    return load_task("saheart").table


def mixed():
    """Return a table of numbers and text in the shape of German credit."""
    rng = np.random.default_rng(SEED)
    numbers = np.column_stack([rng.integers(1, 60, N_ROWS), rng.gamma(2, 1500, N_ROWS).round()])
    numbers = np.column_stack([numbers, rng.integers(1, 5, (N_ROWS, N_NUMBERS - 2))]).astype(np.int64)
    table = pd.DataFrame(numbers, columns=[f"number{at}" for at in range(N_NUMBERS)])
    for at, n_levels in enumerate(rng.integers(2, 10, N_CATEGORIES)):
        table[f"level{at}"] = [f"A{at}{code}" for code in rng.integers(0, n_levels, N_ROWS)]
    return table


TABLES = {"heart": heart, "mixed": mixed}


def main():
    """Measure, print, and write the results."""
    options = parsed()
    warnings.simplefilter("ignore")
    results = {"machine": machine(), "tables": {}}
    for name in options.tables:
        results["tables"][name] = figures = measured(TABLES[name](), options)
        print(f"{name}: {shown(figures)}", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def parsed(arguments=None):
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=40, help="rows that are explained one by one")
    parser.add_argument("--batch", type=int, default=200, help="rows that are explained in one call")
    parser.add_argument("--tables", type=lambda text: text.split(","), default=list(TABLES))
    parser.add_argument("--profile", type=int, default=0, help="also print so many lines of a profile")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    return parser.parse_args(arguments)


def measured(table, options):
    """Return milliseconds beside the model, per row alone (median and worst) and per row of a batch."""
    from onbmacf import ONBMACF

    model = Cheap(table)
    explainer = ONBMACF().fit(table, model)
    open_rows = table[model.predict(table) != TARGET]
    alone = [open_rows.iloc[[at]] for at in range(min(options.rows, len(open_rows)))]
    explainer.explain(alone[0], target=TARGET)  # what is made at first use is not measured
    own, calls = zip(*(spent(explainer, row, model) for row in alone), strict=True)
    batch = open_rows.iloc[: options.batch]
    together, n_calls = spent(explainer, batch, model)
    if options.profile:
        profiled(explainer, alone, options.profile)
    return {
        "own_ms": float(np.median(own)),
        "own_ms_worst": float(max(own)),
        "calls": float(np.median(calls)),
        "rows": len(alone),
        "batch_own_ms_per_row": together / len(batch),
        "batch_calls": n_calls,
        "batch_rows": len(batch),
    }


def spent(explainer, rows, model):
    """Return milliseconds beside the model for one call of explain, and the calls of the model."""
    turns = []
    for _ in range(TURNS):
        model.asked.clear()
        start = time.process_time()
        explainer.explain(rows, target=TARGET)
        whole, n_calls = time.process_time() - start, len(model.asked)
        turns.append(1000 * (whole - model.seconds()))
    return min(turns), n_calls


def profiled(explainer, alone, n_lines):
    """Print the functions of this package that take most, with all rows one by one."""
    profile = cProfile.Profile()
    profile.enable()
    for row in alone:
        explainer.explain(row, target=TARGET)
    profile.disable()
    pstats.Stats(profile).sort_stats("tottime").print_stats(n_lines)


def shown(figures):
    """Return one line of text."""
    alone = f"{figures['own_ms']:.2f} ms beside the model for one row (worst {figures['own_ms_worst']:.2f})"
    batch = f"{figures['batch_own_ms_per_row']:.3f} ms per row of {figures['batch_rows']}"
    return f"{alone}, {figures['calls']:g} calls; {batch}, {figures['batch_calls']} calls"


if __name__ == "__main__":
    main()
