"""Answers that last: one word for the least probability that the evidence of decision 0052 speaks for."""

import re

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF, Schema
from onbmacf._explain.request import PROBABILITIES
from onbmacf._views.plans import plan_views
from onbmacf.datasets import heart_network, load_heart
from onbmacf.errors import ParameterError


@pytest.fixture(scope="module")
def asked():
    table, chd = load_heart()
    model = heart_network().fit(table, chd)
    return table[model.predict(table) == 1].head(12), ONBMACF().fit(table, model), model


def test_lasting_answers_are_those_with_the_least_probability_it_stands_for(asked):
    rows, explainer, model = asked
    lasting = explainer.explain(rows, 0, min_probability="lasting")
    assert lasting.to_json() == explainer.explain(rows, 0, min_probability=PROBABILITIES["lasting"]).to_json()
    sure = model.predict_proba(lasting.batch.values[rows.columns])[:, 0]
    assert len(sure) == len(rows)
    assert sure.min() >= 0.6
    nearest = explainer.explain(rows, 0, min_probability=0)
    assert model.predict_proba(nearest.batch.values[rows.columns])[:, 0].min() < 0.6


def test_lasting_answers_are_what_is_looked_for_unless_the_caller_says_something_else(asked):
    rows, explainer, _ = asked
    lasting = explainer.explain(rows, 0, min_probability="lasting").to_json()
    assert explainer.explain(rows, 0).to_json() == lasting
    assert explainer.explain(rows, 0, min_probability=[None] * len(rows)).to_json() == lasting
    assert explainer.explain(rows, 0, min_probability=0).to_json() != lasting
    for nearest in (
        explainer.with_options(strategy="paper"),
        explainer.with_options(committee=[asked[2]], agreement=1),
    ):
        assert nearest.explain(rows, 0).to_json() == nearest.explain(rows, 0, min_probability=0).to_json()


def test_the_nearest_answer_is_proven_whatever_its_probability(asked):
    rows, explainer, _ = asked
    asked_for = {"prove": True, "prove_seconds": 0.2}
    found = explainer.explain(rows.head(3), 0, **asked_for).to_frame()["probability"]
    pd.testing.assert_series_equal(
        found, explainer.explain(rows.head(3), 0, min_probability=0, **asked_for).to_frame()["probability"]
    )
    assert found.min() < 0.6


class Unsure:
    """A model of numbers that is never sure of label 1 where `cap` holds."""

    classes_ = np.array([0, 1])

    def __init__(self, cap):
        self.cap = cap

    def predict_proba(self, rows):
        sure = 1 / (1 + np.exp(4 - rows["x"].to_numpy() - 0.3 * rows["y"].to_numpy()))
        sure = np.where(self.cap(rows), np.minimum(sure, 0.55), sure)
        return np.column_stack([1 - sure, sure])

    def predict(self, rows):
        return self.predict_proba(rows).argmax(axis=1)


def unsure(cap):
    random = np.random.default_rng(0)
    table = pd.DataFrame({"x": random.uniform(0, 6, 200).round(1), "y": random.uniform(0, 6, 200).round(1), "r": 0})
    table.loc[::2, "r"] = 1
    model = Unsure(cap)
    return table, model, Schema.infer(table, immutable=["r"])


@pytest.mark.parametrize("options", [{}, {"max_model_rows": 150}, {"max_model_calls": 4}], ids=str)
def test_a_row_of_which_no_lasting_answer_is_found_gets_another_that_says_so(options):
    table, model, schema = unsure(lambda rows: rows["r"].to_numpy() == 1)
    explainer = ONBMACF(**options).fit(table, model, schema=schema)
    rows = table[model.predict(table) == 0].head(20)
    answers = explainer.explain(rows, 1)
    assert set(answers.statuses) == {"found"}
    for answer, capped in zip(answers, rows["r"], strict=True):
        found, said = answer.counterfactuals[0], "May not last: none was found with a probability of at least 0.6."
        assert model.predict(found.values.to_frame().T.astype(float))[0] == 1
        assert (said in answer.reason) == (found.probability < 0.6)
        assert answer.sentences()[0].endswith(said) == (found.probability < 0.6)
        assert capped == (found.probability < 0.6)
    assert [answer.to_dict() for answer in answers] == [
        answer.to_dict() for at in range(len(rows)) for answer in explainer.explain(rows.iloc[[at]], 1)
    ]
    strict = explainer.explain(rows, 1, min_probability=0.6)
    assert {answer.status == "found" for answer in strict} == {True, False}


def test_what_may_not_last_is_as_near_as_what_is_asked_for_whatever_its_probability():
    table, model, schema = unsure(lambda rows: rows["r"].to_numpy() >= 0)
    explainer = ONBMACF().fit(table, model, schema=schema)
    rows = table[model.predict(table) == 0].head(20)
    settled, nearest = explainer.explain(rows, 1), explainer.explain(rows, 1, min_probability=0)
    np.testing.assert_array_equal(settled.batch.distance, nearest.batch.distance)
    assert all(reason.startswith("May not last") for reason in settled.reasons)


def test_people_are_told_on_the_page_and_in_the_notice():
    table, model, schema = unsure(lambda rows: rows["r"].to_numpy() == 1)
    explainer = ONBMACF().fit(table, model, schema=schema)
    rows = table[model.predict(table) == 0]
    for capped in (0, 1):
        row = rows[rows["r"] == capped].head(1)
        (plan,) = plan_views(explainer.explain(row, 1)[0], {name: name for name in table.columns})
        assert plan["plausibility"].startswith("May not last: none was found with a") == bool(capped)
        notice = explainer.explain(row, 1)[0].notice(explainer, target=1, date="2026-01-02")
        assert ("may no longer be enough once the model is trained again" in notice.markdown()) == bool(capped)
        said = r"x is [\d.]+\. Of \d+ other values asked about, \d+ would be enough .* the nearest is [\d.]+\."
        assert re.search(said, notice.markdown())


def test_the_word_is_no_column(asked):
    rows, explainer, _ = asked
    marked = rows.assign(lasting=0.9)
    lasting = explainer.explain(marked, 0, min_probability="lasting")
    assert lasting.batch.probability.min() < 0.9


def test_another_word_is_an_error(asked):
    rows, explainer, _ = asked
    with pytest.raises(ParameterError, match="min_probability names a column 'forever'"):
        explainer.explain(rows, 0, min_probability="forever")


def test_a_model_without_probabilities_is_told_so():
    table, _ = load_heart()
    explainer = ONBMACF().fit(table, lambda rows: np.where(rows["ldl"] > 5, 1, 0))
    with pytest.raises(ParameterError, match="predict_proba"):
        explainer.explain(table.iloc[[0]], 0, min_probability="lasting")
