"""Each metric on numbers worked out by hand, or against loops that follow its definition."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from onbmacf.bench import metrics

# features: number | category with levels a, b, c | binary
BLOCKS = (slice(0, 1), slice(1, 4), slice(4, 5))
FACTUAL = np.array([[0.20, 1.0, 0.0, 0.0, 0.0]])
MOVED = np.array([[0.50, 0.0, 1.0, 0.0, 0.0]])  # number by 0.3, category a -> b


def says_one_when_number_is_large(Z):
    return (Z[:, 0] > 0.4).astype(np.intp)


def differences():
    return metrics.feature_differences(FACTUAL, MOVED, BLOCKS)


def test_a_changed_category_is_one_whatever_its_columns():
    assert differences().tolist() == [[pytest.approx(0.3), 1.0, 0.0]]


@pytest.mark.parametrize(
    ("metric", "by_hand"),
    [(metrics.l0, 2.0), (metrics.l1, 1.3), (metrics.l2, 1.09), (metrics.linf, 1.0)],
)
def test_distances_by_hand(metric, by_hand):
    assert metric(differences()) == pytest.approx([by_hand])


class Above:
    def __init__(self, limit):
        self.limit = limit

    def label_of(self, Z):
        return (Z[:, 0] > self.limit).astype(np.intp)


def test_stability_by_hand():
    points = np.concatenate([FACTUAL, MOVED])  # their first numbers are .2 and .5
    models = [Above(limit) for limit in (0.1, 0.3, 0.4, 0.6)]
    assert metrics.stability(points, models, 1).tolist() == [0.25, 0.75]
    assert metrics.stability(points, models, 0).tolist() == [0.75, 0.25]
    assert np.isnan(metrics.stability(points, [], 1)).tolist() == [True, True]


def test_a_drift_below_the_tolerance_is_no_change():
    assert metrics.l0(np.array([[1e-6, 2e-5]])).tolist() == [1.0]


@pytest.mark.parametrize(
    ("immutable", "count"), [([True, False, False], 1), ([True, True, False], 2), ([False, False, True], 0)]
)
def test_violations_count_changed_immutable_features(immutable, count):
    assert metrics.violations(differences(), np.array(immutable)).tolist() == [count]


def test_redundancy_counts_features_that_can_go_back_alone():
    found = metrics.redundancy(FACTUAL, MOVED, BLOCKS, says_one_when_number_is_large, 1)
    assert found.tolist() == [1.0]  # the category is idle, the number is not


def test_redundancy_per_column_counts_both_columns_of_the_category():
    found = metrics.redundancy_columns(FACTUAL, MOVED, says_one_when_number_is_large, 1)
    assert found.tolist() == [2.0]


def test_redundancy_per_column_counts_a_drift_that_redundancy_does_not():
    drifted = MOVED + np.array([[0, 0, 0, 0, 1e-7]])
    assert metrics.redundancy(FACTUAL, drifted, BLOCKS, says_one_when_number_is_large, 1).tolist() == [1.0]
    assert metrics.redundancy_columns(FACTUAL, drifted, says_one_when_number_is_large, 1).tolist() == [3.0]


def test_redundancy_without_any_change_asks_nothing():
    def never(Z):
        raise AssertionError("asked")

    assert metrics.redundancy(FACTUAL, FACTUAL, BLOCKS, never, 1).tolist() == [0.0]


def test_redundancy_works_for_either_target():
    back = metrics.redundancy(MOVED, FACTUAL, BLOCKS, says_one_when_number_is_large, 0)
    assert back.tolist() == [1.0]


def test_ynn_is_the_share_of_target_labels_among_the_five_nearest():
    line = np.arange(10.0)[:, np.newaxis]
    labels = np.array([0, 0, 0, 1, 1, 1, 0, 0, 0, 0])
    index = NearestNeighbors().fit(line)
    # nearest to 4.1: 4 5 3 6 2 -> 1 1 1 0 0;  nearest to 8.9: 9 8 7 6 5 -> 0 0 0 0 1
    found = metrics.ynn(np.array([[4.1], [8.9]]), index, labels, 1)
    assert found == pytest.approx([0.6, 0.2])


def test_distance_to_rows_counts_another_category_once():
    rows = np.array([[0.1, 1.0, 0.0, 0.0, 0.0], [0.5, 0.0, 0.0, 1.0, 0.0]])
    # to the first: 0.4 + 1 (a -> b); to the second: 0 + 1 (c -> b)
    assert metrics.distance_to_rows(MOVED, rows, BLOCKS) == pytest.approx([1.0])


def rows_with_ties(seed, count=60):
    """Rows of the three features on a small grid: many equal rows and equal distances."""
    random = np.random.default_rng(seed)
    rows = np.zeros((count, 5))
    rows[:, 0] = random.integers(0, 6, count) / 5
    rows[np.arange(count), 1 + random.integers(0, 3, count)] = 1.0
    rows[:, 4] = random.integers(0, 2, count)
    return rows


def apart(first, second):
    """The Manhattan distance with a changed category counting 1."""
    return abs(first[0] - second[0]) + (first[1:4].argmax() != second[1:4].argmax()) + abs(first[4] - second[4])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("neighbour", [1, 5, 100])
def test_distance_to_the_nth_row_agrees_with_sorting_all_of_them(seed, neighbour):
    rows, points = rows_with_ties(seed), rows_with_ties(seed + 10, 20)
    expected = [sorted(apart(point, row) for row in rows)[min(neighbour, len(rows)) - 1] for point in points]
    assert metrics.distance_to_rows(points, rows, BLOCKS, neighbour) == pytest.approx(expected)


def lof_by_the_book(point, rows, k):
    """The local outlier factor, straight from its definition, of a point that is not one of the rows."""

    def nearest(which, among):
        return sorted((apart(which, row), place) for place, row in enumerate(rows) if place in among)[:k]

    everyone = set(range(len(rows)))
    radius = [nearest(row, everyone - {place})[-1][0] for place, row in enumerate(rows)]

    def density(neighbours):
        return 1 / (np.mean([max(distance, radius[place]) for distance, place in neighbours]) + 1e-10)

    neighbours = nearest(point, everyone)
    theirs = [density(nearest(rows[place], everyone - {place})) for _, place in neighbours]
    return np.mean(theirs) / density(neighbours)


@pytest.mark.parametrize("count", [3, 15, 40])
def test_lof_agrees_with_its_definition(count):
    random = np.random.default_rng(count)
    rows, points = rows_with_ties(1, count), rows_with_ties(2, 10)
    rows[:, 0], points[:, 0] = random.random(count), 2 * random.random(10)  # no ties: which neighbour is k-th is clear
    expected = [lof_by_the_book(point, rows, min(20, count - 1)) for point in points]
    assert metrics.lof(points, rows, BLOCKS) == pytest.approx(expected)


def test_lof_is_about_one_inside_and_large_outside():
    line = np.linspace(0, 1, 101)[:, np.newaxis]
    inside, outside = metrics.lof(np.array([[0.503], [3.0]]), line, [slice(0, 1)])
    assert inside == pytest.approx(1.0, abs=0.05)
    assert outside > 5


def test_equal_rows_count_once_in_lof():
    rows, points = rows_with_ties(4), rows_with_ties(5, 10)
    once = metrics.lof(points, np.unique(rows, axis=0), BLOCKS)
    assert metrics.lof(points, np.repeat(rows, 30, axis=0), BLOCKS) == pytest.approx(once)
    assert once.max() < 100


def test_lof_among_fewer_than_two_rows_is_not_a_number():
    assert np.isnan(metrics.lof(MOVED, np.repeat(MOVED, 5, axis=0), BLOCKS)).tolist() == [True]


def test_lof_among_very_many_rows_takes_an_even_part_of_them(monkeypatch):
    line = np.linspace(0, 1, 400)[:, np.newaxis]
    points = np.array([[0.3], [1.5]])
    monkeypatch.setattr(metrics, "MOST_LOF_ROWS", 100)
    even = line[np.linspace(0, 399, 100).astype(int)]
    assert metrics.lof(points, line, [slice(0, 1)]) == pytest.approx(metrics.lof(points, even, [slice(0, 1)]))


def test_isolation_is_larger_outside_and_the_same_every_time():
    rows = rows_with_ties(6, 300)
    inside, outside = rows[:1], np.array([[5.0, 1.0, 1.0, 1.0, 9.0]])
    scores = metrics.isolation(np.concatenate([inside, outside]), rows)
    assert 0 < scores[0] < scores[1] < 1
    assert np.array_equal(scores, metrics.isolation(np.concatenate([inside, outside]), rows))


def test_isolation_does_not_depend_on_the_weight_of_a_column():
    rows, weights = rows_with_ties(7, 300), np.array([4.0, 0.5, 0.5, 0.5, 2.0])
    assert metrics.isolation(rows * weights, rows * weights) == pytest.approx(metrics.isolation(rows, rows))


def test_steady_is_the_same_set_of_changed_features_whatever_their_values():
    noisy = FACTUAL + np.array([[0.01, 0, 0, 0, 0]])
    farther = MOVED + np.array([[0.2, 0, 0, 0, 0]])  # the same two features, elsewhere
    other_level = np.array([[0.6, 0.0, 0.0, 1.0, 0.0]])
    only_number = np.array([[0.50, 1.0, 0.0, 0.0, 0.0]])
    number_put_back = np.array([[0.21, 0.0, 1.0, 0.0, 0.0]])  # it differs from the factual, not from the noisy one
    for after, steady in ((farther, 1.0), (other_level, 1.0), (only_number, 0.0), (number_put_back, 0.0)):
        assert metrics.steadiness(FACTUAL, MOVED, noisy, after, BLOCKS).tolist() == [steady]


def test_pairwise_distance_is_the_mean_over_pairs():
    three = np.array([[0.0, 1, 0, 0, 0], [0.5, 1, 0, 0, 0], [0.5, 0, 1, 0, 1]])
    # 0.5, 0.5 + 1 + 1, 1 + 1
    assert metrics.pairwise_distance(three, BLOCKS) == pytest.approx((0.5 + 2.5 + 2.0) / 3)


def test_distinct_changes_is_the_share_of_different_feature_sets():
    three = np.array([[0.3, 1, 0, 0, 0], [0.5, 1, 0, 0, 0], [0.5, 0, 1, 0, 0]])
    assert metrics.distinct_changes(FACTUAL[0], three, BLOCKS) == pytest.approx(2 / 3)


def test_ways_are_sets_of_needed_changes_that_touch_nothing_immutable():
    says_one = lambda Z: ((Z[:, 0] > 0.4) | (Z[:, 2] > 0)).astype(np.intp)  # noqa: E731
    number, category, both = [0.5, 1, 0, 0, 0], [0.2, 0, 1, 0, 0], [0.5, 0, 0, 1, 0]
    with_binary = [0.2, 0, 1, 0, 1]
    four = np.array([number, category, both, with_binary])  # `both` needs only its number: no way of its own
    for immutable, count in (([False] * 3, 2), ([True, False, False], 1), ([True, True, False], 0)):
        found = metrics.n_ways(FACTUAL[0], four, BLOCKS, np.array(immutable), says_one, 1)
        assert found == count


def test_diversity_of_one_is_not_a_number():
    assert np.isnan(metrics.pairwise_distance(MOVED, BLOCKS))
    assert np.isnan(metrics.distinct_changes(FACTUAL[0], MOVED, BLOCKS))
    free = np.zeros(3, dtype=bool)
    assert np.isnan(metrics.n_ways(FACTUAL[0], MOVED, BLOCKS, free, says_one_when_number_is_large, 1))
