"""How far the answers of each method are from the nearest counterfactual there is, solved exactly.

    python benchmarks/optimum.py --methods ours --cache build/optimum
    python benchmarks/optimum.py --methods "dial 0" --models forest,boosting --tables heloc
    python benchmarks/optimum.py --methods all --fixed both --page docs/benchmark/optimum.md

    problem  ->  optima, answers  ->  lines (one per factual and method)  ->  summary  ->  tables, targets, the page

Four tables, five models trained here, the first 50 rows that each labels 0, with nothing fixed and with two features
fixed. Models and optima are kept in the cache, optima by a hash of the model, the factual and what may change: with
other search code only the explaining is done again. Ends with 1 if an answer is nearer than a proven bound.
"""

import argparse
import hashlib
import json
import os
import platform
import sys
import time
import warnings
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd

from common import fill
from optimum_problems import FIXED, KINDS, OURS, Answers, explained, load_table, problem_of
from optimum_solve import Optimum, solve

LIBRARIES = ("numpy", "pandas", "scipy", "scikit-learn", "torch", "dice-ml")
SLIGHT = 1e-6  # an answer so much nearer than the bound is one of floating point
CLOSE = 1.05
COLUMNS = {
    "n": "problems",
    "answered": "answered",
    "median": "median L1 / optimum",
    "p90": "p90",
    "within": "within 5 %",
    "sums": "sum / sum of optima",
    "changes": "L0",
    "least": "least L0",
    "near": "least L0 within 5 %",
    "asked": "points asked",
}
# What dial 0 and the default are to reach with nothing fixed: name, column, method, models, limit.
GOALS = (
    ("median at dial 0", "median", "dial 0", None, 1.002),
    ("sum over sum at dial 0", "sums", "dial 0", None, 1.02),
    ("the same, forest", "sums", "dial 0", "forest", 1.06),
    ("the same, boosting", "sums", "dial 0", "boosting", 1.03),
    ("not within 5 % at dial 0", "beyond", "dial 0", None, 0.08),
    ("changes beyond the least at dial 0", "more_changes", "dial 0", None, 0.12),
    ("sum over sum of the default", "sums", "default", None, 1.2),
)


def main(texts=None):
    """Solve what is not solved, explain, print the tables, and return the exit code."""
    arguments = _arguments(texts)
    warnings.simplefilter("ignore")
    methods = methods_of(arguments.methods)
    lines = pd.DataFrame([line for problem in problems(arguments) for line in lines_of(problem, methods, arguments)])
    if not len(lines):
        return 0
    if arguments.lines:
        lines.to_csv(arguments.lines, index=False)
    if arguments.page:
        fill(arguments.page, parts_of(lines))
    return report(lines)


def _arguments(texts):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=Path("build/optimum"), help="models and optima")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--tables", default=",".join(FIXED))
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
    from onbmacf.bench.methods import PAPER

    groups = {"ours": tuple(OURS), "all": (*OURS, *(name for name in PAPER if name != "ONB-MACF+")), "none": ()}
    return groups[text] if text in groups else tuple(text.split(","))


def lines_of(problem, methods, arguments):
    """Return one line per factual and method; with fixed features only this package's: most others ignore them."""
    best = optima(problem, arguments.cache, arguments.seconds)
    lines = []
    for method in methods if not problem.is_fixed else [method for method in methods if method in OURS]:
        started = time.process_time()
        found = answers(problem, method, arguments.cache)
        is_skipped = isinstance(found, str)
        said = found if is_skipped else f"{time.process_time() - started:.1f} s"
        print(f"{problem.name} {method}: {said}", file=sys.stderr, flush=True)
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


def optima(problem, folder, seconds):
    """Return the optimum of every factual; what is solved is written at once."""
    path = folder / f"optima-{problem.name}.json"
    known = _read(path)
    keys = [problem.key(row) for row in problem.rows]
    for key, row in zip(keys, problem.rows, strict=True):
        if key not in known:
            known[key] = solve(problem, row, seconds).as_dict()
            path.write_text(json.dumps(known), encoding="utf-8")
    return [Optimum(**known[key]) for key in keys]


def answers(problem, method, folder):
    """Return a method's answers, or the reason why it gives none.

    Those of other methods come from the file. This package's own are never kept: they are what is measured.
    """
    if method in OURS or method.startswith("ONB"):
        return explained(problem, method)
    path = folder / f"answers-{problem.name}-{method}.json"
    key, known = _answers_key(problem, method), _read(path)
    if key not in known:
        found = explained(problem, method)
        known = {key: found if isinstance(found, str) else [np.asarray(part).tolist() for part in found]}
        path.write_text(json.dumps(known), encoding="utf-8")
    found = known[key]
    return found if isinstance(found, str) else Answers(*(np.asarray(part) for part in found))


def _answers_key(problem, method):
    from onbmacf.bench.cells import versions
    from onbmacf.bench.methods import REGISTRY

    entry = REGISTRY[method]
    code = Path(import_module(entry.module).__file__).read_bytes()
    inputs = [*(problem.key(row) for row in problem.rows), str(entry), versions(), hashlib.sha256(code).hexdigest()]
    return hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:20]


def _read(path):
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def report(lines):
    """Print the tables, the optima that are not proven, the targets, and what is wrong; return the exit code."""
    for by in (["question", "method"], ["question", "method", "model"]):
        print(markdown(summary(lines, by), by), "\n")
    once = lines.drop_duplicates(["question", "table", "model", "row"])
    print(once.groupby("question")["status"].value_counts().to_string(), "\n")
    print("\n".join(goals(lines)), "\n")
    wrong = nearer(lines)
    print(f"answers nearer than a proven bound: {len(wrong)}")
    return 1 if len(wrong) else 0


def summary(lines, by):
    """Return one line per group: ratios over the problems that a method answered and whose optimum is proven."""
    return pd.DataFrame(
        [dict(zip(by, key, strict=True)) | _summary(group) for key, group in lines.groupby(by, sort=False)]
    )


def _summary(lines):
    proven = lines[lines["status"] == "proven"]
    told = proven[proven["distance"].notna()]
    ratio = told["distance"] / told["optimum"]
    return {
        "n": len(proven),
        "answered": len(told) / max(len(proven), 1),
        "median": ratio.median(),
        "p90": ratio.quantile(0.9),
        "within": (ratio <= CLOSE).mean() if len(told) else np.nan,
        "sums": told["distance"].sum() / told["optimum"].sum() if len(told) else np.nan,
        "changes": told["n_changes"].mean(),
        "least": told["least_changes"].mean(),
        "near": told["near_changes"].mean(),
        "asked": lines["asked"].mean(),
    }


def nearer(lines):
    """Return the answers that are nearer than a proven bound: each is a mistake of the optimum."""
    return lines[(lines["status"] == "proven") & (lines["distance"] < lines["bound"] - SLIGHT)]


def markdown(table, by):
    """Return a summary as a table of a page."""
    names = [*by, *COLUMNS.values()]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(by) + "---:|" * len(COLUMNS)]
    for line in table.to_dict("records"):
        cells = [*(str(line[name]) for name in by), *(_cell(name, line[name]) for name in COLUMNS)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(name, value):
    if pd.isna(value):
        return "-"
    if name in ("n", "asked"):
        return f"{value:.0f}"
    return f"{value:.3f}" if name in ("median", "sums") else f"{value:.2f}"


def goals(lines):
    """Return one line per target: what it is, the figure, and whether it is met; what was not measured is not met."""
    free, found = lines[lines["question"] == "nothing fixed"], []
    for name, column, method, model, limit in GOALS:
        own = free[(free["method"] == method) & ((free["model"] == model) | (model is None))]
        if not len(own):
            found.append(f"{name}: not measured, limit {limit}")
            continue
        figures = _summary(own)
        figures |= {"beyond": 1.0 - figures["within"], "more_changes": figures["changes"] - figures["least"]}
        value = figures[column]
        found.append(f"{name}: {value:.4f}, limit {limit}: {'met' if value <= limit else 'missed'}")
    return found


def parts_of(lines):
    """Return the tables by the names of their places in the page."""
    free, fixed = (lines[lines["question"] == question] for question in ("nothing fixed", "two fixed"))
    models = list(dict.fromkeys(free["model"]))
    everywhere = [method for method, own in free.groupby("method", sort=False) if own["model"].nunique() == len(models)]
    by_method = ["method"]
    of_model = {model: summary(free[free["model"] == model], by_method) for model in models}
    return {
        "run": _run(lines),
        "free": markdown(summary(free[free["method"].isin(everywhere)], by_method), by_method),
        "models": "\n\n".join(f"**{model}**\n\n{markdown(found, by_method)}" for model, found in of_model.items()),
        "fixed": markdown(summary(fixed, by_method), by_method) if len(fixed) else "Not part of this run.",
        "goals": "\n".join(f"- {goal}" for goal in goals(lines)),
    }


def _run(lines):
    """Return what else is to be said of a run: versions, proofs, and the check of every answer."""
    once = lines.drop_duplicates(["question", "table", "model", "row"])
    proven = once[once["status"] == "proven"]
    counts = ", ".join(f"{count} {status}" for status, count in once["status"].value_counts().items())
    told = lines["distance"].notna().sum()
    gap = (proven["optimum"] - proven["bound"]).max()
    seconds = proven["seconds"]
    found = [
        ("versions", ", ".join([f"Python {platform.python_version()}", *(f"{n} {version(n)}" for n in LIBRARIES)])),
        ("problems", f"{len(once)}: {counts}"),
        (
            "processor time of a proof",
            f"{seconds.median():.2f} s (median), {seconds.max():.1f} s (most)",
        ),
        ("from the bound to the point", f"at most {gap:.0e}"),
        ("changes of the optimum itself", f"{proven['optimum_changes'].mean():.2f} (mean)"),
        ("answers checked against the bound", f"{told}; {len(nearer(lines))} are nearer"),
    ]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in found)])


if __name__ == "__main__":
    sys.exit(main())
