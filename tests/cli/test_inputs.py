"""What a command reads: cells, dates and missing values of files, and models from files or trained on the table."""

import json
import os
import warnings
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from commands import one_line
from onbmacf import ONBMACF, Schema
from onbmacf.cli.inputs import as_fitted
from onbmacf.errors import OnbmacfWarning
from onbmacf.io import read_table, train_trees

MODEL_OF_PAY = "def f(rows):\n    return (rows['pay'] > 50).map({True: 'high', False: 'low'})\n"


@pytest.fixture
def explain(run, tmp_path, monkeypatch):
    """Explain a file of rows with a map of a table whose columns could be taken for other kinds."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(3)
    table = pd.DataFrame({"pay": random.normal(50, 15, 80).round(1), "age": random.integers(20, 70, 80)})
    table["kids"] = random.choice(["0", "1", "2", "3+"], 80)
    table["flag"] = random.integers(0, 2, 80)
    table["day"] = pd.date_range("2020-01-01", periods=80).astype(str)
    table.assign(y="x").to_csv("t.csv", index=False)
    Path("cells_model.py").write_text(MODEL_OF_PAY, encoding="utf-8")

    def statuses(text, *more):
        Path("rows.csv").write_text("pay,age,kids,flag,day\n" + text, encoding="utf-8")
        given = ("--model", "cells_model:f", "--target-column", "y", "--dates", "day", "--rows-file", "rows.csv")
        code, out, err = run("explain", "t.csv", *given, "--format", "csv", *more)
        assert code == 0, err
        lines = pd.read_csv(pd.io.common.StringIO(out)) if out else pd.DataFrame()
        return lines["status"].tolist(), lines["reason"].fillna("").tolist(), lines

    return statuses


ODD_CELLS = {
    "text in a column of numbers": ("40,x,1,0,2020-01-02", "column 'age': 'x' is not a finite number"),
    "text in a column of decimals": ("?,30,1,0,2020-01-02", "column 'pay': '\\?' is not a finite number"),
    "text among levels that are numbers": (
        "40,30,1,no,2020-01-02",
        "column 'flag': 'no' is not a finite number|column 'flag': unseen level 'no'",
    ),
    "an unseen name": ("40,30,7,0,2020-01-02", "column 'kids': unseen level 7"),
    "no date": ("40,30,1,0,soon", "column 'day': 'soon' is not a date"),
    "a number for a date": ("40,30,1,0,5", "column 'day'"),
}


@pytest.mark.parametrize("line, pattern", ODD_CELLS.values(), ids=ODD_CELLS)
def test_an_odd_cell_of_a_file_costs_its_own_row_only(explain, line, pattern):
    states, reasons, _ = explain(f"40.5,30,1,0,2020-01-02\n{line}\n41,31,2,1,2020-01-03\n")
    assert states == ["found", "invalid_row", "found"], reasons
    pd.testing.assert_series_equal(pd.Series(reasons).str.contains(pattern), pd.Series([False, True, False]))


def test_names_that_look_like_numbers_are_names_where_the_fitted_column_has_names(explain):
    states, reasons, lines = explain("40,30,1,0,2020-01-02\n41,31,2,1,2020-01-03\n42,32,,1,2020-01-03\n")
    assert states == ["found", "found", "invalid_row"], reasons
    assert lines["kids"].tolist()[:2] == [1, 2]


def test_of_two_names_of_one_number_neither_is_meant():
    table = pd.DataFrame({"x": np.arange(8.0), "zip": ["01", "1", "2", "nan", "inf", "1_0", "b", "c"]})
    schema = Schema.infer(table, kinds={"zip": "categorical"})
    form = ONBMACF().fit(table, lambda rows: rows["x"] > 3, schema=schema).fitted_.space.form
    read = as_fitted(pd.DataFrame({"x": [1.0, 2.0, 3.0], "zip": [1, 2, 5]}), form)
    assert read["zip"].tolist() == [1, "2", 5]


def test_rows_that_are_as_fitted_stay_so_to_the_dtype(mixed):
    form = ONBMACF().fit(mixed, lambda rows: rows["dose"] > 1).fitted_.space.form
    pd.testing.assert_frame_equal(as_fitted(mixed, form), mixed)


MODEL_OF_DATES = """
import numpy as np
def predict(rows):
    assert rows["since"].dtype.kind == "M"
    return np.where(rows["since"] > "2024-03-01", "late", "early")
"""
RULES = '[features.since]\nlow = 2024-01-03\nhigh = "2024-02-15"\nstep = "7 days"\n'


@pytest.fixture
def dated(tmp_path, monkeypatch):
    """A CSV file with dates, its model and its rules, in the working folder."""
    place = np.arange(60)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(place * 3, "D")
    table = pd.DataFrame({"since": days.strftime("%Y-%m-%d"), "fee": place % 5 / 2, "town": place % 2})
    table.to_csv(tmp_path / "dated.csv", index=False)
    (tmp_path / "model_of_dates.py").write_text(MODEL_OF_DATES, encoding="utf-8")
    text = 'def predict(rows):\n    return rows["since"].astype(str) > "2024-03-01"\n'
    (tmp_path / "model_of_text.py").write_text(text, encoding="utf-8")
    (tmp_path / "rules.toml").write_text(RULES, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return ("dated.csv", "--model", "model_of_dates:predict")


def test_dates_of_a_csv_file_keep_the_rules_of_a_file(run, dated):
    words = ("--dates", "since", "--rules", "rules.toml", "--rows", "40-45", "--format", "json")
    code, out, err = run("explain", *dated, *words)
    assert code == 0, err
    found = [one["values"]["since"][:10] for answer in json.loads(out)["answers"] for one in answer["counterfactuals"]]
    assert len(found) == 6
    assert set(found) <= {str(day.date()) for day in pd.date_range("2024-01-03", "2024-02-15", freq="7D")}


def test_dates_that_are_none_or_are_not_named_are_told(run, dated):
    code, _, err = run("explain", *dated, "--dates", "snce", "--rows", "0")
    one_line(code, err, "--dates names 'snce', which is not a column. Did you mean 'since'")
    code, _, err = run("explain", *dated, "--dates", "fee", "--rows", "0")
    one_line(code, err, "column 'fee' must hold dates written as 2024-05-31 .*, got 0.0 at position 0")
    code, _, err = run("explain", "dated.csv", "--target-column", "town", "--rules", "rules.toml", "--rows", "0")
    one_line(code, err, "a range or step needs numbers, it is categorical. It holds dates as text: .* --dates[.]$")
    code, _, err = run("explain", *dated[:2], "model_of_text:predict", "--rows", "0")
    (note,) = [line for line in err.splitlines() if "dates as text" in line]
    assert note.endswith("which have no order here: name it in --dates since.")
    assert "pd." not in err


MODEL_OF_GAPS = """
import numpy as np

def label(rows):
    return np.where(rows["pay"].fillna(40) + 10 * (rows["town"] == "B") > 50, "high", "low")
"""


def test_rows_that_lack_values_are_explained_and_filled_in_only_where_that_is_said(run, people):
    table = pd.read_csv(people).drop(columns="income")
    table.loc[::5, "pay"] = np.nan
    table.loc[::7, "town"] = None
    table.to_csv("gaps.csv", index=False)
    Path("model_of_gaps.py").write_text(MODEL_OF_GAPS, encoding="utf-8")
    base = ("explain", "gaps.csv", "--model", "model_of_gaps:label", "--rows", "0-10", "--format", "json")
    code, out, err = run(*base)
    assert code == 0, err
    answers = json.loads(out)["answers"]
    assert [answer["row"] for answer in answers] == list(range(11))
    assert answers[5]["factual"]["pay"] is None
    assert all(found["values"]["pay"] is None for at in (0, 5, 10) for found in answers[at]["counterfactuals"])
    code, out, err = run(*base, "--fillable", "pay")
    assert code == 0, err
    filled = json.loads(out)["answers"][0]["counterfactuals"][0]["changes"]
    assert [(change["feature"], change["before"]) for change in filled] == [("pay", None)]
    code, out, err = run(*base[:-1], "csv")
    assert code == 0, err
    written = pd.read_csv(StringIO(out))
    assert written["pay"].isna().sum() == 3
    code, _, err = run(*base, "--fillable", "pai")
    assert code == 2
    assert "--fillable" in err
    assert "'pai'" in err


def test_a_callable_of_a_module_beside_the_table(run, people):
    Path("rule_of_pay.py").write_text("def predict(rows):\n    return (rows['pay'] > 50).map(str)\n", encoding="utf-8")
    _, out, err = run(
        "explain", people, "--model", "rule_of_pay:predict", "--target-column", "income", "--format", "json"
    )
    answers = json.loads(out)["answers"]
    assert {entry["counterfactuals"][0]["changes"][0]["feature"] for entry in answers} == {"pay"}, err


def numeric(people):
    table = pd.read_csv(people)
    return table[["age", "pay"]], (table["income"] == "high").astype(int)


def same_as_in_python(run, model_file, model, *more):
    """The command with a model's file answers as the library does with the model itself."""
    table = pd.read_csv("people.csv")[["age", "pay"]]
    schema = Schema.infer(table)
    expected = ONBMACF().fit(table, model, schema=schema).explain(table.head(12))
    table.to_csv("numbers.csv", index=False)
    words = ("explain", "numbers.csv", "--model", model_file, "--rows", "0-11", "--format", "json", *more)
    code, out, err = run(*words)
    assert code == 0, err
    mine = [found["values"] for entry in json.loads(out)["answers"] for found in entry["counterfactuals"]]
    assert mine == expected.batch.values.to_dict("records")


def test_joblib_pickle_and_skops_models(run, people):
    import pickle

    import joblib
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=1000).fit(*numeric(people))
    joblib.dump(model, "m.joblib")
    Path("m.pkl").write_bytes(pickle.dumps(model))
    same_as_in_python(run, "m.joblib", model, "--trust-pickle")
    same_as_in_python(run, "m.pkl", model, "--trust-pickle")
    skops = pytest.importorskip("skops.io")
    skops.dump(model, "m.skops")
    same_as_in_python(run, "m.skops", model)


def test_a_pickle_is_not_opened_without_trust(run, people):
    class Evil:
        def __reduce__(self):
            return (os.mkdir, ("opened",))

    import pickle

    Path("m.pkl").write_bytes(pickle.dumps(Evil()))
    code, _, err = run("explain", people, "--model", "m.pkl")
    one_line(code, err, "--trust-pickle")
    assert not Path("opened").exists()


def test_lightgbm_files_get_their_columns_in_their_order(run, people):
    lightgbm = pytest.importorskip("lightgbm")
    table, y = numeric(people)
    model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1).fit(table[["pay", "age"]], y)
    model.booster_.save_model("m.txt")
    ordered = SimpleNamespace(
        classes_=model.classes_,
        predict=lambda rows: model.predict(rows[["pay", "age"]]),
        predict_proba=lambda rows: model.predict_proba(rows[["pay", "age"]]),
    )
    same_as_in_python(run, "m.txt", ordered)
    other = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1).fit(table.rename(columns={"pay": "wage"}), y)
    other.booster_.save_model("other.txt")
    code, _, err = run("explain", "numbers.csv", "--model", "other.txt")
    one_line(code, err, "was trained on columns that the table lacks: 'wage'")


@pytest.fixture
def gaps(people):
    """The table of people in a file, with cells missing in two columns."""
    table = pd.read_csv(people)
    random = np.random.default_rng(1)
    for name in ("pay", "town"):
        table.loc[random.random(len(table)) < 0.1, name] = np.nan
    table.to_csv("gaps.csv", index=False)
    return table


def test_where_values_are_missing_trees_are_trained_and_no_row_is_dropped(run, gaps):
    """Every answer holds when the same model, trained again, is asked about it."""
    base = ("explain", "gaps.csv", "--target-column", "income", "--rows", "all", "--format", "json", "--n", "2")
    code, out, err = run(*base)
    assert code == 0, err
    assert (
        "No model was given and values are missing in 'pay', 'town': boosted trees, which take them, were trained"
        in err
    )
    assert f"of {len(gaps)} rows (seed 0)" in err
    answers = json.loads(out)["answers"]
    assert len(answers) == len(gaps)
    table = read_table("gaps.csv")
    features = table.drop(columns="income")
    model = train_trees(features, table["income"]).model
    found = [found for answer in answers for found in answer["counterfactuals"]]
    asked = pd.DataFrame([one["values"] for one in found])[features.columns].astype(features.dtypes)
    assert model.predict(asked).tolist() == [one["label"] for one in found]
    lacking = [answer for answer in answers if None in answer["factual"].values()]
    assert len(lacking) == features.isna().any(axis=1).sum() > 20
    assert sum(bool(answer["counterfactuals"]) for answer in lacking) > 10


def test_a_complete_table_still_gets_the_network(run, people):
    _, _, err = run("explain", people, "--target-column", "income", "--rows", "0")
    assert "No model was given: a network (32-16) was trained on 'income'" in err


def test_a_row_without_a_label_is_explained_but_not_trained_on(run, people):
    table = pd.read_csv(people)
    table.loc[[0, 4], "income"] = np.nan
    table.to_csv("gaps.csv", index=False)
    code, out, err = run("explain", "gaps.csv", "--target-column", "income", "--rows", "0,4", "--format", "json")
    assert code == 0, err
    assert f"with 118 of {len(table) - 2} rows that have a label (seed 0)" in err
    assert [answer["status"] for answer in json.loads(out)["answers"]] == ["found", "found"]


def test_a_report_names_the_trees(run, gaps):
    code, _, err = run("audit", "gaps.csv", "--target-column", "income", "--most", "5", "--out", "report.md")
    assert code == 0, err
    assert "boosted trees trained here" in Path("report.md").read_text(encoding="utf-8")


def test_trees_take_columns_of_more_levels_than_they_can_tell_apart():
    towns = [f"town {place}" for place in np.random.default_rng(0).integers(0, 400, 1500)]
    table = pd.DataFrame({"town": towns, "x": np.arange(1500) % 10})
    table.loc[::7, "town"] = None
    y = pd.Series(np.where(table["x"] > 4, "a", "b"), name="y")
    trained = train_trees(table, y)
    assert trained.accuracy == 1
    assert trained.model.predict(pd.DataFrame({"town": ["Atlantis", None], "x": [9, 0]})).tolist() == ["a", "b"]


def test_trees_that_are_not_better_than_guessing_are_a_warning():
    table = pd.DataFrame({"x": [np.nan, 1.0] * 20})
    with pytest.warns(OnbmacfWarning, match="the trained model, boosted trees, is not better"):
        train_trees(table, pd.Series(["a", "b", "a", "a"] * 10))


def test_names_are_kept_and_their_groups_are_not_compared(run, people):
    table = pd.read_csv(people)
    table.insert(0, "name", [f"person {row}" for row in table.index])
    table.to_csv("named.csv", index=False)
    words = ("--target-column", "income", "--immutable", "sex", "--most", "10", "--out", "report.md")
    code, _, err = run("audit", "named.csv", *words)
    assert code == 0, err
    assert "nearly every row has a text of its own in column 'name'" in err
    report = Path("report.md").read_text(encoding="utf-8")
    assert "- **Burden compared by**: sex\n" in report
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code, out, err = run("explain", "named.csv", "--target-column", "income", "--rows", "all", "--format", "json")
    changes = [
        one for answer in json.loads(out)["answers"] for found in answer["counterfactuals"] for one in found["changes"]
    ]
    assert changes
    assert "name" not in {one["feature"] for one in changes}
