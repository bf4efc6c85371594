"""Small tables against a search over all joint values: every `found`, every proof of none, and the nearest distance."""

import itertools
import os

import numpy as np
import pandas as pd
import pytest

from amounts import IS_ALL
from onbmacf import ONBMACF, Rule, Rules, Schema
from onbmacf.errors import ModelError
from test_rules import breaks

N_TABLES = int(os.environ.get("ONBMACF_SMALL_TABLES", "40" if IS_ALL else "20"))  # 200 take minutes
N_ROWS = 8


def random_table(random):
    """Return up to five discrete columns of up to six values, and their numbers of values."""
    n_rows, columns = int(random.integers(8, 60)), {}
    for place in range(int(random.integers(2, 6))):
        kind = random.choice(["integer", "categorical", "ordinal", "binary"])
        n_values = 2 if kind == "binary" else int(random.integers(2, 7))
        codes = random.integers(0, n_values, n_rows)
        words = [f"v{code}" for code in codes]
        order = [f"v{code}" for code in range(n_values)]
        columns[f"f{place}"] = (
            codes if kind == "integer" else pd.Categorical(words, order, ordered=True) if kind == "ordinal" else words
        )
    return pd.DataFrame(columns)


def as_codes(rows):
    return np.column_stack(
        [
            rows[name].astype(str).str.removeprefix("v").astype(float)
            if not pd.api.types.is_numeric_dtype(rows[name])
            else rows[name].astype(float)
            for name in rows.columns
        ]
    )


def random_model(random, table):
    weights, pairs, kind = (
        random.normal(size=table.shape[1]),
        random.normal(size=(table.shape[1],) * 2),
        random.integers(3),
    )

    def score(rows):
        codes = as_codes(rows)
        return [codes @ weights, ((codes @ pairs) * codes).sum(axis=1), np.sin(3 * codes @ weights)][kind]

    middle = float(np.median(score(table)))
    return lambda rows: (score(rows) > middle).astype(int)


def random_rule(random, column):
    if pd.api.types.is_numeric_dtype(column.dtype):
        rules = [Rule(direction=str(random.choice(["up", "down"]))), Rule(low=1, high=4), Rule(step=2)]
        return rules[random.integers(3)]
    levels = list(pd.unique(column))
    if random.random() < 0.5 and len(levels) > 1:
        return Rule(forbidden=[(levels[0], levels[-1])])
    return Rule(allowed=levels[: max(1, len(levels) - 1)])


def random_schema(random, table):
    immutable = [name for name in table.columns if random.random() < 0.3][: table.shape[1] - 1]
    free = [name for name in table.columns if name not in immutable]
    rules = {name: random_rule(random, table[name]) for name in free if random.random() < 0.5}
    most = int(random.integers(1, 4)) if random.random() < 0.4 else None
    return Schema.infer(table, immutable=immutable, rules=Rules(rules, max_changes=most))


def all_rows(table, schema, factual):
    """Return every row that keeps the immutables: levels, and whole numbers of the fitted range or of the rule's."""
    values, levels = [], {feature.name: feature.levels for feature in schema.features}
    for name in table.columns:
        rule = schema.rules.features.get(name, Rule())
        if name in schema.immutable:
            values.append([factual[name]])
        elif pd.api.types.is_numeric_dtype(table[name].dtype):
            low = table[name].min() if rule.low == -np.inf else int(rule.low)
            high = table[name].max() if rule.high == np.inf else int(rule.high)
            values.append(sorted({*range(int(low), int(high) + 1), int(factual[name])}))
        else:
            values.append(list(levels[name]))  # also those that no row has
    rows = pd.DataFrame(list(itertools.product(*values)), columns=table.columns)
    return rows.astype(table.dtypes.to_dict())


@pytest.mark.filterwarnings("ignore::onbmacf.errors.OnbmacfWarning")
@pytest.mark.parametrize("seed", range(N_TABLES))
def test_every_status_agrees_with_a_search_over_all_values(seed):
    random = np.random.default_rng(seed)
    table = random_table(random)
    model, schema = random_model(random, table), random_schema(random, table)
    try:
        explainer = ONBMACF(plausibility=0).fit(table, model, schema=schema)
    except ModelError:
        pytest.skip("the model gives one label only")
    space = explainer.fitted_.space
    for answer in explainer.explain(table.head(N_ROWS)):
        rows = all_rows(table, explainer.schema_, answer.factual)
        other = rows[model(rows) != answer.label]
        legal = other[[not breaks(answer.factual, row, schema.rules) for _, row in other.iterrows()]]
        assert (answer.status == "found") == bool(len(legal)), answer.reason
        if answer.status != "found":
            assert answer.status == "infeasible"
            assert "None exists" in answer.reason
            continue
        factual = space.encode(answer.factual.to_frame().T.astype(table.dtypes.to_dict()))
        nearest = np.abs(space.encode(legal) - factual).sum(axis=1).min()
        found = answer.counterfactuals[0]
        assert not breaks(found.factual, found.values, schema.rules)
        assert found.distance == pytest.approx(nearest, abs=1e-12)
