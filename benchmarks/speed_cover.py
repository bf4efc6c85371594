"""Time the cover of one synthetic table, or the fit of one dataset, in its own process; print one line of JSON.

    python speed_cover.py cover ROWS COLUMNS fast|plain
    python speed_cover.py fit DATASET_FOLDER MOST_ROWS

Synthetic rows are uniform; their label says whether `linear score + 0.3 sin(7 first column)` is above its median. This
is a smooth model, so balls are wide away from the boundary and narrow along it, as with a trained one.
"""

import hashlib
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np

MEGABYTE = 1e6


def synthetic(n_rows, n_columns, seed=0):
    """Return rows in the unit cube and the labels of a smooth model, half of the rows each."""
    rng = np.random.default_rng(seed)
    Z = rng.random((n_rows, n_columns))
    score = Z @ rng.normal(size=n_columns) + 0.3 * np.sin(7 * Z[:, 0])
    return Z, (score > np.median(score)).astype(np.intp)


def time_cover(n_rows, n_columns, fast):
    """Cover a synthetic table after a small one; return the times, the peak memory and the size."""
    from onbmacf._balls.cover import build_cover

    build_cover(*synthetic(1000, n_columns), fast=fast)
    Z, labels = synthetic(n_rows, n_columns)
    start, processor_start = time.perf_counter(), time.process_time()
    cover = build_cover(Z, labels, fast=fast)
    return {
        "seconds": time.perf_counter() - start,
        "processor_seconds": time.process_time() - processor_start,
        "peak_mb": peak_mb(),
        "balls": len(cover),
        "digest": digest(cover),
    }


def digest(cover):
    """Return a digest that differs between different covers."""
    arrays = (cover.centers, cover.radii, cover.labels, cover.owner, cover.reach)
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()[:16]


def time_fit(folder, most_rows):
    """Fit a complete dataset with the network and explain some rows."""
    from speed_method import Problem, ours, stopped
    from speed_model import FileModel

    problem, model = Problem(folder, "network"), FileModel(folder, "network")
    warnings.simplefilter("ignore")
    explain, fit_seconds = stopped(ours, problem, model)
    found, seconds = stopped(explain, problem.factuals[:most_rows])
    return {
        "table_rows": len(problem.numbers),
        "fit_seconds": fit_seconds,
        "explain_seconds": seconds,
        "rows": len(found),
        "answered": int((~np.isnan(found).any(axis=1)).sum()),
        "peak_mb": peak_mb(),
    }


def peak_mb():
    """Return the peak memory of this process, with interpreter and libraries."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) * 1024 / MEGABYTE
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (most if sys.platform == "darwin" else most * 1024) / MEGABYTE


def main():
    """Measure what the arguments ask for."""
    what, *arguments = sys.argv[1:]
    if what == "cover":
        answer = time_cover(int(arguments[0]), int(arguments[1]), arguments[2] == "fast")
    else:
        answer = time_fit(arguments[0], int(arguments[1]))
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
