"""Models from files: every format answers as the model itself, every fault is one plain sentence."""

import pickle
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from io_.test_tables import no_option
from onbmacf import ONBMACF
from onbmacf.errors import ModelError, ParameterError
from onbmacf.io import load_model, models


@pytest.fixture
def numbers():
    random = np.random.default_rng(3)
    table = pd.DataFrame({"age": random.integers(20, 70, 120), "pay": random.normal(50, 15, 120).round(1)})
    return table, (table["pay"] - 0.5 * table["age"] > 28).astype(int)


def same_answers(source, model, table, **options):
    """A model from its file labels every row as the model itself, with the table at hand and without."""
    expected = ONBMACF().fit(table, model)
    for loaded in (load_model(source, table, **options), load_model(Path(source), **options)):
        mine = ONBMACF().fit(table, loaded)
        assert (mine.classes_[mine.labels_] == expected.classes_[expected.labels_]).all()
    return loaded


def test_joblib_pickle_and_skops(tmp_path, numbers):
    import joblib
    from sklearn.linear_model import LogisticRegression

    table, y = numbers
    model = LogisticRegression(max_iter=1000).fit(table, y)
    joblib.dump(model, tmp_path / "m.joblib")
    for name in ("m.pkl", "m.PICKLE"):
        (tmp_path / name).write_bytes(pickle.dumps(model))
    for name in ("m.joblib", "m.pkl", "m.PICKLE"):
        same_answers(str(tmp_path / name), model, table, trust_pickle=True)
    skops = pytest.importorskip("skops.io")
    skops.dump(model, tmp_path / "m.skops")
    same_answers(str(tmp_path / "m.skops"), model, table)


def test_xgboost(tmp_path, numbers):
    xgboost = pytest.importorskip("xgboost")
    table, y = numbers
    model = xgboost.XGBClassifier(n_estimators=20, max_depth=3, n_jobs=1).fit(table, y)
    for name in ("m.ubj", "m.json"):
        model.save_model(tmp_path / name)
        loaded = same_answers(str(tmp_path / name), model, table)
        assert (loaded.predict(table[["pay", "age"]]) == model.predict(table)).all()
        assert loaded.classes_.tolist() == [0, 1]
    nameless = xgboost.XGBClassifier(n_estimators=20, max_depth=3, n_jobs=1).fit(table.to_numpy(), y)
    nameless.save_model(tmp_path / "nameless.ubj")
    same_answers(str(tmp_path / "nameless.ubj"), lambda rows: nameless.predict(rows.to_numpy()), table)


def test_catboost(tmp_path, numbers):
    catboost = pytest.importorskip("catboost")
    table, y = numbers
    model = catboost.CatBoostClassifier(iterations=20, depth=3, verbose=0, allow_writing_files=False).fit(table, y)
    model.save_model(str(tmp_path / "m.cbm"))
    loaded = same_answers(str(tmp_path / "m.cbm"), model, table)
    assert (loaded.predict(table[["pay", "age"]]).ravel() == model.predict(table)).all()


def test_lightgbm_gets_its_columns_in_its_own_order(tmp_path, numbers):
    lightgbm = pytest.importorskip("lightgbm")
    table, y = numbers
    other = table[["pay", "age"]]
    model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1).fit(other, y)
    model.booster_.save_model(tmp_path / "m.txt")
    same_answers(str(tmp_path / "m.txt"), lambda rows: model.predict(rows[["pay", "age"]]), table)
    three = np.digitize(table["pay"], [40, 60])
    model = lightgbm.LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1).fit(other, three)
    model.booster_.save_model(tmp_path / "three.txt")
    same_answers(str(tmp_path / "three.txt"), lambda rows: model.predict(rows[["pay", "age"]]), table)


def test_text_columns_are_categories_for_lightgbm(tmp_path, numbers):
    lightgbm = pytest.importorskip("lightgbm")
    table, _ = numbers
    table = table.assign(town=np.array(["B", "A", "C"])[np.arange(len(table)) % 3])
    y = (table["town"] == "B").astype(int)
    typed = table.astype({"town": "category"})
    model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1).fit(typed, y)
    model.booster_.save_model(tmp_path / "m.txt")
    loaded = load_model(tmp_path / "m.txt", table)
    assert (loaded.predict(table.head(1)).argmax(axis=1) == y.head(1)).all()  # one row alone has but one town
    assert (loaded.predict(table).argmax(axis=1) == y).all()


def onnx_rule(path, by_column):
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
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)


@pytest.mark.parametrize("by_column", [False, True])
def test_onnx(tmp_path, numbers, by_column):
    table, _ = numbers
    path = str(tmp_path / "m.onnx")
    onnx_rule(path, by_column)
    rule = lambda rows: (rows["pay"] - 0.5 * rows["age"] - 28.0 > 0).astype(int)  # noqa: E731
    same_answers(path, rule, table)
    if by_column:
        with pytest.raises(ModelError, match="the ONNX model asks for 'pay', which the table lacks"):
            load_model(path).predict(table[["age"]])


def test_a_name_in_a_module(tmp_path, monkeypatch, numbers):
    table, _ = numbers
    code = "class Rules:\n    def of_pay(rows):\n        return rows['pay'] > 50\n"
    (tmp_path / "rules_of_pay.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert (load_model("rules_of_pay:Rules.of_pay")(table) == (table["pay"] > 50)).all()


def test_importing_a_model_leaves_the_search_path_of_modules_alone():
    before = list(sys.path)
    load_model("json:dumps")
    assert sys.path == before


BAD_MODELS = {
    "gone.onnx": (ParameterError, "there is no model file gone.onnx."),
    "model.xyz": (
        ParameterError,
        "model.xyz is not a model: give module:name or a file ending in '.onnx', '.skops', '.ubj', '.json', '.txt', "
        "'.cbm', '.joblib', '.pkl', '.pickle'.",
    ),
    "nowhere:f": (
        ParameterError,
        "nowhere:f is not a model: cannot import 'nowhere': No module named 'nowhere'.",
    ),
    "json:dmps": (ParameterError, "json:dmps is not a model: 'json' has no 'dmps'. Did you mean 'dumps'?"),
    "m.pkl": (
        ParameterError,
        "m.pkl is a pickle, which can run any code when it is loaded. Pass trust_pickle=True if you trust where it "
        "came from.",
    ),
    "m.skops": (ModelError, "m.skops cannot be loaded as a model: BadZipFile: File is not a zip file"),
}


@pytest.mark.parametrize("source, expected", BAD_MODELS.items(), ids=BAD_MODELS)
def test_what_is_no_model_is_one_sentence(tmp_path, monkeypatch, source, expected):
    monkeypatch.chdir(tmp_path)
    kind, message = expected
    if source.startswith("m."):
        Path(source).write_bytes(b"junk")
    if source.endswith("skops"):
        pytest.importorskip("skops")
    with pytest.raises(kind) as error:
        load_model(source)
    assert str(error.value) == message
    no_option(error)


class Opener:
    """A pickle of this makes a folder when it is loaded."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        import os

        return os.mkdir, (self.folder,)


@pytest.mark.parametrize("name", ["m.pkl", "m.pickle", "m.joblib"])
def test_a_pickle_is_opened_only_with_trust(tmp_path, name):
    folder = tmp_path / "opened"
    (tmp_path / name).write_bytes(pickle.dumps(Opener(str(folder))))
    with pytest.raises(ParameterError, match="trust_pickle=True"):
        load_model(tmp_path / name)
    assert not folder.exists()
    load_model(tmp_path / name, trust_pickle=True)
    assert folder.exists()


class OwnModel:
    def predict(self, rows):
        return rows["pay"] > 50


def test_skops_types_of_ones_own_need_trust(tmp_path, numbers):
    skops = pytest.importorskip("skops.io")
    skops.dump(OwnModel(), tmp_path / "own.skops")
    with pytest.raises(ParameterError, match=r"types that skops does not trust: '.*OwnModel'\. Pass trust_pickle=True"):
        load_model(tmp_path / "own.skops")
    assert load_model(tmp_path / "own.skops", trust_pickle=True).predict(numbers[0]).any()


def test_a_model_of_other_columns_is_refused_at_once(tmp_path, numbers):
    lightgbm = pytest.importorskip("lightgbm")
    table, y = numbers
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1).fit(table.rename(columns={"pay": "wage"}), y)
    model.booster_.save_model(tmp_path / "m.txt")
    with pytest.raises(ModelError, match=r"m\.txt was trained on columns that the table lacks: 'wage'\."):
        load_model(tmp_path / "m.txt", table)


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    (tmp_path / "m.onnx").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"^ONNX files need onnxruntime: pip install 'onbmacf\[files\]'$"):
        load_model(tmp_path / "m.onnx")


def test_a_new_format_is_one_function_and_one_line(tmp_path, monkeypatch):
    """A loader put into LOADERS is all it takes: load_model reads such files, and errors and help name them."""
    (tmp_path / "m.rule").write_text("50", encoding="utf-8")
    loader = models.Loader("rule", (".rule",), lambda path, table, trusted: lambda rows: rows > float(path.read_text()))
    monkeypatch.setattr(models, "LOADERS", (*models.LOADERS, loader))
    assert load_model(tmp_path / "m.rule")(51)
    with pytest.raises(ParameterError, match=r"'\.rule'"):
        load_model("model.xyz")
    assert models.described([loader]) == "rule (.rule)"


def test_every_format_is_in_the_docstring():
    for loader in models.LOADERS:
        for suffix in loader.suffixes:
            assert f"``{suffix}``" in load_model.__doc__
