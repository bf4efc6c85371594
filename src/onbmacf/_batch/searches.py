"""The search of one call: the open factuals in parts, in this process or several, put together again.

Call, Factuals  ->  search_all  ->  Found of all open factuals, and how hard the searches looked
"""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from onbmacf._balls.recover import let_in
from onbmacf._base.arrays import Rows, objects, stack, take
from onbmacf._base.executor import run_all
from onbmacf._batch.call import Call
from onbmacf._batch.equal_rows import first_of, for_all
from onbmacf._batch.factuals import Asker, Factuals
from onbmacf._batch.fitted import Fitted
from onbmacf._batch.opening import Opening
from onbmacf._rows.counts import Counts
from onbmacf._rows.model import BlackBox
from onbmacf._search.options import LIMITS, Options
from onbmacf._search.pairs import chunks
from onbmacf._search.problem import Found
from onbmacf._search.strategies import Effort, search

FRONT_LEVELS = (0.0, 0.6, 1.0)  # values of `plausibility` at which the front is searched
FRONT_POINTS = 12  # counterfactuals per row and level that compete for the front


class Part(NamedTuple):
    """What was found for some factuals, and at what cost."""

    found: Found
    lines: Rows  # the factuals searched for
    effort: Effort  # for each of them
    counts: Counts


def search_all(
    call: Call, factuals: Factuals, box: BlackBox, opening: Opening | None = None
) -> tuple[Found, Effort, Fitted]:
    """Search for every open factual; the map comes back too, grown if `recover="persist"` lets rows into it.

    With an opening, which takes a call that is one search, the factuals' labels are asked with the first points.
    """
    lines = first = factuals.open_lines()
    call.fitted.map  # noqa: B018 - made once, here, for all processes
    if call.options.recover == "persist":
        parts, call = _one_by_one(call, factuals, box, lines)
    else:
        first = first_of(factuals, lines)
        pieces = _pieces(call, np.unique(first))
        parts = [part for how in _searches(call) for part in _run(call, how, factuals, box, pieces, opening)]
    for part in parts:
        box.counts.add(part.counts)
    found, effort = _found(parts, call.fitted.space.width), _effort(parts, len(factuals.z))
    return *for_all(found, effort, lines, first), call.fitted


def is_one_search(call: Call, n_rows: int) -> bool:
    """Say whether so many rows are searched for all together, at once and once."""
    if call.options.recover == "persist":
        return False
    return len(_pieces(call, np.arange(n_rows))) == 1 == len(_searches(call))


def _pieces(call: Call, lines: Rows) -> list[Rows]:
    """Return the factuals that are searched together; each alone where its calls of the model are counted."""
    if call.options.max_model_calls is not None:
        return [lines[[place]] for place in range(len(lines))]
    fitted, options, features = call.fitted, call.options, call.fitted.space.schema.features
    n_free = sum(own.is_numeric and not is_held for own, is_held in zip(features, call.is_held, strict=True))
    slices = chunks(len(lines), len(fitted.cover), fitted.space.width, n_free, options.n_jobs, options.search)
    return [lines[piece] for piece in slices]


def _searches(call: Call) -> list[tuple[Options, int]]:
    """Return the options and number of counterfactuals of each search: one, or for the front one per level."""
    options = call.options
    if not call.query.front:
        return [(options, options.n_counterfactuals)]
    shares = {name: getattr(options, name) for name in LIMITS if getattr(options, name) is not None}
    options = replace(options, **{name: max(1, limit // len(FRONT_LEVELS)) for name, limit in shares.items()})
    return [(replace(options, plausibility=level), FRONT_POINTS) for level in FRONT_LEVELS]


def _run(
    call: Call,
    how: tuple[Options, int],
    factuals: Factuals,
    box: BlackBox,
    pieces: list[Rows],
    opening: Opening | None,
) -> list[Part]:
    work = [(lines, take(factuals, lines)) for lines in pieces]
    part = partial(_search_part, call, box, how, opening=opening)
    return run_all(part, work, call.options.n_jobs, "explaining", told=box.notices.append)


def _search_part(
    call: Call,
    box: BlackBox,
    how: tuple[Options, int],
    piece: tuple[Rows, Factuals],
    opening: Opening | None = None,
) -> Part:
    """Search for some factuals with counts of its own; lines in the result are those of the whole batch."""
    (options, n), (lines, factuals) = how, piece
    asker = Asker(call, box.counting(), factuals, opening=opening)
    if call.is_over:
        return Part(_none(call.fitted.space.width), lines, _unreached(len(lines)), asker.box.counts)
    found, effort = search(call.fitted.map, call.features, options, asker.asked(), n)
    effort = effort._replace(raised=asker.notes.raised(len(lines)), unseen=asker.notes.unseen(len(lines)))
    return Part(found._replace(factual=lines[found.factual]), lines, effort, asker.box.counts)


def _one_by_one(call: Call, factuals: Factuals, box: BlackBox, lines: Rows) -> tuple[list[Part], Call]:
    """Search row after row, each after it was let into the map."""
    parts = []
    for line in lines:
        call = replace(call, fitted=_absorbed(call, factuals, int(line)))
        for how in _searches(call):
            parts.append(_search_part(call, box, how, (lines[lines == line], take(factuals, np.array([line])))))
    return parts, replace(call, fitted=call.fitted.grown(black_box=box))


def _absorbed(call: Call, factuals: Factuals, line: int) -> Fitted:
    """Let a row of another label than its home ball into the map for good, unless no fitted row has that label."""
    fitted, options, z, code = call.fitted, call.options, factuals.z[line], int(factuals.codes[line])
    if code >= len(fitted.black_box.classes):
        return fitted
    how = (options.metric, options.competitors, options.association, options.boundary)
    grown = let_in(fitted.cover, fitted.Z, fitted.labels, z, code, *how)
    return fitted if grown is None else fitted.grown(**dict(zip(("cover", "Z", "labels"), grown, strict=True)))


def _found(parts: list[Part], width: int) -> Found:
    """Put what was found part by part together, sorted by factual."""
    if not parts:
        return _none(width)
    every = stack([part.found for part in parts])
    return take(every, np.argsort(every.factual, kind="stable"))


def _none(width: int) -> Found:
    none, points = np.empty(0, dtype=np.intp), np.empty((0, width))
    return Found(none, none, none, none, points, points, np.empty(0, dtype=bool), none, np.empty(0))


def _unreached(n: int) -> Effort:
    """Return the effort for factuals that the search did not come to before the time was up."""
    none, no = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=bool)
    return Effort(none, ~no, no, none, none, objects([""] * n), objects([""] * n))


def _effort(parts: list[Part], n_factuals: int) -> Effort:
    """Return how hard all searches together looked, per factual."""
    kinds = (np.intp, bool, bool, np.intp, np.intp)
    total = Effort(*(np.zeros(n_factuals, dtype=kind) for kind in kinds), *(objects([""] * n_factuals) for _ in "ab"))
    for part in parts:
        total.asked[part.lines] += part.effort.asked
        total.ran_out[part.lines] |= part.effort.ran_out
        total.is_proven[part.lines] |= part.effort.is_proven
        total.failed[part.lines] += part.effort.failed
        total.left[part.lines] = part.effort.left
        for words, own in ((total.raised, part.effort.raised), (total.unseen, part.effort.unseen)):
            words[part.lines] = np.where(own == "", words[part.lines], own)
    return total
