"""The parts of `make speed` that figures rest on: one model for all, and a table that says what was not measured."""

import json
import platform
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest


@pytest.fixture
def numbers():
    rng = np.random.default_rng(0)
    return np.column_stack([rng.normal(50, 9, 300), rng.integers(0, 3, 300), rng.integers(0, 2, 300)])


def write_encoding(folder, numbers):
    low, span = np.array([numbers[:, 0].min(), 0, 0]), np.array([np.ptp(numbers[:, 0]), 1, 1])
    np.savez(folder / "encoding.npz", low=low, span=span, n_levels=np.array([0, 3, 0]))


def write_network(folder, widths):
    rng = np.random.default_rng(1)
    layers = list(pairwise(widths))
    arrays = {f"w{k}": rng.normal(size=pair) for k, pair in enumerate(layers)}
    np.savez(folder / "network.npz", **arrays, **{f"b{k}": rng.normal(size=pair[1]) for k, pair in enumerate(layers)})


def test_numbers_are_scaled_and_categories_spread(tmp_path, numbers):
    from speed_model import FileModel

    write_encoding(tmp_path, numbers)
    write_network(tmp_path, (5, 4, 2))
    model = FileModel(tmp_path, "network")
    Z = model.encode(numbers)
    assert Z.shape == (300, 5)
    assert (Z[:, 0].min(), Z[:, 0].max()) == (0, 1)
    np.testing.assert_array_equal(Z[:, 1:4].argmax(axis=1), numbers[:, 1])
    np.testing.assert_array_equal(Z[:, 4], numbers[:, 2])
    np.testing.assert_allclose(model.predict_proba(numbers).sum(axis=1), 1)
    assert (model.n_calls, model.n_rows) == (1, 300)


def test_a_forest_says_in_onnx_what_it_says_in_scikit_learn(tmp_path, numbers):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from speed_model import FileModel
    from speed_problem import write_forest

    write_encoding(tmp_path, numbers)
    write_network(tmp_path, (5, 2))
    Z = FileModel(tmp_path, "network").encode(numbers)
    y = (numbers[:, 0] + 9 * numbers[:, 2] > 55).astype(int)
    forest = write_forest(SimpleNamespace(Z=Z, y=y), tmp_path / "forest.onnx")
    told = FileModel(tmp_path, "forest").predict_proba(numbers)
    np.testing.assert_allclose(told, forest.predict_proba(Z), atol=1e-5)


def test_the_table_of_large_maps_says_what_was_not_measured():
    from speed_fit import page

    uniform = {"table_rows": 10_000, "seconds": 0.151, "balls": 1891, "peak_mb": 45.2}
    text = page({"uniform, 10 numbers": [uniform], "adult": [{"failed": "no table"}]})
    assert "| uniform, 10 numbers | 10,000 | 0.15 | 1,891 | 45 |  |" in text
    assert "| adult | not measured: no table |" in text


def test_the_machine_is_described_without_names_or_paths():
    from speed_machine import machine

    said = json.dumps(machine())
    assert platform.python_version() in said
    for private in (str(Path.home()), sys.prefix):
        assert len(private) < 2 or private not in said
