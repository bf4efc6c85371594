"""Models to fuzz with: functions of single rows, some with probabilities, some that misbehave.

Each is made for a table; numbers are read off a row by `_score`, which knows nothing of the package's own encoding.
Honest models keep every promise; of fragile ones, which misbehave off the fitted rows only, all that is answered still
holds, and rows that they do not answer say so; others must be refused.
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
            codes, levels = pd.factorize(column.astype(object), use_na_sentinel=False)
            values = np.array([_of_value(value) for value in levels.tolist()])[codes]
        else:
            values = column.to_numpy(dtype=float, na_value=np.nan)
        total += weight * (np.where(np.isnan(values), middle / 2, values) - middle) / max(abs(middle), 1e-9)
    return total


def _of_value(value):
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return 0.5 if _is_na(value) else float(value) if is_number else crc32(repr(value).encode()) % 97 / 97


def _is_na(value):
    return value is None or value is pd.NA or value != value


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


def _off(change, what="predict", labels=(0, 1)):
    """Return a maker of models that answer as `change` does where a row is off the data: one in six of them."""

    def make(table, seed):
        model = Scorer(table, seed, labels, has_probability=True)
        own, known = getattr(model, what), _lines(table)

        def answer(rows):
            odd = [_is_odd(line, known) for line in _lines(rows)]
            return change(own(rows), np.array(odd)) if any(odd) else own(rows)

        setattr(model, what, answer)
        return model

    return make


def _lines(rows):
    """Return a line of text per row."""
    return [repr(row) for row in rows.astype(object).to_numpy().tolist()]


def _is_odd(line, known):
    return crc32(line.encode()) % 6 == 0 and line not in known


def _with_proba(change):
    def make(table, seed):
        model = Scorer(table, seed, has_probability=True)
        own = model.predict_proba
        model.predict_proba = lambda rows: change(own(rows), rows)
        return model

    return make


def _named(classes, has_probability):
    """Return a maker of models whose `classes_` are not what they say."""

    def make(table, seed):
        model = Scorer(table, seed, ("no", "yes"), has_probability)
        model.classes_ = np.array(classes)
        return model

    return make


def _raise(found, rows):
    raise ArithmeticError("not today")


HONEST = {
    "ints": Scorer,
    "words": lambda table, seed: Scorer(table, seed, ("no", "yes")),
    "three": lambda table, seed: Scorer(table, seed, ("low", "mid", "top")),
    "bools": lambda table, seed: Scorer(table, seed, (False, True)).predict,
    "probabilities": lambda table, seed: Scorer(table, seed, has_probability=True),
    "words with probabilities": lambda table, seed: Scorer(table, seed, ("a", "b", "c"), has_probability=True),
}
FRAGILE = {
    "raising": _off(lambda found, odd: _raise(found, odd)),
    "nan label": _off(lambda found, odd: np.where(odd, np.nan, found)),
    "another label": _off(lambda found, odd: np.where(odd, "odd", found), labels=("no", "yes")),
    "proba raising off the data": _off(lambda found, odd: _raise(found, odd), "predict_proba"),
    "proba nan off the data": _off(
        lambda found, odd: np.where(odd[:, np.newaxis], np.nan, found), "predict_proba", ("a", "b", "c")
    ),
    "raising proba": _with_proba(_raise),
}
ODD = {
    "company": lambda table, seed: lambda rows: np.arange(len(rows)) % 2,
    "short off the data": _off(lambda found, odd: found[:-1]),
    "wide off the data": _off(lambda found, odd: np.c_[found, found, found].reshape(len(found), 3, 1)),
    "flat proba off the data": _off(lambda found, odd: found[:, 0], "predict_proba"),
}
REFUSED = {
    "one label": lambda table, seed: lambda rows: np.zeros(len(rows), dtype=int),
    "short": lambda table, seed: lambda rows: np.zeros(1),
    "scores": lambda table, seed: lambda rows: np.linspace(0, 1, len(rows)),
    "lists": lambda table, seed: lambda rows: pd.Series([[1]] * len(rows)).to_numpy(),
    "nothing": lambda table, seed: lambda rows: None,
    "flat proba": _with_proba(lambda found, rows: found[:, 0]),
    "nan proba": _with_proba(lambda found, rows: found * np.nan),
    "other classes": _named((0, 1), has_probability=True),
    "other classes, no proba": _named((0, 1), has_probability=False),
    "not a model": lambda table, seed: 5,
}
MODELS = HONEST | FRAGILE | ODD | REFUSED
