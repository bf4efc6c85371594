"""Tables and models from files: every format answers as the model itself, every fault is one plain sentence."""

import gzip
import pickle
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import onbmacf.io
from onbmacf import ONBMACF
from onbmacf.errors import ModelError, OnbmacfError, OnbmacfWarning, ParameterError, TableError
from onbmacf.io import load_model, models, read_table, train_network


@pytest.fixture
def numbers():
    random = np.random.default_rng(3)
    table = pd.DataFrame({"age": random.integers(20, 70, 120), "pay": random.normal(50, 15, 120).round(1)})
    return table, (table["pay"] - 0.5 * table["age"] > 28).astype(int)


def no_option(error):
    """A message of the library names no option of the command line."""
    assert not re.search(r"(^|\s)--\w", str(error.value)), error.value


def test_the_package_is_light_and_lists_its_names():
    code = "import sys, onbmacf.io, onbmacf.io.models; print(dir(onbmacf.io), *sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "['TrainedNetwork', 'load_model', 'read_table', 'train_network']" in out
    assert not {"numpy", "pandas", "sklearn", "numba", "torch"} & set(out.split())
    for name in onbmacf.io.__all__:
        assert getattr(onbmacf.io, name).__doc__
    with pytest.raises(AttributeError, match=r"'onbmacf\.io' has no attribute 'read_tabel'"):
        onbmacf.io.read_tabel  # noqa: B018


# ------------------------------------------------------------------------------------------------------------ tables


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_found_and_numbers_are_exact(tmp_path, separator):
    values = np.random.default_rng(0).normal(size=500) * 10.0 ** np.random.default_rng(1).integers(-200, 200, 500)
    lines = ["a b" + separator + "c", *(f"{value!r}{separator}x" for value in values.tolist())]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = read_table(path)
    assert list(table.columns) == ["a b", "c"]
    assert (table["a b"].to_numpy() == values).all()
    pd.testing.assert_frame_equal(read_table(str(path)), table)


def test_compressed_files_and_parquet(tmp_path):
    table = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n1,x\n2,y\n"))
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.csv.gz"), table, check_dtype=False)
    pytest.importorskip("pyarrow")
    table.to_parquet(tmp_path / "t.parquet")
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.parquet"), table, check_dtype=False)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").write_bytes(b"")

    def without(path):
        raise ImportError("Unable to find a usable engine;\nmany\nlines")

    monkeypatch.setattr(pd, "read_parquet", without)
    with pytest.raises(ImportError, match=r"^Parquet files need pyarrow: pip install pyarrow$"):
        read_table(tmp_path / "t.parquet")


def test_quoted_line_breaks_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes('\ufeff"first\nname",age\n"x, y",3\n'.encode())
    table = read_table(path)
    assert list(table.columns) == ["first\nname", "age"]
    assert table.iloc[0].tolist() == ["x, y", 3]
    path.write_bytes("\ufeff1.5,a\n2.5,b\n".encode())
    with pytest.raises(TableError, match=r"its first line holds '1\.5'"):
        read_table(path)


def test_a_header_is_guessed_and_can_be_told(tmp_path):
    path = tmp_path / "years.csv"
    path.write_text("2019,2020\n1,2\n", encoding="utf-8")
    assert list(read_table(path, header=True).columns) == ["2019", "2020"]
    assert read_table(path, header=False).to_dict("list") == {"x0": [2019, 1], "x1": [2020, 2]}
    with pytest.raises(TableError) as error:
        read_table(path)
    assert str(error.value) == (
        f"{path} seems to have no header: its first line holds '2019'. Add a line of column names, or pass "
        "header=False (the columns are then named x0, x1, ...), or header=True if that line is the header."
    )


def test_another_encoding(tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes("größe,b\n1,2\n".encode("latin-1"))
    assert list(read_table(path, encoding="latin-1").columns) == ["größe", "b"]
    with pytest.raises(TableError, match=r'is not utf-8 text: .*\. Pass its encoding, e\.g\. encoding="latin-1"\.$'):
        read_table(path)
    with pytest.raises(ParameterError, match=r"encoding must be one that Python knows, .* got 'latin-x'"):
        read_table(path, encoding="latin-x")


def test_a_wrong_byte_far_into_the_file_is_the_same_error(tmp_path, monkeypatch):
    path = tmp_path / "late.csv"
    path.write_bytes(b"a,b\n" + b"1,x\n" * 50_000 + "1,é\n".encode("latin-1"))
    monkeypatch.setattr(onbmacf.io.tables, "FIRST_PART", 100)
    with pytest.raises(TableError, match=r"is not utf-8 text: .* Pass its encoding"):
        read_table(path)


BAD_TABLES = {
    "nowhere.csv": (None, "nowhere.csv does not exist: give a CSV file with a header line."),
    "": (None, " is a folder: give a CSV file with a header line."),
    "empty.csv": (b"", "empty.csv is empty or starts with an empty line: give a CSV file with a header line."),
    "blank.csv": (b"\na,b\n", "blank.csv is empty or starts with an empty line"),
    "twice.csv": (b"a,b,a\n1,2,3\n", "twice.csv: column names repeat: 'a'. Rename them."),
    "ragged.csv": (b"a,b\n1,2,3\n4,5,6,7\n", "ragged.csv cannot be read as a table: "),
    "cut.csv.gz": (gzip.compress(b"a,b\n" + bytes(range(48, 58)) * 99)[:30], "cut.csv.gz cannot be read: "),
    "not.csv.gz": (b"a,b\n1,2\n", "not.csv.gz cannot be read: "),
    "broken.parquet": (b"PAR1junk", "broken.parquet cannot be read as a Parquet file: "),
}


@pytest.mark.parametrize("name, case", BAD_TABLES.items(), ids=lambda value: value if isinstance(value, str) else "")
def test_a_file_that_is_no_table_is_one_sentence(tmp_path, name, case):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    content, message = case
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError) as error:
        read_table(tmp_path / name)
    assert message in str(error.value)
    no_option(error)


# ------------------------------------------------------------------------------------------------------------ models


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
    with pytest.raises(ImportError, match=r"^ONNX files need onnxruntime: pip install onnxruntime$"):
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


# ----------------------------------------------------------------------------------------------------------- training


def test_the_network_is_trained_on_three_quarters_and_is_the_same_each_time():
    random = np.random.default_rng(0)
    table = pd.DataFrame({"x": random.normal(size=200), "town": random.choice(["A", "B"], 200)})
    y = pd.Series(np.where((table["x"] > 0) ^ (table["town"] == "B"), "yes", "no"), name="answer")
    trained = train_network(table, y)
    assert (trained.n_trained, trained.n_tested) == (150, 50)
    assert trained.accuracy > 0.9
    again = train_network(table, y)
    assert (again.model.predict_proba(table) == trained.model.predict_proba(table)).all()
    tested = np.random.default_rng(0).permutation(200)[150:]
    assert trained.accuracy == (trained.model.predict(table.iloc[tested]) == y.iloc[tested]).mean()


def test_the_network_is_compared_with_always_guessing_the_most_frequent_label():
    """The guess is made of the rows trained on, and judged on the others, as the network is."""
    table = pd.DataFrame({"x": np.arange(40)})
    trained_on, tested = np.split(np.random.default_rng(0).permutation(40), [30])
    y = pd.Series("rare", index=table.index, name="answer")
    y.iloc[trained_on[:16]] = "frequent"
    y.iloc[tested[:3]] = "frequent"  # of 10: "rare" is the more frequent one here
    with warnings.catch_warnings(record=True):
        trained = train_network(table, y)
    assert (trained.most_frequent, trained.baseline) == ("frequent", 0.3)
    said = "it is right on {:.1%} of the other 10; always guessing 'frequent' is right on 30.0%"
    assert trained.comparison == said.format(trained.accuracy)


def test_a_network_that_is_not_better_than_guessing_is_a_warning(recwarn):
    table = pd.DataFrame({"x": np.random.default_rng(1).normal(size=80)})
    y = pd.Series(np.where(table["x"] > 0, "a", "b"))
    better = train_network(table, y)
    assert better.accuracy > better.baseline
    assert better.warning == ""
    assert OnbmacfWarning not in [one.category for one in recwarn]
    tested = np.random.default_rng(0).permutation(80)[60:]
    y.iloc[tested] = np.where(table["x"].iloc[tested] > 0, "b", "a")  # the opposite of what it is trained on
    worse = train_network(table, y)
    assert worse.accuracy < worse.baseline
    [seen] = [one for one in recwarn if one.category is OnbmacfWarning]
    assert str(seen.message) == worse.warning
    assert worse.warning == (
        "the trained network is not better than always guessing the most frequent label: trained on 60 rows, "
        f"{worse.comparison}. Explanations of it say little about the labels."
    )
    assert seen.filename == __file__
    assert worse._replace(accuracy=worse.baseline).warning  # as good as guessing is not better


@pytest.mark.parametrize(
    "values, message",
    [
        (["a"] * 30, "column 'y' must have at least two values and none missing to train a model on."),
        (["a", "b", None] * 10, "column 'y' must have at least two values and none missing to train a model on."),
        (list(range(30)), "column 'y' has 30 different values: it must name classes. Group its values first."),
    ],
)
def test_labels_that_are_no_classes_are_refused(values, message):
    with pytest.raises(TableError) as error:
        train_network(pd.DataFrame({"x": range(30)}), pd.Series(values, name="y"))
    assert str(error.value) == message
    assert isinstance(error.value, OnbmacfError)
