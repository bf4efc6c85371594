"""What the interfaces compute themselves: whole numbers where a table has such, and rows measured again."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from onbmacf.bench.datasets import Description, as_task
from onbmacf.bench.protocol import EstimatorModel, whole, with_noise


class Linear:
    """Label 1 where a weighted sum of the columns is above a limit."""

    def __init__(self, weights, limit):
        self.weights, self.limit = np.asarray(weights, dtype=float), limit

    def label_of(self, Z):
        return (Z @ self.weights > self.limit).astype(np.intp)


def steps(task):
    """Return the columns that hold whole values, and how many steps their range has."""
    whole_features = np.flatnonzero(task.is_whole)
    return [task.blocks[feature].start for feature in whole_features], task.space.span[whole_features]


def points_between(task, seed=0, count=40):
    """Return rows of the table, moved off their whole values."""
    random = np.random.default_rng(seed)
    Z = task.Z[:count].copy()
    columns, _ = steps(task)
    Z[:, columns] = np.clip(Z[:, columns] + random.uniform(-0.2, 0.2, (len(Z), len(columns))), 0.0, 1.0)
    return Z


def is_whole(task, Z):
    columns, counts = steps(task)
    return np.allclose(Z[:, columns] * counts, np.rint(Z[:, columns] * counts), rtol=0, atol=1e-9)


def test_whole_numbers_and_ranks_come_out_whole_and_nothing_else_moves(small_task, small_network):
    points = points_between(small_task)
    rounded = whole(small_task, small_network, points)
    columns, counts = steps(small_task)
    assert not is_whole(small_task, points)
    assert is_whole(small_task, rounded)
    assert (np.abs(rounded - points)[:, columns] * counts <= 1.0 + 1e-9).all()
    others = np.setdiff1d(np.arange(points.shape[1]), columns)
    assert np.array_equal(rounded[:, others], points[:, others])


def test_rows_of_the_table_stay_to_the_bit(small_task, small_network):
    assert np.array_equal(whole(small_task, small_network, small_task.Z), small_task.Z)


def test_what_is_whole_already_stays_to_the_bit_when_its_neighbour_is_rounded_both_ways(small_task):
    age, size = steps(small_task)[0]
    never = Linear(np.zeros(small_task.Z.shape[1]), 1.0)
    points = small_task.Z.copy()
    points[:, size] = 0.3
    assert np.array_equal(whole(small_task, never, points)[:, age], small_task.Z[:, age])


def rounded_by_the_book(task, model, point):
    """All ways to round, with loops: the nearest that has the label, else each value to its nearest."""
    columns, counts = steps(task)
    ends = [sorted({np.floor(point[c] * n), np.ceil(point[c] * n)}) for c, n in zip(columns, counts, strict=True)]
    ways = []
    for values in itertools.product(*ends):
        way = point.copy()
        way[columns] = np.array(values) / counts
        ways.append((np.abs(way - point).sum(), way))
    ways.sort(key=lambda pair: pair[0])
    return next((way for _, way in ways if model.label_of(way[np.newaxis])[0] == task.target), ways[0][1])


@pytest.mark.parametrize("seed", range(5))
def test_rounding_agrees_with_all_ways_tried_in_turn(small_task, seed):
    random = np.random.default_rng(seed)
    points = points_between(small_task, seed)
    model = Linear(random.normal(size=points.shape[1]), 0.0)
    model.limit = np.median(points @ model.weights)
    rounded = whole(small_task, model, points)
    expected = [rounded_by_the_book(small_task, model, point) for point in points]
    assert np.allclose(rounded, expected, rtol=0, atol=1e-9)


def test_the_farther_whole_value_is_taken_where_the_nearest_loses_the_label(small_task):
    size = steps(small_task)[0][1]
    point = small_task.Z[:1].copy()
    point[0, size] = 0.3  # between the ranks 0 and .5
    weights = -np.eye(point.shape[1])[size]
    assert whole(small_task, Linear(weights, -0.4), point)[0, size] == 0.0
    assert whole(small_task, Linear(weights, -0.6), point)[0, size] == 0.5


def test_no_points_no_question(small_task):
    class Silent:
        def label_of(self, Z):
            raise AssertionError("asked")

    assert whole(small_task, Silent(), small_task.Z[:0]).shape == (0, small_task.Z.shape[1])


def test_of_many_fractional_values_the_most_doubtful_are_tried():
    frame = pd.DataFrame({f"n{i}": np.arange(40) % (11 + i) for i in range(12)}).assign(y=np.arange(40) % 2)
    task = as_task("many", frame, Description("y", (1,), ("no", "yes")))
    columns, counts = steps(task)
    point = task.Z[3].copy()
    point[columns] = (3.0 + np.linspace(0.05, 0.49, 12)) / counts
    ceiling = (np.full(12, 3.0) + (np.arange(12) == 11)) / counts  # only the last value, .49, goes up
    model = Linear(np.eye(12)[11], (ceiling[11] + 3.0 / counts[11]) / 2)
    rounded = whole(task, model, point[np.newaxis])
    assert np.allclose(rounded[0, columns], ceiling)


def test_noise_moves_numbers_a_little_and_leaves_a_valid_row(small_task):
    Z = small_task.Z[:100]
    noisy = with_noise(small_task, Z, 0.02, seed=3)
    assert np.array_equal(noisy, with_noise(small_task, Z, 0.02, seed=3))
    assert not np.array_equal(noisy, with_noise(small_task, Z, 0.02, seed=4))
    assert is_whole(small_task, noisy)
    assert np.array_equal(small_task.to_rows(noisy), noisy)
    kinds = np.array([feature.kind for feature in small_task.schema.features])
    moved = [bool((noisy != Z)[:, block].any()) for block in small_task.blocks]
    expected = (kinds == "continuous") | ((kinds == "integer") & ~small_task.is_immutable)
    assert moved == expected.tolist()
    income = small_task.blocks[list(small_task.schema.names).index("income")]
    assert 0.01 < np.std(noisy[:, income] - Z[:, income]) < 0.03


def test_an_estimator_is_asked_for_its_second_probability(small_task):
    estimator = LogisticRegression().fit(small_task.Z, small_task.y)
    assert np.array_equal(EstimatorModel(estimator).label_of(small_task.Z), estimator.predict(small_task.Z))
