"""Whether models that had no part in an answer see what it says: pictures and series, in blocks and without.

    python benchmarks/blocks.py [--quick] [--aeon WHEEL] [--guide] [--no-digits] [--json FILE] [--write PAGE]

Pictures: scikit-learn's digits, three networks, 100 fresh rows each; a support vector machine, trees and another
network confirm an answer if they give it the same label. Series: GunPoint and ItalyPowerDemand, out of the wheel of
aeon (`pip download --no-deps aeon`), with a forest on each. `--guide` adds Native Guide (instance-based
counterfactuals for time series) as tscf-eval has it, where that is installed. A page has the places `digits` and
`series`.
"""

import argparse
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from common import QUICK, SEED, about, add_output, installed, machine, save, shown
from common import table as markdown
from onbmacf import ONBMACF, Blocks

SURE = {"min_neighbours": 4, "min_probability": 0.99, "plausibility": 1}
GRID = Blocks.grid((8, 8), 2)
WAYS = {
    "pixels, default": (None, {}),
    "pixels, plausibility=1": (None, {"plausibility": 1}),
    "pixels, min_neighbours=4": (None, {"min_neighbours": 4}),
    "pixels, min_neighbours=4, min_probability=0.99, plausibility=1": (None, SURE),
    "blocks, default": (GRID, {}),
    "blocks, min_neighbours=4": (GRID, {"min_neighbours": 4}),
    "blocks, min_neighbours=4, plausibility=1": (GRID, {"min_neighbours": 4, "plausibility": 1}),
    "blocks, min_neighbours=4, min_probability=0.99, plausibility=1": (GRID, SURE),
}
GUIDES = ("blend", "ng")  # the original averages; the other copies a window of the nearest series of another label
SETS = ("GunPoint", "ItalyPowerDemand")
SEGMENTS = {"GunPoint": (150, 10), "ItalyPowerDemand": (24, 2)}


def judged(answers, judges, n_columns):
    """Return what answers are worth: the share that each judge confirms, and how much changes."""
    found = [one.counterfactuals[0] for one in answers if one.counterfactuals]
    values = np.array([each.values.to_numpy(float) for each in found]).reshape(-1, n_columns)
    labels = np.array([each.label for each in found])
    return rated(values, labels, judges) | {"changed": float(np.median([each.n_changes for each in found]))}


def rated(values, labels, judges):
    """Return how many rows there are, and the share of them of which each judge says the same label."""
    shares = {name: float((judge.predict(values) == labels).mean()) for name, judge in judges.items()}
    return {"n": len(values), **shares}


def digits(n_rows, n_networks):
    """Yield one line per way to ask and network."""
    pixels, labels = load_digits(return_X_y=True)
    for seed in range(n_networks):
        order = np.random.default_rng(SEED + seed).permutation(len(pixels))
        fitted, fresh = order[:1400], pixels[order[1400 : 1400 + n_rows]]
        given = pixels[fitted], labels[fitted]
        model = MLPClassifier((64,), max_iter=400, random_state=seed).fit(*given)
        judges = {
            "SVM": SVC(random_state=SEED).fit(*given),
            "random forest": RandomForestClassifier(300, random_state=SEED).fit(*given),
            "extra trees": ExtraTreesClassifier(300, random_state=SEED).fit(*given),
            "network": MLPClassifier((100,), max_iter=400, random_state=100 + seed).fit(*given),
        }
        for way, (blocks, asked) in WAYS.items():
            explainer = ONBMACF().fit(pixels[fitted], model, blocks=blocks)
            start = time.perf_counter()
            answers = explainer.explain(fresh, **asked)
            seconds = (time.perf_counter() - start) / n_rows
            yield {"way": way, "network_seed": seed, "seconds": seconds, **judged(answers, judges, 64)}


def read_series(wheel, name, part):
    """Return the series and labels of a file in the format of the UCR archive, as aeon ships it."""
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"aeon/datasets/data/{name}/{name}_{part}.ts").decode("utf-8")
    lines = text.partition("@data")[2].split()
    parts = [line.split(":") for line in lines]
    return np.array([[float(value) for value in values.split(",")] for values, _ in parts]), np.array(
        [int(label) for _, label in parts]
    )


def series(wheel, n_rows, with_guide):
    """Yield one line per set of series and way to ask."""
    for name in SETS:
        fitted, labels = read_series(wheel, name, "TRAIN")
        fresh = read_series(wheel, name, "TEST")[0][:n_rows]
        model = RandomForestClassifier(200, random_state=SEED).fit(fitted, labels)
        judges = {
            "SVM": SVC(random_state=SEED).fit(fitted, labels),
            "extra trees": ExtraTreesClassifier(300, random_state=SEED).fit(fitted, labels),
            "network": MLPClassifier((100,), max_iter=1000, random_state=SEED).fit(fitted, labels),
        }
        ways = {
            "values, default": (None, {}),
            "segments, min_neighbours=4, plausibility=0.2": (
                Blocks.segments(*SEGMENTS[name]),
                {"min_neighbours": 4, "plausibility": 0.2},
            ),
            "segments, default": (Blocks.segments(*SEGMENTS[name]), {}),
            "segments, min_neighbours=4": (Blocks.segments(*SEGMENTS[name]), {"min_neighbours": 4}),
        }
        for way, (blocks, asked) in ways.items():
            explainer = ONBMACF().fit(fitted, model, blocks=blocks)
            start = time.perf_counter()
            answers = explainer.explain(fresh, **asked)
            seconds = (time.perf_counter() - start) / len(fresh)
            line = judged(answers, judges, fitted.shape[1])
            yield {"set": name, "length": fitted.shape[1], "way": way, "seconds": seconds, "asked": len(fresh), **line}
        if with_guide:
            for method in GUIDES:
                line = native_guide(method, model, (fitted, labels), fresh, judges)
                way = {"set": name, "length": fitted.shape[1], "way": f"Native Guide, {method}", "asked": len(fresh)}
                yield way | line


def native_guide(method, model, given, fresh, judges):
    """Return the same figures of the answers of Native Guide."""
    from tscf_eval.counterfactuals import NativeGuide

    guide = NativeGuide(model, given, method=method)
    start, found, said, rows = time.perf_counter(), [], [], []
    own = model.predict(fresh)
    for row, before in zip(fresh, own, strict=True):
        values, label, _ = guide.explain(row)
        if values is not None and label != before:
            found.append(np.asarray(values, dtype=float).reshape(-1))
            said.append(label)
            rows.append(row)
    seconds = (time.perf_counter() - start) / len(fresh)
    changed = float(np.median((np.array(found) != np.array(rows)).sum(axis=1))) if found else None
    return {"seconds": seconds, "changed": changed, **rated(np.array(found), np.array(said), judges)}


def averaged(lines, key):
    """Return one line per way: the mean over networks of all that is a number."""
    ways = dict.fromkeys(line[key] for line in lines)
    same = {way: [line for line in lines if line[key] == way] for way in ways}
    names = [name for name, value in lines[0].items() if isinstance(value, int | float)]
    means = {way: {name: float(np.mean([one[name] for one in some])) for name in names} for way, some in same.items()}
    return [{key: way, **figures} for way, figures in means.items()]


def text_of(lines, key, judges, changed):
    """Return lines as Markdown."""
    heads = [key, "answers", *judges, changed, "seconds per row"]
    cells = []
    for one in lines:
        shares = [shown(one[judge], 2) for judge in judges]
        cells.append([str(one[key]), f"{one['n']:.0f}", *shares, shown(one["changed"], 0), shown(one["seconds"], 3)])
    return markdown(heads, cells)


def main():
    """Measure all, print the tables, and write them where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_output(parser)
    parser.add_argument("--aeon", type=Path, help="the wheel of aeon; without it the series are left out")
    parser.add_argument("--guide", action="store_true", help="also Native Guide, as tscf-eval has it")
    parser.add_argument("--no-digits", action="store_true", help="the series alone")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    quick, facts = options.quick, machine()
    if options.guide:
        facts["versions"]["tscf-eval"] = installed("tscf-eval")
    told, texts, lines, pictures = f"{about(facts)}\n", {}, [], []
    if not options.no_digits:
        pictures = list(digits(10 if quick else 100, 1 if quick else 3))
        judges = ("SVM", "random forest", "extra trees", "network")
        texts["digits"] = text_of(averaged(pictures, "way"), "way", judges, "pixels (median)") + "\n" + told
    if options.aeon is not None:
        lines = list(series(options.aeon, 10 if quick else 100, options.guide))
        named = [{**one, "way": f"{one['set']}: {one['way']}"} for one in lines]
        texts["series"] = text_of(named, "way", ("SVM", "extra trees", "network"), "values (median)") + "\n" + told
    for text in texts.values():
        print(QUICK * quick + text)
    save(options, {"machine": facts, "digits": pictures, "series": lines}, texts)


if __name__ == "__main__":
    main()
