"""Bad input is one line that says what is wrong and how to fix it, and exit code 2."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from commands import PATIENCE, one_line
from onbmacf import cli

BAD = {
    "no such file": (["explain", "nowhere.csv", "--target-column", "x"], "nowhere.csv does not exist"),
    "a folder": (["explain", ".", "--target-column", "x"], "is a folder"),
    "no header": (
        ["explain", "bare.csv", "--target-column", "x"],
        "no header: its first line holds '1.5'.*or pass --no-header .*, or --header if",
    ),
    "unknown encoding": (["explain", "people.csv", "--encoding", "x", "--target-column", "x"], ": --encoding must be"),
    "rows backwards": (["explain", "people.csv", "--target-column", "income", "--rows", "9-3"], "--rows takes numbers"),
    "plausibility": (["explain", "--plausibility", "7"], "onbmacf: --plausibility must be in .0, 1., got 7"),
    "strategy": (["explain", "--strategy", "x"], "onbmacf: --strategy must be one of .*'paper'.*, got 'x'"),
    "output": (["explain", "--output", "x"], "onbmacf: --output must be one of .*, got 'x'"),
    "empty": (["explain", "empty.csv", "--target-column", "x"], "empty.csv is empty"),
    "repeated names": (["explain", "twice.csv", "--target-column", "a"], "column names repeat: 'a'"),
    "not utf-8": (
        ["explain", "latin.csv", "--target-column", "a", "--encoding", "utf-8"],
        "not utf-8 text.*e.g. --encoding latin-1",
    ),
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
    "an empty model": (["explain", "people.csv", "--model", "", "--target-column", "income"], "--model is empty"),
    "an empty target": (["explain", "people.csv", "--target-column", "income", "--target="], "--target is empty"),
    "no number": (["explain", "--n", "0"], "--n"),
    "unknown format": (["explain", "--format", "pdf"], "--format must be one of 'table'.*got 'pdf'"),
    "format of a file": (["explain", "--out", "a.xyz"], "a.xyz does not say which"),
    "unknown command": (["explan"], "No such command 'explan'"),
    "unknown option": (["explain", "--nonsense"], "--nonsense"),
    "model file": (["explain", "people.csv", "--model", "gone.onnx"], "there is no model file gone.onnx"),
    "model kind": (["explain", "people.csv", "--model", "people.csv"], "give module:name or a file ending in"),
    "model module": (["explain", "people.csv", "--model", "nowhere:f"], "cannot import 'nowhere'"),
    "model name": (["explain", "people.csv", "--model", "json:dmps"], "'json' has no 'dmps'.*'dumps'"),
    "pickle": (["explain", "people.csv", "--model", "m.pkl"], "is a pickle.*Pass --trust-pickle if you trust"),
    "broken model": (["explain", "people.csv", "--model", "m.skops"], "m.skops cannot be loaded as a model"),
    "many classes": (["explain", "people.csv", "--target-column", "pay"], "'pay' has .* different values"),
    "rules": (["explain", "people.csv", "--target-column", "income", "--rules", "m.pkl"], "rules file m.pkl"),
    "map": (["explain", "people.csv", "--target-column", "income", "--map", "people.csv"], "is not a map"),
    "map info": (["map", "info", "people.csv"], "people.csv is not a map"),
    "report name": (["audit", "--out", "r.pdf"], "--out must end in '.html'.*got 'r.pdf'"),
    "report folder": (["audit", "--out", "gone/r.html"], "there is no folder gone"),
    "group left out": (
        ["audit", "people.csv", "--target-column", "income", "--drop", "sex", "--by", "sex"],
        "--by names 'sex', which --drop leaves out. Keep the column",
    ),
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


def test_a_closed_standard_output_is_said(people):
    words = ["explain", str(people), "--target-column", "income", "--rows", "0"]
    code = "import sys; sys.stdout = None; from onbmacf.cli import main; main()"  # what Python makes of `>&-`
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=PATIENCE)
    one_line(done.returncode, done.stderr, "there is no standard output to write to: leave it open, or name a file")


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
