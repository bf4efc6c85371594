"""Fresh points in printed ranges and boxes, on a real table with trees: benchmarks/ranges.py at its smallest."""

import argparse
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits


@pytest.mark.filterwarnings("ignore")
def test_fresh_points_hold_in_the_ranges_of_a_forest(monkeypatch, data_dir):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    import pandas as pd

    from ranges import as_page, measured

    with threadpool_limits(1):
        figures = measured("saheart", "forest", argparse.Namespace(data_dir=data_dir, rows=8, points=50, seed=0))
    assert figures["boxes"] > 3
    assert figures["ranges"] >= figures["counterfactuals"] > 0
    assert figures["failed"] == 0
    assert figures["box failed"] <= 0.005 * figures["box points"]
    assert "| saheart | forest | 8 |" in as_page(pd.DataFrame([figures]))
