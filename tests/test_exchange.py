"""Exchanges: nearer, accepted, allowed, the same asked ahead or not, and as near as a plain search over all of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onbmacf._search import exchange
from onbmacf._search.exchange import FEWER, PARTS, exchanged
from onbmacf._search.problem import Asking, Features

COLUMNS = np.arange(4)
FEATURES = Features(COLUMNS, COLUMNS, np.array([False, False, False, True]))
ENDS = (np.zeros(4), np.ones(4))


def unchanged(points, z, goal):
    return points


def rounded(points, z, goal):
    return np.where(points == z, z, np.round(points, 2))


def plane(weights, bias):
    """Return how points ask: above a plane they are accepted; also the points asked about."""
    asked = []

    def holds(points, lines):
        asked.append(points)
        return points @ weights > bias

    return Asking(holds, lambda points, lines: None, 0), asked


def distance(start, point):
    return np.abs(point - start).sum(axis=1)


def can_shrink(start, point, holds):
    """Say whether one change can be given up for nothing: then the search would not have stopped there."""
    less = [np.where(at == COLUMNS, start + kept * (point - start), point) for at in range(3) for kept in exchange.KEPT]
    return any(holds(one[np.newaxis], None)[0] for one in less if (one != point).any())


def plain_best(start, point, holds):
    """Return the most that any exchange gains that holds, of those in whole parts: every one is tried.

    A gain is distance, and what one change less is worth.
    """
    trades = []
    for given_up in np.flatnonzero(point != start):
        for kept in exchange.KEPT:
            base = point.copy()
            base[given_up] = start[given_up] + kept * (point - start)[given_up]
            saved = np.abs(point - start).sum() - np.abs(base - start).sum()
            for column in set(range(3)) - {given_up}:
                is_fewer = kept == 0 and base[column] != start[column]
                worth = FEWER * np.abs(point - start).sum() * is_fewer
                trades += [(base, column, way, saved + worth) for way in (1, -1) if way * (base - start)[column] >= 0]
    trades = [(base, column, way, saved) for base, column, way, saved in trades if room_of(base[column], way) > 0]
    unit, best = max([saved for *_, saved in trades], default=0.0) / PARTS, 0.0
    for base, column, way, saved in trades:
        for part in range(1, PARTS):
            moved = base.copy()
            moved[column] += way * min(max(saved - part * unit, 0), room_of(base[column], way))
            if saved > part * unit and holds(moved[np.newaxis], None)[0]:
                best = max(best, part * unit)
    return best


def room_of(value, way):
    return 1 - value if way > 0 else value


@st.composite
def planes(draw):
    weights = np.array([draw(st.integers(-8, 8)) / 4 for _ in range(3)] + [1.0])
    start, point = (np.array([draw(st.integers(0, 20)) / 20 for _ in range(3)] + [0.5]) for _ in range(2))
    low, high = sorted([start @ weights, point @ weights])
    return weights, (low + high) / 2 + 1e-4, start, point


@settings(deadline=None, max_examples=150)
@given(planes())
def test_no_exchange_gains_more_than_the_one_that_is_taken(case):
    weights, bias, start, point = case
    asking, _ = plane(weights, bias)
    if point @ weights <= bias or (point == start).all() or can_shrink(start, point, asking.holds):
        return
    new = exchanged(start[np.newaxis], point[np.newaxis], ENDS, FEATURES, asking, unchanged)[0]
    far, n_fewer = np.abs(point - start).sum(), int((point != start).sum()) - int((new != start).sum())
    gain = far - np.abs(new - start).sum() + FEWER * far * max(0, n_fewer)
    assert gain >= plain_best(start, point, asking.holds) - 1e-9
    assert new @ weights > bias
    assert new[3] == start[3]


def test_a_cheaper_feature_takes_the_place_of_a_dear_one():
    asking, _ = plane(np.array([1.0, 4.0, 0.0, 0.0]), 0.8)
    start, point = np.zeros((1, 4)), np.array([[0.9, 0.0, 0.0, 0.0]])
    new = exchanged(start, point, ENDS, FEATURES, asking, rounded)
    assert new[0, 0] == 0.0
    assert 0.2 < new[0, 1] <= 0.24
    assert (exchanged(start, point, (np.zeros(4), np.array([1, 0.05, 1, 1])), FEATURES, asking, rounded) == point).all()


@pytest.mark.parametrize(("slope", "n_changes"), [(0.98, 1), (0.9, 2)])
def test_a_change_is_given_up_where_another_takes_its_place_at_hardly_more_distance(slope, n_changes):
    asking, _ = plane(np.array([1.0, slope, 0.0, 0.0]), 0.5 * (1 + slope) * 0.6)
    start, point = np.zeros((1, 4)), np.array([[0.3001, 0.3001, 0.0, 0.0]])
    only = (np.zeros(4), np.array([0.3001, 1.0, 1.0, 1.0]))  # the cheaper one has no room
    new = exchanged(start, point, only, FEATURES, asking, unchanged)
    assert (new != start).sum() == n_changes
    assert distance(start, new)[0] <= (1 + FEWER) * distance(start, point)[0]
    assert (distance(start, new)[0] > distance(start, point)[0]) == (n_changes == 1)


def test_what_is_immutable_does_not_move():
    asking, _ = plane(np.array([1.0, 0.0, 0.0, 9.0]), 0.5)
    point = np.array([[0.6, 0.0, 0.0, 0.0]])
    assert (exchanged(np.zeros((1, 4)), point, ENDS, FEATURES, asking, unchanged) == point).all()


@pytest.mark.parametrize("places", [0, 40, 200, 5000])
def test_the_same_asked_ahead_or_not(places):
    rng = np.random.default_rng(3)
    weights = np.array([1.0, 2.0, -1.0, 0.3])
    start = np.column_stack([rng.random((30, 3)) / 3, np.full(30, 0.5)])
    point = np.where(rng.random((30, 4)) < 0.6, rng.random((30, 4)), start)
    point[:, 3] = start[:, 3]
    good = (point @ weights > 0.7) & (point != start).any(axis=1)
    start, point = start[good], point[good]
    plain, _ = plane(weights, 0.7)
    known = {}

    def ahead(points, lines):
        for one, line in zip(points, lines, strict=True):
            known[int(line), one.tobytes()] = bool(one @ weights > 0.7)
        assert len(points) <= places

    asking = Asking(plain.holds, ahead if places else lambda points, lines: None, places)
    together = exchanged(start, point, ENDS, FEATURES, asking, rounded)
    one_by_one = [exchanged(start[[i]], point[[i]], ENDS, FEATURES, plain, rounded)[0] for i in range(len(start))]
    np.testing.assert_array_equal(together, one_by_one)
    is_fewer = (together != start).sum(axis=1) < (point != start).sum(axis=1)
    assert (distance(start, together) <= distance(start, point) * np.where(is_fewer, 1 + FEWER, 1)).all()
    assert (distance(start, together) < distance(start, point)).any()
    assert bool(known) == (places >= 200)


def test_few_questions_after_the_first():
    weights = np.array([1.0, 1.5, 2.0, 0.0])
    asking, asked = plane(weights, 0.5)
    exchanged(np.zeros((1, 4)), np.array([[0.6, 0.0, 0.0, 0.0]]), ENDS, FEATURES, asking, unchanged)
    sizes = [len(points) for points in asked]
    assert len(sizes) <= 6
    assert sum(sizes) <= 4 * sizes[0]


@pytest.mark.parametrize("has_room", [True, False])
def test_what_comes_after_is_asked_with_the_first_exchanges_where_there_is_room(has_room):
    start, point, asked = np.zeros((1, 4)), np.array([[0.6, 0.0, 0.3, 0.0]]), []

    def ahead(points, lines, n_again=0):
        asked.append((len(points), n_again))
        return has_room

    asking = Asking(lambda points, lines: points @ np.array([1, 2, 1, 0]) > 0.85, ahead, 512)
    also = (np.full((5, 4), 0.5), np.zeros(5, dtype=np.intp), 3)
    plain = exchanged(start, point, ENDS, FEATURES, asking, unchanged)
    alone, _ = asked[0]
    asked.clear()
    np.testing.assert_array_equal(exchanged(start, point, ENDS, FEATURES, asking, unchanged, also), plain)
    assert asked[0] == (alone + 5, 3)
    assert (asked[1] == (alone, 0)) is not has_room
