"""Answers of an explainer with causes: what follows has followed, wherever an answer is looked at."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onbmacf import ONBMACF, Causes, Rule, Schema
from onbmacf._base.arrays import take
from onbmacf._search.table import SearchTable
from onbmacf.errors import ParameterError

CAUSES = Causes({"bmi": lambda rows: rows["weight"] / rows["height"] ** 2, "savings": ["income", "age"]})


def people(n=500, seed=0):
    rng = np.random.default_rng(seed)
    age, height = rng.integers(20, 70, n), np.round(rng.normal(1.72, 0.1, n), 2)
    weight = np.round(rng.normal(75, 12, n), 1)
    income = np.round(1500 + 20 * age + rng.normal(0, 300, n))
    savings = np.round(2 * income + 30 * age + rng.normal(0, 500, n))
    bmi = np.round(weight / height**2, 1)
    return pd.DataFrame(
        {"age": age, "height": height, "weight": weight, "bmi": bmi, "income": income, "savings": savings}
    )


TABLE = people()
SAID = np.where((TABLE["bmi"] > 26) | (TABLE["savings"] < 6000), "no", "yes")
SCHEMA = Schema.infer(TABLE, immutable=["height", "age"])
FOREST = RandomForestClassifier(50, random_state=0).fit(TABLE, SAID)
LINEAR = make_pipeline(StandardScaler(), LogisticRegression()).fit(TABLE, SAID)


@pytest.fixture(scope="module")
def explainer():
    return ONBMACF().fit(TABLE, FOREST, schema=SCHEMA, causes=CAUSES)


def refused(n, model=FOREST):
    return TABLE[model.predict(TABLE) == "no"].iloc[:n]


def assert_what_follows_followed(answers):
    """Each printed value obeys the equations in its printed digits, or its action cut them."""
    for one in answers:
        for found in one.counterfactuals:
            kept = [] if found.semifactual is None else [found.semifactual]
            for row in (found, *kept):
                before, after = row.factual, row.values
                if {"weight", "height"} & set(row.changed):
                    assert round(after["weight"] / after["height"] ** 2, 1) == after["bmi"]
                differ = {name for name in TABLE if after[name] != before[name]}
                assert differ == {*row.changed, *row.effects}
                assert not {"height", "age", "bmi"} & set(row.changed)
                assert not {*row.changed} & {*row.effects}


WAYS = {
    "default": ({}, {}),
    "three": ({}, {"n": 3}),
    "nearest": ({}, {"plausibility": 0.0, "min_probability": 0}),
    "interior": ({}, {"plausibility": 1.0}),
    "front": ({}, {"front": True}),
    "called": ({"read_model": False}, {}),
    "budget": ({"max_model_rows": 150, "read_model": False}, {}),
    "paper": ({"strategy": "paper"}, {}),
    "euclidean": ({"metric": "euclidean"}, {}),
    "committee": ({"committee": [LINEAR, FOREST], "agreement": 0.5}, {}),
}


@pytest.mark.parametrize("options, asked", WAYS.values(), ids=WAYS)
def test_every_way_to_ask_gives_answers_in_which_effects_have_followed(options, asked):
    answers = ONBMACF(**options).fit(TABLE, FOREST, schema=SCHEMA, causes=CAUSES).explain(refused(12), "yes", **asked)
    assert (answers.statuses == "found").mean() > 0.8
    assert_what_follows_followed(answers)
    assert (FOREST.predict(answers.to_frame()[TABLE.columns]) == "yes").all()


def test_no_answer_in_500_breaks_the_equation_in_the_printed_digits():
    table = people(900, seed=1)[["height", "weight", "bmi"]]
    model = LogisticRegression(max_iter=1000).fit(table, table["bmi"] + 0.05 * table["weight"] > 28.5)
    explainer = ONBMACF().fit(table, model, schema=Schema.infer(table), causes=Causes({"bmi": CAUSES.effects["bmi"]}))
    answers = explainer.explain(table.iloc[:500])
    frame = answers.to_frame()
    assert len(frame) == 500
    assert (np.round(frame["weight"] / frame["height"] ** 2, 1) == frame["bmi"]).all()


def test_only_actions_cost(explainer):
    for one in explainer.explain(refused(10), "yes"):
        found = one.counterfactuals[0]
        moved = [abs(found.values[name] - one.factual[name]) / np.ptp(TABLE[name]) for name in found.actions]
        assert found.distance == pytest.approx(sum(moved))
        assert found.n_changes == len(found.actions) == len(found.changed)


def test_a_direct_action_on_an_effect_cuts_its_causes_unless_it_is_immutable():
    model = LogisticRegression(max_iter=5000).fit(TABLE[["savings"]] * 0.001, TABLE["savings"] > 6500)
    by_savings = lambda rows: np.where(model.predict(rows[["savings"]] * 0.001), "yes", "no")  # noqa: E731
    poor = TABLE[by_savings(TABLE) == "no"].iloc[:5]
    free = ONBMACF().fit(TABLE, by_savings, schema=Schema.infer(TABLE, immutable=["age"]), causes=CAUSES)
    for one in free.explain(poor, vary=["savings", "income"], rules={"features": {"income": {"direction": "down"}}}):
        assert (one.counterfactuals[0].actions, one.counterfactuals[0].effects) == (("savings",), ())
    held = ONBMACF().fit(TABLE, by_savings, schema=Schema.infer(TABLE, immutable=["age", "savings"]), causes=CAUSES)
    for one in held.explain(poor):
        assert one.counterfactuals[0].actions == ("income",)
        assert one.counterfactuals[0].effects == ("savings",)


@pytest.mark.parametrize("strategy", ["refined", "paper"])
def test_rules_hold_for_what_follows(strategy):
    """The model wants little weight, the rule a bmi that is not lower than 25."""
    heavy = lambda rows: np.where(rows["weight"] > 70, "no", "yes")  # noqa: E731
    explainer = ONBMACF(strategy=strategy).fit(TABLE, heavy, schema=Schema.infer(TABLE), causes=CAUSES)
    rows = TABLE[(TABLE["weight"] > 75) & (TABLE["bmi"] > 26)].iloc[:15]
    free = explainer.explain(rows, "yes").to_frame()
    assert (free["bmi"] < 25).any()
    ruled = explainer.explain(rows, "yes", rules={"features": {"bmi": {"low": 25}}}).to_frame()
    assert len(ruled) > 5
    assert (ruled["bmi"] >= 25).all()


def test_answers_do_not_depend_on_the_batch_or_the_processes(explainer):
    rows = refused(9)
    together = explainer.explain(rows, "yes").to_json()
    alone = [explainer.explain(rows.iloc[[at]], "yes").to_dicts()[0] for at in range(9)]
    assert json.loads(together)["answers"] == alone
    other = ONBMACF(n_jobs=2).fit(TABLE, FOREST, schema=SCHEMA, causes=CAUSES)
    assert other.explain(rows, "yes").to_json() == together


def test_without_causes_answers_of_such_rows_are_possible_by_luck_only():
    """What the tests above would not see if nothing followed by itself."""
    answers = ONBMACF().fit(TABLE, FOREST, schema=SCHEMA).explain(refused(10), "yes")
    with pytest.raises(AssertionError):
        assert_what_follows_followed(answers)


def test_ranges_move_the_effects_along():
    """The model sees only what follows, so that a range of its cause is one of the effects."""
    by_bmi = lambda rows: np.where(rows["bmi"] > 26, "no", "yes")  # noqa: E731
    explainer = ONBMACF().fit(TABLE, by_bmi, schema=SCHEMA, causes=CAUSES)
    found = explainer.explain(refused(1, Of(by_bmi)), "yes", vary=["weight"], ranges=True)[0].counterfactuals[0]
    height, high = found.values["height"], found.ranges["weight"].high
    assert found.values["weight"] <= high
    assert round(high / height**2, 1) <= 26 < round((high + 0.2) / height**2, 1)
    by_savings = lambda rows: np.where(rows["savings"] < 6000, "no", "yes")  # noqa: E731
    explainer = ONBMACF().fit(TABLE, by_savings, schema=SCHEMA, causes=CAUSES)
    found = explainer.explain(refused(1, Of(by_savings)), "yes", vary=["income"], ranges=True)[0].counterfactuals[0]
    slope = (found.values["savings"] - found.factual["savings"]) / (found.values["income"] - found.factual["income"])
    least = found.factual["income"] + (6000 - found.factual["savings"]) / slope
    assert found.ranges["income"].low == pytest.approx(least, abs=3)


class Of:
    """A function with the method that an estimator has."""

    def __init__(self, predict):
        self.predict = predict


@pytest.mark.parametrize("plausibility", [0.5, 1.0])
def test_neighbours_and_balls_see_the_whole_point(monkeypatch, plausibility):
    """Every fitted row obeys the equation, so a point that does not was not completed."""
    explainer = ONBMACF(plausibility=plausibility).fit(TABLE, FOREST, schema=SCHEMA, causes=CAUSES)
    seen = []

    def obeys(N):
        seen.append(len(N))
        assert (np.round(N[:, 2] / N[:, 1] ** 2, 1) == N[:, 3]).all()

    share, balls = type(explainer.fitted_).share, SearchTable.nearest_balls
    monkeypatch.setattr(type(explainer.fitted_), "share", lambda self, N, labels: (obeys(N), share(self, N, labels))[1])
    monkeypatch.setattr(SearchTable, "nearest_balls", lambda self, N, *how: (obeys(N), balls(self, N, *how))[1])
    rows = refused(10)
    answers = explainer.explain(rows, "yes")
    assert sum(seen) > 100
    whole = explainer.fitted_.space.form.numbers(answers.to_frame()[TABLE.columns])
    labels = np.full(len(whole), explainer.classes_.tolist().index("yes"))
    assert answers.to_frame()["plausibility"].tolist() == share(explainer.fitted_, whole, labels).tolist()


def test_the_paper_never_releases_what_is_computed():
    by_bmi = lambda rows: np.where(rows["bmi"] > 26, "no", "yes")  # noqa: E731
    schema = Schema.infer(TABLE, immutable=["height", "age", "weight"])
    explainer = ONBMACF(strategy="paper").fit(TABLE, by_bmi, schema=schema, causes=CAUSES)
    answers = explainer.explain(refused(8, Of(by_bmi)), "yes")
    assert any(one.counterfactuals for one in answers)
    for one in answers:
        for found in one.counterfactuals:
            assert "bmi" not in found.changed
            assert found.released


def test_every_view_says_what_is_done_and_what_follows(explainer):
    answers = explainer.explain(refused(1), "yes")
    found = answers[0].counterfactuals[0]
    assert (found.actions, found.effects) == (("weight",), ("bmi",))
    before, after = found.factual["bmi"], found.values["bmi"]
    assert after == 26.0
    after = 26
    assert f" (bmi would then be {after} instead of {before}), the model would say 'yes'" in answers.sentences()[0]
    assert f"then bmi: {before} \u2192 {after}" in answers._repr_html_()
    assert f"(then bmi {before} -> {after})" in repr(found)
    assert answers.changes()["kind"].tolist() == ["action", "effect"]
    assert found.changes()["kind"].tolist() == ["action", "effect"]
    assert answers.to_frame()["effects"].tolist() == ["bmi"]
    assert answers.to_frame(only_changes=True)["bmi"].item() == after
    record = answers.to_dicts()[0]["counterfactuals"][0]
    assert record["effects"] == [{"feature": "bmi", "before": before, "after": after}]
    assert record["semifactual"]["effects"][0]["feature"] == "bmi"
    assert pickle.loads(pickle.dumps(answers))[0].counterfactuals[0].effects == ("bmi",)
    assert answers[:1][0].counterfactuals[0].effects == ("bmi",)


def test_names_that_people_use_are_used_for_what_follows_too():
    schema = Schema.infer(TABLE, immutable=["height", "age"], labels={"bmi": {"name": "body mass index"}})
    explainer = ONBMACF().fit(TABLE, FOREST, schema=schema, causes=CAUSES)
    assert "(body mass index would then be" in explainer.explain(refused(1), "yes").sentences()[0]


def test_a_proof_says_that_causes_are_not_read_and_asking_about_all_proves():
    answers = ONBMACF().fit(TABLE, LINEAR, schema=SCHEMA, causes=CAUSES).explain(refused(2, LINEAR), "yes", prove=True)
    assert all(one.certificate.reason.startswith("not with causes") for one in answers)
    assert "Not proven (not with causes" in answers.sentences()[0]
    rng = np.random.default_rng(0)
    small = pd.DataFrame({"a": rng.integers(0, 6, 80), "b": rng.integers(0, 6, 80)})
    small["sum"] = small["a"] + small["b"]
    above = lambda rows: np.asarray(rows["sum"] > 6, dtype=int)  # noqa: E731
    explainer = ONBMACF().fit(small, above, causes=Causes({"sum": lambda rows: rows["a"] + rows["b"]}))
    row = small[(small["a"] == 2) & (small["b"] == 3)].iloc[[0]]
    one = explainer.explain(row, 1, prove=True)[0]
    assert one.certificate.kind == "nearest"
    assert "by asking about all 35 allowed changes" in one.certificate.how
    assert one.counterfactuals[0].values["sum"] == 7
    assert explainer.explain(row, 1, vary=["a"])[0].counterfactuals[0].values["a"] == 4
    held = explainer.explain(row, 1, vary=["a"], rules={"features": {"a": {"high": 3}}}, prove=True)[0]
    assert held.status == "infeasible"


def test_one_feature_alone_takes_its_effects_along(explainer):
    found = explainer.responsiveness(refused(3), "yes")
    assert "bmi" not in set(found["feature"])
    reached = found[(found["feature"] == "weight") & (found["n_reached"] > 0)]
    assert len(reached)


def test_what_would_be_private_is_refused():
    with pytest.raises(ParameterError, match="private moves rows to means, which obey no equation"):
        ONBMACF(private=5).fit(TABLE, FOREST, schema=SCHEMA, causes=CAUSES)


def test_a_step_rule_binds_actions_and_not_what_follows():
    schema = Schema.infer(TABLE, immutable=["height", "age"], rules={"features": {"savings": {"step": 500}}})
    answers = ONBMACF().fit(TABLE, FOREST, schema=schema, causes=CAUSES).explain(refused(30), "yes")
    actions = [one.counterfactuals[0] for one in answers if one.counterfactuals]
    assert all(found.values["savings"] % 500 == 0 for found in actions if "savings" in found.actions)
    assert any("savings" in found.effects for found in actions)
    assert Rule(step=500).kinds


def test_what_a_proof_finds_has_its_effects(monkeypatch):
    """The search is kept from finding anything, so that the proof does."""
    from onbmacf._explain import certified

    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(0, 6, 80), "b": rng.integers(0, 6, 80)})
    table["sum"] = table["a"] + table["b"]
    above = lambda rows: np.asarray(rows["sum"] > 6, dtype=int)  # noqa: E731
    explainer = ONBMACF().fit(table, above, causes=Causes({"sum": lambda rows: rows["a"] + rows["b"]}))
    known = certified.certified
    nothing = lambda asker, found: known(asker, take(found, np.zeros(len(found.factual), dtype=bool)))  # noqa: E731
    monkeypatch.setattr(certified, "certified", nothing)
    one = explainer.explain(table[table["sum"] == 5].iloc[[0]], 1, prove=True)[0]
    assert one.counterfactuals[0].values["sum"] == 7
    assert one.counterfactuals[0].effects == ("sum",)


def test_members_of_a_committee_see_the_whole_point():
    strict = lambda rows: np.where(  # noqa: E731
        np.round(rows["weight"] / rows["height"] ** 2, 1) == rows["bmi"], FOREST.predict(rows), "no"
    )
    both = {"committee": [strict, FOREST], "agreement": 1.0}
    answers = ONBMACF(**both).fit(TABLE, FOREST, schema=SCHEMA, causes=CAUSES).explain(refused(5), "yes")
    assert (answers.statuses == "found").all()
    assert all(one.counterfactuals[0].stability == 1.0 for one in answers)


def test_a_semifactual_is_possible_too():
    """Between 4 and 6 there is no such thing as the effect, and just beyond it the answers begin."""
    rng = np.random.default_rng(0)
    x = np.round(np.concatenate([rng.uniform(0, 4, 100), rng.uniform(6, 10, 100)]), 2)
    table = pd.DataFrame({"x": x, "y": 2 * x})
    gap = lambda rows: (2 * rows["x"]).where((rows["x"] <= 4) | (rows["x"] >= 6))  # noqa: E731
    explainer = ONBMACF().fit(table, lambda rows: (rows["y"] > 12.1).astype(int), causes=Causes({"y": gap}))
    found = explainer.explain(pd.DataFrame({"x": [1.0], "y": [2.0]}), 1)[0].counterfactuals[0]
    assert found.values["y"] == 2 * found.values["x"]
    assert 1 < found.semifactual.values["x"] <= 4
    assert found.semifactual.values["y"] == 2 * found.semifactual.values["x"]


def test_a_small_budget_does_not_leave_a_change_of_what_is_computed():
    by_bmi = lambda rows: np.where(rows["bmi"] > 26, "no", "yes")  # noqa: E731
    schema = Schema.infer(TABLE, immutable=["height", "age", "weight"])
    for most in range(8, 30, 3):
        explainer = ONBMACF(strategy="paper", max_model_rows=most).fit(TABLE, by_bmi, schema=schema, causes=CAUSES)
        for one in explainer.explain(refused(8, Of(by_bmi)), "yes"):
            assert all("bmi" not in found.changed for found in one.counterfactuals)


@pytest.mark.parametrize("strategy", ["refined", "paper"])
@pytest.mark.parametrize("fillable", [(), ("weight",)])
def test_rows_that_lack_a_cause_or_an_effect_change_nothing_that_cannot_follow(strategy, fillable):
    table = TABLE.drop(columns="age").astype({"income": float})
    table.loc[:30, ["weight", "bmi"]] = np.nan
    table.loc[20:50, "savings"] = np.nan
    table.loc[40:70, "income"] = np.nan
    says = lambda rows: np.where(  # noqa: E731
        (rows["bmi"].fillna(30) > 26) | (rows["savings"].fillna(5000) < 6000), "no", "yes"
    )
    causes = Causes({"bmi": CAUSES.effects["bmi"], "savings": ["income"]})
    schema = Schema.infer(table, immutable=["height"], fillable=fillable)
    answers = ONBMACF(strategy=strategy).fit(table, says, schema=schema, causes=causes).explain(table.iloc[:90], "yes")
    n_filled = 0
    for one in answers:
        for found in one.counterfactuals:
            before, after = found.factual, found.values
            n_filled += np.isnan(before["weight"]) and not np.isnan(after["weight"])
            if "weight" in found.changed:
                assert round(after["weight"] / after["height"] ** 2, 1) == after["bmi"]
            assert np.isnan(after["savings"]) == np.isnan(before["savings"])
            if "income" in found.changed and "savings" not in found.changed and not np.isnan(before["savings"]):
                assert "savings" in found.effects
    assert (n_filled > 0) == bool(fillable)
