"""One row per call: what an answer costs and how good it is, here and with NICE and DiCE, on the same pipelines.

    python benchmarks/speed_one.py [--quick] [--parts one,budgets,steady,batches] [--rows N] [--tables A,B]
                                   [--models A,B] [--methods A,B] [--code FOLDER] [--baseline FILE] [--before FOLDER]
                                   [--cache FOLDER] [--json FILE] [--markdown FILE]

Every measurement has a process of its own, with one thread, one after the other; the page is printed. `--code` measures
the package in another folder (its `src`), `--baseline` compares with the JSON of an earlier run, and `--before` is the
`src` of an earlier version, against which batches are timed.
"""

import argparse
import json
from pathlib import Path

from speed_child import CACHE, child
from speed_machine import machine
from speed_one_report import markdown
from speed_pipelines import MODELS, TABLES

METHODS = ("ours", "nice", "dice")
BUDGET_MODELS = ("network", "xgboost")
STEADY = (("saheart", "logistic"), ("adult", "xgboost"))
OLD_PAIRS = [(table, kind) for table in ("saheart", "heloc", "adult") for kind in ("network", "forest")]
FULL = {
    "tables": list(TABLES),
    "models": list(MODELS),
    "rows": 40,
    "dice_rows": 6,
    "budget_rows": 30,
    "steady_calls": 1000,
    "batch_rows": 200,
    "turns": 3,
}
QUICK = {
    "tables": ["saheart", "titanic"],
    "models": ["logistic", "forest"],
    "rows": 6,
    "dice_rows": 2,
    "budget_rows": 4,
    "steady_calls": 50,
    "batch_rows": 20,
    "turns": 1,
}
PATIENCE = 600  # seconds after which a batch is given up


def main():
    """Measure, print, and write the results."""
    options = parsed()
    results = measured(options)
    text = markdown(results)
    print(text)
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if options.markdown is not None:
        options.markdown.write_text(text, encoding="utf-8")


def parsed(arguments=None):
    """Return the command line's options, with the sizes of a full or a quick run filled in."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two tables, two models and few rows, to try the script")
    parser.add_argument("--parts", type=names, default=["one"], help=f"of {','.join(PARTS)} (default: one)")
    parser.add_argument("--rows", type=int, help=f"rows per pair (default: {FULL['rows']})")
    parser.add_argument("--dice-rows", type=int, help=f"the same for DiCE, which is slow ({FULL['dice_rows']})")
    parser.add_argument("--tables", type=names, help=f"of {','.join(TABLES)} (default: all)")
    parser.add_argument("--models", type=names, help=f"of {','.join(MODELS)} (default: all)")
    parser.add_argument("--methods", type=names, default=list(METHODS), help=f"of {','.join(METHODS)} (default: all)")
    parser.add_argument("--code", type=Path, help="folder of the package to measure (default: this one's src)")
    parser.add_argument("--baseline", type=Path, help="JSON of an earlier run to compare with")
    parser.add_argument("--before", type=Path, help="src of an earlier version, against which batches are timed")
    parser.add_argument("--cache", type=Path, default=CACHE, help="trained pipelines and NICE")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--markdown", type=Path, help="write the page to this file")
    options = parser.parse_args(arguments)
    for name, value in (QUICK if options.quick else FULL).items():
        if getattr(options, name, None) is None:
            setattr(options, name, value)
    return options


def names(text):
    """Return the parts of a comma-separated list."""
    return text.split(",")


def measured(options):
    """Return the results of every part asked for."""
    results = {"machine": machine(), "quick": options.quick}
    if options.baseline is not None:
        results["baseline"] = json.loads(options.baseline.read_text(encoding="utf-8"))["pairs"]
    return results | {PARTS[part].__name__: PARTS[part](options) for part in options.parts}


def pairs(options):
    """Measure every pair of a table and a model, one row per call."""
    most = {name: options.dice_rows if name == "dice" else options.rows for name in options.methods}
    wanted = [f"{name}={count}" for name, count in most.items()]
    return {
        table: {model: own(options, "speed_pair.py", table, model, options.cache, *wanted) for model in options.models}
        for table in options.tables
    }


def budgets(options):
    """Measure answers within budgets on every table."""
    models = [model for model in BUDGET_MODELS if model in options.models] or options.models[:1]
    return {
        table: {
            model: own(options, "speed_budget.py", table, model, options.cache, options.budget_rows) for model in models
        }
        for table in options.tables
    }


def steady(options):
    """Measure memory and the slowest of many one-row calls."""
    chosen = [(table, model) for table, model in STEADY if table in options.tables and model in options.models]
    return {
        f"{table}, {model}": own(options, "speed_steady.py", table, model, options.cache, options.steady_calls)
        for table, model in chosen
    }


def batches(options):
    """Time batches with the code of now and of before, in turn: the models that are files, and the pipelines."""
    found = {}
    for table, kind in OLD_PAIRS:
        if table in options.tables:
            folder = options.cache / "problems" / table
            prepare(table, folder)
            arguments = ("speed_method.py", "ours", folder, kind, options.batch_rows, PATIENCE)
            found[f"{table}, {kind} (file)"] = in_turn(options, options.turns, *arguments)
    for table in options.tables:
        for model in options.models:
            arguments = ("speed_batch.py", table, model, options.cache, options.batch_rows, options.turns)
            found[f"{table}, {model}"] = in_turn(options, 1, *arguments)
    return found


def prepare(table, folder):
    """Write the models that are files; see speed_problem.py."""
    from speed_problem import write_problem

    write_problem(table, folder)


def in_turn(options, turns, *arguments):
    """Run a script with both versions by turns and return the quickest run of each."""
    now, before = zip(*((own(options, *arguments), earlier(options, *arguments)) for _ in range(turns)), strict=True)
    return {"now": quickest(now), "before": quickest(before)}


def own(options, script, *arguments):
    """Run a script with the package that is measured."""
    return child(script, *arguments, cache=options.cache, code=options.code)


def earlier(options, script, *arguments):
    """Run a script with the version before, if there is one."""
    if options.before is None:
        return {"failed": "no earlier version given"}
    return child(script, *arguments, cache=options.cache, code=options.before)


def quickest(runs):
    """Return the run with the least processor time, or the first failure if none ended well."""
    good = [run for run in runs if "failed" not in run]
    return min(good, key=lambda run: run["cpu_seconds"]) if good else runs[0]


PARTS = {"one": pairs, "budgets": budgets, "steady": steady, "batches": batches}

if __name__ == "__main__":
    main()
