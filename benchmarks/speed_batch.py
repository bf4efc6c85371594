"""Time many rows with one pipeline: this package in one call, NICE row by row; print one line of JSON.

    python speed_batch.py TABLE MODEL CACHE ROWS TURNS

The methods take turns. The least processor time of a method's turns counts; whatever shares the machine can only add
to it.
"""

import sys
import time

from speed_pair import printed
from speed_pipelines import TARGET, Counted, load_case
from speed_rivals import METHODS


class InOneCall:
    """All rows in one call of this package."""

    def __init__(self, name, case, rows):
        self.table, self.rows = case.task.table.iloc[rows], rows
        self.explainer = METHODS[name](case, Counted(case.pipeline)).explainer
        self.explainer.explain(self.table.iloc[:1], target=TARGET)

    def __call__(self):
        """Explain the rows and return what that took, beside time."""
        told = self.explainer.explain(self.table, target=TARGET)
        answered, is_read = len(set(told.batch.factual.tolist())), told.n_copy_questions > 0
        return {"calls": told.n_calls, "rows_given": told.n_model_rows, "answered": answered, "is_read": is_read}


class RowByRow:
    """NICE, which has no batch mode."""

    def __init__(self, name, case, rows):
        self.model, self.rows = Counted(case.pipeline), rows
        self.explain = METHODS[name](case, self.model)
        self.explain(rows[0])

    def __call__(self):
        """Explain the rows and return what that took, beside time."""
        self.model.reset()
        for row in self.rows:
            self.explain(row)
        return {"calls": self.model.n_calls, "rows_given": self.model.n_rows}


def measure(table, model, cache, most, turns):
    """Return processor time, calls and rows handed over of each method."""
    case = load_case(table, model, cache)
    rows = case.factuals(most)
    makers = {"ours": InOneCall, "ours_read": InOneCall, "nice": RowByRow}
    runs = {name: make(name, case, rows) for name, make in makers.items()}
    found = {}
    for _ in range(turns):
        for name, run in runs.items():
            start = time.process_time()
            cost = run()
            cost |= {"cpu_seconds": time.process_time() - start, "rows": len(rows)}
            found[name] = min(cost, found.get(name, cost), key=lambda cost: cost["cpu_seconds"])
    return found


if __name__ == "__main__":
    table, model, cache, most, turns = sys.argv[1:]
    printed(measure, table, model, cache, int(most), int(turns))
