"""Proofs under rules "if a, then b", and in metrics that are functions: against a search over all values."""

import itertools
import os

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from _prove.test_brute_force import MODELS, Problem, all_rows, check
from onbmacf import ONBMACF, Rules, Schema
from test_rules import breaks

QUICK = (*range(24), 91)  # 91: a last step that lies beyond the end by rounding, 3 * 0.2 > 0.6
ALL = range(24, int(os.environ.get("ONBMACF_PROVE_PROBLEMS", "60")))
MOVES = ("rises", "falls", "changes", "stays")


def random_condition(random, table, kinds, name):
    """Return what may be said of a feature: how, and an amount or None."""
    ranked = kinds[name] in ("integer", "continuous", "ordinal", "binary")
    hows = [*(MOVES if ranked and kinds[name] != "binary" else MOVES[2:]), "is", "is not"]
    hows += ["at least", "at most"] * (kinds[name] in ("integer", "continuous"))
    how = str(random.choice(hows))
    return how, None if how in MOVES else table[name].iloc[int(random.integers(len(table)))]


def in_words(name, how, amount):
    if how in ("at least", "at most"):
        return f"{name} is {how} {amount}"
    return f"{name} {how}" + ("" if amount is None else f" {amount}")


def is_so(how, amount, new, old, code):
    """Say whether a condition holds, by plain values."""
    if how in ("rises", "falls"):
        return code(new) > code(old) if how == "rises" else code(new) < code(old)
    if how in ("changes", "stays"):
        return (new != old) == (how == "changes")
    if how in ("is", "is not"):
        return (new == amount) == (how == "is")
    return new >= amount if how == "at least" else new <= amount


def code_of(value):
    return float(str(value).removeprefix("v"))


class Related(Problem):
    """The same problem with one or two rules between its features."""

    def __init__(self, seed, make):
        super().__init__(seed, make)
        random = np.random.default_rng(seed + 1000)
        names = list(self.table.columns)
        self.said = []
        for _ in range(int(random.integers(1, 3))):
            pair = random.choice(names, 2, replace=False).tolist()
            self.said.append([(name, *random_condition(random, self.table, self.kinds, name)) for name in pair])
        words = [f"if {in_words(*when)}, {in_words(*then)}" for when, then in self.said]
        rules = self.schema.rules
        rules = Rules(rules.features, rules.at_most, rules.max_changes, relations=words)
        self.schema = self.schema.with_rules(rules)

    def keeps(self, before, after):
        """Say whether a row keeps the rules between features, or leaves theirs as they are."""
        for when, then in self.said:
            if all(before[name] == after[name] for name, *_ in (when, then)):
                continue
            so = [is_so(how, amount, after[n], before[n], code_of) for n, how, amount in (when, then)]
            if so[0] and not so[1]:
                return False
        return True

    def apart(self, explainer, rows, factual):
        space = explainer.fitted_.space
        apart = space.encode(rows) - space.encode(factual)
        return np.linalg.norm(apart, ord={"manhattan": 1, "euclidean": 2, "chebyshev": np.inf}[self.metric], axis=1)

    def nearest(self, explainer, place):
        factual = self.factuals.iloc[place]
        rows = all_rows(self.table, self.kinds, explainer.schema_, factual)
        other = rows[self.says(rows) != self.says(self.factuals.iloc[[place]])[0]]
        apart = self.apart(explainer, other, self.factuals.iloc[[place]])
        for line in np.argsort(apart, kind="stable"):
            after = other.iloc[line]
            if not breaks(factual, after, self.schema.rules) and self.keeps(factual, after):
                return apart[line]
        return np.inf


class Weighed(Related):
    """The same in a metric that is a function: each column of the encoded points has a weight of its own."""

    def __init__(self, seed, make):
        super().__init__(seed, make)
        self.power = 1 + seed % 2
        random = np.random.default_rng(seed + 2000)
        weights = 0.2 + random.random(60)

        def metric(a, b):
            return float((np.abs(a - b) ** self.power @ weights[: len(a)]) ** (1 / self.power))

        metric.power = self.power
        self.metric = metric

    def apart(self, explainer, rows, factual):
        space = explainer.fitted_.space
        z = space.encode(factual)[0]
        return np.array([self.metric(z, point) for point in space.encode(rows)])


EACH = [*QUICK, *(pytest.param(seed, marks=pytest.mark.long) for seed in ALL)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", EACH)
def test_proofs_under_if_then_agree_with_a_search_over_all_values(seed):
    check(Related(seed, list(MODELS.values())[seed % len(MODELS)]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", EACH)
def test_proofs_in_a_metric_of_ones_own_agree_with_a_search_over_all_values(seed):
    check(Weighed(seed, list(MODELS.values())[seed % len(MODELS)]))


def reason_of(metric):
    table = pd.DataFrame({"a": np.arange(200) % 40 / 40, "b": np.arange(200) % 37, "c": np.arange(200) % 3 / 7})
    model = LogisticRegression().fit(table, table["a"] * 20 + table["b"] > 25)
    answer = ONBMACF(metric=metric, plausibility=0).fit(table, model).explain(table.iloc[[0]], prove=True)[0]
    return answer.certificate.reason


def test_a_metric_is_asked_how_its_differences_add_up_and_what_it_says_is_looked_into():
    def root(a, b):
        return float(np.sqrt(((a - b) ** 2).sum()))

    assert reason_of(root) == "nothing is proven with a metric that is a function"
    root.power = 3
    assert reason_of(root) == "nothing is proven with a metric that is a function"
    root.power = 1
    assert reason_of(root) == "the metric, a function, is not the sum that its power of 1 says"
    root.power = 2
    assert reason_of(root) == ""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_a_feature_that_the_model_does_not_see_is_moved_for_a_rule_and_counts_as_a_change(name):
    table = pd.DataFrame(list(itertools.product(range(6), range(6), range(3))), columns=["a", "b", "c"])
    model = make_pipeline(ColumnTransformer([("seen", "passthrough", ["a", "c"])]), MODELS[name](0))
    model.fit(table, table["a"] + 0.4 * table["c"] > 2.6)
    explainer = ONBMACF(plausibility=0).fit(table, model, schema=Schema.infer(table, immutable=["c"]))
    rows = table[(table["b"] < 5) & (table["c"] == 1)]
    rule = {"relations": ["if a changes, b rises"]}
    for one, free in zip(
        explainer.explain(rows, rules=rule, prove=True), explainer.explain(rows, prove=True), strict=True
    ):
        assert one.certificate.kind == free.certificate.kind == "nearest"
        assert "by asking" not in one.certificate.how
        assert one.certificate.bound == pytest.approx(free.certificate.bound + 1 / 5)
        assert one.counterfactuals[0].values["b"] == one.factual["b"] + 1
    none = explainer.explain(rows, rules={**rule, "max_changes": 1}, prove=True)
    assert {one.certificate.kind for one in none} == {"none_exists"}
