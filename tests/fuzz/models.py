"""Models to fuzz with: functions of single rows, some with probabilities, some that misbehave.

Each is made for a table; numbers are read off a row by `_score`, which knows nothing of the package's own encoding.
"""

from zlib import crc32

import numpy as np
import pandas as pd


def _score(rows, weights):
    """Return a number per row: columns as numbers, or as numbers made of their text."""
    total = np.zeros(len(rows))
    for name, (weight, middle) in weights.items():
        column = rows[name]
        if column.dtype == object or column.dtype.kind not in "biuf" or pd.api.types.is_bool_dtype(column.dtype):
            values = np.array([_of_value(value) for value in column.tolist()])
        else:
            values = column.to_numpy(dtype=float)
        total += weight * (values - middle) / max(abs(middle), 1e-9)
    return total


def _of_value(value):
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else crc32(repr(value).encode()) % 97 / 97


class Scorer:
    """A threshold on the score: labels of any type, with probabilities where it is told to."""

    def __init__(self, table, seed, labels=(0, 1), has_probability=False):
        rng = np.random.default_rng(seed)
        plain = {name: _score(table[[name]], {name: (1.0, 0.0)}) * 1e-9 for name in table}
        self.weights = {name: (rng.normal(), float(np.median(plain[name]))) for name in table}
        self.cuts = np.quantile(_score(table, self.weights), np.linspace(0, 1, len(labels) + 1)[1:-1])
        self.labels = np.array(labels)
        if has_probability:
            self.classes_, self.predict_proba = self.labels, self._probability

    def predict(self, rows):
        return self.labels[np.searchsorted(self.cuts, _score(rows, self.weights))]

    def _probability(self, rows):
        at = np.searchsorted(self.cuts, _score(rows, self.weights))
        near = np.abs(_score(rows, self.weights) - self.cuts[0]) / (1 + np.abs(self.cuts[0]))
        sure = 0.5 + 0.5 * np.clip(near, 0, 1)
        found = np.repeat((1 - sure)[:, np.newaxis] / max(1, len(self.labels) - 1), len(self.labels), axis=1)
        found[np.arange(len(at)), at] = sure
        return found


def _raising(table, seed):
    model = Scorer(table, seed)

    def predict(rows):
        scores = _score(rows, model.weights)
        if (np.abs(scores * 1000 % 7) < 0.5).any() and not _all_fitted(rows, table):
            raise ArithmeticError("some rows are not liked")
        return model.predict(rows)

    return predict


def _all_fitted(rows, table):
    known = {repr(row) for row in table.astype(object).to_numpy().tolist()}
    return all(repr(row) in known for row in rows.astype(object).to_numpy().tolist())


def _with_proba(change):
    def make(table, seed):
        model = Scorer(table, seed, has_probability=True)
        own = model.predict_proba
        model.predict_proba = lambda rows: change(own(rows), rows)
        return model

    return make


def _raise(found, rows):
    raise ValueError("no probabilities today")


HONEST = {
    "ints": Scorer,
    "words": lambda table, seed: Scorer(table, seed, ("no", "yes")),
    "three": lambda table, seed: Scorer(table, seed, ("low", "mid", "top")),
    "bools": lambda table, seed: Scorer(table, seed, (False, True)).predict,
    "probabilities": lambda table, seed: Scorer(table, seed, has_probability=True),
    "words with probabilities": lambda table, seed: Scorer(table, seed, ("a", "b", "c"), has_probability=True),
}
BROKEN = {
    "raising": _raising,
    "one label": lambda table, seed: lambda rows: np.zeros(len(rows), dtype=int),
    "short": lambda table, seed: lambda rows: np.zeros(1),
    "scores": lambda table, seed: lambda rows: np.linspace(0, 1, len(rows)),
    "company": lambda table, seed: lambda rows: np.arange(len(rows)) % 2,
    "lists": lambda table, seed: lambda rows: pd.Series([[1]] * len(rows)).to_numpy(),
    "nothing": lambda table, seed: lambda rows: None,
    "flat proba": _with_proba(lambda found, rows: found[:, 0]),
    "raising proba": _with_proba(_raise),
    "nan proba": _with_proba(lambda found, rows: np.where(found > 0.7, np.nan, found)),
    "not a model": lambda table, seed: 5,
}
MODELS = HONEST | BROKEN
