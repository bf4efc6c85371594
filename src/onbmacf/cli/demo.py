"""`onbmacf demo`: who is at risk of heart disease, and which change would make the model say otherwise.

load_heart  ->  a 32-16 network  ->  ONBMACF (age immutable)  ->  tables and sentences
"""

from typing import Any, NamedTuple

import pandas as pd

from onbmacf._text.wording import marked, shown
from onbmacf.datasets import heart_network, load_heart
from onbmacf.explainer import ONBMACF
from onbmacf.explanation import Explanation
from onbmacf.explanations import Explanations
from onbmacf.schema import Schema


class Demo(NamedTuple):
    """A fitted explainer of the heart table, and its answers."""

    explainer: ONBMACF
    answers: Explanations


def labelled_heart() -> "tuple[pd.DataFrame, pd.Series[Any]]":
    """Return the embedded table, and who is at risk in words."""
    table, chd = load_heart()
    return table, chd.map({0: "healthy", 1: "at risk"})


def run_demo(n_people: int = 5, n_counterfactuals: int = 1) -> Demo:
    """Train the network, map the table, and explain the first people predicted at risk."""
    table, labels = labelled_heart()
    model = heart_network().fit(table, labels)
    schema = Schema.infer(table, immutable=["age"])
    explainer = ONBMACF(n_counterfactuals).fit(table, model, schema=schema)
    at_risk = table[model.predict(table) == "at risk"]
    return Demo(explainer, explainer.explain(at_risk.head(n_people), target="healthy"))


def demo_text(demo: Demo) -> str:
    """Return the demo as text: for each person the changes, the semifactual and one sentence."""
    rows, balls = len(demo.explainer.Z_), len(demo.explainer.cover_)
    head = (
        f"South African heart disease: {rows} men, covered by {balls} balls of one label each.\n"
        "A network (32-16) predicts who is at risk. Age must stay as it is. What would change its mind?"
    )
    return "\n\n".join([head, *(_person(answer) for answer in demo.answers)])


def _person(answer: Explanation) -> str:
    lines = [f"Person {answer.factual.name}, {answer.factual['age']} years: {answer.label}"]
    for found in answer.counterfactuals:
        lines.append(f"  {'feature':<12}{'before':>10}{'after':>10}{'even if':>10}   -> {found.label}")
        for name in found.changed:
            even_if = "-" if found.semifactual is None else shown(found.semifactual.values[name])
            before, after = shown(found.factual[name]), shown(found.values[name])
            lines.append(f"  {marked(name, found.released):<12}{before:>10}{after:>10}{even_if:>10}")
    return "\n".join([*lines, *(f"  {sentence}" for sentence in answer.sentences())])
