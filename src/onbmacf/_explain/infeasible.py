"""Why a row has no answer: the first release that would help, single ones first, and, on request, the answer with it.

    Explanations with rows without an answer  ->  with_reasons  ->  the same, each with what it would need

Such a row is searched again without each rule in turn, with the immutable features free, and with nothing held
(docs/decisions/0026-rules.md). An answer to a looser question that changes no immutable feature after all is taken.
Each is a search of its own: of many immutable features or rules only some are tried by themselves, for at most
MOST_QUESTIONS questions a row, and the reason says how many were tried and what that took.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows, stack, take
from onbmacf._base.enums import Relaxation, Status
from onbmacf._base.missing import as_nan
from onbmacf._explain.fitted import Fitted
from onbmacf._explain.request import Request
from onbmacf._explain.rows import Factuals
from onbmacf._table.constraints import Constraints
from onbmacf._text.labels import Labels
from onbmacf.explanations import Explanations
from onbmacf.rules import Rules

MOST_SINGLY = 32  # immutable features, and rules, that are released one by one
MOST_QUESTIONS = 10_000  # to the model about one row, after which nothing more is released by itself
MOST_TOGETHER = 300  # features that may change in a search with everything released: beyond, it takes seconds a row
FEATURES, RULES = "immutable features", "rules"
RELAXED = np.array(  # by whether an immutable feature changes, and whether a rule was released
    [[Relaxation.NONE, Relaxation.RULES], [Relaxation.IMMUTABILITY, Relaxation.BOTH]], dtype=object
)
Again = Callable[[Request, Rows], Explanations]  # another call, about some of the rows


class Release(NamedTuple):
    """Something that could be given up: rules in words, and whether immutable features may change."""

    rules: tuple[str, ...]
    request: Request
    wanted_by: tuple[str, ...]  # values of the option `release` with which it is given up
    kind: str = ""  # what is released by itself, in words; empty where several are


def with_reasons(
    request: Request, factuals: Factuals, answers: Explanations, ran_out: Mask, again: Again, asked: Rows
) -> Explanations:
    """Add what each row without an answer would need; where the options release that, answer with it.

    `again` adds to `asked` how many questions it took about each row.
    """
    answers = _with_broken_rules(request, factuals, answers)
    without = (answers.statuses == Status.NONE_FOUND) | (answers.statuses == Status.INFEASIBLE)
    searched = blocked = np.flatnonzero(without & ~ran_out)
    if request.options.limits or not len(blocked):  # each release would cost as much again
        return answers
    tried_by = {kind: np.zeros(len(answers), dtype=np.intp) for kind in (FEATURES, RULES)}
    for release in _releases(request):
        lines = blocked[asked[blocked] < MOST_QUESTIONS] if release.kind else blocked
        if request.is_over:
            break
        if not len(lines):
            continue
        tried = again(_asked(request, release), lines)
        if release.kind:
            tried_by[release.kind][lines] += 1
        needed = _needed(request, release, tried, lines, again)
        answers = _told(request, release, answers, tried, lines, needed)
        blocked = np.setdiff1d(blocked, lines[tried.statuses == Status.FOUND])
    return _with_asked(_with_untried(request, answers, blocked, tried_by), searched, asked)


def _with_asked(answers: Explanations, searched: Rows, asked: Rows) -> Explanations:
    """Say of the rows whose reason counts questions what it took to find out what they would need."""
    reasons = answers.reasons.copy()
    for row in searched[(answers.statuses[searched] == Status.NONE_FOUND) & (asked[searched] > 0)]:
        reasons[row] += f" Looking for what it would need took {asked[row]:,} more questions."
    return replace(answers, reasons=reasons)


def _asked(request: Request, release: Release) -> Request:
    """Return the call with a release; where it only tells what would be needed, no change is made for neighbours."""
    if request.release in release.wanted_by or not request.strategy.is_readable:
        return release.request
    return replace(release.request, options=replace(request.options, plausibility=0.0))


def _releases(request: Request) -> Iterator[Release]:
    """Yield what could be given up, the least first: each rule, single immutables, all of them, everything."""
    rules, taken, immutable = request.constraints.rules, ("immutable", "rules"), _immutable(request)
    in_words = _labels(request).rules(rules)  # as people call features and levels
    named = islice(zip(in_words.singly_without(), rules.singly_without(), strict=True), MOST_SINGLY)
    singly = [Release((what,), _under(request, rest), ("rules",), RULES) for (what, _), (_, rest) in named]
    free = [frozenset([int(at)]) for at in _tried_first(request)]
    freely = [Release((), replace(request, freed=freed), taken, FEATURES) for freed in free]
    if len(free) > 1 and _is_together(request):
        freely.append(Release((), replace(request, freed=frozenset(immutable.tolist())), taken))
    yield from [*freely, *singly] if request.release == "immutable" else [*singly, *freely]
    if rules and _is_together(request):
        everything = _under(replace(request, freed=frozenset(immutable.tolist())), rules.only_weights())
        yield Release(tuple(what for what, _ in in_words.singly_without()), everything, ("rules",))


def _labels(request: Request) -> Labels:
    return request.fitted.space.schema.labels


def _immutable(request: Request) -> Rows:
    return np.flatnonzero(request.fitted.space.is_immutable & ~request.fitted.space.is_derived)


def _is_together(request: Request) -> bool:
    """Say whether all that is held is released in one search."""
    return len(request.is_held) <= MOST_TOGETHER or len(_immutable(request)) <= MOST_SINGLY


def _tried_first(request: Request) -> Rows:
    """Return the immutable features that are released one by one; none where the search has done it itself."""
    immutable = _immutable(request)
    if request.features.may_release and not request.strategy.is_readable:
        return immutable[:0]
    order = np.argsort(-_telling(request.fitted)[immutable], kind="stable")
    return immutable[order[:MOST_SINGLY]]


def _telling(fitted: Fitted) -> Matrix:
    """Return per feature how far apart the labels' means are, in deviations: the farther, the more it may help."""
    Z = as_nan(fitted.Z)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a label all of whose rows lack a value
        means = np.array([np.nanmean(Z[fitted.labels == label], axis=0) for label in np.unique(fitted.labels)])
        apart = (np.nanmax(means, axis=0) - np.nanmin(means, axis=0)) / np.nanstd(Z, axis=0)
    return np.maximum.reduceat(np.nan_to_num(apart, posinf=0.0), [block.start for block in fitted.space.blocks])


def _with_untried(request: Request, answers: Explanations, blocked: Rows, tried_by: dict[str, Rows]) -> Explanations:
    """Tell the rows for which no single release was found what was not tried."""
    n_of = {FEATURES: len(_immutable(request)), RULES: sum(1 for _ in request.constraints.rules.singly_without())}
    if not len(_tried_first(request)):  # the search has done it itself, of each of them
        n_of[FEATURES] = 0
    together = "" if _is_together(request) else "; all together were not"
    reasons = answers.reasons.copy()
    several = [row for row, needed in enumerate(answers.would_need) if len(needed) > 1]
    for row in {*blocked.tolist(), *several}:
        left = {kind: (int(tried_by[kind][row]), n) for kind, n in n_of.items() if tried_by[kind][row] < n}
        words = [f"{tried:,} of the {n:,} {kind}" for kind, (tried, n) in left.items()]
        if words:
            reasons[row] = f"{reasons[row]} Only {' and '.join(words)} were released by themselves{together}."
    return replace(answers, reasons=reasons)


def _under(request: Request, rules: Rules) -> Request:
    return replace(request, constraints=Constraints(request.fitted.space, rules))


def _needed(
    request: Request, release: Release, tried: Explanations, places: Rows, again: Again
) -> dict[int, frozenset[int]]:
    """Return per row that was found with a release which immutable features it needs: those that its answer changes.

    With fewer features free, a search goes other ways: it is asked before it is said that these suffice.
    """
    changed = tried.batch.changed & request.fitted.space.is_immutable
    lines = np.flatnonzero(tried.statuses == Status.FOUND).tolist()
    first = {line: int(np.flatnonzero(tried.batch.factual == line)[0]) for line in lines}
    needed = {line: frozenset(np.flatnonzero(changed[first[line]]).tolist()) for line in lines}
    free = release.request.freed
    is_taken = request.release in release.wanted_by  # then there is an answer, and nothing is foretold
    for named in {some for some in needed.values() if some != free and (some or release.rules) and not is_taken}:
        same = np.array([line for line in lines if needed[line] == named])
        alone = again(replace(_asked(request, release), freed=named), places[same])
        needed.update(dict.fromkeys(same[alone.statuses != Status.FOUND].tolist(), free))
    return needed


def _told(
    request: Request,
    release: Release,
    answers: Explanations,
    tried: Explanations,
    places: Rows,
    needed_by: dict[int, frozenset[int]],
) -> Explanations:
    """Say what the rows at `places` need by what was found for them with a release; take it where it is given up."""
    reasons, needs, statuses = answers.reasons.copy(), answers.would_need.copy(), answers.statuses.copy()
    new = []
    for line in np.flatnonzero(tried.statuses == Status.FOUND):
        found = take(tried.batch, np.flatnonzero(tried.batch.factual == line))
        changed = found.changed & request.fitted.space.is_immutable
        chosen = np.isin(np.arange(changed.shape[1]), list(needed_by[int(line)]))
        row, needed = places[line], (*_names(tried, chosen), *release.rules)
        if not needed or request.release in release.wanted_by:
            needed = (*_names(tried, changed.any(axis=0)), *release.rules)
            relaxed = RELAXED[changed.any(axis=1).astype(np.intp), int(bool(release.rules))]
            new.append(found._replace(factual=np.full(len(found.factual), row), relaxation=relaxed))
            statuses[row] = Status.FOUND
            before = f"{reasons[row]} {_words(request, needed, 'Found')}" if needed else ""
            reasons[row] = f"{before} {tried.reasons[line]}".strip()  # also what is told of these answers themselves
        else:
            reasons[row], needs[row] = f"{reasons[row]} {_words(request, needed, 'One is found')}", needed
    batch = stack([answers.batch, *new])
    batch = take(batch, np.argsort(batch.factual, kind="stable"))
    return replace(answers, statuses=statuses, reasons=reasons, would_need=needs, batch=batch)


def _names(answers: Explanations, chosen: Any) -> list[str]:
    return [str(name) for name, is_chosen in zip(answers.rows.columns, chosen, strict=True) if is_chosen]


def _words(request: Request, needed: tuple[str, ...], found: str) -> str:
    """Return a sentence about what a row needs: features that may change, rules that are released."""
    features = [_labels(request).name(name) for name in needed if not name.startswith("the rule")]
    rules = [name for name in needed if name.startswith("the rule")]
    parts = [f"if {_listed(features)} may change"] if features else []
    parts += [f"without {_listed(rules)}"] if rules else []
    return f"{found} {' and '.join(parts)}."


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _with_broken_rules(request: Request, factuals: Factuals, answers: Explanations) -> Explanations:
    reasons, call = answers.reasons.copy(), _labels(request).name
    said = {repr(name): repr(call(name)) for name in request.fitted.space.schema.labels}
    pairs = request.constraints.rules.at_most
    said |= {f"{low!r} <= {high!r}": f"{call(low)!r} <= {call(high)!r}" for low, high in pairs if said}
    for row, broken in request.constraints.broken_by(factuals.N).items():
        if answers.statuses[row] == Status.INVALID_ROW:
            continue
        rules = f"the rule{'s' * (len(broken) > 1)} for {_listed([said.get(what, what) for what in broken])}"
        reasons[row] = f"{reasons[row]} The row itself breaks {rules}.".strip()
    return replace(answers, reasons=reasons)
