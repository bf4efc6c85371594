"""The speed scripts run at their smallest sizes: all methods ask the same model, and what failed is said."""

import json
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from onbmacf.bench.datasets import load_task

PAGE = Path(__file__).parents[2] / "docs" / "speed" / "README.md"
HEART = "saheart", "logistic"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    pytest.importorskip("xgboost")
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def case(cache):
    """A pipeline on the table that ships with the package."""
    from speed_models import load_case

    return load_case(*HEART, cache)


@pytest.fixture
def nice(monkeypatch):
    """In place of NICE, which is a package of its own: the first row with the label, and two calls for it."""
    import speed_methods

    def first_row(case, model):
        def explain(row):
            return case.take(np.flatnonzero(model.predict(case.take([row, *range(20)])) == 1)[:1])

        return explain

    monkeypatch.setitem(speed_methods.METHODS, "nice", first_row)


@pytest.mark.long
def test_every_part_of_one_row_is_measured_and_has_its_place(nice, cache):
    import speed_one
    from common import machine

    name, model = HEART
    pair = speed_one.CHILDREN["one"](name, model, cache, "ours=2", "ours_read=2", "nice=2", "unknown=1")
    results = {
        "pairs": {name: {model: pair}},
        "budgets": {name: {model: speed_one.CHILDREN["budgets"](name, model, cache, 2)}},
        "steady": {"heart, logistic": speed_one.CHILDREN["steady"](name, model, cache, 10)},
        "batches": {"heart, logistic": speed_one.CHILDREN["batches"](name, model, cache, 3, 1)},
    }
    assert "KeyError" in pair["methods"].pop("unknown")["failed"]
    found = speed_one.places(json.loads(json.dumps({"machine": machine(), "quick": True} | results)))
    assert set(found) == {"machine", "one-row", "batches", "budgets", "steady"}
    assert "| heart | logistic regression | " in found["one-row"]
    assert "time over DiCE's not measured" in found["one-row"]
    assert "NICE's rows and calls | 1.00" in found["budgets"]
    assert "| heart, logistic | 1 / 5 / 10 | " in found["steady"]
    assert "not measured" not in found["batches"].replace("not measured with models as files", "")


@pytest.mark.long
def test_efforts_are_measured_beside_nice_and_judged_by_what_the_search_chose_by(nice, cache, monkeypatch):
    import effort

    monkeypatch.setattr(effort, "EFFORTS", (0.125, 1, 2))
    figures = effort.measure(*HEART, cache, 3)
    assert list(figures) == ["effort 0.125", "effort 1", "effort 2", "NICE"]
    assert figures["effort 2"]["objective"] <= figures["effort 0.125"]["objective"] + 1e-9
    text = effort.page({"heart": figures, "heloc": {"failed": "no table"}})
    assert text.count("| heart | effort") == 3
    assert "| heloc | not measured: no table |" in text


def test_a_row_that_the_model_refuses_has_no_objective(case):
    import effort
    from speed_methods import Run

    rows = case.factuals(2)
    worth = effort.Worth(case, Run("ours", case, rows).explain.explainer.fitted_)
    refused = worth(rows, [case.take([row]) for row in rows])
    assert refused == {"objective": None, "objectives": [None] * 2}


@pytest.mark.long
def test_large_maps_are_measured_in_processes_of_their_own(scripts):
    done = subprocess.run([sys.executable, scripts / "speed_fit.py", "--quick"], capture_output=True, text=True)
    assert "| uniform, 10 numbers | 10,000 | " in done.stdout, done.stderr


@pytest.mark.parametrize("what", ["row", "wide", "levels"])
def test_a_map_is_measured_alone(what):
    from speed_fit import ALONE

    assert all(value > 0 for value in ALONE[what](60, 12).values())


def test_the_table_of_large_maps_says_what_was_not_measured():
    from speed_fit import page

    uniform = {"table_rows": 10_000, "seconds": 0.151, "balls": 1891, "peak_mb": 45.2}
    text = page({"uniform, 10 numbers": [uniform], "adult": [{"failed": "no table"}]})
    assert "| uniform, 10 numbers | 10,000 | 0.15 | 1,891 | 45 |  |" in text
    assert "| adult | not measured: no table |" in text


@pytest.mark.long
def test_own_work_and_first_use_are_measured(monkeypatch):
    import speed_own

    monkeypatch.setattr(speed_own, "TURNS", 1)
    figures = speed_own.measured(speed_own.heart(), speed_own.parsed(["--rows", "2", "--batch", "4"]))
    assert (figures["rows"], figures["batch_rows"]) == (2, 4)
    assert "ms per row of 4" in speed_own.shown(figures)
    first = speed_own.first_use("heart")
    assert "first fit of a process" in speed_own.shown_first(first)
    text = speed_own.page({"quick": False, "tables": {"heart": figures}, "first": {"heart": first, "uniform": first}})
    assert "| uniform, 10,000 x 10 |  |  |" in text


def test_what_the_model_takes_is_measured_apart():
    import speed_own

    table = speed_own.mixed()
    assert table.shape == (1000, 20)
    assert len(table.select_dtypes("number").columns) == 7
    model = speed_own.Cheap(table)
    assert np.bincount(model.predict(table)).tolist() == [700, 300]
    model.predict(table.head(5))
    assert [len(rows) for rows in model.asked] == [1000, 5]
    assert model.seconds() >= 0
    assert model.asked == []


def test_what_one_answer_passes_is_counted_without_the_model():
    from passed import counted
    from speed_own import Cheap, heart

    table = heart()
    files, functions, calls = counted(table, Cheap(table))
    assert 0 < files < functions < calls


def test_codes_become_rows_that_the_pipeline_labels_the_same(case):
    numbers, codes, frame = case.coded()
    assert [case.table.columns[at] for at in codes] == ["famhist"]
    pd.testing.assert_frame_equal(frame(numbers).astype(case.table.dtypes.to_dict()), case.table)
    np.testing.assert_array_equal(case.model.predict(frame(numbers)), case.labels)


def test_what_answers_say_they_asked_is_what_the_pipeline_was_asked(case):
    from speed_methods import Run

    rows = case.factuals(2)
    called, read = Run("ours", case, rows), Run("ours_read", case, rows)
    calls, _, given, *_ = called.call(rows[1])[1]
    assert (calls, given) == (called.model.n_calls, called.model.n_rows)
    assert not called.is_read
    calls, _, given, *_ = read.call(rows[1])[1]
    assert read.is_read
    assert calls == 1
    assert given < called.model.n_rows


def test_only_answers_with_the_desired_label_count(case):
    from speed_methods import quality

    rows = case.factuals(3)
    good = case.take([np.flatnonzero(case.labels == 1)[0]])
    found = quality(case, rows, [good, case.take([rows[1]]), None])
    assert found["success"] == pytest.approx(1 / 3)
    assert found["distances"][1:] == [None, None]
    assert found["distance"] == found["distances"][0] > 0
    assert found["changes"] == (good.iloc[0].to_numpy() != case.table.iloc[rows[0]].to_numpy()).sum()
    assert quality(case, rows, [None] * 3)["success"] == 0


def test_distances_are_compared_where_both_have_an_answer():
    from speed_one import farther

    ours, theirs = {"distances": [1.0, None, 3.0, 9.0]}, {"distances": [2.0, 5.0, 2.0, None]}
    assert farther(ours, theirs) == 1.0
    assert farther(ours, {"distances": [None, 1.0, None, None]}) is None
    assert farther({}, theirs) is None


def test_budgets_are_no_less_than_the_least_for_which_they_are_made():
    from speed_one import wanted

    budgets = wanted([(3, 6), (13, 51)])
    assert budgets["7 calls"] == [{"max_model_calls": 7}] * 2
    least, own = {"max_model_rows": 15, "max_model_calls": 4}, {"max_model_rows": 51, "max_model_calls": 13}
    assert budgets["NICE's rows and calls"] == [least, own]


def test_a_quick_run_fills_in_smaller_sizes_and_keeps_what_was_said():
    from speed_one import FULL, SMALL, parsed

    quick, full = parsed(["--quick", "--rows", "9"]), parsed([])
    assert (quick.rows, quick.tables, quick.turns) == (9, SMALL["tables"], SMALL["turns"])
    assert (full.rows, full.tables, full.turns) == (FULL["rows"], FULL["tables"], FULL["turns"])


def one_answer(cpu_ms, **more):
    return {"cpu_ms": cpu_ms, "calls": 5, "calls_worst": 7, "rows_given": 550, "distances": [1.0, 1.0]} | more


def test_ratios_are_made_of_what_was_measured_and_the_rest_is_said():
    from speed_one import batches_text, pairs_text

    read = one_answer(5, calls=1, calls_worst=1, rows_given=17, is_read=True)
    methods = {"ours": one_answer(20), "ours_read": read, "nice": one_answer(10, distances=[2.0, None])}
    models = {
        "logistic": {"methods": methods | {"dice": one_answer(50)}},
        "forest": {"methods": {"ours": one_answer(20), "nice": {"failed": "no wheel"}}},
        "network": {"methods": methods | {"ours_read": read | {"is_read": False}}},
        "boosting": {"failed": "took too long"},
    }
    text = pairs_text({"saheart": models})
    assert "| heart | logistic regression | 5 / 7 | 1 / 1 | 550 | 17 | 2.00 | 0.50 | 0.50 |" in text
    assert "| heart | 32-16 network | 5 / 7 | cannot be read | 550 | cannot be read | 2.00 | cannot be read |" in text
    assert "Not measured: heart, random forest of 100, NICE: no wheel" in text
    assert "Not measured: heart, HistGradientBoosting, called: took too long" in text
    assert "time over NICE's 2.00 (2.00 to 2.00), where the model is read 0.50 (0.50 to 0.50)" in text
    batch = {"cpu_seconds": 2.0, "rows": 4, "calls": 3}
    own = {"ours": batch, "ours_read": batch | {"cpu_seconds": 1.0, "is_read": True, "calls": 1}}
    text = batches_text({"heart, forest": own | {"nice": batch | {"cpu_seconds": 8.0}}})
    assert "| heart, forest | 4 | 500.00 | 250.00 | 2,000.00 | 4.0 | 8.0 | 3 | 1 |" in text


def test_a_run_fills_the_committed_page_and_leaves_its_words(tmp_path):
    """Twice: what a run wrote, the next one replaces."""
    from common import fill

    committed = PAGE.read_text(encoding="utf-8")
    page = tmp_path / "README.md"
    page.write_text(committed, encoding="utf-8")
    places = ("machine", "one-row", "batches", "budgets", "steady", "effort", "fit", "own")
    for _ in range(2):
        fill(page, {name: f"figures of {name}" for name in places})
    written = page.read_text(encoding="utf-8")
    assert [line for line in written.splitlines() if line.startswith(("#", "<!--"))] == [
        line for line in committed.splitlines() if line.startswith(("#", "<!--"))
    ]
    assert all(written.count(f"figures of {name}\n") == 1 for name in places)
    with pytest.raises(SystemExit, match="no place"):
        fill(page, {"elsewhere": ""})


def test_the_machine_is_described_without_names_or_paths():
    from common import machine

    said = json.dumps(machine())
    assert platform.python_version() in said
    for private in (str(Path.home()), sys.prefix):
        assert len(private) < 2 or private not in said


@pytest.mark.parametrize("kind", [pytest.param("network", marks=pytest.mark.long), "forest"])
def test_a_model_of_numbers_says_what_the_trained_one_says(kind, tmp_path):
    pytest.importorskip("torch" if kind == "network" else "onnxruntime")
    from sklearn.ensemble import RandomForestClassifier

    from onbmacf.bench.network import trained_network
    from speed_models import load_numbers

    task = load_task("saheart")
    case = load_numbers("saheart", kind, tmp_path)
    np.testing.assert_allclose(case.model.encode(case.table), task.Z, atol=1e-12)
    if kind == "network":
        expected = trained_network(task, 0).probability_of(task.Z)
    else:
        expected = RandomForestClassifier(100, min_samples_leaf=5, random_state=0).fit(task.Z, task.y)
        expected = expected.predict_proba(task.Z)[:, 1]
    np.testing.assert_allclose(case.model.predict_proba(case.table)[:, 1], expected, atol=1e-5)


def test_what_imports_take_is_measured_in_fresh_processes_and_has_its_place():
    import speed_import

    found = {name: speed_import.measured(text, 1) for name, text in speed_import.STATEMENTS.items()}
    assert found["import onbmacf"]["libraries"] == []
    assert "sklearn" not in found["from onbmacf import ONBMACF, Schema"]["libraries"]
    page = speed_import.page({"quick": False, "imports": found})
    assert "| `import onbmacf` | " in page
    assert "<!-- import -->" in PAGE.read_text(encoding="utf-8")
