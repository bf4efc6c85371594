"""What a copied value turns and a readable one does not: single values of the nearest opposing row, on heloc.

    python benchmarks/copied_values.py [--table heloc] [--model xgboost] [--rows 30] [--cache FOLDER]

NICE copies values of the nearest row with the other label. The published heloc table has missing values replaced by
the mean of their class, fractions that give the label away; this package asks about values with readable decimals
(docs/decisions/0045-readable-values.md). Prints for how many rows one value of that row is enough, copied and readable.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np

from speed_child import CACHE
from speed_pipelines import TARGET, load_case


def main():
    """Count the rows that a single value of their nearest opposing row turns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", default="heloc")
    parser.add_argument("--model", default="xgboost")
    parser.add_argument("--rows", type=int, default=30)
    parser.add_argument("--cache", type=Path, default=CACHE)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print(counted(load_case(asked.table, asked.model, asked.cache), asked.rows))


def counted(case, most):
    """Return the sentence with both counts."""
    from onbmacf import ONBMACF

    fitted = ONBMACF().fit(case.task.table, case.pipeline).fitted_
    opposing = np.flatnonzero(fitted.labels == fitted.black_box.classes.tolist().index(TARGET))
    turned = np.array([[turns(case, fitted, row, opposing, is_readable) for is_readable in (False, True)]
                       for row in case.factuals(most)])  # fmt: skip
    copied, readable = turned.sum(axis=0)
    return f"of {len(turned)} rows, one copied value turns {copied}, one readable value {readable}"


def turns(case, fitted, row, opposing, is_readable):
    """Say whether the model gives the row its target with one value of its nearest opposing row."""
    space, z = fitted.space, fitted.Z[row]
    nearest = fitted.Z[opposing[np.abs(fitted.Z[opposing] - z).sum(axis=1).argmin()]]
    points = np.where(np.eye(len(space.blocks), dtype=bool)[:, space.feature_of], nearest, z)
    start = np.broadcast_to(z, points.shape)
    points = space.to_grid(points, start) if is_readable else points
    numbers = np.repeat(space.form.numbers(case.task.table.iloc[[row]]), len(points), axis=0)
    rows = space.form.frame(space.decode_numbers(points, near=(start, numbers)))
    return bool((case.pipeline.predict(rows) == TARGET).any())


if __name__ == "__main__":
    main()
