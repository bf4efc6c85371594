"""Missing values in small tables, against a search over all that a row may become."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from amounts import seeds
from onbmacf import ONBMACF, Rule, Rules, Schema


def small_table(random):
    n_rows = int(random.integers(10, 40))
    columns = {
        "k": random.integers(0, 4, n_rows).astype(float),
        "t": random.choice(["a", "b", "c"], n_rows).astype(object),
        "o": pd.Categorical(random.choice(["S", "M", "L"], n_rows), ["S", "M", "L"], ordered=True),
        "b": random.choice(["no", "yes"], n_rows).astype(object),
    }
    table = pd.DataFrame(columns)
    return table.where(random.random(table.shape) > 0.2)


def codes_of(rows):
    """Return rows as codes; a missing value is one of its own."""
    levels = {"t": "abc", "o": "SML", "b": ["no", "yes"]}
    found = [rows[name].map({level: at for at, level in enumerate(own)}) for name, own in levels.items()]
    return np.nan_to_num(np.column_stack([rows["k"], *found]).astype(float), nan=2.6)


def distance_of(before, after, weights):
    """Return the Manhattan distance by its definition."""
    scale = {"k": lambda value: value / 3, "o": lambda value: "SML".index(value) / 2, "b": lambda value: value == "yes"}
    total = 0.0
    for name, weight in weights.items():
        old, new = before[name], after[name]
        if pd.isna(old) or pd.isna(new):
            gap = float(pd.isna(old) != pd.isna(new))
        else:
            gap = float(old != new) if name == "t" else abs(float(scale[name](new)) - float(scale[name](old)))
        total += weight * gap
    return total


@pytest.mark.parametrize("seed", seeds(12))
def test_every_status_and_distance_agrees_with_a_search_over_all_values(seed):
    random = np.random.default_rng(seed)
    table = small_table(random)
    table.loc[[0, 1], "k"] = [0.0, 3.0]
    mix = random.normal(size=(4, 4))
    score = lambda rows: np.sin(codes_of(rows) @ mix).sum(axis=1)  # noqa: E731
    middle = np.median(score(table))
    model = lambda rows: (score(rows) > middle).astype(int)  # noqa: E731
    fillable = [name for name in table.columns if random.random() < 0.5]
    weights = dict(zip(table.columns, random.choice([1.0, 2.0], 4).tolist(), strict=True))
    rules = Rules({name: Rule(weight=weight) for name, weight in weights.items()})
    schema = Schema.infer(table, immutable=["b"], fillable=fillable, rules=rules)
    explainer = ONBMACF(plausibility=0).fit(table, model, schema=schema)
    values = {"k": [0.0, 1.0, 2.0, 3.0], "t": list("abc"), "o": list("SML")}
    for answer in explainer.explain(table.head(12)):
        own = answer.factual
        held = {name for name in table.columns if name == "b" or (pd.isna(own[name]) and name not in fillable)}
        free = [[own[name]] if name in held else [own[name], *values[name]] for name in table.columns]
        rows = pd.DataFrame(list(product(*free)), columns=table.columns).astype(table.dtypes.to_dict())
        rows = rows[[not (row.isna() & own.notna()).any() for _, row in rows.iterrows()]]
        other = rows[model(rows) != answer.label]
        assert (answer.status == "found") == bool(len(other)), answer.reason
        if len(other):
            nearest = min(distance_of(own, row, weights) for _, row in other.iterrows())
            assert answer.counterfactuals[0].distance == pytest.approx(nearest, abs=1e-12)
        else:
            assert answer.status == "infeasible"
