"""The first use of the kernels: where they are cached, who compiles them, and what needs none of them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from onbmacf._base import cache_folder as module
from onbmacf._base.cache_folder import cache_folder, one_process_at_a_time
from onbmacf._base.jit import kernel
from onbmacf.errors import OnbmacfWarning

COUNTING = """
import json
from numba.core import event


class Compiled(event.Listener):
    names = []

    def on_start(self, event):
        self.names.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event):
        pass


event.register("numba:compile", Compiled())
import numpy as np
"""

REACHING = (
    COUNTING
    + """
from onbmacf._balls.kernels import reach_of_fast

reach = reach_of_fast(np.zeros((1, 2)), np.zeros(1, int), np.eye(2), np.array([0, 1]), "manhattan")
print(json.dumps({"reach": reach.tolist(), "compiled": Compiled.names.count("_nearest_other")}))
"""
)

COVERING = (
    COUNTING
    + """
from onbmacf._balls.kernels import greedy_cover_fast, nearest_enemy_fast

Z = np.random.default_rng(0).random((300, 2))
reach = nearest_enemy_fast(Z, np.arange(300) % 2, threads=1)
greedy_cover_fast(Z[::2], reach[::2], threads=1)
print(json.dumps(Compiled.names))
"""
)


@pytest.fixture(autouse=True)
def nothing_is_remembered():
    cache_folder.cache_clear()
    yield
    cache_folder.cache_clear()


def started(folder, script=REACHING):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment)


def answer(child):
    out, _ = child.communicate(timeout=300)
    assert child.returncode == 0
    return json.loads(out)


def test_several_processes_at_once_compile_a_kernel_once(tmp_path):
    answers = [answer(child) for child in [started(tmp_path) for _ in range(3)]]
    assert [found["reach"] for found in answers] == [[1.0]] * 3
    assert sorted(found["compiled"] for found in answers) == [0, 0, 1]


def test_a_cover_compiles_each_function_once(tmp_path):
    names = [name for name in answer(started(tmp_path, COVERING)) if name != "impl"]  # numba's own: one per type
    assert "_advance" in names
    assert len(names) == len(set(names))


def test_a_process_that_dies_while_it_compiles_leaves_no_lock_behind(tmp_path):
    script = (
        "import os, pathlib, sys\n"
        "from onbmacf._base.cache_folder import one_process_at_a_time\n"
        "with one_process_at_a_time(pathlib.Path(os.environ['NUMBA_CACHE_DIR'])):\n"
        "    os._exit(7)\n"
    )
    child = started(tmp_path, script)
    assert child.wait(timeout=300) == 7
    child.stdout.close()
    with one_process_at_a_time(tmp_path):
        assert (tmp_path / "lock").exists()


@kernel
def twice(number):
    return 2 * number


def only(monkeypatch, allowed):
    """Let only one of the folders be written."""
    is_safe = module._is_safe
    monkeypatch.setattr(module, "_is_safe", lambda folder: allowed in folder.parents and is_safe(folder))


def test_a_package_that_cannot_be_written_is_cached_for_the_user_or_the_moment(tmp_path, monkeypatch):
    source, home, temporary = tmp_path / "package", tmp_path / "home", tmp_path / "temporary"
    source.mkdir()
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(temporary))
    for allowed in (source, home, temporary):
        with monkeypatch.context() as patch:
            only(patch, allowed)
            cache_folder.cache_clear()
            assert allowed in cache_folder(source).parents


def test_with_no_folder_at_all_kernels_still_work_and_one_warning_says_so(tmp_path, monkeypatch):
    only(monkeypatch, tmp_path / "nowhere")
    with pytest.warns(OnbmacfWarning, match="NUMBA_CACHE_DIR") as caught:
        assert [twice(21), twice(0.5)] == [42, 1.0]  # compiled for two types
    assert len(caught) == 1


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_not_used(tmp_path):
    tmp_path.chmod(0o500)
    assert not module._is_safe(tmp_path / "cache")


def test_a_file_in_the_place_of_a_folder_is_not_used(tmp_path):
    (tmp_path / "file").write_text("")
    assert not module._is_safe(tmp_path / "file" / "cache")


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of files")
def test_a_folder_of_somebody_else_is_not_used(tmp_path, monkeypatch):
    assert module._is_safe(tmp_path)
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    assert not module._is_safe(tmp_path)


def test_other_source_means_another_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    source = tmp_path / "above" / "source"
    source.mkdir(parents=True)
    folders = set()
    for changed in (source / "one.py", source / "two.py", source.parent / "three.py"):
        changed.write_text("a = 1")
        cache_folder.cache_clear()
        folders.add(cache_folder(source))
    assert len(folders) == 3


def test_the_cache_of_other_functions_stays_where_it_was(tmp_path):
    script = REACHING + "import numba; print(numba.config.CACHE_DIR)"
    out, _ = started(tmp_path, script).communicate(timeout=300)
    assert out.splitlines()[-1] == str(tmp_path)


def test_a_small_table_needs_no_kernel():
    script = (
        "import sys\n"
        "from onbmacf import ONBMACF\n"
        "from onbmacf.datasets import load_heart\n"
        "table, _ = load_heart()\n"
        "explainer = ONBMACF().fit(table, lambda rows: rows['tobacco'] + rows['ldl'] > 10)\n"
        "assert explainer.explain(table.head(2)).statuses.tolist() == ['found'] * 2\n"
        "sys.exit('numba' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == 0


def test_kernels_of_this_package_share_one_folder():
    from onbmacf._balls import kernels

    folder = cache_folder(Path(kernels.__file__).parent)
    assert folder is not None
    assert folder.name.startswith(module.NAME)
