"""The scripts of benchmarks/ can be imported in these tests."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    """Put the folder of the scripts in front of the search path."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
