"""What answers cost beside NICE and DiCE, on the same models: one row per call, budgets, many calls, many rows.

    python benchmarks/speed_one.py [--quick] [--parts one,batches,budgets,steady] [--rows N] [--dice-rows N]
                                   [--tables A,B] [--models A,B] [--methods A,B] [--cache FOLDER] [--json FILE]
                                   [--write docs/speed/README.md]

Every pair of a table and a model has a process of its own, with one thread, one after the other; preparing a method and
its first call are not measured.

one       the methods take turns row by row, so that whatever else the machine does meets all of them
budgets   NICE with what it asks by itself; then this package with `max_model_rows` or `max_model_calls`, with both at
          what NICE took for that very row (no fewer than the least for which budgets are made), and without any
steady    many one-row calls of this package, going round up to 200 rows: memory of the process without garbage (now,
          not its peak), and the slowest calls
batches   all rows in one call of this package, row by row with NICE, which has no batch mode; the turn with the least
          processor time counts, because whatever shares the machine can only add to it
"""

import argparse
import gc
import os
import sys
import time
from pathlib import Path

import numpy as np

from common import (
    QUICK,
    TARGET,
    about,
    add_output,
    child,
    machine,
    mean,
    names,
    nice_version,
    over,
    printed,
    save,
    shown,
    spread,
    table,
)
from speed_methods import METHODS, Run, quality, take_turns
from speed_models import MODELS, TABLES, Counted, load_case, load_numbers

NOT_READ = "cannot be read"
NAMES = {"ours": "called", "ours_read": "read", "nice": "NICE", "dice": "DiCE"}
BUDGET_MODELS = ("network", "xgboost")
ROW_BUDGETS = (20, 35, 50, 100, 200, 500)
CALL_BUDGETS = (4, 7, 12)
LEAST_ROWS, LEAST_CALLS = 15, 4
STEADY = (("saheart", "logistic"), ("adult", "xgboost"))
STEADY_ROWS = 200
LOOKS = (0.1, 0.5, 1.0)  # shares of the calls after which memory is read
OF_NUMBERS = [(table, kind) for table in ("saheart", "heloc", "adult") for kind in ("network", "forest")]
FULL = {
    "tables": list(TABLES),
    "models": list(MODELS),
    "rows": 25,
    "dice_rows": 3,
    "budget_rows": 30,
    "steady_calls": 1000,
    "batch_rows": 200,
    "turns": 2,
}
SMALL = {
    "tables": ["saheart", "titanic"],
    "models": ["logistic", "forest"],
    "rows": 6,
    "dice_rows": 2,
    "budget_rows": 4,
    "steady_calls": 50,
    "batch_rows": 20,
    "turns": 1,
}


def main():
    """Measure, print, and write the results; with `--child`, measure one part of one pair in this process."""
    if sys.argv[1:2] == ["--child"]:
        part, name, model, cache, *sizes = sys.argv[2:]
        return printed(CHILDREN[part], name, model, cache, *sizes)
    options = parsed()
    results = {"machine": machine(), "quick": options.quick}
    results["machine"]["versions"]["NICEx"] = nice_version(options.cache)
    results |= {PARTS[part].__name__: PARTS[part](options) for part in options.parts}
    found = places(results)
    print("\n".join(found.values()))
    save(options, results, found)
    return None


def parsed(arguments=None):
    """Return the command line's options, with the sizes of a full or a quick run filled in."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", type=names, default=["one"], help=f"of {','.join(PARTS)} (default: one)")
    parser.add_argument("--rows", type=int, help=f"rows per pair (default: {FULL['rows']})")
    parser.add_argument("--dice-rows", type=int, help=f"the same for DiCE, which is slow ({FULL['dice_rows']})")
    parser.add_argument("--tables", type=names, help=f"of {','.join(TABLES)} (default: all)")
    parser.add_argument("--models", type=names, help=f"of {','.join(MODELS)} (default: all)")
    parser.add_argument("--methods", type=names, default=list(METHODS), help=f"of {','.join(METHODS)} (default: all)")
    add_output(parser)
    options = parser.parse_args(arguments)
    for name, value in (SMALL if options.quick else FULL).items():
        if getattr(options, name, None) is None:
            setattr(options, name, value)
    return options


def in_child(options, part, name, model, *sizes):
    """Measure one part of one pair in a process of its own."""
    return child("speed_one.py", "--child", part, name, model, options.cache, *sizes, cache=options.cache)


def pairs(options):
    """Measure every pair of a table and a model, one row per call."""
    most = {name: options.dice_rows if name == "dice" else options.rows for name in options.methods}
    sizes = [f"{name}={count}" for name, count in most.items()]
    return {n: {model: in_child(options, "one", n, model, *sizes) for model in options.models} for n in options.tables}


def measure_pair(name, model, cache, *sizes):
    """Return the figures of every method on one pair, or why there are none."""
    case = load_case(name, model, cache)
    most = {method: int(count) for method, count in (size.split("=") for size in sizes)}
    factuals = case.factuals(max(most.values()))
    prepared = {}
    for method, count in most.items():
        try:
            prepared[method] = Run(method, case, factuals[:count])
            prepared[method].call(factuals[0])
        except Exception as error:  # of another package: the others are measured all the same
            prepared[method] = {"failed": f"{type(error).__name__}: {error}"}
    take_turns([run for run in prepared.values() if isinstance(run, Run)], factuals)
    methods = {method: run.result() if isinstance(run, Run) else run for method, run in prepared.items()}
    return {"labels": case.digest, "methods": methods}


def budgets(options):
    """Measure answers within budgets on every table."""
    models = [model for model in BUDGET_MODELS if model in options.models] or options.models[:1]
    return {
        name: {model: in_child(options, "budgets", name, model, options.budget_rows) for model in models}
        for name in options.tables
    }


def measure_budgets(name, model, cache, most):
    """Return the figures of NICE and of every budget, by name."""
    case = load_case(name, model, cache)
    rows = case.factuals(int(most))
    others, run = Run("nice", case, rows), Run("ours", case, rows)
    others.call(rows[0])
    run.call(rows[0])
    lines = {"NICE": within(others, [others.explain] * len(rows))}
    spent = [(int(calls), int(asked)) for calls, asked, *_ in others.spent]
    whole = run.explain
    for budget, of_row in wanted(spent).items():
        lines[budget] = within(run, [whole.within(**limits) for limits in of_row])
    return lines


def wanted(spent):
    """Return the budgets by name, each with the limits of every row; NICE answered with so many calls and rows."""
    found = {f"{n} rows": [{"max_model_rows": n}] * len(spent) for n in ROW_BUDGETS}
    found |= {f"{n} calls": [{"max_model_calls": n}] * len(spent) for n in CALL_BUDGETS}
    found["NICE's rows and calls"] = [
        {"max_model_rows": max(asked, LEAST_ROWS), "max_model_calls": max(calls, LEAST_CALLS)} for calls, asked in spent
    ]
    return found | {"no budget": [{}] * len(spent)}


def within(run, explains):
    """Explain each row with the function given for it; return the quality, and medians and maxima of the cost."""
    run.found, run.spent = [], []
    for row, explain in zip(run.rows, explains, strict=True):
        run.explain = explain
        run.note(row)
    middle, worst = np.median(run.spent, axis=0), np.max(run.spent, axis=0)
    cost = {"calls": middle[0], "calls_worst": worst[0], "rows_asked": middle[1], "rows_asked_worst": worst[1]}
    return {**quality(run.case, run.rows, run.found), **{name: float(value) for name, value in cost.items()}}


def steady(options):
    """Measure memory and the slowest of many one-row calls."""
    chosen = [(name, model) for name, model in STEADY if name in options.tables and model in options.models]
    return {
        f"{TABLES[name]}, {MODELS[model]}": in_child(options, "steady", name, model, options.steady_calls)
        for name, model in chosen
    }


def measure_steady(name, model, cache, n_calls):
    """Return memory after some calls, and the percentiles of processor time per call."""
    case, n_calls = load_case(name, model, cache), int(n_calls)
    explain = METHODS["ours"](case, Counted(case.model))
    rows = case.factuals(STEADY_ROWS)
    explain(rows[0])
    looks = [round(share * n_calls) for share in LOOKS]
    spent, memory = [], {}
    for count in range(1, n_calls + 1):
        start = time.process_time()
        explain(rows[count % len(rows)])
        spent.append(1000 * (time.process_time() - start))
        if count in looks:
            gc.collect()
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            memory[count] = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    middle, slow = np.percentile(spent, [50, 99])
    times = {"median_ms": middle, "p99_ms": slow, "p99_over_median": slow / middle, "worst_ms": max(spent)}
    return {"calls": n_calls, "memory_mb": memory, **{name: float(value) for name, value in times.items()}}


def batches(options):
    """Time many rows in one call beside NICE: with the pipelines, and with models of numbers that are files."""
    found, sizes = {}, (options.batch_rows, options.turns)
    for name in options.tables:
        for model in options.models:
            found[f"{TABLES[name]}, {MODELS[model]}"] = in_child(options, "batches", name, model, *sizes)
    for name, kind in OF_NUMBERS:
        if name in options.tables:
            found[f"{TABLES[name]}, {kind} as a file"] = in_child(options, "numbers", name, kind, *sizes)
    return found


def measure_batches(load, name, model, cache, most, turns):
    """Return processor time, calls and rows handed over of each method."""
    case = load(name, model, cache)
    rows = case.factuals(int(most))
    makers = {"ours": in_one_call, "ours_read": in_one_call, "nice": row_by_row}
    runs = {method: make(method, case, rows) for method, make in makers.items()}
    found = {}
    for _ in range(int(turns)):
        for method, run in runs.items():
            start = time.process_time()
            cost = run()
            cost |= {"cpu_seconds": time.process_time() - start, "rows": len(rows)}
            found[method] = min(cost, found.get(method, cost), key=lambda cost: cost["cpu_seconds"])
    return found


def in_one_call(method, case, rows):
    """Return a function that explains the rows with this package and says what that took, beside time."""
    explainer, taken = METHODS[method](case, Counted(case.model)).explainer, case.take(rows)
    explainer.explain(taken[:1], target=TARGET, min_probability=0)  # what NICE answers: the label, no more

    def run():
        told = explainer.explain(taken, target=TARGET, min_probability=0)
        answered, is_read = len(set(told.batch.factual.tolist())), told.n_copy_questions > 0
        return {"calls": told.n_calls, "rows_given": told.n_model_rows, "answered": answered, "is_read": is_read}

    return run


def row_by_row(method, case, rows):
    """Return the same of NICE."""
    model = Counted(case.model)
    explain = METHODS[method](case, model)
    explain(rows[0])

    def run():
        model.reset()
        for row in rows:
            explain(row)
        return {"calls": model.n_calls, "rows_given": model.n_rows}

    return run


PARTS = {"one": pairs, "batches": batches, "budgets": budgets, "steady": steady}
CHILDREN = {
    "one": measure_pair,
    "budgets": measure_budgets,
    "steady": measure_steady,
    "batches": lambda *sizes: measure_batches(load_case, *sizes),
    "numbers": lambda *sizes: measure_batches(load_numbers, *sizes),
}


def places(results):
    """Return the text of every part that was measured, by the name of its place of the page."""
    found = {"machine": f"{about(results['machine'])}\n"}
    for part, (name, section) in SECTIONS.items():
        if part in results:
            found[name] = QUICK * results["quick"] + section(results[part])
    return found


def pairs_text(pairs):
    """Return one line per pair, and sentences about all of them."""
    heads = ["table", "model", "calls, median / worst", "read", "rows, median", "read", "time over NICE's", "read"]
    heads += ["distance over NICE's"]
    lines, judged, failed = [], [], []
    every = [(name, model, found) for name, models in pairs.items() for model, found in models.items()]
    for name, model, found in every:
        found = found.get("methods") or {"ours": found}  # the whole pair failed
        ours, read, nice, dice = (measured(found, method) for method in NAMES)
        ratios = {"ours": over(ours.get("cpu_ms"), nice.get("cpu_ms")), "apart": farther(ours, nice)}
        ratios |= {"read": over(read.get("cpu_ms"), nice.get("cpu_ms")) if read.get("is_read") else None}
        ratios |= {"dice": over(ours.get("cpu_ms"), dice.get("cpu_ms"))}
        judged.append(ratios | {"worst": ours.get("calls_worst")})
        cells = [calls(ours), told(read, calls(read)), shown(ours.get("rows_given"), 0)]
        cells += [told(read, shown(read.get("rows_given"), 0)), shown(ratios["ours"], 2)]
        cells += [told(read, shown(ratios["read"], 2)), shown(ratios["apart"], 2)]
        lines.append([TABLES[name], MODELS[model], *cells])
        failed += failures(f"{TABLES[name]}, {MODELS[model]}", found)
    return f"{table(heads, lines)}\n{summary(judged)}{''.join(failed)}"


def summary(judged):
    """Return what the pairs have in common: medians, and the ends."""
    worst = max((ratios["worst"] for ratios in judged if ratios["worst"] is not None), default=None)
    spreads = {name: spread([ratios[name] for ratios in judged]) for name in ("ours", "read", "dice", "apart")}
    return (
        f"Over these {len(judged)} pairs, median (least to most): time over NICE's {spreads['ours']}, where the model "
        f"is read {spreads['read']}; time over DiCE's {spreads['dice']}; distance over NICE's {spreads['apart']}. "
        f"No answer took more than {shown(worst, 0)} calls.\n"
    )


def measured(found, name):
    """Return a method's figures; none where it was not measured."""
    figures = found.get(name, {})
    return {} if "failed" in figures else figures


def failures(pair, found):
    """Return a sentence for each method that failed."""
    said = {NAMES[name]: own["failed"][:100] for name, own in found.items() if "failed" in own}
    return [f"\nNot measured: {pair}, {name}: {why}\n" for name, why in said.items()]


def told(read, cell):
    """Return a cell of the model that is read, unless it could not be."""
    return NOT_READ if read and not read.get("is_read") else cell


def calls(own):
    """Return the median and the largest number of calls."""
    return f"{shown(own.get('calls'), 0)} / {shown(own.get('calls_worst'), 0)}" if own else "not measured"


def farther(ours, theirs):
    """Return the ratio of mean distances over the rows that both answered, or None where there are none."""
    each = zip(ours.get("distances", ()), theirs.get("distances", ()), strict=False)
    both = [pair for pair in each if None not in pair]
    return over(sum(own for own, _ in both), sum(other for _, other in both)) if both else None


def batches_text(found):
    """Return the time of many rows in one call, and how many times as fast as NICE that is."""
    heads = ["table, model", "rows", "CPU ms per row", "read", "NICE", "times as fast as NICE", "read", "calls", "read"]
    lines, ratios, failed = [], [], []
    for name, methods in found.items():
        methods = {"ours": methods} if "failed" in methods else methods
        ours, read, nice = (measured(methods, method) for method in ("ours", "ours_read", "nice"))
        fast, fast_read = over(per_row(nice), per_row(ours)), over(per_row(nice), per_row(read))
        cells = [shown(ours.get("rows"), 0), shown(per_row(ours), 2), told(read, shown(per_row(read), 2))]
        cells += [shown(per_row(nice), 2), shown(fast, 1), told(read, shown(fast_read, 1))]
        cells += [shown(ours.get("calls"), 0), told(read, shown(read.get("calls"), 0))]
        lines.append([name, *cells])
        failed += failures(name, methods)
        ratios.append((name.endswith("file"), fast, fast_read if read.get("is_read") else None))
    own, own_read = (spread([ratio[place] for ratio in ratios if not ratio[0]], 1) for place in (1, 2))
    files = spread([fast for is_file, fast, _ in ratios if is_file], 1)
    return (
        f"{table(heads, lines)}\nTimes as fast as NICE, median (least to most): {own} with pipelines, {own_read} where "
        f"they are read, {files} with models as files.\n{''.join(failed)}"
    )


def per_row(found):
    """Return milliseconds per row of a batch."""
    return 1000 * found["cpu_seconds"] / found["rows"] if found else None


BUDGET_COLUMNS = {  # figure: heading and digits
    "success": ("success", 2),
    "of_nice": ("distance over NICE's", 2),
    "changes": ("changes", 2),
    "calls": ("calls", 0),
    "calls_worst": ("most calls", 0),
    "rows_asked": ("rows", 0),
    "rows_asked_worst": ("most rows", 0),
}


def budgets_text(found):
    """Return the mean of each budget over all tables and models; of the largest costs, the largest."""
    every = {
        f"{TABLES[name]}, {MODELS[model]}": lines for name, models in found.items() for model, lines in models.items()
    }
    good = [
        {budget: own | {"of_nice": farther(own, lines["NICE"])} for budget, own in lines.items()}
        for lines in every.values()
        if "failed" not in lines
    ]
    rows = []
    for budget in dict.fromkeys(budget for lines in good for budget in lines):
        cells = [budget]
        for key, (_, digits) in BUDGET_COLUMNS.items():
            values = [lines[budget][key] for lines in good if budget in lines]
            cells.append(shown(max(values) if key.endswith("_worst") else mean(values), digits))
        rows.append(cells)
    ratios = [own["of_nice"] for lines in good for budget, own in lines.items() if budget.startswith("NICE's")]
    near = sum(ratio is not None and ratio <= 1 for ratio in ratios)
    return (
        f"Means over {len(good)} pairs of a table and a model; of the columns that begin with *most*, the largest.\n\n"
        f"{table(['budget', *(head for head, _ in BUDGET_COLUMNS.values())], rows)}\n"
        f"Within NICE's own budget, answers are at least as near as NICE's on {near} of {len(ratios)} pairs.\n"
        f"{''.join(text for pair, lines in every.items() for text in failures(pair, {'ours': lines}))}"
    )


def steady_text(found):
    """Return memory after some of the calls, and the slowest calls beside the median."""
    lines = []
    for name, own in found.items():
        if "failed" in own:
            lines.append([name, f"not measured: {own['failed'][:100]}", *[""] * 4])
            continue
        memory = " / ".join(shown(value, 1) for value in own["memory_mb"].values())
        times = [shown(own[key], 1) for key in ("median_ms", "p99_ms", "p99_over_median")]
        lines.append([name, " / ".join(f"{int(n):,}" for n in own["memory_mb"]), memory, *times])
    heads = ["table, model", "after calls", "memory in MB", "median CPU ms", "99th percentile", "over the median"]
    return table(heads, lines)


SECTIONS = {
    "pairs": ("one-row", pairs_text),
    "batches": ("batches", batches_text),
    "budgets": ("budgets", budgets_text),
    "steady": ("steady", steady_text),
}


if __name__ == "__main__":
    main()
