"""Regions in positions on a grid: whatever the holes of a step function, no asked point in what is printed failed."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from amounts import examples
from onbmacf._explain.ranges import MOST_CORNERS, Interval, Levels, contains, settle

N = 64


class Oracle:
    """Says which points hold, and remembers what it was asked."""

    def __init__(self, fails):
        self.fails, self.asked = fails, []

    def __call__(self, at, points):
        self.asked += [(place, own) for place, own in zip(at, points, strict=True)]
        return [~self.fails(own) for own in points]

    def of(self, place):
        return np.concatenate([own for at, own in self.asked if at == place])


def interval(answer, low, high, is_whole=False, marks=()):
    return Interval.within(answer, low, high, is_whole, np.array(marks, dtype=float))


def settled(region, fails, first=None, n=N, seed=1):
    """Return the settled region and the oracle."""
    oracle = Oracle(fails)
    first = np.empty((0, len(region))) if first is None else np.array(first, dtype=float)
    return settle([region], [seed], [first], oracle, n)[0], oracle


def in_holes(holes):
    """Return the function that fails in closed intervals of positions."""
    return lambda points: np.any([(points[:, 0] >= a) & (points[:, 0] <= b) for a, b in holes], axis=0)


def run_around(answer, low, high, fails):
    """The plain twin: step by step from the answer until a whole position fails."""
    ends = []
    for way, last in ((-1, low), (1, high)):
        at = answer
        while at != last and not fails(np.array([[at + way]], dtype=float))[0]:
            at += way
        ends.append(at)
    return ends


@st.composite
def whole_holes(draw):
    answer = draw(st.integers(0, 60))
    starts = draw(st.lists(st.integers(0, 60).filter(lambda at: at != answer), max_size=6))
    return answer, [(at, at) for at in starts]


@given(whole_holes())
@example((0, [])).via("no hole")
@example((30, [(29, 29), (31, 31)])).via("the answer alone")
def test_few_whole_positions_give_the_widest_run(case):
    answer, holes = case
    fails = in_holes([*holes, (-9, -9)])
    found, _ = settled((interval(answer, 0, 60, is_whole=True),), fails)
    assert [found.region[0].low, found.region[0].high] == run_around(answer, 0, 60, fails)


@st.composite
def any_holes(draw):
    answer = draw(st.integers(0, 3000))
    holes = []
    for _ in range(draw(st.integers(1, 8))):
        start = draw(st.floats(0, 3000))
        width = draw(st.sampled_from([0.0, 0.3, 2.0, 50.0, 900.0]))
        holes += [] if start <= answer <= start + width else [(start, start + width)]
    marks = draw(st.lists(st.floats(0, 3000), max_size=20))
    return answer, holes or [(-9.0, -8.0)], sorted(marks)


@examples(60)
@given(any_holes())
def test_no_point_asked_in_a_range_failed(case):
    answer, holes, marks = case
    fails = in_holes(holes)
    found, oracle = settled((interval(answer, 0, 3000, marks=marks),), fails)
    part, asked = found.region[0], oracle.of(0)
    inside = asked[contains(found.region, asked)]
    assert not fails(inside).any()
    assert part.low <= answer <= part.high
    assert {part.low, part.high} <= {answer, *asked[:, 0]}, "an end was not asked"
    assert part.low == round(part.low)
    assert part.high == round(part.high)
    assert found.n_asked == 1 + len(np.unique(inside))
    assert answer not in asked
    wide = [b - a >= 2 * (part.high - part.low) / N for a, b in holes if b >= part.low and a <= part.high]
    assert not any(wide), "a hole wider than two of the drawn parts was missed"


@examples(60)
@given(any_holes(), st.integers(0, 9))
def test_a_range_is_no_smaller_than_it_must_be(case, seed):
    """Beyond each end lies a point that failed, less than one readable step away."""
    answer, holes, marks = case
    fails = in_holes(holes)
    found, oracle = settled((interval(answer, 0, 3000, marks=marks),), fails, seed=seed)
    part, failed = found.region[0], oracle.of(0)[fails(oracle.of(0))][:, 0]
    assert part.low == 0 or ((failed < part.low) & (failed >= part.low - 1)).any()
    assert part.high == 3000 or ((failed > part.high) & (failed <= part.high + 1)).any()


@st.composite
def boxes(draw):
    """Up to three features, one with levels, and boxes in which everything fails, none around the answer."""
    k = draw(st.integers(2, 3))
    answer = np.array([draw(st.integers(0, 40)) for _ in range(k - 1)] + [draw(st.integers(0, 3))], dtype=float)
    holes = []
    for _ in range(draw(st.integers(1, 4))):
        low = np.array([draw(st.integers(0, 40)) for _ in range(k - 1)] + [draw(st.integers(0, 3))], dtype=float)
        high = low + draw(st.integers(0, 15))
        if not ((low <= answer) & (answer <= high)).all():
            holes.append((low, high))
    return answer, holes


@examples(60)
@given(boxes())
def test_no_point_asked_in_a_box_failed(case):
    answer, holes = case

    def fails(points):
        inside = [((points >= low) & (points <= high)).all(axis=1) for low, high in holes]
        return np.any([np.zeros(len(points), dtype=bool), *inside], axis=0)

    region = (*(interval(at, 0, 40, is_whole=True) for at in answer[:-1]), Levels(answer[-1], np.arange(4.0)))
    found, oracle = settled(region, fails)
    asked = oracle.of(0)
    assert not fails(asked[contains(found.region, asked)]).any()
    assert contains(found.region, answer[np.newaxis])[0]
    ends = np.meshgrid(*(part.ends() for part in found.region), indexing="ij")
    corners = np.unique(np.stack([end.ravel() for end in ends], axis=1), axis=0)
    assert len(corners) <= MOST_CORNERS
    known = {tuple(point) for point in asked} | {tuple(answer)}
    assert {tuple(corner) for corner in corners} <= known, "a corner was not asked"


def test_a_box_of_a_slope_is_large_and_right():
    """x + y <= 100 holds: the largest box that keeps the answer at (20, 20) has half of the triangle."""
    region = (interval(20.0, 0, 100), interval(20.0, 0, 100))
    found, _ = settled(region, lambda points: points.sum(axis=1) > 100, n=256)
    x, y = found.region
    assert x.low == y.low == 0
    assert 95 <= x.high + y.high <= 100
    assert x.high * y.high > 1200


def test_points_given_are_asked_first():
    """A hole of one point that nothing else would find."""
    hole = 1234.56789
    fails = in_holes([(hole, hole)])
    without, _ = settled((interval(10, 0, 3000),), fails)
    assert without.region[0].high == 3000
    known, _ = settled((interval(10, 0, 3000),), fails, first=[[hole]])
    assert known.region[0].high == 1234


def test_marks_are_asked():
    hole = 777.123
    found, _ = settled((interval(10, 0, 3000, marks=[hole]),), in_holes([(hole, hole)]))
    assert found.region[0].high == 777


def test_some_of_many_marks_are_asked():
    marks = np.arange(20, 2980) + 0.123
    found, _ = settled((interval(10, 0, 3000, marks=marks),), lambda points: np.isin(points[:, 0], marks))
    assert found.region[0].high < 3000


def test_nothing_but_the_answer_holds():
    region = (interval(5.5, 0, 1e6), Levels(1.0, np.arange(3.0)))
    found, _ = settled(region, lambda points: np.ones(len(points), dtype=bool))
    assert (found.region[0].low, found.region[0].high, found.region[1].kept.tolist()) == (5.5, 5.5, [1.0])
    assert found.n_asked == 1


def test_a_model_that_always_changes_its_mind_ends_at_the_answer():
    random = np.random.default_rng(0)
    found, _ = settled((interval(500, 0, 1e9),) * 2, lambda points: random.random(len(points)) < 0.3)
    assert not contains(found.region, np.array([[0.0, 0.0]]))[0]


def test_a_region_does_not_depend_on_its_company():
    regions = [(interval(at, 0, 3000, marks=[at + 0.5]),) for at in (10, 400, 2999)]
    holes = in_holes([(100, 101), (800.2, 800.9), (2000, 2000)])
    first = [np.empty((0, 1))] * 3
    together = settle(regions, [1, 2, 3], first, Oracle(holes), N)
    for at in (2, 0, 1):
        alone = settle([regions[at]], [at + 1], [first[at]], Oracle(holes), N)[0]
        assert (alone.region[0].low, alone.region[0].high) == (
            together[at].region[0].low,
            together[at].region[0].high,
        )
        assert alone.n_asked == together[at].n_asked


def test_many_levels_have_more_corners_than_are_asked():
    region = tuple(Levels(0.0, np.arange(9.0)) for _ in range(3))
    found, oracle = settled(region, lambda points: (points == 8).all(axis=1), n=2000)
    assert found.n_asked <= 2 + len(oracle.of(0))
    assert sum(len(part.kept) for part in found.region) == 26
