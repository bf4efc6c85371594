"""Lines of results -> the tables: how far each method is from the optimum, and which targets are met.

lines (one per problem and method)  ->  summary  ->  markdown, goals
"""

import numpy as np
import pandas as pd

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
    ("sum over sum at dial 0", "sums", "dial 0", None, 1.08),
    ("the same, forest", "sums", "dial 0", "forest", 1.2),
    ("the same, boosting", "sums", "dial 0", "boosting", 1.2),
    ("not within 5 % at dial 0", "beyond", "dial 0", None, 0.12),
    ("changes beyond the least at dial 0", "more_changes", "dial 0", None, 0.12),
    ("points asked, times those before, at dial 0", "times_before", "dial 0", None, 1.4),
    ("sum over sum of the default", "sums", "default", None, 1.3),
)


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


def goals(lines, before):
    """Return one line per target: what it is, the figure, and whether it is met; what was not measured is not met."""
    free = lines[lines["question"] == "nothing fixed"]
    return [_goal(free, before, *goal) for goal in GOALS]


def _goal(lines, before, name, column, method, model, limit):
    lines = lines[(lines["method"] == method) & ((lines["model"] == model) | (model is None))]
    if not len(lines):
        return f"{name}: not measured, limit {limit}"
    value = _figures(_summary(lines), _asked_before(lines, before.get(method, {})))[column]
    return f"{name}: {value:.4f}, limit {limit}: {'met' if value <= limit else 'missed'}"


def _asked_before(lines, before):
    """Return the points asked per answer before, on the same tables and models."""
    pairs = lines["table"] + "-" + lines["model"]
    return pairs.map(before).astype(float).mean(skipna=False)


def _figures(found, asked_before):
    """Return a summary with the figures that only targets use; NaN, so a target missed, without a figure before."""
    return found | {
        "beyond": 1.0 - found["within"],
        "more_changes": found["changes"] - found["least"],
        "times_before": found["asked"] / asked_before,
    }
