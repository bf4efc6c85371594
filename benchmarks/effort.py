"""What `effort` buys: rows asked, distance, objective and time of one row per call, beside NICE on the same rows.

    python benchmarks/effort.py [--quick] [--rows 60] [--tables heloc,saheart] [--models forest,network]
                                [--cache FOLDER] [--json FILE] [--write docs/speed/README.md]

The pipelines are those of speed_models.py, called and not read. The objective is what the search makes small: the
distance, 0.03 for each changed feature, and the price of neighbours of another label (src/onbmacf/_search/choose.py).
Each pair of table and model has a process of its own; the methods take turns row by row.
"""

import argparse
import sys

import numpy as np

from common import QUICK, TARGET, add_output, child, machine, names, printed, save, table
from speed_methods import Run, take_turns
from speed_models import MODELS, TABLES, load_case

EFFORTS = (0.125, 0.25, 0.5, 1, 2)
DIAL = 0.5  # the default of `plausibility`


def main():
    """Measure, print, and write the results."""
    if sys.argv[1:2] == ["--pair"]:
        name, model, cache, rows = sys.argv[2:]
        return printed(measure, name, model, cache, int(rows))
    options = parsed()
    results = {"machine": machine(), "pairs": {}}
    for name in options.tables:
        for model in options.models:
            found = child("effort.py", "--pair", name, model, options.cache, options.rows, cache=options.cache)
            results["pairs"][f"{TABLES[name]}, {MODELS[model]}"] = found
    text = QUICK * options.quick + page(results["pairs"])
    print(text)
    save(options, results, {"effort": text})
    return None


def parsed(arguments=None):
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=60, help="rows per pair")
    parser.add_argument("--tables", type=names, default=["heloc", "saheart"])
    parser.add_argument("--models", type=names, default=["forest", "network"])
    add_output(parser)
    options = parser.parse_args(arguments)
    if options.quick:
        options.rows, options.tables, options.models = min(options.rows, 5), ["saheart"], ["network"]
    return options


def measure(name, model, cache, most):
    """Return the figures of each effort, and of NICE, on one pair."""
    case = load_case(name, model, cache)
    rows = case.factuals(most)
    runs = {f"effort {effort:g}": Run("ours", case, rows, effort=effort) for effort in EFFORTS}
    runs["NICE"] = Run("nice", case, rows)
    for run in runs.values():
        run.call(rows[0])
    take_turns(list(runs.values()), rows)
    worth = Worth(case, runs["effort 1"].explain.explainer.fitted_)
    return {name: run.result() | worth(rows, run.found) for name, run in runs.items()}


class Worth:
    """The objective of any row as a counterfactual, by the map of the package: what its search chooses by."""

    def __init__(self, case, fitted):
        self.case, self.fitted = case, fitted
        self.target = fitted.black_box.classes.tolist().index(TARGET)
        centers = fitted.cover.centers[fitted.cover.labels == self.target]
        self.centers = fitted.Z[centers]

    def __call__(self, rows, found):
        """Return the mean objective of the valid answers, and that of each row (or None)."""
        from onbmacf._balls.distance import distances
        from onbmacf._search.choose import POWER, SPARSITY, price_of

        values = []
        for row, frame in zip(rows, found, strict=True):
            if frame is None or self.case.model.predict(frame)[0] != TARGET:
                values.append(None)
                continue
            own = self.case.take([row])
            frame = frame.astype(own.dtypes.to_dict())
            z, point = self.fitted.space.encode(own), self.fitted.space.encode(frame)
            n_changed = int((own.to_numpy() != frame.to_numpy()).sum())
            apart = distances(z, point, "manhattan")[0, 0] + SPARSITY * n_changed
            price = price_of(DIAL, distances(z, self.centers, "manhattan").min(axis=1))[0]
            missing = 1 - self.fitted.map.share(point, np.array([self.target]))[0]
            values.append(float(apart + price * missing**POWER))
        known = [value for value in values if value is not None]
        return {"objective": float(np.mean(known)) if known else None, "objectives": values}


COLUMNS = {  # figure: heading and digits
    "rows_asked": ("rows asked", 0),
    "calls": ("calls", 0),
    "success": ("success", 2),
    "distance": ("distance", 3),
    "changes": ("changes", 2),
    "objective": ("objective", 3),
    "cpu_ms": ("CPU ms", 1),
}


def page(pairs):
    """Return one line per pair and effort; rows, calls and time are medians, the others means."""
    lines = []
    for pair, found in pairs.items():
        if "failed" in found:
            lines.append([pair, f"not measured: {found['failed'][:100]}", *[""] * len(COLUMNS)])
            continue
        for name, own in found.items():
            cells = ["none" if own[key] is None else f"{own[key]:.{digits}f}" for key, (_, digits) in COLUMNS.items()]
            lines.append([pair, name, *cells])
    return table(["table, model", "", *(head for head, _ in COLUMNS.values())], lines)


if __name__ == "__main__":
    main()
