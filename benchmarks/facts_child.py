"""FACTS of aif360 on adult, in an environment of its own: `python facts_child.py table.csv out.json SUPPORT`.

Trains a logistic model of 70 % of the rows, runs FACTS on the other 30 % and writes its seconds and, for the first
subgroups by unfairness, aif360's figures beside the answers of the model to every action for every row: which action
helps which row of which sex, and what it costs. Only packages of that environment are imported.
"""

import json
import sys
import time

import numpy as np
import pandas as pd
from aif360.sklearn.detectors.facts import FACTS
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

HOURS = ["PartTime", "MidTime", "FullTime", "OverTime", "BrainDrain"]
SHARE, BUDGET, MOST = 0.3, 1.0, 5


def cleaned(path):
    """Return the table as FACTS' own example prepares it, and the labels."""
    table = pd.read_csv(path).drop(columns="fnlwgt").dropna()
    table["hours-per-week"] = pd.cut(table["hours-per-week"], [0.9, 25, 39, 40, 55, 100], labels=HOURS).astype(object)
    table["age"] = pd.qcut(table["age"], q=5).astype(object)
    words = table.select_dtypes(exclude="number").columns
    table[words] = table[words].astype(object)
    return table.drop(columns="income"), table["income"]


def main(path, out, support):
    """Run FACTS and write what it says."""
    X, y = cleaned(path)
    train, test, y_train, _ = train_test_split(X, y, test_size=0.3, random_state=131313, stratify=y)
    words = [name for name in X.columns if X[name].dtype == object]
    as_text = [name for name in words if name != "age"]
    encode = ColumnTransformer(
        [("words", OneHotEncoder(handle_unknown="ignore"), as_text), ("age", _Text(), ["age"])],
        remainder="passthrough",
    )
    model = Pipeline([("encode", encode), ("model", LogisticRegression(max_iter=1500))]).fit(train, y_train)
    start = time.perf_counter()
    facts = FACTS(model, "sex", categorical_features=words, freq_itemset_min_supp=support,
                  feats_not_allowed_to_change=["sex", "age", "race"])  # fmt: skip
    facts.fit(test, verbose=False)
    facts.bias_scan("equal-effectiveness", "macro", top_count=MOST)
    seconds = time.perf_counter() - start
    told = [subgroup(facts, test, model, rule) for rule in facts.top_rules]
    written = {"seconds": seconds, "rows": len(test), "n_subgroups": len(facts.rules_by_if), "subgroups": told}
    with open(out, "w", encoding="utf-8") as file:
        json.dump(written | {"share": SHARE, "budget": BUDGET}, file)


class _Text(OneHotEncoder):
    """One column per interval of ages, by its text."""

    def fit(self, X, y=None):
        return super().fit(pd.DataFrame(X).astype(str), y)

    def transform(self, X):
        return super().transform(pd.DataFrame(X).astype(str))

    def fit_transform(self, X, y=None):
        return self.fit(X, y).transform(X)


def subgroup(facts, test, model, rule):
    """Return aif360's figures of one subgroup, and the model's answer to each action for each of its rows."""
    from aif360.sklearn.detectors.facts import metrics

    refused = test[model.predict(test) == 0]
    covered = refused[(refused[rule.features] == rule.values).all(axis=1)]
    groups = {}
    for sex, (_, thens) in facts.rules_by_if[rule].items():
        rows = covered[covered["sex"] == sex]
        flips = [model.predict(rows.assign(**dict(zip(then.features, then.values, strict=True)))) for then, *_ in thens]
        micro = facts.rules_with_cumulative[rule][sex][1]
        groups[str(sex)] = {
            "flips": np.array(flips).T.tolist(),
            "costs": [float(cost) for *_, cost in thens],
            "effectiveness": float(metrics.if_group_maximum_correctness(rule, thens)),
            "choices": -int(metrics.if_group_cost_recoursescount_correctness_threshold(rule, thens, SHARE)),
            "cost": float(metrics.if_group_cost_min_change_correctness_threshold(rule, thens, SHARE)),
            "within": float(metrics.if_group_cost_max_correctness_cost_budget(rule, thens, BUDGET)),
            "micro_effectiveness": float(metrics.if_group_maximum_correctness(rule, micro)),
            "micro_cost": float(metrics.if_group_cost_min_change_correctness_threshold(rule, micro, SHARE)),
            "mean_recourse": float(metrics.if_group_average_recourse_cost_conditional(rule, micro)),
        }
    return {"rule": str(rule), "groups": groups}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
