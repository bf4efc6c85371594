"""The shape that keeps the code easy to read and change: no endless functions, a public root, few imports, layers."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import onbmacf

PACKAGE = Path(onbmacf.__file__).parent
ROOT = {
    "__init__",
    "__main__",
    "blocks",
    "causes",
    "certificate",
    "errors",
    "explainer",
    "explanation",
    "explanations",
    "schema",
    "rules",
}  # public, every one
MOST_LINES, MOST_IMPORTS = 60, 10


def functions():
    """Yield every function of the package, with where it is."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}", node


def body_length(function):
    """Return the lines of a function's body, without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def signature_length(function):
    """Return the lines from `def` to the colon."""
    return function.body[0].lineno - function.lineno


def test_no_function_is_longer_than_a_screen():
    """Signature and body; docstrings of public functions may be long."""
    lengths = {place: signature_length(node) + body_length(node) for place, node in functions()}
    files = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if "def " in path.read_text("utf-8")}
    assert {place.split(":")[0] for place in lengths} == files
    assert {place: n for place, n in lengths.items() if n > MOST_LINES} == {}


def test_what_lies_at_the_root_is_public():
    assert {path.stem for path in PACKAGE.glob("*.py")} == ROOT


def imported_modules(path):
    """Return the modules of the package that a module imports anywhere, those only for type checkers included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if is_module(alias.name)}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            within = {f"{node.module}.{alias.name}" for alias in node.names}
            submodules = {name for name in within if is_module(name)}
            found |= submodules if submodules == within else submodules | {node.module}
    return {name for name in found if name.split(".")[0] == PACKAGE.name}


def is_module(name):
    place = PACKAGE.parent.joinpath(*name.split("."))
    return place.with_suffix(".py").exists() or (place / "__init__.py").exists()


def test_imports_are_counted_by_module(tmp_path):
    source = (
        "from typing import TYPE_CHECKING\nimport numpy\nfrom onbmacf.errors import StoreError\n"
        "from onbmacf._base import checks, files\nfrom onbmacf import Schema\n"
        "if TYPE_CHECKING:\n    import onbmacf.schema\ndef f():\n    from onbmacf.errors import ModelError\n"
    )
    (tmp_path / "a.py").write_text(source)
    expected = {"onbmacf.errors", "onbmacf._base.checks", "onbmacf._base.files", "onbmacf", "onbmacf.schema"}
    assert imported_modules(tmp_path / "a.py") == expected


def test_the_explainer_imports_few_modules():
    imported = imported_modules(PACKAGE / "explainer.py")
    assert "onbmacf.explanations" in imported
    assert len(imported) <= MOST_IMPORTS, sorted(imported)


def test_only_the_oracle_and_the_values_know_the_table_and_the_model():
    """The other stages of the search take arrays: no pandas, no schema, no model, not even by way of another module."""
    for path in sorted(PACKAGE.joinpath("_search").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        assert "pandas" not in names, path.name
        known = {name for name in imported_modules(path) if name.startswith(("onbmacf._table", "onbmacf.schema"))}
        assert path.name == "oracle.py" or known <= {"onbmacf._table.values", "onbmacf._table.model"}, (
            path.name,
            known,
        )


@pytest.mark.parametrize("package", ["_base", "_balls"])
def test_stages_take_arrays_and_import_no_pandas(package):
    """Every module of a package is imported, in one new process."""
    paths = sorted(PACKAGE.joinpath(package).rglob("*.py"))
    names = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in paths]
    names = [name.removesuffix(".__init__") for name in names]
    code = f"import importlib, sys\nfor name in {names!r}: importlib.import_module(name)\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(names) <= set(loaded)
    assert "pandas" not in loaded


@pytest.mark.xdist_group("together")
def test_workers_keep_the_tests_of_a_group_together(request):
    """Fixtures that train models are made once per group; a release of pytest once broke that without a word."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("not run with --dist loadgroup")
    assert request.node.nodeid.endswith("@together")
