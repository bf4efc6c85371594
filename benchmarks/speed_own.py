"""What an explanation costs beside the model: processor time of `explain`, less what its calls of the model take.

    python benchmarks/speed_own.py [--quick] [--rows 40] [--batch 200] [--tables heart,mixed] [--profile LINES]
                                   [--json FILE] [--write docs/speed/README.md]
    python benchmarks/speed_own.py --first heart    (what a fresh process takes: one line of JSON)

heart ships with the package; mixed is drawn here, in the shape of German credit: 1,000 rows, 7 numbers, 13 categories.
The model costs next to nothing. Rows are explained one by one, then all in one call; each call is made three times and
the quickest counts, for other work on a machine only ever adds time. `--profile` also prints the functions in which one
row after the other spends most.

The first fit and the first answer of a process are measured in fresh ones, imports left out, beside later ones in the
same process; and so is the fit of 10,000 uniform rows of 10 numbers.
"""

import argparse
import cProfile
import json
import pstats
import subprocess
import sys
import time
import warnings

import numpy as np
import pandas as pd

from common import QUICK, SEED, TARGET, Smooth, add_output, machine, names, save
from common import table as markdown

N_ROWS, N_NUMBERS, N_CATEGORIES = 1000, 7, 13
TURNS = 3  # the quickest of so many counts
LARGE = (10_000, 10)  # rows and columns of the table that is only fitted
PROCESSES = 3  # fresh ones, of which the median counts


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
NAMES = {
    "heart": "heart, 462 x 9",
    "mixed": "mixed, 1,000 x 20",
    "uniform": f"uniform, {LARGE[0]:,} x {LARGE[1]}",
}


def main():
    """Measure, print, and write the results."""
    options = parsed()
    warnings.simplefilter("ignore")
    if options.first is not None:
        print(json.dumps(first_use(options.first)))
        return
    results = {"machine": machine(), "quick": options.quick, "tables": {}, "first": {}}
    for name in options.tables:
        results["tables"][name] = figures = measured(TABLES[name](), options)
        print(f"{name}: {shown(figures)}", flush=True)
    for name in [*options.tables, "uniform"]:
        results["first"][name] = figures = fresh(name, 1 if options.quick else PROCESSES)
        print(f"{name}: {shown_first(figures)}", flush=True)
    save(options, results, {"own": page(results)})


def parsed(arguments=None):
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=40, help="rows that are explained one by one")
    parser.add_argument("--batch", type=int, default=200, help="rows that are explained in one call")
    parser.add_argument("--tables", type=names, default=list(TABLES))
    parser.add_argument("--profile", type=int, default=0, help="also print so many lines of a profile")
    parser.add_argument("--first", choices=[*TABLES, "uniform"], help="measure the first use in this process")
    add_output(parser)
    options = parser.parse_args(arguments)
    if options.quick:
        options.rows, options.batch = min(options.rows, 4), min(options.batch, 8)
    return options


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
        with cProfile.Profile() as profile:
            for row in alone:
                explainer.explain(row, target=TARGET)
        pstats.Stats(profile).sort_stats("tottime").print_stats(options.profile)
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


def first_use(name):
    """Return milliseconds of the first fit and answer of this process, of later maps, and of later answers."""
    import sklearn.ensemble  # noqa: F401  an import is no part of what is measured

    from onbmacf import ONBMACF

    if name == "uniform":
        model = Smooth(*LARGE)
        table = pd.DataFrame(model.rows).rename(columns="x{}".format)
    else:
        table = TABLES[name]()
        model = Cheap(table)
    row = table[model.predict(table) != TARGET].head(1)
    fits, answers, later = [], [], []
    for _ in range(1 + TURNS):
        times = [time.process_time()]
        explainer = ONBMACF().fit(table, model)
        times.append(time.process_time())
        for _ in range(2):
            explainer.explain(row, target=TARGET)
            times.append(time.process_time())
        for own, spent in zip((fits, answers, later), np.diff(times), strict=True):
            own.append(1000 * float(spent))
    found = {"fit": fits[0], "fit_later": min(fits[1:])}
    return found | {"answer": answers[0], "answer_of_map": min(answers[1:]), "answer_later": min(later)}


def fresh(name, n_processes):
    """Return the median of what fresh processes measure."""
    command = [sys.executable, __file__, "--first", name]
    runs = [json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout) for _ in range(n_processes)]
    return {key: float(np.median([run[key] for run in runs])) for key in runs[0]}


def shown(figures):
    """Return one line of text."""
    alone = f"{figures['own_ms']:.2f} ms beside the model for one row (worst {figures['own_ms_worst']:.2f})"
    batch = f"{figures['batch_own_ms_per_row']:.3f} ms per row of {figures['batch_rows']}"
    return f"{alone}, {figures['calls']:g} calls; {batch}, {figures['batch_calls']} calls"


def shown_first(figures):
    """Return one line of text."""
    fits = f"first fit of a process {figures['fit']:.0f} ms, later {figures['fit_later']:.0f}"
    answers = f"first answer of a process {figures['answer']:.1f} ms, of a later map {figures['answer_of_map']:.1f}"
    return f"{fits}; {answers}, later {figures['answer_later']:.1f}"


def page(results):
    """Return the table of all figures."""
    heads = ["table", "one row, ms beside the model", "a row of many", "first fit of a process, ms", "later"]
    heads += ["first answer of a process, ms", "of a later map", "later"]
    lines = []
    for name, first in results["first"].items():
        own = results["tables"].get(name)
        cells = [f"{own['own_ms']:.1f}", f"{own['batch_own_ms_per_row']:.2f}"] if own else ["", ""]
        lines.append([NAMES[name], *cells, *(f"{value:.1f}" for value in first.values())])
    return QUICK * results["quick"] + markdown(heads, lines)


if __name__ == "__main__":
    main()
