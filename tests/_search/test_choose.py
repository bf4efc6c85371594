"""Several answers and the dial: other features first, the first k whatever n, and a dial that never reverses."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amounts import examples, seeds
from onbmacf import ONBMACF, Schema
from onbmacf._search import choose
from onbmacf._search.kernels import rounds
from onbmacf._search.record import Record

DIALS = (0.0, 0.2, 0.5, 0.8, 1.0)


@st.composite
def scored_points(draw):
    """Points of one factual on a small grid, full of ties, with a level and missing values; and their scores."""
    width = draw(st.integers(1, 4))
    own = np.array([draw(st.sampled_from([0.0, 1.0, np.nan])) for _ in range(width)])
    lines = draw(st.lists(st.tuples(*[st.integers(0, 3)] * width), min_size=1, max_size=25))
    points = np.where(np.array(lines) == 0, own, np.array(lines, dtype=float))
    features = rounds.Features(
        np.zeros(width, dtype=np.int8), np.full(width, 0.25), np.ones(width), np.ones(width), np.zeros((width, 3)),
        np.arange(3, 3 + width, dtype=np.uint64) << 50, 1, width,
    )  # fmt: skip
    record = Record.of(own[np.newaxis], np.ones((1, width), dtype=bool), features, 40, 8)
    points = np.concatenate([own[np.newaxis], points])
    record.add(points, np.zeros(len(points), dtype=np.intp), np.ones(len(points), dtype=bool), np.array([40]))
    score = np.full((1, 40), np.inf)
    size = int(record.size[0])
    score[0, 1:size] = [draw(st.sampled_from([0.1, 0.2, 0.5, 3.0, np.inf])) for _ in range(size - 1)]
    return record, score


def sets_of(record, slots):
    own = record.factuals[0]
    differs = (record.points[0, slots] != own) & ~(np.isnan(record.points[0, slots]) & np.isnan(own))
    return [frozenset(np.flatnonzero(line).tolist()) for line in differs]


@examples(300, derandomize=True)
@given(scored_points())
def test_no_answer_holds_the_changes_of_one_before_unless_nothing_else_is_left(case):
    record, score = case
    span = np.full(record.factuals.shape[1], 0.25)
    _, slots = choose.chosen(record, score, 5, span)
    accepted = np.flatnonzero(np.isfinite(score[0]))
    assert len(slots) == len(set(slots.tolist())) == min(5, len(accepted))
    assert set(slots.tolist()) <= set(accepted.tolist())
    every, sets = sets_of(record, accepted), sets_of(record, slots)
    assert not len(accepted) or score[0, slots[0]] == score[0].min()
    for k in range(1, len(slots)):
        free = [own for own, slot in zip(every, accepted, strict=True) if slot not in slots[:k]]
        is_new = [all(not before <= own for before in sets[:k]) for own in free]
        if any(is_new):
            assert all(not before <= sets[k] for before in sets[:k])
        elif any(all(not before < own for before in sets[:k]) for own in free):
            assert all(not before < sets[k] for before in sets[:k])


@examples(150, derandomize=True)
@given(scored_points())
def test_the_first_k_choices_do_not_depend_on_n(case):
    record, score = case
    span = np.full(record.factuals.shape[1], 0.25)
    chosen = [choose.chosen(record, score.copy(), n, span)[1].tolist() for n in range(1, 7)]
    for fewer, more in pairwise(chosen):
        assert more[: len(fewer)] == fewer


def table_of(seed, n=120):
    """Return a small table full of ties, and a model of it that is not monotone and sees no order in `level`."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({name: rng.integers(0, 12, n) * 0.5 for name in "abc"}).assign(level=rng.choice([*"xyz"], n))
    weights, wave = rng.normal(size=3), rng.uniform(0.5, 2)

    def model(rows):
        total = rows[["a", "b", "c"]].to_numpy(dtype=float) @ weights + wave * np.sin(
            2 * rows["a"].to_numpy(dtype=float)
        )
        return (total + (rows["level"] == "y").to_numpy() > middle).astype(int)

    middle = -np.inf
    numbers = table[["a", "b", "c"]].to_numpy() @ weights + wave * np.sin(2 * table["a"]) + (table["level"] == "y")
    middle = np.median(numbers)
    return table, model


@pytest.mark.parametrize("seed", seeds(8))
def test_the_first_k_of_more_answers_are_the_first_k(seed):
    table, model = table_of(seed)
    explainer = ONBMACF().fit(table, model)
    frames = [explainer.with_options(n_counterfactuals=n).explain(table.head(12)).to_frame() for n in (1, 2, 5)]
    for fewer, more in pairwise(frames):
        pd.testing.assert_frame_equal(more[more["rank"] <= fewer["rank"].max()], fewer)


@pytest.mark.parametrize("seed", seeds(8))
def test_five_answers_change_other_features_first(seed):
    table, model = table_of(seed)
    answers = ONBMACF(5, plausibility=0).fit(table, model).explain(table.head(15))
    n_new = 0
    for answer in answers:
        sets = [frozenset(found.changed) for found in answer.counterfactuals]
        is_new = [all(not before <= own for before in sets[:k]) for k, own in enumerate(sets)]
        assert is_new == sorted(is_new, reverse=True)  # once nothing else is left, nothing else is found
        n_new += sum(is_new)
        assert len({tuple(found.values) for found in answer.counterfactuals}) == len(sets)
    assert n_new > 1.5 * len(answers)


def turned(seed):
    """Return plausibility and cost of the answers of some rows, a line per place of the dial."""
    table, model = table_of(seed)
    fixed = Schema.infer(table, immutable=["level"] if seed % 2 else [])
    explainer = ONBMACF().fit(table, model, schema=fixed)
    frames = [explainer.with_options(plausibility=dial).explain(table.head(20)).to_frame() for dial in DIALS]
    share = np.array([frame["plausibility"].to_numpy() for frame in frames])
    cost = np.array([(frame["distance"] + choose.SPARSITY * frame["n_changes"]).to_numpy() for frame in frames])
    return share, cost


@pytest.mark.parametrize("seed", seeds(12))
def test_more_of_the_dial_is_never_less_plausible_and_below_1_never_nearer(seed):
    share, cost = turned(seed)
    assert (np.diff(share, axis=0) >= -1e-9).all()
    assert (np.diff(cost[:-1], axis=0) >= -1e-9).all()
    assert share[-1].mean() > share[0].mean()


# Few allowed combinations: every one is asked about, and the dial at 1 keeps its word all the same.


def mammographic(seed):
    """Return a table like `mammographic`: scores of few values, age in steps, and labels that overlap."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "birads": rng.integers(2, 6, 300),
            "age": rng.integers(4, 14, 300) * 5,
            "shape": rng.choice(["round", "oval", "lobular", "irregular"], 300),
            "density": rng.integers(1, 4, 300),
        }
    )
    rank = table["birads"] * 1.5 + table["age"] / 20 + 2 * (table["shape"] == "irregular")
    noise = np.random.default_rng(seed + 100).normal(0, 1.0, (4, 10, 4, 3))

    def model(rows):
        shapes = rows["shape"].map({"round": 0, "oval": 1, "lobular": 2, "irregular": 3}).to_numpy(dtype=int)
        birads, age, density = (rows[name].to_numpy(dtype=float) for name in ("birads", "age", "density"))
        own = birads * 1.5 + age / 20 + 2 * (shapes == 3)
        at = (birads - 2).clip(0, 3).astype(int), (age / 5 - 4).clip(0, 9).astype(int), shapes
        return (own + noise[(*at, (density - 1).clip(0, 2).astype(int))] > rank.median()).astype(int)

    return table, model


@pytest.mark.parametrize("target", [0, 1])
@pytest.mark.parametrize("seed", seeds(3))
def test_of_few_combinations_the_answer_has_all_neighbours_where_a_reachable_fitted_row_has(seed, target):
    table, model = mammographic(seed)
    schema = Schema.infer(table, immutable=["age", "density"])  # 4 x 4 combinations of the others
    explainer = ONBMACF(plausibility=1).fit(table, model, schema=schema)
    fitted = explainer.fitted_
    full = (fitted.labels == target) & (fitted.neighbours.share(fitted.Z, fitted.labels) == 1.0)
    rows = table[fitted.labels != target].head(60)
    held = table.loc[full, ["age", "density"]].apply(tuple, axis=1)
    reachable = rows[["age", "density"]].apply(tuple, axis=1).isin(set(held)).to_numpy()
    assert reachable.sum() > 3
    answers = explainer.explain(rows, target=target)
    share = np.array([answer.counterfactuals[0].plausibility if answer.counterfactuals else 0.0 for answer in answers])
    assert (share[reachable] == 1.0).all()
