"""Distances with missing values: a plain twin that knows them as NaN, and every kernel against it.

Between a missing value and any other lies the weight of its feature, between two missing ones nothing.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from onbmacf._balls.cover import build_cover
from onbmacf._balls.distance import distances, paired
from onbmacf._balls.groups import Groups
from onbmacf._balls.kernels import NearestRows, greedy_cover_fast, nearest_enemy_fast, reach_of_fast
from onbmacf._balls.kernels.compiled import loops
from onbmacf._balls.kernels.grid import to_grid
from onbmacf._balls.kernels.leaves import box_gaps, build_leaves
from onbmacf._balls.metrics import METRICS
from onbmacf._balls.neighbours import Neighbours, nearest_rows, squares
from onbmacf._balls.recover import reach_of
from onbmacf._base.missing import missing_code
from paper import algorithm_1

METRIC_NAMES = sorted(METRICS)


def encoded(N, weights):
    """Return numbers with NaN for missing values as they stand in Z."""
    return np.where(np.isnan(N), missing_code(np.asarray(weights)), N)


def twin(N, n, weights, metric):
    """Return the distances of rows to a row: the definition, on NaN."""
    total = np.zeros(len(N))
    for column, weight in enumerate(weights):
        lacks, other = np.isnan(N[:, column]), np.isnan(n[column])
        gap = np.where(lacks | other, np.where(lacks & other, 0.0, weight), np.abs(N[:, column] - n[column]))
        total = np.maximum(total, gap) if metric == "chebyshev" else total + (gap**2 if metric == "euclidean" else gap)
    return np.sqrt(total) if metric == "euclidean" else total


@st.composite
def tables(draw, most=60, least=2):
    """Rows on a small grid, full of ties and duplicates, some values missing, and the weight of each column."""
    width = draw(st.integers(1, 4))
    weights = draw(st.tuples(*[st.sampled_from([1.0, 0.5, 3.0, 1 / 3])] * width))
    n = draw(st.integers(least, most))
    grid = draw(arrays.arrays(np.float64, (n, width), elements=st.sampled_from([0.0, 0.25, 0.5, 1.0, 1 / 3])))
    lacks = draw(arrays.arrays(np.bool_, (n, width), elements=st.sampled_from([False, False, True])))
    labels = draw(arrays.arrays(np.intp, n, elements=st.integers(0, 2)))
    labels[0], labels[-1] = 0, 1
    return np.where(lacks, np.nan, grid * weights), np.array(weights), labels


def many(n, width, seed, share=0.2):
    """A table large enough for several leaves; one column is never missing, one nearly always."""
    random = np.random.default_rng(seed)
    N = np.round(random.random((n, width)), 2)
    shares = np.full(width, share)
    shares[0], shares[-1] = 0.0, 0.9
    N[random.random((n, width)) < shares] = np.nan
    return N, random.choice([0.5, 1.0, 2.0], width), random.integers(0, 3, n)


@settings(deadline=None, max_examples=100)
@given(tables(), st.sampled_from(METRIC_NAMES))
def test_plain_distances_are_those_of_the_definition(case, metric):
    N, weights, _ = case
    Z = encoded(N, weights)
    for line in range(min(4, len(N))):
        expected = twin(N, N[line], weights, metric)
        np.testing.assert_array_equal(distances(Z, Z[line : line + 1], metric)[:, 0], expected)
        np.testing.assert_array_equal(paired(Z, np.repeat(Z[[line]], len(Z), axis=0), metric), expected)


@settings(deadline=None, max_examples=60)
@given(tables(most=14), st.sampled_from(METRIC_NAMES), st.sampled_from(["uncovered", "all"]))
def test_the_cover_is_that_of_the_paper_given_these_distances(case, metric, competitors):
    N, weights, labels = case
    apart = [twin(N, n, weights, metric).tolist() for n in N]
    cover = build_cover(encoded(N, weights), labels, metric, competitors)
    balls = algorithm_1(apart, labels.tolist(), competitors)
    assert cover.centers.tolist() == [ball.l for ball in balls]
    np.testing.assert_allclose(cover.radii, [ball.r for ball in balls], rtol=1e-15)


@settings(deadline=None, max_examples=100)
@given(tables(), st.sampled_from(METRIC_NAMES), st.sampled_from(["uncovered", "all"]))
def test_grids_full_of_ties_have_the_plain_cover(case, metric, competitors):
    N, weights, labels = case
    assert_same_cover(encoded(N, weights), labels, metric, competitors)


@pytest.mark.parametrize("metric", METRIC_NAMES)
@pytest.mark.parametrize(("n", "width", "share"), [(700, 3, 0.2), (900, 8, 0.1), (500, 5, 0.6)])
def test_tables_have_the_plain_cover(n, width, share, metric):
    N, weights, labels = many(n, width, n, share)
    assert_same_cover(encoded(N, weights), labels, metric, "uncovered")


def assert_same_cover(Z, labels, metric, competitors):
    plain = build_cover(Z, labels, metric, competitors, fast=False)
    fast = build_cover(Z, labels, metric, competitors, fast=True)
    for name in ("centers", "radii", "labels", "owner", "reach"):
        np.testing.assert_array_equal(getattr(fast, name), getattr(plain, name), err_msg=name)


@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_categories_and_missing_numbers_have_the_plain_cover_together(metric):
    N, weights, labels = many(600, 3, 5)
    levels = np.random.default_rng(6).integers(0, 4, 600)
    height = METRICS[metric].height
    Z = np.column_stack([encoded(N, weights)[:, :2], np.eye(4)[levels] * height, encoded(N, weights)[:, 2:]])
    groups = Groups(np.array([0, 1, 2, 6]), np.array([1, 1, 4, 1]), np.array([0.0, 0.0, height, 0.0]))
    assert to_grid(Z, metric, groups).widths is not None
    reach = nearest_enemy_fast(Z, labels, metric, groups=groups)
    plain = build_cover(Z, labels, metric, fast=False)
    np.testing.assert_array_equal(reach, plain.reach)
    own = np.flatnonzero(labels == 0)
    chosen, owner = greedy_cover_fast(Z[own], reach[own], metric, groups=groups)
    np.testing.assert_array_equal(own[chosen], plain.centers[plain.labels == 0])
    np.testing.assert_array_equal(owner, plain.owner[own])


@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_boxes_bracket_their_rows(metric):
    N, weights, _ = many(1000, 4, 8, 0.3)
    grid = to_grid(encoded(N, weights), metric)
    leaves, code = build_leaves(grid, np.arange(len(N))), grid.ruler.metric
    views = loops.Views(grid, leaves)
    near, far, sums = map(views.room, ("near", "far", "sums"))
    for own in range(len(leaves.rows)):
        between = box_gaps(leaves, own, code)
        for row in leaves.rows[own][leaves.rows[own] >= 0][:20]:
            loops.box_sums(views, row)
            for leaf in range(len(leaves.rows)):
                loops.leaf_sums(views, row, leaf)
                inside = sums[leaves.rows[leaf] >= 0]
                assert between[leaf] <= near[leaf] <= inside.min()
                assert inside.max() <= far[leaf]


@settings(deadline=None, max_examples=100)
@given(tables(most=300, least=10), st.integers(0, 100))
def test_the_nearest_rows_are_the_plain_ones(case, seed):
    N, weights, labels = case
    Z, random = encoded(N, weights), np.random.default_rng(seed)
    points = random.random((6, len(weights)))
    points[random.random(points.shape) < 0.3] = np.nan
    points = encoded(points, weights)
    np.testing.assert_array_equal(NearestRows(Z).rows(points, 5), nearest_rows(Z, points, 5))
    expected = [twin(N, np.where(points[line] < -1e9, np.nan, points[line]), weights, "euclidean") for line in range(6)]
    np.testing.assert_allclose(np.sqrt(squares(points, Z)), expected, rtol=1e-15)
    share = Neighbours(Z, labels, 1 / weights, 5).share(points, np.zeros(6, dtype=np.intp))
    near = nearest_rows(Z / weights, points / weights, 5)
    np.testing.assert_allclose(share, (labels[near] == 0).mean(axis=1))


@settings(deadline=None, max_examples=60)
@given(tables(), st.sampled_from(METRIC_NAMES))
def test_the_reach_of_new_points_is_the_plain_one(case, metric):
    N, weights, labels = case
    Z, z = encoded(N[1:], weights), encoded(N[:1], weights)
    codes = np.array([labels[0] + 1])
    np.testing.assert_array_equal(
        reach_of_fast(z, codes, Z, labels[1:], metric), reach_of(z, codes, Z, labels[1:], metric)
    )


def test_a_function_of_two_points_is_given_nan():
    N, weights = np.array([[0.0, np.nan], [1.0, 0.5]]), np.ones(2)
    seen = []

    def metric(a, b):
        seen.append((a.copy(), b.copy()))
        return 1.0

    distances(encoded(N, weights), encoded(N, weights), metric)
    np.testing.assert_array_equal(seen[1][0], [0.0, np.nan])
