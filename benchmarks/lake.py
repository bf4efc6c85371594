"""A table larger than memory: parquet files made, mapped on a cluster of this machine, and the map verified apart.

    python benchmarks/lake.py FOLDER [--rows 20000000] [--files 50] [--workers 2] [--memory 1.5GB] [--coverage 0.999]
    python benchmarks/lake.py FOLDER --rows 200000 --same

The rows are those of a seed, 10 uniform columns with smooth labels. Reported are the time, the largest memory of any
process, balls, and what an independent pass finds: rows of another label in a ball, and rows in a ball of their own.
`--same` compares maps of 7, 50 and 200 partitions, 1 and 2 workers, permuted files and with a worker killed in each
pass.
"""

import argparse
import hashlib
import json
import os
import shutil
import signal
import threading
import time
import warnings
from pathlib import Path

import numpy as np

N_COLUMNS, PART, SEED = 10, 100_000, 0


def scores(rows):
    """Return the smooth scores of rows."""
    weights = np.random.default_rng(SEED).normal(size=N_COLUMNS)
    values = np.asarray(rows, dtype=np.float64)
    return (values * weights).sum(axis=1) - weights.sum() / 2 + 0.3 * np.sin(7 * values[:, 0])


def model(rows):
    """Return the labels of rows."""
    return (scores(rows) > 0).astype(np.int64)


def made(folder, n_rows, n_files, permuted=False):
    """Write files of rows; with the same seed the same rows, however many files there are."""
    import pandas as pd

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    starts = range(0, n_rows, PART)
    blocks = np.random.default_rng(1).permutation(len(starts)) if permuted else np.arange(len(starts))
    names = [f"x{at}" for at in range(N_COLUMNS)]
    left, number, size = [], 0, -(-n_rows // n_files)
    for block in blocks:
        rng = np.random.default_rng([SEED, int(block)])
        left.append(rng.random((min(PART, n_rows - int(block) * PART), N_COLUMNS)).round(6))
        while sum(map(len, left)) >= size or (block == blocks[-1] and left):
            rows = np.concatenate(left)
            pd.DataFrame(rows[:size], columns=names).to_parquet(folder / f"part-{number:05d}.parquet", index=False)
            left, number = ([rows[size:]] if len(rows) > size else []), number + 1
    return sorted(folder.iterdir())


def mapped(files, options, watch=None):
    """Fit on a cluster of this machine; return the explainer, the seconds and the largest memory of a process."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    from onbmacf import ONBMACF

    how = {"n_workers": options.workers, "threads_per_worker": 1, "memory_limit": options.memory}
    with LocalCluster(**how, dashboard_address=None) as cluster, Client(cluster) as client:
        if watch is not None:
            watch(client)
        start = time.perf_counter()
        explainer = ONBMACF(cover_rows=options.cover_rows).fit(
            dd.read_parquet(files), model, client=client, coverage=options.coverage, passes=options.passes
        )
        seconds = time.perf_counter() - start
        peaks = [*client.run(peak_mb).values(), peak_mb()]
    return explainer, seconds, max(peaks)


def peak_mb():
    """Return the largest memory that this process has had."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) * 1024 / 1e6


def verified(explainer, files, n_balls=2000):
    """Count, by plain differences, the enemies in some balls among all rows; and of some rows, those in a ball."""
    import pandas as pd

    cover, space, rng = explainer.cover_, explainer.fitted_.space, np.random.default_rng(2)
    some = np.sort(rng.choice(len(cover), min(n_balls, len(cover)), replace=False))
    centers, radii, labels = explainer.Z_[cover.centers], cover.radii, cover.labels
    inside, equal, covered, looked = 0, np.full(len(some), np.inf), 0, 0
    for file in files:
        frame = pd.read_parquet(file)
        Z, said = space.encode(frame), np.searchsorted(explainer.classes_.astype(int), model(frame))
        for at, ball in enumerate(some):
            enemies = Z[said != labels[ball]]
            apart = np.zeros(len(enemies))
            for column in range(N_COLUMNS):
                apart += np.abs(enemies[:, column] - centers[ball, column])
            inside += int((apart < radii[ball]).sum())
            equal[at] = min(equal[at], apart.min())
        for row in rng.choice(len(Z), min(100, len(Z)), replace=False):
            own = labels == said[row]
            covered += bool((np.abs(centers[own] - Z[row]).sum(axis=1) < radii[own]).any())
            looked += 1
    return {"balls looked at": len(some), "enemies in them": inside, "radii exact": int((equal == radii[some]).sum()),
            "rows looked at": looked, "share of them in a ball": covered / looked}  # fmt: skip


def digest(explainer):
    """Return a digest of a map."""
    fitted = explainer.fitted_
    cover = fitted.cover
    arrays = (fitted.Z, fitted.labels, cover.centers, cover.radii, cover.labels, cover.owner, cover.reach)
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()[:16]


def killer(after):
    """Return what kills a worker some seconds after the start."""

    def watch(client):
        victim = sorted(client.run(os.getpid).values())[0]
        threading.Timer(after, os.kill, (victim, signal.SIGKILL)).start()

    return watch


def same(options):
    """Compare the maps of one table, however it is cut, ordered and worked on."""
    found = {}
    for n_files, workers, permuted in ((7, 2, False), (50, 2, False), (200, 2, False), (50, 1, False), (50, 2, True)):
        files = made(options.folder, options.rows, n_files, permuted)
        options.workers = workers
        explainer, seconds, _ = mapped(files, options)
        name = f"{n_files} files, {workers} workers{', permuted' * permuted}"
        found[name] = digest(explainer)
        print(f"{name}: {found[name]}, {seconds:.0f} s", flush=True)
    whole = seconds
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):
        explainer, seconds, _ = mapped(files, options, killer(share * whole))
        found[f"killed after {share:g}"] = digest(explainer)
        print(f"a worker killed after {share:g} of the time: {digest(explainer)}, {seconds:.0f} s", flush=True)
    print("all the same" if len(set(found.values())) == 1 else "DIFFERENT")


def main():
    """Make the files, map them, verify the map."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the files are made; it is deleted at the end")
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--files", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="1.5GB", help="of each worker")
    parser.add_argument("--coverage", type=float, default=0.999)
    parser.add_argument("--cover-rows", type=int, default=200_000)
    parser.add_argument("--passes", type=Path)
    parser.add_argument("--same", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    try:
        if options.same:
            return same(options)
        files = made(options.folder, options.rows, options.files)
        explainer, seconds, peak = mapped(files, options)
        whole = explainer.fitted_.whole
        figures = {"rows": whole.n_rows, "share": whole.share, "neighbours": whole.n_sampled,
                   "map rows": len(explainer.Z_), "balls": len(explainer.cover_), "seconds": seconds,
                   "largest process, MB": peak, "digest": digest(explainer)}  # fmt: skip
        print(json.dumps(figures), flush=True)
        print(json.dumps(verified(explainer, files, 200)), flush=True)
    finally:
        shutil.rmtree(options.folder, ignore_errors=True)
    return None


if __name__ == "__main__":
    main()
