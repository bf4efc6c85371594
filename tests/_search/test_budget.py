"""How far the search looks: best first or everywhere, within a budget, in one process or several."""

import threading
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF, Schema
from onbmacf._explain import searches
from onbmacf._search.options import Options
from onbmacf._search.rounds import CAPACITY
from onbmacf._search.strategies import STRATEGIES
from onbmacf.errors import OnbmacfWarning


def wavy(rows):
    """A boundary with many folds, so that the cover has many balls."""
    return (np.sin(25 * rows["a"]) + np.cos(31 * rows["b"]) + rows["c"] > 0.4).astype(int)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    return pd.DataFrame(rng.random((2500, 3)).round(4), columns=list("abc"))


@pytest.fixture(scope="module")
def fitted(table):
    return ONBMACF(2, strategy="paper", search="exhaustive").fit(table, wavy)


def explain(fitted, rows, **parameters):
    explainer = ONBMACF(**{"n_counterfactuals": 2, "strategy": "paper", **parameters})
    explainer.fitted_ = fitted.fitted_
    return explainer.explain(rows)


def test_best_first_asks_far_less_and_is_nearly_as_near(fitted, table):
    assert len(fitted.cover_) > 500
    every, best = explain(fitted, table.head(40), search="exhaustive"), explain(fitted, table.head(40))
    assert best.n_questions < every.n_questions / 2
    assert list(best.statuses) == list(every.statuses) == ["found"] * 40
    assert best.to_frame()["distance"].mean() < 1.1 * every.to_frame()["distance"].mean()


def test_with_few_balls_both_searches_give_the_same_answer(heart):
    model = lambda rows: (rows["tobacco"] + rows["ldl"] > 10).astype(int)  # noqa: E731
    schema = Schema.infer(heart, immutable=["age"])
    frames = [
        ONBMACF(3, strategy="paper", search=how).fit(heart, model, schema=schema).explain(heart.head(30)).to_frame()
        for how in ("best_first", "exhaustive")
    ]
    pd.testing.assert_frame_equal(*frames)


@pytest.mark.parametrize("budget", [200, 450, 1000])
@pytest.mark.parametrize("search", ["best_first", "exhaustive"])
def test_a_budget_of_questions_is_never_exceeded(fitted, table, budget, search):
    free = explain(fitted, table.head(1), search="exhaustive")
    assert free.n_questions > 1000
    for row in range(5):
        answers = explain(fitted, table.iloc[[row]], search=search, max_model_rows=budget)
        assert answers.n_questions <= budget
        if search == "exhaustive":
            assert answers[0].status == "found"
            assert "max_model_rows limited the search" in answers[0].reason


@pytest.mark.parametrize("budget", [20, 60, 120, 240])
@pytest.mark.parametrize("dial", [0.0, 0.5, 1.0])
def test_the_refined_strategy_keeps_to_its_budget_and_answers_with_what_it_has(fitted, table, budget, dial):
    how = {"strategy": "refined", "n_counterfactuals": 1, "plausibility": dial}
    assert explain(fitted, table.head(1), **how).n_questions > 240
    together = explain(fitted, table.head(5), max_model_rows=budget, **how)
    for row in range(5):
        alone = explain(fitted, table.iloc[[row]], max_model_rows=budget, **how)
        assert alone.n_questions <= budget
        assert "max_model_rows limited the search" in alone[0].reason
        assert alone[0].status == "found"
        pd.testing.assert_frame_equal(alone.to_frame(), together.to_frame().loc[lambda f, i=row: f.index == i])


def test_with_no_question_left_a_fitted_row_is_the_answer_if_it_may_be(fitted, table):
    answer = explain(fitted, table.head(1), max_model_rows=1)[0]
    assert answer.status == "found"
    assert (table == answer.counterfactuals[0].values[table.columns]).all(axis=1).any()
    assert "max_model_rows limited the search" in answer.reason


def test_a_budget_too_small_for_anything_is_said(table):
    held = ONBMACF(max_model_rows=1).fit(table, wavy, schema=Schema.infer(table, immutable=[table.columns[0]]))
    answer = held.explain(table.head(1))[0]
    assert (answer.status, answer.counterfactuals) == ("none_found", ())
    assert "max_model_rows" in answer.reason


@pytest.mark.xdist_group("processes")  # one pool for all of them
def test_the_same_answers_for_any_number_of_processes(fitted, table):
    alone, together = explain(fitted, table.head(30)), explain(fitted, table.head(30), n_jobs=2)
    pd.testing.assert_frame_equal(alone.to_frame(), together.to_frame())


def test_a_model_that_cannot_travel_stays_in_this_process_and_says_so(table):
    lock = threading.Lock()

    def held(rows):
        with lock:
            return wavy(rows)

    explainer = ONBMACF(n_jobs=2).fit(table.head(300), held)
    with pytest.warns(OnbmacfWarning, match="cannot be sent to other processes"):
        answers = explainer.explain(table.head(10))
    assert list(answers.statuses) == ["found"] * 10


def test_a_front_shares_one_budget(fitted, table):
    how = {"strategy": "refined", "search": "best_first"}
    explainer = fitted.with_options(**how, max_model_rows=1500)
    assert fitted.with_options(**how).explain(table.head(1), front=True).n_questions > 1500
    answers = explainer.explain(table.head(1), front=True)
    assert answers.n_questions <= 1500
    assert answers[0].status == "found"


def call_of(strategy, n_jobs=1, search="best_first", n_balls=1, width=1):
    """What cutting rows into parts looks at."""
    return SimpleNamespace(
        options=Options(n_jobs=n_jobs, search=search),
        strategy=STRATEGIES[strategy],
        fitted=SimpleNamespace(cover=range(n_balls), space=SimpleNamespace(width=width, blocks=range(width))),
    )


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
@pytest.mark.parametrize("n", [0, 1, 7, 100])
def test_parts_to_walk_hold_every_row_once(n, n_jobs):
    for search in ("exhaustive", "best_first"):
        pieces = searches._pieces(call_of("paper", n_jobs, search, n_balls=10_000, width=12), np.arange(n))
        assert [row for piece in pieces for row in piece] == list(range(n))


@pytest.mark.parametrize("search", ["exhaustive", "best_first"])
@pytest.mark.parametrize("n_balls", [2, 300, 10_000])
def test_of_wide_tables_fewer_rows_are_searched_together(search, n_balls):
    """A step takes as long, and as much memory, as it has numbers; Ctrl-C is heard between steps."""
    widths = (10, 1_000, 10_000)
    calls = [call_of("paper", 1, search, n_balls, width) for width in widths]
    sizes = [len(searches._pieces(call, np.arange(10_000))[0]) for call in calls]
    assert sizes[0] > sizes[1] > sizes[2] >= 1 or sizes[1:] == [1, 1]
    assert all(
        size == 1 or size * 32 * width <= searches.MOST_NUMBERS for size, width in zip(sizes, widths, strict=True)
    )


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_parts_hold_every_row_once_and_of_wide_tables_fewer_rows(n_jobs):
    """The points that the rows of a part may ask about are held at once: 40 rows of 600 columns took 17 GB."""
    lines, sizes = np.arange(0, 2_000, 2), []
    for n_features in (3, 50, 600, 20_000):
        pieces = searches._pieces(call_of("refined", n_jobs, width=n_features), lines)
        assert np.concatenate(pieces).tolist() == lines.tolist()
        assert len(pieces) >= n_jobs
        sizes.append(max(map(len, pieces)))
        assert sizes[-1] == 1 or sizes[-1] * CAPACITY * n_features <= searches.MOST_NUMBERS
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[2] > sizes[3] == 1
