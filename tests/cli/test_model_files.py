"""--model: a name in a module or a file. Every format of files is tested in tests/io_/test_tables.py."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from commands import one_line
from onbmacf import ONBMACF, Schema


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
