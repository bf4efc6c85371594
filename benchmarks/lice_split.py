"""What was published with LiCE (ICLR 2025), read in place, and its rules and distance in this package's words.

    folder of one split  ->  Split  ->  fitted: an explainer in their distance; rules_of: what one row may become

The encoding is that of the source of the repository Epanemu/LiCE, whose networks confirm it: numbers by the range of
the training rows, a column per level in sorted order, education's in the order of school. In any other order of
education the networks of adult fit their own training rows much worse (AUC .84 to .86 instead of .90).
"""

from functools import cached_property

import numpy as np
import pandas as pd
from scipy.stats import median_abs_deviation
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from onbmacf import ONBMACF, Rule, Rules, Schema
from onbmacf.io import load_model

PER_DEVIATION = 1.48  # what they multiply a standard deviation by
SCHOOL = ["Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college"]
SCHOOL += ["Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate"]
EMPLOYED = ["A71", "A72", "A73", "A74", "A75"]
LIABLE = "Number of people being liable to provide maintenance for"
RATE = "Installment rate in percentage of disposable income"
SINCE, HOME, AMOUNT = "Present employment since", "Present residence since", "Credit amount"
ORDERED = {"education": SCHOOL, SINCE: EMPLOYED}
IMMUTABLE = {"adult": ("race", "sex"), "credit": (LIABLE, "Personal status and sex", "foreign worker")}
AGE = {"adult": "age", "credit": "Age"}
BOUNDS = {"hours-per-week": (0, 99), "Age": (0, 100), RATE: (0, 100)}
DECIMALS = {AMOUNT: 0, RATE: 3}  # of the numbers that need not be whole: 18,000 and 3,000 values


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
        return (self.outputs(rows) > 0).astype(int)

    def outputs(self, rows):
        """Return the network's one output: the log odds of class 1."""
        session = self.network.session
        given = self.encoded(rows).astype(np.float32)
        return session.run(None, {session.get_inputs()[0].name: given})[0].ravel().astype(float)

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


class Asked:
    """A split's network as a model of rows: the classes, and their probabilities."""

    classes_ = np.array([0, 1])

    def __init__(self, split):
        self.predict, self.outputs = split.labels, split.outputs

    def predict_proba(self, rows):
        """Return the probabilities of both classes."""
        one = 1.0 / (1.0 + np.exp(-self.outputs(rows)))
        return np.column_stack([1.0 - one, one])


# --- their rules and distance, in our words ---------------------------------------------------------------------------


def rules_of(split, row):
    """Return what a row may become.

    Levels have no order here, for a change of level costs by level, not by rank: `up` is said as forbidden pairs, and
    "employment rises" as "employment is" any of the levels above the row's own.
    """
    rules = {name: Rule(low=low, high=high) for name in split.numbers for low, high in [split.ends(name)]}
    age = AGE[split.name]
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
    return ONBMACF(metric=metric_of(split, schema, rows)).fit(rows, Asked(split), schema=schema)


def broken(split, before, after):
    """Return what an answer breaks of the published rules, each written by hand."""
    is_adult, age = split.name == "adult", AGE[split.name]
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
