"""The search of one call: the open factuals in parts, in this process or several, put together again.

Rows that are equal in all that a search sees are searched once, and each gets what was found (decision 0018).
"""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._balls.distance import paired
from onbmacf._base.arrays import Mask, Matrix, Rows, objects, stack, take
from onbmacf._base.executor import run_all
from onbmacf._explain.request import Request
from onbmacf._explain.rows import UNREACHED, Asker, Factuals
from onbmacf._search.blocks import find_blocks
from onbmacf._search.budget import Questions
from onbmacf._search.interior import plausible_rows
from onbmacf._search.options import LIMITS, Options
from onbmacf._search.oracle import DISTRUSTED, Oracle, Terms
from onbmacf._search.paper import FIRST_ROUND, opposing_pairs
from onbmacf._search.problem import Effort, Found, Problem
from onbmacf._search.refined import find
from onbmacf._search.rounds import CAPACITY
from onbmacf._search.search import Search
from onbmacf._search.table import is_known
from onbmacf._table.calls import Counts
from onbmacf._table.gate import Admitted
from onbmacf._table.model import FAILED, BlackBox
from onbmacf._table.values import FittedValues, Values

FRONT_LEVELS = (0.0, 0.6, 1.0)  # values of `plausibility` at which the front is searched
FRONT_POINTS = 12  # counterfactuals per row and level that compete for the front
MOST_NUMBERS = 1 << 22  # numbers of the points that the factuals of a part may ask about: 32 MB
MOST_TOGETHER = 128  # factuals of a part
MOST_PAIRS = 1 << 17  # of a factual and a ball that are tried together
MOST_LISTED = 1 << 21  # of a factual and a ball that are put in order together
LEAST_POINTS = 32  # that a factual has in one step, however few balls there are: the way back from its answers


# --- equal rows -------------------------------------------------------------------------------------------------------


def first_of(N: Matrix, z: Matrix, lines: Rows) -> Rows:
    """Return, per line, the first of the lines whose row is the same to the bit: numbers, and encoded points."""
    if len(lines) < 2:
        return lines
    seen = np.column_stack([N[lines], z[lines]])
    as_bytes = np.ascontiguousarray(seen).view(np.dtype((np.void, seen.itemsize * seen.shape[1])))[:, 0]
    _, places, same = np.unique(as_bytes, return_index=True, return_inverse=True)
    return lines[places[same]]


def is_first(frame: pd.DataFrame) -> Mask:
    """Say which rows are the first of those equal to them; every one where values cannot be compared."""
    try:
        return ~frame.duplicated().to_numpy(dtype=bool)
    except Exception:  # lists, or a class of the caller's own
        return np.ones(len(frame), dtype=bool)


def for_all(found: Found, effort: Effort, lines: Rows, first: Rows) -> tuple[Found, Effort]:
    """Give each line what was found for the first one that is equal to it; `found` is sorted by factual."""
    if np.array_equal(lines, first):
        return found, effort
    n_found = np.bincount(found.factual, minlength=len(effort.asked))
    starts, n_own = (np.cumsum(n_found) - n_found)[first], n_found[first]
    within = np.arange(n_own.sum()) - np.repeat(np.cumsum(n_own) - n_own, n_own)
    for column in effort:
        column[lines] = column[first]
    return take(found, np.repeat(starts, n_own) + within)._replace(factual=np.repeat(lines, n_own)), effort


# --- the search -------------------------------------------------------------------------------------------------------


class SearchedPart(NamedTuple):
    """What was found for some factuals, and at what cost."""

    found: Found
    lines: Rows  # the factuals searched for
    effort: Effort  # for each of them
    counts: Counts
    labels: NDArray[Any] | None = None  # what the model said of the factuals, where the search asked it
    notices: tuple[str, ...] = ()


def searched(request: Request, rows: Admitted, box: BlackBox) -> tuple[Factuals, Found, Effort]:
    """Ask for the labels of the rows, and search."""
    if not request.strategy.finds_labels:
        factuals = Factuals.asked_about(rows, request, box)
        return factuals, *search_all(request, factuals, box)
    good = np.delete(np.arange(len(rows.N)), list(rows.faults))
    first = first_of(rows.N, rows.z, good)
    parts = _run(request, box, rows.N, rows.z, np.unique(first))
    labels, codes = np.full(len(rows.N), None, dtype=object), np.full(len(rows.N), FAILED, dtype=np.intp)
    codes[good] = UNREACHED
    if any(DISTRUSTED in part.notices for part in parts):
        request.fitted.heard.is_copy_right = False
    for part in parts:
        if part.labels is not None:
            said = np.array([label is not None for label in part.labels.tolist()], dtype=bool)
            labels[part.lines[said]], codes[part.lines[said]] = part.labels[said], box.codes(part.labels[said])
    labels[good], codes[good] = labels[first], codes[first]
    found, effort = _found(parts, request.fitted.space), _effort(parts, len(rows.N))
    factuals = Factuals.labelled(rows, request, labels, codes)
    return factuals, *for_all(found, effort, good, first)


def search_all(request: Request, factuals: Factuals, box: BlackBox) -> tuple[Found, Effort]:
    """Search for every open factual."""
    lines = factuals.open_lines()
    first = first_of(factuals.N, factuals.z, lines)
    parts = _run(request, box, factuals.N, factuals.z, np.unique(first), factuals)
    found, effort = _found(parts, request.fitted.space), _effort(parts, len(factuals.z))
    return for_all(found, effort, lines, first)


def _run(
    request: Request, box: BlackBox, N: Matrix, z: Matrix, lines: Rows, factuals: Factuals | None = None
) -> list[SearchedPart]:
    """Search for some rows, part by part; what the parts have counted and noticed is added to the black box's."""
    request.fitted.prepare()
    parts: list[SearchedPart] = []
    for how in _searches(request):
        if request.strategy.finds_labels:
            work: list[Any] = [(piece, N[piece], z[piece]) for piece in _pieces(request, lines)]
            part: Any = partial(_refined_part, request, box, how)
        else:
            assert factuals is not None, "such a strategy is told the labels"
            work = [(piece, take(factuals, piece)) for piece in _pieces(request, lines)]
            part = partial(_walked_part, request, box, how)
        parts += run_all(part, work, request.options.n_jobs, "explaining", told=box.notices.append)
    for done in parts:
        box.counts.add(done.counts)
        box.notices.extend(done.notices)
    return parts


def _pieces(request: Request, lines: Rows) -> list[Rows]:
    """Return the factuals that are searched together; each alone where its calls of the model are counted."""
    options, fitted = request.options, request.fitted
    if options.max_model_calls is not None:
        step = 1
    elif request.strategy.finds_labels:
        step = min(MOST_NUMBERS // (CAPACITY * len(fitted.space.blocks)), MOST_TOGETHER)
    else:
        step = _walked_together(len(fitted.cover), fitted.space.width, options.search == "exhaustive")
    step = max(1, min(step, -(-len(lines) // options.n_jobs)))
    return [lines[at : at + step] for at in range(0, len(lines), step)]


def _walked_together(n_balls: int, width: int, is_exhaustive: bool) -> int:
    """Return how many factuals may be walked from together, so that their pairs with balls fit in memory.

    A best-first search seldom goes beyond its first two rounds, so it may take more factuals at once. Of wide tables,
    and of many levels, which are a column each, there are fewer: Ctrl-C is heard between steps, not within one.
    """
    n_first = n_balls if is_exhaustive else min(n_balls, FIRST_ROUND)
    n_tried = n_balls if is_exhaustive else min(n_balls, 4 * FIRST_ROUND)
    of_pairs = min(MOST_PAIRS // n_tried, MOST_LISTED // n_balls)
    return min(of_pairs, MOST_NUMBERS // (max(LEAST_POINTS, n_first) * width))


def _searches(request: Request) -> list[tuple[Options, int]]:
    """Return the options and number of counterfactuals of each search: one, or for the front one per level."""
    options = request.options
    if not request.front:
        return [(options, options.n_counterfactuals)]
    shares = {name: getattr(options, name) for name in LIMITS if getattr(options, name) is not None}
    options = replace(options, **{name: max(1, limit // len(FRONT_LEVELS)) for name, limit in shares.items()})
    return [(replace(options, plausibility=level), FRONT_POINTS) for level in FRONT_LEVELS]


def _refined_part(
    request: Request, box: BlackBox, how: tuple[Options, int], piece: tuple[Rows, Matrix, Matrix]
) -> SearchedPart:
    """Search for some rows, and ask for their labels, with counts of its own."""
    (options, n), (lines, N, _), box = how, piece, box.counting()
    if request.is_over:
        return SearchedPart(_none(request.fitted.space), lines, _unreached(len(lines)), box.counts)
    fitted, space = request.fitted, request.fitted.space
    terms = Terms(request.min_probability, request.committee if request.needs_agreement else None, request.settles)
    values, metric = (Values if fitted.blocks is None else FittedValues)(space, request.constraints), options.metric
    complete = None if space.effects is None else space.effects.whole
    oracle = Oracle(box, N, options, terms, request.deadline, request.model_copy, fitted.guess, complete)
    outcome = (find if fitted.blocks is None else find_blocks)(
        Search(
            table=fitted.map.table,
            values=values,
            oracle=oracle,
            factuals=np.ascontiguousarray(N),
            free=~request.is_held & ~(np.isnan(N) & ~space.is_fillable),
            targets=request.targets,
            options=options,
            n=n,
            max_changes=request.constraints.rules.max_changes,
            encode=space.encode_numbers,
            neighbours=fitted.share,
            least_share=request.least_share,
            reach=request.reach.rows,
            plausible=partial(plausible_rows, fitted.map, request.features, metric),
            distance=None if is_known(metric) else partial(_distance, request),
            complete=complete,
            blocks=fitted.partition,
            apart=None if fitted.embedding is None else partial(fitted.nearest_of, metric=metric),
        )
    )
    n_rows = len(lines)
    is_proven = outcome.is_proven & ~oracle.ran_out & (oracle.failed == 0)
    words = oracle.notes.raised(n_rows), oracle.notes.unseen(n_rows)
    effort = Effort(oracle.asked, oracle.ran_out, is_proven, oracle.failed, oracle.left(), *words)
    found = outcome.found._replace(factual=lines[outcome.found.factual])
    return SearchedPart(found, lines, effort, box.counts, outcome.labels, tuple(box.notices))


def _distance(request: Request, A: Matrix, B: Matrix) -> Matrix:
    """Return the distances of numbers under a metric that the kernels do not know."""
    encode = request.fitted.space.encode_numbers
    return paired(encode(A), encode(B), request.options.metric)


def _walked_part(
    request: Request, box: BlackBox, how: tuple[Options, int], piece: tuple[Rows, Factuals]
) -> SearchedPart:
    """Search for some factuals with counts of its own; lines in the result are those of the whole batch."""
    (options, n), (lines, factuals), fitted = how, piece, request.fitted
    asker = Asker(request, box.counting(), factuals)
    if request.is_over:
        return SearchedPart(_none(fitted.space), lines, _unreached(len(lines)), asker.box.counts)
    cost, reserve = 2 if request.min_probability > 0 else 1, n * request.strategy.reserve(options)
    asks = asker.label_of, asker.plain_label_of
    questions = Questions(len(lines), options, *asks, cost=cost, reserve=reserve, deadline=request.deadline)
    has_rules = bool(request.constraints) or request.constraints.rules.max_changes is not None
    home, balls, pairs = opposing_pairs(fitted.map, options, factuals.z, factuals.codes, factuals.wanted)
    problem = Problem(
        z=factuals.z,
        codes=factuals.codes,
        home=home,
        balls=balls,
        pairs=pairs,
        features=request.features,
        options=options,
        n=n,
        questions=questions,
        snap=asker.snap,
        knows_centers=not has_rules and not request.asks_more and fitted.space.effects is None,
    )
    found: Found = request.strategy.find(problem)
    no, words = np.zeros(len(lines), dtype=bool), (asker.notes.raised(len(lines)), asker.notes.unseen(len(lines)))
    effort = Effort(questions.asked, questions.ran_out, no, questions.failed, questions.left, *words)
    found = found._replace(
        factual=lines[found.factual],
        ball=np.where(found.ball < len(fitted.cover), found.ball, -1),
        numbers=asker.numbers(found.counterfactual, found.factual),
        semifactual_numbers=asker.numbers(found.semifactual, found.factual),
        probability=np.full(len(found.factual), np.nan),
    )
    return SearchedPart(found, lines, effort, asker.box.counts)


def _found(parts: list[SearchedPart], space: Any) -> Found:
    """Put what was found part by part together, sorted by factual."""
    if not parts:
        return _none(space)
    founds = [part.found for part in parts]
    if any(found.donor is not None for found in founds):  # a part that was not reached has found nothing
        none = np.empty(0, dtype=np.intp)
        founds = [found if found.donor is not None else found._replace(donor=none) for found in founds]
    every = stack(founds)
    return take(every, np.argsort(every.factual, kind="stable"))


def _none(space: Any) -> Found:
    none, points, numbers = np.empty(0, dtype=np.intp), np.empty((0, space.width)), np.empty((0, len(space.blocks)))
    no, nothing = np.empty(0, dtype=bool), np.empty(0)
    return Found(none, none, none, none, points, points, no, none, nothing, numbers, numbers, nothing)


def _unreached(n: int) -> Effort:
    """Return the effort for factuals that the search did not come to before the time was up."""
    none, no = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=bool)
    return Effort(none, ~no, no, none, none, objects([""] * n), objects([""] * n))


def _effort(parts: list[SearchedPart], n_factuals: int) -> Effort:
    """Return how hard all searches together looked, per factual."""
    kinds = (np.intp, bool, bool, np.intp, np.intp)
    total = Effort(*(np.zeros(n_factuals, dtype=kind) for kind in kinds), *(objects([""] * n_factuals) for _ in "ab"))
    for part in parts:
        total.asked[part.lines] += part.effort.asked
        total.ran_out[part.lines] |= part.effort.ran_out
        total.is_proven[part.lines] |= part.effort.is_proven
        total.failed[part.lines] += part.effort.failed
        total.left[part.lines] = part.effort.left
        for words, more in ((total.raised, part.effort.raised), (total.unseen, part.effort.unseen)):
            words[part.lines] = np.where(more == "", words[part.lines], more)
    return total
