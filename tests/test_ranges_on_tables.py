"""Fresh points in printed ranges and boxes, on real tables with trees: the short version of benchmarks/ranges.py."""

import argparse
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from conftest import by_table
from onbmacf.bench.datasets import DESCRIPTIONS

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def measured(monkeypatch, data_dir):
    """Return the benchmark's function from a table and a model to figures, with a few rows."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
    from ranges import measured

    def few(name, kind, rows):
        return measured(name, kind, argparse.Namespace(data_dir=data_dir, rows=rows, points=50, seed=0))

    with threadpool_limits(1):
        yield few


def assert_they_hold(figures):
    assert figures["ranges"] >= figures["counterfactuals"] > 0
    assert figures["failed"] == 0
    assert figures["box failed"] <= 0.005 * figures["box points"]


def test_fresh_points_hold_in_the_ranges_of_a_forest(measured):
    figures = measured("saheart", "forest", 8)
    assert figures["boxes"] > 3
    assert_they_hold(figures)


@pytest.mark.long
@by_table(DESCRIPTIONS)
def test_fresh_points_hold_on_every_table(measured, name):
    """One kind of model per table; benchmarks/ranges.py measures all three on each."""
    pytest.importorskip("torch")
    kind = ("network", "forest", "boosting")[list(DESCRIPTIONS).index(name) % 3]
    assert_they_hold(measured(name, kind, 10))
