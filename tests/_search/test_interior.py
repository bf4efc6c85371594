"""Dial 1 keeps its word: all neighbours have the label wherever those of a fitted row with the same immutables do."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from onbmacf import ONBMACF, Schema


def noisy_table(seed):
    """Return a table whose labels are scattered, so that few rows have neighbours of one label only."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({name: rng.random(400).round(3) for name in "abcd"})
    table["group"] = rng.choice(["x", "y", "z"], 400)
    y = (table["a"] + table["b"] + rng.normal(0, 0.5, 400) > 1.2).astype(int)
    coded = table.assign(group=table["group"].map({"x": 0, "y": 1, "z": 2}))
    forest = RandomForestClassifier(20, min_samples_leaf=2, random_state=seed).fit(coded.to_numpy(), y)
    return table, lambda rows: forest.predict(
        rows.assign(group=rows["group"].map({"x": 0, "y": 1, "z": 2})).to_numpy(dtype=float)
    )


@pytest.mark.parametrize("seed", range(3))
def test_full_plausibility_wherever_a_fitted_row_has_it(seed):
    table, model = noisy_table(seed)
    schema = Schema.infer(table, immutable=["group"])
    explainer = ONBMACF(plausibility=1).fit(table, model, schema=schema)
    fitted = explainer.fitted_
    rows = table[fitted.labels == 0].head(25)
    answers = explainer.explain(rows, target=1)
    full = (fitted.labels == 1) & (fitted.neighbours.share(fitted.Z, fitted.labels) == 1.0)
    has_full = rows["group"].isin(table["group"][full]).to_numpy()
    share = np.array([answer.counterfactuals[0].plausibility for answer in answers])
    assert has_full.any()
    assert (share[has_full] == 1.0).all()
    for place, answer in enumerate(answers):
        own = full & (table["group"] == rows["group"].iloc[place]).to_numpy()
        z = fitted.space.encode(rows.iloc[[place]])[0]
        if own.any():
            assert answer.counterfactuals[0].distance <= np.abs(fitted.Z[own] - z).sum(axis=1).min() + 0.15
