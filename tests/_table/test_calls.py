"""Calls of the model for rows alone: few of them, of the size they need, within limits, and the answers of a batch."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from amounts import IS_ALL
from onbmacf import ONBMACF, Rule, Rules, Schema
from onbmacf._explain import run
from onbmacf._search.budget import UNASKED, Questions
from onbmacf._search.options import Options
from onbmacf._table.form import TableForm
from onbmacf._table.model import LARGER, BlackBox
from onbmacf.datasets import load_heart


class Counting:
    """A model that counts what it is given."""

    def __init__(self, model):
        self.model, self.classes_, self.sizes = model, model.classes_, []

    def predict(self, rows):
        self.sizes.append(len(rows))
        return self.model.predict(rows)

    def predict_proba(self, rows):
        self.sizes.append(len(rows))
        return self.model.predict_proba(rows)


@pytest.fixture(scope="module")
def table(heart):
    return heart.assign(famhist=(heart["famhist"] == "Present").astype(int))


@pytest.fixture(scope="module", params=["linear", pytest.param("forest", marks=pytest.mark.long)])
def model(request, table):
    kind = LogisticRegression() if request.param == "linear" else RandomForestClassifier(10, random_state=0)
    return Counting(make_pipeline(StandardScaler(), kind).fit(table, load_heart()[1]))


@pytest.fixture(scope="module")
def fitted(table, model):
    return ONBMACF().fit(table, model, schema=Schema.infer(table, immutable=["age"]))


@pytest.mark.parametrize("dial", [0.0, 0.5, 1.0])
def test_alone_in_a_few_calls_and_the_same_answer_as_in_a_batch(fitted, model, table, dial):
    rows = table[model.predict(table) == 1].head(24 if IS_ALL else 12)
    explainer = fitted.with_options(plausibility=dial, n_counterfactuals=2)
    together = explainer.explain(rows, target=0)
    calls = []
    for place in range(len(rows)):
        before = len(model.sizes)
        alone = explainer.explain(rows.iloc[[place]], target=0)
        calls.append(len(model.sizes) - before)
        assert alone.n_calls == calls[-1]
        assert alone.n_model_rows == sum(model.sizes[before:])
        pd.testing.assert_frame_equal(alone.to_frame(), together[place : place + 1].to_frame())
    assert np.median(calls) <= (15 if dial < 1 else 40)
    assert max(calls) <= (22 if dial < 1 else 80)


def test_under_rules_too(table, model):
    rules = {"ldl": Rule(low=2, high=9), "tobacco": Rule(direction="down"), "sbp": Rule(step=5)}
    schema = Schema.infer(table, immutable=["age"]).with_rules(Rules(rules, max_changes=3))
    rows = table[model.predict(table) == 1].head(20)
    explainer = ONBMACF().fit(table, model, schema=schema)
    together = explainer.explain(rows, target=0)
    alone = [explainer.explain(rows.iloc[[place]], target=0).to_frame() for place in range(len(rows))]
    pd.testing.assert_frame_equal(pd.concat(alone), together.to_frame())


@pytest.mark.parametrize("chunk", [64, 512])
def test_the_size_of_a_call_does_not_change_an_answer(table, model, fitted, chunk):
    rows = table[model.predict(table) == 1].head(12)
    schema = Schema.infer(table, immutable=["age"])
    explainer = ONBMACF(predict_chunk=chunk).fit(table, model, schema=schema)
    alone = [explainer.explain(rows.iloc[[place]], target=0).to_frame() for place in range(len(rows))]
    pd.testing.assert_frame_equal(pd.concat(alone), fitted.explain(rows, target=0).to_frame())


def test_small_calls_for_a_model_whose_answers_do_not_depend_on_the_size(table, model):
    N = TableForm.fit(table, None)
    numbers = N.numbers(table)
    box = BlackBox(model, N).learn_sizes(numbers[:64])
    assert (box.sizes[0], box.largest) == (16, 512)
    model.sizes.clear()
    box.ask_labels(numbers[:20])
    assert model.sizes == [20]
    by_size = BlackBox(lambda rows: (rows["ldl"] * len(rows) % 7 > 3).astype(int), N).learn_sizes(numbers[:64])
    assert by_size.sizes == ()
    assert by_size.largest == 512


def test_answers_that_depend_on_the_place_in_a_call_are_noticed(table):
    form = TableForm.fit(table, None)
    box = BlackBox(lambda rows: np.arange(len(rows)) % 2, form)
    assert box.learn_sizes(form.numbers(table)[:64]).sizes == ()


def test_probabilities_that_depend_on_the_size_are_noticed(table, model):
    class Drifting(Counting):
        def predict_proba(self, rows):
            return self.model.predict_proba(rows) * (1 - 1e-11 * len(rows))

    form = TableForm.fit(table, None)
    assert BlackBox(Drifting(model.model), form).learn_sizes(form.numbers(table)[:64]).sizes == ()


def test_a_predict_proba_that_raises_does_not_end_the_fit(table, model):
    class Broken(Counting):
        def predict_proba(self, rows):
            raise RuntimeError("no probabilities today")

    explainer = ONBMACF().fit(table, Broken(model.model))
    assert explainer.call_sizes_ == (512,)


LIMITS = [(calls, rows) for calls in (1, 2, 4, 7, 12) for rows in (None, 15, 60)]
SOME_LIMITS = [(1, None), (1, 15), (4, None), (4, 15), (12, 60)]


@pytest.mark.parametrize(
    "calls, rows", [pytest.param(*own, marks=[] if own in SOME_LIMITS else pytest.mark.long) for own in LIMITS]
)
def test_limits_are_never_exceeded(fitted, model, table, calls, rows):
    some = table[model.predict(table) == 1].head(8)
    explainer = fitted.with_options(max_model_calls=calls, max_model_rows=rows)
    together = explainer.explain(some, target=0)
    for place in range(len(some)):
        before = len(model.sizes)
        alone = explainer.explain(some.iloc[[place]], target=0)
        assert len(model.sizes) - before <= calls
        assert rows is None or alone.n_questions <= rows
        assert alone[0].status == ("found" if calls > 3 else alone[0].status)
        pd.testing.assert_frame_equal(alone.to_frame(), together[place : place + 1].to_frame())
        for found in alone[0].counterfactuals:
            values = found.values.to_frame().T.astype(table.dtypes.to_dict())
            assert model.predict(values)[0] == 0


def test_what_a_limit_left_unasked_is_missing_in_every_form(fitted, model, table):
    row = table[model.predict(table) == 1].head(1)
    answers = fitted.with_options(max_model_rows=30).explain(row, target=0)
    found = answers[0].counterfactuals[0]
    assert np.isnan(found.margin)
    assert found.semifactual is None
    document = json.loads(answers.to_json())["answers"][0]["counterfactuals"][0]
    assert document["margin"] is document["semifactual"] is None
    assert "nan" not in (answers.sentences()[0] + answers._repr_html_()).lower()


def test_a_probability_that_a_limit_left_unasked_is_missing_in_every_form(model, table):
    class Careful(Counting):  # the label is not that of the highest probability, so labels are asked for
        def predict(self, rows):
            return (super().predict_proba(rows)[:, 1] > 0.2).astype(int)

    careful = Careful(model.model)
    row = table[careful.predict(table) == 1].head(1)
    answers = ONBMACF(max_model_rows=30).fit(table, careful).explain(row, target=0)
    assert np.isnan(answers[0].counterfactuals[0].probability)
    assert json.loads(answers.to_json())["answers"][0]["counterfactuals"][0]["probability"] is None
    assert "nan" not in (answers.sentences()[0] + answers._repr_html_()).lower()


def test_more_calls_give_nearer_answers(fitted, model, table):
    some = table[model.predict(table) == 1].head(30)
    means = [
        fitted.with_options(max_model_calls=calls, plausibility=0.0)
        .explain(some, target=0)
        .to_frame()["distance"]
        .mean()
        for calls in (3, 5, 8, 30)
    ]
    assert means == sorted(means, reverse=True)


def test_a_sure_label_costs_two_rows_of_the_budget(fitted, model, table):
    some = table[model.predict(table) == 1].head(5)
    explainer = fitted.with_options(max_model_rows=60, max_model_calls=9)
    for place in range(len(some)):
        before = len(model.sizes)
        answers = explainer.explain(some.iloc[[place]], target=0, min_probability=0.7)
        assert len(model.sizes) - before <= 9
        assert answers.n_questions <= 60
        assert (answers.to_frame()["probability"].dropna() >= 0.7).all()


def test_questions_beyond_a_limit_are_refused():
    asked = []

    def label_of(points, factual):
        asked.extend(factual.tolist())
        return np.zeros(len(points), dtype=np.intp)

    questions = Questions(2, Options(max_model_rows=4), label_of, label_of)
    labels = questions.ask(np.zeros((6, 1)), np.array([0, 0, 0, 0, 1, 1]))
    assert labels.tolist() == [0, 0, 0, UNASKED, 0, 0]
    assert asked == [0, 0, 0, 1, 1]
    assert questions.ran_out.tolist() == [True, False]
    assert questions.left.tolist() == [0, 1]


@pytest.fixture(scope="module")
def many(table):
    return pd.concat([table.sample(frac=1, random_state=0)] * 2, ignore_index=True).head(300)


def test_many_rows_are_asked_about_in_large_calls_with_the_same_answers(fitted, model, many, monkeypatch):
    fitted.explain(many.head(130))  # what is made at first use asks, too
    model.sizes.clear()
    large = fitted.explain(many)
    assert max(model.sizes) == LARGER * 512
    assert (large.n_calls, large.n_model_rows) == (len(model.sizes), sum(model.sizes))
    monkeypatch.setattr(run, "MANY_ROWS", len(many) + 1)
    model.sizes.clear()
    small = fitted.explain(many)
    assert max(model.sizes) == 512
    assert len(model.sizes) > 1.5 * large.n_calls  # of which some find out whether calls may be large
    pd.testing.assert_frame_equal(large.to_frame(), small.to_frame())


@pytest.mark.parametrize("limits", [{"max_model_rows": 200}, {"max_model_calls": 8}])
def test_no_large_calls_within_limits(fitted, model, many, limits):
    explainer, rows = fitted.with_options(**limits), many.head(128)
    model.sizes.clear()
    explainer.explain(rows)
    assert max(model.sizes) <= 512


def test_no_large_calls_within_a_time_or_where_the_caller_has_said_how_many(table, model, fitted, many):
    model.sizes.clear()
    fitted.explain(many.head(128), max_seconds=600)
    assert max(model.sizes) <= 512
    said = ONBMACF(predict_chunk=256).fit(table, model)
    model.sizes.clear()
    said.explain(many.head(128))
    assert max(model.sizes) <= 256


def test_no_large_calls_for_a_model_that_says_something_else_in_them(table, model, many):
    class Drifting(Counting):
        def predict_proba(self, rows):
            return super().predict_proba(rows) * (1 - 1e-9 * (len(rows) > 512))

    drifting = Drifting(model.model)
    explainer = ONBMACF().fit(table, drifting)
    assert explainer.call_sizes_[-1] == 512
    drifting.sizes.clear()
    explainer.explain(many.head(128))
    probes = max(place for place, size in enumerate(drifting.sizes) if size > 512) + 1
    assert probes <= 6  # the first six find out
    assert len(drifting.sizes) > probes


def test_in_a_large_call_every_row_on_which_the_model_raises_is_found(table, model, many):
    def raises_on_some(rows):
        if (rows["sbp"] > 200).any():
            raise ValueError("too high")
        return model.model.predict(rows)

    good = table[table["sbp"] <= 200]
    explainer = ONBMACF().fit(good, raises_on_some)
    answers = explainer.explain(many)
    failed = answers.statuses == "model_error"
    assert (failed == (many["sbp"] > 200).to_numpy()).all()
    assert failed.any()


def test_a_large_call_finds_as_many_failing_points_as_the_calls_that_it_stands_for(table, model):
    form = TableForm.fit(table, None)
    numbers = np.resize(form.numbers(table), (2048, table.shape[1]))
    bad = np.arange(0, 2048, 256)
    numbers[:, 0] = 100.0
    numbers[bad, 0] = 250.0

    def raises_on_some(rows):
        if (rows["sbp"] > 200).any():
            raise ValueError("too high")
        return np.zeros(len(rows), dtype=int)

    for sizes in ((16, 512), (16, 512, 1024, 2048)):
        labels = BlackBox(raises_on_some, form, sizes=sizes).ask_labels(numbers)
        assert [at for at, label in enumerate(labels) if isinstance(label, Exception)] == bad.tolist()
