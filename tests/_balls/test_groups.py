"""Categories held as one column each give the cover and the neighbours of one column per level, to the bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from _balls.test_cover import farthest
from onbmacf._balls.cover import build_cover
from onbmacf._balls.groups import Groups, compacted
from onbmacf._balls.kernels import NearestRows
from onbmacf._balls.kernels.grid import TOP, to_grid
from onbmacf._balls.metrics import METRICS, one_hot_height
from onbmacf._balls.neighbours import Neighbours, nearest_rows


def encoded(numbers, codes, heights):
    """Return rows whose features are, in turn, a number and a category with as many levels as it has codes."""
    parts, starts, sizes = [], [], []
    for at in range(numbers.shape[1]):
        levels = int(codes[:, at].max()) + 1
        starts += [sum(sizes), sum(sizes) + 1]
        sizes += [1, levels]
        parts += [numbers[:, [at]], np.eye(levels)[codes[:, at]] * heights[at]]
    every = np.zeros(len(sizes))
    every[1::2] = heights
    return np.hstack(parts), Groups(np.array(starts), np.array(sizes), every)


@st.composite
def tables(draw):
    """Grids full of ties, with categories of odd heights."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    rows, pairs, levels = draw(st.integers(8, 300)), draw(st.integers(1, 3)), draw(st.integers(1, 40))
    scale = draw(st.sampled_from([1.0, 0.1, 1 / 3, 1e-3]))
    heights = np.array(draw(st.lists(st.sampled_from([0.5, 0.7, 1 / 3, 1e-3, 20.0]), min_size=pairs, max_size=pairs)))
    numbers, codes = rng.integers(0, 5, (rows, pairs)) * scale, rng.integers(0, levels, (rows, pairs))
    Z, groups = encoded(numbers, codes, heights)
    labels = (rng.random(rows) < 0.5).astype(np.intp)
    labels[:2] = [0, 1]
    return Z, labels, groups


def assert_same(cover, other):
    for name in ("centers", "radii", "labels", "owner", "reach"):
        np.testing.assert_array_equal(getattr(cover, name), getattr(other, name))


@settings(max_examples=40, deadline=None)
@given(tables(), st.sampled_from(sorted(METRICS)), st.sampled_from(["uncovered", "all"]))
def test_categories_in_one_column_have_the_plain_cover(case, metric, competitors):
    Z, labels, groups = case
    plain = build_cover(Z, labels, metric, competitors, fast=False)
    assert_same(build_cover(Z, labels, metric, competitors, fast=True, groups=groups), plain)


@settings(max_examples=40, deadline=None)
@given(tables(), st.integers(0, 10**6))
def test_categories_in_one_column_have_the_plain_neighbours(case, seed):
    Z, _, groups = case
    rng = np.random.default_rng(seed)
    points = Z[rng.integers(0, len(Z), 20)]
    points[:, groups.starts[0]] += rng.normal(size=20)
    np.testing.assert_array_equal(NearestRows(Z, groups).rows(points, 5), nearest_rows(Z, points, 5))


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_a_category_of_many_levels_has_the_plain_cover(metric):
    rng = np.random.default_rng(0)
    numbers, codes = rng.random((900, 2)), np.column_stack([rng.integers(0, 300, 900), rng.integers(0, 3, 900)])
    Z, groups = encoded(numbers, codes, np.full(2, one_hot_height(metric)))
    labels = (numbers[:, 0] + codes[:, 0] / 300 > 1).astype(np.intp)
    for threads in (1, 2):
        fast = build_cover(Z, labels, metric, fast=True, threads=threads, groups=groups)
        assert_same(fast, build_cover(Z, labels, metric, fast=False))


def test_a_point_between_two_levels_is_looked_up_in_all_columns():
    rng = np.random.default_rng(1)
    Z, groups = encoded(rng.random((50, 1)), rng.integers(0, 6, (50, 1)), np.ones(1))
    points = (Z[:10] + Z[10:20]) / 2
    assert compacted(points, groups) is None
    np.testing.assert_array_equal(NearestRows(Z, groups).rows(points, 5), nearest_rows(Z, points, 5))


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_coarse_sums_of_categories_never_exceed_the_largest(metric):
    Z, groups = encoded(np.zeros((2, 40)), np.tile([[0], [1]], (1, 40)), np.linspace(0.3, 0.9, 40))
    assert 0.9 * TOP < farthest(to_grid(Z, metric, groups)) <= TOP


def test_neighbours_of_points_between_two_levels_are_found_the_plain_way():
    rng = np.random.default_rng(0)
    Z, groups = encoded(rng.integers(0, 5, (60, 2)) / 4, rng.integers(0, 3, (60, 2)), np.array([1.0, 1.0]))
    labels, points = rng.integers(0, 2, 60), np.vstack([Z[:20], (Z[:20] + Z[20:40]) / 2])
    for own in (points[:20], points):
        share = Neighbours(Z, labels, np.ones(Z.shape[1]), 5, groups).share(own, np.ones(len(own), dtype=np.intp))
        np.testing.assert_array_equal(share, (labels[nearest_rows(Z, own, 5)] == 1).mean(axis=1))
