"""A limit of time: the best so far, rows that were not reached say so, and nothing else changes."""

import re
from time import sleep

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF, Rule, Rules, Schema
from onbmacf._explain.searches import MOST_TOGETHER
from onbmacf._search import joint, oracle, refined, rounds
from onbmacf.errors import ParameterError
from one_call import InOneCall

TABLE = pd.DataFrame(np.random.default_rng(0).random((60, 3)).round(2) * 5, columns=["x", "r", "s"])
LIMIT = 0.2  # seconds; a model that is slow sleeps longer in one call, however fast the machine is


def slow():
    """Return a model that sleeps in one of its calls."""
    return InOneCall(lambda rows: rows["x"] * rows["r"] > 6, lambda: sleep(1.5 * LIMIT))


@pytest.fixture
def model():
    return slow()


IN_PROCESSES = pytest.param({"n_jobs": 2}, marks=pytest.mark.xdist_group("processes"))


@pytest.mark.parametrize("options", [{}, {"strategy": "paper"}, IN_PROCESSES, {"max_model_rows": 60}], ids=str)
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
    assert (slow().predict(found) == found["to"].astype(int)).all()
    assert set(answers.statuses) <= {"found", "none_found"}
    assert all("max_seconds" in reason for reason in answers.reasons)
    kept = pd.concat([TABLE.iloc[[0]].iloc[:0], *(TABLE.loc[[at]] for at in found.index)])
    assert (found["x"].to_numpy() >= kept["x"].to_numpy()).all()


def test_rows_that_were_not_reached_say_so(model):
    explainer = ONBMACF().fit(TABLE, model)
    many = pd.DataFrame(np.random.default_rng(1).random((3 * MOST_TOGETHER, 3)).round(3) * 5, columns=TABLE.columns)
    model.calls_left = 1  # the rows that are searched together first have their answers from this call
    answers = explainer.explain(many, max_seconds=LIMIT)
    first, others = answers[:MOST_TOGETHER], answers[MOST_TOGETHER:]
    assert set(first.reasons) == {"max_seconds limited the search: others may be nearer."}
    assert set(others.reasons) == {"Not reached within max_seconds: raise it, or give fewer rows."}
    assert set(others.statuses) == {"none_found"}
    explainer = explainer.with_options(strategy="paper")
    model.calls_left = 1  # the rows' own labels, and nothing else
    answers = explainer.explain(many[:3], max_seconds=LIMIT)
    assert list(answers.reasons) == ["Not reached within max_seconds: raise it, or give fewer rows."] * 3
    assert list(answers.statuses) == ["none_found"] * 3


@pytest.mark.parametrize("asked", [{"ranges": True}, {"front": True}], ids=str)
def test_what_comes_after_the_search_ends_in_time_too(model, asked):
    explainer = ONBMACF().fit(TABLE, model)
    model.calls_left = 40
    answers = explainer.explain(TABLE[:4], max_seconds=LIMIT, **asked)
    found = answers.to_frame()
    assert (slow().predict(found) == found["to"].astype(int)).all()


@pytest.mark.parametrize("value", [0, -1, "soon", float("nan"), float("inf"), True])
def test_a_time_that_is_none_is_refused(model, value):
    with pytest.raises(ParameterError, match="max_seconds must be a number above 0"):
        ONBMACF().fit(TABLE, model).explain(TABLE[:1], max_seconds=value)


STUCK = {"rules": {"features": {"x": {"direction": "down"}, "r": {"direction": "down"}}}, "target": 1}


@pytest.mark.parametrize(
    "module, stage, asked, dial",
    [
        (rounds, "propose", {}, 0.5),
        (refined, "without_rules", STUCK, 0.5),
        (joint, "_corners", STUCK, 0.5),
        (refined, "into_the_interior", {}, 1.0),
    ],
)
def test_no_stage_prepares_questions_that_come_too_late(model, monkeypatch, module, stage, asked, dial):
    """In a wide table this is what takes long, not the model."""
    begun, own = [], getattr(module, stage)

    def counted(*arguments):
        begun.append(stage)
        return own(*arguments)

    monkeypatch.setattr(module, stage, counted)
    explainer = ONBMACF(plausibility=dial).fit(TABLE, model)
    low = TABLE[(TABLE["x"] * TABLE["r"] < 6)][:3]
    explainer.explain(low, **asked)
    assert begun
    begun.clear()
    model.calls_left = 1  # the rows' own labels are known then, and the time is up
    explainer.explain(low, max_seconds=LIMIT, **asked)
    assert begun == []


def test_rows_that_were_not_reached_have_no_label(model, monkeypatch):
    explainer = ONBMACF().fit(TABLE, model)
    monkeypatch.setattr(oracle, "is_over", lambda deadline: deadline < np.inf)  # up once the search has begun
    answers = explainer.explain(TABLE.head(9), max_seconds=600)
    assert list(answers.labels) == [None] * 9
    assert all("max_seconds" in reason for reason in answers.reasons)


WIDE = pd.DataFrame(np.random.default_rng(0).random((40, 340)).round(3)).add_prefix("c")
WIDE["c5"] = np.arange(40) % 3 / 4  # a row with two low values needs both to change


def searches_of(monkeypatch, model, rows, names, table=WIDE):
    """Explain with few features free; return the answers and how many searches they took."""
    from onbmacf._explain import run

    explainer, searches = ONBMACF().fit(table, model), []
    for name in ("searched", "search_all"):
        own = getattr(run, name)
        monkeypatch.setattr(run, name, lambda *given, own=own: (searches.append(given), own(*given))[1])
    return explainer.explain(rows, vary=names), len(searches)


def test_of_many_immutable_features_those_are_released_that_tell_the_labels_apart(monkeypatch):
    answers, n = searches_of(monkeypatch, lambda rows: (rows["c300"] > 0.5).astype(int), WIDE.head(2), ["c1", "c2"])
    assert n <= 3
    assert [list(own) for own in answers.would_need] == [["c300"]] * 2


def test_what_was_not_released_is_said(monkeypatch):
    from onbmacf._explain import infeasible

    monkeypatch.setattr(infeasible, "MOST_QUESTIONS", 10**6)
    both = lambda rows: ((rows["c300"] > 0.5) & (rows["c5"] > 0.4)).astype(int)  # noqa: E731
    rows = WIDE[(WIDE["c300"] < 0.4) & (WIDE["c5"] < 0.3)].head(1)
    answers, n = searches_of(monkeypatch, both, rows, ["c1", "c2"])
    assert n == 33
    said = "Only 32 of the 338 immutable features were released by themselves; all together were not."
    assert f" questions to the model. {said} Looking for what it would need took " in answers[0].reason
    narrow = WIDE[[*WIDE.columns[:10], "c300"]]
    few = searches_of(monkeypatch, both, rows[narrow.columns], ["c1", "c2"], narrow)[0]
    assert list(few[0].would_need) == ["c5", "c300"]  # of 9 every one is tried, and all together
    assert "released by themselves" not in few[0].reason


def test_of_many_rules_some_are_released(monkeypatch):
    from onbmacf._explain import infeasible

    monkeypatch.setattr(infeasible, "MOST_SINGLY", 2)
    rules = Rules({"x": Rule(high=1), "r": Rule(high=1), "s": Rule(high=1)})
    row = pd.DataFrame({"x": [0.5], "r": [0.5], "s": [0.5]})
    explainer = ONBMACF().fit(TABLE, lambda rows: (rows["s"] > 2).astype(int), schema=Schema.infer(TABLE, rules=rules))
    reason = explainer.explain(row)[0].reason
    assert "One is found without" in reason
    assert "Only 2 of the 3 rules were released by themselves. Looking for what" in reason


def test_a_reason_counts_every_question_and_looking_for_it_has_a_budget(monkeypatch):
    """Four rows took 91,000 questions while their reasons said 586."""
    from onbmacf._explain import infeasible

    monkeypatch.setattr(infeasible, "MOST_QUESTIONS", 3000)
    rng, names = np.random.default_rng(0), [f"x{at}" for at in range(30)]
    table = pd.DataFrame(rng.normal(size=(400, 30)).round(2), columns=names)
    n_high = lambda rows: (rows.to_numpy() > -0.1).sum(axis=1)  # noqa: E731
    schema = Schema.infer(table, immutable=names[2:], rules=Rules(max_changes=2))
    explainer = ONBMACF().fit(table, lambda rows: np.where(n_high(rows) > 18, "yes", "no"), schema=schema)
    rows = table[n_high(table) < 15].head(3)
    answers = explainer.explain(rows, target="yes")
    counts = []
    for answer in answers:
        assert answer.status == "none_found"
        first, more = re.search(r"with ([\d,]+) questions .* took ([\d,]+) more questions", answer.reason).groups()
        counts.append((int(first.replace(",", "")), int(more.replace(",", ""))))
        assert re.search(r"Only \d+ of the 28 immutable features were released", answer.reason)
        assert answer.would_need[-1] == "the rule of at most 2 changes"  # which is looked for beyond the budget
    assert answers.n_questions <= sum(map(sum, counts)) + 2 * len(
        rows
    )  # beside these, the labels and what is confirmed
    assert all(more < 3000 + 6 * 1000 for _, more in counts)
    assert answers[1].reason == explainer.explain(rows.iloc[[1]], target="yes")[0].reason
