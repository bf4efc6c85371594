"""Dates on the command line: read from CSV files on request, bounded by dates in the rules file."""

import json

import numpy as np
import pandas as pd
import pytest

from commands import one_line

CODE = """
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
    (tmp_path / "model_of_dates.py").write_text(CODE, encoding="utf-8")
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
