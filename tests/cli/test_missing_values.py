"""Files with empty cells: rows stay where a model is given, and --fillable says what may be filled in."""

import json
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd

MODEL = """
import numpy as np

def label(rows):
    return np.where(rows["pay"].fillna(40) + 10 * (rows["town"] == "B") > 50, "high", "low")
"""


def test_rows_that_lack_values_are_explained_and_filled_in_only_where_that_is_said(run, people):
    table = pd.read_csv(people).drop(columns="income")
    table.loc[::5, "pay"] = np.nan
    table.loc[::7, "town"] = None
    table.to_csv("gaps.csv", index=False)
    Path("model_of_gaps.py").write_text(MODEL, encoding="utf-8")
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
