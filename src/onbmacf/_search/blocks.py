"""Counterfactuals in blocks: features that change together take the values of one fitted row, the donor.

    donors -> ways (sets of blocks, from the smallest on) -> pruned -> shrunk where allowed -> confirmed

A point is the factual with some blocks of a donor. The nearest donors are followed, all factuals in lock-step: first
every block alone, then every set of two, and so on; where these are too many, the best set with one block more. Fewer
blocks are better than more, whatever they cost; of as many, the nearer point is. A factual is done when no larger set
can be better. Neighbours have a price in blocks, by the dial, and a bound on them holds as in the other search. What is
found is confirmed by the same last round (docs/decisions/0134-blocks.md).
"""

from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows, in_steps
from onbmacf._base.missing import differs
from onbmacf._search import choose
from onbmacf._search.confirm import Outcome, confirm, merged
from onbmacf._search.partition import Partition, costs
from onbmacf._search.record import Record
from onbmacf._search.rounds import opened
from onbmacf._search.search import Search, accept_labels, note_limits, write_down

NEAR, FAR = 24, 512  # donors that are asked about as a whole: at first, and where none of these led to an answer
SETS, FEW = 35, 7  # sets of blocks of a donor in one call: up to 7 blocks, all sets of each size
# Of these donors the nearest that are answers as a whole are followed: many where all their sets are asked about. Of
# parts of pictures few, for the more there are to choose from, the more of what is found only this model believes. For
# the same reason it must then be nearly as sure of an answer as of the factual with all blocks of the donor.
FOLLOWED, FOLLOWED_FAR = 16, 2
MORE_WAYS = 8  # that are followed where several counterfactuals are asked for
CAPACITY = 2048  # points that are remembered of a factual
PRICE = 2.0  # blocks that it costs at plausibility=0.5 to have no neighbour of the label
SURE = 0.75  # of the margin with all of a donor's many blocks: what an answer must have from plausibility=0.5 on
WAYS = 5  # answers of a factual whose blocks are undone
SHRUNK = (0.25, 0.5, 0.75)  # of the way to the donor
SHRINKING_ROUNDS = 3


class Asked(NamedTuple):
    """What is known of the factuals of a search, and where each point is remembered."""

    record: Record
    donor: Rows  # factuals x points: the fitted row whose values a point has
    wanted: Mask
    slots: dict[tuple[int, bytes], int]
    sure: dict[tuple[int, int], float]  # factual, donor -> the margin with all of the donor's blocks


@dataclass
class Way:
    """The way from one factual to one donor, block by block."""

    owner: int
    donor: int
    values: Matrix  # the factual with all that it may take from the donor
    order: list[int]  # the blocks in which they differ, those first that gained most alone
    taken: tuple[int, ...] = ()  # the best set of as many blocks
    is_answer: bool = False  # whether one of the points asked about is one
    is_first: bool = True  # whether it is followed also where one counterfactual is asked for


def find_blocks(search: Search, active: Mask | None = None) -> Outcome:
    """Return up to n counterfactuals per factual, the best first; of some factuals, where they are named."""
    if 1 in (search.options.max_model_rows, search.options.max_model_calls) and not search.oracle.reads:
        search = replace(search, oracle=search.oracle.by_labels())  # scores could not be confirmed
    asked = _opened(search, active)
    is_open = np.asarray(asked.wanted.any(axis=1))
    dial = search.options.plausibility
    price = np.full(len(is_open), choose.ANYTHING if dial == 1.0 else PRICE * dial / (1.0 - dial))
    rows, ways = is_open, list[Way]()
    for is_far in (False, True):
        more = _ways(search, asked, rows, is_far)
        score = _followed(search, asked, [way for way in more if way.is_first], price)
        ways, rows = [*ways, *more], is_open & ~np.isfinite(score).any(axis=1)
        if not rows.any():
            break
    is_short = search.oracle.settle_for_less(rows)
    if is_short.any() and (search.oracle.is_limited or search.oracle.is_late):
        accept_labels(search, asked.record, asked.wanted, is_short)  # there is nothing left to ask with
        is_short = np.zeros_like(is_short)
    score = _needed(search, asked, price, 1)
    if search.n > 1:
        score = _others(search, asked, ways, price, score)
    none = np.zeros(len(is_open), dtype=bool)
    outcome = confirm(search, replace(asked.record, donor=asked.donor), none, score, find_blocks)
    is_short &= search.oracle.settled  # none where a copy of the model was wrong, and all began again
    return merged(outcome, find_blocks(search, is_short), is_short) if is_short.any() else outcome


def _opened(search: Search, active: Mask | None) -> Asked:
    """Ask about the factuals: their labels say which donors there are."""
    n, features = len(search.factuals), search.features(0.0)
    capacity = int(CAPACITY * max(1.0, search.effort))
    record = Record.of(search.factuals, search.free, features, capacity, 1)
    room = np.minimum(1, search.oracle.room(0))
    room = room if active is None else np.where(active, room, 0)
    record, wanted = opened(search, record, search.factuals.copy(), np.arange(n), room, None)
    return Asked(record, np.full((n, capacity), -1), wanted, {}, {})


# --- donors --------------------------------------------------------------------------------------------------------


def donors_of(search: Search, start: Matrix, free: Mask, wanted: Mask, most: int) -> tuple[Rows, Matrix, Mask]:
    """Return the nearest fitted rows of wanted labels, the factual with their values, and the blocks that differ.

    A block is taken as a whole or not at all: not where it would change what must stay, or lose a value. Those come
    first of which every block can be taken that may change at all.
    """
    partition = _partition(search)
    is_whole = not (partition.any_of(free[np.newaxis]) & partition.any_of(~free[np.newaxis])).any()
    if is_whole and search.apart is None:
        found = search.table.nearest_rows(start[np.newaxis], free[np.newaxis], wanted[np.newaxis], most)[0]
        rows = found[found >= 0]
    else:  # the nearest in what is free may differ in what must stay
        rows = search.table.sample[wanted[search.table.labels[search.table.sample]]]
    parts = [_taken_from(search, rows[lines], start, free) for lines in in_steps(len(rows), len(start))]
    values, usable, apart, n_blocked = (np.concatenate(column) for column in zip(*parts, strict=True))
    apart = apart if search.apart is None else search.apart(start[np.newaxis], rows)
    order = np.lexsort((rows, apart, n_blocked))
    order = order[usable[order].any(axis=1)][:most]
    return rows[order], values[order], usable[order]


def _taken_from(search: Search, rows: Rows, start: Matrix, free: Mask) -> tuple[Matrix, Mask, Matrix, Rows]:
    """Return what can be taken from fitted rows, in which blocks, how far that is, and how many blocks cannot be."""
    partition, given = _partition(search), search.table.N[rows]
    others = differs(given, start)
    is_blocked = partition.any_of(others & (~free | np.isnan(given)))
    usable = partition.any_of(others) & ~is_blocked
    values = np.where(others & usable[:, partition.of_feature], given, start)
    n_blocked = (is_blocked & partition.any_of(free[np.newaxis])).sum(axis=1)
    return values, usable, costs(search.table, values, start).sum(axis=1), n_blocked


def _ways(search: Search, asked: Asked, rows: Mask, is_far: bool) -> list[Way]:
    """Return the ways to follow: donors are asked about as a whole, and those that are answers come first.

    With a bound on neighbours, only donors that keep it: more are looked at then.
    """
    ways: list[Way] = []
    near = NEAR if search.least_share == 0.0 else 4 * NEAR
    for row in np.flatnonzero(rows):
        donors, values, usable = donors_of(search, search.factuals[row], search.free[row], asked.wanted[row], FAR)
        places = np.arange(len(donors) if is_far else min(near, len(donors)))
        if search.least_share > 0.0:
            shares = search.share(values[places], np.full(len(places), row), search.table.labels[donors[places]])
            places = places[shares >= search.least_share]
        n_near = min(NEAR, int((places < near).sum()))
        places = places[n_near:] if is_far else places[:n_near]
        cost = _partition(search).sums(costs(search.table, values, search.factuals[row]))
        for at in places.tolist():
            blocks = np.flatnonzero(usable[at])
            order = blocks[np.argsort(-cost[at, blocks], kind="stable")].tolist()
            ways.append(Way(int(row), int(donors[at]), values[at], order))
    margins = _ask_sets(search, asked, [(way, tuple(way.order)) for way in ways])
    for way, margin in zip(ways, margins, strict=True):
        way.is_answer = margin > 0
    n_taken, followed = [0] * len(rows), []
    for way in sorted(ways, key=lambda way: not way.is_answer):  # a stable sort: the nearest first among equals
        most = max(1, round((FOLLOWED if len(way.order) <= FEW else FOLLOWED_FAR) * search.effort))
        way.is_first = n_taken[way.owner] < most
        if n_taken[way.owner] < max(most, MORE_WAYS):
            n_taken[way.owner] += 1
            followed.append(way)
    return followed


# --- ways ----------------------------------------------------------------------------------------------------------


def _followed(search: Search, asked: Asked, ways: list[Way], price: Matrix, alone: bool = True) -> Matrix:
    """Take one block more on each way until no larger set can be better; or else until each way has its answer."""
    score = _scores(search, asked, price)
    while True:
        best = score.min(axis=1)
        going = [way for way in ways if len(way.taken) < len(way.order)]
        going = [way for way in going if best[way.owner] > len(way.taken) + 1 or not (alone or way.is_answer)]
        if not going or search.oracle.is_late:
            return score
        proposed = [(way, blocks) for way in going for blocks in _sets(way)]
        before = asked.record.size.sum()
        margins = _ask_sets(search, asked, proposed)
        at = 0
        for way in going:
            sets = _sets(way)
            _step(search, asked, way, sets, margins[at : at + len(sets)])
            at += len(sets)
        if asked.record.size.sum() == before and search.oracle.is_limited:
            return score
        score = _scores(search, asked, price)


def _sets(way: Way) -> list[tuple[int, ...]]:
    """Return sets of one block more than before: all of them where they are few, else those that add one to the best.

    With the second block come the first three, the first four and so on of those that gained most alone.
    """
    n, size = len(way.order), len(way.taken) + 1
    if comb(n, size) <= SETS:
        return list(combinations(way.order, size))
    sets = [(*way.taken, block) for block in way.order if block not in way.taken][:SETS]
    chain = range(3, n + 1, max(1, n // SETS)) if size == 2 else ()
    return sets + [tuple(way.order[:length]) for length in chain]


def _step(search: Search, asked: Asked, way: Way, sets: list[tuple[int, ...]], margins: Matrix) -> None:
    """Go on from the set with the highest margin; of ties, such as points without any neighbour, the dearest one."""
    size = len(way.taken) + 1
    same = [at for at, blocks in enumerate(sets) if len(blocks) == size]
    cost = _partition(search).sums(costs(search.table, way.values[np.newaxis], search.factuals[[way.owner]]))[0]
    value = [(float(np.round(margins[at], 9)), float(cost[list(sets[at])].sum()), -at) for at in same]
    way.taken = sets[same[value.index(max(value))]]
    way.is_answer = bool((margins > 0).any())
    if size == 1:
        gain = {sets[at][0]: value[at] for at in same}
        way.order = sorted(way.order, key=lambda block: gain.get(block, (-np.inf, 0.0, -block)), reverse=True)


def _ask_sets(search: Search, asked: Asked, proposed: list[tuple[Way, tuple[int, ...]]]) -> Matrix:
    """Ask about factuals with some blocks of donors; return their margins, minus infinity where one was not asked."""
    if not proposed:
        return np.empty(0)
    partition = _partition(search)
    kept = np.zeros((len(proposed), int(partition.of_feature.max()) + 1), dtype=bool)
    for line, (_, blocks) in enumerate(proposed):
        kept[line, list(blocks)] = True
    owner = np.array([way.owner for way, _ in proposed])
    points = np.array([way.values for way, _ in proposed])
    points = np.where(kept[:, partition.of_feature], points, search.factuals[owner])
    _ask(search, asked, points, owner, np.array([way.donor for way, _ in proposed]))
    places = [asked.slots.get((int(row), point.tobytes()), -1) for row, point in zip(owner, points, strict=True)]
    slot = np.array(places)
    margin = np.where(slot >= 0, asked.record.margin[owner, slot], -np.inf)
    return np.where(np.isnan(margin), -np.inf, margin)


def _ask(search: Search, asked: Asked, points: Matrix, owner: Rows, donor: Rows) -> bool:
    """Ask about those points that are new and allowed, and write down what comes back; say whether there were any."""
    record, room = asked.record, search.oracle.room(search.reserve)
    if search.oracle.is_limited:
        room = -(-room // 2)  # what comes after this needs some, too
    allowed = search.values.allowed(points, search.factuals[owner])
    note_limits(search, owner[allowed], room)
    row, slot, line = record.add(points, owner, allowed, room)
    if not len(row):
        return False
    write_down(search, record, asked.wanted, row, slot, search.oracle.ask(record.points[row, slot], row))
    asked.donor[row, slot] = donor[line]
    n_blocks = _partition(search).any_of(differs(record.points[row, slot], search.factuals[row])).sum(axis=1)
    _as_sure(search, asked, row, slot, n_blocks)
    apart = record.base[row, slot] - choose.SPARSITY * record.n_changed[row, slot]
    record.base[row, slot] = n_blocks + apart / (1.0 + apart)  # never a block's worth
    asked.slots.update(
        ((r, point.tobytes()), s)
        for r, s, point in zip(row.tolist(), slot.tolist(), record.points[row, slot], strict=True)
    )
    return True


def _as_sure(search: Search, asked: Asked, row: Rows, slot: Rows, n_blocks: Rows) -> None:
    """Refuse points of which the model is much less sure than of the factual with all of the donor's many blocks."""
    share, margin = SURE * min(2.0 * search.options.plausibility, 1.0), asked.record.margin
    if share == 0.0 or search.oracle.box.scorer is None:
        return
    for r, s, n in zip(row.tolist(), slot.tolist(), n_blocks.tolist(), strict=True):
        whole = margin[r, s] if n > FEW else 0.0
        least = share * asked.sure.setdefault((r, int(asked.donor[r, s])), whole)  # a donor is first asked as a whole
        if 0.0 < margin[r, s] < least < np.inf:
            margin[r, s] -= least


# --- the best of what is known -------------------------------------------------------------------------------------


def _scores(search: Search, asked: Asked, price: Matrix) -> Matrix:
    none = np.zeros(asked.record.margin.shape, dtype=np.int8)
    return choose.weighed(asked.record, price, none, search.neighbours)


def _needed(search: Search, asked: Asked, price: Matrix, n: int) -> Matrix:
    """Undo blocks of the best points, one by one, as long as that leaves answers; then shrink what may be shrunk."""
    score = _scores(search, asked, price)
    while not search.oracle.is_late:
        row, slot = _best(search, asked, score, n)
        if not _undone(search, asked, row, slot):
            break
        score = _scores(search, asked, price)
    for _ in range(SHRINKING_ROUNDS if _partition(search).shrinks else 0):
        if search.oracle.is_late or not _shrunk(search, asked, *_best(search, asked, score, n)):
            break
        score = _scores(search, asked, price)
    return score


def _others(search: Search, asked: Asked, ways: list[Way], price: Matrix, score: Matrix) -> Matrix:
    """Look for answers on every way; the first stays what it is, so that it does not depend on how many are asked.

    Where there are few, farther donors are asked about, too. What changes a block for nothing is no other answer.
    """
    first, n = score.argmin(axis=1), max(search.n, WAYS)
    row = np.flatnonzero(np.isfinite(score.min(axis=1)))
    first = first[row]
    for more in (False, True):
        if more:
            n_found = np.bincount(_best(search, asked, score, n)[0], minlength=len(score))
            ways = _ways(search, asked, (n_found < n) & np.isin(np.arange(len(score)), row), True)
        _followed(search, asked, ways, price, alone=False)
        score = _needed(search, asked, price, n)
        if price.max(initial=0.0) < choose.ANYTHING:  # unless neighbours are all that counts
            score[_needless(search, asked, score)] = np.inf
    score[row, first] = np.where(np.isfinite(score[row]), score[row], 0.0).min(axis=1) - 1.0
    return score


def _needless(search: Search, asked: Asked, score: Matrix) -> Mask:
    """Say which answers have a block that can be undone: with fewer blocks of the same donor there is another."""
    needless = np.zeros(score.shape, dtype=bool)
    for row in range(len(score)):
        slot = np.flatnonzero(np.isfinite(score[row]))
        changed = _partition(search).any_of(differs(asked.record.points[row, slot], search.factuals[row]))
        same = asked.donor[row, slot][:, np.newaxis] == asked.donor[row, slot]
        n_changed = changed.sum(axis=1)
        both = changed.astype(np.float32) @ changed.T.astype(np.float32)  # blocks that two answers share: exact counts
        within, less = both == n_changed[:, np.newaxis], n_changed[:, np.newaxis] < n_changed
        needless[row, slot] = (same & within & less).any(axis=0)
    return needless


def _best(search: Search, asked: Asked, score: Matrix, n: int) -> tuple[Rows, Rows]:
    """Return the points that would be chosen; where one is wanted, the best ones."""
    if n > 1:
        return choose.chosen(asked.record, score, n, search.table.scale)
    slot = np.argsort(score, axis=1, kind="stable")[:, :WAYS]
    row = np.repeat(np.arange(len(score)), slot.shape[1])
    kept = np.isfinite(score[row, slot.ravel()])
    return row[kept], slot.ravel()[kept]


def _undone(search: Search, asked: Asked, row: Rows, slot: Rows) -> bool:
    points, start = asked.record.points[row, slot], search.factuals[row]
    changed = _partition(search).any_of(differs(points, start))
    line, block = np.nonzero(changed & (changed.sum(axis=1) > 1)[:, np.newaxis])
    back = _partition(search).of_feature == block[:, np.newaxis]
    return _ask(search, asked, np.where(back, start[line], points[line]), row[line], asked.donor[row, slot][line])


def _shrunk(search: Search, asked: Asked, row: Rows, slot: Rows) -> bool:
    """Ask about points whose numbers lie nearer to the factual: those of each block, and of all of them together."""
    points, start = asked.record.points[row, slot], search.factuals[row]
    changed = _partition(search).any_of(differs(points, start))
    line, block = np.nonzero(np.column_stack([changed, changed.sum(axis=1) > 1]))  # behind the last: all blocks
    moved = (_partition(search).of_feature == block[:, np.newaxis]) | (block == changed.shape[1])[:, np.newaxis]
    moved &= ~search.table.is_level & ~np.isnan(start[line])
    raw = [np.where(moved, start[line] + part * (points - start)[line], points[line]) for part in SHRUNK]
    owner, given = np.tile(row[line], len(SHRUNK)), np.concatenate(raw)
    placed = np.where(np.tile(moved, (len(SHRUNK), 1)), search.values.rounded(given, search.factuals[owner]), given)
    return _ask(search, asked, placed, owner, np.tile(asked.donor[row, slot][line], len(SHRUNK)))


def _partition(search: Search) -> Partition:
    assert search.blocks is not None, "this search is for maps with blocks"
    return search.blocks
