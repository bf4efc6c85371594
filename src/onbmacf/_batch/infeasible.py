"""Why a row has no answer: which rule blocks it and, on request, the answer without it.

    Explanations with infeasible rows  ->  with_reasons  ->  the same, each with what blocks it

A blocked row is searched again without each rule in turn, then without the immutables where they are held, then
without any rule (docs/decisions/0026-rules.md).
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from onbmacf._base.arrays import Rows, stack, take
from onbmacf._base.checks import listed
from onbmacf._base.enums import Relaxation, Status
from onbmacf._batch.call import Call
from onbmacf._batch.factuals import Factuals
from onbmacf._rows.constraints import Constraints
from onbmacf.explanation import Explanations
from onbmacf.rules import Rules

Again = Callable[[Call, Rows], Explanations]  # another call, about some of the rows


def with_reasons(call: Call, factuals: Factuals, answers: Explanations, again: Again) -> Explanations:
    """Add which rule blocks each row without an answer; with release="rules", answer it without that rule."""
    answers = _with_broken_rules(call, factuals, answers)
    blocked = np.flatnonzero(answers.statuses == Status.INFEASIBLE)
    for what, other in _releases(call):
        if not len(blocked):
            break
        tried = again(other, blocked)
        freed = np.flatnonzero(tried.statuses == Status.FOUND)
        reason = f"Blocked by {what}: without it, a counterfactual is found."
        answers = _with_reason(answers, blocked[freed], reason)
        if call.options.release == "rules" and len(freed):
            answers = _with_answers(answers, tried, blocked, freed)
        blocked = np.delete(blocked, freed)
    return answers


def _with_broken_rules(call: Call, factuals: Factuals, answers: Explanations) -> Explanations:
    reasons = answers.reasons.copy()
    for row, broken in call.constraints.broken_by(factuals.N).items():
        reasons[row] = f"{reasons[row]} The row itself breaks the rule for {', '.join(broken)}.".strip()
    return replace(answers, reasons=reasons)


def _releases(call: Call) -> Iterator[tuple[str, Call]]:
    """Yield what could be released and the call without it: each rule, the immutables, then all rules."""
    rules, immutable = call.constraints.rules, call.fitted.space.schema.immutable
    for what, rest in rules.singly_without():
        yield what, _under(call, rest)
    free = replace(call, options=replace(call.options, release="immutable"))
    if call.options.release != "immutable" and immutable:
        yield f"the immutability of {listed(immutable)}", free
    if rules:
        yield "the rules taken together", _under(free, rules.only_weights())


def _under(call: Call, rules: Rules) -> Call:
    return replace(call, constraints=Constraints(call.fitted.space, rules))


def _with_reason(answers: Explanations, places: Rows, reason: str) -> Explanations:
    reasons = answers.reasons.copy()
    for row in places:
        reasons[row] = f"{reasons[row]} {reason}"
    return replace(answers, reasons=reasons)


def _with_answers(answers: Explanations, other: Explanations, places: Rows, freed: Rows) -> Explanations:
    """Put in what `other`, about the rows at `places`, found for the rows `freed` of it, marked as released."""
    statuses = answers.statuses.copy()
    statuses[places[freed]] = Status.FOUND
    new = take(other.batch, np.flatnonzero(np.isin(other.batch.factual, freed)))
    released = np.full(len(new.factual), Relaxation.RULES, dtype=object)
    both = stack([answers.batch, new._replace(factual=places[new.factual], relaxation=released)])
    return replace(answers, statuses=statuses, batch=take(both, np.argsort(both.factual, kind="stable")))
