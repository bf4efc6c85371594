"""The other scripts of benchmarks/ run at their smallest sizes and print what they should."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from onbmacf.bench.datasets import Description, as_task, load_task

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.long
def test_the_dial_is_measured_and_what_falls_short_is_seen():
    pytest.importorskip("torch")
    import dial

    pair = dial.pair_of("saheart", "forest", 6, None)
    line = dial.measured(pair)
    assert (line["rows"], line["short"]) == (6, 0)
    assert 0 < line["l1"] < line["l1 NICE"]
    assert line["won"] == (line["lost"] == "")
    method = dial.OnbMacf(plausibility=1.0).fit(pair.task, pair.model, 0)
    short, total = dial.fall_short(pair, method.explainer_, [np.atleast_2d(z) for z in pair.factuals])
    assert 0 < short <= total


def test_answers_that_are_fitted_rows_are_counted():
    pytest.importorskip("torch")
    from verbatim import measured

    line = measured("saheart", "forest", 4, None)
    assert (line["fitted rows"], line["answers"], line["equal a row"]) == (462, 4, "0.0 %")


def test_numbers_in_plans_are_on_their_step_round_and_true():
    pytest.importorskip("torch")
    pytest.importorskip("xgboost")
    from rounded import is_off, is_round, measured

    line, exact = measured("saheart", "forest", 8), measured("saheart", "forest", 8, "exact")
    assert (line["plans"], line["off the step"], line["false"]) == (24, 0, 0)
    assert line["numbers"] >= 24
    assert line["as round as 2 % allow"] >= 0.9 > exact["as round as 2 % allow"]
    money, share = SimpleNamespace(step=500), SimpleNamespace(step=None)
    assert [is_off(value, money, 0) for value in (1500.0, 1501.0)] == [False, True]
    assert [is_off(value, share, 2) for value in (0.29, 1e6 + 0.01, 0.295)] == [False, False, True]
    assert [is_round(19_000, value, 0, 1e5) for value in (23_917.46, 24_000)] == [False, True]  # 2 % of the way: 98
    assert is_round(19_000, 23_950, 0, 23_960)  # beyond the fitted numbers are no others


@pytest.mark.long
def test_what_lasts_is_measured_on_tables(monkeypatch, capsys):
    pytest.importorskip("torch")
    pytest.importorskip("xgboost")
    import lasting

    monkeypatch.setattr(lasting, "LEAST", (0.0, 0.7))
    monkeypatch.setattr(lasting, "RETRAININGS", 2)
    lasting.report_tables(["saheart"], ["forest"], 3, None)
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == ["saheart", "forest"]
    assert [line.split()[0] for line in said[-3:]] == ["0.00", "0.70", "NICE"]


@pytest.mark.long
def test_what_lasts_is_measured_after_retraining_and_noise(monkeypatch, capsys):
    pytest.importorskip("torch")
    pytest.importorskip("xgboost")
    import lasting

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((120, 3)).round(3), columns=["a", "b", "c"])
    frame["y"] = np.where(frame["a"] + frame["b"] + rng.normal(0, 0.2, 120) > 1, "yes", "no")
    task = as_task("small", frame, Description("y", ("yes",), ("no", "yes")))
    monkeypatch.setitem(lasting.ESTIMATORS, "linear", LogisticRegression())
    lasting.report_heloc("linear", task, 4, 3)
    said = capsys.readouterr().out
    assert "linear: 4 rejected rows" in said
    assert said.count("| agreement=1, 15 members |") == 2
    assert said.count("| NICE |") == 2


WEIGHTS = {"intercept": -0.5, "numbers": {"hours": 0.02}, "levels": {"age": {"1 to 2": 0.1, "2 to 3": -0.2},
           "sex": {"f": 0.0, "m": 0.3}}}  # fmt: skip
ROWS = pd.DataFrame({"age": ["1 to 2", "2 to 3"] * 3, "sex": ["f", "m", "m"] * 2, "hours": [5.0, 9, 15, 21, 30, 45]})


def test_both_forms_of_the_audited_model_say_the_same_and_read_intervals_as_text():
    from facts import MODELS

    plain, pipeline = (make(WEIGHTS) for make in MODELS.values())
    assert plain.predict(ROWS).tolist() == pipeline.predict(ROWS).tolist() == [0, 0, 1, 0, 1, 1]
    ends = ROWS["age"].str.split(" to ", expand=True).astype(float)
    intervals = pd.Series([pd.Interval(*pair) for pair in ends.to_numpy()], dtype=object)
    assert plain.predict(ROWS.assign(age=intervals)).tolist() == plain.predict(ROWS).tolist()


@pytest.mark.long
def test_figures_beside_facts_are_compared_and_the_whole_audit_is_timed(monkeypatch, capsys):
    """FACTS needs an environment of its own: here it is told by hand."""
    import facts

    actions = [{"to": {"sex": "m"}, "macro_cost": 1, "micro_cost": 1.0}]
    figures = {"effectiveness macro": 0.0, "choices macro": 1.0}  # the second is wrong
    told = {"if": {"age": "1 to 2"}, "groups": {"f": {"actions": actions, "figures": figures}}}
    theirs = {"seconds": 1.0, "cpu_seconds": 1.0, "versions": {}, "subgroups": [told]}
    monkeypatch.setattr(facts, "facts", lambda *_: theirs)
    asked = SimpleNamespace(agree_support=0.3, support=0.1, limit=1, model="plain", explain=2, chunk=512)
    facts.report_agreement(asked, ROWS, WEIGHTS)
    assert "1 of 2 differ otherwise" in capsys.readouterr().out
    rows = pd.concat([ROWS] * 10, ignore_index=True)
    rows = rows.assign(race="other", hours=rows["hours"] + np.arange(60) % 7)
    facts.report_times(asked, rows, pd.Series(np.arange(60) % 2), WEIGHTS)
    said = capsys.readouterr().out
    assert "2 refused rows explained; CPU seconds until: fit " in said
    assert "times the CPU, 1 subgroups" in said


@pytest.mark.long
def test_the_pages_of_the_service_are_timed():
    pytest.importorskip("httpx")
    pytest.importorskip("fastapi")
    import serve

    first, locks, ranges = serve.measured(1)
    text = serve.PAGE.format(first=first, locks=locks, ranges=ranges, n=len(serve.LOCKS))
    assert all(times.waited > 0 for times in (first, locks, ranges))
    assert "| plans after a lock, median of 5 |" in text


@pytest.mark.long
def test_a_service_under_bad_clients_and_kills_gives_no_wrong_answer():
    pytest.importorskip("httpx")
    pytest.importorskip("fastapi")
    import soak

    tally = soak.measured(5, n_clients=3, kill_every=2)
    assert tally.is_good(), tally.text()
    assert "wrong answers                          0\n" in tally.text()
    tally.judge(200, "another answer", "the answer")
    assert not tally.is_good()


@pytest.mark.long
def test_answers_are_the_same_twice_and_what_differs_is_named(tmp_path, monkeypatch, capsys):
    import unchanged

    monkeypatch.setattr(unchanged, "MOST_ROWS", 120)
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    options = ["--rows", "1", "--tables", "saheart", "--models", "tree"]
    assert unchanged.main([str(before), *options]) == 0
    found = json.loads(before.read_text(encoding="utf-8"))
    assert len(found) == 12
    found["saheart tree five"]["digest"] = "other"
    before.write_text(json.dumps(found), encoding="utf-8")
    assert unchanged.main([str(after), "--compare", str(before), *options]) == 1
    assert capsys.readouterr().out.endswith("1 of 12 differ\n  saheart tree five\n")


def test_what_proofs_prove_and_cost_is_one_line_per_model():
    pytest.importorskip("xgboost")
    from prove_heloc import HEAD, TAIL, line

    table = load_task("saheart").table.select_dtypes("number")
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(table, load_task("saheart").y)
    cells = dict(zip((*HEAD, *TAIL), line(table, "small", model, 4, 3), strict=True))
    assert sum(cells[name] for name in ("nearest", "within 5 %", "none exists", "open")) == cells["rows"] == 3
    assert cells["false"] == 0


def test_answers_hold_where_the_true_mechanisms_are_given():
    import causes

    lines = list(causes.measured("three variables, linear", 5))
    assert [line["true"] for line in lines] == [1.0, 1.0]
    assert [line["n_true"] for line in lines] == [5, 5]
    assert all(line["without"] <= 1.0 for line in lines)


def test_counterfactual_samples_are_compared_with_those_of_another():
    """In dowhy's place stands the naive twin; the script says how far apart the two are."""
    from sklearn.linear_model import LinearRegression

    import causes_dowhy
    from pearl import what_would_be

    problem = causes_dowhy.drawn(3)
    rows = pd.DataFrame(problem["rows"], columns=problem["columns"])
    graph = {}
    for name, some in problem["causes"].items():
        fitted = LinearRegression().fit(rows[some].to_numpy(), rows[name].to_numpy())
        graph[name] = some, lambda given, f=fitted, s=some: f.predict([[given[one] for one in s]])[0], False
    theirs = [
        [
            [*what_would_be(row, action, graph).values()]
            for row in rows.head(causes_dowhy.N_EXPLAINED).to_dict("records")
        ]
        for action in problem["actions"]
    ]
    assert problem["causes"]
    assert causes_dowhy.farthest(problem, theirs) < causes_dowhy.CLOSE
    theirs[0][0][0] += 1e-6
    assert causes_dowhy.farthest(problem, theirs) > causes_dowhy.CLOSE


def test_merged_thresholds_are_measured_on_rows_left_out():
    from cut_points import binned, line_of, measured

    line = measured("saheart", "tree", n_explained=10, most_rows=120, repeats=1)
    assert line["rows"] == 120
    assert 0 < line["crossed"] < 1
    assert all(0.3 < line[name] < 1 for name in ("majority", "before", "merged", "drawn"))
    assert line["change"] == pytest.approx(line["merged"] - line["before"])
    assert len(line_of(line)) == 9
    rows = pd.DataFrame({"a": [1.0, 2.5, 2.6, 9.0], "b": [0.0, 1.0, 2.0, 3.0]})
    coarse = binned(rows, {"a": np.array([5.0, 2.5]), "b": np.empty(0)})
    assert coarse.to_numpy().tolist() == [[0, 0], [0, 0], [1, 0], [2, 0]]  # a threshold belongs to the bin below it


@pytest.mark.long
def test_answers_in_blocks_are_judged_by_models_that_had_no_part_in_them(monkeypatch, tmp_path):
    import zipfile

    import blocks

    usual, sure = "blocks, default", "blocks, min_neighbours=4, min_probability=0.99, plausibility=1"
    monkeypatch.setattr(blocks, "WAYS", {way: blocks.WAYS[way] for way in (usual, sure)})
    lines = list(blocks.digits(6, 1))
    assert [(line["way"], line["n"]) for line in lines] == [(usual, 6), (sure, 6)]
    assert lines[0]["SVM"] <= lines[1]["SVM"]
    assert 4 <= lines[1]["changed"] <= 20
    assert "| 6 |" in blocks.text_of(blocks.averaged(lines, "way"), "way", ("SVM", "network"), "pixels")
    rng = np.random.default_rng(0)
    with zipfile.ZipFile(tmp_path / "wheel.zip", "w") as archive:
        for name, (length, _) in blocks.SEGMENTS.items():
            for part in ("TRAIN", "TEST"):
                rows = rng.normal(size=(30, length)).round(2) + np.arange(30)[:, np.newaxis] % 2
                text = "\n".join(",".join(map(str, row)) + f":{at % 2}" for at, row in enumerate(rows))
                archive.writestr(f"aeon/datasets/data/{name}/{name}_{part}.ts", f"@problemName {name}\n@data\n{text}\n")
    lines = list(blocks.series(tmp_path / "wheel.zip", 4, with_guide=False))
    assert [line["asked"] for line in lines] == [4] * 8
    assert {line["length"] for line in lines} == {150, 24}
