"""What `prove=True` proves and costs on heloc: a forest, boosted trees and networks, most features fixed and none.

    python benchmarks/prove_heloc.py [--rows 200] [--models forest,xgboost]

The table is found as the benchmark finds it (the variable ONBMACF_DATA). Prints a table in Markdown. "False" counts
answers to which the model does not say the target or which change a fixed feature, and proofs of none that one of
20,000 random rows with the same fixed values contradicts. Times are CPU time that the proofs add to `explain`.
"""

import argparse
import platform
import sys
import time
import warnings
from importlib.metadata import version
from unittest import mock

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier

import onbmacf._explain.certified
from onbmacf import ONBMACF, Schema
from onbmacf.bench.datasets import load_task

SEED = 0
N_ROWS = 200
N_FIXED = 17
N_RANDOM = 20_000
MODELS = {
    "forest, 100 trees of depth 6": lambda: RandomForestClassifier(100, max_depth=6, random_state=SEED),
    "xgboost, 100 trees of depth 4": lambda: XGBClassifier(n_estimators=100, max_depth=4, random_state=SEED),
    "network, 32 and 16 units": lambda: network(32, 16),
    "network, 8 and 4 units": lambda: network(8, 4),
}
CERTIFIED = onbmacf._explain.certified.certified
HEAD = ("model", "fixed", "rows", "nearest", "within 5 %", "none exists", "open", "found by the proof alone", "nearer")
TAIL = ("false", "ms per row: median", "95th percentile", "mean with all that rows share")


def network(*units):
    """Return a network that is not trained yet."""
    return make_pipeline(StandardScaler(), MLPClassifier(units, early_stopping=True, random_state=SEED))


class Watched:
    """The proofs of a call, watched: CPU seconds of each row and of all, and what the search had found before."""

    def __init__(self):
        self.seconds, self.whole, self.before = [], 0.0, None

    def certified(self, asker, found):
        """Prove as `explain` does."""
        apart = onbmacf._explain.certified._distances(asker, found)
        self.before = {line: apart[found.factual == line].min(initial=np.inf) for line in range(len(asker.factuals.z))}
        start = time.process_time()
        result = CERTIFIED(asker, found)
        self.whole = time.process_time() - start
        return result

    def of_row(self, plain):
        """Return the proof of one row, timed."""

        def timed(proofs, place, distance):
            proofs.prover  # noqa: B018 - the model is read once for all rows
            start = time.process_time()
            proof = plain(proofs, place, distance)
            self.seconds.append(time.process_time() - start)
            return proof

        return timed


def main() -> None:
    """Print the table and what it was made with."""
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=N_ROWS)
    parser.add_argument("--models", type=lambda text: text.split(","), default=[""], help="how their names begin")
    options = parser.parse_args()
    task = load_task("heloc")
    print("| " + " | ".join((*HEAD, *TAIL)) + " |")
    print("|" + "---|" * len((*HEAD, *TAIL)))
    for name, make in MODELS.items():
        if not name.startswith(tuple(options.models)):
            continue
        model = make().fit(task.table, task.y)
        for n_fixed in (N_FIXED, 0):
            print("| " + " | ".join(map(str, line(task.table, name, model, n_fixed, options.rows))) + " |", flush=True)
    names = ("onbmacf", "scikit-learn", "xgboost", "numpy")
    packages = ", ".join(f"{package} {version(package)}" for package in names)
    print(f"\nSeed {SEED}. Python {platform.python_version()}, {packages}; {platform.machine()}, CPU time.")


def line(table, name, model, n_fixed, n_rows):
    """Return a line of the table: one model, so many features fixed."""
    random = np.random.default_rng(SEED)
    rejected = table[model.predict(table) == 0]
    rows = rejected.iloc[np.sort(random.choice(len(rejected), n_rows, replace=False))]
    fixed = [table.columns[place] for place in np.sort(random.choice(table.shape[1], n_fixed, replace=False))]
    explainer = ONBMACF().fit(table, model, schema=Schema.infer(table, immutable=fixed))
    explainer.explain(rows.iloc[:2], 1, prove=True)  # what a process does once is not timed
    watched = Watched()
    proofs = onbmacf._explain.certified._Proofs
    with (
        mock.patch.object(onbmacf._explain.certified, "certified", watched.certified),
        mock.patch.object(proofs, "of_row", watched.of_row(proofs.of_row)),
    ):
        answers = explainer.explain(rows, 1, prove=True)
    certificates = [answer.certificate for answer in answers]
    kinds = [str(one.kind) for one in certificates]
    near = sum(one.kind == "within" and one.gap <= 0.05 for one in certificates)
    after = [min((c.distance for c in answer.counterfactuals), default=np.inf) for answer in answers]
    gains = [(watched.before[place], distance) for place, distance in enumerate(after)]
    new = sum(np.isinf(old) and np.isfinite(distance) for old, distance in gains)
    nearer = sum(np.isfinite(old) and distance < old * (1 - 1e-9) for old, distance in gains)
    n_false = sum(is_false(answer, model, table, fixed, random) for answer in answers)
    n_open = n_rows - kinds.count("nearest") - kinds.count("none_exists") - near
    seconds = (np.median(watched.seconds), np.quantile(watched.seconds, 0.95), watched.whole / n_rows)
    counts = (kinds.count("nearest"), near, kinds.count("none_exists"), n_open, new, nearer, n_false)
    return name, n_fixed, n_rows, *counts, *(f"{1e3 * value:.1f}" for value in seconds)


def is_false(answer, model, table, fixed, random):
    """Say whether an answer is not one, or whether a proof of none is contradicted."""
    if answer.counterfactuals:
        found = answer.counterfactuals[0]
        said = model.predict(found.values.to_frame().T.astype(table.dtypes.to_dict()))[0]
        return said != 1 or any(name in fixed for name in found.changed)
    rows = table.sample(N_RANDOM, replace=True, random_state=int(random.integers(1 << 31))).reset_index(drop=True)
    for name in table.columns:
        rows[name] = answer.factual[name] if name in fixed else rows[name].sample(frac=1, random_state=SEED).to_numpy()
    return bool((model.predict(rows.astype(table.dtypes.to_dict())) == 1).any())


if __name__ == "__main__":
    sys.exit(main())
