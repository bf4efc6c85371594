"""Lines of results -> the table: how far each method is from the optimum.

lines (one per problem and method)  ->  summary  ->  markdown
"""

import numpy as np
import pandas as pd

COLUMNS = {
    "n": "problems",
    "answered": "answered",
    "median": "median L1 / optimum",
    "p90": "p90",
    "within": "within 5 %",
    "sums": "sum / sum of optima",
    "changes": "L0",
    "least": "least L0",
    "near": "least within 5 %",
    "asked": "points asked",
    "nearer": "nearer than the bound",
}


def summary(lines, by):
    """Return one line per group: ratios over the problems that a method answered and whose optimum is proven."""
    return lines.groupby(by, sort=False).apply(_summary, include_groups=False).reset_index()


def _summary(lines):
    proven = lines[lines["status"] == "proven"]
    told = proven[proven["distance"].notna()]
    ratio = told["distance"] / told["optimum"]
    return pd.Series(
        {
            "n": len(proven),
            "answered": len(told) / max(len(proven), 1),
            "median": ratio.median(),
            "p90": ratio.quantile(0.9),
            "within": (ratio <= 1.05).mean(),
            "sums": told["distance"].sum() / told["optimum"].sum() if len(told) else np.nan,
            "changes": told["n_changes"].mean(),
            "least": told["least_changes"].mean(),
            "near": told["near_changes"].mean(),
            "asked": lines["asked"].mean(),
            "nearer": int((told["distance"] < told["bound"] - 1e-6).sum()),
        }
    )


def markdown(table, by):
    """Return a summary as a table of a page."""
    names = [*by, *(COLUMNS[name] for name in table.columns if name in COLUMNS)]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(by) + "---:|" * (len(names) - len(by))]
    for _, line in table.iterrows():
        cells = [str(line[name]) for name in by]
        lines.append("| " + " | ".join([*cells, *(_cell(name, line[name]) for name in COLUMNS)]) + " |")
    return "\n".join(lines)


def _cell(name, value):
    if pd.isna(value):
        return "-"
    if name in ("n", "nearer", "asked"):
        return f"{value:.0f}"
    return f"{value:.3f}" if name in ("median", "sums") else f"{value:.2f}"
