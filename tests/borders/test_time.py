"""A limit of time: the best so far, rows that were not reached say so, and nothing else changes."""

from time import sleep

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF, Rule, Rules, Schema
from onbmacf.errors import ParameterError

TABLE = pd.DataFrame(np.random.default_rng(0).random((60, 3)).round(2) * 5, columns=["x", "r", "s"])
LIMIT = 0.2  # seconds; a model that is slow sleeps longer in one call, however fast the machine is


class Slow:
    """Sleeps in one of its calls, counted from when it is told."""

    def __init__(self):
        self.calls_left = None

    def predict(self, rows):
        if self.calls_left is not None:
            self.calls_left -= 1
            if self.calls_left == 0:
                sleep(1.5 * LIMIT)
        return (rows["x"] * rows["r"] > 6).astype(int)


@pytest.fixture
def model():
    return Slow()


@pytest.mark.parametrize("options", [{}, {"strategy": "paper"}, {"n_jobs": 2}, {"max_model_rows": 60}], ids=str)
def test_enough_time_changes_nothing(model, options):
    schema = Schema.infer(TABLE, rules=Rules({"x": Rule(direction="up")}), immutable=["s"])
    explainer = ONBMACF(**options).fit(TABLE, model, schema=schema)
    free, limited = explainer.explain(TABLE[:6]), explainer.explain(TABLE[:6], max_seconds=1e6)
    pd.testing.assert_frame_equal(limited.to_frame(), free.to_frame())
    assert list(limited.reasons) == list(free.reasons)


@pytest.mark.parametrize("strategy", ["refined", "paper"])
@pytest.mark.parametrize("n_calls", [1, 2, 3, 5])
def test_what_is_returned_when_the_time_is_up_holds(model, strategy, n_calls):
    schema = Schema.infer(TABLE, rules=Rules({"x": Rule(direction="up")}))
    explainer = ONBMACF(strategy=strategy).fit(TABLE, model, schema=schema)
    model.calls_left = n_calls
    answers = explainer.explain(TABLE[:8], max_seconds=LIMIT)
    found = answers.to_frame()
    assert (Slow().predict(found) == found["to"].astype(int)).all()
    assert set(answers.statuses) <= {"found", "none_found"}
    assert all("max_seconds" in reason for reason in answers.reasons)
    kept = pd.concat([TABLE.iloc[[0]].iloc[:0], *(TABLE.loc[[at]] for at in found.index)])
    assert (found["x"].to_numpy() >= kept["x"].to_numpy()).all()


def test_rows_that_were_not_reached_say_so(model):
    explainer = ONBMACF().fit(TABLE, model)
    model.calls_left = 1
    answers = explainer.explain(TABLE[:3], max_seconds=LIMIT)
    assert list(answers.reasons) == ["not reached within max_seconds: raise it, or give fewer rows."] * 3
    assert list(answers.statuses) == ["none_found"] * 3
    many = pd.concat([TABLE] * 20)
    model.calls_left = 1
    assert explainer.explain(many, max_seconds=LIMIT).statuses.tolist() == ["none_found"] * len(many)


@pytest.mark.parametrize("asked", [{"ranges": True}, {"front": True}], ids=str)
def test_what_comes_after_the_search_ends_in_time_too(model, asked):
    explainer = ONBMACF().fit(TABLE, model)
    model.calls_left = 40
    answers = explainer.explain(TABLE[:4], max_seconds=LIMIT, **asked)
    found = answers.to_frame()
    assert (Slow().predict(found) == found["to"].astype(int)).all()


@pytest.mark.parametrize("value", [0, -1, "soon", float("nan"), float("inf"), True])
def test_a_time_that_is_none_is_refused(model, value):
    with pytest.raises(ParameterError, match="max_seconds must be a number above 0"):
        ONBMACF().fit(TABLE, model).explain(TABLE[:1], max_seconds=value)
