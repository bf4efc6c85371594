"""A cell's key follows what decides the cell (settings, data, versions, its code) and nothing else."""

import ast
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from onbmacf.bench import cells
from onbmacf.bench.cells import Cell, key
from onbmacf.bench.methods import REGISTRY

CELL = Cell("saheart", "NICE", n_factuals=6)
OWN = {"ONB-MACF", "ONB-MACF+"}
EVERY = set(REGISTRY)
DECIDES = {
    "_balls/kernels/greedy.py": OWN,
    "_balls/kernels/grid.py": OWN,
    "_balls/cover.py": OWN,
    "_search/refined.py": OWN,
    "_search/kernels/rounds.py": OWN,
    "explainer.py": OWN,
    "bench/methods/onb.py": OWN,
    "bench/methods/nice.py": {name for name in REGISTRY if name.startswith("NICE")},
    "bench/methods/cem.py": {"CEM", "CEM-VAE", "CEM-HELD", "CEM-VAE-HELD"},
    "bench/methods/face.py": {"FACE-EPSILON", "FACE-KNN"},
    "bench/methods/_gradient.py": EVERY,
    "bench/methods/__init__.py": set(),  # another entry is no reason to compute the rest again
    "bench/metrics.py": EVERY,
    "bench/network.py": EVERY,
    "bench/cases.py": EVERY,
    "bench/design.py": set(),
    "bench/statistics.py": set(),
    "_table/space.py": EVERY,
    "plots/_map.py": set(),
    "report/render.py": set(),
}
# Imported by every cell, and without a say in its numbers; the data has a digest of its own.
VIEWS = (
    "_text/*.py",
    "_views/*.py",
    "audit/*.py",
    "plots/*.py",
    "report/*.py",
    "web/*.py",
    "widget/*.py",
)  # they show results and change none
# Nobody names causes there, and without them the encoding is what it was.
WITHOUT_CAUSES = ("causes.py", "_table/effects.py")
IDLE = ("errors.py", "rules.py", "_base/*.py", "**/__init__.py", *WITHOUT_CAUSES, *VIEWS)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"n_factuals": 7},
        {"target": 0},
        {"method": "GS"},
        {"n_counterfactuals": 2},
        {"paper_sizes": True},
        {"protocol": "known"},
    ],
)
def test_the_key_follows_every_setting(change):
    assert key(replace(CELL, **change), None) != key(CELL, None)


def test_the_key_follows_the_data(tmp_path):
    (tmp_path / "saheart.csv").write_text("age,chd\n1,0\n")
    with pytest.warns(UserWarning, match="differs"):
        assert key(CELL, tmp_path) != key(CELL, None)


def test_the_key_follows_the_versions(monkeypatch):
    plain = key(CELL, None)
    monkeypatch.setattr(cells, "versions", lambda: {"numpy": "3"})
    assert key(CELL, None) != plain


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A copy of the package, and its keys."""
    copy = tmp_path_factory.mktemp("copy") / "onbmacf"
    shutil.copytree(cells.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "PACKAGE", copy)
        before = keys()
    cells._code_digest.cache_clear()
    return copy, before


@pytest.fixture
def package(copied, monkeypatch):
    """A copy of the package that a test may edit, and whose code the keys are made of."""
    copy, _ = copied
    texts = {copy / file: (copy / file).read_text(encoding="utf-8") for file in DECIDES}
    monkeypatch.setattr(cells, "PACKAGE", copy)
    yield copy
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    cells._code_digest.cache_clear()


@pytest.fixture
def before(copied):
    return copied[1]


def keys():
    cells._code_digest.cache_clear()
    return {name: key(replace(CELL, method=name), None) for name in REGISTRY}


def changed_number(source):
    """Return the source with its first number one larger, or with a number of its own where it has none."""
    numbers = [
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant) and type(node.value) is int
    ]
    if not numbers:
        return source + "\nNUMBER = 1\n"
    first, lines = numbers[0], source.splitlines(keepends=True)
    line = lines[first.lineno - 1]
    lines[first.lineno - 1] = f"{line[: first.col_offset]}{first.value + 1}{line[first.end_col_offset :]}"
    return "".join(lines)


@pytest.mark.parametrize("file, decided", DECIDES.items(), ids=DECIDES)
def test_a_changed_number_in_the_code_changes_the_keys_that_it_decides(package, before, file, decided):
    path = package / file
    path.write_text(changed_number(path.read_text(encoding="utf-8")), encoding="utf-8")
    after = keys()
    assert {name for name in REGISTRY if before[name] != after[name]} == decided


def test_comments_docstrings_and_layout_change_no_key(package, before):
    paths = [package / file for file in DECIDES]
    for path in paths:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in cells._documented(tree):
            node.body[0] = ast.Expr(ast.Constant("Other words."))
        path.write_text(f"# a remark\n{ast.unparse(ast.fix_missing_locations(tree))}\n", encoding="utf-8")
    assert "Other words." in paths[0].read_text(encoding="utf-8")
    assert keys() == before


def imported(path, package):
    """Return the modules of the package that a module imports, at its top or in a function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        places = [package.parent.joinpath(*name.split(".")) for name in names if name.split(".")[0] == package.name]
        candidates = [found for place in places for found in (place.with_suffix(".py"), place / "__init__.py")]
        yield from (found for found in candidates if found.exists())


def all_imported(paths, package):
    known, waiting = set(), list(paths)
    while waiting:
        path = waiting.pop()
        if path not in known:
            known.add(path)
            waiting += imported(path, package)
    return known


@pytest.mark.parametrize("method", REGISTRY)
def test_no_module_that_a_cell_imports_is_forgotten(method):
    package = cells.PACKAGE
    own = package.parent.joinpath(*REGISTRY[method].module.split(".")).with_suffix(".py")
    reached = all_imported([Path(cells.__file__), own], package)
    idle = {path for pattern in IDLE for path in package.glob(pattern)}
    assert {package / "_table" / "space.py", package / "bench" / "network.py", own} <= reached
    assert sorted(reached - idle - set(cells._code_files(method))) == []


@pytest.mark.parametrize("method", REGISTRY)
def test_every_pattern_of_files_still_finds_some(method):
    for pattern in (*cells.COMMON_CODE, *REGISTRY[method].also):
        assert list(cells.PACKAGE.glob(pattern)), pattern
