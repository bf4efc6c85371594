"""LiCE's tables (ICLR 2025): its networks, rows, rules and measures, asked with this package, beside what it published.

    python benchmarks/lice.py [--tables adult,credit] [--splits 0,1,2,3,4] [--rows 100] [--write docs/benchmark/lice.md]

    Split  ->  answers of each way, kept in build/lice  ->  measured as they measure  ->  tables

What was published with the paper is no part of the project: it is looked for in `lice` in the folder of the tables
(ONBMACF_DATA). The metric of the explainer is their distance, so a proof is about what their mixed-integer program
minimises. What was made is not made again: delete `build/lice` for that. `HiGHS` is no way to ask this package, but
their program, solved by another solver (`lice_program.py`).
"""

import argparse
import json
import os
import sys
import time
from functools import cached_property
from pathlib import Path

import pandas as pd

from common import about, fill, machine, names, table
from lice_program import checked
from lice_split import Split, broken, fitted, rules_of

KEPT = Path("build/lice")
N_FITTED = 2000  # rows of the map: a metric that is a function is asked for every two of them
PROGRAM_SECONDS = 60.0  # for HiGHS, of each of the two programs of a row
NEAR = 0.05
WAYS = {  # arguments of `explain`
    "default": {"min_probability": 0},
    "dial 0": {"plausibility": 0.0, "min_probability": 0},
    "proven": {"plausibility": 0.0, "prove": True},
}
HIGHS = "HiGHS"
SAID = {"default": "here, default", "dial 0": "here, `plausibility=0`", "proven": "here, `prove=True`"}
PUBLISHED = {  # distance, its standard deviation, changes, valid and actionable in per cent, seconds per row
    "adult": {
        "MIO": (5.82, 3.84, 2.24, 100, 100, "1.5"),
        "LiCE (optimize)": (5.62, 3.84, 2.07, 100, 100, "34"),
        "LiCE (quartile)": (5.68, 3.92, 2.08, 100, 100, "11"),
        "LiCE (median)": (9.74, 6.56, 3.00, 90.6, 90.6, "18"),
        "PROPLACE": (23.24, 8.60, 4.78, 79.8, 54.8, "0.35"),
        "FACE (epsilon)": (15.22, 9.07, 3.78, 63.2, 31.2, "7.3"),
        "FACE (knn)": (14.30, 7.79, 3.70, 79.8, 45.4, "7.1"),
        "C-CHVAE": (8.22, 5.20, 2.82, 13.4, 9.0, "0.7"),
        "DiCE": (26.70, 13.1, 4.48, 99.8, 65.4, "18"),
    },
    "credit": {
        "MIO": (4.39, 2.82, 2.34, 99.4, 99.4, "1.6"),
        "LiCE (optimize)": (4.39, 2.84, 2.27, 99.4, 99.4, "3.1"),
        "LiCE (quartile)": (4.30, 2.81, 1.95, 99.4, 99.4, "2.7"),
        "LiCE (median)": (4.37, 2.88, 2.08, 99.4, 99.4, "2.9"),
        "PROPLACE": (24.39, 6.68, 8.96, 28.2, 9.6, "0.29"),
        "FACE (epsilon)": (18.43, 6.01, 7.04, 28.0, 10.4, "5.1"),
        "FACE (knn)": (18.64, 6.28, 7.06, 28.2, 11.2, "5.2"),
        "C-CHVAE": (12.95, 4.79, 6.64, 11.6, 9.6, "0.6"),
        "DiCE": (27.75, 7.20, 8.70, 99.2, 3.4, "145"),
    },
}


# --- measured as they measure -----------------------------------------------------------------------------------------


def answered(split, explainer, rows, way, seconds):
    """Return a line per row: whether there is an answer, valid and actionable, how far, and what is proven."""
    how = dict(WAYS[way])
    if "prove" in how:
        how |= {"prove": split.pipeline, "prove_seconds": seconds}
    start = time.perf_counter()
    rules = [rules_of(split, row) for _, row in rows.iterrows()]
    target = pd.Series(1 - split.labels(rows), index=rows.index)
    answers = explainer.explain(rows, target, rules=rules, **how)
    took = (time.perf_counter() - start) / len(rows)
    return [line_of(split, rows.iloc[[at]], one) | {"s": took} for at, one in enumerate(answers)]


def line_of(split, row, answer):
    """Return what there is to say of one answer, by their measures."""
    line = {"row": int(row.index[0]), "status": str(answer.status), "reason": answer.reason}
    if answer.certificate is not None:
        one = answer.certificate
        line |= {"kind": str(one.kind), "bound": one.bound, "proof s": one.seconds, "why": one.reason}
    if not answer.counterfactuals:
        return line
    after = answer.counterfactuals[0].values.to_frame().T.astype(row.dtypes.to_dict())
    before = row.iloc[0]
    valid = bool(split.labels(after)[0] != split.labels(row)[0])
    return line | {
        "distance": float(split.distances(row, after)[0]),
        "told": float(answer.counterfactuals[0].distance),
        "changes": int((after.iloc[0] != before).sum()),
        "valid": valid,
        "actionable": valid and not broken(split, before, after.iloc[0]),
    }


# --- made once --------------------------------------------------------------------------------------------------------


class Run:
    """The answers of one split, made now or before."""

    def __init__(self, options, name, at):
        self.options, self.name, self.at = options, name, at

    @cached_property
    def split(self):
        """What was published."""
        return Split(self.options.data / self.name / str(self.at), self.name)

    @cached_property
    def explainer(self):
        """One for all ways."""
        return fitted(self.split, self.options.fitted)

    def lines(self, way):
        """Return a line per row."""
        kept = self.options.kept / f"{self.name}-{self.at}-{way.replace(' ', '')}-{self.options.rows}.json"
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(self._made(way)), encoding="utf-8")
        return json.loads(kept.read_text(encoding="utf-8"))

    def _made(self, way):
        if way == HIGHS:
            return checked(self.split, self.lines("proven"), PROGRAM_SECONDS)
        return answered(
            self.split, self.explainer, self.split.rows.iloc[: self.options.rows], way, self.options.seconds
        )


# --- the tables -------------------------------------------------------------------------------------------------------


def beside(name, frames):
    """Return a table's rows: what was published, then what was made here."""
    heads = ["method", "rows answered", "distance", "changes", "valid", "actionable", "s per row"]
    lines = [
        [method, "published", f"{distance:.2f} ({spread:.2f})", f"{changes:.2f}", f"{valid} %", f"{actionable} %", took]
        for method, (distance, spread, changes, valid, actionable, took) in PUBLISHED[name].items()
    ]
    for way, frame in frames.items():
        found = frame["distance"].dropna()
        shares = [f"{100 * (frame[what] == 1).mean():.1f} %" for what in ("valid", "actionable")]
        line = [SAID[way], f"{len(found)} of {len(frame)}", f"{found.mean():.2f} ({found.std(ddof=0):.2f})"]
        lines.append([*line, f"{frame['changes'].mean():.2f}", *shares, f"{frame['s'].mean():.2g}"])
    return table(heads, lines)


def proofs(name, frame):
    """Return a line on what is proven."""
    kinds, gap = frame["kind"], frame["distance"] / frame["bound"] - 1.0
    n_near, n_nearest = ((kinds == "within") & (gap <= NEAR)).sum(), (kinds == "nearest").sum()
    counts = [len(frame), n_nearest, n_near, len(frame) - n_nearest - n_near]
    return [name, *map(str, counts), f"{frame['proof s'].median():.2f}", f"{frame['bound'].mean():.2f}"]


def agreement(name, frame, program):
    """Return a line on how what is proven, and what is not, compares with what HiGHS says of the same rows."""
    is_proven = frame["kind"] == "nearest"
    nearer = frame["distance"] - program["distance"]
    is_better = nearer > 0.001 * frame["distance"]
    line = [name, len(frame), is_proven.sum(), f"{nearer[is_proven].abs().max():.6f}", (is_better & is_proven).sum()]
    line += [is_better.sum(), (nearer < -0.001).sum(), f"{frame['distance'].mean():.3f}"]
    return [*map(str, line), f"{program['distance'].mean():.3f}", f"{program['s'].mean():.2g}"]


PROVEN = ["table", "rows", "nearest", "within 5 %", "open", "s of a proof, median", "mean of the bounds"]
AGREED = ["table", "rows", "proven nearest", "most by which HiGHS differs there", "HiGHS nearer there", "HiGHS nearer"]
AGREED += ["HiGHS farther", "mean distance here", "of HiGHS", "s per row of HiGHS"]


def main():
    """Make what has not been made, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("ONBMACF_DATA", "../shared/data")) / "lice")
    parser.add_argument("--tables", type=names, default=["adult", "credit"])
    parser.add_argument("--splits", type=names, default=["0", "1", "2", "3", "4"])
    parser.add_argument("--check", type=names, default=["0"], help="splits whose proofs are compared with HiGHS")
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--fitted", type=int, default=N_FITTED, help="rows of the map")
    parser.add_argument("--seconds", type=float, default=1.0, help="for the proof of a row")
    parser.add_argument("--kept", type=Path, default=KEPT, help="where answers are kept")
    parser.add_argument("--write", type=Path, help="put the tables into the places of this page")
    options = parser.parse_args()
    places, proven, agreed = {}, [], []
    for name in options.tables:
        runs = [Run(options, name, at) for at in options.splits]
        made = [{way: run.lines(way) for way in WAYS} for run in runs]
        frames = {way: pd.DataFrame([line for each in made for line in each[way]]) for way in WAYS}
        checks = [Run(options, name, at) for at in options.check]
        pairs = [pd.DataFrame([line for run in checks for line in run.lines(way)]) for way in ("proven", HIGHS)]
        places[name] = beside(name, frames)
        proven.append(proofs(name, frames["proven"]))
        agreed.append(agreement(name, *pairs))
    places["proofs"] = table(PROVEN, proven) + "\n" + about(machine())
    places["agreement"] = table(AGREED, agreed)
    print("\n".join(places.values()))
    if options.write is not None:
        fill(options.write, places)


if __name__ == "__main__":
    sys.exit(main())
