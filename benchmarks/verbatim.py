"""How often an answer is a fitted row, value by value: eight tables, a network and a forest, default settings.

    python benchmarks/verbatim.py [--rows 200] [--tables adult,heloc] [--models network,forest]

A counterfactual that equals a fitted row tells of a person; with `private` it can only by chance. Per pair of a table
and a model the first rows that the model refuses are explained, the immutable features held. Counted are those that
equal a fitted row in all features, and those that few fitted rows match in the changed and the immutable ones.
"""

import argparse
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dial import trained
from onbmacf import ONBMACF
from onbmacf.bench.datasets import DESCRIPTIONS, load_task
from onbmacf.bench.protocol import factual_rows

MODELS = ("network", "forest")
K = 5  # matches below this point to few rows


def measured(table: str, name: str, most: int, folder: Path | None) -> dict[str, Any]:
    """Explain rows of a table as a model labels it; return the shares of answers that are fitted rows."""
    task = load_task(table, paper_sizes=True)
    model = trained(task, name, folder)
    explainer = ONBMACF().fit(task.table, lambda rows: model.label_of(task.space.encode(rows)), schema=task.schema)
    rows = task.table.iloc[factual_rows(task, model, most)]
    answers = explainer.explain(rows)
    form, is_immutable = explainer.fitted_.space.form, explainer.fitted_.space.is_immutable
    N, values = form.numbers(task.table), form.numbers(answers.batch.values)
    known = {row.tobytes() for row in N}
    counts = []  # fitted rows that have an answer's changed and immutable values
    for value, before in zip(values, form.numbers(rows)[answers.batch.factual], strict=True):
        at = np.flatnonzero((value != before) | is_immutable)
        counts.append(int((N[:, at] == value[at]).all(axis=1).sum()))
    matches = np.array(counts, dtype=int)
    return {
        "table": table,
        "model": name,
        "fitted rows": len(N),
        "answers": len(values),
        "equal a row": share(np.array([row.tobytes() in known for row in values])),
        f"match 1 to {K - 1} rows where changed or immutable": share((matches > 0) & (matches < K)),
        "match none": share(matches == 0),
    }


def share(mask: np.ndarray) -> str:
    """Return a share in percent."""
    return f"{100 * mask.mean():.1f} %" if len(mask) else "-"


def main() -> None:
    """Print a table of the shares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--tables", default=",".join(DESCRIPTIONS))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--cache", type=Path, default=None, help="a folder in which trained networks are kept")
    asked = parser.parse_args()
    lines = []
    for table in asked.tables.split(","):
        for name in asked.models.split(","):
            lines.append(measured(table, name, asked.rows, asked.cache))
            print(" | ".join(map(str, lines[-1].values())), flush=True)
    print(pd.DataFrame(lines).to_string(index=False))
    names = ("onbmacf", "scikit-learn", "torch", "numpy", "pandas")
    print(f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in names), "seed 0", sep=", ")


if __name__ == "__main__":
    main()
