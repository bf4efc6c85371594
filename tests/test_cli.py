"""The command line: every command, what it says of bad input, models of all kinds, and work that is stopped."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer", reason="the command line needs the extra 'cli'")

from onbmacf import ONBMACF, Schema, cli
from onbmacf.datasets import load_heart

PEOPLE = 160


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command in this process; return exit code, stdout and stderr."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["onbmacf", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    return run


@pytest.fixture
def people(tmp_path, monkeypatch):
    """A table with a target column, in a folder whose name has a space; the working folder is that one."""
    folder = tmp_path / "my data"
    folder.mkdir()
    monkeypatch.chdir(folder)
    random = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "age": random.integers(20, 70, PEOPLE),
            "pay": random.normal(50, 15, PEOPLE).round(1),
            "sex": random.choice(["f", "m"], PEOPLE),
            "town": random.choice(["A", "B", "C"], PEOPLE),
        }
    )
    score = table["pay"] + 10 * (table["sex"] == "m") - 0.2 * table["age"] + 5 * (table["town"] == "B")
    table["income"] = np.where(score > 50, "high", "low")
    path = folder / "people.csv"
    table.to_csv(path, index=False)
    return path


def one_line(code, err, pattern):
    assert code == 2
    last = err.splitlines()[-1]
    assert last.startswith("onbmacf: ")
    assert re.search(pattern, last), last
    assert "Traceback" not in err


def test_without_arguments_the_embedded_data_are_explained(run):
    code, out, err = run("explain", "--format", "sentences")
    assert code == 0
    assert "462 men" in err
    assert "the first 10 of" in err
    assert out.count("the model would say 'healthy' instead of 'at risk'") == 10


def test_a_model_is_trained_and_said_so(run, people):
    code, out, err = run("explain", people, "--target-column", "income", "--rows", "3,17", "--format", "sentences")
    assert code == 0
    assert "No model was given: a network (32-16) was trained on 'income' with 120 of 160 rows" in err
    assert [line.split(":")[0] for line in out.splitlines()] == ["Row 3", "Row 17"]
    assert "2 rows: 2 found" in err


def test_each_format_says_the_same(run, people, tmp_path):
    base = ("explain", people, "--target-column", "income", "--rows", "0-9", "--n", "2")
    frame = pd.read_csv(pd.io.common.StringIO(run(*base, "--format", "csv")[1]), float_precision="round_trip")
    document = json.loads(run(*base, "--format", "json")[1])
    sentences = run(*base, "--format", "sentences")[1].splitlines()
    table = run(*base, "--format", "table")[1]
    markdown = run(*base, "--format", "markdown")[1]
    assert [entry["row"] for entry in document] == list(range(10))
    found = [(entry["row"], one) for entry in document for one in entry["counterfactuals"]]
    assert len(frame) == len(sentences) == len(found) == len(markdown.splitlines()) - 2
    for line, (row, one) in zip(frame.itertuples(), found, strict=True):
        assert (line.row, line.to) == (row, one["label"])
        assert line.distance == one["distance"]
        assert line.pay == one["values"]["pay"]
    assert document[0]["counterfactuals"][0]["changes"][0]["feature"] in table


def test_rows_by_number_by_name_by_file_and_by_prediction(run, people):
    table = pd.read_csv(people)
    table.insert(0, "id", [f"P{place}" for place in range(len(table))])
    table.to_csv("named.csv", index=False)
    table.iloc[[5, 9]].to_csv("some.csv", index=False)
    base = ("explain", "named.csv", "--target-column", "income", "--id-column", "id", "--format", "json")
    rows = lambda *words: [entry["row"] for entry in json.loads(run(*base, *words)[1])]  # noqa: E731
    assert rows("--rows", "5,9") == ["P5", "P9"]
    assert rows("--ids", "P5,P9") == ["P5", "P9"]
    assert rows("--ids", "P5", "--ids", "P9") == ["P5", "P9"]
    assert rows("--rows-file", "some.csv") == ["P5", "P9"]
    every = json.loads(run(*base, "--rows", "all")[1])
    high = [entry["row"] for entry in every if entry["label"] == "high"]
    assert rows("--predicted", "high") == high
    assert rows("--target", "high") == [entry["row"] for entry in every if entry["label"] == "low"][:10]


def test_rows_keep_their_number_in_the_file_when_others_are_left_out(run, people):
    table = pd.read_csv(people)
    table.loc[[0, 4], "pay"] = np.nan
    table.to_csv("gaps.csv", index=False)
    base = ("explain", "gaps.csv", "--target-column", "income", "--format", "json")
    code, _, err = run(*base)
    one_line(code, err, "2 rows have missing values, in pay: fill them, or say --drop-missing")
    code, out, err = run(*base, "--drop-missing", "--rows", "3-6")
    assert "Left out 2 rows" in err
    assert [entry["row"] for entry in json.loads(out)] == [3, 5, 6]
    code, out, err = run(*base, "--drop-missing", "--rows", "4")
    one_line(code, err, "names 4, which was left out")


def test_immutables_rules_and_targets_reach_the_explainer(run, people):
    Path("rules.toml").write_text('max_changes = 1\n[features.pay]\ndirection = "up"\n', encoding="utf-8")
    words = ("--target", "high", "--immutable", "age,sex", "--rules", "rules.toml", "--rows", "all", "--format", "json")
    _, out, _ = run("explain", people, "--target-column", "income", *words)
    document = json.loads(out)
    assert {entry["status"] for entry in document} <= {"found", "already", "infeasible"}
    for entry in document:
        for found in entry["counterfactuals"]:
            if found["relaxation"] != "immutability":
                assert {change["feature"] for change in found["changes"]} <= {"pay", "town"}
            assert found["label"] == "high"


BAD = {
    "no such file": (["explain", "nowhere.csv", "--target-column", "x"], "nowhere.csv does not exist"),
    "a folder": (["explain", ".", "--target-column", "x"], "is a folder"),
    "no header": (["explain", "bare.csv", "--target-column", "x"], "no header: its first line holds '1.5'"),
    "empty": (["explain", "empty.csv", "--target-column", "x"], "empty.csv is empty"),
    "repeated names": (["explain", "twice.csv", "--target-column", "a"], "column names repeat: 'a'"),
    "not utf-8": (["explain", "latin.csv", "--target-column", "a"], "is not utf-8.*--encoding"),
    "neither model nor target": (["explain", "people.csv"], "give a model .--model., or a column"),
    "unknown target column": (
        ["explain", "people.csv", "--target-column", "incom"],
        "--target-column names 'incom'.*Did you mean 'income'",
    ),
    "unknown immutable": (
        ["explain", "people.csv", "--target-column", "income", "--immutable", "sx"],
        "--immutable names 'sx'.*Did you mean 'sex'",
    ),
    "unknown class": (
        ["explain", "people.csv", "--target-column", "income", "--target", "huge"],
        "--target must be among the model's labels 'high', 'low', got 'huge'",
    ),
    "row not there": (["explain", "people.csv", "--target-column", "income", "--rows", "999"], "rows are 0 to 159"),
    "no row number": (["explain", "people.csv", "--target-column", "income", "--rows", "x"], "--rows takes numbers"),
    "no such id": (["explain", "people.csv", "--target-column", "income", "--ids", "x"], "--ids names 'x'"),
    "no number": (["explain", "--n", "0"], "--n"),
    "unknown format": (["explain", "--format", "pdf"], "--format must be one of 'table'.*got 'pdf'"),
    "format of a file": (["explain", "--out", "a.xyz"], "a.xyz does not say which"),
    "unknown command": (["explan"], "No such command 'explan'"),
    "unknown option": (["explain", "--nonsense"], "--nonsense"),
    "model file": (["explain", "people.csv", "--model", "gone.onnx"], "gone.onnx: there is no such file"),
    "model kind": (["explain", "people.csv", "--model", "people.csv"], "give module:callable or a file ending in"),
    "model module": (["explain", "people.csv", "--model", "nowhere:f"], "cannot import 'nowhere'"),
    "model name": (["explain", "people.csv", "--model", "json:dmps"], "'json' has no 'dmps'.*'dumps'"),
    "pickle": (["explain", "people.csv", "--model", "m.pkl"], "is a pickle.*--trust-pickle"),
    "broken model": (["explain", "people.csv", "--model", "m.skops"], "m.skops cannot be loaded as a model"),
    "many classes": (["explain", "people.csv", "--target-column", "pay"], "'pay' has .* different values"),
    "rules": (["explain", "people.csv", "--target-column", "income", "--rules", "m.pkl"], "rules file m.pkl"),
    "map": (["explain", "people.csv", "--target-column", "income", "--map", "people.csv"], "is not a map"),
    "map info": (["map", "info", "people.csv"], "people.csv is not a map"),
    "report name": (["audit", "--out", "r.pdf"], "--out must end in '.html'.*got 'r.pdf'"),
    "report folder": (["audit", "--out", "gone/r.html"], "there is no folder gone"),
    "group": (["audit", "people.csv", "--target-column", "income", "--by", "sx"], "--by names 'sx'.*'sex'"),
    "text in numbers": (["explain", "text.csv", "--target-column", "y", "--no-header"], "x0"),
}  # fmt: skip


@pytest.mark.parametrize("words, pattern", BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_exit_code_2(run, people, words, pattern):
    Path("bare.csv").write_text("1.5,a\n2.5,b\n", encoding="utf-8")
    Path("empty.csv").write_text("", encoding="utf-8")
    Path("twice.csv").write_text("a,a\n1,2\n", encoding="utf-8")
    Path("latin.csv").write_bytes("a,é\n1,2\n".encode("latin-1"))
    Path("text.csv").write_text("1,2\n", encoding="utf-8")
    Path("m.pkl").write_bytes(b"junk")
    Path("m.skops").write_bytes(b"junk")
    code, _, err = run(*words)
    one_line(code, err, pattern)


def test_debug_shows_the_traceback(monkeypatch, people):
    monkeypatch.setattr(sys, "argv", ["onbmacf", "explain", "nowhere.csv", "--target-column", "x", "--debug"])
    with pytest.raises(Exception, match=r"nowhere\.csv does not exist"):
        cli.main()


def test_an_unexpected_error_is_one_line_too(run, monkeypatch):
    monkeypatch.setattr(cli, "app", lambda **_: 1 / 0)
    code, _, err = run("explain")
    assert code == 1
    assert err == "onbmacf: unexpected ZeroDivisionError: division by zero (--debug shows where)\n"


def test_a_model_that_does_not_fit_the_table_is_said(run, people):
    Path("wrong.py").write_text("def predict(rows):\n    return rows['salary'] > 3\n", encoding="utf-8")
    sys.modules.pop("wrong", None)
    code, _, err = run("explain", people, "--model", "wrong:predict")
    one_line(code, err, "the model raised on row 0 of the table: 'salary'")


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


def test_map_build_info_and_explain_with_it(run, people):
    base = (people, "--target-column", "income")
    assert run("map", "build", *base, "--immutable", "sex", "--out", "people.onb")[0] == 0
    code, out, _ = run("map", "info", "people.onb")
    assert code == 0
    assert re.search(r"^rows +160$", out, flags=re.M)
    assert re.search(r"^column sex +binary, immutable$", out, flags=re.M)
    assert re.search(r"^label 'high' +\d+ rows in \d+ balls$", out, flags=re.M)
    fresh = run("explain", *base, "--immutable", "sex", "--rows", "0-9", "--format", "json")[1]
    loaded = run("explain", *base, "--map", "people.onb", "--rows", "0-9", "--format", "json")[1]
    assert loaded == fresh


def test_audit_writes_a_report_and_says_its_findings(run, people):
    code, out, err = run("audit", people, "--target-column", "income", "--target", "high", "--by", "sex,age")
    assert code == 0, err
    page = Path("report.html").read_text(encoding="utf-8")
    assert "Burden by sex" in page
    assert "Burden by age" in page
    assert "No model was given" in page
    assert "onbmacf audit" in page
    assert out.startswith("- No model was given")
    assert "\n- Of " in out
    assert (
        run("audit", people, "--target-column", "income", "--out", "r.md", "--immutable", "sex", "--most", "30")[0] == 0
    )
    text = Path("r.md").read_text(encoding="utf-8")
    assert "## Burden by sex" in text
    assert "30 rows explained" in text
    assert not list(Path().glob("*.parts"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_said(run, people):  # pragma: no cover - not as root
    Path("locked").mkdir(mode=0o500)
    code, _, err = run("explain", "--out", "locked/a.csv")
    one_line(code, err, "could not write")


def test_a_full_disk_leaves_the_old_file(run, people, monkeypatch):
    Path("a.csv").write_text("old", encoding="utf-8")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    code, _, err = run("explain", "--out", "a.csv", "--rows", "0")
    one_line(code, err, "could not write .*No space left on device")
    assert Path("a.csv").read_text(encoding="utf-8") == "old"


SLOW = """
import time, numpy as np
def predict(rows):
    time.sleep({pause})
    return np.where(rows["pay"] > 50, "high", "low")
"""


def command(*words):
    code = "from onbmacf.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=environment,
    )  # fmt: skip


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_stopped_work_goes_on_and_ends_as_if_it_had_not_been_stopped(people, how):
    table = pd.read_csv(people)
    pd.concat([table] * 4, ignore_index=True).to_csv("long.csv", index=False)
    Path("slow.py").write_text(SLOW.format(pause=0.01), encoding="utf-8")
    words = ("explain", "long.csv", "--model", "slow:predict", "--target-column", "income", "--rows", "all")
    started = command(*words, "--out", "a.csv")
    deadline = time.monotonic() + 90
    while len(list(Path().glob("a.csv.parts/*.onb"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    started.send_signal(how)
    _, err = started.communicate(timeout=60)
    n_kept = len(list(Path().glob("a.csv.parts/*.onb")))
    assert n_kept >= 2
    assert not Path("a.csv").exists()
    if how == signal.SIGINT:
        assert started.returncode == 130, err
        assert re.search(r"Stopped after \d+ of 640 rows\. To go on: onbmacf explain long\.csv", err)
        assert "Traceback" not in err
    Path("slow.py").write_text(SLOW.format(pause=0), encoding="utf-8")
    again = command(*words, "--out", "a.csv")
    assert again.communicate(timeout=120)[1].splitlines()[-1].startswith("640 rows: ")
    whole = command(*words, "--out", "b.csv")
    whole.communicate(timeout=120)
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    assert not Path("a.csv.parts").exists()


def test_long_work_says_how_far_it_is(monkeypatch, capsys):
    from onbmacf.cli import terminal

    clock = iter([0.0, 5.0, 6.0, 20.0])
    monkeypatch.setattr(terminal.time, "monotonic", lambda: next(clock))
    progress = terminal.Progress(1000)
    progress.advance(100)
    progress.advance(100)
    progress.advance(200)
    assert capsys.readouterr().err.splitlines() == [
        "100 of 1,000 rows explained, about 45 s left",
        "400 of 1,000 rows explained, about 30 s left",
    ]


def test_parts_come_back_as_they_were(people, tmp_path):
    from onbmacf.cli import parts

    table = pd.read_csv(people).drop(columns="income")
    model = lambda rows: np.where(rows["pay"] > 50, "high", "low")  # noqa: E731
    explainer = ONBMACF(2).fit(table, model, schema=Schema.infer(table, immutable=["sex"]))
    rows = table.head(250).astype({"town": object})
    rows.loc[3, "town"] = "nowhere"
    place = parts.parts_beside(tmp_path / "x", explainer, None)
    whole = explainer.explain(rows)
    for half in (rows.iloc[:70], rows.iloc[70:]):
        answers = explainer.explain(half)
        path = place.path(half, 0)
        parts._write(path, answers, explainer)
        back = parts._read(path, half, explainer)
        pd.testing.assert_frame_equal(back.to_frame(), answers.to_frame())
        pd.testing.assert_frame_equal(back.status_frame(), answers.status_frame())
        assert back.sentences() == answers.sentences()
    both = parts.joined([explainer.explain(rows.iloc[:70]), explainer.explain(rows.iloc[70:])])
    pd.testing.assert_frame_equal(both.to_frame(), whole.to_frame())
    assert both.sentences() == whole.sentences()
    path.write_bytes(b"junk")
    assert parts._read(path, half, explainer) is None


def test_parts_of_another_question_are_not_taken(people):
    from onbmacf.cli import parts

    table = pd.read_csv(people).drop(columns="income")
    explainer = ONBMACF().fit(table, lambda rows: (rows["pay"] > 50).astype(int))
    names = {
        parts.parts_beside(Path("x"), explainer, target).path(rows, 0)
        for target in (None, 1)
        for rows in (table.head(5), table.head(6))
    }
    assert len(names) == 4


def test_no_terminal_no_colour_and_a_narrow_encoding(people):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "NO_COLOR": "1"}
    environment |= {"PYTHONIOENCODING": "ascii", "TERM": "dumb", "COLUMNS": "100"}
    words = ["explain", "people.csv", "--target-column", "income", "--rows", "0-3"]
    done = subprocess.run([sys.executable, "-m", "onbmacf", *words], capture_output=True, env=environment, check=True)
    text = done.stdout.decode("ascii")
    assert "\x1b" not in text
    assert "\\u2192" in text
    assert "| row" in text.replace("  ", " ")


def test_help_is_quick_and_light():
    code = (
        "import sys, time; start = time.perf_counter()\n"
        "sys.argv = ['onbmacf', *sys.argv[1:]]\nfrom onbmacf.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print('SECONDS', time.perf_counter() - start, 'MODULES', *sys.modules)"
    )
    for words in (["--help"], ["explain", "--help"], ["audit", "--help"], ["map", "--help"], ["bench", "--help"]):
        out = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True).stdout
        loaded = out.split("MODULES")[1].split()
        assert not {"numpy", "pandas", "sklearn", "numba", "torch", "matplotlib", "jinja2"} & set(loaded), words
        assert "Usage: onbmacf" in out


def test_the_commands_of_the_help_run_as_printed(run, people, capsys):
    """Every line of --help that starts with `onbmacf` is run, on a table with the names that it uses."""
    pytest.importorskip("skops")
    import skops.io
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    table = pd.read_csv(people)
    encoder = make_column_transformer((OneHotEncoder(), ["sex", "town"]), remainder="passthrough")
    model = make_pipeline(encoder, LogisticRegression(max_iter=2000))
    skops.io.dump(model.fit(table.drop(columns="income"), table["income"]), "income.skops")
    Path("mymodule.py").write_text(
        "def predict(rows):\n    return (rows['pay'] > 50).map({True: 'granted', False: 'refused'})\n", encoding="utf-8"
    )
    commands = []
    for topic in (["explain"], ["audit"], ["map", "build"], ["map", "info"], ["demo"]):
        _, out, _ = run(*topic, "--help")
        commands += re.findall(r"^ *(?:Example: )?onbmacf (.+)$", out, flags=re.M)
    assert len(commands) >= 10
    for line in commands:
        words = line.split()
        code, _, err = run(*words)
        assert code == 0, (line, err)


def test_the_commands_of_the_readme_run_as_printed(run, people):
    Path("people.csv").rename("TABLE.csv")
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^(?:\$ )?onbmacf (.+)$", text, flags=re.M)
    assert any("audit TABLE.csv" in line for line in commands)
    for line in commands:
        code, _, err = run(*line.split())
        assert code == 0, (line, err)


def test_heart_is_the_default_of_audit(run, people):
    table, _ = load_heart()
    code, out, _ = run("audit", "--most", "20", "--cases", "1")
    assert code == 0
    assert "The most changed features are" in out
    assert str(len(table)) in Path("report.html").read_text(encoding="utf-8")
