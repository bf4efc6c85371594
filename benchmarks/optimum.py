"""Compare the methods with the nearest counterfactual there is, solved exactly.

    python benchmarks/optimum.py --methods ours --cache build/optimum
    python benchmarks/optimum.py --fixed both --methods all --out docs/benchmark/optimum.json

Four tables, five models trained here, the first 50 rows that each labels 0, with nothing fixed and with two features
fixed. Optima are kept in the cache, by a hash of the model, the factual and what may change: with other search code
only the explaining is done again.
"""

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pandas as pd

from optimum_cache import answers, optima
from optimum_methods import OURS
from optimum_problems import KINDS, TABLES, load_table, problem_of
from optimum_report import markdown, summary


def main():
    """Solve what is not solved, explain, and print the tables."""
    arguments = _arguments()
    warnings.simplefilter("ignore")
    lines = []
    for problem in problems(arguments):
        lines += lines_of(problem, methods_of(arguments.methods), arguments)
    lines = pd.DataFrame(lines)
    for by in (["question", "method"], ["question", "method", "model"]):
        print(markdown(summary(lines, by), by), "\n", flush=True)
    _say_unproven(lines)
    if arguments.lines:
        lines.to_csv(arguments.lines, index=False)
    sys.exit(1 if _nearer(lines) else 0)


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=Path("build/optimum"), help="models and optima")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--models", default=",".join(KINDS))
    parser.add_argument("--methods", default="ours", help="ours, all, none, or names")
    parser.add_argument("--fixed", choices=("no", "yes", "both"), default="no", help="fix two features")
    parser.add_argument("--factuals", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0, help="the most for one optimum")
    parser.add_argument("--lines", type=Path, help="write one line per problem and method to this CSV file")
    return parser.parse_args()


def problems(arguments):
    """Yield each model on each table, with and without fixed features, as asked."""
    for name in arguments.tables.split(","):
        for is_fixed in {"no": (False,), "yes": (True,), "both": (False, True)}[arguments.fixed]:
            task = load_table(name, is_fixed, arguments.data_dir)
            for kind in arguments.models.split(","):
                yield problem_of(task, name, kind, is_fixed, arguments.factuals, arguments.cache)


def methods_of(text):
    """Return the methods that a word stands for."""
    from onbmacf.bench.methods import REGISTRY

    groups = {"ours": tuple(OURS), "all": (*OURS, *(name for name in REGISTRY if name != "ONB-MACF+")), "none": ()}
    return groups.get(text) or tuple(name for name in text.split(",") if name != "none")


def lines_of(problem, methods, arguments):
    """Return one line per factual and method."""
    best = optima(problem, arguments.cache, arguments.seconds)
    lines = []
    for method in methods:
        started = time.process_time()
        found = answers(problem, method, arguments.cache)
        _say(
            f"{problem.name} {method}: {found + ', ' if isinstance(found, str) else ''}{time.process_time() - started:.1f} s"
        )
        if not isinstance(found, str):
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
        "distance": found.distance[place],
        "n_changes": found.n_changes[place],
        "is_outside": bool(found.is_outside[place]),
        "asked": float(found.asked),
    }


def _nearer(lines):
    """Return the answers that are nearer than a proven bound: a mistake of the optimum."""
    return len(lines[lines["distance"] < lines["bound"] - 1e-6]) if len(lines) else 0


def _say_unproven(lines):
    once = lines.drop_duplicates(["question", "table", "model", "row"])
    print(once.groupby("question")["status"].value_counts().to_string())
    print(f"answers nearer than a proven bound: {_nearer(lines)}")


def _say(text):
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
