"""The index of the balls, and the full list: the same home, the same nearest opposing balls in the same order."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from onbmacf import ONBMACF
from onbmacf._balls import cover, neighbours, recover
from onbmacf._balls.associate import home_balls
from onbmacf._balls.distance import distances
from onbmacf._balls.geometry import Balls
from onbmacf._balls.kernels import NearestBalls, reach_of_fast
from onbmacf._balls.metrics import METRICS
from onbmacf._balls.recover import reach_of

METRIC_NAMES = sorted(METRICS)


def plain_nearest(balls, z, wanted, base, k, metric):
    """All bounds, sorted: by bound, ties to the lower ball."""
    bounds = (distances(z, balls.points, metric) - balls.radii - base[:, np.newaxis]) / 2
    lines = []
    for bound, labels in zip(bounds, wanted, strict=True):
        order = [ball for ball in np.argsort(bound, kind="stable") if labels[balls.labels[ball]]][:k]
        lines.append([(int(ball), bound[ball]) for ball in order])
    return lines


def fast_nearest(index, z, wanted, base, k, threads=None):
    found = index.nearest(z, wanted, base, k, threads)
    lines = [[(int(b), v) for b, v in zip(*line, strict=True) if b >= 0] for line in zip(*found, strict=True)]
    return [sorted(line, key=lambda pair: (pair[1], pair[0])) for line in lines]


def assert_same(balls, z, wanted, base, metric):
    index = NearestBalls(balls, metric)
    np.testing.assert_array_equal(index.home(z), home_balls(distances(z, balls.points, metric), balls.radii))
    for k in (1, 3, 40, len(balls.radii) + 1):
        assert fast_nearest(index, z, wanted, base, k) == plain_nearest(balls, z, wanted, base, k, metric)


@st.composite
def balls_and_points(draw):
    """Balls and points on small grids: full of ties, and of bounds that only rounding makes equal."""
    width, grid = draw(st.integers(1, 4)), st.sampled_from([0.0, 0.25, 0.5, 1.0, 1 / 3, 1e-17, 1e6])
    n = draw(st.integers(1, 300))
    points = draw(arrays.arrays(np.float64, (n, width), elements=grid))
    radii = draw(arrays.arrays(np.float64, n, elements=st.sampled_from([0.0, 1e-17, 0.1, 0.3, 2.0])))
    labels = draw(arrays.arrays(np.intp, n, elements=st.integers(0, 3)))
    z = draw(arrays.arrays(np.float64, (5, width), elements=grid | st.floats(-3, 3)))
    wanted = draw(arrays.arrays(np.bool_, (5, 4)))
    return Balls(points, radii, labels), z, wanted, draw(arrays.arrays(np.float64, 5, elements=st.floats(-2, 2)))


@settings(deadline=None, max_examples=150, derandomize=True)
@given(balls_and_points(), st.sampled_from(METRIC_NAMES))
def test_grids_full_of_ties_have_the_plain_order(case, metric):
    assert_same(*case, metric)


@pytest.mark.parametrize("metric", METRIC_NAMES)
@pytest.mark.parametrize("width", [2, 10, 40])
def test_random_balls_have_the_plain_order(width, metric):
    rng = np.random.default_rng(width)
    balls = Balls(rng.random((3000, width)), rng.random(3000) ** 3, rng.integers(0, 3, 3000))
    z = np.concatenate([rng.random((20, width)), balls.points[:5], rng.random((5, width)) * 100])
    wanted = rng.random((30, 3)) < 0.6
    assert_same(balls, z, wanted, rng.random(30), metric)


def test_most_balls_are_not_looked_at_where_rows_lie_in_clusters():
    rng = np.random.default_rng(0)
    points = rng.integers(0, 20, (20_000, 2)) + rng.random((20_000, 2)) * 0.1
    index = NearestBalls(Balls(points, np.full(20_000, 0.01), rng.integers(0, 2, 20_000)), "manhattan")
    z, every = points[:40] + 0.01, np.ones((40, 2), dtype=bool)
    expected = fast_nearest(index, z, every, np.zeros(40), 20)
    far = index._leaves.low.min(axis=0) > 12  # none of these is a neighbour of points up to 9
    index._leaves.radii[far] = 1e9  # a ball of theirs that is looked at is the nearest of all
    found = fast_nearest(index, z, every, np.zeros(40), 20)
    near = np.flatnonzero((z < 9).all(axis=1))
    assert far.any()
    assert len(near) > 5
    assert [found[line] for line in near] == [expected[line] for line in near]
    assert found != expected


@settings(deadline=None, max_examples=60, derandomize=True)
@given(balls_and_points(), st.sampled_from(METRIC_NAMES))
def test_the_reach_of_new_points_is_the_plain_one(case, metric):
    balls, z, *_ = case
    codes = np.arange(5) % 4
    plain = reach_of(z, codes, balls.points, balls.labels, metric)
    np.testing.assert_array_equal(reach_of_fast(z, codes, balls.points, balls.labels, metric), plain)


# Whole answers.


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
