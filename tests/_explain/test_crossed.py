"""Conditions that counterfactuals cross: what is printed is true of the raw rows, and what the models' own code says."""

import operator
import pickle
import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from _prove.test_copies import labels, mixed, numbers, with_missing
from _prove.test_kinds import catboost, imodels, interpret
from amounts import IS_ALL
from onbmacf import ONBMACF, Schema
from onbmacf._explain.crossed import of_explanations
from onbmacf.errors import ParameterError

pytestmark = pytest.mark.filterwarnings("ignore")
N_ROWS = 40 if IS_ALL else 4  # per kind, with two answers for each: 1,000 answers and more over all
SIGNS = {"<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt}
LEVELS, NUMBERS = ["town", "kind", "is_new"], ["a", "b", "c"]


def steps(kind="scaled", **how):
    """Return steps for the mixed table: levels as columns of 0 and 1 or as codes, numbers as they are or scaled."""
    if kind == "codes":
        return make_column_transformer((OrdinalEncoder(), LEVELS), (MinMaxScaler(), NUMBERS))
    numbers = {"scaled": StandardScaler(), "plain": "passthrough", "filled": SimpleImputer()}[kind]
    how = {"handle_unknown": "ignore"} | how
    return make_column_transformer((OneHotEncoder(**how), LEVELS), (numbers, NUMBERS))


MODELS = {
    "tree": (steps, lambda: DecisionTreeClassifier(max_depth=6, random_state=0)),
    "forest": (steps, lambda: RandomForestClassifier(30, random_state=0)),
    "forest of codes": (lambda: steps("codes"), lambda: RandomForestClassifier(30, random_state=0)),
    "forest, filled": (lambda: steps("filled"), lambda: RandomForestClassifier(30, random_state=0)),
    "bagging": (steps, lambda: BaggingClassifier(n_estimators=9, max_features=0.7, random_state=0)),
    "AdaBoost": (steps, lambda: AdaBoostClassifier(n_estimators=12, random_state=0)),
    "boosting": (steps, lambda: GradientBoostingClassifier(n_estimators=20, random_state=0)),
    "hist boosting": (steps, lambda: HistGradientBoostingClassifier(max_iter=20, random_state=0)),
    "xgboost": (lambda: steps(sparse_output=False), lambda: XGBClassifier(n_estimators=20, n_jobs=1)),
    "xgboost, sparse": (lambda: steps("plain"), lambda: XGBClassifier(n_estimators=20, n_jobs=1)),
    "lightgbm": (steps, lambda: LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1)),
    "catboost": (lambda: steps(sparse_output=False), lambda: catboost(depth=4)),
    "boosting machine": (lambda: steps(sparse_output=False), lambda: interpret(interactions=1, max_bins=16)),
    "FIGS": (lambda: steps(sparse_output=False), lambda: imodels("FIGSClassifier", max_rules=8, random_state=0)),
    "rule list": (lambda: steps(sparse_output=False), lambda: imodels("GreedyRuleListClassifier", max_depth=6)),
    "RuleFit": (
        lambda: steps(sparse_output=False),
        lambda: imodels("RuleFitClassifier", n_estimators=8, include_linear=False, random_state=0),
    ),
}
TAKE_MISSING = ["tree", "forest", "forest, filled", "hist boosting", "xgboost", "xgboost, sparse", "lightgbm"]


def asked(name, table):
    """Return a fitted explainer, its answers for some rows, and the pipeline that was asked."""
    before, estimator = MODELS[name]
    y = labels(table.dropna() if name != "RuleFit" else table)
    y = labels(table.fillna({name: table[name].mode()[0] for name in table}))
    model = make_pipeline(before(), estimator()).fit(table, y)
    explainer = ONBMACF(2).fit(table, model, schema=Schema.infer(table))
    return explainer, explainer.explain(table.sample(N_ROWS, random_state=1)), model


def is_true(text, feature, value):
    """Say whether a printed condition is true of a value: read here, with none of the package's code."""
    said, is_missing = text.removeprefix(f"{feature} "), value is None or value is pd.NA or value != value
    if said in ("is missing", "is known"):
        return is_missing == (said == "is missing")
    first, *others = said.split(" or ") if said[0] in "<>" else [said]
    shown = "missing" if is_missing else str(value).removesuffix(".0")
    if numeric := re.fullmatch(r"([<>]=?) (\S+?)((?: but not \S+)*)", first):
        sign, number, without = numeric.groups()
        if shown in others:
            return True
        return not is_missing and SIGNS[sign](value, float(number)) and f" but not {shown}" not in without
    is_not = next((word for word in ("is not ", "is neither ", "is none of ") if said.startswith(word)), "")
    words = said.removeprefix(is_not or "is ").removeprefix("one of ")
    return (shown in re.split(r", | or | nor ", words)) != bool(is_not)


def check_printed(frame, answers):
    """Each line says of its values what its condition says of them, and its values are those of the rows."""
    changed = {(row, rank) for row, rank in zip(frame.index, frame["rank"], strict=True)}
    assert changed
    for one in frame.to_dict("records"):
        now = [is_true(one["condition"], one["feature"], one[when]) for when in ("before", "after")]
        assert now == {"now": [False, True], "no longer": [True, False], "still": [now[0]] * 2}[one["holds"]], one
    for at, place in enumerate(answers.batch.factual):
        rank = int((answers.batch.factual[:at] == place).sum()) + 1
        lines = frame[(frame.index == answers.rows.index[place]) & (frame["rank"] == rank)]
        values = answers.batch.values.iloc[at]
        for one in lines.to_dict("records"):
            for value, row in ((one["before"], answers.rows.iloc[place]), (one["after"], values)):
                assert value == row[one["feature"]] or (pd.isna(value) and pd.isna(row[one["feature"]]))


def check_added(explainer, answers, model, name):
    """The effects of each counterfactual add up to what the model's own scores change by."""
    found = of_explanations(answers)
    total = np.zeros(len(answers.batch.factual))
    np.add.at(total, found.crossings.line, found.effects())
    before, after = (answers.rows.iloc[answers.batch.factual], answers.batch.values)
    is_second = answers.batch.label == model.classes_[1]
    if found.conditions.structure.link == "share":
        change = model.predict_proba(after)[:, 1] - model.predict_proba(before)[:, 1]
    elif hasattr(model, "decision_function") and name not in ("catboost", "boosting machine"):
        change = model.decision_function(after) - model.decision_function(before)
    else:
        odds = [np.log(p[:, 1] / p[:, 0]) for p in map(model.predict_proba, (before, after))]
        change = odds[1] - odds[0]
    change = np.where(is_second, change, -change) * (2 if name == "AdaBoost" else 1)
    np.testing.assert_allclose(total, change, rtol=1e-4, atol=2e-5)


def leaves_of(model, rows):
    """Return the leaf of each tree, from the libraries' own code; None where they do not tell."""
    columns, last = model[:-1].transform(rows), model[-1]
    if isinstance(last, (RandomForestClassifier, XGBClassifier)):
        return last.apply(columns)
    if isinstance(last, DecisionTreeClassifier):
        return last.apply(columns)[:, np.newaxis]
    return last.predict(columns, pred_leaf=True) if isinstance(last, LGBMClassifier) else None


@pytest.mark.parametrize("lacks", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_conditions_are_true_and_those_that_the_model_answers_otherwise(name, lacks):
    if lacks and name not in TAKE_MISSING:
        pytest.skip("it takes no missing values")
    table = with_missing(mixed()).drop(columns=["kind"]).assign(kind=mixed()["kind"]) if lacks else mixed()
    table = table.assign(is_new=table["is_new"].astype(str)) if lacks else table
    explainer, answers, model = asked(name, table)
    check_printed(answers.rules(), answers)
    check_added(explainer, answers, model, name)
    own = [leaves_of(model, rows) for rows in (answers.rows.iloc[answers.batch.factual], answers.batch.values)]
    if own[0] is not None:
        found = of_explanations(answers).crossings
        expected = {(line, tree) for line, tree in np.argwhere(own[0] != own[1]).tolist()}
        assert set(zip(found.line.tolist(), found.unit.tolist(), strict=True)) == expected
