"""Answers within a budget, one row per call, in a process of its own; print one line of JSON.

    python speed_budget.py TABLE MODEL CACHE ROWS

NICE comes first, with what it asks by itself. Then this package with `max_model_rows` or `max_model_calls`, with both
at what NICE took for that very row (no fewer than the least for which budgets are made), and without any.
"""

import sys

import numpy as np

from speed_pair import Run, printed, quality
from speed_pipelines import load_case

ROW_BUDGETS = (20, 35, 50, 100, 200, 500)
CALL_BUDGETS = (4, 7, 12)
LEAST_ROWS, LEAST_CALLS = 15, 4


def measure(table, model, cache, most):
    """Return the figures of NICE and of every budget, by name."""
    case = load_case(table, model, cache)
    rows = case.factuals(most)
    nice, ours = Run("nice", case, rows), Run("ours", case, rows)
    nice.call(rows[0])
    lines = {"NICE": judged(nice, [nice.explain] * len(rows))}
    spent = [(int(calls), int(asked)) for calls, asked, *_ in nice.spent]
    whole = ours.explain
    whole(rows[0])
    for name, budgets in wanted(spent, whole.explainer.get_params()):
        lines[name] = judged(ours, [whole.within(**budget) for budget in budgets])
    return lines


def wanted(spent, options):
    """Return the budgets that the package has options for, each with the options of every row."""
    budgets = [(f"{n} rows", [{"max_model_rows": n}] * len(spent)) for n in ROW_BUDGETS]
    if "max_model_calls" in options:
        budgets += [(f"{n} calls", [{"max_model_calls": n}] * len(spent)) for n in CALL_BUDGETS]
        budgets += [("NICE's rows and calls", [at_most(calls, asked) for calls, asked in spent])]
    else:
        budgets += [("NICE's rows", [{"max_model_rows": max(asked, LEAST_ROWS)} for _, asked in spent])]
    return [*budgets, ("no budget", [{}] * len(spent))]


def at_most(calls, asked):
    """Return the options of one row that NICE answered with so many calls and rows."""
    return {"max_model_rows": max(asked, LEAST_ROWS), "max_model_calls": max(calls, LEAST_CALLS)}


def judged(run, explains):
    """Explain each row with the function given for it; return the quality, and medians and maxima of the cost."""
    run.found, run.spent = [], []
    for row, explain in zip(run.rows, explains, strict=True):
        run.explain = explain
        found, spent = run.call(row)
        run.found.append(found)
        run.spent.append(spent)
    spent = np.array(run.spent)
    middle, worst = np.median(spent, axis=0), spent.max(axis=0)
    cost = {"calls": middle[0], "calls_worst": worst[0], "rows_asked": middle[1], "rows_asked_worst": worst[1]}
    return {**quality(run.case, run.rows, run.found), **{name: float(value) for name, value in cost.items()}}


if __name__ == "__main__":
    table, model, cache, most = sys.argv[1:]
    printed(measure, table, model, cache, int(most))
