"""How round the numbers in plans are, whether any is off its column's step, and whether any plan is false.

    python benchmarks/rounded.py [--rows 40] [--tables adult,...] [--models network,...] [--exact]

Per pair of a table and a model the first rows that the model refuses are explained with default settings, three plans
each, the immutable features held. Of every changed number it is counted whether it is off the step or the decimals of
its column; of those without a step of several units, whether it is as round as 2 % of its way allow (decision 0045).
Of every plan, whether the model, asked again about the values as they are returned, says another label. `--exact`
shows what the same plans are like with `decimals="exact"`.
"""

import argparse
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from dial import MODELS, trained
from lasting import OnRawRows
from onbmacf import ONBMACF
from onbmacf.bench.datasets import load_task
from onbmacf.bench.protocol import factual_rows

TABLES = ("adult", "saheart", "heloc", "give_me_some_credit")
FARTHER = 0.02  # of the way of a number
UNITS = 10.0 ** np.arange(-9, 10)
NEAR = 1e-9  # of a unit: what is left of decimal numbers in binary


def is_off(value: float, feature: Any, decimals: int) -> bool:
    """Say whether a number is none of its column's: no multiple of its step, or with more decimals."""
    unit = float(feature.step or 10.0**-decimals)
    return abs(value / unit - round(value / unit)) > NEAR * max(1.0, abs(value / unit))


def is_round(before: float, after: float, low: float, high: float) -> bool:
    """Say whether no number with fewer digits is at most 2 % farther and lies within the fitted ones."""
    farther = min(max(after + (after - before) * FARTHER, low), high)
    least, most = sorted((after, farther))
    reached = np.floor(most / UNITS + NEAR) * UNITS >= least - NEAR * UNITS
    unit = UNITS[reached].max()
    return bool(abs(after / unit - round(after / unit)) <= 1e-6)


def measured(table: str, name: str, n_rows: int, decimals: str = "round", folder: Path | None = None) -> dict[str, Any]:
    """Explain rows of a table as a model labels it; return counts of numbers and plans."""
    task = load_task(table, paper_sizes=True)
    model = OnRawRows(SimpleNamespace(task=task, model=trained(task, name, folder)))
    explainer = ONBMACF(3, decimals=decimals).fit(task.table, model, schema=task.schema)
    rows = task.table.iloc[factual_rows(task, model.pair.model, n_rows)]
    answers = explainer.explain(rows, task.target)
    batch, space = answers.batch, explainer.fitted_.space
    before, after = (space.form.numbers(each) for each in (rows.iloc[batch.factual], batch.values))
    off, fine = 0, []
    for at, feature in enumerate(space.schema.features):
        ends = task.table[feature.name] if feature.is_numeric else None
        for line in np.flatnonzero(batch.changed[:, at]) if ends is not None else ():
            off += is_off(after[line, at], feature, space.readable[at] or 0)
            if feature.step in (None, 1):
                fine.append(is_round(before[line, at], after[line, at], ends.min(), ends.max()))
    n_numbers = int(batch.changed[:, [feature.is_numeric for feature in space.schema.features]].sum())
    return {
        "table": table,
        "model": name,
        "plans": len(batch.factual),
        "numbers": n_numbers,
        "off the step": off,
        "as round as 2 % allow": np.mean(fine) if fine else np.nan,
        "false": int((model.predict(batch.values) != batch.label).sum()) if len(batch.factual) else 0,
    }


def main() -> None:
    """Print a line per pair as it is done, and all together."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--exact", action="store_true", help='with decimals="exact"')
    parser.add_argument("--cache", type=Path, help="a folder in which trained networks are kept")
    asked = parser.parse_args()
    decimals, lines = "exact" if asked.exact else "round", []
    for table in asked.tables.split(","):
        for name in asked.models.split(","):
            lines.append(measured(table, name, asked.rows, decimals, asked.cache))
            print(" | ".join(f"{each:.3f}" if isinstance(each, float) else str(each) for each in lines[-1].values()))
    frame = pd.DataFrame(lines)
    total = frame[["plans", "numbers", "off the step", "false"]].sum()
    print(frame.round(3).to_string(index=False))
    print(f"together: {', '.join(f'{count:,} {name}' for name, count in total.items())}; ", end="")
    print(f"{(frame['as round as 2 % allow'] * frame['numbers']).sum() / total['numbers']:.3f} as round as 2 % allow")


if __name__ == "__main__":
    main()
