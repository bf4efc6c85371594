"""What a model may do, line by line: what is done, and its outcome."""

import threading

import numpy as np
import pandas as pd

from faults.by_line.outcomes import E, Is, R, W
from faults.by_line.samples import above, fit, frame
from onbmacf import ONBMACF, Schema
from onbmacf.errors import ModelError


class Model:
    """A model with probabilities; what is given takes the place of its own."""

    def __init__(self, predict=above, predict_proba=None, classes=(0, 1)):
        self.predict, self.predict_proba, self.classes_ = predict, predict_proba or both, np.array(classes)


class WithoutProbabilities:
    """A model that names its classes but has no probabilities."""

    def __init__(self, predict, classes=(0, 1)):
        self.predict, self.classes_ = predict, np.array(classes)


def up(rows):
    return 1 / (1 + np.exp(2 - np.asarray(rows["x"], dtype=float)))


def both(rows):
    return np.column_stack([1 - up(rows), up(rows)])


def words(rows):
    return np.where(above(rows), "yes", "no")


def failing(answer, at=99):
    """Return a model that raises where y has a value."""

    def ask(rows):
        if (rows["y"] == at).any():
            raise OverflowError("too much")
        return answer(rows)

    return ask


def nan_at(at):
    return lambda rows: np.where((rows["y"] == at).to_numpy()[:, np.newaxis], np.nan, both(rows))


def in_the_middle(model, least=0.0):
    """Explain three rows; y = 99 in the middle is what the model may not like, and cannot change."""
    explainer = fit(frame(), model, schema=Schema.infer(frame(), immutable=["y"]))
    return explainer.explain(pd.DataFrame({"x": [0.5] * 3, "y": [6, 99, 6]}), min_probability=least)


def unknown_probabilities():
    """Return how many of 400 probabilities are known, how many rows say why not, and the y of the known ones."""
    explainer = fit(frame(), Model(predict_proba=failing(both)), schema=Schema.infer(frame(), immutable=["y"]))
    answers = explainer.explain(pd.DataFrame({"x": 0.5, "y": [6, 99] * 200}))
    known = answers.to_frame().dropna(subset=["probability"])
    return len(known), sum("not known" in reason for reason in answers.reasons), set(known["y"])


def normalised(model, **how):
    explainer = fit(frame(), model, **how)
    return explainer.classes_[explainer.labels_].tolist(), str(explainer.explain({"x": 0.5, "y": 6})[0].status)


def moody():
    """Return a model whose second answer is another one."""
    calls = iter([0])
    return lambda rows: (above(rows) + next(calls, 1)) % 2


def vandal(rows):
    labels = above(rows)
    rows.iloc[:, 0] = -1.0
    return labels


def vandalised():
    table = frame()
    same = fit(table, vandal).explain(table).to_json() == fit(frame()).explain(frame()).to_json()
    return same, table.equals(frame())


def given():
    """Return what the model is given, as names and dtypes, for rows in another order and other dtypes."""
    seen = set()
    table = frame(c=pd.Categorical(["a", "b", "a", "b"]), f=np.array([1, 2, 3, 4], dtype=np.float32))

    def model(rows):
        seen.add(tuple(rows.dtypes.astype(str).items()))
        return above(rows)

    fit(table, model).explain(pd.DataFrame({"f": [2], "c": ["b"], "y": [6.0], "x": ["0.5"]}).astype({"x": float}))
    return seen == {tuple(table.dtypes.astype(str).items())}


def not_pickled():
    lock, table = threading.Lock(), pd.DataFrame({"x": np.arange(40.0) % 7, "y": np.arange(40) % 5})

    def model(rows):
        with lock:
            return above(rows)

    return ONBMACF(n_jobs=2).fit(table, model).explain(table)


FORMS = {
    "ints": (above, {}, [0, 0, 1, 1]),
    "strings": (words, {}, ["no", "no", "yes", "yes"]),
    "bools": (lambda rows: above(rows) == 1, {}, [False, False, True, True]),
    "probabilities (n,)": (up, {"output": "probability"}, [0, 0, 1, 1]),
    "probabilities (n, 1)": (lambda rows: up(rows)[:, np.newaxis], {"output": "probability"}, [0, 0, 1, 1]),
    "probabilities (n, C)": (both, {}, [0, 0, 1, 1]),
    "list": (lambda rows: above(rows).tolist(), {}, [0, 0, 1, 1]),
    "DataFrame": (lambda rows: pd.DataFrame(both(rows)), {}, [0, 0, 1, 1]),
}

MODEL = {
    **{
        f"returns {form}": (lambda model=model, how=how: normalised(model, **how), Is((labels, "found")))
        for form, (model, how, labels) in FORMS.items()
    },
    "score or label": (lambda: fit(frame(), up), E(ModelError, "0.119203, which could be a score or a label")),
    "wrong length": (lambda: fit(frame(), lambda rows: [1]), E(ModelError, "was given 512 rows and returned 1")),
    "NaN probabilities": (lambda: fit(frame(), nan_at(7)), E(ModelError, "NaN for row 2 of the table")),
    "NaN of predict_proba": (
        lambda: fit(frame(), Model(predict_proba=nan_at(7))),
        E(ModelError, "predict_proba returned NaN for row 2 of the table"),
    ),
    "NaN never passes a minimum": (
        lambda: in_the_middle(Model(predict_proba=nan_at(99)), 0.6),
        R("none_found", "On some points asked, predict_proba returned NaN. One is found if y may change"),
    ),
    "predict_proba raises on a row": (
        lambda: in_the_middle(Model(predict_proba=failing(both))),
        R("found", "^Some probabilities are not known: the model raised OverflowError: too much.$"),
    ),
    "predict_proba raises on a row that needs it": (
        lambda: in_the_middle(Model(predict_proba=failing(both)), 0.6),
        R("none_found", "On some points asked, the model raised OverflowError: too much"),
    ),
    "predict_proba raises on many rows": (unknown_probabilities, Is((200, 200, {6}))),
    "classes_ that do not match": (
        lambda: fit(frame(), Model(predict=words)),
        E(ModelError, "predict returns 'no', 'yes', but classes_ holds 0, 1"),
    ),
    "classes_ that do not match, without probabilities": (
        lambda: fit(frame(), WithoutProbabilities(words)),
        E(ModelError, "predict returns 'no', 'yes', but classes_ holds 0, 1"),
    ),
    "NaN probability of an answer": (
        lambda: in_the_middle(Model(predict_proba=nan_at(99))),
        R("found", "^Some probabilities are not known: predict_proba returned NaN.$"),
    ),
    "answers that depend on the batch": (
        lambda: fit(frame(), lambda rows: rows["x"] > rows["x"].mean()),
        W(r"depends on the other rows in the call: \d of 4 rows got another label"),
    ),
    "raises on one row of a batch": (
        lambda: in_the_middle(failing(above)),
        R("model_error", "^The model raised OverflowError: too much$"),
    ),
    "raises on one row of the table": (
        lambda: fit(frame(), failing(above, at=7)),
        E(ModelError, "row 2 of the table: too much", OverflowError),
    ),
    "not deterministic": (lambda: fit(frame(), moody()), W("not deterministic: 4 of 4 rows asked twice")),
    "mutates its input": (vandalised, Is((True, True))),
    "needs names and dtypes": (given, Is(True)),
    "cannot be pickled": (not_pickled, W("cannot be sent to other processes .*: everything runs in this one")),
}
