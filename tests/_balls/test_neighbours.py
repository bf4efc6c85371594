"""The nearest rows, fast and plain: the same rows in the same order, ties to the lower row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from amounts import examples
from onbmacf._balls import neighbours
from onbmacf._balls.groups import Groups
from onbmacf._balls.kernels import NearestRows
from onbmacf._balls.neighbours import Neighbours, Scales, is_near, nearest_rows, squares
from onbmacf._base.missing import missing_code


@examples(150, derandomize=True)
@given(st.data())
def test_fast_and_plain_agree_on_grids_full_of_ties(data):
    width = data.draw(st.integers(1, 4))
    grid = st.sampled_from([0.0, 0.25, 0.5, 1.0, 1 / 3])
    Z = data.draw(arrays.arrays(np.float64, (data.draw(st.integers(5, 300)), width), elements=grid))
    points = data.draw(arrays.arrays(np.float64, (7, width), elements=grid | st.floats(-3, 3)))
    rows = nearest_rows(Z, points, 5)
    np.testing.assert_array_equal(NearestRows(Z).rows(points, 5), rows)
    marked = [np.flatnonzero(line).tolist() for line in is_near(squares(points, Z), 5)]
    assert marked == np.sort(rows, axis=1).tolist()


@pytest.mark.parametrize("width", [1, 7, 21, 60])
@pytest.mark.parametrize("outliers", [0, 20])
def test_fast_and_plain_agree_on_random_tables(width, outliers):
    rng = np.random.default_rng(width)
    Z = rng.random((2000, width))
    Z[:, 0] = Z[:, 0].round(1)
    Z[rng.integers(0, 2000, outliers), rng.integers(0, width, outliers)] *= 1e6
    points = np.concatenate([rng.random((60, width)), Z[:40], Z[-20:] + 0.01])
    for threads in (1, 2):
        np.testing.assert_array_equal(NearestRows(Z).rows(points, 5, threads), nearest_rows(Z, points, 5))


def test_sums_that_only_a_root_would_tie_are_told_apart():
    Z = np.vstack([np.array([[0.25, 1 / 3, 1 / 3]]), np.full((6, 3), 9.0), np.array([[1 / 3, 0.25, 1 / 3]])])
    points = np.random.default_rng(0).random((400, 3)) * 1e-3
    np.testing.assert_array_equal(NearestRows(Z).rows(points, 2), nearest_rows(Z, points, 2))


def test_the_share_of_a_label_among_the_nearest():
    Z = np.array([[0.0], [1], [2], [3], [10], [11]])
    index = Neighbours(Z, np.array([0, 0, 1, 1, 1, 1]), np.ones(1), y=4)
    assert index.share(np.array([[0.0], [10.0]]), np.array([0, 1])).tolist() == [0.5, 1.0]


@pytest.mark.parametrize("compiled", [True, False])
def test_shares_are_the_plain_ones_with_and_without_compiled_kernels(compiled, monkeypatch):
    monkeypatch.setattr(neighbours, "are_compiled", lambda: compiled)
    rng = np.random.default_rng(1)
    Z, labels, points = rng.random((1001, 3)), rng.integers(0, 2, 1001), rng.random((50, 3))
    wanted = np.ones(50, dtype=np.intp)
    found = Neighbours(Z, labels, np.ones(3), 5).share(points, wanted)
    plain = (labels[nearest_rows(Z, points, 5)] == 1).mean(axis=1)
    np.testing.assert_array_equal(found, plain)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("far", [1.0, 1e150, 1e300])
def test_shares_are_those_of_exact_distances_whatever_the_size_of_numbers(far, compiled, monkeypatch):
    monkeypatch.setattr(neighbours, "are_compiled", lambda: compiled)
    rng = np.random.default_rng(3)
    Z, labels = rng.random((60, 3)) * [1.0, 1.0, far], rng.integers(0, 2, 60)
    points, wanted = np.concatenate([Z[:20] * 1.01, rng.random((5, 3))]), np.ones(25, dtype=np.intp)
    with np.errstate(over="ignore", invalid="ignore"):
        found = Neighbours(Z, labels, np.ones(3), 5).share(points, wanted)
        marked = is_near(squares(points, np.asfortranarray(Z)), 5)
    np.testing.assert_array_equal(found, (marked & (labels == 1)).sum(axis=1) / 5)


@pytest.mark.parametrize("lacks", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_shares_of_numbers_are_those_of_the_points_that_they_are_encoded_as(seed, lacks):
    """Two numbers, a category of three levels (with a fourth column where it may be missing), and ties."""
    rng = np.random.default_rng(seed)
    N = np.column_stack([rng.integers(0, 9, 200), rng.integers(0, 4, 200) / 4, rng.integers(0, 3, 200)]).astype(float)
    if lacks:
        N[rng.random(N.shape) < 0.1] = np.nan
    low, weights = np.zeros(3), np.array([2.0, 1.0, 1.0])
    span = np.array([9.0, 0.75, 1.0]) / weights
    Z = encoded(N, low, span, weights, 3 + lacks)
    to_unit = np.array([0.5, 1.0, *[1.0] * (3 + lacks)])
    groups = Groups(np.array([0, 1, 2]), np.array([1, 1, 3 + lacks]), np.array([0.0, 0.0, 1.0]))
    absent = np.append(missing_code(weights[:2]) * to_unit[:2], 3.0)
    scales = Scales(low, span, to_unit[[0, 1, 2]], np.array([0, 0, 1], dtype=np.int8), absent)
    labels, wanted = rng.integers(0, 2, 200), rng.integers(0, 2, 80)
    index = Neighbours(Z, labels, to_unit, 5, groups, scales)
    near = nearest_rows(Z * to_unit, Z[:80] * to_unit, 5)
    expected = (labels[near] == wanted[:, np.newaxis]).sum(axis=1) / 5
    np.testing.assert_array_equal(index.share_of_numbers(N[:80], wanted), expected)


def test_shares_of_numbers_that_lack_what_no_row_lacks_are_not_looked_up():
    N = np.arange(12.0).reshape(6, 2)
    scales = Scales(np.zeros(2), np.ones(2), np.ones(2), np.zeros(2, dtype=np.int8), missing_code(np.ones(2)))
    index = Neighbours(N, np.array([0, 1] * 3), np.ones(2), 5, scales=scales)
    assert index.share_of_numbers(np.array([[1.0, np.nan]]), np.array([0])) is None
    assert index.share_of_numbers(N[:1], np.array([0])).tolist() == [0.6]


def encoded(N, low, span, weights, n_columns):
    """Write the points column by column, as the encoding of a table would."""
    numbers = (N[:, :2] - low[:2]) / span[:2]
    numbers = np.where(np.isnan(N[:, :2]), missing_code(weights[:2]), numbers)
    levels = np.where(np.isnan(N[:, 2]), n_columns - 1, N[:, 2])
    return np.column_stack([numbers, *[(levels == at).astype(float) for at in range(n_columns)]])


@pytest.mark.filterwarnings("ignore:overflow")
def test_of_rows_at_no_distance_that_can_be_told_the_lowest_are_nearest():
    rng = np.random.default_rng(0)
    Z = rng.random((18, 3))
    far = np.array([[1e200, 1e200, 1e200], [1e200, 0.1, 0.2], [np.nan, 0.1, 0.2], [0.5, 0.5, 0.5]])
    assert NearestRows(Z).rows(far, 5).tolist() == nearest_rows(Z, far, 5).tolist()
