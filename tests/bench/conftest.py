"""A small task with a feature of every kind, and a network for it."""

import numpy as np
import pandas as pd
import pytest

from onbmacf.bench.datasets import Description, as_task

SMALL = Description("y", (1,), ("no", "yes"), immutable=("age",), ordinal={"size": ("S", "M", "L")})


def small_frame(rows=240):
    random = np.random.default_rng(7)
    frame = pd.DataFrame(
        {
            "age": random.integers(20, 60, rows),
            "income": random.normal(50, 15, rows).round(2),
            "city": random.choice(["A", "B", "C"], rows),
            "owner": random.choice(["no", "yes"], rows),
            "size": random.choice(["S", "M", "L"], rows),
            "debt": random.exponential(10, rows).round(2),
        }
    )
    score = frame["income"] - 2 * frame["debt"] + 10 * (frame["city"] == "B") + 0.2 * frame["age"]
    return frame.assign(y=(score > 42).astype(int))


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """The tests themselves run side by side."""
    pytest.importorskip("torch", reason="the benchmark's network needs torch").set_num_threads(1)


@pytest.fixture(scope="session")
def small_task():
    return as_task("small", small_frame(), SMALL)


@pytest.fixture(scope="session")
def small_network(small_task):
    from onbmacf.bench import network

    return network.trained_network(small_task, seed=0)
