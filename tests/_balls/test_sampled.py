"""A covered sample: its balls are pure among all rows, whatever the order, the copies and the parts of the table."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from _balls.test_cover import plain_cover, plain_distances
from onbmacf._balls import cover, sampled
from onbmacf._balls.groups import Groups
from onbmacf._balls.kernels import enemies_among_fast, first_balls_fast
from onbmacf._balls.metrics import METRICS

METRIC_NAMES = sorted(METRICS)
COLUMNS = ("centers", "radii", "labels", "owner", "reach")


# The plain twin: Algorithm 1 with the sample as U and every row as V.


def plain_sampled(Z, labels, sample, metric, competitors):
    reach = np.full(len(Z), np.nan)
    for row in sample:
        reach[row] = plain_distances(Z[labels != labels[row]], Z[row], metric).min()
    centers = []
    for label in np.unique(labels[sample]):
        rows = sample[labels[sample] == label]
        centers += rows[plain_cover(Z[rows], reach[rows], metric, competitors)[0]].tolist()
    owner = np.full(len(Z), -1)
    for ball, center in reversed(list(enumerate(centers))):
        apart = plain_distances(Z, Z[center], metric)
        owner[((apart < reach[center]) | (apart == 0)) & (labels == labels[center])] = ball
    return centers, owner, reach


@st.composite
def sampled_grids(draw):
    """Small grids full of ties, copies and coincident enemies, and some of their rows."""
    size, width = draw(st.integers(4, 40)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    Z = rng.integers(0, draw(st.integers(1, 5)), (size, width)) * draw(st.sampled_from([1.0, 0.1, 1 / 3]))
    labels = np.append([0, 1], rng.integers(0, draw(st.integers(2, 3)), size - 2))
    return Z, labels, rng.permutation(size)[: draw(st.integers(1, size))]


def same_cover(found, centers, owner, reach):
    np.testing.assert_array_equal(found.centers, centers)
    np.testing.assert_array_equal(found.owner, owner)
    np.testing.assert_array_equal(found.reach, reach)
    np.testing.assert_array_equal(found.radii, reach[centers])


@settings(max_examples=60)
@given(sampled_grids(), st.sampled_from(METRIC_NAMES), st.sampled_from(["uncovered", "all"]), st.booleans())
def test_it_is_algorithm_1_with_the_sample_as_u_and_every_row_as_v(grid, metric, competitors, fast):
    Z, labels, sample = grid
    with pytest.MonkeyPatch.context() as patch:
        for module in (cover, sampled):
            patch.setattr(module, "is_worth_kernels", lambda _: fast)
        found = sampled.sampled_cover(Z, labels, sample, metric, competitors)
    same_cover(found, *plain_sampled(Z, labels, sample, metric, competitors))


@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_a_larger_table_has_no_enemy_in_a_ball_either(metric):
    rng = np.random.default_rng(1)
    Z, labels = rng.random((3000, 4)), rng.integers(0, 3, 3000)
    sample = sampled.sample_of(Z, labels, 500)
    found = sampled.sampled_cover(Z, labels, sample, metric)
    same_cover(found, *plain_sampled(Z, labels, sample, metric, "uncovered"))
    for center, radius, label in zip(Z[found.centers], found.radii, found.labels, strict=True):
        assert (plain_distances(Z[labels != label], center, metric) >= radius).all()


def test_all_rows_as_the_sample_give_the_cover_of_all():
    rng = np.random.default_rng(2)
    Z, labels = rng.random((900, 3)), rng.integers(0, 2, 900)
    found, whole = sampled.sampled_cover(Z, labels, np.arange(900)), cover.build_cover(Z, labels)
    np.testing.assert_array_equal(found.centers, whole.centers)
    np.testing.assert_array_equal(found.owner, whole.owner)


@settings(max_examples=30)
@given(sampled_grids(), st.sampled_from(METRIC_NAMES), st.integers(1, 4))
def test_parts_in_any_order_give_the_same_reach_and_owners(grid, metric, n_parts):
    Z, labels, sample = grid
    points, codes, known = Z[sample], labels[sample], None
    parts = np.array_split(np.random.default_rng(0).permutation(len(Z)), n_parts)
    for part in parts:
        known = enemies_among_fast(points, codes, Z[part], labels[part], metric, known=known)
    expected = [plain_distances(Z[labels != k], z, metric).min() for z, k in zip(points, codes, strict=True)]
    np.testing.assert_array_equal(known, expected)
    np.testing.assert_array_equal(known, sampled.enemies_among(points, codes, Z, labels, metric))
    for label in np.unique(codes):
        own = codes == label
        whole = first_balls_fast(points[own], known[own], Z, metric)
        pieces = [first_balls_fast(points[own], known[own], Z[part], metric) for part in parts]
        np.testing.assert_array_equal(whole[np.concatenate(parts)], np.concatenate(pieces))


def test_the_plain_way_goes_on_from_what_is_known_too(monkeypatch):
    monkeypatch.setattr(sampled, "is_worth_kernels", lambda n_rows: False)
    rng = np.random.default_rng(4)
    Z, labels = rng.random((200, 3)), rng.integers(0, 2, 200)
    points, codes, known = Z[:40], labels[:40], None
    for part in np.array_split(np.arange(len(Z)), 5):
        known = sampled.enemies_among(points, codes, Z[part], labels[part], "manhattan", known)
    np.testing.assert_array_equal(known, sampled.enemies_among(points, codes, Z, labels, "manhattan"))


def test_levels_may_be_one_column():
    rng = np.random.default_rng(3)
    Z = np.column_stack([rng.random(1000), np.eye(4)[rng.integers(0, 4, 1000)] * 0.5])
    labels = rng.integers(0, 2, 1000)
    groups = Groups(np.array([0, 1]), np.array([1, 4]), np.array([0.0, 0.5]))
    sample = sampled.sample_of(Z, labels, 300)
    narrow, wide = (sampled.sampled_cover(Z, labels, sample, groups=of) for of in (groups, None))
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(narrow, name), getattr(wide, name))


# The sample.


@given(st.integers(0, 2**32))
def test_neither_order_nor_copies_change_what_is_in_a_sample(seed):
    rng = np.random.default_rng(seed)
    Z, labels = rng.integers(0, 20, (300, 2)) * 0.1, rng.integers(0, 2, 300)
    order = np.concatenate([rng.permutation(300), rng.integers(0, 300, 100)])
    first, second = sampled.sample_of(Z, labels, 40), sampled.sample_of(Z[order], labels[order], 40)
    np.testing.assert_array_equal(Z[first], Z[order][second])
    np.testing.assert_array_equal(labels[first], labels[order][second])
    assert len(np.unique(np.column_stack([Z, labels])[first], axis=0)) == len(first)


def test_a_label_of_few_rows_is_in_every_sample():
    rng = np.random.default_rng(4)
    labels = np.zeros(5000, dtype=np.intp)
    labels[[7, 4000]] = 1
    sample = sampled.sample_of(rng.random((5000, 3)), labels, 200)
    assert len(sample) in (200, 201, 202)
    assert {7, 4000} <= set(sample.tolist())


def test_a_sample_is_spread_as_the_rows_are():
    rng = np.random.default_rng(5)
    Z = np.floor(rng.random((40_000, 2)) * 1000)
    sample = sampled.sample_of(Z, (Z[:, 0] > 500).astype(np.intp), 4000)
    shares = np.histogram(Z[sample, 1], bins=10, range=(0, 1000))[0] / 4000
    assert np.abs(shares - 0.1).max() < 0.02
