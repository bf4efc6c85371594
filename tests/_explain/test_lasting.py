"""Answers that last: one word for the least probability that the evidence of decision 0052 speaks for."""

import numpy as np
import pytest

from onbmacf import ONBMACF
from onbmacf._explain.request import PROBABILITIES
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
    assert model.predict_proba(explainer.explain(rows, 0).batch.values[rows.columns])[:, 0].min() < 0.6


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
