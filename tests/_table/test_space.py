"""The scaled space: exact both ways on fitted rows, and rounding in original units."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from amounts import examples
from onbmacf import ONBMACF, Schema
from onbmacf._balls.distance import paired
from onbmacf._balls.groups import compacted
from onbmacf._balls.metrics import METRICS, one_hot_height
from onbmacf._base import arrays
from onbmacf._explain.fitted import groups_of
from onbmacf._table.scales import SHORTEST, Rounding
from onbmacf._table.space import FeatureSpace


def test_decode_gives_back_values_dtypes_categories_and_columns(mixed):
    space = FeatureSpace.fit(mixed)
    back = space.decode(space.encode(mixed))
    pd.testing.assert_frame_equal(back, mixed.reset_index(drop=True))


DTYPES = {
    "uint8": np.array([0, 7, 255, 254], dtype=np.uint8),
    "int8": np.array([-128, 7, 127, 126], dtype=np.int8),
    "float32": np.array([0.1, 0.2, 1e-7, 3.3], dtype=np.float32),
    "odd floats": np.array([1 / 3, np.pi, 1e-17, 2.0**0.5]),
    "money": np.array([0.01, 19.99, 1234567.89, 1e9 + 0.07]),
    "Int64": pd.array([1, 2, 3, 9], dtype="Int64"),
    "Float64": pd.array([1.1, 2.2, 3.3, 9.9], dtype="Float64"),
    "boolean": pd.array([True, False, True, True], dtype="boolean"),
    "string": pd.array(["a", "b", "c", "a"], dtype="string"),
    "object": np.array(["a", "b", "c", "a"], dtype=object),
    "unused categories": pd.Categorical(["a", "b", "c", "a"], categories=["z", "c", "b", "a"]),
    "number categories": pd.Categorical([3, 1, 2, 3]),
    "whole floats": np.array([1.0, 2.0, 3.0, 9.0]),
    "constant": np.array([4.2, 4.2, 4.2, 4.2]),
}


@pytest.mark.parametrize("values", DTYPES.values(), ids=DTYPES)
def test_every_dtype_comes_back_exactly(values):
    table = pd.DataFrame({"c": values, "free": [1, 2, 3, 4]})
    space = FeatureSpace.fit(table)
    pd.testing.assert_frame_equal(space.decode(space.encode(table)), table)


@examples(300)
@given(st.lists(st.floats(-1e12, 1e12, allow_subnormal=False), min_size=2, max_size=30))
def test_floats_of_any_size_come_back_exactly_unless_scaling_merges_them(values):
    table = pd.DataFrame({"c": values})
    assume(not 0 < max(values) - min(values) < SHORTEST)  # is refused
    space = FeatureSpace.fit(table, Schema.infer(table, kinds={"c": "continuous"}))
    Z = space.encode(table)
    if len(np.unique(Z)) == len(np.unique(values)):
        assert space.decode(Z)["c"].tolist() == values


@pytest.mark.parametrize("metric", METRICS)
def test_a_changed_category_or_binary_costs_one_under_every_metric(metric):
    table = pd.DataFrame({"k": ["a", "b", "c"], "b": ["no", "yes", "no"]})
    space = FeatureSpace.fit(table, height=one_hot_height(metric))
    a, b = (
        space.encode(pd.DataFrame({"k": ["a", "a"], "b": ["no", "no"]})),
        space.encode(pd.DataFrame({"k": ["c", "a"], "b": ["no", "yes"]})),
    )
    assert paired(a, b, metric) == pytest.approx([1, 1])


def test_an_unchanged_feature_keeps_the_factuals_own_value():
    table = pd.DataFrame({"a": [0, 10], "b": [0.0, 1.0]})
    space = FeatureSpace.fit(table, Schema.infer(table, kinds={"b": "continuous"}))
    N = np.array([[3.5, 1 / 3]])  # 3.5 in a column of whole numbers, and a value that no decimals write
    z = space.encode_numbers(N)
    moved = z.copy()
    moved[0, 0] = 0.8
    assert space.decode_numbers(z, near=(z, N)).tolist() == N.tolist()
    assert space.decode_numbers(moved, near=(z, N)).tolist() == [[8.0, 1 / 3]]


def test_rounding_is_in_original_units_and_halves_go_towards_the_goal():
    table = pd.DataFrame({"n": [0, 10], "o": pd.Categorical(["lo", "hi"], ["lo", "mid", "hi"], ordered=True)})
    space = FeatureSpace.fit(table)
    z, points = np.array([[0.0, 0.0]] * 3), np.array([[0.24, 0.2], [0.25, 0.25], [0.26, 0.75]])
    up = space.snap(points, z, goal=np.ones((3, 2)))
    assert (up * [10, 2]).tolist() == [[2, 0], [3, 1], [3, 2]]
    down = space.snap(points, z=np.ones((3, 2)), goal=np.zeros((3, 2)))
    assert (down * [10, 2]).tolist() == [[2, 0], [2, 0], [3, 1]]


def test_a_category_in_the_balance_goes_to_the_goals():
    table = pd.DataFrame({"k": ["a", "b", "c"]})
    space = FeatureSpace.fit(table, height=0.5)
    z, goal = space.encode(pd.DataFrame({"k": ["a"] * 3})), space.encode(pd.DataFrame({"k": ["c"] * 3}))
    share = np.array([[0.49], [0.5], [0.51]])
    assert space.decode(space.snap(z + share * (goal - z), z, goal))["k"].tolist() == ["a", "c", "c"]


def test_snap_leaves_alone_what_the_goal_leaves_alone():
    table = pd.DataFrame({"n": [0, 10], "m": [0, 10]})
    space = FeatureSpace.fit(table)
    z, goal = np.array([[0.333, 0.0]]), np.array([[0.333, 1.0]])
    assert space.snap(np.array([[0.333, 0.52]]), z, goal).tolist() == [[0.333, 0.5]]


@examples(200)
@given(st.lists(st.integers(-300, 290), min_size=1, max_size=5), st.integers(0, 10**6))
def test_features_are_rounded_together_as_numpy_rounds_each(decimals, seed):
    rng = np.random.default_rng(seed)
    features = rng.integers(0, len(decimals), 60)
    size = 10.0 ** np.clip(-np.array(decimals, dtype=float)[features] + rng.integers(-3, 12, 60), -290, 290)
    values = rng.normal(size=60) * size
    expected = [np.round(values[[at]], decimals[feature])[0] for at, feature in enumerate(features)]
    np.testing.assert_array_equal(Rounding.to(decimals).of(values, features), expected)


@examples(100)
@given(st.lists(st.floats(0, 1), min_size=3, max_size=40), st.lists(st.integers(0, 100), max_size=5))
def test_fitted_values_come_back_exactly_also_where_some_are_readable(odd, readable):
    table = pd.DataFrame({"c": [0.0, 1.0, 1 / 3, *odd, *(value / 100 for value in readable)]})
    space = FeatureSpace.fit(table, Schema.infer(table, kinds={"c": "continuous"}, decimals={"c": 2}))
    Z = space.encode(table)
    points = np.concatenate([Z, space.to_grid(Z, 1 - Z), (Z + Z[::-1]) / 2])
    known, codes = np.unique(table["c"].to_numpy()), np.unique(Z)
    for point, found in zip(points[:, 0], space.decode_numbers(points)[:, 0], strict=True):
        if len(known) == len(codes) and point in codes:
            assert found == known[np.searchsorted(codes, point)]
        else:
            assert abs(found - point) < 1e-9


@pytest.mark.long
def test_a_large_table_is_encoded_and_compared_in_steps_and_to_the_bit(monkeypatch):
    """Two lines at a time give what all at once give: encoded rows, one column per category, neighbours."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.random(31), "t": rng.choice(list("abcde"), 31), "u": rng.choice(list("fgh"), 31)})
    rows = table.assign(x=table["x"].where(table.index != 7, 1e300), t=table["t"].where(table.index != 20, "z"))
    rule = lambda own: (own["x"] > 0.5).astype(int)  # noqa: E731

    def everything():
        explainer = ONBMACF().fit(table, rule)
        fitted = explainer.fitted_
        points = fitted.Z + 0.1
        return [fitted.Z, compacted(fitted.Z, groups_of(fitted.space)), fitted.cover.owner, fitted.cover.radii,
                fitted.neighbours.share(points, fitted.labels), explainer.explain(rows).to_frame().to_numpy().tolist(),
                compacted(points, groups_of(fitted.space))]  # fmt: skip

    whole = everything()
    assert whole[1] is not None
    assert whole[-1] is None  # no single active level
    monkeypatch.setattr(arrays, "MOST_NUMBERS", 2 * 9)
    assert len(list(arrays.in_steps(31, 9))) == 16
    for own, expected in zip(everything(), whole, strict=True):
        np.testing.assert_array_equal(own, expected)
