"""The parts that the figures beside NICE rest on: the same pipeline for all, and no ratio of what was not measured."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from onbmacf.bench.datasets import load_task


@pytest.fixture
def case():
    """A pipeline on the table that ships with the package."""
    from speed_pipelines import Case, pipeline_of

    pytest.importorskip("xgboost")
    task = load_task("saheart")
    return Case(task, pipeline_of(task.table, "logistic").fit(task.table, task.y))


def test_distances_are_compared_where_both_have_an_answer():
    from speed_one_report import farther

    ours, theirs = {"distances": [1.0, None, 3.0, 9.0]}, {"distances": [2.0, 5.0, 2.0, None]}
    assert farther(ours, theirs) == 1.0
    assert farther(ours, {"distances": [None, 1.0, None, None]}) is None
    assert farther({}, theirs) is None


def test_codes_become_rows_that_the_pipeline_labels_the_same(case):
    from speed_rivals import coded

    numbers, frame = coded(case.task)
    table = case.task.table
    assert numbers.dtype == np.float64
    pd.testing.assert_frame_equal(frame(numbers).astype(table.dtypes.to_dict()), table)
    np.testing.assert_array_equal(case.pipeline.predict(frame(numbers)), case.labels)


def test_calls_and_rows_are_counted(case):
    from speed_pipelines import Counted

    model = Counted(case.pipeline)
    model.predict(case.task.table.head(3))
    model.predict_proba(case.task.table.head(4))
    assert (model.n_calls, model.n_rows) == (2, 7)
    model.reset()
    assert (model.n_calls, model.n_rows) == (0, 0)


def test_what_answers_say_they_asked_is_what_the_pipeline_was_asked(case):
    from speed_pair import Run

    rows = case.factuals(2)
    called, read = Run("ours", case, rows), Run("ours_read", case, rows)
    calls, _, given, *_ = called.call(rows[1])[1]
    assert (calls, given) == (called.model.n_calls, called.model.n_rows)
    assert not called.is_read
    calls, _, given, *_ = read.call(rows[1])[1]
    assert read.is_read
    assert calls == 1
    assert given < called.model.n_rows


def test_many_rows_in_one_call_and_row_by_row_are_the_same_rows(case):
    from speed_batch import InOneCall

    rows = case.factuals(4)
    called, read = (InOneCall(name, case, rows)() for name in ("ours", "ours_read"))
    assert called["answered"] == read["answered"] == 4
    assert (called["is_read"], read["is_read"]) == (False, True)
    assert read["calls"] < called["calls"]


def test_only_answers_with_the_desired_label_count(case):
    from speed_pair import quality

    table = case.task.table
    rows = case.factuals(3)
    good = table.iloc[[np.flatnonzero(case.labels == 1)[0]]]
    found = quality(case, rows, [good, table.iloc[[rows[1]]], None])
    assert found["success"] == pytest.approx(1 / 3)
    assert found["distances"][1:] == [None, None]
    assert found["distance"] == found["distances"][0] > 0
    assert found["changes"] == (good.iloc[0].to_numpy() != table.iloc[rows[0]].to_numpy()).sum()
    assert quality(case, rows, [None] * 3)["success"] == 0


def test_budgets_follow_what_the_package_offers():
    from speed_budget import wanted

    spent = [(3, 6), (13, 51)]
    rows_only = dict(wanted(spent, {"max_model_rows": None}))
    both = dict(wanted(spent, {"max_model_rows": None, "max_model_calls": None}))
    assert "7 calls" not in rows_only
    assert both["7 calls"] == [{"max_model_calls": 7}] * 2
    least, own = {"max_model_rows": 15, "max_model_calls": 4}, {"max_model_rows": 51, "max_model_calls": 13}
    assert both["NICE's rows and calls"] == [least, own]


def test_the_quickest_run_counts_and_a_failure_only_if_all_fail():
    from speed_one import quickest

    failed, slow, quick = {"failed": "x"}, {"cpu_seconds": 2.0}, {"cpu_seconds": 1.0}
    assert quickest([failed, slow, quick]) is quick
    assert quickest([failed, failed]) is failed


def one_answer(cpu_ms, **more):
    return {"cpu_ms": cpu_ms, "calls": 5, "calls_worst": 7, "rows_given": 550, "distances": [1.0, 1.0]} | more


@pytest.fixture
def results():
    from speed_machine import machine

    budget = dict.fromkeys(("success", "changes", "rows_asked", "rows_asked_worst"), 1.0)
    budget |= {"calls": 5.0, "calls_worst": 7.0, "distances": [2.0]}
    near = budget | {"distances": [1.0]}
    batch = {"cpu_seconds": 2.0, "rows": 4, "calls": 3}
    read = one_answer(5, calls=1, calls_worst=1, rows_given=17, is_read=True)
    methods = {"ours": one_answer(20), "ours_read": read, "nice": one_answer(10, distances=[2.0, None])}
    steady = {"memory_mb": {"100": 200.0, "1000": 201.0}, "median_ms": 4.0, "p99_ms": 10.0, "p99_over_median": 2.5}
    found = {
        "machine": machine(),
        "quick": False,
        "pairs": {
            "saheart": {
                "logistic": {"methods": methods | {"dice": one_answer(50)}},
                "forest": {"methods": {"ours": one_answer(20), "nice": {"failed": "no wheel"}}},
                "network": {"methods": methods | {"ours_read": read | {"is_read": False}}},
                "boosting": {"failed": "took too long"},
            }
        },
        "budgets": {
            "saheart": {"network": {"NICE": budget, "20 rows": near, "NICE's rows and calls": near}},
            "adult": {"network": {"failed": "no table"}},
            "heloc": {"network": {"NICE": budget, "NICE's rows and calls": budget | {"distances": [2.5]}}},
        },
        "steady": {"heart, logistic regression": steady},
        "batches": {
            "heart, forest": {
                "ours": batch,
                "ours_read": batch | {"cpu_seconds": 1.0, "is_read": True, "calls": 1},
                "nice": batch | {"cpu_seconds": 8.0},
            },
            "heart, forest as a file": {"ours": batch, "ours_read": batch, "nice": {"failed": "no wheel"}},
        },
    }
    return json.loads(json.dumps(found))


def test_every_part_has_its_place_and_says_what_failed(results):
    from speed_one_report import places

    found = places(results)
    assert set(found) == {"machine", "one-row", "batches", "budgets", "steady"}
    one = found["one-row"]
    assert "| heart | logistic regression | 5 / 7 | 1 / 1 | 550 | 17 | 2.00 | 0.50 | 0.50 |" in one
    assert "| heart | 32-16 network | 5 / 7 | cannot be read | 550 | cannot be read | 2.00 | cannot be read |" in one
    assert "Not measured: heart, random forest of 100, NICE: no wheel" in one
    assert "Not measured: heart, HistGradientBoosting, called: took too long" in one
    assert "time over NICE's 2.00 (2.00 to 2.00), where the model is read 0.50 (0.50 to 0.50)" in one
    assert "time over DiCE's 0.40 (0.40 to 0.40)" in one
    assert "| heart, forest | 4 | 500.00 | 250.00 | 2,000.00 | 4.0 | 8.0 | 3 | 1 |" in found["batches"]
    assert "4.0 (4.0 to 4.0) with pipelines, 8.0 (8.0 to 8.0) where they are read, not measured" in found["batches"]
    assert "| 20 rows | 1.00 | 0.50 |" in found["budgets"]
    assert "at least as near as NICE's on 1 of 2 pairs" in found["budgets"]
    assert "Not measured: adult, 32-16 network, called: no table" in found["budgets"]
    assert "| heart, logistic regression | 100 / 1,000 | 200.0 / 201.0 | 4.0 | 10.0 | 2.5 |" in found["steady"]


def test_a_run_fills_the_committed_page_and_leaves_its_words(results, tmp_path):
    """Twice: what a run wrote, the next one replaces."""
    import effort
    import speed_fit
    from speed_one_report import places
    from speed_page import fill

    committed = (Path(__file__).parents[2] / "docs" / "speed" / "README.md").read_text(encoding="utf-8")
    page = tmp_path / "README.md"
    page.write_text(committed, encoding="utf-8")
    found = places(results) | {"effort": effort.page({}), "fit": speed_fit.page({}), "own": "nothing"}
    for _ in range(2):
        fill(page, found)
    written = page.read_text(encoding="utf-8")
    assert [line for line in written.splitlines() if line.startswith(("#", "<!--"))] == [
        line for line in committed.splitlines() if line.startswith(("#", "<!--"))
    ]
    assert all(written.count(text.strip()) >= 1 for text in found.values())
    with pytest.raises(SystemExit, match="no place"):
        fill(page, {"elsewhere": ""})


def test_the_objective_of_an_answer_is_what_the_search_chose_by(case):
    """No more effort, no worse: and a row that the model refuses has none."""
    import effort
    from speed_pair import Run

    rows = case.factuals(3)
    runs = [Run("ours", case, rows, effort=share) for share in (0.125, 2)]
    worth = effort.Worth(case, runs[0].explain.explainer.fitted_)
    little, much = (worth(rows, [run.explain(row) for row in rows]) for run in runs)
    assert much["objective"] <= little["objective"] + 1e-9
    refused = worth(rows, [case.task.table.iloc[[row]] for row in rows])
    assert refused == {"objective": None, "objectives": [None] * 3}


def test_a_quick_run_fills_in_smaller_sizes_and_keeps_what_was_said():
    from speed_one import FULL, QUICK, parsed

    quick, full = parsed(["--quick", "--rows", "9"]), parsed([])
    assert (quick.rows, quick.tables, quick.turns) == (9, QUICK["tables"], QUICK["turns"])
    assert (full.rows, full.tables, full.turns) == (FULL["rows"], FULL["tables"], FULL["turns"])
