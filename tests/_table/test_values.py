"""What a feature may become is defined once: `explain` and `explain(prove=True)` never contradict each other."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import onbmacf._table.kernels
from amounts import IS_ALL
from onbmacf import ONBMACF, Rule, Rules, Schema
from onbmacf._balls.metrics import METRICS
from onbmacf._table.kernels import place
from onbmacf._table.values import Values, ends_of, values_of
from plain_kernels import from_source


def contradictions(explainer, rows, target):
    """Return the rows of which `explain` says something that a proof denies."""
    plain = explainer.explain(rows, target=target)
    proven = explainer.explain(rows, target=target, prove=True, prove_seconds=60)
    found = []
    for at, (one, other) in enumerate(zip(plain, proven, strict=True)):
        kind = None if other.certificate is None else other.certificate.kind
        if one.status == "infeasible" and other.status == "found":
            found.append((at, "none exists, but one is proven"))
        if one.status == "found" and kind == "infeasible":
            found.append((at, "one was found, but none is proven to exist"))
        is_nearest = one.status == "found" and kind == "nearest"
        if is_nearest and one.counterfactuals[0].distance < other.certificate.bound * (1 - 1e-9):
            found.append((at, "nearer than the nearest"))
    return found


def test_what_lies_beside_the_fitted_minimum_is_a_value_for_the_search_and_for_the_proof():
    table = pd.DataFrame({"x": np.r_[0.12577, 0.1258, np.linspace(0.13, 0.9, 300).round(4)]})
    tree = DecisionTreeClassifier().fit(table, table["x"] < 0.1258)  # true of the smallest value alone
    explainer = ONBMACF().fit(table, tree)
    row = table.iloc[[200]]
    plain = explainer.explain(row, target=True)[0]
    proven = explainer.explain(row, target=True, prove=True, prove_seconds=60)[0]
    assert (plain.status, proven.status) == ("found", "found")
    assert plain.counterfactuals[0].values["x"] == proven.counterfactuals[0].values["x"] == 0.1257


@pytest.mark.parametrize("n_levels", [3, 600])  # asked at once, and when nothing else was found
@pytest.mark.parametrize("read_model", [True, False])
def test_a_tie_that_predict_decides_is_an_answer(n_levels, read_model):
    table = pd.DataFrame({"x": np.tile([0, 1], 2 * n_levels), "y": np.repeat(np.arange(n_levels), 4)})
    odd = np.flatnonzero(table["y"] == n_levels - 1)
    label = np.ones(len(table), dtype=bool)
    label[odd[:2]] = False  # two rows of four: the tree's scores are a tie there, and it says the first label, False
    tree = DecisionTreeClassifier().fit(table, label)
    explainer = ONBMACF(plausibility=0, read_model=read_model).fit(table, tree)
    assert explainer.explain(table.head(1))[0].status == "found"


def random_problem(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 80))
    table = pd.DataFrame(
        {
            "a": rng.normal(size=n).round(int(rng.integers(1, 6))),
            "b": rng.integers(-4, 5, n),
            "c": rng.choice(list("uvw"), n),
            "d": (rng.random(n) * 10.0 ** rng.integers(-3, 4)).round(5),
        }
    ).iloc[:, : int(rng.integers(2, 5))]
    score = table["a"] + table["b"] * rng.normal() + (table.get("c") == "u") * rng.normal()
    text = [name for name in table.columns if name == "c"]
    steps = make_column_transformer((OneHotEncoder(), text), remainder="passthrough")
    tree = DecisionTreeClassifier(max_depth=int(rng.integers(2, 6)), random_state=0)
    model = make_pipeline(steps, tree).fit(table, score > score.median())
    rules = {"a": Rule(direction="up")} if rng.random() < 0.3 else {}
    if rng.random() < 0.3:
        rules["b"] = Rule(low=-2, high=int(rng.integers(0, 8)))
    immutable = ["b"] if rng.random() < 0.3 else []
    held = {name: rule for name, rule in rules.items() if name not in immutable}
    schema = Schema.infer(table, immutable=immutable, rules=Rules(held, max_changes=2 if rng.random() < 0.2 else None))
    rows = table.head(2).copy()
    if rng.random() < 0.3:
        rows["a"] += 10.0  # beyond the fitted range
    return ONBMACF(plausibility=0).fit(table, model, schema=schema), rows


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, 10))])
def test_the_search_and_the_proof_never_contradict_each_other(part):
    for seed in range(100 * part, 100 * part + (100 if IS_ALL else 20)):
        explainer, rows = random_problem(seed)
        assert not contradictions(explainer, rows, bool(seed % 2)), seed


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_is_proven_as_brute_force_says(metric):
    rng = np.random.default_rng(4)
    table = pd.DataFrame({"a": rng.integers(0, 12, 60), "b": rng.integers(0, 9, 60)})
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(table, (table["a"] * table["b"] > 30))
    explainer = ONBMACF(metric=metric).fit(table, model)
    rows = table[~model.predict(table)].head(8)
    grid = pd.DataFrame(
        [(a, b) for a in range(table["a"].max() + 1) for b in range(table["b"].max() + 1)], columns=["a", "b"]
    )
    grid = grid[(grid >= table.min()).all(axis=1) & model.predict(grid)]
    span = (table.max() - table.min()).to_numpy()
    for row, answer in zip(
        rows.to_numpy(), explainer.explain(rows, target=True, prove=True, prove_seconds=60), strict=True
    ):
        apart = np.abs(grid.to_numpy() - row) / span
        nearest = {
            "manhattan": apart.sum(axis=1),
            "euclidean": np.sqrt((apart**2).sum(axis=1)),
            "chebyshev": apart.max(axis=1),
        }
        assert answer.certificate.kind == "nearest"
        assert answer.certificate.bound == pytest.approx(nearest[metric].min(), rel=1e-9)


def test_all_values_are_readable_and_the_ends_round_outwards():
    table = pd.DataFrame({"x": np.r_[0.12577, 0.3, 0.51, 0.8881, np.linspace(0.2, 0.8, 50).round(4)]})
    space = ONBMACF().fit(table, lambda rows: (rows["x"] > 0.4).astype(int)).fitted_.space
    (low,), (high,) = ends_of(space, Rules(), np.array([[0.12577, 0.8881]]))
    unit = 10.0 ** -space.readable[0]
    assert 0.12577 - unit < low <= 0.12577
    assert 0.8881 <= high < 0.8881 + unit
    values = values_of(space, Rules(), 0, (low, high), (low, high), 1 << 20)
    np.testing.assert_array_equal(values, np.round(np.arange(round(low / unit), round(high / unit) + 1) * unit, 9))
    beyond = values_of(space, Rules(), 0, (low, high), (-1.0, 0.5), 1 << 20)
    assert beyond.min() == -1.0
    assert set(values) <= set(beyond)


def test_what_is_no_number_is_placed_at_the_factual():
    """A place between the fitted rows and one that is millions of ranges away may be none."""
    table = pd.DataFrame({"tiny": np.linspace(-1e-9, 1e-9, 20), "x": np.arange(20) % 5})
    fitted = ONBMACF().fit(table, lambda rows: rows["x"] > 2).fitted_
    values, factual = Values(fitted.space, fitted.constraints), np.array([[0.052, 1.0], [0.052, np.nan]])
    placed = values.placed(np.array([[np.nan, 3.0], [1e-9, np.nan]]), factual)
    assert placed[0].tolist() == [0.052, 3.0]
    assert np.isnan(placed[1, 1])


def rounded(N, factual, up, down, nothing):
    """Do what the kernel does, an operation at a time over all points."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.rint(N * up / down) / up * down
        return np.where((factual == N) | np.isnan(N) | (np.abs(found - factual) <= nothing), factual, found)


@pytest.mark.parametrize(
    "module", [place, from_source(onbmacf._table.kernels, "place").place], ids=["compiled", "plain"]
)
def test_a_point_is_placed_as_by_whole_columns(module):
    rng = np.random.default_rng(0)
    up, down = np.array([1.0, 10.0, 100.0, 1.0, 1.0]), np.array([1.0, 1.0, 1.0, 10.0, 1000.0])
    factual = np.repeat(rng.normal(0, 300, (40, 5)).round(1), 5, axis=0)
    N = factual + rng.normal(0, 10.0 ** rng.integers(-12, 4, factual.shape))
    some = rng.random(N.shape)
    N[some < 0.2], N[(some > 0.2) & (some < 0.3)] = np.nan, np.inf
    N = np.where((some > 0.3) & (some < 0.5), factual, np.where(some > 0.9, np.round(N) + 0.5, N))  # halves: to even
    factual[rng.random(factual.shape) < 0.1] = np.nan
    nothing, found = np.full(5, 1e-9), np.empty(N.shape)
    module.to_readable(N, factual, up, down, nothing, found)
    np.testing.assert_array_equal(found, rounded(N, factual, up, down, nothing))


@pytest.mark.parametrize("garbage", [0.0, 3.0, np.nan])
def test_of_more_values_than_can_be_combined_none_is_made_up(garbage, monkeypatch):
    """A row far from the fitted values has very many on its way: room for them is no list of them."""
    table = pd.DataFrame({"x": np.linspace(0, 3, 31).round(1), "town": list("ab") * 15 + ["a"]})
    reach = ONBMACF().fit(table, lambda rows: rows["x"].to_numpy() > 1).fitted_.reach
    real = np.empty

    def empty(shape, dtype=np.float64, **how):
        return np.full(shape, garbage) if dtype in (np.float64, float) else real(shape, dtype, **how)

    monkeypatch.setattr("onbmacf._table.values.np.empty", empty)
    assert reach.rows(np.array([1.5e6, 0.0]), 512) is None
    assert len(reach.rows(np.array([4.0, 0.0]), 512)) == 2 * 41 - 1
