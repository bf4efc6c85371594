"""Commands without a model: what is trained, on which rows, and what is said of it."""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from onbmacf.errors import OnbmacfWarning
from onbmacf.io import read_table, train_trees


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
