"""Options that say what a model's answers mean, what a table's columns are, and how sure an answer must be."""

import json

import numpy as np
import pandas as pd
import pytest

from commands import one_line

CODE = """
import numpy as np
def score(rows):
    return rows["pay"] - 0.2 * rows["age"] + 5.0 * (rows["town"] == "B") + 0.1
class Sure:
    classes_ = ["low", "high"]
    def predict_proba(self, rows):
        share = 1 / (1 + np.exp(-(score(rows).to_numpy() - 45) / 5))
        return np.column_stack([1 - share, share])
    def predict(self, rows):
        return np.array(self.classes_)[self.predict_proba(rows).argmax(axis=1)]
sure = Sure()
"""


@pytest.fixture
def answers(run, people, monkeypatch):
    """Explain some rows with a model in the working folder; return the answers."""
    (people.parent / "scores_of_people.py").write_text(CODE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(people.parent))

    def answers(model, *words, table=people):
        words = (*words, "--drop", "income") if table == people else words
        rows = () if {"--rows", "--predicted"} & set(words) else ("--rows", "0-5")
        code, out, err = run(
            "explain", table, "--model", f"scores_of_people:{model}", *rows, "--format", "json", *words
        )
        assert code == 0, err
        return json.loads(out)["answers"]

    return answers


def labels(found):
    return {one["label"] for answer in found for one in answer["counterfactuals"]}


def test_scores_with_a_threshold_and_names(answers):
    assert labels(answers("score", "--threshold", "45", "--classes", "refused,granted")) <= {"refused", "granted"}
    assert labels(answers("score", "--between", "40,50")) == {"inside"}
    assert labels(answers("score", "--between", ",50", "--target", "above")) == {"above"}
    assert labels(answers("sure", "--threshold", "0.3", "--predicted", "low")) == {"high"}


def test_how_sure_the_model_must_be_and_what_may_be_given_up(answers):
    found = answers("sure", "--min-probability", "0.9")
    assert min(one["probability"] for answer in found for one in answer["counterfactuals"]) >= 0.9
    held = ("--immutable", "pay,age,town", "--rows", "0")
    assert answers("score", "--threshold", "45", *held)[0]["status"] != "found"
    (answer,) = answers("score", "--threshold", "45", *held, "--release", "immutable")
    assert answer["counterfactuals"][0]["released"]


def test_kinds_of_columns(answers, run, people):
    table = pd.read_csv(people).assign(zip=lambda t: t["age"] % 4, size=lambda t: np.array(list("SML"))[t["age"] % 3])
    path = people.parent / "more.csv"
    table.drop(columns="income").to_csv(path, index=False)
    kinds = ("--kinds", "zip=categorical,size=S<M<L")
    answers("score", "--threshold", "45", *kinds, table=path)
    run("map", "build", path, "--model", "scores_of_people:score", "--threshold", "45", *kinds)
    _, out, _ = run("map", "info", "map.onb")
    assert "column zip" in out
    assert "categorical, 4 levels" in out or "categorical" in out
    assert "ordinal" in out
    code, _, err = run("explain", path, "--model", "scores_of_people:score", "--kinds", "zip")
    one_line(code, err, "--kinds takes column=kind, or column=low<middle<high, got 'zip'")
    code, _, err = run("explain", path, "--model", "scores_of_people:score", "--kinds", "zap=binary")
    one_line(code, err, "--kinds names 'zap', which is not a column. Did you mean 'zip'")
    code, _, err = run("explain", path, "--model", "scores_of_people:score", "--between", "7")
    one_line(code, err, "--between takes two numbers such as 200,300")


def test_a_spreadsheet_and_text_in_another_encoding(answers, run, people):
    pytest.importorskip("openpyxl")
    table = pd.read_csv(people).drop(columns="income")
    table.to_excel(people.parent / "p.xlsx", index=False)
    table.to_csv(people.parent / "p16.csv", index=False, encoding="utf-16")
    expected = answers("score", "--threshold", "45")
    for name in ("p.xlsx", "p16.csv"):
        assert answers("score", "--threshold", "45", table=people.parent / name) == expected
    with pd.ExcelWriter(people.parent / "two.xlsx") as book:
        table.head(3).to_excel(book, sheet_name="first", index=False)
        table.to_excel(book, sheet_name="people", index=False)
    assert answers("score", "--threshold", "45", "--sheet", "people", table=people.parent / "two.xlsx") == expected


def test_csv_with_columns_called_like_ours_and_whole_numbers(run, people):
    table = pd.read_csv(people).drop(columns=["income", "sex", "town"])
    table = table.rename(columns={"age": "status", "pay": "label"}).assign(row=np.arange(len(table)) % 7)
    table.to_csv(people.parent / "odd.csv", index=False)
    (people.parent / "odd_model.py").write_text("def label(rows):\n    return rows['label'] > 50\n", encoding="utf-8")
    words = ("explain", people.parent / "odd.csv", "--model", "odd_model:label", "--rows", "0-20", "--format", "csv")
    code, out, err = run(*words, "--target", "True")
    assert code == 0, err
    (people.parent / "out.csv").write_text(out, encoding="utf-8")
    found = pd.read_csv(people.parent / "out.csv", dtype=str)
    assert {"row_", "status_", "row", "status", "label"} <= set(found.columns)
    assert set(found["status_"]) == {"already", "found"}
    assert not any(found[name].str.contains(r"\.").any() for name in ("status", "row"))
