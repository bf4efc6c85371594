"""How long maps of large tables take, and how much memory: uniform rows, and complete tables of the benchmark.

    python benchmarks/speed_fit.py [--quick] [--million] [--cache FOLDER] [--json FILE] [--write docs/speed/README.md]

Each table has a process of its own. Uniform rows have the labels of a smooth model. Complete tables are labelled by the
32-16 network, and 200 of their rows are explained in one call. One table alone, as one line of JSON:

    python benchmarks/speed_fit.py cover ROWS COLUMNS [plain]    the cover of uniform rows; plain: not compiled
    python benchmarks/speed_fit.py columns ROWS FEW MANY         two covers, and how many times as long the wider takes
    python benchmarks/speed_fit.py complete TABLE CACHE          a complete table
    python benchmarks/speed_fit.py row ROWS COLUMNS              uniform rows explained one by one, and together
    python benchmarks/speed_fit.py wide ROWS COLUMNS             a wide table, its rows explained one by one
    python benchmarks/speed_fit.py levels ROWS LEVELS            a fit with one category of so many levels

Times of `cover` and `complete` are of the clock and of the processor, the others of the processor, for which a model
that costs next to nothing is asked. Libraries are imported where they are needed: they count as memory of the process.
"""

import argparse
import hashlib
import sys
import time
from pathlib import Path

import numpy as np

from common import QUICK, TARGET, Smooth, add_output, child, printed, save, shown, table

UNIFORM = ((10_000, 10), (100_000, 10), (100_000, 20))
MILLION = (1_000_000, 10)
WHOLE = {"adult": "adult", "give_me_some_credit": "Give Me Some Credit"}
N_EXPLAINED = {"complete": 200, "row": 30, "wide": 8}
COLUMNS = {  # figure: heading and digits
    "table_rows": ("rows", 0),
    "seconds": ("fit, s", 2),
    "balls": ("balls", 0),
    "peak_mb": ("peak memory, MB", 0),
    "explain_ms": ("explained, ms per row", 2),
}


def main():
    """Measure, print, and write the results; or measure one table in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("alone", nargs="*", help=f"one of {', '.join(ALONE)}, and its sizes")
    parser.add_argument("--million", action="store_true", help="also a million uniform rows")
    add_output(parser)
    options = parser.parse_args()
    if options.alone:
        what, *sizes = options.alone
        return printed(ALONE[what], *(int(size) if size.isdigit() else size for size in sizes))
    results = {}
    for rows, columns in UNIFORM[:1] if options.quick else [*UNIFORM, *[MILLION] * options.million]:
        own = child("speed_fit.py", "cover", rows, columns, with_nice=False)
        results.setdefault(f"uniform, {columns} numbers", []).append({"table_rows": rows} | own)
    for name in {} if options.quick else WHOLE:
        from speed_models import load_numbers

        load_numbers(name, "network", options.cache)  # trained here: that would count as memory of the process
        results[WHOLE[name]] = [child("speed_fit.py", "complete", name, options.cache, with_nice=False)]
    text = QUICK * options.quick + page(results)
    print(text)
    save(options, results, {"fit": text})
    return None


def page(results):
    """Return one line per table."""
    lines = []
    for name, runs in results.items():
        for own in runs:
            if "failed" in own:
                lines.append([name, f"not measured: {own['failed'][:100]}", *[""] * (len(COLUMNS) - 1)])
                continue
            cells = [shown(own[key], digits) if key in own else "" for key, (_, digits) in COLUMNS.items()]
            lines.append([name, *cells])
    return table(["table", *(head for head, _ in COLUMNS.values())], lines)


def time_cover(n_rows, n_columns, how="fast"):
    """Cover uniform rows after a small table; return the times, the peak memory and the size."""
    from onbmacf._balls.cover import build_cover

    small, large = Smooth(1000, n_columns), Smooth(n_rows, n_columns)
    build_cover(small.rows, small.labels, fast=how == "fast")
    start, processor_start = time.perf_counter(), time.process_time()
    cover = build_cover(large.rows, large.labels, fast=how == "fast")
    times = {
        "seconds": time.perf_counter() - start,
        "processor_seconds": time.process_time() - processor_start,
        "peak_mb": peak_mb(),
    }
    arrays = (cover.centers, cover.radii, cover.labels, cover.owner, cover.reach)
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()[:16]
    return times | {"balls": len(cover), "digest": digest}  # the digest differs between different covers


def time_columns(n_rows, few, many):
    """Cover two tables, each in its own process; the ratio is of processor time."""
    runs = [child("speed_fit.py", "cover", n_rows, columns, with_nice=False) for columns in (few, many)]
    ratio = runs[1]["processor_seconds"] / runs[0]["processor_seconds"]
    return {f"x {few}": runs[0], f"x {many}": runs[1], "ratio": ratio}


def time_complete(name, cache):
    """Fit a complete table with the network and explain some rows in one call."""
    from onbmacf import ONBMACF
    from speed_models import load_numbers

    case = load_numbers(name, "network", cache)
    rows = case.factuals(N_EXPLAINED["complete"])
    start = time.perf_counter()
    explainer = ONBMACF().fit(case.table, case.model, schema=case.schema)
    fitted = time.perf_counter()
    answers = explainer.explain(case.take(rows), target=TARGET, min_probability=0)
    done = time.perf_counter()
    return {
        "table_rows": len(case.table),
        "seconds": fitted - start,
        "explain_ms": 1000 * (done - fitted) / len(rows),
        "rows": len(rows),
        "answered": len(set(answers.batch.factual.tolist())),
        "peak_mb": peak_mb(),
    }


def time_row(n_rows, n_columns):
    """Fit uniform rows, then explain new ones one by one and together."""
    model = Smooth(n_rows, n_columns)
    explainer, fit_seconds = fitted(model.rows, model.predict)
    new = np.random.default_rng(5).random((N_EXPLAINED["row"], n_columns))
    explainer.explain(new)  # indexes are made
    alone = [milliseconds(explainer.explain, new[[line]]) for line in range(len(new))]
    return {
        "balls": len(explainer.cover_),
        "fit_seconds": fit_seconds,
        "one_row_ms": float(np.median(alone)),
        "worst_row_ms": max(alone),
        "together_ms": milliseconds(explainer.explain, new) / len(new),
        "peak_mb": peak_mb(),
    }


def time_wide(n_rows, n_columns):
    """Fit a wide table, then explain some of its rows one by one."""
    model = Smooth(n_rows, n_columns)
    explainer, fit_seconds = fitted(model.rows, model.predict)
    explainer.explain(model.rows[:1])
    alone = [milliseconds(explainer.explain, model.rows[[line]]) for line in range(1, 1 + N_EXPLAINED["wide"])]
    return {"fit_seconds": fit_seconds, "one_row_ms": float(np.median(alone)), "worst_row_ms": max(alone)}


def time_levels(n_rows, n_levels):
    """Fit a table with two numbers and one category of many levels."""
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((n_rows, 2)), columns=["a", "b"])
    frame["c"] = [f"level {level}" for level in rng.permutation(np.arange(n_rows) % n_levels)]
    explainer, fit_seconds = fitted(frame, lambda rows: (rows["a"] + rows["b"] > 1).astype(int))
    return {"fit_seconds": fit_seconds, "explain_seconds": milliseconds(explainer.explain, frame.head(1)) / 1000}


def fitted(rows, model):
    """Return a fitted explainer, and the seconds that it took."""
    from onbmacf import ONBMACF

    explainer = ONBMACF()
    return explainer, milliseconds(explainer.fit, rows, model) / 1000


def milliseconds(work, *arguments):
    """Return the processor time of a call."""
    start = time.process_time()
    work(*arguments)
    return 1000 * (time.process_time() - start)


def peak_mb():
    """Return the peak memory of this process, with interpreter and libraries."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) * 1024 / 1e6
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (most if sys.platform == "darwin" else most * 1024) / 1e6


ALONE = {
    "cover": time_cover,
    "columns": time_columns,
    "complete": time_complete,
    "row": time_row,
    "wide": time_wide,
    "levels": time_levels,
}

if __name__ == "__main__":
    main()
