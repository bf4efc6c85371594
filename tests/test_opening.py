"""The label of few rows is asked with the first points of their search: the same answers, in a call less."""

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF
from onbmacf._batch import explain
from onbmacf._batch.opening import Opening, WrongGuessError


class Halves:
    """Says whether x is above a half; differently between `hole`, and raises above `raises`."""

    def __init__(self):
        self.hole, self.raises, self.sizes = (2.0, 2.0), 10.0, []

    def __call__(self, rows):
        x = rows["x"].to_numpy()
        if (x > self.raises).any():
            raise ValueError(f"no answer for {x.max()}")
        self.sizes.append(len(x))
        inside = (x > self.hole[0]) & (x < self.hole[1])
        return np.where((x > 0.5) != inside, "yes", "no")


@pytest.fixture
def model():
    return Halves()


@pytest.fixture
def explainer(model):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((200, 3)).round(3), columns=list("xyw"))
    return ONBMACF().fit(table, model)


def asked(explainer, rows, monkeypatch, opens, **question):
    """Return answers as text, their status, and the number of calls; with an opening or without."""
    if not opens:
        monkeypatch.setattr(explain.Opening, "of", classmethod(lambda cls, call, rows: None))
    answers = explainer.explain(rows, **question)
    monkeypatch.undo()
    return answers.to_frame().to_csv(), answers.status_frame().to_csv(), answers.n_calls


ROWS = pd.DataFrame({"x": [0.05, 0.15, 0.1], "y": [0.5, 0.1, 0.9], "w": [0.2, 0.7, 0.4]}, index=list("abc"))


@pytest.mark.parametrize("target", ["yes", None])
@pytest.mark.parametrize("n_rows", [1, 3])
def test_the_label_is_asked_with_the_first_points(explainer, monkeypatch, target, n_rows):
    together, in_turn = (
        asked(explainer, ROWS.head(n_rows), monkeypatch, opens, target=target) for opens in (True, False)
    )
    assert together[:2] == in_turn[:2]
    assert together[2] == in_turn[2] - 1


def test_a_row_of_another_label_than_its_ball_gets_the_same_answer(explainer, model, monkeypatch):
    model.hole = (0.14, 0.16)  # the map knows nothing of it
    together, in_turn = (asked(explainer, ROWS, monkeypatch, opens, target=None) for opens in (True, False))
    assert together[:2] == in_turn[:2]
    assert together[2] == in_turn[2]  # the first points are asked in vain, and the labels need no call of their own
    said = explainer.explain(ROWS, target="yes").status_frame()["status"]
    assert said.tolist() == ["found", "already", "found"]


def test_a_model_that_raises_on_points_loses_no_label(explainer, model, monkeypatch):
    model.raises = 0.6
    together, in_turn = (asked(explainer, ROWS, monkeypatch, opens, target="yes") for opens in (True, False))
    assert together[:2] == in_turn[:2]


def test_a_model_that_raises_on_a_row_is_told(explainer, model):
    model.raises = 0.12
    statuses = explainer.explain(ROWS, target="yes").status_frame()["status"]
    assert statuses["b"] == "model_error"


def test_the_label_is_asked_where_the_search_asks_nothing(explainer, model):
    box = explainer.fitted_.black_box.counting()
    opening = Opening(ROWS.head(1).to_numpy(), np.array([0]))
    assert opening.ask(box, np.empty((0, 3)), 1).tolist() == []
    assert box.counts.n_calls == 0
    assert opening.said(box).tolist() == ["no"]
    assert box.counts.n_calls == 1
    assert opening.said(box).tolist() == ["no"]
    assert box.counts.n_calls == 1
    with pytest.raises(WrongGuessError):
        Opening(ROWS.head(1).to_numpy(), np.array([1])).said(box)


@pytest.mark.parametrize("options", [{"max_model_rows": 50}, {"max_model_calls": 9}])
def test_within_a_limit_every_call_is_counted_one_by_one(explainer, monkeypatch, options):
    limited = explainer.with_options(**options)
    both = [asked(limited, ROWS.head(1), monkeypatch, opens, target="yes") for opens in (True, False)]
    assert both[0] == both[1]


def test_many_rows_are_labelled_first(explainer, model):
    model.sizes.clear()
    many = pd.concat([ROWS] * 7, ignore_index=True)
    explainer.explain(many, target="yes")
    assert model.sizes[0] <= 32  # 21 rows, padded: the labels alone
