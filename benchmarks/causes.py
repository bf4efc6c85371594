"""Which answers still hold once the effects of their changes have followed, on structural models that are known.

    python benchmarks/causes.py [--quick] [--json FILE] [--write docs/benchmark/causes.md]

Three structural models of Karimi and others, "Algorithmic recourse under imperfect causal knowledge" (2020): three
variables, linear; three variables, nonlinear with additive noise; a loan, seven variables. Two models each, 200 refused
rows: without causes, with learned mechanisms (linear; splines), and with the true ones. An answer holds if the model
says the target of the row that its actions lead to in the true structure, computed here, row by row.
"""

import argparse
import warnings

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

from common import QUICK, SEED, TARGET, about, add_output, machine, save, shown
from common import table as markdown
from onbmacf import ONBMACF, Causes, Schema

N_ROWS, N_EXPLAINED, DECIMALS = 3000, 200, 2
WAYS = {"without": "without causes", "linear": "linear", "splines": "splines", "true": "true mechanisms"}


def sigmoid(x):
    """Return 1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


# Per model: its effects, each with its causes and f, and what its other columns are drawn from.
STRUCTURES = {
    "three variables, linear": {
        "b": (["a"], lambda rows: -rows["a"]),
        "c": (["a", "b"], lambda rows: 0.05 * rows["a"] + 0.25 * rows["b"]),
    },
    "three variables, nonlinear": {
        "b": (["a"], lambda rows: -1 + 3 * sigmoid(2 * rows["a"])),
        "c": (["a", "b"], lambda rows: -0.05 * rows["a"] + 0.25 * rows["b"] ** 2),
    },
    "loan, seven variables": {
        "amount": (["age", "sex"], lambda rows: 1 - 0.01 * (rows["age"] - 5) ** 2 + rows["sex"]),
        "duration": (
            ["age", "sex", "amount"],
            lambda rows: -1 + 0.1 * rows["age"] + 2 * rows["sex"] + rows["amount"],
        ),
        "income": (
            ["age", "sex", "education"],
            lambda rows: -4 + 0.1 * (rows["age"] + 35) + (2 + rows["education"]) * rows["sex"],
        ),
        "savings": (["income"], lambda rows: -4 + 1.5 * (rows["income"] > 0) * rows["income"]),
    },
}
SPREADS = {"b": 1, "c": 1, "amount": 2, "duration": 3, "income": 2, "savings": 5}  # of the noise of each effect


def drawn(name, n_rows):
    """Return rows of a structural model, and how likely each is to be accepted."""
    rng = np.random.default_rng(SEED)
    if name.startswith("loan"):
        sex, age = rng.integers(0, 2, n_rows), rng.gamma(10, 3.5, n_rows) - 35
        education = sigmoid(-1 + 0.5 * sex + sigmoid(0.1 * age) + rng.normal(0, 0.5, n_rows)) - 0.5
        rows = pd.DataFrame({"sex": sex, "age": age, "education": education})
    else:
        first = np.where(rng.random(n_rows) < 0.5, rng.normal(-2, 1.2, n_rows), rng.normal(1, 1, n_rows))
        rows = pd.DataFrame({"a": first})
    rows = rows.round(DECIMALS)
    for effect, (_, function) in STRUCTURES[name].items():
        rows[effect] = (function(rows) + rng.normal(0, SPREADS[effect], n_rows)).round(DECIMALS)
    if name.startswith("loan"):
        income, savings = rows["income"], rows["savings"]
        score = 0.3 * (income + savings + income * savings - rows["amount"] - rows["duration"])
    else:
        score = 2.5 * rows.sum(axis=1) / rows.sum(axis=1).abs().mean()
    return rows, (rng.random(n_rows) < sigmoid(score)).astype(int)


def reached(name, found):
    """Return the row that the actions of a counterfactual lead to in the true structure."""
    before, row = found.factual.astype(float), found.factual.astype(float)
    row[list(found.actions)] = found.values[list(found.actions)].astype(float)
    for effect, (_, function) in STRUCTURES[name].items():
        if effect not in found.actions:
            row[effect] = before[effect] - float(function(before)) + float(function(row))
    return row


def share_that_holds(name, rows, model, causes, n_rows):
    """Return the share of answers whose actions are enough once their effects have followed, and how many there are."""
    schema = Schema.infer(rows, immutable=["sex", "age"] if "sex" in rows else [])
    explainer = ONBMACF().fit(rows, model, schema=schema, causes=causes)
    refused = rows[model.predict(rows) != TARGET].iloc[:n_rows]
    answers = [found for one in explainer.explain(refused, target=TARGET) for found in one.counterfactuals]
    ends = pd.DataFrame([reached(name, found) for found in answers])
    return float((model.predict(ends[rows.columns]) == TARGET).mean()), len(answers)


def measured(name, n_explained=N_EXPLAINED):
    """Yield one line per model: the shares without causes, with mechanisms learned in two ways, and with true ones."""
    rows, labels = drawn(name, N_ROWS)
    true = STRUCTURES[name]
    splines = make_pipeline(SplineTransformer(6, extrapolation="linear"), LinearRegression())
    linear = {effect: causes for effect, (causes, _) in true.items()}
    curved = {effect: (causes, splines) for effect, (causes, _) in true.items()}
    kinds = {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
        "forest": RandomForestClassifier(100, min_samples_leaf=5, random_state=SEED),
    }
    for kind, model in kinds.items():
        model.fit(rows, labels)
        ways = {"without": None, "linear": Causes(linear), "splines": Causes(curved), "true": Causes(true)}
        line = {"structure": name, "model": kind}
        for way, causes in ways.items():
            line[way], line[f"n_{way}"] = share_that_holds(name, rows, model, causes, n_explained)
        yield line


def main():
    """Measure all, print the table, and write it where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_output(parser)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [line for name in STRUCTURES for line in measured(name, 20 if options.quick else N_EXPLAINED)]
    heads = ["structure", "model", "answers", *WAYS.values()]
    cells = [
        [one["structure"], one["model"], str(one["n_true"]), *(shown(one[way], 3) for way in WAYS)] for one in lines
    ]
    facts = machine()
    text = f"{QUICK if options.quick else ''}{markdown(heads, cells)}\n{about(facts)}\n"
    print(text)
    save(options, {"machine": facts, "lines": lines}, {"causes": text})


if __name__ == "__main__":
    main()
