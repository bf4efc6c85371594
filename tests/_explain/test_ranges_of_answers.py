"""Ranges as `explain` returns them: true, within the rules and the limits, the same alone and in a batch."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF, Rule, Rules, Schema
from onbmacf._explain.ranges import AT_LEAST, FEWEST, N_POINTS, USUAL_TURNS, Purse, SpentError

pytestmark = pytest.mark.filterwarnings("ignore::onbmacf.errors.OnbmacfWarning")


@pytest.fixture(scope="module")
def people():
    """Debts, incomes, weights, levels: 200 rows with a column of every kind."""
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "income": random.integers(10, 90, 200),
            "debt": np.round(random.uniform(0, 60, 200), 1),
            "weight": np.round(random.uniform(40, 120, 200), 2).astype(np.float32),
            "city": random.choice(["A", "B", "C", "D"], 200),
            "size": pd.Categorical(random.choice(["S", "M", "L"], 200), categories=["S", "M", "L"], ordered=True),
            "insured": random.choice([True, False], 200),
        }
    )


def lender(rows):
    """Grants a credit when debt is low against income; city B and insurance help."""
    score = rows["income"] - rows["debt"] + 15 * (rows["city"] == "B") + 10 * rows["insured"]
    return np.where(score > 40, "yes", "no")


def all_ranges(answers):
    return [(found, own) for answer in answers for found in answer.counterfactuals for own in found.ranges.values()]


def moved(found, **values):
    """Return the counterfactual with other values, one row per value, in its own dtypes."""
    n = len(next(iter(values.values())))
    rows = pd.DataFrame([found.values.to_list()] * n, columns=found.values.index).infer_objects()
    return rows.assign(**values)


def test_a_range_ends_where_the_label_is_lost(people):
    answers = ONBMACF(n_counterfactuals=2).fit(people, lender).explain(people.head(30), "yes", ranges=True)
    numbers = [(found, own) for found, own in all_ranges(answers) if own.feature in ("income", "debt")]
    assert len(numbers) > 10
    for found, own in numbers:
        inside = moved(found, **{own.feature: np.linspace(float(own.low), float(own.high), 7)})
        assert set(lender(inside)) == {"yes"}
        if own.feature == "debt":
            assert own.reaches_low
            assert own.high == round(float(own.high), 1)
            assert str(own) == f"at most {own.high}".removesuffix(".0")
            assert lender(moved(found, debt=[own.high + 0.101])) == ["no"]
        else:
            assert own.reaches_high
            assert own.n_asked == own.high - own.low + 1
            assert str(own) == f"{'at least' if own.low < own.high else 'exactly'} {own.low}"
            assert lender(moved(found, income=[own.low - 1])) == ["no"]


def test_levels_are_those_that_hold(people):
    model = lambda rows: np.where(  # noqa: E731
        rows["city"].isin(["B", "D"]) & (rows["size"].astype(str) != "S") | rows["insured"], "yes", "no"
    )
    schema = Schema.infer(people, immutable=["insured"])
    answers = ONBMACF(n_counterfactuals=3).fit(people, model, schema=schema).explain(people.head(40), ranges=True)
    said = {(found.label, str(own)) for found, own in all_ranges(answers) if len(found.changed) == 1}
    assert said == {("yes", "one of B, D"), ("yes", "one of M, L"), ("no", "one of A, C"), ("no", "exactly S")}
    both = [found for found, _ in all_ranges(answers) if set(found.changed) == {"city", "size"}]
    assert {str(own) for found in both for own in found.box.values()} == {"one of B, D", "one of M, L"}


def test_the_rules_of_the_question_bound_every_range(people):
    rules = Rules(
        {
            "income": Rule(direction="up", high=70, step=5),
            "debt": Rule(low=2.05, high=50, step=0.25),
            "weight": Rule(direction="down"),
            "city": Rule(allowed=["A", "B"]),
            "size": Rule(forbidden=[("S", "L")]),
        },
        at_most=[("debt", "income")],
    )
    schema = Schema.infer(people, immutable=["insured"]).with_rules(rules)
    model = lambda rows: np.where(  # noqa: E731
        rows["income"] + rows["debt"] + 9.0 * (rows["city"] == "B") + rows["weight"] % 7 > 75, "yes", "no"
    )
    explainer = ONBMACF(n_counterfactuals=3).fit(people, model, schema=schema)
    answers = explainer.explain(people.head(30), ranges=True)
    kept, form = explainer.fitted_.constraints, explainer.fitted_.space.form
    seen = set()
    for found, own in all_ranges(answers):
        seen.add(own.feature)
        values = own.levels if own.levels is not None else [own.low, own.high]
        N = form.numbers(pd.DataFrame([{**found.values, own.feature: value} for value in values]))
        before = np.repeat(form.numbers(found.factual.to_frame().T), len(N), axis=0)
        assert kept.allowed(N, before).all(), (found.factual, own)
        if own.levels is None:
            assert type(own.low) is type(own.high) is type(found.values[own.feature])
    assert seen >= {"income", "debt", "weight", "city"}


def test_a_range_of_a_released_rule_is_not_bound_by_it():
    table = pd.DataFrame({"age": np.arange(20, 60), "pay": np.arange(40) % 7})
    schema = Schema.infer(table).with_rules(Rules({"age": Rule(direction="up"), "pay": Rule(high=4)}))
    model = lambda rows: np.where(rows["age"] + (rows["pay"] > 5) >= 30, "old", "young")  # noqa: E731
    answers = ONBMACF(release="rules").fit(table, model, schema=schema).explain(table.iloc[[30]], ranges=True)
    assert answers[0].counterfactuals[0].released == ("age",)
    assert "holds for age (released) at most 29 (of " in answers.sentences()[0]


def test_the_same_ranges_alone_in_a_batch_and_in_any_order(heart):
    from sklearn.ensemble import RandomForestClassifier

    names = ["tobacco", "ldl", "adiposity", "age"]
    wild = RandomForestClassifier(15, random_state=0).fit(heart[names], np.arange(len(heart)) % 2)
    explainer = ONBMACF(n_counterfactuals=2).fit(heart[names], wild)
    rows = heart[names].iloc[:6]
    whole = explainer.explain(rows, ranges=True).to_dicts()
    assert [explainer.explain(rows.iloc[[at]], ranges=True).to_dicts()[0] for at in range(3)] == whole[:3]
    assert explainer.explain(rows.iloc[::-1], ranges=True).to_dicts()[::-1] == whole
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    explainer.explain(rows.iloc[:1], ranges=True)
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002


def test_the_answers_are_the_same_with_and_without_ranges(people):
    explainer = ONBMACF().fit(people, lender)
    plain, ranged = explainer.explain(people.head(9)), explainer.explain(people.head(9), ranges=True)
    pd.testing.assert_frame_equal(plain.to_frame(), ranged.to_frame().drop(columns=["ranges", "box"]))
    assert "range" not in plain.changes()
    assert plain[0].counterfactuals[0].ranges is plain[0].counterfactuals[0].box is None
    assert plain.ranges().empty
    assert list(plain.ranges().columns) == list(ranged.ranges().columns)
    assert "ranges" not in plain.to_dicts()[0]["counterfactuals"][0]
    for count in ("n_questions", "n_calls", "n_model_rows"):
        assert getattr(ranged, count) > getattr(plain, count)


def test_the_values_of_the_semifactual_are_asked_one_by_one(heart):
    asked = set()

    def model(rows):
        asked.update(zip(rows["tobacco"], rows["ldl"], strict=True))
        return (rows["tobacco"] > 4.5) | (rows["ldl"] > 4)

    table = heart[["tobacco", "ldl"]]
    found = ONBMACF().fit(table, model).explain(table.iloc[[3]], False, ranges=True)[0].counterfactuals[0]
    kept = found.semifactual.values
    assert set(found.changed) == {"tobacco", "ldl"}
    assert {(kept["tobacco"], found.values["ldl"]), (found.values["tobacco"], kept["ldl"])} <= asked


def test_the_middle_between_two_fitted_values_is_asked():
    """Trees split there; the hole is far narrower than a readable step."""
    random = np.random.default_rng(0)
    table = pd.DataFrame({"dose": np.sort(random.uniform(0, 9, 120)), "x": random.integers(0, 9, 120)})
    hole = (table["dose"][60] + table["dose"][61]) / 2
    model = lambda rows: (rows["dose"] > 2) & ((rows["dose"] - hole).abs() > 1e-9)  # noqa: E731
    schema = Schema.infer(table, immutable=["x"])
    found = ONBMACF(plausibility=0).fit(table, model, schema=schema).explain(table.head(1), ranges=True)[0]
    own = found.counterfactuals[0].ranges["dose"]
    assert own.low == pytest.approx(2.001)
    assert hole - 0.001 <= own.high < hole


def test_a_semifactual_never_lies_in_the_box(people):
    """Both are printed: one says that the label holds there, the other that it does not."""
    bumpy = lambda rows: np.where((rows["debt"] * 7).round() % 5 + rows["income"] / 9 > 6, "yes", "no")  # noqa: E731
    n = 0
    for answer in ONBMACF(n_counterfactuals=3).fit(people, bumpy).explain(people.head(20), ranges=True):
        for found in answer.counterfactuals:
            kept, box = found.semifactual, found.box
            if kept is not None:
                n += 1
                assert not all(within(box[name], kept.values[name]) for name in found.changed)
    assert n > 10


def within(own, value):
    return value in own.levels if own.levels is not None else own.low <= value <= own.high


def test_a_point_on_which_the_model_raises_or_says_something_new_does_not_hold(people):
    def brittle(rows):
        if rows["debt"].between(10, 11).any():
            raise ValueError("no such debt")
        return np.where(rows["income"] == 75, "maybe", lender(rows))

    fitted = people[~people["debt"].between(10, 11) & (people["income"] != 75)]
    answers = ONBMACF(n_counterfactuals=2).fit(fitted, brittle).explain(fitted.head(12), "yes", ranges=True)
    checked = [own for _, own in all_ranges(answers) if own.feature in ("debt", "income")]
    assert {own.feature for own in checked} == {"debt", "income"}
    for own in checked:
        assert not within(own, 10.5 if own.feature == "debt" else 75), own


class Slope:
    """A model with probabilities: the higher the income, the surer."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, rows):
        sure = 1 / (1 + np.exp((40 - rows["income"].to_numpy(dtype=float)) / 10))
        return np.column_stack([1 - sure, sure])

    def predict(self, rows):
        return self.classes_[(self.predict_proba(rows)[:, 1] > 0.5).astype(int)]


def test_the_probability_asked_for_holds_in_the_whole_range(people):
    explainer = ONBMACF().fit(people, Slope())
    low = {}
    for least in (0.0, 0.8):
        answers = explainer.explain(people[people["income"] < 30].head(5), min_probability=least, ranges=True)
        low[least] = {own.low for _, own in all_ranges(answers) if own.feature == "income"}
    assert low == {0.0: {41}, 0.8: {54}}


@pytest.mark.parametrize("limit", [{"max_model_rows": 3000}, {"max_model_calls": 40}])
def test_ranges_get_what_a_limit_leaves(people, limit):
    table = people[["income", "debt"]]
    explainer = ONBMACF(**limit).fit(table, lambda rows: rows["income"] - rows["debt"] > 30)
    for at in range(8):
        answers = explainer.explain(table.iloc[[at]], ranges=True)
        spent = {"max_model_rows": answers.n_questions, "max_model_calls": answers.n_calls}
        assert all(spent[name] <= most for name, most in limit.items())
        assert answers[0].counterfactuals[0].ranges is not None


def test_no_limit_is_exceeded_and_none_is_spent_in_vain(people):
    table, row = people[["income", "debt"]], people[["income", "debt"]].iloc[[1]]
    model = lambda rows: (rows["income"] > 60) & (rows["debt"].round(1) * 10 % 4 < 2)  # noqa: E731
    explainer = ONBMACF().fit(table, model)
    had = set()
    for most in range(200, 3200, 300):
        limited = explainer.with_options(max_model_rows=most)
        answers = limited.explain(row, ranges=True)
        assert answers.n_questions <= most
        had.add(answers[0].counterfactuals[0].ranges is not None)
        if most < 300:
            assert answers.n_questions == limited.explain(row).n_questions
    for most in range(6, 30, 4):
        limited = explainer.with_options(max_model_calls=most)
        assert limited.explain(row, ranges=True).n_calls <= most
    sure = ONBMACF(n_counterfactuals=2).fit(table, Slope())
    for most in range(8, 24):
        assert sure.with_options(max_model_calls=most).explain(row, ranges=True).n_calls <= most
    assert had == {False, True}


@pytest.mark.parametrize("limit", [{"max_model_rows": 60}, {"max_model_calls": 6}])
def test_a_limit_that_leaves_nothing_leaves_no_ranges(people, limit):
    answers = ONBMACF(**limit).fit(people, lender).explain(people.head(6), ranges=True)
    assert set(answers.changes()["range"]) == {""}
    assert answers.ranges().empty
    assert set(answers.to_frame()["ranges"]) == {""}
    assert all("holds for" not in sentence for sentence in answers.sentences())
    assert answers.n_questions <= 6 * limit.get("max_model_rows", 1 << 20)


def test_values_of_the_paper_strategy_lie_in_their_ranges(heart):
    model = lambda rows: rows["tobacco"] + rows["ldl"] > 10  # noqa: E731
    table = heart[["tobacco", "ldl", "sbp"]]
    answers = ONBMACF(strategy="paper").fit(table, model).explain(table.head(12), ranges=True)
    assert len(all_ranges(answers)) >= 12
    for found, own in all_ranges(answers):
        assert own.low <= found.values[own.feature] <= own.high
        assert all(model(moved(found, **{own.feature: [own.low, own.high]})) == found.label)


def test_a_value_with_many_digits_is_its_own_range_to_the_bit(heart):
    wild = lambda rows: np.sin(rows["tobacco"] * 1e5) > 0  # noqa: E731
    table = heart[["tobacco", "sbp"]]
    schema = Schema.infer(table, immutable=["sbp"])
    answers = ONBMACF(strategy="paper").fit(table, wild, schema=schema).explain(table.head(30), ranges=True)
    alone = [(found, own) for found, own in all_ranges(answers) if own.low == own.high]
    assert len(alone) > 10
    assert all(own.low == found.values["tobacco"] for found, own in alone)
    assert any(own.low != round(own.low, 2) for _, own in alone)


def test_no_counterfactual_no_range(people):
    explainer = ONBMACF().fit(people, lender)
    answers = explainer.explain(people[lender(people) == "yes"].head(3), "yes", ranges=True)
    assert set(answers.statuses) == {"already"}
    assert answers.ranges().empty
    assert len(explainer.explain(people.head(0), ranges=True)) == 0


@pytest.fixture
def ann(people):
    """An explainer of two numbers, and one row whose income must rise."""
    table = people[["income", "debt"]]
    model = lambda rows: np.where(rows["income"] - rows["debt"] > 30, "yes", "no")  # noqa: E731
    schema = Schema.infer(table, immutable=["debt"])
    row = pd.DataFrame({"income": [30], "debt": [20.0]}, index=["Ann"])
    return ONBMACF(plausibility=0).fit(table, model, schema=schema), row


def test_every_view_shows_the_ranges(ann):
    explainer, row = ann
    answers = explainer.explain(row, ranges=True)
    found = answers[0].counterfactuals[0]
    own = found.ranges["income"]
    assert (str(own), own.low, own.reaches_low, own.reaches_high) == ("at least 51", 51, False, True)
    said = f"The label 'yes' holds for income at least 51 (of {own.n_asked} points asked, all hold)."
    assert answers.sentences()[0].endswith(said)
    assert answers.changes()["range"].tolist() == found.changes()["range"].tolist() == ["at least 51"]
    assert "income: 30 \u2192 51 (at least 51)" in answers._repr_html_()
    assert answers.to_frame()["ranges"].tolist() == answers.to_frame()["box"].tolist() == ["income at least 51"]
    written = json.loads(answers.to_json())["answers"][0]["counterfactuals"][0]
    assert written["ranges"] == written["box"]
    assert (written["ranges"][0]["text"], written["ranges"][0]["low"]) == ("at least 51", 51)


def test_a_range_of_one_value_does_not_say_that_nothing_else_was_asked(people):
    model = lambda rows: np.where(rows["city"] == "B", "yes", "no")  # noqa: E731
    answers = ONBMACF().fit(people, model).explain(people[people["city"] != "B"].head(1), "yes", ranges=True)
    assert answers.sentences()[0].endswith("The label 'yes' holds for city exactly B (the answer itself).")


def test_a_report_shows_the_ranges(ann):
    pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")
    pytest.importorskip("jinja2", reason="reports need the extra 'report'")
    from onbmacf.report import audit_report

    explainer, row = ann
    plain, ranged = (audit_report(explainer, explainer.explain(row, ranges=asked)) for asked in (False, True))
    case = str(ranged.content["cases"][0])
    assert "holds for income at least 51 (of " in case
    assert "label holds for" in str(ranged.content["cases"][0]["tables"])
    assert "label holds for" not in str(plain.content["cases"][0])


def test_ranges_beside_changes_are_those_that_hold_together(people):
    table = people[["income", "debt"]]
    model = lambda rows: np.where(rows["income"] - 2 * rows["debt"] > 60, "yes", "no")  # noqa: E731
    row = pd.DataFrame({"income": [30], "debt": [20.0]})
    rules = Rules({"income": Rule(high=72)})
    answers = ONBMACF().fit(table, model, schema=Schema.infer(table, rules=rules)).explain(row, ranges=True)
    found = answers[0].counterfactuals[0]
    assert found.n_changes == 2
    assert [str(own) for own in found.ranges.values()] != [str(own) for own in found.box.values()]
    together = [str(own) for own in found.box.values()]
    assert answers.changes()["range"].tolist() == found.changes()["range"].tolist() == together
    assert all(f"({text})" in answers._repr_html_() for text in together)
    alone = replace(found, box=None)
    assert alone.changes()["range"].tolist() == [f"{own}, alone" for own in found.ranges.values()]


def test_two_changes_are_told_alone_and_together(people):
    table = people[["income", "debt"]]
    model = lambda rows: np.where((rows["income"] > 60) & (rows["debt"] < 5), "yes", "no")  # noqa: E731
    row = pd.DataFrame({"income": [30], "debt": [20.0]})
    answers = ONBMACF().fit(table, model).explain(row, "yes", ranges=True)
    sentence, found = answers.sentences()[0], answers[0].counterfactuals[0]
    assert "With the other changes as they are, the label 'yes' holds for income at least 61 (of " in sentence
    assert f"It holds for income at least 61 and debt at most 4.9 together (of {found.box['debt'].n_asked}" in sentence
    assert answers.ranges()["box_high"].tolist()[1] == 4.9


def test_a_purse_pays_what_it_holds_and_no_more():
    purse = Purse(rows=100, calls=3, chunk=50)
    purse.pay(60)  # two calls
    for n in (41, 60):
        with pytest.raises(SpentError):
            purse.pay(n)
    purse.pay(40)
    with pytest.raises(SpentError):
        Purse(rows=100, calls=1, chunk=50).pay(51)
    Purse().pay(1 << 40)


def test_too_little_for_a_few_points_is_not_spent():
    assert Purse().points(9) == Purse(rows=1 << 20).points(3) == N_POINTS
    least = USUAL_TURNS * (AT_LEAST + 4 * FEWEST)
    assert Purse(rows=2 * least).points(2) == FEWEST
    with pytest.raises(SpentError):
        Purse(rows=2 * least - 1).points(2)
