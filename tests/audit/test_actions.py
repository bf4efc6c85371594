"""Group actions, single features and two models: counted by hand, asked again, and kept within the rules."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sklearn

from onbmacf import ONBMACF, Rule, Rules, Schema, audit
from onbmacf._text.wording import shown
from onbmacf.audit.moves import AT_LEAST, AT_MOST, BY, TO, Move, RefusedRows, in_words, moved
from onbmacf.errors import ParameterError


def model(rows):
    return np.where(rows["tobacco"] + rows["ldl"] + (rows["age"] > 50) > 8, "risk", "fine")


@pytest.fixture(scope="module")
def explainer(heart):
    rules = Rules({"ldl": Rule(low=3.0), "obesity": Rule(direction="down")})
    return ONBMACF().fit(heart, model, schema=Schema.infer(heart, immutable=["age", "famhist"]).with_rules(rules))


@pytest.fixture(scope="module")
def answers(explainer, heart):
    return explainer.explain(heart.head(120), target="fine")


@pytest.fixture(scope="module")
def chosen(answers, explainer):
    return audit.actions(answers, explainer, k=3, by="famhist")


def test_every_action_was_asked_of_the_model_and_keeps_rules_and_immutables(chosen, answers, explainer):
    fitted, rows = explainer.fitted_, answers.rows.iloc[chosen.positions]
    names = list(rows.columns)
    for place, action in enumerate(chosen.moves):
        assert not {names[move.feature] for move in action} & {"age", "famhist"}
        asked = RefusedRows.of(fitted, rows, ["fine"])
        _, N, may = moved(fitted, action, asked.z, asked.N)
        after = fitted.space.form.frame(N)
        assert (chosen.flips[:, place] == (model(after) == "fine") & may).all()
        changed = (after["ldl"].to_numpy() != rows["ldl"].to_numpy()) & may
        assert (after["ldl"].to_numpy()[changed] >= 3.0).all()
        assert (np.isnan(chosen.costs[:, place]) == ~may).all()


def test_figures_are_those_of_the_flips_and_more_actions_never_help_fewer(chosen):
    helped = chosen.flips.any(axis=1)
    assert chosen.effectiveness == helped.mean()
    least = [min(c for f, c in zip(*line, strict=True) if f) for line in zip(chosen.flips, chosen.costs, strict=True)
             if line[0].any()]  # fmt: skip
    assert chosen.mean_cost == pytest.approx(np.mean(least))
    curve = chosen.curve()
    assert curve["effectiveness"].is_monotonic_increasing
    assert curve["effectiveness"].iloc[-1] == chosen.effectiveness
    assert chosen.to_frame()["added"].sum() == pytest.approx(chosen.effectiveness)
    groups = chosen.by_group()
    assert groups["n_rows"].sum() == len(chosen.positions)
    assert (groups["effectiveness"] * groups["n_rows"]).sum() == pytest.approx(helped.sum())


def test_three_actions_help_nearly_all_and_the_same_come_out_again(chosen, answers, explainer):
    assert chosen.effectiveness >= 0.9
    assert audit.actions(answers, explainer, k=3).actions == chosen.actions


def test_moves_by_hand(explainer, heart):
    fitted = explainer.fitted_
    at = {name: place for place, name in enumerate(heart.columns)}
    rows = heart.head(3).assign(tobacco=[1.0, 5.0, 9.0], famhist=["Absent", "Present", "Absent"])
    asked = RefusedRows.of(fitted, rows, ["fine"])

    def after(*moves):
        return fitted.space.form.frame(moved(fitted, moves, asked.z, asked.N)[1])

    assert after(Move(at["tobacco"], AT_MOST, 4.0))["tobacco"].tolist() == [1, 4, 4]
    assert after(Move(at["tobacco"], AT_LEAST, 4.0))["tobacco"].tolist() == [4, 5, 9]
    assert after(Move(at["tobacco"], BY, -2.0))["tobacco"].tolist() == [0, 3, 7]  # 0 is the least seen
    assert not moved(fitted, (Move(at["famhist"], TO, 1.0),), asked.z, asked.N)[2].all()  # immutable
    words = in_words(fitted, (Move(at["ldl"], AT_MOST, 3.30), Move(at["tobacco"], BY, -2.0)))
    assert words == "ldl at most 3.3 and tobacco lower by 2 (not below 0)"  # where one is already, one stays


def test_an_action_tree_gives_each_subgroup_its_action(chosen, answers):
    leaves = audit.action_tree(chosen, answers, depth=2)
    assert leaves["n_rows"].sum() == len(chosen.positions)
    assert set(leaves["action"]) <= set(chosen.actions)
    overall = (leaves["effectiveness"] * leaves["n_rows"]).sum() / leaves["n_rows"].sum()
    assert chosen.flips.mean(axis=0).max() - 1e-12 <= overall <= chosen.effectiveness + 1e-12
    assert leaves["subgroup"].is_unique


def test_of_two_actions_that_help_a_subgroup_alike_the_tree_names_the_cheaper(chosen, answers):
    helps = np.ones((len(chosen.positions), 2), dtype=bool)
    costs = np.tile([0.31, 0.17], (len(helps), 1))
    costs[0], helps[0] = np.nan, False
    both = replace(chosen, actions=("dear", "cheap"), moves=chosen.moves[:1] * 2, flips=helps, costs=costs)
    leaves = audit.action_tree(both, answers, depth=1)
    assert set(leaves["action"]) == {"cheap"}
    assert leaves["mean_cost"].to_numpy() == pytest.approx(0.17)


def test_two_answers_about_one_side_of_a_feature_are_said_as_one():
    from sklearn.tree import DecisionTreeClassifier

    from onbmacf.audit.actions import _paths, _splits

    rows = pd.DataFrame({"age": [20, 30, 40, 50]})
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(rows, [0, 1, 2, 3])
    words = set(_paths(tree.tree_, tree.decision_path(rows).toarray() > 0, _splits(rows)).values())
    assert words == {"age at most 20", "age above 20 and age at most 30", "age above 30 and age at most 40",
                     "age above 40"}  # fmt: skip


AS_WRITTEN = {
    "numbers": pd.Series([27515.37, 28190.0, 28191.5, 30000.0]),
    "dates": pd.Series(pd.to_datetime(["2020-01-31", "2020-02-01", "2020-05-31", "2021-01-01"])),
    "missing left": pd.Series([None, 28190.0, 28191.5, 30000.0]),
    "missing right": pd.Series([27515.37, 28190.0, 28191.5, None]),
    "missing among whole numbers": pd.Series([1, 2, 3, None], dtype="Int64"),
}


@pytest.mark.parametrize("kind", AS_WRITTEN)
def test_a_subgroup_is_described_by_values_of_its_rows_and_says_what_is_unknown(kind):
    from sklearn.tree import DecisionTreeClassifier

    from onbmacf.audit.actions import _paths, _splits

    if kind == "missing left" and tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8):
        pytest.skip("the tree of scikit-learn before 1.8 sends these missing values to the right")
    column = AS_WRITTEN[kind]
    splits = _splits(pd.DataFrame({"c": column}))
    matrix = splits[0].numbers[:, np.newaxis]
    tree = DecisionTreeClassifier(max_depth=1, random_state=0).fit(matrix, [0, 0, 1, 1])
    words = _paths(tree.tree_, tree.decision_path(matrix).toarray() > 0, splits)
    low, high = (words[leaf] for leaf in (1, 2))
    end = shown(column.iloc[1])
    assert low == {"dates": f"c no later than {end}", "missing left": f"c at most {end} (or unknown)"}.get(
        kind, f"c at most {end}"
    )
    assert high.startswith(f"c later than {end}" if kind == "dates" else f"c above {end}")
    assert high.endswith("(or unknown)") == column.isna().iloc[3]


def test_actions_of_nobody_and_without_a_target_are_said(answers, explainer, heart):
    nobody = audit.actions(explainer.explain(heart.head(0), target="fine"), explainer, target="fine")
    assert nobody.actions == ()
    assert np.isnan(nobody.effectiveness)
    both = explainer.explain(heart.head(30))
    with pytest.raises(ParameterError, match="actions needs target"):
        audit.actions(both, explainer)


def test_importance_and_thresholds_agree_with_counting(answers):
    first = [answer.counterfactuals[0] for answer in answers if answer.counterfactuals]
    frame = audit.change_shares(answers).set_index("feature")
    for name in answers.rows.columns:
        assert frame.loc[name, "share"] == np.mean([name in found.changed for found in first])
        assert frame.loc[name, "low"] <= frame.loc[name, "share"] <= frame.loc[name, "high"]
    line = audit.thresholds(answers).iloc[0]
    name, (words, value) = line["feature"], line["threshold"].rsplit(" ", 1)
    ends = [found.values[name] for found in first if name in found.changed]
    assert words in ("at most", "at least")
    assert (
        sum(float(value) - 1e-9 <= end if words == "at least" else end <= float(value) + 1e-9 for end in ends)
        >= (line["n_rows"])
    )


def test_responsiveness_is_what_the_model_says_of_one_feature_alone(answers, explainer, heart):
    frame = audit.responsiveness(answers, explainer, target="fine").set_index("feature")
    refused = answers.rows[answers.statuses != "already"]
    least = heart["tobacco"].min()
    alone = model(refused.assign(tobacco=least)) == "fine"
    assert frame.loc["tobacco", "responsiveness"] == pytest.approx(alone.mean())
    assert "age" not in frame.index
    assert frame.loc["sbp", "responsiveness"] == 0
    assert "sbp" in audit.never_help(audit.change_shares(answers), audit.responsiveness(answers, explainer))


def test_wilsons_interval_by_hand():
    from onbmacf.audit.figures import wilson_interval

    share, low, high = wilson_interval(2, 10, 0.95)
    z = 1.959963984540054
    middle, half = 0.2 + z**2 / 20, z * np.sqrt(0.2 * 0.8 / 10 + z**2 / 400)
    assert (share, low, high) == pytest.approx(
        (0.2, (middle - half) / (1 + z**2 / 10), (middle + half) / (1 + z**2 / 10))
    )
    assert wilson_interval(0, 10, 0.95)[1] == 0
    assert np.isnan(wilson_interval(0, 0, 0.95)[0])


def test_two_models_side_by_side(answers, explainer, heart):
    def stricter(rows):
        return np.where(rows["tobacco"] + rows["ldl"] + 3 * (rows["age"] > 50) > 8, "risk", "fine")

    other = ONBMACF().fit(heart, stricter, schema=explainer.schema_)
    after = other.explain(heart.head(120), target="fine")
    rows = heart.head(120)
    gained, lost = (
        (model(rows) == "risk") & (stricter(rows) == "fine"),
        (model(rows) == "fine") & (stricter(rows) == "risk"),
    )
    (line,) = audit.side_changes(answers, after).itertuples()
    assert (line.n_rows, line.n_gained, line.n_lost) == (120, gained.sum(), lost.sum())
    old = pd.Series(np.where(rows["age"] > 50, "old", "young"))
    by_age = audit.burden_changes(answers, after, old).set_index("group")
    assert by_age.loc["old", "low"] > 0  # two more units of risk cost the old more
    assert abs(by_age.loc["young", "change"]) < abs(by_age.loc["old", "change"])
    gaps = audit.version_gaps(answers, after, old)
    assert set(gaps["measure"]) == {"changed_sides", "burden_change"}
    holds = audit.still_holds(answers, other)
    first = [answer.counterfactuals[0].values for answer in answers if answer.counterfactuals]
    assert holds.tolist() == (stricter(pd.DataFrame(first)) == "fine").tolist()
    with pytest.raises(ParameterError, match="not of the same rows"):
        audit.side_changes(answers, after[:10])


def test_improving_an_action_makes_it_worth_more(answers, explainer):
    from onbmacf.audit.actions import candidates
    from onbmacf.audit.moves import Valued, improved, worths

    rows = RefusedRows.of(explainer.fitted_, answers.rows[answers.statuses != "already"], ["fine"])
    pool = candidates(answers, explainer.fitted_, 6)
    found = worths(rows, pool, 1.0)
    first = int(np.argsort(found.sum(axis=0))[len(pool) // 2])  # one of middling worth
    better = [valued.action for valued in improved(rows, [Valued(pool[first], found[:, first])], 1.0, 6)]
    assert worths(rows, better, 1.0).sum() > found[:, first].sum()
    assert all(len(action) <= 6 for action in better)
    flips, costs = rows.outcomes(better)
    assert (worths(rows, better, 1.0) == np.where(flips & (costs < 1), 1 - costs, 0)).all()


def test_rows_that_cannot_gain_are_not_asked_and_the_best_is_the_same(answers, explainer):
    from onbmacf.audit.actions import candidates
    from onbmacf.audit.moves import worths

    rows = RefusedRows.of(explainer.fitted_, answers.rows[answers.statuses != "already"], ["fine"])
    pool = candidates(answers, explainer.fitted_, 6)
    whole = worths(rows, pool, 1.0)
    held = whole[:, 0]
    before = rows.box.counts.n_questions
    pruned = worths(rows, pool, 1.0, held)
    assert rows.box.counts.n_questions - before < before  # fewer questions,
    assert (np.maximum(pruned, held[:, np.newaxis]) == np.maximum(whole, held[:, np.newaxis])).all()  # the same worth


def test_many_actions_in_one_call_are_answered_as_each_alone(answers, explainer):
    from onbmacf.audit.actions import candidates

    rows = RefusedRows.of(explainer.fitted_, answers.rows[answers.statuses != "already"], ["fine"])
    pool = candidates(answers, explainer.fitted_, 6)[:40]
    flips, costs = rows.outcomes(pool)
    for place, action in enumerate(pool):
        alone = rows.outcomes([action])
        assert (alone[0][:, 0] == flips[:, place]).all()
        assert np.array_equal(alone[1][:, 0], costs[:, place], equal_nan=True)


def test_worths_are_kept_whole_while_several_actions_are_improved_in_turn(answers, explainer):
    from onbmacf.audit.actions import candidates
    from onbmacf.audit.moves import Valued, held_by, improved, worths

    rows = RefusedRows.of(explainer.fitted_, answers.rows[answers.statuses != "already"], ["fine"])
    pool = candidates(answers, explainer.fitted_, 6)
    found = worths(rows, pool, 1.0)
    own = [Valued(pool[place], found[:, place]) for place in (0, 1, 2)]
    better = improved(rows, own, 1.0, 6)
    for valued in better:
        assert (valued.worth == worths(rows, [valued.action], 1.0)[:, 0]).all()
    assert held_by(better, len(found)).sum() > held_by(own, len(found)).sum()
    beside = improved(rows, own, 1.0, 6, first=2)
    assert [valued.action for valued in beside[:2]] == [valued.action for valued in own[:2]]
    assert held_by(beside, len(found)).sum() > held_by(own, len(found)).sum()


def test_large_calls_answer_as_small_ones_and_are_fewer(answers, explainer):
    from onbmacf.audit.actions import candidates

    rows = RefusedRows.of(explainer.fitted_, answers.rows[answers.statuses != "already"], ["fine"])
    assert rows.box.sizes  # this model answers the same in calls of any size
    pool, large = candidates(answers, explainer.fitted_, 6), rows.in_large_calls()
    small = replace(rows, box=rows.box.counting())
    large = replace(large, box=large.box.counting())
    for ours, theirs in zip(small.outcomes(pool), large.outcomes(pool), strict=True):
        assert np.array_equal(ours, theirs, equal_nan=True)
    assert large.box.counts.n_questions == small.box.counts.n_questions
    assert large.box.counts.n_calls < small.box.counts.n_calls / 4
    dependent = replace(rows, box=replace(rows.box, sizes=()))
    assert dependent.in_large_calls().box.sizes == ()  # the answers depend on the size: calls stay as they are


def test_the_changes_of_rows_that_are_left_join_the_candidates(answers, explainer):
    from onbmacf.audit.actions import candidates, one_by_one

    lines = np.flatnonzero(answers.statuses != "already")
    rows, masks = RefusedRows.of(explainer.fitted_, answers.rows.iloc[lines], ["fine"]), []

    def candidates_of(own):
        masks.append(own)
        return candidates(answers, explainer.fitted_, 6, lines[own])

    first, _ = one_by_one(rows, candidates_of, 2, 6.0, 6)  # dear: the first helps some rows only
    assert masks[0].all()
    assert 0 < masks[1].sum() < len(lines)
    assert (masks[1] == (first.worth <= 0)).all()
    left = candidates(answers, explainer.fitted_, 6, lines[masks[1]])
    assert 0 < len(left) < len(candidates(answers, explainer.fitted_, 6))


def test_no_candidates_are_no_actions(answers, explainer):
    from onbmacf.audit.actions import choose

    rows = RefusedRows.of(explainer.fitted_, answers.rows[answers.statuses != "already"], ["fine"])
    assert choose(rows, lambda own: [], 3, 1.0, 6) == ()


def test_the_action_that_is_least_missed_is_taken_out_and_of_equals_the_last():
    from onbmacf.audit.moves import Valued, most_missed

    middle, left, right = [0.0, 0.9, 0.9, 0.9, 0.0], [0.8, 0.8, 0.8, 0.0, 0.0], [0.0, 0.0, 0.8, 0.8, 0.8]
    own = [Valued((Move(place, BY, 1.0),), np.array(worth)) for place, worth in enumerate((middle, left, right))]
    assert most_missed(own, 3) == own
    assert most_missed(own, 2) == own[1:]  # the first taken, since each of its rows has another
    assert most_missed(own, 1) == own[1:2]
    same = [own[1], own[1]._replace(action=()), own[2]]
    assert [valued.action for valued in most_missed(same, 2)] == [own[1].action, own[2].action]
    assert most_missed([], 2) == []


@pytest.mark.parametrize("k", [2, pytest.param(3, marks=pytest.mark.long)])
def test_actions_taken_beyond_k_and_taken_out_again_leave_better_ones(answers, explainer, k):
    from onbmacf.audit.actions import candidates, choose, one_by_one
    from onbmacf.audit.moves import held_by, improved, worths

    answers = explainer.with_options(decimals="exact").explain(answers.rows, target="fine")
    lines, price = np.flatnonzero(answers.statuses != "already"), 6.0  # dear: which rows an action helps matters
    rows = RefusedRows.of(explainer.fitted_, answers.rows.iloc[lines], ["fine"])

    def candidates_of(own):
        return candidates(answers, explainer.fitted_, 6, lines[own])

    alone = improved(rows, one_by_one(rows, candidates_of, k, price, 6), price, 6)
    chosen = choose(rows, candidates_of, k, price, 6)
    assert len(chosen) == k
    assert worths(rows, chosen, price).max(axis=1).sum() > held_by(alone, len(lines)).sum() + 0.1


def test_few_rows_that_are_left_are_all_asked_about_and_all_rows_are_stood_for():
    from onbmacf.audit.moves import _screening_rows

    held = np.where(np.arange(600) % 30, 0.5, 0.0)  # 20 are left
    lines, stand_for = _screening_rows(held)
    assert set(np.flatnonzero(held <= 0)) <= set(lines)
    assert stand_for[np.isin(lines, np.flatnonzero(held <= 0))].tolist() == [1.0] * 20
    assert stand_for.sum() == pytest.approx(600, abs=3)
    none_helped = _screening_rows(np.zeros(600))
    assert len(none_helped[0]) == 100
    assert none_helped[1].sum() == 600
    assert _screening_rows(np.zeros(149))[0].tolist() == list(range(149))  # few rows: all of them


def test_a_missing_value_that_stays_missing_is_no_change():
    draw = np.random.default_rng(0)
    table = pd.DataFrame(
        {"pay": draw.integers(0, 10, 90) * 1.0, "sex": ["f", "m", None] * 30, "age": [20.0, np.nan] * 45}
    )
    schema = Schema.infer(table, immutable=["sex", "age"], rules=Rules(max_changes=1))
    explainer = ONBMACF().fit(table, lambda rows: (rows["pay"] > 5).astype(int), schema=schema)
    refused = table[table["pay"] <= 5]
    chosen = audit.actions(explainer.explain(refused, target=1), explainer, 1, "sex", target=1)
    assert chosen.by_group()["effectiveness"].tolist() == [1.0, 1.0, 1.0]
    assert np.isfinite(chosen.costs).all()


@pytest.mark.parametrize("fillable", [[], ["home"]])
def test_a_missing_level_is_filled_in_only_where_that_is_allowed(fillable):
    draw = np.random.default_rng(0)
    table = pd.DataFrame({"home": draw.choice(["own", "rent", None], 120), "pay": draw.integers(0, 10, 120) * 1.0})
    schema = Schema.infer(table, fillable=fillable)
    explainer = ONBMACF().fit(table, lambda rows: (rows["home"] == "own").astype(int), schema=schema)
    refused = table[table["home"] != "own"]
    own = explainer.schema_.features[0].levels.index("own")
    flips, _ = RefusedRows.of(explainer.fitted_, refused, [1]).outcomes([(Move(0, TO, float(own)),)])
    assert (flips[:, 0] == (refused["home"].notna() | bool(fillable))).all()


def test_a_value_that_was_missing_does_not_widen_where_counterfactuals_end():
    from onbmacf.audit.figures import _recurring

    before, after = pd.Series([np.nan, 100.0, 100.0, 100.0, 100.0]), pd.Series([40.0, 10.0, 60.0, 61.0, 62.0])
    assert _recurring(before, after) == [("at most 62", 3)]
