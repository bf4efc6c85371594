"""Compare the methods with the nearest counterfactual there is, solved exactly.

    python benchmarks/optimum.py --methods ours --cache build/optimum
    python benchmarks/optimum.py --methods "dial 0" --models forest,boosting --tables heloc
    python benchmarks/optimum.py --methods all --fixed both --page docs/benchmark/optimum.md

Four tables, five models trained here, the first 50 rows that each labels 0, with nothing fixed and with two features
fixed. Models and optima are kept in the cache, optima by a hash of the model, the factual and what may change: with
other search code only the explaining is done again. Ends with 1 if an answer is nearer than a proven bound.
"""

import argparse
import json
import os
import sys
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pandas as pd

from optimum_cache import answers, optima
from optimum_methods import OURS
from optimum_page import write_page
from optimum_problems import KINDS, TABLES, load_table, problem_of
from optimum_report import goals, markdown, nearer, summary

BEFORE = Path(__file__).with_name("optimum_before.json")  # points asked by the version that the targets name


def main(texts=None):
    """Solve what is not solved, explain, print the tables, and return the exit code."""
    arguments = _arguments(texts)
    warnings.simplefilter("ignore")
    methods = methods_of(arguments.methods)
    lines = pd.DataFrame([line for problem in problems(arguments) for line in lines_of(problem, methods, arguments)])
    if not len(lines):
        return 0
    before = json.loads(BEFORE.read_text(encoding="utf-8"))["asked"]
    if arguments.lines:
        lines.to_csv(arguments.lines, index=False)
    if arguments.page:
        write_page(arguments.page, lines, before)
    return report(lines, before)


def _arguments(texts):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=Path("build/optimum"), help="models and optima")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--models", default=",".join(KINDS))
    parser.add_argument("--methods", default="ours", help="ours, all, none (only solve), or names")
    parser.add_argument("--fixed", choices=("no", "yes", "both"), default="no", help="fix two features")
    parser.add_argument("--factuals", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0, help="the most for one optimum")
    parser.add_argument("--lines", type=Path, help="write one line per problem and method to this CSV file")
    parser.add_argument("--page", type=Path, help="put the tables between the marks of this page")
    return parser.parse_args(texts)


def problems(arguments):
    """Yield each model on each table, with and without fixed features, as asked."""
    for name in arguments.tables.split(","):
        for is_fixed in {"no": (False,), "yes": (True,), "both": (False, True)}[arguments.fixed]:
            task = load_table(name, is_fixed, arguments.data_dir)
            for kind in arguments.models.split(","):
                yield problem_of(task, kind, is_fixed, arguments.factuals, arguments.cache)


def methods_of(text):
    """Return the methods that a word stands for; ONB-MACF+ of the benchmark is the default here."""
    from onbmacf.bench.methods import REGISTRY

    groups = {"ours": tuple(OURS), "all": (*OURS, *(name for name in REGISTRY if name != "ONB-MACF+")), "none": ()}
    return groups[text] if text in groups else tuple(text.split(","))


def lines_of(problem, methods, arguments):
    """Return one line per factual and method; with fixed features only this package's: most others ignore them."""
    best = optima(problem, arguments.cache, arguments.seconds)
    lines = []
    for method in methods if not problem.is_fixed else [method for method in methods if method in OURS]:
        started = time.process_time()
        found = answers(problem, method, arguments.cache)
        is_skipped = isinstance(found, str)
        _say(f"{problem.name} {method}: {found if is_skipped else f'{time.process_time() - started:.1f} s'}")
        if not is_skipped:
            lines += [_line(problem, method, optimum, found, place) for place, optimum in enumerate(best)]
    return lines


def _line(problem, method, optimum, found, place):
    return {
        "question": "two fixed" if problem.is_fixed else "nothing fixed",
        "method": method,
        "model": problem.kind,
        "table": problem.table,
        "row": optimum.row,
        "status": optimum.status,
        "optimum": optimum.distance,
        "bound": optimum.bound,
        "least_changes": optimum.least_changes,
        "near_changes": optimum.near_changes,
        "optimum_changes": optimum.n_changes,
        "seconds": optimum.seconds,
        "distance": found.distance[place],
        "n_changes": found.n_changes[place],
        "is_outside": bool(found.is_outside[place]),
        "asked": float(found.asked),
    }


def report(lines, before):
    """Print the tables, the optima that are not proven, the targets, and what is wrong; return the exit code."""
    for by in (["question", "method"], ["question", "method", "model"]):
        print(markdown(summary(lines, by), by), "\n")
    once = lines.drop_duplicates(["question", "table", "model", "row"])
    print(once.groupby("question")["status"].value_counts().to_string(), "\n")
    print("\n".join(goals(lines, before)), "\n")
    wrong = nearer(lines)
    print(f"answers nearer than a proven bound: {len(wrong)}")
    return 1 if len(wrong) else 0


def _say(text):
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
