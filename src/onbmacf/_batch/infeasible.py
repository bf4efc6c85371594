"""Why a row has no answer: the smallest release that would help and, on request, the answer with it.

    Explanations with rows without an answer  ->  with_reasons  ->  the same, each with what it would need

Such a row is searched again without each rule in turn, with the immutable features free, and with nothing held
(docs/decisions/0026-rules.md). An answer to a looser question that changes no immutable feature after all is taken.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from onbmacf._base.arrays import Mask, Rows, stack, take
from onbmacf._base.enums import Relaxation, Status
from onbmacf._batch.call import Call
from onbmacf._batch.factuals import Factuals
from onbmacf._rows.constraints import Constraints
from onbmacf.explanations import Explanations
from onbmacf.rules import Rules

Again = Callable[[Call, Rows], Explanations]  # another call, about some of the rows


class Release(NamedTuple):
    """Something that could be given up: rules in words, and whether immutable features may change."""

    rules: tuple[str, ...]
    call: Call
    wanted_by: tuple[str, ...]  # values of the option `release` with which it is given up


def with_reasons(call: Call, factuals: Factuals, answers: Explanations, ran_out: Mask, again: Again) -> Explanations:
    """Add what each row without an answer would need; where the options release that, answer with it."""
    answers = _with_broken_rules(call, factuals, answers)
    without = np.isin(answers.statuses.astype(str), [Status.NONE_FOUND, Status.INFEASIBLE])
    blocked = np.flatnonzero(without & ~ran_out)
    for release in [] if call.options.limits else _releases(call):  # each would cost as much again
        if not len(blocked) or call.is_over:
            break
        tried = again(release.call, blocked)
        freed = np.flatnonzero(tried.statuses == Status.FOUND)
        answers = _told(call, release, answers, tried, blocked)
        blocked = np.delete(blocked, freed)
    return answers


def _releases(call: Call) -> Iterator[Release]:
    """Yield what could be given up, the least first: each rule, single immutables, all of them, everything."""
    rules, taken = call.constraints.rules, ("immutable", "rules")
    singly = [Release((what,), _under(call, rest), ("rules",)) for what, rest in rules.singly_without()]
    immutable = np.flatnonzero(call.fitted.space.is_immutable)
    is_last_resort = call.features.may_release and not call.strategy.is_readable  # the search has tried them itself
    free = [] if is_last_resort else [frozenset([int(at)]) for at in immutable]
    free += [frozenset(immutable.tolist())] if len(free) > 1 else []
    freely = [Release((), replace(call, freed=freed), taken) for freed in free]
    yield from [*freely, *singly] if call.release == "immutable" else [*singly, *freely]
    if rules:
        everything = _under(replace(call, freed=frozenset(immutable.tolist())), rules.only_weights())
        yield Release(tuple(what for what, _ in rules.singly_without()), everything, ("rules",))


def _under(call: Call, rules: Rules) -> Call:
    return replace(call, constraints=Constraints(call.fitted.space, rules))


def _told(call: Call, release: Release, answers: Explanations, tried: Explanations, places: Rows) -> Explanations:
    """Say what the rows at `places` need by what was found for them with a release; take it where it is given up."""
    reasons, needs, statuses = answers.reasons.copy(), answers.would_need.copy(), answers.statuses.copy()
    new = []
    for line in np.flatnonzero(tried.statuses == Status.FOUND):
        own = take(tried.batch, np.flatnonzero(tried.batch.factual == line))
        changed = own.changed[0] & call.fitted.space.is_immutable
        names = [str(name) for name, is_changed in zip(tried.rows.columns, changed, strict=True) if is_changed]
        row, needed = places[line], (*names, *release.rules)
        if not needed or call.release in release.wanted_by:
            kind = Relaxation.IMMUTABILITY if names else Relaxation.RULES if needed else Relaxation.NONE
            relaxed = np.full(len(own.factual), kind, dtype=object)
            new.append(own._replace(factual=np.full(len(own.factual), row), relaxation=relaxed))
            statuses[row] = Status.FOUND
            reasons[row] = f"{reasons[row]} {_words(needed, 'Found')}" if needed else ""
        else:
            reasons[row], needs[row] = f"{reasons[row]} {_words(needed, 'One is found')}", needed
    batch = stack([answers.batch, *new])
    batch = take(batch, np.argsort(batch.factual, kind="stable"))
    return replace(answers, statuses=statuses, reasons=reasons, would_need=needs, batch=batch)


def _words(needed: tuple[str, ...], found: str) -> str:
    """Return a sentence about what a row needs: features that may change, rules that are released."""
    features = [name for name in needed if not name.startswith("the rule")]
    rules = [name for name in needed if name.startswith("the rule")]
    parts = [f"if {_listed(features)} may change"] if features else []
    parts += [f"without {_listed(rules)}"] if rules else []
    return f"{found} {' and '.join(parts)}."


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _with_broken_rules(call: Call, factuals: Factuals, answers: Explanations) -> Explanations:
    reasons = answers.reasons.copy()
    for row, broken in call.constraints.broken_by(factuals.N).items():
        if answers.statuses[row] == Status.INVALID_ROW:
            continue
        reasons[row] = f"{reasons[row]} The row itself breaks the rule for {', '.join(broken)}.".strip()
    return replace(answers, reasons=reasons)
