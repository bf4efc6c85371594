"""Each pair of rows compared once, and balls counted from lists: the same cover as the plain algorithm, to the bit."""

import threading
import time
import tracemalloc
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from _balls.test_cover import (
    COMPETITORS,
    METRIC_NAMES,
    NASTY,
    REACHES,
    assert_same_cover,
    labelled_grids,
    nasty,
    plain_distances,
    plain_reach,
    table,
)
from _balls.test_groups import assert_same
from _balls.test_groups import tables as tables_with_categories
from _balls.test_missing_values import encoded, many
from onbmacf._balls import cover
from onbmacf._balls.cover import build_cover
from onbmacf._balls.kernels import enemies, greedy, nearest_enemy_fast, pairs
from onbmacf._balls.kernels.compiled import loops
from onbmacf._balls.kernels.grid import most_of, to_grid
from onbmacf._balls.kernels.leaves import build_leaves
from onbmacf._balls.kernels.sums import to_limits


@contextmanager
def by_pairs(members=3, group=2):
    """Take the way of large tables on small ones; lists are short, so that some balls have one and others none."""
    with (
        patch.object(enemies, "_reach_most_boxes", lambda *_: True),
        patch.object(greedy, "_few_in_reach_of_most", lambda *_: True),
        patch.object(pairs, "MEMBERS", members),
        patch.object(pairs, "GROUP", group),
    ):
        yield


# Whole covers.


@settings(deadline=None, max_examples=100)
@given(labelled_grids(), st.sampled_from(METRIC_NAMES), st.sampled_from(COMPETITORS), st.sampled_from([1, 3, 32]))
def test_grids_full_of_ties_have_the_plain_cover(case, metric, competitors, members):
    with by_pairs(members):
        assert_same_cover(*case, metric, competitors)


@pytest.mark.parametrize("metric", METRIC_NAMES)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(900, 3, 2), (900, 20, 2), (700, 6, 5), (500, 60, 2)], ids=str)
def test_tables_have_the_plain_cover(shape, metric, threads):
    with by_pairs(group=1):
        assert_same_cover(*table(*shape), metric, threads=threads)


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("metric", METRIC_NAMES)
@pytest.mark.parametrize("kind", NASTY)
def test_nasty_tables_have_the_plain_cover(kind, metric):
    with by_pairs(members=8):
        assert_same_cover(*nasty(kind), metric)


@pytest.mark.parametrize("metric", METRIC_NAMES)
@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
@pytest.mark.parametrize("decimals", [1, 16])
def test_any_scale_has_the_plain_cover(decimals, scale, metric):
    Z, labels = table(400, 5, 2, decimals=decimals)
    labels[::17] = 1 - labels[::17]
    with by_pairs():
        assert_same_cover(Z * scale, labels, metric, "all")


@settings(max_examples=30, deadline=None)
@given(tables_with_categories(), st.sampled_from(METRIC_NAMES), st.sampled_from(COMPETITORS))
def test_categories_have_the_plain_cover(case, metric, competitors):
    Z, labels, groups = case
    with by_pairs():
        fast = build_cover(Z, labels, metric, competitors, fast=True, groups=groups)
    assert_same(fast, build_cover(Z, labels, metric, competitors, fast=False))


@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_missing_values_have_the_plain_cover(metric):
    N, weights, labels = many(700, 4, 9, 0.2)
    with by_pairs():
        fast = build_cover(encoded(N, weights), labels, metric, fast=True)
    assert_same(fast, build_cover(encoded(N, weights), labels, metric, fast=False))


def test_lists_take_no_more_memory_than_reckoned():
    Z, labels = table(20_000, 10, 2)
    with by_pairs(members=32, group=32), patch.object(cover, "MANY_ROWS", 0):
        tracemalloc.start()
        try:
            build_cover(Z, labels, fast=True)
            taken = tracemalloc.get_traced_memory()[1] + 2 * Z.nbytes  # the table as numbers and encoded, in fit
        finally:
            tracemalloc.stop()
        assert 0.5 < taken / cover.bytes_of_cover(*Z.shape) < 1.1


# When pairs are taken.


def ways(Z, labels):
    """Return whether line 9, and the gains of the largest class, are taken by pairs."""
    taken = []
    real = enemies.enemies_by_pairs, greedy.gains_by_pairs
    with (
        patch.object(enemies, "MANY_LEAVES", 4),
        patch.object(greedy, "MANY_LEAVES", 4),
        patch.object(enemies, "enemies_by_pairs", lambda *a: (taken.append("enemies"), real[0](*a))[1]),
        patch.object(greedy, "gains_by_pairs", lambda *a: (taken.append("gains"), real[1](*a))[1]),
    ):
        build_cover(Z, labels, fast=True)
    return sorted(set(taken))


def test_many_columns_are_taken_by_pairs_and_few_by_boxes():
    labels = np.random.default_rng(0).integers(0, 2, 6000)  # small balls: no more than some of the 24 leaves are hit
    assert ways(table(6000, 20, 2)[0], labels) == ["enemies", "gains"]
    assert ways(table(6000, 2, 2)[0], labels) == []


def test_balls_of_many_rows_are_counted_by_leaves():
    Z, _ = table(2500, 20, 2)
    labels = (np.arange(2500) < 2).astype(np.intp)  # two enemies of all others
    assert ways(Z, labels) == ["enemies"]


def test_small_tables_are_never_probed():
    with patch.object(enemies, "share_reached", side_effect=AssertionError):
        nearest_enemy_fast(*table(500, 20, 2))


# The parts, one by one.


@pytest.mark.parametrize("count", [1, 2, 3, 8, 13])
@pytest.mark.parametrize("threads", [1, 3])
def test_each_pair_comes_once_and_those_at_the_same_time_share_no_number(count, threads):
    busy, seen, lock = [], [], threading.Lock()

    def work(left, right):
        with lock:
            assert not {left, right} & set(busy)
            busy.extend({left, right})
            seen.append((left, right))
        time.sleep(0.001)
        with lock:
            for number in {left, right}:
                busy.remove(number)

    pairs.each_pair(work, count, threads)
    assert sorted(seen) == [(left, right) for left in range(count) for right in range(left, count)]


@settings(deadline=None)
@given(st.lists(REACHES, min_size=1, max_size=20), st.sampled_from(METRIC_NAMES), st.sampled_from([1e-150, 1.0, 1e150]))
def test_the_limits_of_many_are_those_of_each(reach, metric, scale):
    grid, limits = to_grid(table(50, 4, 2)[0] * scale, metric), to_limits(np.array(reach), metric)
    views = loops.Views(grid, build_leaves(grid, np.arange(50)))
    assert most_of(limits, grid.ruler).tolist() == [loops.maybe_of(views, limit) for limit in limits]


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(-1, 60))
def test_any_within_is_what_its_words_say(seed, most):
    rng = np.random.default_rng(seed)
    sums, each = rng.integers(0, 2000, (2, 128)).astype(np.int16)
    each //= 60
    each[rng.integers(0, 128)] = rng.integers(0, 100)
    grid = to_grid(table(50, 4, 2)[0], "manhattan")
    views = loops.Views(grid, build_leaves(grid, np.arange(50)))
    views.room("sums")[:] = sums
    assert loops.any_within(views, most, each[np.newaxis], 0) == bool(((sums <= most) | (sums <= each)).any())


@pytest.mark.parametrize("metric", METRIC_NAMES)
@pytest.mark.parametrize("kind", NASTY[:7])
def test_lists_hold_at_least_the_rows_of_their_balls_and_gains_are_their_lengths(kind, metric):
    Z, labels = nasty(kind)
    reach = plain_reach(Z, labels, metric)
    Z, reach = Z[labels == 0], reach[labels == 0]
    grid, limits = to_grid(Z, metric), to_limits(reach, metric)
    leaves = build_leaves(grid, np.arange(len(Z)))
    with by_pairs(members=40, group=1):
        gains, members = pairs.gains_by_pairs(grid, limits, leaves, 2)
    np.testing.assert_array_equal(gains, greedy._bound_gains(grid, limits, leaves, 1))
    for row in range(0, len(Z), 5):
        listed = members[row][members[row] >= 0]
        assert len(set(listed.tolist())) == len(listed) == (gains[row] if gains[row] <= 40 else 0)
        apart = plain_distances(Z, Z[row], metric)
        if len(listed):
            assert set(np.flatnonzero((apart < reach[row]) | (apart == 0))) <= set(listed.tolist())
