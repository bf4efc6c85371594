"""Kernels run as the Python that they are written in, and compiled for any processor: the same to the bit."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from onbmacf import ONBMACF
from onbmacf._balls import kernels, metrics
from onbmacf._balls.cover import build_cover
from onbmacf._balls.groups import Groups
from onbmacf._balls.kernels import compiled, enemies, greedy, grid, leaves, nearest, pairs
from onbmacf._balls.metrics import METRICS
from onbmacf._base.missing import missing_code
from onbmacf.datasets import load_heart
from onbmacf.errors import OnbmacfWarning
from plain_kernels import from_source

FOLDER = Path(kernels.__file__).parent
USERS = {"loops": (enemies, greedy, nearest, pairs)}
ANY_PROCESSOR, SOURCE, WITHOUT_CYTHON = "any processor", "source", "source without cython"


def source_of(name):
    """Return a kernel's module, loaded from its source though it is compiled."""
    return getattr(from_source(kernels, name), name)


@pytest.fixture(params=[ANY_PROCESSOR, SOURCE, WITHOUT_CYTHON])
def use_others(request, monkeypatch):
    """Return a function that puts other modules in the place of those compiled for this processor."""
    if request.param == WITHOUT_CYTHON:
        monkeypatch.setitem(sys.modules, "cython", None)
    if request.param == ANY_PROCESSOR:
        modules = {name: importlib.import_module(f"{kernels.__name__}.{name}") for name in USERS}
    else:
        modules = {name: source_of(name) for name in USERS}
    assert (request.param == ANY_PROCESSOR) == modules["loops"].COMPILED

    def use():
        for name, users in USERS.items():
            for user in users:
                monkeypatch.setattr(user, name, modules[name])

    return use


def rows_of(kind, metric, n=150):
    """Return rows on a small grid, full of ties and duplicates, their labels, and which columns are levels."""
    rng = np.random.default_rng(3)
    Z, groups = rng.integers(0, 4, (n, 3)) * 0.25, None
    if kind == "outliers":
        Z[:5] *= -1e6
    if "missing" in kind:
        Z[rng.random(Z.shape) < 0.2] = missing_code(0.5)
    if "levels" in kind:
        height = METRICS[metric].height
        Z = np.hstack([Z, np.eye(4)[rng.integers(0, 4, n)] * height])
        groups = Groups(np.arange(4), np.array([1, 1, 1, 4]), np.array([0.0, 0.0, 0.0, height]))
    return Z, rng.integers(0, 3, n), groups


KINDS = ["numbers", "outliers", "levels", "missing", "levels and missing"]
of_all_kinds = pytest.mark.parametrize("kind", KINDS)
of_all_metrics = pytest.mark.parametrize("metric", sorted(METRICS))


WITH_ALL_KINDS = [ANY_PROCESSOR, SOURCE]  # without cython, the source is the same: some kinds are long


@pytest.mark.parametrize(
    "use_others, kind",
    [
        pytest.param(how, kind, marks=[pytest.mark.long] * (how not in WITH_ALL_KINDS and kind != KINDS[-1]))
        for how in (ANY_PROCESSOR, SOURCE, WITHOUT_CYTHON)
        for kind in KINDS
    ],
    indirect=["use_others"],
)
@pytest.mark.parametrize(
    "metric", ["manhattan", *(pytest.param(name, marks=pytest.mark.long) for name in METRICS if name != "manhattan")]
)
@pytest.mark.parametrize("by_pairs", [False, pytest.param(True, marks=pytest.mark.long)])
def test_covers_are_the_same(kind, metric, by_pairs, use_others, monkeypatch):
    if by_pairs:
        monkeypatch.setattr(enemies, "_reach_most_boxes", lambda *_: True)
        monkeypatch.setattr(greedy, "_few_in_reach_of_most", lambda *_: True)
        monkeypatch.setattr(pairs, "MEMBERS", 3)  # some balls are listed and others are not
    Z, labels, groups = rows_of(kind, metric)
    expected = build_cover(Z, labels, metric, fast=True, threads=1, groups=groups)
    use_others()
    found = build_cover(Z, labels, metric, fast=True, threads=1, groups=groups)
    for name in ("centers", "radii", "labels", "owner", "reach"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


@of_all_kinds
def test_nearest_rows_are_the_same(kind, use_others):
    Z, _, groups = rows_of(kind, "euclidean")
    points = np.concatenate([Z[::20], Z[::20]])
    points[len(points) // 2 :, 0] += 0.1
    expected = nearest.NearestRows(Z, groups).rows(points, 7)
    use_others()
    np.testing.assert_array_equal(nearest.NearestRows(Z, groups).rows(points, 7), expected)


@of_all_kinds
@of_all_metrics
def test_the_reach_of_points_is_the_same(kind, metric, use_others):
    Z, labels, _ = rows_of(kind, metric)
    z = np.concatenate([Z[::30], Z[::30] + 0.1])
    how = z, np.zeros(len(z), dtype=np.intp), Z, labels, metric
    expected = enemies.reach_of_fast(*how)
    use_others()
    np.testing.assert_array_equal(enemies.reach_of_fast(*how), expected)


def test_the_numbers_that_the_compiler_knows_are_those_of_the_package():
    declared = FOLDER / "constants.pxd"
    if not declared.exists():
        pytest.skip("a wheel holds no declarations for the compiler")
    numbers = re.findall(r"^    ([A-Z]+) = (-?\d+)$", declared.read_text(), re.MULTILINE)
    assert len(numbers) == 9
    for name, number in numbers:
        assert next(getattr(one, name) for one in (grid, leaves, metrics) if hasattr(one, name)) == int(number)


def test_arrays_that_cannot_be_written_are_read():
    Z, labels, groups = rows_of("levels", "manhattan")
    expected = build_cover(Z, labels, fast=True, groups=groups)
    for own in (Z, labels, *groups):
        own.flags.writeable = False
    np.testing.assert_array_equal(build_cover(Z, labels, fast=True, groups=groups).owner, expected.owner)


@pytest.mark.long
def test_without_compiled_kernels_there_is_one_warning_and_the_same_cover(monkeypatch):
    table, _ = load_heart()
    model = lambda rows: rows["tobacco"] + rows["ldl"] > 10  # noqa: E731
    compiled_one = ONBMACF().fit(table, model)
    expected = compiled_one.explain(table.head(3)).to_frame()
    assert compiled.are_compiled()
    compiled.are_compiled.cache_clear()
    monkeypatch.setattr(compiled, "loops", source_of("loops"))
    try:
        with pytest.warns(OnbmacfWarning, match=r"not compiled, so .* install a C compiler and then onbmacf") as told:
            plain = ONBMACF().fit(table, model)
        answers = plain.explain(table.head(3)).to_frame()
    finally:
        compiled.are_compiled.cache_clear()
    assert len(told) == 1
    np.testing.assert_array_equal(plain.cover_.owner, compiled_one.cover_.owner)
    assert answers.equals(expected)
