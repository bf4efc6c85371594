"""What is printed or promised is so: one test for each way in which it once was not."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from conftest import by_table
from onbmacf import ONBMACF, Relaxation, Rule, Rules, Schema, audit
from onbmacf.bench.datasets import DESCRIPTIONS, load_task
from onbmacf.errors import ParameterError

LEVELS = (0, 0.25, 0.5, 0.75, 1)


@pytest.fixture(scope="module")
def forest(heart):
    from onbmacf.datasets import load_heart

    table = heart.assign(famhist=heart["famhist"] == "Present")
    return RandomForestClassifier(30, random_state=0).fit(table, load_heart()[1]), table


def age_rule(rows):
    return np.where(rows["age"] < 30, "young", "old")


# What is printed is what was asked.


def test_values_have_the_decimals_of_the_table_or_of_its_range():
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "cents": random.uniform(0, 90_000, 300).round(2),
            "fine": random.uniform(0, 30, 300),
            "tiny": random.uniform(0, 0.05, 300),
            "own": random.uniform(0, 1, 300),
        }
    )
    model = lambda rows: (rows["cents"] / 90_000 + rows["fine"] / 30 + 20 * rows["tiny"] + rows["own"] > 2).astype(int)  # noqa: E731
    schema = Schema.infer(table, decimals={"own": 1})
    explainer = ONBMACF(3).fit(table, model, schema=schema)
    assert explainer.fitted_.space.readable == (2, 2, 5, 1)
    answers = explainer.explain(table.head(40))
    changes = answers.changes()
    assert set(changes["feature"]) == set(table.columns)
    for feature, after in zip(changes["feature"], changes["after"], strict=True):
        assert after == round(after, {"cents": 2, "fine": 2, "tiny": 5, "own": 1}[feature])
    found = answers.to_frame()
    assert (model(found[table.columns]) == found["to"]).all()
    kept = answers.batch.semifactual_values[~np.isnan(answers.batch.semifactual_distance)]
    assert (kept["tiny"].isin(table["tiny"]) | (kept["tiny"] == kept["tiny"].round(5))).all()


def test_decimals_are_for_continuous_features():
    with pytest.raises(ParameterError, match=r"decimals of 'k': for continuous features only, it is binary\."):
        Schema.infer(pd.DataFrame({"k": ["a", "b"]}), decimals={"k": 1})
    with pytest.raises(ParameterError, match="decimals names 'z', which is not a column"):
        Schema.infer(pd.DataFrame({"k": [0.5, 1.2]}), decimals={"z": 1})


def test_no_view_shows_two_values_that_look_the_same():
    table = pd.DataFrame({"x": [1.00001, 1.00002, 1.00003, 1.00004]})
    answers = ONBMACF().fit(table, lambda rows: (rows["x"] > 1.000025).astype(int)).explain(table)
    for answer in answers:
        for before, after in answer.counterfactuals[0].changes()[["before", "after"]].to_numpy():
            assert f"x were {after} instead of {before}" in answer.sentences()[0]
            assert f"x: {before} → {after}" in answer._repr_html_()


@pytest.mark.parametrize("strategy", ["refined", "paper"])
def test_a_semifactual_lies_between_the_factual_and_the_counterfactual(heart, strategy):
    rules = Rules(
        {name: Rule(step=step) for name, step in (("tobacco", 2.5), ("ldl", 1.5), ("obesity", 5), ("age", 5))}
    )
    model = lambda rows: (rows["tobacco"] / 5 + rows["ldl"] + rows["obesity"] / 10 > 9).astype(int)  # noqa: E731
    explainer = ONBMACF(2, strategy=strategy).fit(heart, model, schema=Schema.infer(heart, rules=rules))
    n_kept = 0
    for answer in explainer.explain(heart.head(120)):
        for found in answer.counterfactuals:
            if found.semifactual is None:
                continue
            n_kept += 1
            for name in found.semifactual.changed:
                ends = sorted([found.factual[name], found.values[name]]) if name != "famhist" else [0, 0]
                assert name == "famhist" or ends[0] <= found.semifactual.values[name] <= ends[1]
    assert n_kept > 30


# Immutable means immutable.


def test_no_answer_of_the_default_changes_an_immutable_and_the_row_says_what_it_would_need(heart):
    schema = Schema.infer(heart, immutable=["age", "ldl"])
    answers = ONBMACF().fit(heart, age_rule, schema=schema).explain(heart.head(20))
    assert set(answers.statuses) <= {"none_found", "infeasible"}
    for answer in answers:
        assert answer.would_need == ("age",)
        assert "One is found if age may change." in answer.reason
        assert answer.to_dict()["would_need"] == ["age"]
    (finding,) = [text for text in audit.findings(answers, schema) if "immutable" in text]
    assert (
        finding
        == "For 20 of 20 rows (100 %), a counterfactual is found only if an immutable feature changes: age for 20."
    )
    assert audit.released(answers, schema).set_index("feature")["n_rows"].to_dict() == {"age": 20, "ldl": 0}


@pytest.mark.parametrize("release", ["immutable", "rules"])
def test_what_was_released_on_request_is_marked_in_every_view_and_counted(heart, release):
    from onbmacf.cli.outputs import written

    schema = Schema.infer(heart, immutable=["age"])
    answers = ONBMACF(release=release).fit(heart, age_rule, schema=schema).explain(heart.head(10))
    assert set(answers.statuses) == {"found"}
    assert {answer.counterfactuals[0].released for answer in answers} == {("age",)}
    assert set(answers.to_frame()["relaxation"]) == {Relaxation.IMMUTABILITY}
    assert answers.sentences()[0].startswith("If age (released) were ")
    for text in (answers._repr_html_(), written(answers, "table", 200), written(answers, "markdown")):
        assert text.replace("\\", "").count("age (released):") >= 10
    assert json.loads(answers.to_json())["answers"][0]["counterfactuals"][0]["released"] == ["age"]
    assert not any("keeps the immutable" in text for text in audit.findings(answers, schema))
    assert audit.released(answers, schema)["n_rows"].tolist() == [10]


def test_the_paper_strategy_keeps_its_last_resort(heart):
    schema = Schema.infer(heart, immutable=["age"])
    answers = ONBMACF(strategy="paper").fit(heart, age_rule, schema=schema).explain(heart.head(10))
    assert set(answers.statuses) == {"found"}
    assert {answer.counterfactuals[0].released for answer in answers} == {("age",)}


# Rules never make an answer worse than needed.


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_limit_on_changes_that_an_answer_keeps_anyway_makes_no_answer_farther(forest, most):
    model, table = forest
    rows = table[model.predict(table) == 1].head(40)
    free = ONBMACF(plausibility=0).fit(table, model).explain(rows, target=0)
    limited = (
        ONBMACF(plausibility=0)
        .fit(table, model, schema=Schema.infer(table, rules=Rules(max_changes=most)))
        .explain(rows, target=0)
    )
    for one, other in zip(free, limited, strict=True):
        if one.counterfactuals[0].n_changes <= most:
            assert other.status == "found"
            assert other.counterfactuals[0].distance <= one.counterfactuals[0].distance + 1e-12
        for found in other.counterfactuals:
            assert found.n_changes <= most


def test_an_answer_found_without_a_rule_that_keeps_it_competes(forest):
    model, table = forest
    rows = table[model.predict(table) == 1].head(40)
    rules = Rules({"ldl": Rule(low=2, high=12), "tobacco": Rule(direction="down"), "sbp": Rule(high=200)})
    free = ONBMACF(plausibility=0).fit(table, model).explain(rows, target=0)
    ruled = ONBMACF(plausibility=0).fit(table, model, schema=Schema.infer(table, rules=rules)).explain(rows, target=0)
    n_kept = 0
    for one, other in zip(free, ruled, strict=True):
        found = one.counterfactuals[0]
        new, old = found.values, found.factual
        if (
            ("ldl" not in found.changed or 2 <= new["ldl"] <= 12)
            and new["tobacco"] <= old["tobacco"]
            and ("sbp" not in found.changed or new["sbp"] <= 200)
        ):
            n_kept += 1
            assert other.counterfactuals[0].distance <= found.distance + 1e-12
    assert n_kept > 20


# The dial.


def falls(explainer, rows, **asked):
    """Return how often a row's plausibility falls as the dial rises."""
    shares, n_falls = np.full(len(rows), -1.0), 0
    for level in LEVELS:
        batch = explainer.with_options(plausibility=level).explain(rows, **asked).batch
        assert len(np.unique(batch.factual)) == len(batch.factual)
        n_falls += int((batch.plausibility < shares[batch.factual] - 1e-12).sum())
        shares[batch.factual] = batch.plausibility
    return n_falls, shares


def test_plausibility_never_falls_as_the_dial_rises(forest):
    model, table = forest
    rows = table[model.predict(table) == 1].head(25)
    n_falls, shares = falls(ONBMACF().fit(table, model), rows, target=0)
    assert n_falls == 0
    assert (shares == 1.0).mean() > 0.8


@pytest.mark.long
@by_table(DESCRIPTIONS)
def test_plausibility_never_falls_on_the_eight_tables(data_dir, network_of, name):
    task = load_task(name, data_dir)
    network = network_of(task)
    model = lambda rows: network.label_of(task.space.encode(rows))  # noqa: E731
    rows = task.table[model(task.table) == 0].head(100)
    assert falls(ONBMACF().fit(task.table, model, schema=task.schema), rows, target=1)[0] == 0


# Options that cannot act are errors.


@pytest.mark.parametrize(
    "options, pattern",
    [
        ({"step_ratio": 0.3}, "step_ratio does nothing with strategy='refined'"),
        ({"max_steps": 3}, "max_steps does nothing with strategy='refined'"),
        ({"search": "exhaustive"}, "search does nothing with strategy='refined'"),
        ({"boundary": "ratio"}, "boundary does nothing with strategy='refined'"),
        ({"strategy": "paper", "plausibility": 1}, "plausibility does nothing with strategy='paper'"),
    ],
)
def test_an_option_that_cannot_act_is_an_error(heart, options, pattern):
    with pytest.raises(ParameterError, match=pattern):
        ONBMACF(**options).fit(heart, age_rule)


def test_a_front_needs_a_strategy_with_a_dial(heart):
    explainer = ONBMACF(strategy="paper").fit(heart, age_rule)
    with pytest.raises(ParameterError, match="front=True does nothing with strategy='paper'"):
        explainer.explain(heart.head(1), front=True)


# A minimum of probability holds for what is returned.


class Unsure:
    """Says a label, and a probability that has holes where no row was fitted: on those, `fit` refuses them."""

    classes_ = np.array([0, 1])

    def __init__(self, known):
        self.known = set(known)

    def predict(self, rows):
        return (rows["ldl"] > 5).astype(int).to_numpy()

    def predict_proba(self, rows):
        sure = 0.5 + np.minimum(np.abs(rows["ldl"].to_numpy() - 5), 5) / 10
        is_hole = (np.round(rows["ldl"].to_numpy() * 10) % 2 == 0) & ~rows["ldl"].isin(self.known).to_numpy()
        sure = np.where(is_hole, np.nan, sure)
        label = self.predict(rows)
        return np.column_stack([np.where(label == 0, sure, 1 - sure), np.where(label == 1, sure, 1 - sure)])


def test_no_answer_is_below_the_minimum_of_probability(heart):
    explainer = ONBMACF(2).fit(heart, Unsure(heart["ldl"]))
    answers = explainer.explain(heart.head(30), min_probability=0.7)
    assert (answers.statuses == "found").sum() > 20
    assert (answers.batch.probability >= 0.7).all()


def test_fewer_than_asked_says_how_many_were_found(heart):
    table = pd.DataFrame({"x": [0.0, 1.0, 3.0, 4.5]})
    answer = ONBMACF(50).fit(table, lambda rows: (rows["x"] > 2).astype(int)).explain(table.head(1))[0]
    assert answer.reason == f"{len(answer.counterfactuals)} of 50 counterfactuals were found."
