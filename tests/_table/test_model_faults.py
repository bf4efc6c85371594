"""The border of the model: what it may return, where it may fail, and what its company does to it. One table each."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF, Between, Rule, Rules, Schema
from onbmacf.errors import ModelError, OnbmacfWarning, ParameterError

TABLE = pd.DataFrame(np.random.default_rng(0).random((40, 2)).round(2) * 5, columns=["x", "r"])
ROWS = pd.DataFrame({"x": [0.5, 0.5, 0.7], "r": [1.0, 4.8, 2.0]})
KNOWN = {tuple(row) for row in [*TABLE.to_numpy(), *ROWS.to_numpy()]}


def above(rows):
    return (rows["x"] > 2).to_numpy().astype(int)


def sure(rows):
    up = 1 / (1 + np.exp(2 - rows["x"].to_numpy()))
    return np.column_stack([1 - up, up])


class Model:
    """A model with probabilities; what `changes` gives takes the place of its own."""

    classes_ = np.array([0, 1])

    def __init__(self, predict=above, predict_proba=sure, classes=classes_):
        self.predict, self.predict_proba, self.classes_ = predict, predict_proba, classes


class Wordless(Exception):  # noqa: N818 - as a caller's own may be called
    """An error whose message cannot be read."""

    def __str__(self):
        raise RuntimeError("no words")


def raising(where, error=ZeroDivisionError("no")):  # noqa: B008 - an error without a state
    """Return a function that raises where a condition holds for any row of the call."""

    def check(rows):
        if where(rows).any():
            raise error

    return check


def with_check(check, answer):
    return lambda rows: (check(rows), answer(rows))[1]


def nan_where(where):
    def answer(rows):
        found = sure(rows)
        found[where(rows).to_numpy()] = np.nan
        return found

    return answer


REFUSED_AT_FIT = {
    "flat probabilities": (Model(predict_proba=lambda rows: sure(rows)[:, 1]), r"shape \(\d+,\) .* 2 classes_"),
    "a column too many": (Model(predict_proba=lambda rows: sure(rows)[:, [0, 1, 1]]), r"shape \(\d+, 3\)"),
    "too few rows": (Model(predict_proba=lambda rows: sure(rows)[:1]), r"shape \(1, 2\) for \d+ rows"),
    "words": (Model(predict_proba=lambda rows: np.full((len(rows), 2), "a")), "'a'.*, which is no probability"),
    "codes beside words": (
        Model(predict=lambda rows: np.where(above(rows), "yes", "no")),
        "predict returns 'no', 'yes', but classes_ holds 0, 1",
    ),
    "NaN": (Model(predict_proba=lambda rows: np.full((len(rows), 2), np.nan)), "NaN for row 0 of the table"),
    "NaN in one row": (Model(predict_proba=nan_where(lambda rows: rows["r"] == TABLE["r"][7])), "NaN for row 7"),
    "NaN labels": (lambda rows: np.where(rows["x"] > 4, np.nan, above(rows)), r"NaN for row \d+ of the table"),
    "scores as probabilities": (Model(predict_proba=lambda rows: 5 * sure(rows)), r"for row \d+ .* no probability"),
    "below 0": (Model(predict_proba=lambda rows: sure(rows) - 1), "which is no probability: it must be in .0, 1."),
    "without words": (
        with_check(raising(lambda rows: rows["x"] > 4, Wordless()), above),
        "whose message cannot be read",
    ),
    "predict is not to be had": (
        type("Lazy", (), {"predict": property(lambda self: 1 // 0)})(),
        "predict cannot be read",
    ),
    "predict_proba is not to be had": (
        type("Lazy", (), {"predict": staticmethod(above), "predict_proba": property(lambda self: 1 // 0)})(),
        "predict_proba cannot be read: it raised ZeroDivisionError",
    ),
    "half a character": (
        lambda rows: np.where(rows["x"] > 2, "\ud800", "n"),
        r"returned '\\ud800', which cannot be wr",
    ),
    "several labels per row": (
        type(
            "Several", (), {"predict": lambda self, rows: np.column_stack([above(rows)] * 2), "classes_": [[0], [1]]}
        )(),
        r"predict returned 2 values per row, e.g. 1, 1: neither one label nor prob|e.g. 0, 0",
    ),
    "a frame of labels": (lambda rows: pd.DataFrame({"a": above(rows), "b": 1}), "neither one label nor probabilities"),
    "words side by side": (
        lambda rows: np.array([["a", "b"]] * len(rows)),
        "'a', which is no probability|no probability",
    ),
    "labels that are lists": (lambda rows: pd.Series([[int(x > 2)] for x in rows["x"]]).to_numpy(), "labels must be"),
}


@pytest.mark.parametrize("model, pattern", REFUSED_AT_FIT.values(), ids=REFUSED_AT_FIT)
def test_a_model_whose_answers_cannot_be_read_is_refused_at_fit(model, pattern):
    with pytest.raises(ModelError, match=pattern):
        ONBMACF().fit(TABLE, model)


def test_probabilities_that_always_raise_are_left_out_with_a_warning():
    model = Model(predict_proba=with_check(raising(lambda rows: rows["x"] > -1), sure))
    with pytest.warns(OnbmacfWarning, match="probabilities are left out: predict_proba raised ZeroDivisionError: no"):
        explainer = ONBMACF().fit(TABLE, model)
    answers = explainer.explain(ROWS)
    assert list(answers.statuses) == ["found"] * 3
    with pytest.raises(
        ParameterError, match="min_probability needs a model that gives probabilities: predict_proba raised"
    ):
        explainer.explain(ROWS, min_probability=0.6)


FRAGILE = {
    "predict": lambda check: Model(predict=with_check(check, above)),
    "predict_proba": lambda check: Model(predict_proba=with_check(check, sure)),
}


@pytest.mark.parametrize("least", [0.0, 0.6])
@pytest.mark.parametrize("make", FRAGILE.values(), ids=FRAGILE)
def test_a_row_that_fails_costs_no_other_row_anything(make, least):
    rows = pd.DataFrame({"x": [0.5] * 15, "r": np.where(np.arange(15) % 3 == 0, 77.0, 1.0)})
    schema = Schema.infer(TABLE, immutable=["r"])
    explainer = ONBMACF().fit(TABLE, make(raising(lambda frame: frame["r"] == 77)), schema=schema)
    sound = ONBMACF().fit(TABLE, Model(), schema=schema)
    answers = explainer.explain(rows, min_probability=least)
    expected = sound.explain(rows[rows["r"] == 1], min_probability=least)
    found = answers.to_frame()
    found = found[found["r"] == 1]
    pd.testing.assert_frame_equal(found, expected.to_frame())
    assert len(found) == 10
    bad = answers[0]
    if least or make is FRAGILE["predict"]:
        assert "ZeroDivisionError: no" in bad.reason
    alone = explainer.explain(rows.iloc[[0]], min_probability=least)[0]
    assert (alone.status, len(alone.counterfactuals)) == (bad.status, len(bad.counterfactuals))


def dropping(answer):
    """Return a model that leaves out rows, as one that drops missing values does."""
    return lambda rows: answer(rows)[(rows["r"] != 77).to_numpy()]


DROPPING = {
    "predict": lambda: (Model(predict=dropping(above)), {}),
    "predict_proba": lambda: (Model(predict_proba=dropping(sure)), {}),
    "a function": lambda: (dropping(above), {}),
    "probabilities": lambda: (dropping(sure), {}),
    "a threshold": lambda: (dropping(lambda rows: rows["x"].to_numpy()), {"threshold": 2, "classes": (0, 1)}),
    "a range": lambda: (dropping(lambda rows: rows["x"].to_numpy()), {"target": Between(2, 9)}),
}


@pytest.mark.parametrize("name", DROPPING)
def test_a_row_without_an_answer_costs_no_other_row_anything(name):
    rows = pd.DataFrame({"x": [0.5] * 15, "r": np.where(np.arange(15) % 3 == 0, 77.0, 1.0)})
    model, how = DROPPING[name]()
    schema = Schema.infer(TABLE, immutable=["r"])
    answers = ONBMACF().fit(TABLE, model, schema=schema, **how).explain(rows)
    alone = ONBMACF().fit(TABLE, model, schema=schema, **how).explain(rows[rows["r"] == 1])
    assert list(alone.statuses) == ["found"] * 10
    found = answers.to_frame()
    pd.testing.assert_frame_equal(found[found["r"] == 1], alone.to_frame())
    if name != "predict_proba":  # `predict` answers
        assert (answers[0].status, answers[0].reason) == ("model_error", "predict was given 1 rows and returned 0")


@pytest.mark.parametrize("asked", [{}, {"min_probability": 0.6}, {"ranges": True}], ids=str)
def test_an_answer_of_the_wrong_length_now_and_then_costs_nothing(asked):
    n_calls = [-(10**6)]

    def forgetful(answer):
        def called(rows):
            n_calls[0] += 1
            return answer(rows)[: -1 if n_calls[0] > 0 and n_calls[0] % 3 == 0 else None]

        return called

    explainer = ONBMACF().fit(TABLE, Model(forgetful(above), forgetful(sure)))
    expected = explainer.explain(ROWS, **asked).to_frame()
    n_calls[0] = 0
    answers = explainer.explain(ROWS, **asked)
    assert n_calls[0] > 3
    assert list(answers.statuses) == ["found"] * 3
    pd.testing.assert_frame_equal(answers.to_frame(), expected)


def test_every_good_row_among_many_that_fail_is_kept():
    """More fail than a failing call of a search is retried for."""
    rows = pd.DataFrame({"x": [0.5] * 400, "r": np.where(np.arange(400) % 2 == 0, 77.0, 1.0)})
    explainer = ONBMACF().fit(TABLE, Model(predict=with_check(raising(lambda frame: frame["r"] == 77), above)))
    assert list(explainer.explain(rows, target=0).statuses) == ["model_error", "already"] * 200


def test_nan_never_passes_a_minimum():
    model = Model(predict_proba=nan_where(lambda rows: ~rows["r"].isin(TABLE["r"])))
    answers = ONBMACF().fit(TABLE, model).explain(ROWS, min_probability=0.6)
    assert (answers.to_frame()["probability"] >= 0.6).all()
    schema = Schema.infer(TABLE, immutable=["r"])
    answers = ONBMACF().fit(TABLE, model, schema=schema).explain(ROWS, min_probability=0.6)
    assert list(answers.statuses) == ["found", "none_found", "none_found"]  # not "infeasible": nothing is known there
    assert all("predict_proba returned NaN" in reason for reason in answers.reasons[1:])


@pytest.mark.parametrize("strategy", ["refined", "paper"])
def test_the_least_probability_holds_whatever_becomes_of_home_balls(strategy):
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"x": rng.normal(2, 1.5, 40).round(2), "r": rng.normal(2, 4, 40).round(2)})
    answers = ONBMACF(strategy=strategy).fit(TABLE, Model()).explain(rows, min_probability=0.9)
    found = answers.to_frame()
    asked = sure(found)[np.arange(len(found)), found["to"].astype(int)]
    assert len(found) > 10
    assert (asked >= 0.9).all()


def is_off(rows):
    return np.array([tuple(row) not in KNOWN for row in rows.to_numpy()])


off_the_data = with_check(raising(is_off, ValueError("off the data")), above)


def strange_off_the_data(rows):
    return [label if tuple(row) in KNOWN else 7 for row, label in zip(rows.to_numpy(), above(rows), strict=True)]


TOLD = {
    "raises": (off_the_data, "model raised ValueError: off the data"),
    "raises without a word": (with_check(raising(is_off, StopIteration()), above), "model raised StopIteration"),
    "raises what has no words": (
        with_check(raising(is_off, Wordless()), above),
        "Wordless, whose message cannot",
    ),
    "raises at length": (with_check(raising(is_off, ValueError("x" * 10**6)), above), f"ValueError: {'x' * 500}..."),
    "says another label": (strange_off_the_data, "the model said 7, as on no fitted row"),
}
HELD = {
    "nothing": Schema.infer(TABLE),
    "a feature": Schema.infer(TABLE, immutable=["r"]),
    "a rule": Schema.infer(TABLE, rules=Rules({"x": Rule(high=2.5)})),
}


@pytest.mark.parametrize("schema", HELD.values(), ids=HELD)
@pytest.mark.parametrize("model, words", TOLD.values(), ids=TOLD)
def test_what_the_model_did_off_the_data_is_told(model, words, schema):
    answers = ONBMACF().fit(TABLE, model, schema=schema).explain(ROWS, target=1)
    assert all(words in reason for reason in answers.reasons)


def test_a_label_that_is_nan_off_the_data_costs_its_point_only():
    model = lambda rows: np.where(rows["r"] > 5, np.nan, above(rows))  # noqa: E731
    answers = ONBMACF().fit(TABLE, model).explain(pd.DataFrame({"x": [0.5, 0.5], "r": [1.0, 6.0]}))
    assert list(answers.statuses) == ["found", "model_error"]
    assert answers[1].reason == "The model returned NaN"


COMPANY = {
    "the mean": lambda rows: (rows["x"] > rows["x"].mean()).astype(int),
    "the rank": lambda rows: (rows["x"].rank() > len(rows) / 2).astype(int),
    "the first row": lambda rows: (rows["x"] > rows["x"].iloc[0]).astype(int),
    "the order": lambda rows: (rows["x"] > 0.5) != (rows["x"].iloc[0] > rows["x"].iloc[-1]),
    "many or few": lambda rows: (rows["x"] > 0.5) != (len(rows) in (2, 20, 32)),
    "a single row": lambda rows: (rows["x"] > 0.5) != (len(rows) == 1),
}


@pytest.mark.parametrize("n_rows", [4, 40, 700])
@pytest.mark.parametrize("model", COMPANY.values(), ids=COMPANY)
def test_a_model_that_compares_rows_is_warned_of_with_the_rate(model, n_rows):
    table = pd.DataFrame({"x": np.sort(np.random.default_rng(1).random(n_rows))})
    with pytest.warns(OnbmacfWarning, match=r"other rows in the call: \d+ of \d+ rows got another label"):
        ONBMACF().fit(table, model)


def test_a_model_of_single_rows_is_not_warned_of():
    assert ONBMACF().fit(TABLE, Model()).warnings_ == ()
    assert ONBMACF().fit(TABLE, lambda rows: np.squeeze(above(rows)[:, np.newaxis])).warnings_ == ()


ONE_HOT = {
    "whole numbers": lambda rows: np.column_stack([1 - above(rows), above(rows)]),
    "truth values": lambda rows: np.column_stack([above(rows) == 0, above(rows) == 1]),
    "objects": lambda rows: np.column_stack([above(rows) == 0, above(rows) == 1]).astype(object),
    "a frame": lambda rows: pd.DataFrame({"no": 1 - above(rows), "yes": above(rows)}),
}


@pytest.mark.parametrize("model", ONE_HOT.values(), ids=ONE_HOT)
def test_one_column_per_class_is_read_whatever_its_dtype(model):
    assert set(ONBMACF().fit(TABLE, model).explain(ROWS).to_frame()["to"]) == {1}


def test_classes_of_several_outputs_name_no_class():
    model = Model(predict=sure, classes=[np.array([0, 1]), np.array([0, 1, 2])])
    assert ONBMACF().fit(TABLE, model.predict).classes_.tolist() == [0, 1]
    model.predict_proba = None
    assert ONBMACF().fit(TABLE, model).classes_.tolist() == [0, 1]


LARGE_LABELS = {
    "beyond int64": lambda rows: np.where(above(rows), 2**63 + 5, 3).astype(np.uint64),
    "beyond uint64": lambda rows: [10**30 if label else 0 for label in above(rows)],
}


@pytest.mark.parametrize("model", LARGE_LABELS.values(), ids=LARGE_LABELS)
def test_labels_are_as_large_as_they_like(model):
    found = ONBMACF().fit(TABLE, model).explain(ROWS).to_frame()
    assert set(found["to"]) == {max(model(TABLE))}


@pytest.mark.parametrize(
    "classes", [iter([0, 1]), np.array(5), 5, "01"], ids=["an iterator", "one", "a number", "text"]
)
def test_classes_that_cannot_be_read_are_none(classes):
    explainer = ONBMACF().fit(TABLE, Model(classes=classes))
    assert list(explainer.explain(ROWS).statuses) == ["found"] * 3
    with pytest.raises(ParameterError, match="this one has no predict_proba with classes_"):
        explainer.explain(ROWS, min_probability=0.6)


class Counting(Model):
    """Counts the rows it is given, in all threads together."""

    def __init__(self):
        self.n_rows, self._lock = 0, threading.Lock()
        self.predict, self.predict_proba = self._counted(above), self._counted(sure)

    def _counted(self, answer):
        def counted(rows):
            with self._lock:
                self.n_rows += len(rows)
            return answer(rows)

        return counted


@pytest.mark.parametrize("asked", [{}, {"min_probability": 0.7}, {"ranges": True}], ids=str)
def test_eight_threads_state_what_each_of_them_asked(asked):
    model = Counting()
    explainer = ONBMACF().fit(TABLE, model)
    parts = [TABLE.iloc[start : start + 2] for start in range(0, 16, 2)]
    alone = [explainer.explain(part, **asked) for part in parts]
    model.n_rows = 0
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda part: explainer.explain(part, **asked), parts))
    assert sum(own.n_model_rows for own in answers) == model.n_rows
    assert [own.n_model_rows for own in answers] == [own.n_model_rows for own in alone]
    assert [own.n_questions for own in answers] == [own.n_questions for own in alone]


def test_retries_are_counted_as_what_was_sent():
    sent = []

    def fragile(rows):
        sent.append(len(rows))
        return with_check(raising(lambda frame: frame["r"] == 77), above)(rows)

    explainer = ONBMACF().fit(TABLE, fragile)
    sent.clear()
    answers = explainer.explain(pd.DataFrame({"x": [0.5] * 9, "r": [1.0, 77.0, 2.0] * 3}))
    assert (answers.n_calls, answers.n_model_rows) == (len(sent), sum(sent))
    assert re.fullmatch("The model raised ZeroDivisionError: no", answers[1].reason)


def test_probabilities_that_are_not_known_are_told_also_of_answers_with_something_released():
    class Raising:
        classes_ = np.array([0, 1])

        def predict(self, rows):
            return (rows["x"].to_numpy() > 2).astype(int)

        def predict_proba(self, rows):
            if (~rows["x"].isin(known)).any():
                raise ValueError("not on these rows")
            return np.column_stack([1 - self.predict(rows), self.predict(rows)]).astype(float)

    table = pd.DataFrame({"x": [0.0, 1, 3, 4.5], "r": [0.1, 0.2, 0.3, 0.4]})
    known = table["x"].tolist()
    schema = Schema.infer(table, immutable=["x"])
    answer = (
        ONBMACF(release="immutable").fit(table, Raising(), schema=schema).explain(table.iloc[[0]], min_probability=0)[0]
    )
    assert answer.status == "found"
    assert np.isnan(answer.counterfactuals[0].probability)
    assert "Found if x may change. Some probabilities are not known: the model raised ValueError" in answer.reason


@pytest.mark.parametrize("limits", [{}, {"max_model_rows": 60}, {"max_model_calls": 3}], ids=str)
def test_a_row_without_probabilities_is_answered_by_labels_and_costs_the_others_nothing(limits):
    model = Model(predict_proba=with_check(raising(lambda frame: frame["r"] == 77), sure))
    explainer = ONBMACF(**limits).fit(TABLE, model, schema=Schema.infer(TABLE, immutable=["r"]))
    rows = pd.DataFrame({"x": [0.5] * 60, "r": [1.0] + [77.0] * 58 + [2.0]})
    answers = explainer.explain(rows)
    assert set(answers.statuses) == {"found"}
    for at in (0, 1, 59):
        alone = explainer.explain(rows.iloc[[at]])[0].counterfactuals[0]
        assert tuple(alone.values) == tuple(answers[at].counterfactuals[0].values)
    if "max_model_calls" in limits:
        assert answers.n_calls <= 3 * len(rows)


class TwoMinds:
    """A model whose probabilities are highest for another label than it predicts, from a place on."""

    classes_ = ("no", "yes")

    def __init__(self, place):
        self.place = place

    def predict(self, rows):
        return np.where(rows["x"] > 10, "yes", "no")

    def predict_proba(self, rows):
        yes = np.where((rows["x"] > 10) != (rows["x"] > self.place), 0.9, 0.1)
        return np.column_stack([1 - yes, yes])


def test_probabilities_that_contradict_the_labels_are_said_once_and_in_the_answers():
    table = pd.DataFrame({"x": np.arange(40.0), "y": np.arange(40) % 3})
    said = "predict_proba contradicts predict on 5 of 40 rows, .* predict is believed"
    with pytest.warns(OnbmacfWarning, match=said):
        explainer = ONBMACF().fit(table, TwoMinds(place=34))
    answers = explainer.explain(table.iloc[:3])
    assert [bool(re.match(said, message)) for message in answers.warnings].count(True) == 1
    assert {one.label for answer in answers for one in answer.counterfactuals} == {"yes"}
    for model, how in ((TwoMinds(place=99), {}), (TwoMinds(place=34), {"threshold": 0.3})):
        explainer = ONBMACF().fit(table, model, **how)
        assert not any("contradicts" in message for message in explainer.warnings_)
