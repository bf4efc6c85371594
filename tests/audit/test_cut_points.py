"""Thresholds that answers cross, counted again with the trees' own paths."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from _prove.test_kinds import imodels
from onbmacf import ONBMACF, Schema, audit
from onbmacf.datasets import load_heart
from onbmacf.errors import ParameterError

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(3)
    rows = random.integers(0, 30, (300, 4))
    return pd.DataFrame(rows, columns=list("abcd"))


def asked(table, model, n=2):
    explainer = ONBMACF(n, plausibility=0).fit(table, model)
    return explainer.explain(table.head(60)), explainer


def flips(tree, before, after):
    """Return the nodes on the way of the new row that send the old one to their other side."""
    nodes = [node for node in tree.decision_path(after[np.newaxis]).indices if tree.tree_.children_left[node] >= 0]
    at = tree.tree_.feature[nodes]
    limits = tree.tree_.threshold[nodes]
    is_crossed = (before[at] <= limits) != (after[at] <= limits)
    return [(int(column), float(limit)) for column, limit in zip(at[is_crossed], limits[is_crossed], strict=True)]


def counted(model, answers):
    """Return the answers that cross each threshold, and those that end just across, by hand."""
    n_answers, n_just = {}, {}
    before = answers.rows.to_numpy(dtype=float)[answers.batch.factual]
    for old, new in zip(before, answers.batch.values.to_numpy(dtype=float), strict=True):
        trees = getattr(model, "estimators_", [model])
        for column, limit in {(column, np.floor(limit)) for tree in trees for column, limit in flips(tree, old, new)}:
            n_answers[column, limit] = n_answers.get((column, limit), 0) + 1
            first = limit if new[column] <= limit else limit + 1
            n_just[column, limit] = n_just.get((column, limit), 0) + (new[column] == first)
    return n_answers, n_just


@pytest.mark.parametrize("kind", ["tree", "forest"])
def test_thresholds_and_answers_are_counted_as_the_trees_do(table, kind):
    y = (table["a"] + table["b"] * (table["c"] > 15) > 30).to_numpy()
    model = DecisionTreeClassifier(max_depth=6, random_state=0)
    model = model if kind == "tree" else RandomForestClassifier(12, max_depth=4, random_state=0)
    answers, explainer = asked(table, model.fit(table.to_numpy(), y))
    found = audit.cut_points(answers, explainer)
    trees = [tree.tree_ for tree in getattr(model, "estimators_", [model])]
    inner = [tree.children_left >= 0 for tree in trees]
    every = [
        {*zip(t.feature[i].tolist(), t.threshold[i].tolist(), strict=True)} for t, i in zip(trees, inner, strict=True)
    ]
    # In whole numbers 10.5 is no other threshold than 10.
    keys = sorted({(column, np.floor(limit)) for some in every for column, limit in some})
    told = [(list("abcd").index(one.feature), np.floor(one.threshold)) for one in found.itertuples()]
    assert sorted(told) == keys
    n_answers, n_just = counted(model, answers)
    assert sum(n_answers.values()) > 60
    for key, one in zip(told, found.itertuples(), strict=True):
        assert (one.n_answers, one.n_just_across) == (n_answers.get(key, 0), n_just.get(key, 0))
        assert one.used_by == sum(any((c, np.floor(limit)) == key for c, limit in some) for some in every)
        assert one.never_used == (one.n_answers == 0)
        assert one.n_rows <= one.n_answers
    assert found["n_answers"].is_monotonic_decreasing


def test_answers_at_the_least_distance_end_just_across(table):
    """With one tree and nothing but distance asked for, what must move stops at the first value."""
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(table, table["a"] > 12)
    explainer = ONBMACF(plausibility=0).fit(table, model)
    found = audit.cut_points(explainer.explain(table.head(60)), explainer)
    assert found.loc[0, ["feature", "condition", "threshold"]].tolist() == ["a", "a <= 12", 12.5]
    assert found.loc[0, ["n_answers", "n_rows", "n_just_across"]].tolist() == [60, 60, 60]


def test_levels_are_one_line_whatever_the_column_that_asks(heart):
    model = make_pipeline(OneHotEncoder(), RandomForestClassifier(9, random_state=0))
    table = heart[["famhist"]].assign(band=pd.cut(heart["age"], [0, 30, 45, 99], labels=list("abc")).astype(str))
    answers, explainer = asked(table, model.fit(table, heart["age"] > 40))
    found = audit.cut_points(answers, explainer)
    assert sorted(found["feature"]) == ["band", "band", "band", "famhist"]
    assert found["threshold"].isna().all()
    assert (found["n_just_across"] == found["n_answers"]).all()


def test_rules_count_too(heart):
    table = heart.drop(columns="famhist")
    model = imodels("GreedyRuleListClassifier", max_depth=4).fit(table, load_heart()[1])
    answers, explainer = asked(table, model)
    found = audit.cut_points(answers, explainer)
    frame = answers.rules()
    assert {"still", "no longer"} <= set(frame["holds"])
    crossed = frame[frame["holds"] != "still"].groupby("feature").size()
    assert found.groupby("feature")["n_answers"].sum()[lambda counts: counts > 0].to_dict() == crossed.to_dict()


def test_without_answers_no_threshold_is_used(table):
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(table, table["a"] > 12)
    explainer = ONBMACF().fit(table, model)
    found = audit.cut_points(explainer.explain(table.head(0)), explainer)
    assert found["never_used"].all()
    assert len(found)


def test_other_models_have_none(table):
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table, table["a"] > 12)
    answers, explainer = asked(table, model)
    with pytest.raises(ParameterError, match="the rules of this model cannot be told: a linear model has no cond"):
        audit.cut_points(answers, explainer)


def test_what_is_missing_is_a_condition_too():
    table = pd.DataFrame({"a": [1.0, 2.0, None, 8.0] * 40, "b": np.arange(160.0) % 7})
    model = HistGradientBoostingClassifier(min_samples_leaf=5, max_iter=30).fit(table, table["a"].isna())
    explainer = ONBMACF(plausibility=0).fit(table, model, schema=Schema.infer(table, fillable=["a"]))
    answers = explainer.explain(table.iloc[2:20:4], target=False)
    found = audit.cut_points(answers, explainer)
    assert found.loc[0, ["feature", "condition", "n_answers"]].tolist() == ["a", "a is known", 5]
    assert np.isnan(found.loc[0, "threshold"])
    assert "a is known" in set(answers.rules()["condition"])
