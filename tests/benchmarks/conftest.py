"""The scripts of benchmarks/ can be imported in these tests, and run on one thread, as they do by themselves."""

from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="session", autouse=True)
def scripts():
    """Put the folder of the scripts in front of the search path, and return it."""
    folder = Path(__file__).parents[2] / "benchmarks"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield folder


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for each other would take most of the time of so small tables."""
    with threadpool_limits(1):
        yield
