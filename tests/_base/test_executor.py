"""The borders to the machine: workers that die, what is imported, odd files."""

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cli.conftest import people, run  # noqa: F401 - fixtures
from commands import PATIENCE, one_line, wait_for
from onbmacf import ONBMACF
from onbmacf._base.executor import Watch, run_all
from onbmacf._base.limits import OverdueError, awaited_until, check_awaited
from onbmacf.errors import ModelError


@pytest.mark.xdist_group("processes")  # one pool for all of them
def test_a_worker_that_dies_is_named():
    here = os.getpid()

    def deadly(rows):
        if os.getpid() != here:
            os._exit(7)
        return rows["x"] > 2

    table = pd.DataFrame({"x": np.arange(40.0) % 7, "y": np.arange(40.0)})
    explainer = ONBMACF(n_jobs=2).fit(table, deadly)
    with pytest.raises(ModelError, match=r"worker LokyProcess-\d+ \(process \d+, exit code 7\) died while it asked"):
        explainer.explain(table)


@pytest.mark.xdist_group("processes")
def test_other_processes_are_awaited_as_long_as_this_one():
    """Here the time is up only when they look: at once, where it was carried to them."""
    soon = time.time() + 0.2
    begun = [0.0, 0.0]  # not awaited: they would return

    def look(seconds):
        time.sleep(0.5)
        check_awaited()
        return seconds

    with pytest.raises(OverdueError):
        awaited_until(soon, run_all, look, begun, 2)
    assert run_all(look, begun, 2) == begun


@pytest.mark.parametrize("came_to_see", [True, False])
def test_the_worker_that_died_is_told_from_those_that_the_pool_ended(came_to_see):
    """On a busy machine all have ended before one is looked at."""
    died = multiprocessing.Process(target=os._exit, args=(7,))
    ended = multiprocessing.Process(target=time.sleep, args=(PATIENCE,))
    for one in (died, ended):
        one.start()
    ended.kill()
    for one in (died, ended):
        one.join()
    with Watch() as watch:
        watch._seen = {ended.pid: ended, died.pid: died}
    watch._dead = [ended] if came_to_see else []
    assert watch.first() == f"worker {died.name} (process {died.pid}, exit code 7)"


class Idle:
    """A worker of an earlier pool, which ends by itself; that it ended is heard before its exit code is known."""

    name, pid = "idle", 1

    def __init__(self):
        self.sentinel, other = os.pipe()
        os.close(other)
        self.codes = [0, None]

    @property
    def exitcode(self):
        return self.codes.pop() if len(self.codes) > 1 else self.codes[0]

    def join(self, timeout):
        pass


def test_a_worker_that_ended_by_itself_is_not_named(monkeypatch):
    idle = Idle()
    monkeypatch.setattr(multiprocessing, "active_children", lambda: [idle])
    with Watch() as watch:
        wait_for(lambda: len(idle.codes) == 1)
    assert watch.first() == "a worker process"
    os.close(idle.sentinel)


class OnlyHere:
    """A model that another process cannot unpickle."""

    def __init__(self):
        self.home = os.getpid()

    def predict(self, rows):
        return rows["x"] > 2

    def __setstate__(self, state):
        if os.getpid() != state["home"]:
            raise OSError("the licence is for one machine")
        self.__dict__ = state


@pytest.mark.long
@pytest.mark.xdist_group("processes")
def test_a_worker_that_cannot_load_the_model_is_named():
    table = pd.DataFrame({"x": np.arange(40.0) % 7, "y": np.arange(40.0)})
    explainer = ONBMACF(n_jobs=2).fit(table, OnlyHere())
    with pytest.raises(ModelError, match=r"worker LokyProcess-\d+ .*the licence is for one machine"):
        explainer.explain(table)


ODD_FILES = {
    "bad Parquet": ("bad.parquet", b"junk", (), "bad.parquet cannot be read as a Parquet file"),
    "a long name": ("long.csv", b"a" * 200_000 + b",y\n1,u\n2,v\n", (), "long.csv: the first line cannot be read"),
    "an infinite cell": ("inf.csv", b"a,y\n1,u\ninf,v\n3,u\n", (), "infinite values .* in column 'a': 1 rows"),
    "no module": ("ok.csv", b"a,y\n1,u\n2,v\n", ("--model", ":f"), ":f is not a model: give module:name"),
    "no name": ("ok.csv", b"a,y\n1,u\n2,v\n", ("--model", "json:"), "json: is not a model: give module:name"),
    "a relative module": ("ok.csv", b"a,y\n1,u\n2,v\n", ("--model", ".m:f"), ".m:f is not a model: give module:name"),
    "a broken module": ("ok.csv", b"a,y\n1,u\n2,v\n", ("--model", "broken:f"), "importing 'broken' raised ValueError"),
    "no text": ("nul.csv", b"a,y\n\x00\x00\xff\n", (), "nul.csv is not utf-8 text"),
}


@pytest.mark.parametrize("name, content, words, pattern", ODD_FILES.values(), ids=ODD_FILES)
def test_an_odd_file_is_one_sentence_and_exit_code_2(run, people, name, content, words, pattern):  # noqa: F811
    Path(name).write_bytes(content)
    Path("broken.py").write_text("raise ValueError('not today')\n", encoding="utf-8")
    code, _, err = run("explain", name, "--target-column", "y", *words)
    one_line(code, err, pattern)


def test_a_file_whose_lines_end_in_carriage_returns_is_read(run, people):  # noqa: F811
    people.write_bytes(people.read_bytes().replace(b"\n", b"\r"))
    Path("rule_cr.py").write_text("def f(rows):\n    return rows['pay'] > 50\n", encoding="utf-8")
    code, out, err = run("explain", people, "--model", "rule_cr:f", "--target-column", "income", "--rows", "0")
    assert code == 0, err
    assert "pay" in out


def test_a_damaged_lock_is_no_fault(run, people):  # noqa: F811
    for name in ("m.onb.writing", "m.onb.lock"):
        Path(name).write_bytes(b"\xff\xfe\x00 no process")
    Path("rule_lock.py").write_text("def f(rows):\n    return rows['pay'] > 50\n", encoding="utf-8")
    words = ("map", "build", people, "--model", "rule_lock:f", "--target-column", "income", "--out", "m.onb")
    assert run(*words)[0] == 0
    assert sorted(path.name for path in Path().glob("m.onb*")) == ["m.onb"]


def test_the_working_folder_comes_last_on_the_import_path_and_that_is_said(people):  # noqa: F811
    """A file called like a library, beside the table, is not run; the model beside it is found."""
    for library in ("tqdm", "joblib", "typer", "rich"):
        Path(f"{library}.py").write_text("raise SystemExit('stolen')\n", encoding="utf-8")
    Path("mine.py").write_text("def f(rows):\n    return rows['pay'] > 50\n", encoding="utf-8")
    words = ["explain", str(people), "--model", "mine:f", "--target-column", "income", "--rows", "0-3"]
    code = "from onbmacf.cli import main; main()"
    path = os.pathsep.join(entry for entry in sys.path if entry and Path(entry) != Path.cwd())
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, *words], capture_output=True, text=True, timeout=PATIENCE,
        env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "stolen" not in done.stderr
    said = f"note: mine:f is also looked for in the working folder, {Path.cwd()}, after the installed modules."
    assert said in done.stderr
