"""The package as a newcomer meets it: import, README, demo, command line."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import onbmacf

README = Path(__file__).parents[1] / "README.md"
PACKAGE = Path(onbmacf.__file__).parent


def python(code: str, **environment: str) -> str:
    command, env = [sys.executable, "-c", code], os.environ | environment
    return subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout


def test_importing_the_package_imports_nothing_heavy():
    loaded = python("import onbmacf, sys; print(*sys.modules)").split()
    assert not {"numpy", "pandas", "sklearn", "torch", "scipy"} & set(loaded)


def test_the_explainer_is_imported_without_scikit_learn():
    loaded = python("from onbmacf import ONBMACF, Explanations, Schema; import sys; print(*sys.modules)").split()
    assert not {"sklearn", "scipy.stats", "torch", "matplotlib"} & set(loaded)


def test_help_imports_nothing_heavy():
    code = "import sys; sys.argv = ['onbmacf', '--help']\nfrom onbmacf.cli import main\n"
    code += "try: main()\nexcept SystemExit: pass\nprint('MODULES', *sys.modules)"
    loaded = python(code).split("MODULES")[1].split()
    assert not {"sklearn", "torch"} & set(loaded)


FIRST_USE = """
import sys
from onbmacf import ONBMACF
from onbmacf.datasets import heart_network, load_heart
table, chd = load_heart()
explainer = ONBMACF().fit(table, heart_network().fit(table, chd))
assert explainer.explain(table.head(1), prove=True, prove_seconds=0.1)
print(*sys.modules)
"""


def test_the_first_fit_and_answer_compile_nothing_and_keep_nothing_on_disk(tmp_path):
    folders = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    before = files_below(PACKAGE)
    loaded = python(FIRST_USE, **folders, PATH="", PYTHONDONTWRITEBYTECODE="1").split()
    assert not {"numba", "llvmlite", "Cython.Build", "setuptools"} & set(loaded)
    assert files_below(PACKAGE) == before
    assert not files_below(tmp_path)


def files_below(folder):
    """Return when each file was last written."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_every_public_name_is_there_and_documented():
    for name in onbmacf.__all__:
        assert getattr(onbmacf, name).__doc__
    assert set(onbmacf.__all__) <= set(dir(onbmacf))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        onbmacf.nonsense  # noqa: B018


def test_the_python_of_the_readme_runs():
    first, *more = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.S)
    said, answers = python("\n".join([first, "print('MORE')", *more, "print(answers)"])).split("MORE\n")
    assert said.startswith("If ")
    assert "found" in answers


@pytest.mark.parametrize("words", [[], ["map"]])
def test_without_a_command_the_help_is_shown_as_it_is_laid_out(words, monkeypatch, capsys):
    from onbmacf import cli

    monkeypatch.setattr(sys, "argv", ["onbmacf", *words])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Usage: onbmacf")
    assert "Commands:" in lines


def test_the_command_line_says_errors_in_one_line_and_exits_with_2(monkeypatch, capsys):
    from onbmacf import cli
    from onbmacf.errors import ParameterError

    monkeypatch.setattr(cli, "app", lambda **_: (_ for _ in ()).throw(ParameterError("n must be 1.")))
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    assert capsys.readouterr().err == "onbmacf: n must be 1.\n"
