"""What follows from a change, against abduction, action and prediction written out row by row."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from onbmacf import Causes, Schema
from onbmacf._table.effects import Effects
from onbmacf._table.space import FeatureSpace
from pearl import what_would_be


def bound(table, causes, **schema):
    space = FeatureSpace.fit(table, Schema.infer(table, **schema))
    N = space.form.numbers(table)
    return Effects.of(space.form, N, space.readable, causes), N


def random_graph(seed):
    """Return a table of 3 to 8 columns, its causes, and the same as a graph for the twin, fitted by other means."""
    rng = np.random.default_rng(seed)
    n_columns, n_rows = int(rng.integers(3, 9)), 60
    names = [f"c{at}" for at in rng.permutation(n_columns)]
    table, causes, graph = pd.DataFrame(index=range(n_rows)), {}, {}
    for at, name in enumerate(names):
        known = names[:at]
        some = (
            [str(cause) for cause in rng.choice(known, min(at, int(rng.integers(1, 4))), replace=False)] if at else []
        )
        noise = rng.normal(0, 1, n_rows)
        is_last_chance = at + 1 == n_columns and not causes
        if not some or (rng.random() < 0.2 and not is_last_chance):
            table[name] = noise
            continue
        weights = rng.normal(0, 1, len(some))
        kind = rng.choice(["derived", "linear", "given", "tree"])
        if kind in ("derived", "given"):

            def function(rows, some=some, weights=weights):
                return sum(weight * np.tanh(rows[cause]) for weight, cause in zip(weights, some, strict=True))

            table[name] = function(table) + (0 if kind == "derived" else noise)
            causes[name] = function if kind == "derived" else (some, function)
            graph[name] = some, function, kind == "derived"
            continue
        table[name] = table[some] @ weights + noise
        model = LinearRegression() if kind == "linear" else DecisionTreeRegressor(max_depth=3, random_state=0)
        causes[name] = some if kind == "linear" else (some, model)
        fitted = (LinearRegression() if kind == "linear" else DecisionTreeRegressor(max_depth=3, random_state=0)).fit(
            table[some].to_numpy(), table[name].to_numpy()
        )
        graph[name] = some, lambda given, f=fitted, s=some: f.predict([[given[cause] for cause in s]])[0], False
    table = table[sorted(names)]
    return table, causes, graph, rng


@pytest.mark.filterwarnings("ignore:X does not have valid feature names", "ignore:X has feature names")
@pytest.mark.parametrize("first", range(0, 200, 20))
def test_what_follows_is_what_pearl_says_on_random_graphs(first):
    n_followed = 0
    for seed in range(first, first + 20):
        table, causes, graph, rng = random_graph(seed)
        effects, N = bound(table, Causes(causes))
        actions = np.where(rng.random((10, N.shape[1])) < 0.4, rng.normal(0, 1, (10, N.shape[1])), N[:10])
        whole, is_possible = effects.unrounded().complete(actions, N[:10])
        for at in range(10):
            row = dict(zip(table.columns, N[at], strict=True))
            expected = what_would_be(row, dict(zip(table.columns, actions[at], strict=True)), graph)
            assert whole[at] == pytest.approx([*expected.values()], rel=1e-9, abs=1e-9), (seed, at)
        n_followed += int((whole != actions).sum())
        assert is_possible.all()
        again, _ = effects.unrounded().complete(whole, N[:10])
        assert np.array_equal(again, whole), "a whole row stays as it is"
    assert n_followed > 50


def body(n=200, seed=0):
    rng = np.random.default_rng(seed)
    height, weight = np.round(rng.normal(1.72, 0.1, n), 2), np.round(rng.normal(75, 12, n), 1)
    return pd.DataFrame({"height": height, "weight": weight, "bmi": np.round(weight / height**2, 1)})


def bmi(rows):
    return rows["weight"] / rows["height"] ** 2


def test_a_derived_column_has_the_decimals_of_the_table_and_is_never_chosen():
    effects, N = bound(body(), Causes({"bmi": bmi}))
    actions = N.copy()
    actions[:, 1] += 3.3
    actions[:, 2] = 20.0  # a direct change of what is computed is none
    whole, _ = effects.complete(actions, N)
    assert np.array_equal(whole[:, 2], np.round(whole[:, 1] / whole[:, 0] ** 2, 1))
    assert effects.derived.tolist() == [False, False, True]


def test_a_row_that_no_cause_of_it_changes_keeps_its_value_though_it_breaks_the_equation():
    table = body()
    table.loc[3, "bmi"] = 99.0
    effects, N = bound(table, Causes({"bmi": bmi}))
    assert effects.complete(N, N)[0][3, 2] == 99.0
    assert (
        "'bmi' is not what its function says in 1 of 200 fitted rows; at position 3, 99 is there" in effects.notes(N)[0]
    )


def test_what_an_integer_column_cannot_hold_is_impossible():
    table = pd.DataFrame({"a": np.arange(100, dtype=np.int8), "b": np.arange(100, dtype=np.int8)})
    effects, N = bound(table, Causes({"b": lambda rows: rows["a"].astype(float) * 1.0}))
    actions = N.copy()
    actions[:, 0] = np.where(N[:, 0] < 50, 120, 120)
    whole, is_possible = effects.complete(actions, N)
    assert is_possible.all()
    assert set(whole[:, 1]) == {120}
    other, _ = bound(table.assign(b=table["a"] * 1), Causes({"b": lambda rows: rows["a"].astype(float) ** 2 / 10}))
    whole, is_possible = other.complete(actions, N)
    assert not is_possible.any()
    assert np.array_equal(whole, N), "what cannot be is the row itself"


def test_a_category_may_be_a_cause_and_what_lacks_a_cause_cannot_follow():
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"city": rng.choice(["a", "b", "c"], 90), "age": rng.integers(20, 60, 90).astype(float)})
    table["rent"] = (
        100 * table["city"].map({"a": 1, "b": 2, "c": 4}) + 10 * table["age"] + rng.integers(0, 5, 90) * 10.0
    )
    table.loc[0, "age"] = np.nan
    effects, N = bound(table, Causes({"rent": ["city", "age"]}))
    actions = N.copy()
    actions[:, 0] = (N[:, 0] + 1) % 3
    whole, is_possible = effects.complete(actions, N)
    assert is_possible.tolist() == [False] + [True] * 89
    rise = {0: 100, 1: 200, 2: -300}
    for at in range(1, 90):
        assert whole[at, 2] - N[at, 2] == pytest.approx(rise[int(N[at, 0])], abs=30)


def test_an_effect_that_a_row_lacks_stays_unknown_while_its_causes_move():
    table = pd.DataFrame({"a": np.arange(60.0), "b": 2.0 * np.arange(60)})
    table.loc[:9, "b"] = np.nan
    effects, N = bound(table, Causes({"b": ["a"]}))
    whole, is_possible = effects.complete(N + np.array([[7.0, 0.0]]), N)
    assert is_possible.all()
    assert np.isnan(whole[:10, 1]).all()
    assert np.array_equal(whole[10:, 1], N[10:, 1] + 14)


def test_dates_nullable_numbers_and_decimals_may_follow():
    start = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(60) % 7, unit="D")
    days = pd.array((np.arange(60) * 7) % 11, dtype="Int64")
    table = pd.DataFrame({"start": start, "days": days, "end": start + pd.to_timedelta(days.astype(int), unit="D")})
    table["pay"] = pd.array(2 * days.astype(int) + 3, dtype="Int64")
    effects, N = bound(table, Causes({"end": lambda rows: rows["start"] + pd.to_timedelta(rows["days"], unit="D")}))
    actions = N.copy()
    actions[:, 1] = 5
    whole, is_possible = effects.complete(actions, N)
    assert is_possible.all()
    assert np.array_equal(whole[:, 2], N[:, 0] + 5)
    effects, N = bound(table, Causes({"pay": ["days"]}))
    assert np.array_equal(effects.whole(actions, N)[:, 3], np.full(60, 13.0))


def test_mechanisms_learned_do_not_depend_on_how_many_rows_are_asked_together():
    table, causes, _, rng = random_graph(11)
    effects, N = bound(table, Causes(causes))
    actions = N + (rng.random(N.shape) < 0.3) * rng.normal(0, 1, N.shape)
    together, _ = effects.unrounded().complete(actions, N)
    alone = np.concatenate([effects.unrounded().complete(actions[[at]], N[[at]])[0] for at in range(len(N))])
    assert np.array_equal(together, alone)
