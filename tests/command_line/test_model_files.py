"""Models from files of all kinds answer as the model itself."""

import json
import os
from pathlib import Path

import pandas as pd
import pytest

from commands import one_line
from onbmacf import ONBMACF, Schema


def test_a_callable_of_a_module_beside_the_table(run, people):
    Path("rule_of_pay.py").write_text("def predict(rows):\n    return (rows['pay'] > 50).map(str)\n", encoding="utf-8")
    _, out, err = run(
        "explain", people, "--model", "rule_of_pay:predict", "--target-column", "income", "--format", "json"
    )
    assert {entry["counterfactuals"][0]["changes"][0]["feature"] for entry in json.loads(out)} == {"pay"}, err


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
    mine = [found["values"] for entry in json.loads(out) for found in entry["counterfactuals"]]
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


def test_xgboost_files(run, people):
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBClassifier(n_estimators=20, max_depth=3, n_jobs=1).fit(*numeric(people))
    for name in ("m.ubj", "m.json"):
        model.save_model(name)
        same_as_in_python(run, name, model)


def test_lightgbm_files_get_their_columns_in_their_order(run, people):
    lightgbm = pytest.importorskip("lightgbm")
    table, y = numeric(people)
    model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1).fit(table[["pay", "age"]], y)
    model.booster_.save_model("m.txt")
    same_as_in_python(run, "m.txt", lambda rows: model.predict(rows[["pay", "age"]]))
    other = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1).fit(table.rename(columns={"pay": "wage"}), y)
    other.booster_.save_model("other.txt")
    code, _, err = run("explain", "numbers.csv", "--model", "other.txt")
    one_line(code, err, "was trained on columns that the table lacks: 'wage'")


def test_catboost_files(run, people):
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostClassifier(iterations=20, depth=3, verbose=0, allow_writing_files=False)
    model.fit(*numeric(people))
    model.save_model("m.cbm")
    same_as_in_python(run, "m.cbm", model)


@pytest.mark.parametrize("by_column", [False, True])
def test_onnx_files(run, people, by_column):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper

    def matrix(name, columns):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, columns])

    inputs = [matrix("age", 1), matrix("pay", 1)] if by_column else [matrix("rows", 2)]
    joined = [helper.make_node("Concat", ["age", "pay"], ["rows"], axis=1)] if by_column else []
    nodes = [
        *joined,
        helper.make_node("Gemm", ["rows", "weights", "shift"], ["scores"]),
        helper.make_node("ArgMax", ["scores"], ["label"], axis=1, keepdims=0),
    ]
    constants = [
        helper.make_tensor("weights", TensorProto.FLOAT, [2, 2], [0.0, -0.5, 0.0, 1.0]),
        helper.make_tensor("shift", TensorProto.FLOAT, [2], [0.0, -28.0]),
    ]
    label = helper.make_tensor_value_info("label", TensorProto.INT64, [None])
    graph = helper.make_graph(nodes, "rule", inputs, [label], constants)
    opset = [helper.make_opsetid("", 13)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), "m.onnx")
    same_as_in_python(run, "m.onnx", lambda rows: (rows["pay"] - 0.5 * rows["age"] - 28.0 > 0).astype(int))
