"""A file says nothing of dtypes: an odd cell of it costs its own row, and names that look like numbers stay names."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF, Schema
from onbmacf.cli.inputs import as_fitted

MODEL = "def f(rows):\n    return (rows['pay'] > 50).map({True: 'high', False: 'low'})\n"


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
    Path("cells_model.py").write_text(MODEL, encoding="utf-8")

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
