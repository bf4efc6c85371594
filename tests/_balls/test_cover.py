"""The fast cover equals the plain algorithm bit for bit: reach, centers and their order, owners."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from onbmacf._balls import cover
from onbmacf._balls.kernels import greedy_cover_fast, nearest_enemy_fast
from onbmacf._balls.kernels.compiled import loops
from onbmacf._balls.kernels.grid import GROSS, TOP, code_of, to_grid
from onbmacf._balls.kernels.leaves import box_gaps, build_leaves, join_leaves
from onbmacf._balls.kernels.sums import to_limits
from onbmacf._balls.metrics import METRICS
from onbmacf._base.executor import map_chunks
from onbmacf._base.missing import missing_code

METRIC_NAMES = sorted(METRICS)
COMPETITORS = ["uncovered", "all"]
REACHES = st.floats(0, 1e300) | st.floats(0, 1e-150) | st.floats(0, 2)


# The plain twins: nothing but the definition.


def plain_distances(Z, z, metric):
    """Direct differences, columns left to right."""
    total = np.zeros(len(Z))
    for column in range(Z.shape[1]):
        gap = np.abs(Z[:, column] - z[column])
        if metric == "manhattan":
            total = total + gap
        elif metric == "euclidean":
            total = total + gap * gap
        else:
            total = np.maximum(total, gap)
    return np.sqrt(total) if metric == "euclidean" else total


def plain_reach(Z, labels, metric):
    """Line 9."""
    return np.array([plain_distances(Z[labels != k], z, metric).min() for z, k in zip(Z, labels, strict=True)])


def plain_cover(Z, reach, metric, competitors="uncovered"):
    """Lines 6-19, with every ball as a row of one boolean matrix."""
    distances = np.array([plain_distances(Z, z, metric) for z in Z])
    inside = (distances < reach[:, None]) | (distances == 0)
    owner, centers = np.full(len(Z), -1), []
    while (owner < 0).any():
        gains = inside[:, owner < 0].sum(axis=1)
        if competitors == "uncovered":
            gains[owner >= 0] = 0
        center = int(np.argmax(gains))
        owner[inside[center] & (owner < 0)] = len(centers)
        centers.append(center)
    return np.array(centers), owner


def assert_same_cover(Z, labels, metric, competitors="uncovered", threads=None):
    expected = plain_reach(Z, labels, metric)
    reach = nearest_enemy_fast(Z, labels, metric, threads=threads)
    np.testing.assert_array_equal(reach, expected)
    for label in np.unique(labels):
        rows = labels == label
        centers, owner = greedy_cover_fast(Z[rows], reach[rows], metric, competitors, threads=threads)
        plain_centers, plain_owner = plain_cover(Z[rows], expected[rows], metric, competitors)
        np.testing.assert_array_equal(centers, plain_centers)
        np.testing.assert_array_equal(owner, plain_owner)


# Whole covers.


@st.composite
def labelled_grids(draw):
    """Small integer grids full of ties, duplicates and coincident rows of different labels."""
    rows, columns, levels = draw(st.integers(2, 60)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    scale = draw(st.sampled_from([1.0, 0.1, 1 / 3, 1e-3, 1e6]))
    Z = draw(arrays.arrays(np.int64, (rows, columns), elements=st.integers(0, levels))) * scale
    labels = draw(arrays.arrays(np.intp, rows, elements=st.integers(0, draw(st.integers(1, 4)))))
    labels[:2] = [0, 1]
    return Z, labels


@settings(deadline=None, max_examples=200)
@given(labelled_grids(), st.sampled_from(METRIC_NAMES), st.sampled_from(COMPETITORS))
def test_grids_full_of_ties_have_the_plain_cover(case, metric, competitors):
    assert_same_cover(*case, metric, competitors)


def table(rows, columns, labels, seed=0, decimals=16):
    rng = np.random.default_rng(seed)
    Z = rng.random((rows, columns)).round(decimals)
    score = Z @ rng.normal(size=columns) + 0.3 * np.sin(7 * Z[:, 0])
    return Z, np.digitize(score, np.quantile(score, np.arange(1, labels) / labels)).astype(np.intp)


@pytest.mark.parametrize("metric", METRIC_NAMES)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "shape", [(900, 3, 2), (900, 10, 2), (700, 6, 3), (700, 6, 5), (500, 60, 2), (400, 4, 40)], ids=str
)
def test_tables_have_the_plain_cover(shape, metric, threads):
    assert_same_cover(*table(*shape), metric, threads=threads)


@pytest.mark.parametrize("metric", METRIC_NAMES)
@pytest.mark.parametrize("competitors", COMPETITORS)
@pytest.mark.parametrize("decimals", [0, 1, 2])
def test_tables_of_duplicates_have_the_plain_cover(decimals, competitors, metric):
    Z, labels = table(800, 5, 2, decimals=decimals)
    labels[::17] = 1 - labels[::17]  # coincident rows of both labels: zero radii
    assert_same_cover(Z, labels, metric, competitors)


def nasty(kind):
    Z, labels = table(700, 6, 2)
    rng = np.random.default_rng(1)
    if kind == "few outliers":
        Z[rng.integers(0, 700, 5), rng.integers(0, 6, 5)] = 1e6
    elif kind == "many outliers":
        Z[rng.integers(0, 700, 90), rng.integers(0, 6, 90)] *= -1e6
    elif kind == "heavy tails":
        Z = rng.standard_cauchy(Z.shape) ** 3
    elif kind == "far clusters":
        Z = Z * 1e-4 + rng.integers(0, 2, (700, 1))
    elif kind == "far from zero":
        Z = Z + 1e9
    elif kind == "constant columns":
        Z[:, 1:4] = 0.3
    elif kind == "one value":
        Z[:] = 0.3
    elif kind == "tiny":
        Z *= 1e-160
    elif kind == "huge":
        Z = (Z - 0.5) * 1e308
    elif kind == "lonely enemy":
        labels = (np.arange(700) == 350).astype(np.intp)
    return Z, labels


NASTY = ["few outliers", "many outliers", "heavy tails", "far clusters", "far from zero", "constant columns"]
NASTY += ["one value", "tiny", "huge", "lonely enemy"]


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("metric", METRIC_NAMES)
@pytest.mark.parametrize("kind", NASTY)
def test_nasty_tables_have_the_plain_cover(kind, metric):
    assert_same_cover(*nasty(kind), metric)


def test_read_only_and_fortran_tables_give_the_same():
    Z, labels = table(300, 4, 2)
    expected = nearest_enemy_fast(Z, labels)
    other = np.asfortranarray(Z)
    other.flags.writeable = False
    np.testing.assert_array_equal(nearest_enemy_fast(other, labels), expected)


# The kernels, one by one.


@pytest.mark.filterwarnings("ignore:overflow")
@settings(deadline=None)
@given(arrays.arrays(np.float64, 20, elements=REACHES), st.sampled_from(METRIC_NAMES))
def test_a_limit_is_the_largest_sum_inside_the_ball(reach, metric):
    limits = to_limits(reach, metric)
    root = np.sqrt if metric == "euclidean" else np.abs
    beyond = np.nextafter(limits, np.inf)
    assert ((root(limits) < reach) | (limits == 0)).all()
    assert ((root(beyond) >= reach) & (beyond > 0)).all()


def views_of(Z, metric):
    grid = to_grid(Z, metric)
    return loops.Views(grid, build_leaves(grid, np.arange(len(Z))))


@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_exact_sum_has_the_bits_of_the_plain_distance(metric):
    Z, _ = table(200, 17, 2)
    views = views_of(Z, metric)
    sums = np.array([loops.exact_sum(views, 0, row) for row in range(len(Z))])
    root = np.sqrt if metric == "euclidean" else np.abs
    np.testing.assert_array_equal(root(sums), plain_distances(Z, Z[0], metric))


@pytest.mark.parametrize("metric", METRIC_NAMES)
@pytest.mark.parametrize("kind", NASTY[:7])
def test_the_bracket_holds_every_limit(kind, metric):
    Z, _ = nasty(kind)
    grid = to_grid(Z, metric)
    leaves = build_leaves(grid, np.arange(len(Z)))
    views = loops.Views(grid, leaves)
    for row in range(0, len(Z), 7):
        exact = np.array([loops.exact_sum(views, row, other) for other in range(len(Z))])
        coarse = np.empty(len(Z), np.int64)
        for leaf in range(len(leaves.rows)):
            loops.leaf_sums(views, row, leaf)
            here = leaves.rows[leaf] >= 0
            coarse[leaves.rows[leaf][here]] = views.room("sums")[here]
        for limit in np.quantile(exact, [0, 0.01, 0.2, 0.9]):
            sure, maybe = loops.sure_of(views, limit), loops.maybe_of(views, limit)
            assert (coarse[exact <= limit] <= maybe).all()
            assert (exact[(coarse <= sure) & grid.tame & grid.tame[row]] <= limit).all()


def test_a_table_without_outliers_is_tame_and_binary_columns_cost_no_error():
    Z, _ = table(500, 6, 2)
    assert to_grid(Z, "manhattan").tame.all()
    assert to_grid(Z.round(), "manhattan").ruler.error < 0.1
    Z[3, 2] = 10 * GROSS
    assert np.flatnonzero(~to_grid(Z, "manhattan").tame).tolist() == [3]


def test_rare_levels_are_no_outliers():
    assert to_grid(np.tile(np.eye(40), (10, 1)), "manhattan").tame.all()


@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_boxes_bracket_their_rows_and_leaves_hold_each_row_once(metric):
    Z, _ = table(1000, 5, 2)
    grid, code = to_grid(Z, metric), code_of(metric)
    forest = [build_leaves(grid, np.arange(300)), build_leaves(grid, np.arange(300, 1000))]
    leaves = join_leaves(forest)
    assert sorted(leaves.rows[leaves.rows >= 0]) == list(range(1000))
    views = loops.Views(grid, leaves)
    near, far, to_near, to_far, sums = map(views.room, ("near", "far", "to_near", "to_far", "sums"))
    for row in range(0, 1000, 31):
        loops.box_sums(views, row)
        own, at = np.argwhere(leaves.rows == row)[0]
        between = box_gaps(leaves, own, code)
        for leaf in range(len(leaves.rows)):
            loops.rows_to_box(views, own, leaf)
            assert (to_near[at], to_far[at]) == (near[leaf], far[leaf])
            assert between[leaf] <= near[leaf]
            least = loops.leaf_sums(views, row, leaf)
            filled = sums[: leaves.live[leaf]]
            assert (near[leaf] <= filled).all()
            assert (filled <= far[leaf]).all()
            assert least == filled.min()
            assert (sums[leaves.live[leaf] :] > TOP).all()
            assert loops.count_within(views, far[leaf]) == leaves.live[leaf]


def farthest(grid):
    """Return the coarse sum between the two rows of a grid."""
    views = loops.Views(grid, build_leaves(grid, np.arange(2)))
    loops.leaf_sums(views, 0, 0)
    return int(views.room("sums")[:2].max())


def test_coarse_sums_never_wrap_around():
    Z = np.array([[0.0] * 3, [1.0] * 3])
    for metric in METRICS:
        assert 0.9 * TOP < farthest(to_grid(Z, metric)) <= TOP


def test_chunks_cover_the_range_once_and_an_error_comes_out():
    for threads in (1, 2, None):
        seen = np.zeros(103, int)

        def work(start, stop, seen=seen):
            seen[start:stop] += 1

        map_chunks(work, 103, 10, threads)
        assert (seen == 1).all()
        with pytest.raises(ZeroDivisionError):
            map_chunks(lambda start, stop: 1 // 0, 103, 10, threads)


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
@pytest.mark.parametrize("threads", [1, 2])
def test_after_an_error_the_chunks_not_yet_begun_are_dropped(threads, error):
    begun = []

    def work(start, stop):
        begun.append(start)
        if start == 0:
            raise error
        time.sleep(0.05)  # the rest would take half a minute

    with pytest.raises(error):
        map_chunks(work, 1000, 1, threads)
    assert len(begun) < 1000


FIELDS = ("centers", "radii", "labels", "owner", "reach")


@pytest.mark.parametrize("competitors", COMPETITORS)
@pytest.mark.parametrize("metric", METRIC_NAMES)
@pytest.mark.parametrize("levels, columns", [(2, 2), (3, 3), (5, 4)])
def test_rows_that_are_copies_have_the_cover_of_each_compared(levels, columns, metric, competitors):
    """Copies of one label and of two, zeros of both signs, missing values, scattered over the table."""
    rng = np.random.default_rng(levels)
    Z = rng.integers(0, levels, (1500, columns)) / (levels - 1.0)
    labels = (Z.sum(axis=1) > columns / 2).astype(int) + (rng.random(len(Z)) < 0.02)
    Z[rng.random(len(Z)) < 0.3, 0] *= -1.0
    Z[rng.random(len(Z)) < 0.1, 1] = missing_code(1.0)
    found = cover.build_cover(Z, labels, metric, competitors)
    for fast in (True, False):
        expected = cover.build_cover(Z, labels, metric, competitors, fast=fast)
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


def test_copies_are_compared_once(monkeypatch):
    """A million equal rows took a quarter of a minute, ten million never came to an end."""
    compared = []
    line_9 = cover.line_9
    monkeypatch.setattr(cover, "line_9", lambda Z, *others: compared.append(len(Z)) or line_9(Z, *others))
    monkeypatch.setattr(cover, "greedy_cover_fast", lambda Z, *_: pytest.fail(f"{len(Z)} rows were covered"))
    Z = np.zeros((20_001, 2))
    Z[-1] = 1.0
    found = cover.build_cover(Z, (Z[:, 0] > 0.5).astype(int))
    assert compared == [2]
    assert (found.centers.tolist(), np.bincount(found.owner).tolist()) == ([0, 20_000], [20_000, 1])


def test_rows_of_one_hash_are_no_copies(monkeypatch):
    rng = np.random.default_rng(0)
    Z, labels = rng.random((400, 2)), np.arange(400) % 2
    assert cover.copies_of(Z, labels) is None
    real = np.unique
    monkeypatch.setattr(cover.np, "unique", lambda values, **how: real(values % np.uint64(7), **how))
    assert cover.copies_of(Z, labels) is None
