"""What answers cost beside NICE and DiCE, on the same pipelines: one row per call, budgets, many calls, many rows.

    python benchmarks/speed_one.py [--quick] [--parts one,batches,budgets,steady] [--rows N] [--dice-rows N]
                                   [--tables A,B] [--models A,B] [--methods A,B] [--cache FOLDER] [--json FILE]
                                   [--write docs/speed/README.md]

Every measurement has a process of its own, with one thread, one after the other; the tables are printed. `--write` puts
them into the places of a page.
"""

import argparse
import json
from pathlib import Path

from speed_child import CACHE, child, nice_version
from speed_machine import machine
from speed_one_report import places
from speed_page import fill
from speed_pipelines import MODELS, TABLES

METHODS = ("ours", "ours_read", "nice", "dice")
BATCH_METHODS = ("ours", "ours_read", "nice")
BUDGET_MODELS = ("network", "xgboost")
STEADY = (("saheart", "logistic"), ("adult", "xgboost"))
FILES = [(table, kind) for table in ("saheart", "heloc", "adult") for kind in ("network", "forest")]
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
PATIENCE = 600  # seconds after which a batch gets no further row


def main():
    """Measure, print, and write the results."""
    options = parsed()
    results = measured(options)
    found = places(results)
    print("\n".join(found.values()))
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if options.write is not None:
        fill(options.write, found)


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
    parser.add_argument("--cache", type=Path, default=CACHE, help="trained pipelines and NICE")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--write", type=Path, help="put the tables into the places of this page")
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
    found = {PARTS[part].__name__: PARTS[part](options) for part in options.parts}
    about = machine()
    about["versions"]["NICEx"] = nice_version(options.cache)
    return {"machine": about, "quick": options.quick} | found


def pairs(options):
    """Measure every pair of a table and a model, one row per call."""
    most = {name: options.dice_rows if name == "dice" else options.rows for name in options.methods}
    wanted = [f"{name}={count}" for name, count in most.items()]
    return {
        table: {model: run(options, "speed_pair.py", table, model, options.cache, *wanted) for model in options.models}
        for table in options.tables
    }


def budgets(options):
    """Measure answers within budgets on every table."""
    models = [model for model in BUDGET_MODELS if model in options.models] or options.models[:1]
    return {
        table: {
            model: run(options, "speed_budget.py", table, model, options.cache, options.budget_rows) for model in models
        }
        for table in options.tables
    }


def steady(options):
    """Measure memory and the slowest of many one-row calls."""
    chosen = [(table, model) for table, model in STEADY if table in options.tables and model in options.models]
    return {
        f"{TABLES[table]}, {MODELS[model]}": run(
            options, "speed_steady.py", table, model, options.cache, options.steady_calls
        )
        for table, model in chosen
    }


def batches(options):
    """Time many rows in one call beside NICE: with the pipelines, and with the models that are files."""
    found = {}
    for table in options.tables:
        for model in options.models:
            arguments = (table, model, options.cache, options.batch_rows, options.turns)
            found[f"{TABLES[table]}, {MODELS[model]}"] = run(options, "speed_batch.py", *arguments)
    for table, kind in FILES:
        if table in options.tables:
            found[f"{TABLES[table]}, {kind} as a file"] = of_file(options, table, kind)
    return found


def of_file(options, table, kind):
    """Time each method on a model that is a file, by turns; the quickest run of each counts."""
    from speed_problem import write_problem

    folder = options.cache / "problems" / table
    write_problem(table, folder)
    runs = {name: [] for name in BATCH_METHODS}
    for _ in range(options.turns):
        for name, own in runs.items():
            own.append(run(options, "speed_method.py", name, folder, kind, options.batch_rows, PATIENCE))
    return {name: quickest(own) for name, own in runs.items()}


def run(options, script, *arguments):
    """Run a script in a process of its own."""
    return child(script, *arguments, cache=options.cache)


def quickest(runs):
    """Return the run with the least processor time, or the first failure if none ended well."""
    good = [run for run in runs if "failed" not in run]
    return min(good, key=lambda run: run["cpu_seconds"]) if good else runs[0]


PARTS = {"one": pairs, "batches": batches, "budgets": budgets, "steady": steady}

if __name__ == "__main__":
    main()
