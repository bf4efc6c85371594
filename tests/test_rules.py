"""The user's rules: honoured by every strategy, checked by code that shares nothing with the search."""

import itertools
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amounts import examples
from onbmacf import ONBMACF, Relaxation, Rule, Rules, Schema, audit
from onbmacf.errors import ParameterError

STRATEGIES = ["refined", "paper"]


def breaks(before, after, rules):
    """Return the rules that a counterfactual breaks, read off the plain values."""
    found = []
    for name, rule in rules.features.items():
        old, new = before[name], after[name]
        if old == new:
            continue
        if (rule.direction == "up" and new < old) or (rule.direction == "down" and new > old):
            found.append((name, "direction"))
        if (rule.low > -np.inf or rule.high < np.inf) and not rule.low <= new <= rule.high:
            found.append((name, "range"))
        if rule.step is not None:
            steps = (new - (rule.low if rule.low > -np.inf else 0)) / rule.step
            if abs(steps - round(steps)) > 1e-6:
                found.append((name, "step"))
        if rule.allowed is not None and new not in rule.allowed:
            found.append((name, "allowed"))
        if (old, new) in rule.forbidden:
            found.append((name, "forbidden"))
    for low, high in rules.at_most:
        if (before[low], before[high]) != (after[low], after[high]) and after[low] > after[high]:
            found.append((low, high))
    changed = [name for name in before.index if before[name] != after[name]]
    if rules.max_changes is not None and len(changed) > rules.max_changes:
        found.append(("max_changes", len(changed)))
    return found


def all_broken(answers, rules):
    return [broken for a in answers for c in a.counterfactuals if (broken := breaks(c.factual, c.values, rules))]


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(3)
    n = 400
    return pd.DataFrame(
        {
            "income": rng.integers(10, 100, n) * 100,
            "debt": rng.integers(0, 80, n) * 100,
            "years": rng.integers(0, 40, n),
            "rate": rng.random(n).round(3),
            "job": rng.choice(["none", "part", "full"], n),
            "home": rng.choice(["rent", "own"], n),
        }
    )


def loan(rows):
    """A score that debt lowers and all else raises."""
    job = rows["job"].map({"none": 0, "part": 1, "full": 2}).astype(int)
    score = rows["income"] - rows["debt"] + 80 * rows["years"] + 900 * job + 700 * (rows["home"] == "own")
    return np.where(score - 2000 * rows["rate"] > 4200, "yes", "no")


RULE_SETS = {
    "directions": Rules(
        {"income": Rule(direction="up"), "debt": Rule(direction="down"), "rate": Rule(direction="down")}
    ),
    "ranges": Rules({"income": Rule(low=2000, high=9000), "rate": Rule(low=0.1, high=0.8), "years": Rule(high=30)}),
    "steps": Rules({"income": Rule(step=500), "debt": Rule(low=250, step=1000), "rate": Rule(step=0.05)}),
    "levels": Rules({"job": Rule(allowed=["part", "none"]), "home": Rule(forbidden=[("rent", "own")])}),
    "together": Rules(
        {"years": Rule(direction="up"), "income": Rule(weight=5.0)}, at_most=[("debt", "income")], max_changes=2
    ),
}


def test_a_direction_that_is_none_is_refused_when_the_rule_is_made():
    with pytest.raises(ParameterError, match="direction must be one of 'up', 'down', got 'decrease'"):
        Rule(direction="decrease")


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", RULE_SETS)
def test_no_counterfactual_breaks_a_rule(people, strategy, name):
    rules = RULE_SETS[name]
    schema = Schema.infer(people, rules=rules)
    explainer = ONBMACF(3, strategy=strategy).fit(people, loan, schema=schema)
    rejected = people[loan(people) == "no"].head(60)
    answers = explainer.explain(rejected, target="yes")
    assert not all_broken(answers, rules)
    found = answers.to_frame()
    assert (loan(found) == "yes").all()
    assert (answers.statuses == "found").mean() > 0.8


def test_rules_change_the_answer(people):
    rejected = people[loan(people) == "no"].head(60)
    free = ONBMACF().fit(people, loan).explain(rejected, target="yes")
    assert any(all_broken(free, rules) for rules in RULE_SETS.values())


def test_a_heavier_feature_is_changed_less(people):
    rejected = people[loan(people) == "no"].head(60)
    counts = []
    for weight in (0.2, 1.0, 5.0):
        schema = Schema.infer(people, rules=Rules({"income": Rule(weight=weight)}))
        answers = ONBMACF().fit(people, loan, schema=schema).explain(rejected, target="yes")
        counts.append((answers.changes()["feature"] == "income").sum())
    assert counts[0] > counts[1] > counts[2]


def blocked(people, release, rules=None):
    rules = rules or Rules({name: Rule(direction="down") for name in ("income", "years")})
    schema = Schema.infer(people, immutable=["job", "home", "debt", "rate"], rules=rules)
    explainer = ONBMACF(release=release).fit(people, loan, schema=schema)
    return explainer.explain(people[loan(people) == "no"].head(20), target="yes")


def test_an_infeasible_row_names_the_rule_that_blocks(people):
    answers = blocked(people, "nothing")
    assert set(answers.statuses) <= {"none_found", "infeasible"}
    assert all(answer.would_need for answer in answers)
    blocked_by_one = [answer for answer in answers if answer.would_need == ("the rule for 'income' (only down)",)]
    assert blocked_by_one
    for answer in blocked_by_one:
        assert answer.reason.endswith("One is found without the rule for 'income' (only down).")


def test_the_immutables_that_block_are_named(people):
    schema = Schema.infer(people, immutable=["income", "debt", "years", "job", "home"])
    explainer = ONBMACF(release="nothing").fit(people, loan, schema=schema)
    answers = explainer.explain(people[loan(people) == "no"], target="yes")
    stuck = [answer for answer in answers if answer.status in ("none_found", "infeasible")]
    assert len(stuck)
    assert {name for answer in stuck for name in answer.would_need} <= set(schema.immutable)
    assert {answer.would_need for answer in stuck} >= {("income",)}
    for answer in stuck:
        assert f"One is found if {answer.would_need[0]}" in answer.reason


def test_on_request_as_few_rules_as_will_do_are_released(people):
    answers = blocked(people, "rules", Rules({"income": Rule(direction="down"), "years": Rule(direction="up")}))
    for answer in answers:
        for found in answer.counterfactuals:
            if found.relaxation is Relaxation.RULES:
                assert "Found without the rule for" in answer.reason
    assert (answers.statuses == "found").all()
    assert (answers.to_frame()["relaxation"] == Relaxation.RULES).any()


def test_where_immutable_features_and_rules_are_released_both_are_said():
    """Both of x and r must rise: one may not by a rule, the other not at all. Each answer says what it needs itself."""
    table = pd.DataFrame(np.random.default_rng(4).random((80, 3)).round(2), columns=["x", "r", "s"])
    low = pd.DataFrame({"x": [0.2], "r": [0.2], "s": [0.5]})
    model = lambda rows: ((rows["x"] > 0.6) & (rows["r"] > 0.6)).astype(int)  # noqa: E731
    schema = Schema.infer(table, immutable=["x"], rules=Rules({"r": Rule(direction="down")}))
    answers = ONBMACF(release="rules").fit(table, model, schema=schema).explain(low)
    (found,) = answers[0].counterfactuals
    assert (found.relaxation, found.released) == (Relaxation.BOTH, ("x", "r"))
    assert answers[0].reason.endswith("Found if x may change and without the rule for 'r' (only down).")
    said = "keeps the immutable features and every rule was found, so some of them were released."
    assert said in answers.sentences()[0]
    assert audit.released(answers, schema)["n_rows"].tolist() == [1]
    assert audit.overview(answers)["released"] == 1


def test_of_several_counterfactuals_every_released_feature_is_named():
    """x must rise, and r or q with it; all three are immutable, so that the ways differ in what they need."""
    table = pd.DataFrame(np.random.default_rng(4).random((120, 4)).round(2), columns=["x", "r", "q", "s"])
    model = lambda rows: ((rows["x"] > 0.6) & ((rows["r"] > 0.6) | (rows["q"] > 0.6))).astype(int)  # noqa: E731
    schema = Schema.infer(table, immutable=["x", "r", "q"])
    low = pd.DataFrame({"x": [0.2], "r": [0.3], "q": [0.2], "s": [0.5]})
    answer = ONBMACF(3, release="immutable").fit(table, model, schema=schema).explain(low)[0]
    assert {found.released for found in answer.counterfactuals} == {("x", "r"), ("x", "q")}
    assert answer.reason.endswith("Found if x, r and q may change.")
    assert {found.relaxation for found in answer.counterfactuals} == {Relaxation.IMMUTABILITY}


def test_a_factual_that_breaks_a_rule_itself_is_allowed_and_said(people):
    rules = Rules({"years": Rule(high=10)}, at_most=[("debt", "income")])
    explainer = ONBMACF().fit(people, loan, schema=Schema.infer(people, rules=rules))
    row = people[loan(people) == "no"].head(1).assign(years=30, debt=9000, income=1000)
    answer = explainer.explain(row)[0]
    assert "The row itself breaks the rules for 'years' and 'debt' <= 'income'." in answer.reason
    assert not all_broken([answer], rules)


BAD = {
    "range reversed": (Rules({"income": Rule(low=5, high=1)}), "'income': the range 5 to 1 is reversed"),
    "no level allowed": (Rules({"job": Rule(allowed=[])}), "'job': no level is allowed"),
    "unknown level": (Rules({"job": Rule(allowed=["boss"])}), "'job': unknown level 'boss'"),
    "unknown level forbidden": (Rules({"job": Rule(forbidden=[("none", "boss")])}), "unknown level 'boss'"),
    "unknown feature": (Rules({"incom": Rule(direction="up")}), r"'incom': .* Did you mean 'income'\?"),
    "unknown in order": (Rules(at_most=[("debt", "wages")]), "'wages'"),
    "circle": (Rules(at_most=[("debt", "income"), ("income", "rate"), ("rate", "debt")]), "circle"),
    "direction of a category": (Rules({"job": Rule(direction="up")}), "'job': a direction needs an order"),
    "range of a category": (Rules({"job": Rule(low=1)}), "'job': a range or step needs numbers"),
    "levels of a number": (Rules({"debt": Rule(allowed=[1])}), "'debt': levels need a feature with levels"),
    "order of a category": (Rules(at_most=[("job", "debt")]), "'job' has levels"),
    "step": (Rules({"debt": Rule(step=0)}), "'debt': step must be above 0"),
    "weight": (Rules({"debt": Rule(weight=-1)}), "'debt': weight must be above 0"),
    "weight of next to nothing": (Rules({"debt": Rule(weight=1e-308)}), r"'debt': weight must be .* got 1e-308"),
    "weight of nothing": (Rules({"debt": Rule(weight=Fraction(1, 10**400))}), "'debt': weight must be .* got 0.0"),
    "weight beyond distances": (Rules({"debt": Rule(weight=1e308)}), r"'debt': weight must be .* got 1e\+308"),
    "weight beyond int64": (
        Rules({"debt": Rule(weight=2**64)}),
        r"'debt': weight must be .* got 1.8446744073709552e\+19",
    ),
    "step of nothing": (Rules({"debt": Rule(step=np.longdouble("1e-4000"))}), "'debt': step must be above 0, got 0.0"),
    "step too small to count": (Rules({"debt": Rule(step=5e-324)}), "'debt': step is 4.94066e-324, too small"),
    "steps from too far": (Rules({"debt": Rule(low=-1e308, step=1)}), r"'debt': step is 1, too small .* -1e\+308"),
    "low too far": (Rules({"debt": Rule(low=2**63)}), r"'debt': low is 9.22337e\+18, too far"),
}


@pytest.mark.parametrize("rules, pattern", BAD.values(), ids=BAD)
def test_contradictory_rules_are_refused_before_any_work(people, rules, pattern):
    asked = []
    with pytest.raises(ParameterError, match=pattern):
        ONBMACF().fit(people, lambda rows: asked.append(1), schema=Schema.infer(people, rules=rules))
    assert not asked


LARGE = {
    "a whole number": 10**400,
    "a fraction": Fraction(10**400),
    "a decimal": Decimal("sNaN"),
    "beyond all digits": 10**5000,
}


@pytest.mark.parametrize("value", LARGE.values(), ids=LARGE)
@pytest.mark.parametrize("field", ["low", "high", "step", "weight"])
def test_a_number_that_float64_cannot_hold_is_refused_in_a_rule(field, value):
    with pytest.raises(ParameterError, match=f"Rule: {field} must be a number"):
        Rule(**{field: value})


@pytest.mark.parametrize("field, value", [("high", 2**64), ("high", Fraction(10**300)), ("low", Fraction(1, 10**400))])
def test_a_number_in_a_rule_is_one_that_numpy_computes_with(people, field, value):
    rules, rows = Rules({"debt": Rule(**{field: value})}), people.head(3)
    plain = Rules({"debt": Rule(**{field: float(value)})})
    explainer = ONBMACF().fit(people, loan)
    pd.testing.assert_frame_equal(
        explainer.explain(rows, rules=rules).to_frame(), explainer.explain(rows, rules=plain).to_frame()
    )


def test_max_changes_must_be_a_count():
    with pytest.raises(ParameterError, match="max_changes"):
        Rules(max_changes=0)


def test_rules_from_a_file(people, tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(
        'max_changes = 2\nat_most = [["debt", "income"]]\n[features.years]\ndirection = "up"\n'
        '[features.job]\nforbidden = [["full", "none"]]\n[features.rate]\nlow = 0.1\nhigh = 0.9\nstep = 0.1\n'
    )
    rules = Rules.from_toml(path)
    assert rules == Rules(
        {
            "years": Rule(direction="up"),
            "job": Rule(forbidden=[("full", "none")]),
            "rate": Rule(low=0.1, high=0.9, step=0.1),
        },
        at_most=[("debt", "income")],
        max_changes=2,
    )
    path.write_text('[features.years]\ndirectoin = "up"\n')
    with pytest.raises(ParameterError, match=r"'directoin'.*Did you mean 'direction'"):
        Rules.from_toml(path)
    path.write_text("= nonsense")
    with pytest.raises(ParameterError, match=r"rules\.toml"):
        Rules.from_toml(path)


@st.composite
def small_cases(draw):
    """A grid of two integers and a category, a random labelling of it, and random rules."""
    rows = list(itertools.product(range(4), range(4), "abc"))
    labels = draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)).filter(lambda x: 0 < sum(x) < len(x)))
    rules = Rules(
        {
            "x": Rule(
                direction=draw(st.sampled_from([None, "up", "down"])), high=draw(st.sampled_from([2, 3, np.inf]))
            ),
            "k": Rule(forbidden=draw(st.lists(st.sampled_from([("a", "b"), ("b", "c"), ("c", "a")]), max_size=2))),
        },
        at_most=draw(st.sampled_from([(), (("x", "y"),)])),
        max_changes=draw(st.sampled_from([None, 1, 2])),
    )
    return rows, dict(zip(rows, labels, strict=True)), rules, draw(st.sampled_from(rows))


@pytest.mark.filterwarnings("ignore")
@examples(60, derandomize=True)
@given(small_cases())
def test_infeasible_is_never_said_where_a_fitted_row_is_reachable(case):
    """The reach: a fitted row of the target label that keeps the rules as it stands, if it is a ball's centre."""
    rows, label_of, rules, factual = case
    table = pd.DataFrame(rows, columns=["x", "y", "k"])
    model = lambda frame: np.array([label_of[tuple(row)] for row in frame.itertuples(index=False)])  # noqa: E731
    schema = Schema.infer(table, rules=rules)
    before = pd.Series(dict(zip(table.columns, factual, strict=True)), dtype=object)
    for strategy in STRATEGIES:
        explainer = ONBMACF(strategy=strategy, release="nothing", predict_chunk=64)
        if strategy == "paper":
            explainer.set_params(search="exhaustive")
        explainer.fit(table, model, schema=schema)
        answer = explainer.explain(pd.DataFrame([factual], columns=table.columns))[0]
        centers = table.iloc[explainer.cover_.centers[explainer.classes_[explainer.cover_.labels] != label_of[factual]]]
        reachable = [row for _, row in centers.iterrows() if not breaks(before, row, rules)]
        if reachable:
            assert answer.status == "found"
        for found in answer.counterfactuals:
            assert not breaks(before, found.values, rules)
            assert label_of[tuple(found.values)] != label_of[factual]
