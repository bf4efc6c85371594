"""Many one-row calls of this package in a row: memory and the slowest calls; print one line of JSON.

    python speed_steady.py TABLE MODEL CACHE CALLS

Calls go round up to 200 rows, so that what a row needs and what grows can be told apart. Memory is that of the process
now, not its peak, without garbage. The first call is not counted.
"""

import gc
import os
import sys
import time
from pathlib import Path

import numpy as np

from speed_pair import printed
from speed_pipelines import Counted, load_case
from speed_rivals import ours

MOST_ROWS = 200
LOOKS = (0.1, 0.5, 1.0)  # shares of the calls after which memory is read


def measure(table, model, cache, n_calls):
    """Return memory after some calls, and the percentiles of processor time per call."""
    case = load_case(table, model, cache)
    explain = ours(case, Counted(case.pipeline))
    rows = case.factuals(MOST_ROWS)
    explain(rows[0])
    looks = [round(share * n_calls) for share in LOOKS]
    spent, memory = [], {}
    for count in range(1, n_calls + 1):
        start = time.process_time()
        explain(rows[count % len(rows)])
        spent.append(1000 * (time.process_time() - start))
        if count in looks:
            gc.collect()
            memory[count] = resident_mb()
    middle, slow = np.percentile(spent, [50, 99])
    times = {"median_ms": middle, "p99_ms": slow, "p99_over_median": slow / middle, "worst_ms": max(spent)}
    return {"calls": n_calls, "memory_mb": memory, **{name: float(value) for name, value in times.items()}}


def resident_mb():
    """Return the memory that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    table, model, cache, n_calls = sys.argv[1:]
    printed(measure, table, model, cache, int(n_calls))
