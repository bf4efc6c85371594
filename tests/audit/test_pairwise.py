"""Differences between groups: figures worked by hand, and how often an audit without differences states one."""

from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF, audit
from onbmacf.audit.pairwise import (
    Shuffled,
    _counted,
    _errors_of,
    _orders,
    _squared_errors,
    _summed,
    gaps_of,
    gaps_of_families,
    largest_of,
)
from onbmacf.errors import ParameterError


def naive_statistic(values, groups):
    """The largest difference of means over its error, group by group, with no vectors."""
    spread = sum((value - sum(values) / len(values)) ** 2 for value in values) / len(values)
    best = 0.0
    for one, other in combinations(sorted(set(groups)), 2):
        means, errors = [], []
        for name in (one, other):
            own = [value for value, group in zip(values, groups, strict=True) if group == name]
            mean = sum(own) / len(own)
            within = sum((value - mean) ** 2 for value in own)
            means.append(mean)
            errors.append((within + spread) / len(own) ** 2)
        best = max(best, abs(means[0] - means[1]) / sum(errors) ** 0.5)
    return best


def test_p_is_the_share_of_all_shuffles_that_are_as_large():
    """Six values have 720 orders: p is near their share, whatever is drawn."""
    values, groups = [1.0, 2.0, 4.0, 7.0, 8.0, 9.5], ["a", "a", "b", "b", "c", "c"]
    own = naive_statistic(values, groups)
    share = np.mean([naive_statistic(order, groups) >= own - 1e-9 for order in permutations(values)])
    gaps = audit.pairwise_gaps(values, groups, least=2, n_resamples=20_000)
    assert gaps["p"].min() == pytest.approx(share, abs=0.012)


def test_zeros_and_ones_are_counted_as_they_would_be_shuffled():
    values, sizes = np.array([0.0] * 12 + [1.0] * 18), np.array([10, 14, 6])
    random, spread = np.random.default_rng(0), float(values.var())
    counted = _counted(Shuffled(values, sizes, spread), 20_000, random)
    orders = np.concatenate([order for _, order in _orders(len(values), 20_000, random)])
    shuffled = _summed(Shuffled(values, sizes, spread), orders)
    assert counted.total.mean(axis=0) == pytest.approx(shuffled.total.mean(axis=0), rel=0.02)
    assert np.cov(counted.total.T) == pytest.approx(np.cov(shuffled.total.T), rel=0.1, abs=0.05)
    assert (counted.squares == counted.total).all()


def test_errors_have_one_more_value_so_that_equal_values_are_not_taken_for_certain():
    gaps = audit.pairwise_gaps([0] * 30 + [1] * 30, ["x"] * 30 + ["y"] * 30)
    half = (gaps["high"] - gaps["low"]).iloc[0] / 2
    assert half > 0
    assert gaps["p"].iloc[0] == pytest.approx(1 / 2001)
    assert _squared_errors([np.zeros(30), np.ones(30)]) == pytest.approx([0.25 / 900] * 2)


def test_gap_ratio_and_superiority_by_hand():
    values, groups = [1, 2, 3, 2, 2, 8], ["a"] * 3 + ["b"] * 3
    line = audit.pairwise_gaps(values, groups, least=2).iloc[0]
    assert (line["mean"], line["mean_other"], line["gap"]) == (2.0, 4.0, -2.0)
    assert line["superiority"] == (0 + (0.5 + 0.5) + 2) / 9  # 1 beats none, 2 ties with both twos, 3 beats both twos


def test_a_small_group_is_shown_and_not_tested_and_the_missing_one_is_a_group():
    groups = ["a"] * 30 + ["b"] * 30 + ["c"] * 19 + [None] * 25
    gaps = audit.pairwise_gaps(np.arange(104.0), groups)
    tested = gaps[gaps["p"].notna()]
    assert {"a", "b", "(missing)"} == set(tested["group"]) | set(tested["other"])
    assert set(gaps["other"]) >= {"c"}
    assert gaps[gaps["p"].isna()]["low"].isna().all()


def test_the_clearest_come_first_and_columns_do_not_weaken_each_other():
    rng = np.random.default_rng(0)
    groups = np.array(["a"] * 60 + ["b"] * 60)
    even = audit.pairwise_gaps(rng.normal(size=120), groups).assign(measure="distance")
    apart = audit.pairwise_gaps(rng.normal(size=120) + 3 * (groups == "b"), groups).assign(measure="distance")
    claims = audit.corrected({"even": even, "apart": apart})
    assert claims["by"].tolist() == ["apart", "even"]
    assert claims["p"].iloc[0] == apart["p"].iloc[0]
    assert claims["clear"].tolist() == [True, False]
    assert claims["size"].iloc[0] == "large"


def test_measures_of_one_family_share_the_level_and_others_have_their_own():
    rng = np.random.default_rng(3)
    groups = rng.choice(["a", "b", "c"], 200)
    measures = {name: rng.normal(size=200) for name in ("distance", "n_changes", "cost")}
    measures |= {"selected": rng.integers(0, 2, 200).astype(float), "share_found": np.full(200, np.nan)}
    found = gaps_of(measures, groups)
    for name, together in {"distance": 3, "cost": 3, "selected": 1}.items():
        alone = audit.pairwise_gaps(measures[name], groups, confidence=1 - 0.05 / together)
        own = found[found["measure"] == name].reset_index(drop=True)
        pd.testing.assert_frame_equal(own[["gap", "low", "high"]], alone[["gap", "low", "high"]])
        assert own["p"].tolist() == pytest.approx(np.minimum(1, together * alone["p"]))


@pytest.mark.parametrize("seed", range(30))
def test_an_interval_holds_zero_where_the_difference_is_not_clear_and_only_there(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(45, 200))
    groups = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    shift = rng.choice([0.0, 0.2, 0.4]) * (groups == "a")
    measures = {"distance": rng.normal(size=n) + shift, "n_changes": rng.integers(1, 3, n) + 0.0}
    measures["selected"] = (rng.random(n) < 0.5 + shift).astype(float)
    claims = audit.corrected({"by": gaps_of(measures, groups, n_resamples=199, seed=seed)})
    excludes = (claims["low"] > 0) | (claims["high"] < 0)
    assert (excludes == claims["clear"]).all()
    assert (claims["clear"] == (claims["p"] <= 0.05 + 1e-12)).all()


def test_the_verdict_says_which_of_four_it_is():
    groups = pd.Series(["a", "b"] * 40)
    values = np.arange(80.0)
    gaps = {
        "apart": audit.pairwise_gaps([0, 1] * 40, groups).assign(measure="selected"),
        "even": audit.pairwise_gaps(np.sort(values % 7), groups).assign(measure="distance"),
        "few": audit.pairwise_gaps(values[:10], groups[:10]).assign(measure="distance"),
        "alone": audit.pairwise_gaps(values, ["a"] * 80).assign(measure="distance"),
    }
    kinds = [verdict.kind for verdict in audit.verdicts(gaps)]
    assert kinds == ["clear difference", "no clear difference", "too few rows", "one group"]
    said = audit.verdicts(gaps)
    fact = "0.0 % of the group 'a' get the favourable decision, against 100.0 % of 'b'"
    assert said[0].sentence.startswith(f"By apart: {fact}: a large difference of 100 percentage points (interval ")
    assert "A difference of up to " in said[1].sentence


def test_the_interval_of_a_gap_of_shares_ends_at_one():
    values = np.repeat([0.0, 1, 0, 1], [19, 1, 1, 19])
    gaps = audit.pairwise_gaps(values, ["a"] * 20 + ["b"] * 20).iloc[0]
    assert gaps["low"] == -1
    assert -0.9 < gaps["high"] < 0
    assert audit.pairwise_gaps(100 * values, ["a"] * 20 + ["b"] * 20)["low"].item() < -100


def test_of_equally_large_differences_the_wider_gap_is_told():
    """Both others have the decision infinitely more often than a, which counts no further than twice."""
    values = np.concatenate([np.arange(200) < count for count in (0, 40, 70)]).astype(float)
    gaps = audit.pairwise_gaps(values, np.repeat(["a", "b", "c"], 200)).assign(measure="selected")
    told = audit.corrected({"town": gaps})
    assert told[["group", "other", "clear"]].head(2).to_numpy().tolist() == [["a", "c", True], ["a", "b", True]]


def test_crossed_groups_keep_the_order_of_both_columns():
    first = pd.Series(pd.Categorical(["m", "f", "f", None], ["m", "f"], ordered=True))
    crossed = audit.crossed(first, pd.Series([2.0, 1.0, 2.0, 1.0]))
    assert crossed.tolist()[:3] == ["m, 2", "f, 1", "f, 2"]
    assert crossed.isna().tolist() == [False, False, False, True]
    assert list(crossed.cat.categories).index("m, 2") < list(crossed.cat.categories).index("f, 1")


def test_intervals_hold_all_at_once_where_groups_differ():
    """Skewed values with other spreads in each group: three intervals hold together in at least 19 of 20 tables."""
    rng, truth, hits = np.random.default_rng(1), np.array([-1.0, -2.0, -1.0]), 0
    groups = np.repeat([0, 1, 2], [40, 60, 100])
    for trial in range(200):
        values = rng.exponential(groups + 1.0)
        gaps = audit.pairwise_gaps(values, groups, n_resamples=300, seed=trial)
        hits += bool(((gaps["low"] <= truth) & (truth <= gaps["high"])).all())
    assert hits / 200 >= 0.92


@pytest.mark.parametrize(
    "call, pattern",
    [
        (lambda: audit.pairwise_gaps([1, 2], ["a", "b"], confidence=1.5), r"confidence must be in \(0, 1\), got 1.5"),
        (lambda: audit.pairwise_gaps([1, 2], ["a", "b"], n_resamples=0), "n_resamples must be"),
    ],
)
def test_bad_arguments_are_said(call, pattern):
    with pytest.raises(ParameterError, match=pattern):
        call()


def test_errors_of_many_shuffles_are_those_of_each():
    samples = [np.array([1.0, 2.0, 5.0]), np.array([0.0, 4.0])]
    whole = np.concatenate(samples)
    assert largest_of([samples], 5, 0)[0].shape == (5,)
    assert _errors_of.__doc__
    values = audit.pairwise_gaps(whole, ["a"] * 3 + ["b"] * 2, least=2).iloc[0]
    error = (values["high"] - values["gap"]) / np.sort(largest_of([samples], 2000, 0)[0])[-100]
    assert abs(values["gap"]) / error == pytest.approx(naive_statistic(whole.tolist(), list("aaabb")))


def test_families_shuffled_together_have_the_figures_of_each_alone(monkeypatch):
    random = np.random.default_rng(0)
    groups, others = random.choice(list("abc"), 90), random.choice(["x", "y", None], 90)
    holed = np.where(np.arange(90) % 4, random.normal(size=90), np.nan)
    values = [random.normal(size=90), random.integers(0, 4, 90), random.integers(0, 2, 90), np.ones(90), holed]
    families = [(own, column) for own in values for column in (groups, others, ["one"] * 90)]
    monkeypatch.setattr("onbmacf.audit.pairwise.CELLS", 1000)  # several pieces
    together = gaps_of_families(families, n_resamples=200, seed=7)
    for family, frame in zip(families, together, strict=True):
        pd.testing.assert_frame_equal(frame, audit.pairwise_gaps(*family, n_resamples=200, seed=7))


def test_a_family_is_shuffled_as_its_own_values_would_be():
    values = np.random.default_rng(1).normal(size=12)
    random, tops = np.random.default_rng(5), []
    for _ in range(20):
        line = values - values.mean()
        random.shuffle(line)
        tops.append(naive_statistic(line.tolist(), ["a"] * 5 + ["b"] * 7))
    assert largest_of([[values[:5], values[5:]]], 20, 5)[0] == pytest.approx(tops)


def audited(n, gap, seed):
    """Return an explainer of a table in which women get the decision less often by so much, and age says nothing."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {"sex": rng.choice(["f", "m"], n), "age": rng.integers(18, 80, n), "town": rng.choice(list("xyz"), n)}
    )
    table["score"] = rng.random(n).round(3)

    def model(rows):
        return np.where(rows["score"] > 0.45 + gap * (rows["sex"] == "f"), "yes", "no")

    return ONBMACF(effort="quarter").fit(table, model), table[model(table) == "no"]


def stated(explainer, rows, by):
    """Return the kind of the verdict on each column, and its sentence."""
    answers = explainer.explain(rows, target="yes")
    decisions = audit.Decisions.of(explainer, "yes")
    gaps = audit.group_gaps(answers, audit.grouped(answers, by, decisions), decisions, n_resamples=999)
    return {verdict.by: (verdict.kind, verdict.sentence) for verdict in audit.verdicts(gaps)}


def simulated(n_tables, n_rows, gap):
    """Return how many audits state a difference by sex and by age: verdicts that nothing else changes."""
    counts = np.zeros(2, dtype=int)
    for seed in range(n_tables):
        explainer, refused = audited(n_rows, gap, seed)
        few = stated(explainer, refused.head(3), ["sex"])
        other = stated(explainer, refused.tail(25), ["town", "age", "sex"])
        assert few["sex"] == other["sex"]
        counts += [few["sex"][0] == "clear difference", other["age"][0] == "clear difference"]
    return counts


def test_a_verdict_is_the_same_whatever_else_is_asked():
    assert simulated(12, 600, 0.15)[0] >= 9


@pytest.mark.long
def test_of_a_column_without_a_difference_one_is_stated_in_at_most_5_of_100_audits():
    assert (simulated(300, 600, 0.0) <= 15).all()


@pytest.mark.long
def test_of_15_points_between_300_and_300_at_least_90_of_100_audits_tell():
    by_sex, by_age = simulated(300, 600, 0.15)
    assert by_sex >= 270
    assert by_age <= 15


def test_a_column_of_ages_has_one_verdict_and_one_set_of_bands():
    """A case as published of German credit: 65 % of the young get the decision, 81 % of those from 32 to 40."""
    rng = np.random.default_rng(11)
    ages = np.r_[
        rng.integers(19, 26, 190), rng.integers(26, 32, 250), rng.integers(32, 41, 290), rng.integers(41, 75, 270)
    ]
    rate = np.select([ages < 26, ages < 32, ages < 41], [0.653, 0.70, 0.812], 0.74)
    table = pd.DataFrame({"age": ages, "sex": rng.choice(["f", "m"], 1000), "foreign": rng.choice(["no", "yes"], 1000)})
    table["score"] = (rng.random(1000) - rate).round(4)
    explainer = ONBMACF(effort="quarter").fit(table, lambda rows: np.where(rows["score"] < 0, "granted", "refused"))
    decisions = audit.Decisions.of(explainer, "granted")
    refused = table[~decisions.selected]
    seen = set()
    for most, by in ((40, ["age"]), (120, ["age"]), (40, ["sex", "age", "foreign"]), (200, ["foreign", "age"])):
        answers = explainer.explain(refused.sample(most, random_state=most), target="granted")
        gaps = audit.group_gaps(answers, audit.grouped(answers, by, decisions), decisions)
        verdict = next(verdict for verdict in audit.verdicts(gaps) if verdict.by == "age")
        seen.add((verdict.kind, verdict.sentence))
    ((kind, sentence),) = seen
    assert kind == "clear difference"
    assert "of the group 'below 27' get the favourable decision" in sentence


def test_what_may_be_missed_is_said_with_the_number_of_rows():
    rng = np.random.default_rng(2)
    groups = np.repeat(["a", "b"], [81, 300])
    gaps = audit.pairwise_gaps(rng.integers(0, 2, 381), groups).assign(measure="selected")
    (verdict,) = audit.verdicts({"sex": gaps})
    assert verdict.kind == "no clear difference"
    assert verdict.sentence.endswith(
        "With 81 rows in the smallest group, a difference of up to 18 points may be missed."
    )


def test_the_same_audit_states_a_difference_that_is_there(heart):
    from onbmacf import ONBMACF, Schema

    model = lambda rows: np.where(rows["tobacco"] + 4 * (rows["famhist"] == "Present") > 5, "risk", "fine")  # noqa: E731
    explainer = ONBMACF().fit(heart, model, schema=Schema.infer(heart, immutable=["famhist"]))
    answers = explainer.explain(heart[model(heart) == "risk"], target="fine")
    decisions = audit.Decisions.of(explainer, "fine")
    gaps = audit.group_gaps(answers, audit.grouped(answers, ["famhist", "age"], decisions), decisions)
    assert audit.verdicts(gaps)[0].kind == "clear difference"
    assert list(gaps) == ["famhist", "age", "famhist and age"]


def test_many_groups_missing_values_and_small_groups_get_a_sentence(heart):
    from onbmacf import ONBMACF

    explainer = ONBMACF().fit(heart, lambda rows: (rows["ldl"] > 4).astype(int))
    answers = explainer.explain(heart.head(100))
    thousand = [f"g{place}" for place in range(100)]
    (group,) = audit.grouped(answers, {"zip": thousand})
    assert group.note.startswith("zip has 100 groups: the 7 largest are kept apart, the others are one group, (other).")
    (group,) = audit.grouped(answers, {"sex": ["f"] * 45 + ["m"] * 45 + [None] * 10})
    assert group.note == (
        "10 rows explained have no value of sex: a group of their own, (missing). 1 group has fewer than 20 rows "
        "and is not tested."
    )
    assert audit.verdicts(audit.group_gaps(answers, [group]))[0].kind == "no clear difference"


def test_rows_of_the_table_are_counted_once_also_where_they_are_explained(heart):
    """A note counts the table's rows, not these and the explained ones among them."""
    from onbmacf import ONBMACF

    own = heart.assign(sex=["f"] * 230 + ["m"] * 192 + [None] * 40)
    explainer = ONBMACF().fit(own, lambda rows: (rows["ldl"] > 4).astype(int))
    decisions = audit.Decisions.of(explainer, 0)
    answers = explainer.explain(pd.concat([own.head(30), own.tail(12)]), target=0)
    (group,) = audit.grouped(answers, ["sex"], decisions)
    assert group.note == (
        "40 rows of the table have no value of sex: a group of their own, (missing). 2 groups have fewer than 20 "
        "explained rows: burden is not tested there."
    )
    few = own.assign(other=["x"] * 443 + ["y"] * 19)
    explainer = ONBMACF().fit(few, lambda rows: (rows["ldl"] > 4).astype(int))
    answers = explainer.explain(few.tail(30), target=0)  # 19 and 19: not 38 rows of y
    (group,) = audit.grouped(answers, ["other"], audit.Decisions.of(explainer, 0))
    assert group.note == (
        "1 group has fewer than 20 rows and is not tested. 1 group has fewer than 20 explained rows: burden is not "
        "tested there."
    )


def test_a_thousand_groups_are_a_sentence_and_not_half_a_million_comparisons():
    towns = pd.Series([f"town {place % 1000}" for place in range(3000)])
    values = np.arange(3000) % 7
    with pytest.raises(ParameterError, match=r"1,000 groups are 499,500 comparisons.*audit\.as_groups"):
        audit.pairwise_gaps(values, towns)
    with pytest.raises(ParameterError, match="1,000 groups"):
        audit.recourse_fairness(*audit.individual(values), towns, budget=1)
    assert len(audit.pairwise_gaps(values, audit.as_groups(towns), n_resamples=50)) == 28
