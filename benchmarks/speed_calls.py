"""The calls and distances of one run of `speed_one.py`, beside those that earlier runs recorded on the same labels.

    python benchmarks/speed_calls.py NOW.json EARLIER.json BEFORE.json

NOW may have measured this package alone: counts and distances can be compared across runs, times cannot. A pair whose
pipeline labels the table otherwise than in an earlier run is not compared with it.
"""

import json
import sys
from pathlib import Path

import numpy as np

from speed_pipelines import MODELS, TABLES

HEAD = ("table", "model", "calls: median / worst", "earlier", "distance over the earlier", "over before", "over NICE's")
MOST_CALLS = (12, 18)  # median and worst


def main():
    """Print the table, and how many pairs keep each target."""
    now, earlier, before = (json.loads(Path(path).read_text(encoding="utf-8"))["pairs"] for path in sys.argv[1:4])
    pairs = [(table, model) for table in now for model in now[table]]
    lines = [line(*(found.get(table, {}).get(model, {}) for found in (now, earlier, before))) for table, model in pairs]
    print(f"| {' | '.join(HEAD)} |\n|{' --- |' * len(HEAD)}")
    for (table, model), values in zip(pairs, lines, strict=True):
        print(f"| {TABLES[table]} | {MODELS[model]} | {' | '.join(map(shown, values))} |")
    calls = [values[0] for values in lines if values[0] is not None]
    for name, most, own in zip(("median", "worst"), MOST_CALLS, np.transpose(calls), strict=True):
        print(f"\n{name} of at most {most} calls: {int((own <= most).sum())} of {len(pairs)} pairs.")


def line(now, earlier, before):
    """Return the calls of now and earlier, and the ratios of distances."""
    ratios = [ratio(now, earlier, "ours"), ratio(now, before, "ours"), ratio(now, earlier, "nice")]
    return [calls(now), calls(earlier), *ratios]


def calls(pair):
    """Return the median and the largest number of calls of this package; None where it failed."""
    own = pair.get("methods", {}).get("ours", {})
    return (own["calls"], own["calls_worst"]) if "calls" in own else None


def ratio(now, then, method):
    """Return the distance of now over that of a method then, on the rows that both answered; None if not the same."""
    found = now.get("methods", {}).get("ours", {}), then.get("methods", {}).get(method, {})
    if now.get("labels") != then.get("labels") or not all(own.get("distances") for own in found):
        return None
    most = min(len(own["distances"]) for own in found)
    own, other = (np.array(one["distances"][:most], dtype=float) for one in found)
    both = ~(np.isnan(own) | np.isnan(other))
    return float(own[both].sum() / other[both].sum())


def shown(value):
    """Return a cell's text."""
    if value is None:
        return "-"
    return f"{value[0]:g} / {value[1]:g}" if isinstance(value, tuple) else f"{value:.3f}"


if __name__ == "__main__":
    main()
