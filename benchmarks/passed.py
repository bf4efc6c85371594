"""What one `explain` of one row passes through: files, functions and calls of the package's own Python code.

    python benchmarks/passed.py

Counted by `sys.setprofile` after a call that warms up. Comprehensions and lambdas are functions, too; compiled kernels
are not seen. The model is the cheap one of speed_own.py, so it is called and not read, and the pipeline of a logistic
regression, which is read.
"""

import sys
import warnings
from pathlib import Path

from common import TARGET
from speed_models import pipeline_of
from speed_own import TABLES, Cheap


def main():
    """Print one line per table and model."""
    warnings.simplefilter("ignore")
    for name, make in TABLES.items():
        table = make()
        cheap = Cheap(table)
        pipeline = pipeline_of(table, "logistic").fit(table, cheap.predict(table))
        for how, model in (("called", cheap), ("read", pipeline)):
            files, functions, calls = counted(table, model)
            print(f"{name}, model {how}: {files} files, {functions} functions, {calls} calls")


def counted(table, model):
    """Return how many files and functions of the package one answer passes, and how many calls of them."""
    import onbmacf

    package = f"{Path(onbmacf.__file__).parent}/"
    explainer = onbmacf.ONBMACF().fit(table, model)
    rows = table[model.predict(table) != TARGET]
    explainer.explain(rows.iloc[[0]], target=TARGET)
    calls = {}

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(package):
            calls[code] = calls.get(code, 0) + 1

    row = rows.iloc[[1]]
    sys.setprofile(note)
    try:
        explainer.explain(row, target=TARGET)
    finally:
        sys.setprofile(None)
    return len({code.co_filename for code in calls}), len(calls), sum(calls.values())


if __name__ == "__main__":
    main()
