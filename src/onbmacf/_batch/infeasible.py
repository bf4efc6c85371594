"""Why a row has no answer: which rule blocks it and, on request, the answer without it.

    Explanations with infeasible rows  ->  with_reasons  ->  the same, each with what blocks it

A blocked row is asked again without each rule in turn, then without the immutables where they are held, then without
any rule (docs/decisions/0026-rules.md).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.checks import listed
from onbmacf._rows.constraints import Constraints
from onbmacf._rows.space import FeatureSpace
from onbmacf.explanation import Explanations, Status, merged
from onbmacf.schema import Schema


class Wish(NamedTuple):
    """What one call of explain asks for."""

    targets: NDArray[np.intp] | None
    min_probability: float
    front: bool


class Relaxable(Protocol):
    """What is needed of an explainer: its rules, and itself with others."""

    release: str
    space_: FeatureSpace

    @property
    def schema_(self) -> Schema:
        """The features and rules."""
        ...

    def relaxed(self, **changes: Any) -> "Relaxable":
        """Return the same explainer with other parameters or rules."""
        ...

    def explain_frame(self, frame: pd.DataFrame, wish: Wish) -> Explanations:
        """Explain rows by the explainer's rules alone."""
        ...


def with_reasons(explainer: Relaxable, answers: Explanations, wish: Wish) -> Explanations:
    """Say which rule blocks the rows without an answer and, on request, answer them with as few released as will do."""
    blocked = np.flatnonzero(answers.statuses == Status.INFEASIBLE)
    reasons = answers.reasons.copy()
    for row, broken in (
        Constraints(explainer.space_, explainer.schema_.rules)
        .broken_by(explainer.space_.form.numbers(answers.rows))
        .items()
    ):
        reasons[row] = f"{reasons[row]} The row itself breaks the rule for {', '.join(broken)}.".strip()
    answers = replace(answers, reasons=reasons)
    for what, other in _releases(explainer):
        if not len(blocked):
            break
        tried = other.explain_frame(answers.rows.iloc[blocked], wish)
        freed = np.flatnonzero(tried.statuses == Status.FOUND)
        reason = f"Blocked by {what}: without, there is a counterfactual."
        answers = merged(answers, tried, blocked, freed, reason, explainer.release == "rules")
        blocked = np.delete(blocked, freed)
    return answers


def _releases(explainer: Relaxable) -> Iterator[tuple[str, Relaxable]]:
    """Yield what could be released and the explainer without it: each rule, the immutables, then all rules."""
    rules = explainer.schema_.rules
    for what, rest in rules.singly_without():
        yield what, explainer.relaxed(rules=rest)
    if explainer.release != "immutable" and explainer.schema_.immutable:
        yield f"the immutability of {listed(explainer.schema_.immutable)}", explainer.relaxed(release="immutable")
    if rules:
        yield "the rules taken together", explainer.relaxed(rules=rules.only_weights(), release="immutable")
