"""The audit's frames against counting by hand over the single explanations."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import dose_model
from onbmacf import ONBMACF, Schema, audit
from onbmacf._base.arrays import objects
from onbmacf._table.lazy_rows import LazyRows
from onbmacf.errors import ParameterError


@pytest.fixture
def schema(mixed):
    return Schema.infer(mixed, immutable=["age", "smokes"])


@pytest.fixture
def answers(mixed, schema):
    return ONBMACF(2).fit(mixed, dose_model, schema=schema).explain(mixed)


def made_of(changed, relaxations=None, factual=None, groups=None):
    """Explanations with the given changes and nothing else of interest: features a, b, c."""
    table = pd.DataFrame({"a": [0.0, 1, 2, 3], "b": [0.0, 1, 2, 3], "c": [0.0, 1, 2, 3]})
    answers = ONBMACF().fit(table, lambda rows: (rows["a"] > 1).astype(int)).explain(table.head(1))
    n = len(changed)
    factual = np.arange(n) if factual is None else np.array(factual)
    rows = table.iloc[np.zeros(factual.max() + 1 if n else 0, dtype=int)].reset_index(drop=True)
    batch = answers.batch
    fields = {
        "factual": factual,
        "rows": LazyRows.of_frame(table.iloc[np.ones(n, dtype=int)].reset_index(drop=True)),
        "changed": np.array(changed, dtype=bool).reshape(n, 3),
        "relaxation": np.array(relaxations or ["none"] * n, dtype=object),
        "distance": np.arange(1.0, n + 1),
        "semifactual_distance": np.full(n, np.nan),
    }
    fields["semifactual_rows"] = fields["rows"]
    for name, held in batch._asdict().items():  # whatever else a batch holds, one entry per line
        fields.setdefault(name, None if held is None else np.repeat(np.asarray(held)[:1], n, axis=0))
    statuses = np.full(len(rows), "found", dtype=object)
    return replace(
        answers, rows=rows, labels=np.zeros(len(rows)), statuses=statuses, reasons=np.full(len(rows), ""),
        would_need=objects([()] * len(rows)),
        batch=batch._replace(**fields),
    )  # fmt: skip


def test_counts_and_shares_agree_with_counting_by_hand(answers, schema):
    counted = audit.changes_by_feature(answers, schema).set_index("feature")
    every = [found for answer in answers for found in answer.counterfactuals]
    for name in answers.rows.columns:
        mine = [found for found in every if name in found.changed]
        assert counted.loc[name, "count"] == len(mine)
        assert counted.loc[name, "share"] == len(mine) / len(every)
    assert counted["count"].is_monotonic_decreasing
    assert counted.loc["age", "immutable"]


def test_direction_and_median_size_are_in_original_units(answers, schema):
    counted = audit.changes_by_feature(answers, schema).set_index("feature")
    found = [f for answer in answers for f in answer.counterfactuals if "dose" in f.changed]
    steps = [f.values["dose"] - f.factual["dose"] for f in found]
    assert counted.loc["dose", "median_size"] == np.median(np.abs(steps))
    assert counted.loc["dose", "up"] == np.mean([step > 0 for step in steps])
    assert counted.loc["dose", "up"] + counted.loc["dose", "down"] == 1
    assert np.isnan(counted.loc["city", "up"])
    assert counted.loc["dose", "most_frequent"] == ""


def test_ordinal_levels_have_a_direction(mixed):
    model = lambda rows: np.where(rows["size"] == "L", "big", "small")  # noqa: E731
    schema = Schema.infer(mixed)
    small = mixed[mixed["size"] != "L"]
    answers = ONBMACF().fit(mixed, model, schema=schema).explain(small)
    for described in (schema, None):
        line = audit.changes_by_feature(answers, described).set_index("feature").loc["size"]
        assert line["count"] == len(small)
        assert line["up"] == 1.0
        assert line["most_frequent"] == "M → L"


def test_pairs_and_singles_agree_with_counting_by_hand():
    answers = made_of([[1, 1, 0], [1, 1, 0], [1, 0, 1], [0, 0, 1], [1, 0, 0]])
    together = audit.pairs(answers)
    assert together[["first", "second", "count"]].to_numpy().tolist() == [["a", "b", 2], ["a", "c", 1]]
    assert together["share"].tolist() == [0.4, 0.2]
    assert together["expected"].tolist() == pytest.approx([0.8 * 0.4, 0.8 * 0.4])
    assert together["lift"].tolist() == pytest.approx([0.4 / 0.32, 0.2 / 0.32])
    assert audit.pairs(answers, 1)["second"].tolist() == ["b"]
    alone = audit.single_changes(answers)
    assert alone[["feature", "count"]].to_numpy().tolist() == [["a", 1], ["c", 1]]
    assert alone["share_of_its_changes"].tolist() == [0.25, 0.5]
    matrix = audit.pair_matrix(answers)
    assert matrix.loc["a", "a"] == 4
    assert matrix.loc["c", "a"] == matrix.loc["a", "c"] == 1


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=12))
def test_pairs_of_any_changes(changed):
    together = audit.pairs(made_of(changed))
    expected = {
        (first, second): sum(line["abc".index(first)] and line["abc".index(second)] for line in changed)
        for first, second in combinations("abc", 2)
    }
    counts = dict(zip(zip(together["first"], together["second"], strict=True), together["count"], strict=True))
    assert counts == {pair: count for pair, count in expected.items() if count}


def test_semifactual_distances_are_those_of_the_single_answers(answers):
    frame = audit.semifactual_distances(answers)
    single = [f.semifactual.distance if f.semifactual else np.nan for a in answers for f in a.counterfactuals]
    assert frame["semifactual_distance"].tolist() == pytest.approx(single, nan_ok=True)
    share = frame["share_of_way"].dropna()
    assert ((share > 0) & (share < 1)).all()


def test_released_counts_rows_by_their_first_counterfactual():
    answers = made_of(
        [[1, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 1]],
        ["immutability", "immutability", "immutability", "none"],
        factual=[0, 0, 1, 2],
    )
    schema = Schema.infer(answers.rows, immutable=["b", "c"])
    table = audit.released(answers, schema)
    assert table.to_numpy().tolist() == [["c", 2, 3, 2 / 3], ["b", 1, 3, 1 / 3]]
    assert audit.overview(answers)["released"] == 2
    (sentence,) = [text for text in audit.findings(answers, schema) if "immutable feature changes" in text]
    assert sentence.startswith("For 2 of 3 rows")
    assert sentence.endswith("c for 2 and b for 1.")


@pytest.mark.parametrize("immutable", [["c"], []])
@pytest.mark.parametrize("release", ["nothing", "immutable"])
def test_a_feature_that_only_the_question_keeps_is_counted_where_rows_need_it(immutable, release):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 9, (80, 3)), columns=["a", "b", "c"])
    schema = Schema.infer(table, immutable=immutable)
    explainer = ONBMACF(release=release).fit(table, lambda rows: rows["a"] + rows["c"] > 6, schema=schema)
    answers = explainer.explain(table, target=True, vary=["b"])
    n_needed = int((table["a"] + table["c"] <= 6).sum())
    assert audit.overview(answers)["released"] == n_needed
    (sentence,) = [text for text in audit.findings(answers, schema) if "immutable feature changes" in text]
    counts = audit.released(answers, schema).set_index("feature")["n_rows"]
    assert counts.sum() >= n_needed
    assert f"a for {counts['a']}" in sentence


def test_the_findings_say_which_immutable_features_were_released_or_that_all_are_kept():
    answers = made_of([[0, 0, 1]] * 2, ["immutability", "none"])
    schema = Schema.infer(answers.rows, immutable=["c"])
    assert any(
        "For 1 of 2 rows (50 %), a counterfactual is found only if an immutable feature changes: c for 2." in text
        for text in audit.findings(answers, schema)
    )
    rules = audit.findings(made_of([[0, 0, 1]], ["rules"]), schema)
    assert not any("immutable" in text for text in rules)  # the rules were released, and c with them
    kept = made_of([[1, 0, 0]])
    assert "Every row with a counterfactual has one that keeps the immutable features (c)." in audit.findings(
        kept, schema
    )


def test_burden_is_the_mean_of_each_groups_first_counterfactuals(answers):
    table = audit.burden(answers, "smokes", cost={"dose": 3.0})
    for group in ("no", "yes"):
        first = [a.counterfactuals[0] for a in answers if a.factual["smokes"] == group and a.counterfactuals]
        mine = table[table["group"] == group].set_index("measure")["estimate"]
        assert mine["distance"] == pytest.approx(np.mean([f.distance for f in first]))
        assert mine["n_changes"] == np.mean([f.n_changes for f in first])
        assert mine["cost"] == np.mean([f.n_changes + 2 * ("dose" in f.changed) for f in first])
    assert (table["low"] <= table["estimate"]).all()
    assert (table["estimate"] <= table["high"]).all()


def test_the_gap_is_the_difference_of_the_burdens_and_has_an_interval(answers):
    table = audit.burden(answers, "smokes").set_index(["measure", "group"])["estimate"]
    gaps = audit.burden_gaps(answers, "smokes", least=2)
    for line in gaps.itertuples():
        assert line.gap == table[line.measure, line.group] - table[line.measure, line.other]
        assert line.low <= line.gap <= line.high
        assert line.excludes_zero == (line.low > 0 or line.high < 0) == (line.p <= 0.05)
    assert audit.burden_gaps(answers, "smokes")["p"].isna().all()  # six rows are too few to test


def test_intervals_are_the_same_for_the_same_seed_and_leave_global_state_alone(answers):
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    one = audit.burden(answers, "city", seed=5)
    pd.testing.assert_frame_equal(one, audit.burden(answers, "city", seed=5))
    assert not one.equals(audit.burden(answers, "city", seed=6))
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    random = np.random.default_rng(0)
    from onbmacf.audit.recourse import _interval, resampled_means

    hits = 0
    for trial in range(200):
        sample = random.normal(3.0, 1.0, 40)
        low, high = _interval(resampled_means([sample], 400, trial, 0)[0], 0.9)
        hits += low <= 3.0 <= high
    assert 0.82 <= hits / 200 <= 0.96


def test_drawing_in_pieces_gives_the_same_means(monkeypatch):
    from onbmacf.audit import recourse as module

    sample = np.arange(30.0)
    (whole,) = module.resampled_means([sample], 50, 3, 1)
    monkeypatch.setattr(module, "CELLS", 64)
    assert (module.resampled_means([sample], 50, 3, 1)[0] == whole).all()


def test_several_samples_are_drawn_as_each_alone():
    from onbmacf.audit.recourse import resampled_means

    random = np.random.default_rng(0)
    samples = [random.normal(size=30), np.ones(30), random.normal(size=7), random.integers(0, 3, 30) * 0.1, np.ones(1)]
    for own, drawn in zip(samples, resampled_means(samples, 50, 3, 1), strict=True):
        places = np.random.default_rng([3, 1]).integers(0, len(own), (50, len(own)))
        expected = own[places].mean(axis=1) if len(own) > 1 else np.full(50, np.nan)
        np.testing.assert_array_equal(drawn, expected)


def test_groups_by_a_series_by_bands_and_with_missing_values(answers):
    ages = audit.bands(answers.rows["age"], edges=[40, 60])
    table = audit.burden(answers, ages)
    assert table["group"].drop_duplicates().tolist() == ["below 40", "40 to below 60", "60 and above"]
    groups = pd.Series([None, "x"] * 6, index=answers.rows.index)
    assert audit.burden(answers, groups)["group"].drop_duplicates().tolist() == ["x", "(missing)"]
    assert audit.burden(answers, [1, 2] * 6)["group"].drop_duplicates().tolist() == [1, 2]


def test_a_group_of_one_row_has_no_interval(answers):
    groups = ["alone"] + ["others"] * 11
    table = audit.burden(answers, groups)
    assert table.loc[table["group"] == "alone", "low"].isna().all()
    assert not audit.burden_gaps(answers, groups)["excludes_zero"].any()


@pytest.mark.parametrize("values", [[1, 2, 3, 4, 5, 6, 7, 8], [1, 1, 1, 1, 1, 2], [0.5, 9, 9, 9]])
def test_no_band_is_empty(values):
    banded = audit.bands(values)
    assert banded.value_counts().min() > 0
    assert banded.notna().all()


@pytest.mark.parametrize(
    "call, pattern",
    [
        (lambda a: audit.burden(a, "cty"), "by names 'cty', which is not a column. Did you mean 'city'"),
        (lambda a: audit.burden(a, [1, 2]), "by has 2 values for 12 rows"),
        (lambda a: audit.burden(a, "city", cost={"dos": 1}), "cost names 'dos'.*'dose'"),
        (lambda a: audit.burden(a, "city", confidence=1), r"confidence must be in \(0, 1\), got 1"),
        (lambda a: audit.burden(a, "city", n_resamples=0), "n_resamples must be"),
        (lambda a: audit.bands([1, 1, 1]), "two different numbers"),
        (lambda a: audit.compare({}), "nothing to compare"),
        (lambda a: audit.released(a, Schema.infer(a.rows[["age", "dose"]])), "does not describe"),
    ],
)
def test_bad_arguments_are_said(answers, call, pattern):
    with pytest.raises(ParameterError, match=pattern):
        call(answers)


def test_comparison_puts_models_side_by_side(mixed, schema, answers):
    other = ONBMACF().fit(mixed, lambda rows: (rows["age"] > 40).astype(int)).explain(mixed)
    table = audit.compare({"dose": answers, "age": other}).set_index("name")
    assert table.loc["age", "found"] == len(mixed)
    assert table.loc["dose", "counterfactuals"] == len(answers.to_frame())
    shares = audit.compare_changes({"dose": answers, "age": other}).set_index("feature")
    assert list(shares.index) == list(mixed.columns)
    assert shares.loc["age", "age"] == 1.0


def test_nothing_explained_gives_empty_frames_and_one_sentence(mixed, schema):
    none = ONBMACF().fit(mixed, dose_model, schema=schema).explain(mixed.head(0))
    assert audit.changes_by_feature(none, schema)["count"].sum() == 0
    assert audit.pairs(none).empty
    assert audit.single_changes(none).empty
    assert audit.burden(none, "city").empty
    assert audit.findings(none, schema)[0].startswith("None of the 0 rows was searched")


def test_the_gap_of_two_groups_is_a_finding_when_its_interval_excludes_0():
    answers = made_of([[1, 1, 0]] * 30 + [[1, 0, 0]] * 30)
    gaps = audit.burden_gaps(answers, ["old"] * 30 + ["young"] * 30)
    texts = audit.findings(answers, Schema.infer(answers.rows), {"age": gaps})
    assert any(
        "By age: the mean number of changed features is 1 for 'young', against 2 for 'old'" in text for text in texts
    ) or any(
        "By age: the mean number of changed features is 2 for 'old', against 1 for 'young'" in text for text in texts
    )
    even = audit.burden_gaps(made_of([[1, 0, 0]] * 8), ["x", "y"] * 4)
    texts = audit.findings(answers, Schema.infer(answers.rows), {"k": even})
    assert "By k: no two groups have at least 20 rows, so no difference between groups is tested." in texts
