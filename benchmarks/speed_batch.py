"""Time this package on many rows in one call, with a pipeline; print one line of JSON.

    python speed_batch.py TABLE MODEL CACHE ROWS TRIES

The least processor time of the tries counts; whatever shares the machine can only add to it.
"""

import hashlib
import sys
import time

from speed_pair import printed
from speed_pipelines import TARGET, Counted, load_case


def measure(table, model, cache, most, tries):
    """Return the time, the calls and the success of explaining the rows in one call."""
    from onbmacf import ONBMACF

    case = load_case(table, model, cache)
    counted = Counted(case.pipeline)
    explainer = ONBMACF().fit(case.task.table, counted)
    rows = case.task.table.iloc[case.factuals(most)]
    explainer.explain(rows.iloc[:1], target=TARGET)
    spent = []
    for _ in range(tries):
        counted.reset()
        start = time.process_time()
        answers = explainer.explain(rows, target=TARGET)
        spent.append(time.process_time() - start)
    cost = {"calls": counted.n_calls, "rows_given": counted.n_rows, "cpu_seconds": min(spent)}
    return {"rows": len(rows), "answered": len(answers.batch.factual), "digest": digest(answers), **cost}


def digest(answers):
    """Return what tells apart answers that differ in any value."""
    return hashlib.sha256(answers.batch.values.to_csv().encode()).hexdigest()[:16]


if __name__ == "__main__":
    table, model, cache, most, tries = sys.argv[1:]
    printed(measure, table, model, cache, int(most), int(tries))
