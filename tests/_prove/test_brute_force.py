"""Certificates against a search over all values of small random problems: 0 wrong `nearest`, 0 wrong `none exists`."""

import itertools
import os
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from onbmacf import ONBMACF, Rule, Rules, Schema
from onbmacf._prove.domain import Domain
from onbmacf._prove.prove import Prover
from onbmacf.errors import ModelError
from test_rules import breaks

QUICK = range(12)
ALL = range(12, int(os.environ.get("ONBMACF_PROVE_PROBLEMS", "24")))  # 300 takes some minutes
KINDS = ("integer", "continuous", "categorical", "ordinal", "binary")
METRICS = {"manhattan": 1, "euclidean": 2, "chebyshev": np.inf}
MODELS = {
    "tree": lambda seed: DecisionTreeClassifier(max_depth=5, random_state=seed),
    "linear": lambda seed: LogisticRegression(C=10.0),
    "forest": lambda seed: RandomForestClassifier(5, max_depth=4, random_state=seed),
    "network": lambda seed: MLPClassifier((6, 4), solver="lbfgs", max_iter=60, random_state=seed),
    "boosted": lambda seed: GradientBoostingClassifier(n_estimators=6, max_depth=2, random_state=seed),
}


def random_table(random):
    """Return two to four columns of all kinds with few values, their kinds, and the codes behind them."""
    n_rows, columns, kinds = int(random.integers(40, 90)), {}, {}
    for place in range(int(random.integers(2, 5))):
        kind = str(random.choice(KINDS))
        n_values = 2 if kind == "binary" else int(random.integers(2, 8))
        codes = np.concatenate([[0, n_values - 1], random.integers(0, n_values, n_rows - 2)])
        words, order = [f"v{code}" for code in codes], [f"v{code}" for code in range(n_values)]
        columns[f"f{place}"] = {"integer": codes, "continuous": codes / 10}.get(
            kind, pd.Categorical(words, order, ordered=True) if kind == "ordinal" else words
        )
        kinds[f"f{place}"] = kind
    return pd.DataFrame(columns), kinds


def random_rule(random, column, kind):
    if kind in ("integer", "continuous"):
        unit = 1 if kind == "integer" else 0.1
        rules = [Rule(direction=str(random.choice(["up", "down"]))), Rule(low=unit, high=4 * unit), Rule(step=2 * unit)]
        return [*rules, Rule(weight=2.5)][random.integers(4)]
    levels = sorted(pd.unique(column))
    if random.random() < 0.5 and len(levels) > 1:
        return Rule(forbidden=[(levels[0], levels[-1])])
    return Rule(allowed=levels[: max(1, len(levels) - 1)])


def random_schema(random, table, kinds):
    immutable = [name for name in table.columns if random.random() < 0.25][: table.shape[1] - 1]
    free = [name for name in table.columns if name not in immutable]
    rules = {name: random_rule(random, table[name], kinds[name]) for name in free if random.random() < 0.5}
    most = int(random.integers(1, 4)) if random.random() < 0.3 else None
    whole = [name for name in table.columns if kinds[name] == "integer"]
    pairs = [tuple(whole[:2])] if len(whole) > 1 and random.random() < 0.5 else []
    ordinal = {name: list(table[name].cat.categories) for name in table.columns if kinds[name] == "ordinal"}
    others = {name: kind for name, kind in kinds.items() if kind != "ordinal"}
    rules = Rules(rules, at_most=pairs, max_changes=most)
    return Schema.infer(table, immutable=immutable, kinds=others, ordinal=ordinal, rules=rules)


def random_labels(random, table, is_binary):
    """Return random labels, of two or three classes, that follow the values."""
    codes = np.column_stack([table[c].astype(str).str.removeprefix("v").astype(float) for c in table.columns])
    codes = codes / np.maximum(codes.max(axis=0), 1e-9)
    score = codes @ random.normal(size=codes.shape[1]) + (codes @ random.normal(size=(codes.shape[1],) * 2)).prod(
        axis=1
    )
    score += random.normal(size=len(codes)) * 0.2
    return np.digitize(score, np.quantile(score, [0.5] if random.random() < 0.6 or is_binary else [0.4, 0.7]))


def steps_for(table, kinds, **how):
    """Return untrained steps that make numbers of all columns."""
    numbers = [c for c in table.columns if kinds[c] in ("integer", "continuous")]
    ranked = [c for c in table.columns if kinds[c] == "ordinal"]
    named = [c for c in table.columns if kinds[c] in ("categorical", "binary")]
    levels = OneHotEncoder(handle_unknown="ignore", **how)
    parts = [(StandardScaler(), numbers), (OrdinalEncoder(), ranked), (levels, named)]
    return make_column_transformer(*[part for part in parts if part[1]])


def all_rows(table, kinds, schema, factual):
    """Return every row that keeps the immutables: levels, and the values of the fitted range or of the rule's."""
    values = []
    for feature in schema.features:
        name, rule = feature.name, schema.rules.features.get(feature.name, Rule())
        if name in schema.immutable:
            values.append([factual[name]])
        elif feature.levels is not None:
            values.append(list(feature.levels))
        else:
            unit = 1 if kinds[name] == "integer" else 10
            low = table[name].min() if rule.low == -np.inf else rule.low
            high = table[name].max() if rule.high == np.inf else rule.high
            values.append(sorted({*(np.arange(round(low * unit), round(high * unit) + 1) / unit), factual[name]}))
    return pd.DataFrame(list(itertools.product(*values)), columns=table.columns).astype(table.dtypes.to_dict())


class Problem:
    """A random table, model and schema, and the nearest answers by asking about everything."""

    how = MappingProxyType({})  # what is said in fit
    proof = True  # what is given for prove=

    def __init__(self, seed, make, is_binary=False):
        random = np.random.default_rng(seed)
        self.table, self.kinds = random_table(random)
        self.fit_model(random_labels(random, self.table, is_binary), make(seed))
        self.schema = random_schema(random, self.table, self.kinds)
        self.metric = str(random.choice(list(METRICS)))
        self.factuals = self.table.iloc[:4]

    def fit_model(self, y, estimator):
        self.model = make_pipeline(steps_for(self.table, self.kinds), estimator).fit(self.table, y)

    def says(self, rows):
        """Return the labels of rows."""
        return self.model.predict(rows)

    def fitted(self):
        try:
            explainer = ONBMACF(plausibility=0, metric=self.metric)
            return explainer.fit(self.table, self.model, schema=self.schema, **self.how)
        except ModelError:
            pytest.skip("the model gives one label only")

    def nearest(self, explainer, place):
        """Return the distance of the nearest row of another label that breaks no rule; infinite if there is none."""
        factual, space = self.factuals.iloc[place], explainer.fitted_.space
        rows = all_rows(self.table, self.kinds, explainer.schema_, factual)
        other = rows[self.says(rows) != self.says(self.factuals.iloc[[place]])[0]]
        apart = space.encode(other) - space.encode(self.factuals.iloc[[place]])
        apart = np.linalg.norm(apart, ord=METRICS[self.metric], axis=1)
        for line in np.argsort(apart, kind="stable"):
            if not breaks(factual, other.iloc[line], self.schema.rules):
                return apart[line]
        return np.inf

    def alone(self, explainer):
        """Yield what a proof says that is not told of any answer."""
        fitted = explainer.fitted_
        space, N = fitted.space, fitted.space.form.numbers(self.factuals)
        domain = Domain(space, fitted.constraints, fitted.ranges, space.is_immutable, self.metric, N)
        labels = self.says(self.factuals)
        say = lambda points: self.says(space.form.rows_for_model(points))  # noqa: E731
        model = self.model if self.proof is True else self.proof
        prover = Prover.of(model, domain, space.form, fitted.map.table.N, say, 0.0, fitted.black_box.reading)
        for row, label in enumerate(labels):

            def ask(point, label=label):
                return self.says(space.form.frame(point[np.newaxis]))[0] != label

            wanted = [other for other in explainer.classes_ if other != label]
            yield prover.row(row, wanted, np.inf, ask, 600.0)


def check(problem):
    """Compare what is told, and what a proof says, with the nearest of all."""
    explainer = problem.fitted()
    answers = explainer.explain(problem.factuals, prove=problem.proof, prove_seconds=600)
    for place, (answer, proof) in enumerate(zip(answers, problem.alone(explainer), strict=True)):
        nearest, certificate = problem.nearest(explainer, place), answer.certificate
        assert proof.is_over
        assert proof.bound == pytest.approx(nearest, rel=1e-9, abs=1e-12)
        assert certificate.kind == ("nearest" if np.isfinite(nearest) else "none_exists")
        if not np.isfinite(nearest):
            assert (answer.status, answer.counterfactuals) == ("infeasible", ())
            continue
        found = answer.counterfactuals[0]
        assert certificate.bound == found.distance == pytest.approx(nearest, rel=1e-9, abs=1e-12)
        assert not breaks(found.factual, found.values, problem.schema.rules)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [*QUICK, *(pytest.param(seed, marks=pytest.mark.long) for seed in ALL)])
def test_certificates_agree_with_a_search_over_all_values(seed):
    check(Problem(seed, list(MODELS.values())[seed % len(MODELS)]))
