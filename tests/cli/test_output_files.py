"""The border where results are written: checked before the work, one writer, only regular files, parts deleted last."""

import os
import pty
import shutil
import signal
import socket
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cli.conftest import people, run  # noqa: F401 - fixtures
from commands import PATIENCE, command, one_line, wait_for
from onbmacf import ONBMACF
from onbmacf._base.files import sole_writer
from onbmacf.cli import outputs
from onbmacf.cli.outputs import check_names
from onbmacf.errors import ParameterError, StoreError

MODEL = """
from pathlib import Path
import numpy as np
def predict(rows):
    Path("asked").touch()
    return np.where(rows["pay"] > 50, "high", "low")
"""
RULES = "max_changes = 2\n"


def a_device(path):
    try:
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 3))
    except PermissionError:  # pragma: no cover - not as root
        pytest.skip("only root can make a device")


def a_socket(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


IN_THE_WAY = {
    "a symbolic link": (lambda path: path.symlink_to("elsewhere.csv"), "is a symbolic link: only a regular file"),
    "a link to a file": (lambda path: path.symlink_to("people.csv"), "is a symbolic link"),
    "a named pipe": (os.mkfifo, "is a named pipe"),
    "a device": (a_device, "is a device"),
    "a socket": (a_socket, "is a socket"),
    "a folder": (Path.mkdir, "is a folder"),
    "the table": (lambda path: os.link("people.csv", path), "which this command reads"),
    "the rules": (lambda path: os.link("rules.toml", path), "which this command reads"),
    "the map": (lambda path: os.link("people.onb", path), "which this command reads"),
    "the rows": (lambda path: os.link("some.csv", path), "which this command reads"),
}  # fmt: skip


@pytest.fixture
def rule(people):  # noqa: F811
    Path("rule.py").write_text(MODEL, encoding="utf-8")
    Path("rules.toml").write_text(RULES, encoding="utf-8")
    Path("people.onb").write_bytes(b"a map")
    shutil.copy(people, "some.csv")
    sys.modules.pop("rule", None)
    return people


def is_read(out):
    return not out.is_symlink() and any(out.samefile(name) for name in ("people.onb", "some.csv"))


@pytest.mark.parametrize("words", [("explain",), ("audit",), ("map", "build")], ids=lambda words: words[0])
@pytest.mark.parametrize("make, pattern", IN_THE_WAY.values(), ids=IN_THE_WAY)
def test_what_is_no_regular_file_or_is_read_is_not_replaced(run, rule, words, make, pattern):  # noqa: F811
    out = Path("out.md")
    make(out)
    before = os.lstat(out)
    given = ("people.csv", "--model", "rule:predict", "--target-column", "income", "--rules", "rules.toml")
    more = ("--map", "people.onb", "--rows-file", "some.csv") if words[0] != "map" and is_read(out) else ()
    if words[0] == "map" and pattern == "which this command reads" and not out.samefile("people.csv"):
        given = (*given[:-1], out)  # of the files read, it has only the table and the rules
    code, _, err = run(*words, *given, *more, "--out", out)
    one_line(code, err, f"onbmacf: --out.*{pattern}")
    after = os.lstat(out)
    assert (after.st_ino, after.st_mode, after.st_mtime_ns) == (before.st_ino, before.st_mode, before.st_mtime_ns)
    assert not Path("asked").exists()
    assert not [path.name for path in Path().iterdir() if "lock" in path.name or "parts" in path.name]


@pytest.mark.parametrize("make, pattern", list(IN_THE_WAY.values())[:6], ids=list(IN_THE_WAY)[:6])
def test_the_library_replaces_only_regular_files_too(mixed, tmp_path, monkeypatch, make, pattern):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").touch()
    make(Path("m.onb"))
    before = os.lstat("m.onb").st_ino
    explainer = ONBMACF().fit(mixed, lambda rows: rows["dose"] > 1)
    with pytest.raises(StoreError, match=f"m.onb {pattern}"):
        explainer.save("m.onb")
    assert os.lstat("m.onb").st_ino == before


def test_a_missing_extra_is_told_before_the_work(run, rule, monkeypatch):  # noqa: F811
    for module, words in (("jinja2", "audit"), ("matplotlib", "audit"), ("rich", "explain")):
        with monkeypatch.context() as context:
            context.setitem(sys.modules, module, None)
            code, _, err = run(words, "people.csv", "--model", "rule:predict", "--target-column", "income")
        one_line(code, err, r"needs the extra '(report|cli)': pip install")
        assert not Path("asked").exists()


def test_a_folder_that_is_not_there_is_told_before_the_work(run, rule):  # noqa: F811
    given = ("people.csv", "--model", "rule:predict", "--target-column", "income")
    for words in (("explain",), ("audit",), ("map", "build")):
        code, _, err = run(*words, *given, "--out", "gone/out.md")
        one_line(code, err, "--out: there is no folder gone")
        assert not Path("asked").exists()


def test_a_disk_that_is_too_small_is_told_before_rows_are_explained(run, rule, monkeypatch):  # noqa: F811
    usage = shutil.disk_usage(".")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=50_000))
    given = ("people.csv", "--model", "rule:predict", "--target-column", "income", "--rows", "all")
    for words in ("explain", "audit"):
        code, _, err = run(words, *given, "--out", "out.md")
        one_line(code, err, "out.md may need 185,600 bytes, and the disk has 50,000 left")
        assert not Path("out.md.parts").exists()


def test_a_second_writer_is_told(run, rule):  # noqa: F811
    given = ("people.csv", "--model", "rule:predict", "--target-column", "income", "--out", "out.md")
    with sole_writer(Path("out.md"), ".lock"):
        for words in (("explain",), ("audit",), ("map", "build")):
            code, _, err = run(*words, *given)
            one_line(code, err, "out.md is being written by another process")
    assert not Path("out.md").exists()
    assert not Path("asked").exists()


def test_a_second_run_of_the_benchmark_in_one_folder_is_told(run, tmp_path):  # noqa: F811
    with sole_writer(tmp_path / "manifest.json", ".lock"):
        code, _, err = run("bench", "run", "--folder", tmp_path, "--datasets", "saheart", "--methods", "NICE")
    one_line(code, err, "is being written by another process")
    assert not (tmp_path / "manifest.json").exists()


def long_table():
    table = pd.concat([pd.read_csv("people.csv")] * 4, ignore_index=True)
    table.to_csv("long.csv", index=False)
    return "long.csv", "--model", "rule:predict", "--target-column", "income", "--rows", "all"


@pytest.mark.long
@pytest.mark.parametrize("words", ["explain", "audit"])
def test_a_full_disk_at_the_last_step_loses_no_answer(rule, words):
    """The system refuses files larger than the result is, less one byte, as `ulimit -f` or a full disk does."""
    given = (words, *long_table())
    kind = {"explain": "csv", "audit": "html"}[words]
    whole = command(*given, "--out", f"whole.{kind}")
    whole.communicate(timeout=PATIENCE)
    size = Path(f"whole.{kind}").stat().st_size
    Path(f"out.{kind}").write_text("old", encoding="utf-8")
    full = command("--debug", *given, "--out", f"out.{kind}", limit=size - 1)
    _, err = full.communicate(timeout=PATIENCE)
    assert full.returncode != 0
    assert "could not write" in err, err
    assert f"The answers are kept in out.{kind}.parts: the same command goes on from there." in err
    assert Path(f"out.{kind}").read_text(encoding="utf-8") == "old"
    assert len(list(Path(f"out.{kind}.parts").iterdir())) == 7
    again = command(*given, "--out", f"out.{kind}")
    _, err = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, err
    content, expected = (Path(f"{name}.{kind}").read_text(encoding="utf-8") for name in ("out", "whole"))
    assert content.replace(f"out.{kind}", f"whole.{kind}") == expected
    assert not [path.name for path in Path().iterdir() if path.name.startswith(f"out.{kind}.") or path.name[0] == "."]


def test_parts_do_not_depend_on_the_number_of_processes(rule, monkeypatch):
    table = pd.read_csv("people.csv").drop(columns="income")
    model = lambda rows: np.where(rows["pay"] > 50, "high", "low")  # noqa: E731
    explainer = ONBMACF(predict_chunk=256).fit(table, model)  # no larger calls for all rows at once
    monkeypatch.setattr(outputs, "CHUNK", 30)
    asked = []

    def explain(rows, target=None):
        if len(asked) == 1:
            raise KeyboardInterrupt
        asked.append(len(rows))
        return ONBMACF.explain(explainer, rows, target=target)

    def place(n_jobs):
        return outputs.parts_beside(Path("x"), explainer.set_params(n_jobs=n_jobs), None)

    monkeypatch.setattr(explainer, "explain", explain)
    with pytest.raises(outputs.StoppedError, match="stopped after 90 of 160 rows"):
        outputs.explain_in_parts(explainer, table, None, place(3))
    assert asked == [90]
    asked.clear()
    with pytest.raises(outputs.StoppedError, match="stopped after 120 of 160 rows"):
        outputs.explain_in_parts(explainer, table, None, place(1))
    assert asked == [30]
    asked.clear()
    answers = outputs.explain_in_parts(explainer, table, None, place(2))
    assert asked == [40]
    assert len(list(Path("x.parts").iterdir())) == 6  # parts are deleted by whoever has written the result
    place(5).clear(table)
    assert not Path("x.parts").exists()
    whole = ONBMACF.explain(explainer, table)
    pd.testing.assert_frame_equal(answers.to_frame(), whole.to_frame())
    assert answers.n_questions >= whole.n_questions > 0


def test_something_in_the_place_of_the_parts_is_told(run, rule):  # noqa: F811
    Path("out.csv.parts").write_text("a file", encoding="utf-8")
    given = ("people.csv", "--model", "rule:predict", "--target-column", "income", "--out", "out.csv")
    code, _, err = run("explain", *given)
    one_line(code, err, "could not keep the answers in out.csv.parts: File exists")


def test_columns_called_like_ours_are_written(run, rule):  # noqa: F811
    table = pd.read_csv("people.csv").assign(status=1.5, reason="x", row=2, rank=3, distance=0.5)
    table.loc[::2, ["status", "reason", "row", "rank", "distance"]] = [2.5, "y", 3, 4, 1.5]
    table.to_csv("clash.csv", index=False)
    given = ("clash.csv", "--model", "rule:predict", "--target-column", "income", "--rows", "0-4")
    code, out, err = run("explain", *given, "--format", "csv")
    assert code == 0, err
    assert out.splitlines()[0].startswith("row_,status_,reason_,rank_,from,to,distance_,")


def test_names_that_are_one_as_text_are_told():
    check_names("csv", [1, "1"])
    with pytest.raises(ParameterError, match="--format json: column names are the same as text: '1'"):
        check_names("json", [1, "1"])


ESCAPES = "\x1b[31m\x9b2J\x07"


def test_a_terminal_gets_no_raw_control_characters_and_a_file_gets_every_byte(run, rule):  # noqa: F811
    table = pd.read_csv("people.csv")
    table["town"] = table["town"].replace("A", f"A{ESCAPES}")
    table.to_csv("escapes.csv", index=False)
    words = ("explain", "escapes.csv", "--model", "rule:predict", "--target-column", "income", "--format", "csv")
    ours, theirs = pty.openpty()
    shown = command(*words, stdout=theirs)
    os.close(theirs)
    text = b""
    try:
        while chunk := os.read(ours, 4096):
            text += chunk
    except OSError:  # the other end is closed
        pass
    assert shown.wait(timeout=PATIENCE) == 0, shown.stderr.read()
    assert rb"A\x1b[31m\x9b2J\x07" in text
    assert not set(text) & {0x1B, 0x07, 0x9B}
    assert run(*words, "--out", "out.csv")[2].endswith("Written to out.csv.\n")
    assert f"A{ESCAPES}" in Path("out.csv").read_text(encoding="utf-8")


HELD = MODEL.replace(
    'Path("asked").touch()',
    'import time\n    while Path("wait").exists() and len(list(Path().glob("*.parts/*.onb"))) == 2:\n'
    '        Path("waiting").touch(); time.sleep(0.01)',
)


def test_sigterm_keeps_what_is_done_and_says_how_to_go_on(rule):
    Path("rule.py").write_text(HELD, encoding="utf-8")
    given = ("explain", *long_table(), "--out", "out.csv")
    Path("wait").touch()
    started = command(*given)
    wait_for(Path("waiting").exists, started)
    started.send_signal(signal.SIGTERM)
    _, err = started.communicate(timeout=PATIENCE)
    assert started.returncode == 143, err
    assert "Stopped after 200 of 640 rows. To go on: onbmacf explain long.csv" in err
    assert sorted(path.name for path in Path().glob("out*")) == ["out.csv.parts"]
    assert len(list(Path("out.csv.parts").iterdir())) == 2
