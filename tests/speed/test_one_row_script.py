"""The parts that the figures of one row per call rest on: the same pipeline for all, and no target met unmeasured."""

import json

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


def figures(cpu_ms, calls=10, calls_worst=15, distances=(1.0, 1.0)):
    return {"cpu_ms": cpu_ms, "calls": calls, "calls_worst": calls_worst, "distances": list(distances)}


def all_methods(ours):
    return {"ours": ours, "nice": figures(10), "dice": figures(50)}


def test_a_pair_within_every_limit_misses_none():
    from speed_goals import goals

    judged = goals(all_methods(figures(20, 12, 18)), {"ours": figures(500, 60)})
    assert judged["missed"] == []
    assert (judged["of_nice"], judged["of_dice"], judged["calls_before"]) == (2.0, 0.4, 60)


@pytest.mark.parametrize(
    "ours, missed",
    [
        (figures(20, calls=13), ["calls"]),
        (figures(20, calls_worst=19), ["worst calls"]),
        (figures(21), ["time of NICE"]),
        (figures(51), ["time of NICE", "time of DiCE"]),
        (figures(20, distances=(1.0, 1.1)), ["distance"]),
    ],
)
def test_each_limit_is_noticed(ours, missed):
    from speed_goals import goals

    assert goals(all_methods(ours), {"ours": figures(500)})["missed"] == missed


def test_what_was_not_measured_meets_no_target():
    from speed_goals import LIMITS, goals

    assert len(goals({}, {})["missed"]) == len(LIMITS)
    failed = {"ours": figures(20), "nice": {"failed": "no wheel"}, "dice": figures(50)}
    assert goals(failed, {"ours": figures(500)})["missed"] == ["time of NICE: not measured"]


def test_distances_are_compared_where_both_have_an_answer():
    from speed_goals import farther

    ours, theirs = {"distances": [1.0, None, 3.0, 9.0]}, {"distances": [2.0, 5.0, 2.0, None]}
    assert farther(ours, theirs) == 1.0
    assert farther(ours, {"distances": [None, 1.0, None, None]}) is None
    assert farther({}, theirs) is None


def test_a_baseline_of_another_pipeline_is_not_compared_with():
    from speed_goals import pairs_of

    pair = {"labels": "a", "methods": {"ours": figures(1)}}
    for labels, methods in (("a", pair["methods"]), ("b", {})):
        baseline = {"saheart": {"logistic": pair | {"labels": labels}}}
        [(_, _, found, before)] = pairs_of({"pairs": {"saheart": {"logistic": pair}}, "baseline": baseline})
        assert (found, before) == (pair["methods"], methods)


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


def test_the_page_shows_every_part_and_what_failed():
    from speed_machine import machine
    from speed_one_report import markdown

    one = dict.fromkeys(("rows", "rows_asked", "rows_given", "wall_ms", "success", "changes", "plausibility"), 1.0)
    ours = one | figures(20) | {"distance": 1.0}
    budget = dict.fromkeys(("success", "changes", "plausibility", "distance", "rows_asked", "rows_asked_worst"), 1.0)
    budget |= {"calls": 5.0, "calls_worst": 7.0, "distances": [2.0]}
    near = budget | {"distances": [1.0]}
    batch = {"cpu_seconds": 2.0, "rows": 4, "calls": 3, "digest": "same"}
    steady = {"memory_mb": {"100": 200.0, "1000": 201.0}, "median_ms": 4.0, "p99_ms": 10.0, "p99_over_median": 2.5}
    results = {
        "machine": machine(),
        "quick": False,
        "pairs": {"saheart": {"logistic": {"labels": "a", "methods": {"ours": ours, "nice": {"failed": "no wheel"}}}}},
        "budgets": {
            "saheart": {"network": {"NICE": budget, "20 rows": near, "NICE's rows and calls": near}},
            "adult": {"network": {"NICE": budget, "NICE's rows and calls": near}},
            "heloc": {"network": {"NICE": budget, "NICE's rows and calls": budget | {"distances": [2.5]}}},
        },
        "steady": {"saheart, logistic": steady},
        "batches": {
            "saheart, forest": {"now": batch, "before": batch | {"cpu_seconds": 3.0}},
            "adult, forest": {"now": batch, "before": {"failed": "no earlier version given"}},
        },
    }
    page = markdown(json.loads(json.dumps(results)))
    assert "0 of 1 pairs meet every target" in page
    assert "not measured: no wheel" in page
    assert "| heart | 32-16 network | 20 rows | 1.00 | 1.000 | 0.50 |" in page
    assert "at least as near as NICE's on 2 of 3 pairs" in page
    assert "at least 1 on every line; 1 of 2 reach it" in page
    assert "| saheart, logistic | 100 / 1,000 | 200.0 / 201.0 | 4.0 | 10.0 | 2.5 |" in page
    assert "| saheart, forest | 4 | 500.00 | 750.00 | 1.50 | 3 | 3 | yes |" in page
    assert "| adult, forest | 4 | 500.00 | not measured | not measured | 3 | not measured | not measured |" in page


def test_a_quick_run_fills_in_smaller_sizes_and_keeps_what_was_said():
    from speed_one import FULL, QUICK, parsed

    quick, full = parsed(["--quick", "--rows", "9"]), parsed([])
    assert (quick.rows, quick.tables, quick.turns) == (9, QUICK["tables"], QUICK["turns"])
    assert (full.rows, full.tables, full.turns) == (FULL["rows"], FULL["tables"], FULL["turns"])
