"""LiCE's tables (ICLR 2025): its networks, rows, rules and measures, asked with this package, beside what it published.

    python benchmarks/lice.py [--tables adult,credit] [--splits 0,1,2,3,4] [--rows 100] [--write docs/benchmark/lice.md]

    published files  ->  Split  ->  answers of each way, kept in build/lice  ->  measured as they measure  ->  table

What was published with the paper is no part of the project: it is looked for in `lice` in the folder of the tables
(ONBMACF_DATA). The metric of the explainer is their distance, so a proof is about what their mixed-integer program
minimises. A split that is done is not done again; `--check` solves some of its rows once more, by HiGHS.
"""

import argparse
import json
import os
import sys
import time
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pandas as pd
from common import about, fill, machine, names, table
from onnx import numpy_helper
from optimum_programs import Moves, score_program
from scipy.stats import median_abs_deviation
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from onbmacf import ONBMACF, Rule, Rules, Schema
from onbmacf.io import load_model

KEPT = Path("build/lice")
N_FITTED = 2000  # rows of the map: a metric that is a function is asked for every two of them
PER_DEVIATION = 1.48  # what they multiply a standard deviation by
SCHOOL = ["Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college"]
SCHOOL += ["Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate"]
EMPLOYED = ["A71", "A72", "A73", "A74", "A75"]
LIABLE = "Number of people being liable to provide maintenance for"
RATE = "Installment rate in percentage of disposable income"
SINCE, HOME, AMOUNT = "Present employment since", "Present residence since", "Credit amount"
ORDERED = {"education": SCHOOL, SINCE: EMPLOYED}
IMMUTABLE = {"adult": ("race", "sex"), "credit": (LIABLE, "Personal status and sex", "foreign worker")}
BOUNDS = {"hours-per-week": (0, 99), "Age": (0, 100), RATE: (0, 100)}
DECIMALS = {AMOUNT: 0, RATE: 3}  # of the numbers that need not be whole: 18,000 and 3,000 values
WAYS = {  # arguments of `explain`
    "default": {},
    "dial 0": {"plausibility": 0.0},
    "proven": {"plausibility": 0.0, "prove": True},
}


# --- what was published -----------------------------------------------------------------------------------------------


class Split:
    """One of their splits: the rows that a network was trained on, those to be explained, their rules and distance."""

    def __init__(self, folder, name):
        self.name = name
        self.train, self.rows = (pd.read_csv(folder / f"X_{part}.csv.gz", index_col=0) for part in ("train", "subtest"))
        self.train, self.rows = (part.astype(dict.fromkeys(self.reals, float)) for part in (self.train, self.rows))
        self.network = load_model(folder / "nn.onnx")
        self.pipeline = make_pipeline(self.encoder, self.network)

    @property
    def reals(self):
        """The numbers that need not be whole."""
        return [name for name in DECIMALS if self.name == "credit"]

    @property
    def numbers(self):
        """The columns that hold numbers."""
        return [name for name in self.train if pd.api.types.is_numeric_dtype(self.train[name])]

    def ends(self, name):
        """Return the least and the largest training value of a number: their program goes no further."""
        return self.train[name].min(), self.train[name].max()

    def levels(self, name):
        """Return the levels of a category in the order of the network's columns."""
        return ORDERED.get(name, sorted(self.train[name].unique()))

    @cached_property
    def encoder(self):
        """What turns rows into the network's columns: numbers from 0 to 1, a column per level, one for two levels."""
        parts = []
        for name in self.train:
            levels = OneHotEncoder(categories=[self.levels(name)], drop="if_binary", sparse_output=False)
            parts.append((name, MinMaxScaler() if name in self.numbers else levels, [name]))
        return ColumnTransformer(parts).fit(self.train)

    def encoded(self, rows):
        """Return rows as the network's columns."""
        return self.encoder.transform(rows)

    def labels(self, rows):
        """Return the network's class of each row."""
        session = self.network.session
        given = self.encoded(rows).astype(np.float32)
        return (session.run(None, {session.get_inputs()[0].name: given})[0].ravel() > 0).astype(int)

    @cached_property
    def weights(self):
        """What a difference of 1 costs in each of the network's columns: 1 over its MAD, as they take it."""
        Z, weights = self.encoded(self.train), []
        for name in self.train:
            for _ in range(self.width(name)):
                column = Z[:, len(weights)]
                mad = median_abs_deviation(column) if name in self.numbers else 0.0
                weights.append(1.0 / (mad or PER_DEVIATION * column.std() or 1.0))
        return np.array(weights)

    def width(self, name):
        """Return how many of the network's columns a feature has."""
        return 1 if name in self.numbers or len(self.levels(name)) == 2 else len(self.levels(name))

    def distances(self, before, after):
        """Return their distance of each row of one frame to the same of another."""
        return np.abs(self.encoded(after) - self.encoded(before)) @ self.weights


# --- their rules and distance, in our words ---------------------------------------------------------------------------


def rules_of(split, row):
    """Return what a row may become.

    Levels have no order here, for a change of level costs by level, not by rank: `up` is said as forbidden pairs, and
    "employment rises" as "employment is" any of the levels above the row's own.
    """
    rules = {name: Rule(low=low, high=high) for name in split.numbers for low, high in [split.ends(name)]}
    age = "age" if split.name == "adult" else "Age"
    rules[age] = Rule("up", *split.ends(age))
    if split.name == "adult":
        down = [(one, other) for place, one in enumerate(SCHOOL) for other in SCHOOL[:place]]
        rules["education"] = Rule(forbidden=down)
        relations = ["if education changes, age must rise"]
    else:
        above = EMPLOYED[EMPLOYED.index(row[SINCE]) + 1 :]
        relations = [f"if {HOME} rises, Age must rise", *(f"if {SINCE} is {level}, Age must rise" for level in above)]
    return Rules(rules, immutable=IMMUTABLE[split.name], relations=relations)


def schema_of(split):
    """Return the features as they are to them: two levels are one column, more a column each."""
    kinds = {name: "continuous" if name in split.reals else "integer" for name in split.numbers}
    kinds |= {name: "categorical" for name in split.train if split.width(name) > 1}
    kinds |= {name: "binary" for name in split.train if name not in kinds}
    decimals = {name: DECIMALS[name] for name in split.reals}
    rules = Rules(rules_of(split, split.rows.iloc[0]).features, immutable=IMMUTABLE[split.name])
    return Schema.infer(split.train, kinds=kinds, decimals=decimals, rules=rules)


def metric_of(split, schema, fitted):
    """Return their distance as a function of two points of an explainer: a weight per column of these."""
    weights, ours = iter(split.weights.tolist()), []
    for feature in schema.features:
        theirs = [next(weights) for _ in range(split.width(feature.name))]
        if len(theirs) > 1:
            of_level = dict(zip(split.levels(feature.name), theirs, strict=True))
            theirs = [of_level[level] for level in sorted(of_level)]  # as a map orders them
        if feature.name in split.numbers:
            (low, high), values = split.ends(feature.name), fitted[feature.name]
            theirs = [theirs[0] * ((values.max() - values.min()) or 1.0) / (high - low)]
        ours += theirs
    ours = np.array(ours)

    def metric(one, other):
        return float(np.abs(one - other) @ ours)

    metric.power = 1  # differences add up: proofs can use it
    return metric


def fitted(split, n_fitted):
    """Return an explainer over the first training rows and the first of each level, whose metric is their distance."""
    named = [name for name in split.train if name not in split.numbers]
    first = pd.concat([split.train.drop_duplicates(name) for name in named])
    rows = split.train[split.train.index.isin({*first.index, *split.train.index[:n_fitted]})]
    schema = schema_of(split)
    return ONBMACF(metric=metric_of(split, schema, rows)).fit(rows, split.labels, schema=schema)


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


def broken(split, before, after):
    """Return what an answer breaks of the published rules, each written by hand."""
    is_adult = split.name == "adult"
    age = "age" if is_adult else "Age"
    found = [name for name in IMMUTABLE[split.name] if after[name] != before[name]]
    found += [age] * bool(after[age] < before[age])
    found += [n for n, (low, high) in BOUNDS.items() if n in after and not low <= after[n] <= high]
    found += [n for n in split.numbers if n not in split.reals and after[n] != round(after[n])]
    levels = SCHOOL if is_adult else EMPLOYED
    name = "education" if is_adult else SINCE
    moved = levels.index(after[name]) - levels.index(before[name])
    found += [name] * (is_adult and moved < 0)
    rises = moved > 0 or (not is_adult and after[HOME] > before[HOME])
    return found + ["rises without age"] * bool(rises and not after[age] > before[age])


# --- solved by HiGHS, to compare --------------------------------------------------------------------------------------


def layers_of(split):
    """Return the weights and offsets of the network's layers."""
    graph = onnx.load(split.network.path).graph
    given = {one.name: numpy_helper.to_array(one).astype(float) for one in graph.initializer}
    gemms = [node for node in graph.node if node.op_type == "Gemm"]
    return [(given[node.input[1]].T, given[node.input[2]]) for node in gemms]


def moves_of(split, row, most, is_older):
    """Return every move that their rules leave a row, and what it costs.

    Where the age rises or not, one of two programs each, all that depends on it is a matter of single moves.
    """
    lines, block = [], 0
    for place, name in enumerate(split.train):
        width = split.width(name)
        weights, first, block = split.weights[block : block + width], block, block + width
        if name in IMMUTABLE[split.name] or (name in ("age", "Age") and not is_older):
            continue
        found = numbers_moves if name in split.numbers else level_moves
        lines += [(*line, place) for line in found(split, row, name, weights, first, is_older)]
    lines = [line for line in lines if line[2] * (1 if line[3] else 0) <= most and line[1] > 0]
    shift = np.zeros((block, len(lines)))
    for move, (changes, *_) in enumerate(lines):
        for column, change in changes:
            shift[column, move] = change
    columns = [
        np.array([line[part] for line in lines], dtype=kind) for part, kind in ((1, float), (2, float), (3, bool))
    ]
    return Moves(shift, *columns, np.array([line[4] for line in lines], dtype=int))


def numbers_moves(split, row, name, weights, first, is_older):
    """Yield the moves of a number, up and down: what changes, how far, at what cost, whether in whole steps."""
    low, high = split.ends(name)
    is_whole, unit = name not in split.reals, 1.0 / (high - low)
    for sign, room in ((1.0, high - row[name]), (-1.0, row[name] - low)):
        is_held = (name in ("age", "Age") and sign < 0) or (name == HOME and sign > 0 and not is_older)
        if not is_held:
            yield [(first, sign * unit)], float(room), unit * weights[0], is_whole


def level_moves(split, row, name, weights, first, is_older):
    """Yield the moves to each other level."""
    levels = split.levels(name)
    own = levels.index(row[name])
    for at, level in enumerate(levels):
        rise = at - own if name in ORDERED else 0
        if at == own or (rise > 0 and not is_older) or (rise < 0 and name == "education"):
            continue
        if len(weights) == 1:
            yield [(first, float(at - own))], 1.0, weights[0], True
        else:
            yield [(first + own, -1.0), (first + at, 1.0)], 1.0, weights[own] + weights[at], True


def solved(split, row, label, most, seconds):
    """Return the least distance within their rules, as a mixed-integer program, and a bound; `most` is known."""
    sign = 1.0 if label == 0 else -1.0
    layers = layers_of(split)
    layers[-1] = tuple(sign * part for part in layers[-1])
    z, row = split.encoded(row)[0], row.iloc[0]
    least, bound = np.inf, np.inf
    groups = [SimpleNamespace(is_group=split.width(name) > 1) for name in split.train]
    for is_older in (False, True):
        moves = moves_of(split, row, most, is_older)
        older = np.flatnonzero(moves.feature == list(split.train).index("age" if split.name == "adult" else "Age"))
        if is_older and (not len(older) or moves.costs[older[0]] > most):
            continue
        program = score_program(layers, z, moves, groups, most, 0.0)
        if is_older:
            program.low[older[0]] = 1.0
        found = program.solve(seconds)
        least, bound = min(least, found.cost), min(bound, found.bound)
    return least, bound


def checked(split, lines, seconds):
    """Return what HiGHS says of each row with an answer."""
    found = []
    for line in lines:
        if "distance" not in line:
            continue
        row, start = split.rows.loc[[line["row"]]], time.perf_counter()
        least, bound = solved(split, row, split.labels(row)[0], line["distance"] * (1 + 1e-6), seconds)
        took = time.perf_counter() - start
        found.append({"row": line["row"], "least": least, "bound": bound, "distance": line["distance"], "s": took})
    return found


# --- run, once --------------------------------------------------------------------------------------------------------


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
        kept = KEPT / f"{self.name}-{self.at}-{way.replace(' ', '')}-{self.options.rows}.json"
        if not kept.exists():
            rows = self.split.rows.iloc[: self.options.rows]
            lines = answered(self.split, self.explainer, rows, way, self.options.seconds)
            KEPT.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(lines), encoding="utf-8")
        return json.loads(kept.read_text(encoding="utf-8"))


def main():
    """Run what has not been run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("ONBMACF_DATA", "../shared/data")) / "lice")
    parser.add_argument("--tables", type=names, default=["adult", "credit"])
    parser.add_argument("--splits", type=names, default=["0", "1", "2", "3", "4"])
    parser.add_argument("--ways", type=names, default=list(WAYS))
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--fitted", type=int, default=N_FITTED)
    parser.add_argument("--seconds", type=float, default=60.0, help="for the proof of a row")
    options = parser.parse_args()
    for name in options.tables:
        runs = [Run(options, name, at) for at in options.splits]
        made = [{way: run.lines(way) for way in options.ways} for run in runs]
        for way in options.ways:
            frame = pd.DataFrame([line for each in made for line in each[way]])
            found = frame["distance"].notna()
            print(
                name,
                way,
                f"{len(frame)} rows, answered {found.mean():.4f}, valid {(frame['valid'] == True).mean():.4f}, actionable {(frame['actionable'] == True).mean():.4f}, distance {frame['distance'].mean():.4f} ({frame['distance'].std():.3f}) changes {frame['changes'].mean():.3f} s {frame['s'].mean():.2f}, told off {np.abs(frame['told'] - frame['distance']).max():.2e}",
                frame.get("kind", pd.Series(dtype=str)).value_counts().to_dict(),
                flush=True,
            )


if __name__ == "__main__":
    sys.exit(main())
