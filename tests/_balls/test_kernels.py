"""Kernels and their plain twins give the same: the reach of new points, and whole answers."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from onbmacf import ONBMACF
from onbmacf._balls import cover, neighbours, recover
from onbmacf._balls.distance import distances
from onbmacf._balls.kernels import reach_of_fast
from onbmacf._balls.metrics import METRICS


@st.composite
def rows_and_points(draw):
    """Rows and new points on small grids: full of ties."""
    width, grid = draw(st.integers(1, 4)), st.sampled_from([0.0, 0.25, 0.5, 1.0, 1 / 3, 1e-17, 1e6])
    n = draw(st.integers(1, 300))
    labels = draw(arrays.arrays(np.intp, n, elements=st.integers(0, 3)))
    z = draw(arrays.arrays(np.float64, (5, width), elements=grid | st.floats(-3, 3)))
    return draw(arrays.arrays(np.float64, (n, width), elements=grid)), labels, z


@settings(deadline=None, max_examples=60, derandomize=True)
@given(rows_and_points(), st.sampled_from(sorted(METRICS)))
def test_the_reach_of_new_points_is_the_plain_one(case, metric):
    Z, labels, z = case
    codes = np.arange(5) % 4
    expected = [distances(z[[line]], Z[labels != codes[line]], metric).min(initial=np.inf) for line in range(5)]
    np.testing.assert_array_equal(reach_of_fast(z, codes, Z, labels, metric), expected)


def wavy(rows):
    return (rows["a"] + np.sin(9 * rows["b"]) + rows["c"] * rows["d"] > 1).astype(int)


@pytest.fixture(scope="module")
def table():
    return pd.DataFrame(np.random.default_rng(3).random((3000, 4)).round(3), columns=list("abcd"))


@pytest.fixture(scope="module")
def rows():
    return pd.DataFrame(np.random.default_rng(4).random((40, 4)).round(3), columns=list("abcd"))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"plausibility": 1.0, "n_counterfactuals": 3},
        {"strategy": "paper"},
        {"metric": "euclidean", "max_model_rows": 300},
        {"strategy": "paper", "search": "exhaustive", "association": "center"},
        {"strategy": "paper", "association": "center", "boundary": "ratio"},
    ],
    ids=str,
)
def test_the_same_answers_with_and_without_kernels(table, rows, options, monkeypatch):
    with monkeypatch.context() as without_kernels:
        for module in (cover, neighbours, recover):
            without_kernels.setattr(module, "are_compiled", lambda: False)
        expected = ONBMACF(**options).fit(table, wavy).explain(rows)
    explainer = ONBMACF(**options).fit(table, wavy)
    gaps = distances(rows.to_numpy(), explainer.Z_[explainer.cover_.centers], "manhattan") - explainer.cover_.radii
    home = gaps.argmin(axis=1)
    assert (explainer.cover_.labels[home] != wavy(rows)).any()  # some rows are cut out of their home balls
    found = explainer.explain(rows)
    pd.testing.assert_frame_equal(found.to_frame(), expected.to_frame())
    assert (found.n_questions, found.n_calls) == (expected.n_questions, expected.n_calls)


def test_later_rounds_go_on_beyond_the_first_balls(table, rows):
    never = lambda frame: np.where(frame["d"] > 0.999, 1, 0) if len(frame) < 3000 else wavy(frame)  # noqa: E731
    explainer = ONBMACF(strategy="paper").fit(table, wavy)
    box = replace(explainer.fitted_.black_box, model=never)
    explainer.fitted_ = replace(explainer.fitted_, black_box=box)
    assert explainer.explain(rows.head(3)).n_questions > 3 * 384
