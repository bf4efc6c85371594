"""Shared fixtures. The eight tables are beside the project, never in it: see CONTRIBUTING.md."""

import copy
import os
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, settings
from sklearn.neural_network import MLPClassifier

from onbmacf.datasets import load_heart

# A busy machine may take its time to draw a case and to run it.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# Of the eight tables; the tests on them are long.
LARGE = ("adult", "compas", "give_me_some_credit", "heloc", "titanic", "wine")
DATA = Path(os.environ.get("ONBMACF_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """The tests of a file share a process where they name no group (`--dist loadgroup`): what it makes is made once."""
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class ByGroupOrFile(LoadGroupScheduling):
        def _split_scope(self, nodeid):
            group = super()._split_scope(nodeid)
            return group if group != nodeid else nodeid.split("::")[0]

    return ByGroupOrFile(config, log)


@pytest.fixture(scope="session")
def data_dir():
    """Folder of the eight datasets; skipped with a reason where it is absent, but not in CI."""
    if not DATA.is_dir():
        reason = f"the benchmark tables are not at {DATA}; set ONBMACF_DATA"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return DATA


@pytest.fixture(scope="session")
def network_of(tmp_path_factory):
    """Return a function that trains the benchmark's network for a task, once for all processes of this run."""
    torch = pytest.importorskip("torch")
    from onbmacf.bench.network import trained_network

    torch.set_num_threads(1)  # the network is too small for more
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    return lambda task: trained_network(task, 0, folder / "networks")


@pytest.fixture(scope="session", autouse=True)
def trained_once():
    """Train a network of scikit-learn once: commands, pages and fixtures train the same one on the same rows.

    One without a seed is trained each time, for it would not be the same. The value is what trains without memory.
    """
    own, trained = MLPClassifier.fit, {}

    def fit(self, X, y):
        if not isinstance(self.random_state, int):
            return own(self, X, y)
        key = joblib.hash((self.get_params(), X, y))
        if key not in trained:
            trained[key] = copy.deepcopy(vars(own(self, X, y)))
        vars(self).update(copy.deepcopy(trained[key]))
        return self

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MLPClassifier, "fit", fit)
        yield own


@pytest.fixture(scope="session")
def heart():
    return load_heart()[0]


@pytest.fixture
def mixed():
    """Twelve rows with a column of every kind, and an index that is neither sorted nor unique."""
    index = pd.Index([9, 9, 3, 1, 7, 2, 30, 31, 32, 5, 4, 8], name="person")
    return pd.DataFrame(
        {
            "age": [31, 54, 22, 47, 63, 35, 58, 29, 41, 50, 38, 66],
            "dose": [0.5, 1.25, 0.1, 2.0, 1.7, 0.3, 2.4, 0.9, 1.1, 1.9, 0.7, 2.2],
            "city": list("ABCABCABCABC"),
            "smokes": ["no", "yes"] * 6,
            "size": pd.Categorical(["S", "M", "L", "M"] * 3, categories=["S", "M", "L"], ordered=True),
            "insured": [True, False, True, True, False, False] * 2,
        },
        index=index,
    )


def by_table(names):
    """Return a test's parameter `name`: the tests of a table share a worker, and those on large ones are long."""
    long = {name: [pytest.mark.long] if name in LARGE else [] for name in names}
    marked = [pytest.param(name, marks=[pytest.mark.xdist_group(name), *long[name]]) for name in names]
    return pytest.mark.parametrize("name", marked)


def dose_model(rows):
    """A rule on raw values, with labels as words."""
    return np.where(rows["dose"] + (rows["smokes"] == "yes") > 1.6, "risk", "fine")
