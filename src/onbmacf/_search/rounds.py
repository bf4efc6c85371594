"""The rounds of the refined search: all factuals in lock-step, one call of the model per round.

    Search  ->  first_round (singles and donors)  ->  search_rounds (combined, refined, finer)  ->  Record, scores

`kernels/rounds.py` proposes points, `record.py` keeps them, `choose.py` weighs them, `oracle.py` asks.
"""

from dataclasses import replace

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows, stack
from onbmacf._base.missing import differs
from onbmacf._search import choose
from onbmacf._search.budget import UNASKED, turns
from onbmacf._search.kernels import rounds as kernels
from onbmacf._search.oracle import Reply
from onbmacf._search.record import Record
from onbmacf._search.search import (
    CAPS,
    SLIGHT,
    Proposed,
    Search,
    ask,
    note_limits,
    room_of,
    usual_room,
    wanted_labels,
    write_down,
)
from onbmacf._table.model import FAILED

SHARES = np.array([1.0, 0.15, 0.6, 0.06, 0.3, 0.02])  # of all ranks: how far away a single is, the most telling first
BELIEFS = np.array([1.0, 0.75, 1.5])  # times what is missing: the sum of gains is a guess
USUAL = 0.5  # the dial at which points are looked for
EXTRA_ROUNDS = 1  # for factuals that still get better
NEAREST_ROUNDS = 3  # at dial 0, for factuals whose nearest answer still gets nearer
MOST_ROUNDS = 6  # and those in which the best points are asked about with changes undone
REFINED_AGAIN = 2  # times, what dial 1 or the last resort has found
ROWS, CENTERS = 16, 8  # donors
LOOKED_AT, SEEDS = 256, 8  # with a bound on neighbours: the nearest rows looked at, and those taken that keep it
COMBINED = np.array([10, 12, 8, 6, 10])  # features of triples; pairs, triples, greedy sets per belief; donors followed
# Sets of changes, places of a change alone and among others, repairs, refused points probed, gaps explored.
FIRST_REFINED = np.array([3, 16, 0, 0, 1, 24])
REFINED_SIZES = np.array([8, 12, 7, 24, 2, 24])
REPAIR_BELIEF = 1.15
SETTLED = 0.36  # of the cost of a single change: with less left to shorten, a third round is not worth its call
PULLED = 13  # points per factual and round that are looked at for the sake of their neighbours
FEW_JOINT = 512  # combinations of values that are asked about at once, instead of a search
CAPACITY = sum(CAPS) + EXTRA_ROUNDS * CAPS[-1] + FEW_JOINT  # points that are remembered of a factual
WAYS = 5  # answers of a factual whose changes are undone where several are asked for
ALIKE = 3  # of these, the first, of which not all should need the same feature
FEW_CHANGES = 4  # of so many, several are undone at once
MOST_UNDONE = 256  # changes of a point that are undone one by one: the least telling ones of a very wide table
ROUNDER = 0.02  # of the way of a number, which may be that much longer where that makes it rounder
IN_COMMON = 16  # answers with which the best one is compared for changes that both make
NEARER = 0.65  # of a round, for points that may be nearer; the rest for those that may be better for their neighbours


# --- round 1 -------------------------------------------------------------------------------------------------------


def first_round(search: Search, wanted: Mask | None = None, active: Mask | None = None) -> tuple[Record, Mask, Matrix]:
    """Ask about the factuals, their donors and every free feature alone; return also what each is to reach.

    Labels come with this very call. Donors are chosen before: of the targets or, where any other label will do, of
    labels other than that of the nearest fitted row.
    """
    factuals, n = search.factuals, len(search.factuals)
    features = search.features(ROUNDER if search.options.decimals == "round" else 0.0)
    more = NEAREST_ROUNDS * CAPS[-1] * (search.options.plausibility == 0.0)
    capacity = FEW_JOINT + int((CAPACITY - FEW_JOINT + more) * max(1.0, search.effort))
    record = Record.of(factuals, search.free, features, capacity, 2 * max(CAPS), search.complete)
    guess = np.full(n, UNASKED, dtype=np.intp)
    if search.targets is None and wanted is None:
        every = np.ones((n, search.n_classes), dtype=bool)
        nearest = search.table.nearest_rows(factuals, np.ones_like(search.free), every, 1)[:, 0]
        guess = search.table.labels[nearest]
    likely = wanted_labels(guess, search.targets, search.n_classes) if wanted is None else wanted
    donors, owner, to_center = _donors(search, record, likely)
    if search.least_share > 0.0:
        better, whose, _ = donors_among(search, likely, LOOKED_AT, SEEDS)
        donors, owner = np.concatenate([better, donors]), np.concatenate([whose, owner])
    room = np.maximum(room_of(search, 0), np.minimum(1, search.oracle.room(0)))
    room = room if active is None else np.where(active, room, 0)
    if search.oracle.is_limited:
        most = np.maximum(2, room // 3)
        kept = turns(owner) < most[owner]
        donors, owner = donors[kept], owner[kept]
    most = int(room.sum()) + 1
    singles, singles_owner = np.empty((most, factuals.shape[1])), np.empty(most, dtype=np.intp)
    n_singles = kernels.singles(record.trace, features, search.table.telling, SHARES, room, singles, singles_owner)
    raw = np.concatenate([factuals, donors, singles[:n_singles]])
    owner = np.concatenate([np.arange(n), owner, singles_owner[:n_singles]])
    return *opened(search, record, raw, owner, room, wanted), to_center


def opened(
    search: Search, record: Record, raw: Matrix, owner: Rows, room: Rows, wanted: Mask | None
) -> tuple[Record, Mask]:
    """Ask the first question, and settle by what comes back which labels each factual is to reach."""
    start = search.factuals[owner]
    points = search.values.placed(raw, start)
    points[: len(search.factuals)] = search.factuals
    allowed = search.values.allowed(points, start)
    allowed[: len(search.factuals)] = True
    note_limits(search, owner[allowed], room)
    row, slot, _ = record.add(points, owner, allowed, room)
    points = record.points[row, slot]
    reply = search.oracle.ask(points, row)
    if (reply.codes == FAILED).any() and not search.oracle.is_limited:
        _ask_what_raised(search, reply, points, row, slot)
    codes = np.full(len(search.factuals), FAILED, dtype=np.intp)
    codes[row[slot == 0]] = reply.codes[slot == 0]
    wanted = wanted_labels(codes, search.targets, search.n_classes) if wanted is None else wanted
    write_down(search, record, wanted, row, slot, reply)
    record.margin[~wanted.any(axis=1)] = np.nan
    return record, wanted


def _ask_what_raised(search: Search, reply: Reply, points: Matrix, row: Rows, slot: Rows) -> None:
    """Ask again about every factual that raised, then about the points of those that do not: none is lost."""
    at_factual = np.flatnonzero((slot == 0) & (reply.codes == FAILED))
    search.oracle.ask_again(reply, points, row, at_factual, is_own=True)
    raises = np.isin(row, row[at_factual[reply.codes[at_factual] == FAILED]])
    search.oracle.ask_again(reply, points, row, np.flatnonzero((reply.codes == FAILED) & ~raises))


def _donors(search: Search, record: Record, wanted: Mask) -> tuple[Matrix, Rows, Matrix]:
    """Return fitted rows with immutable values put in, the factual of each, and how far the nearest centre is."""
    table, how = search.table, (search.factuals, search.free, wanted)
    balls = table.nearest_balls(*how, CENTERS)
    found = np.concatenate([table.nearest_rows(*how, ROWS), np.where(balls >= 0, table.centers[balls], -1)], axis=1)
    owner, place = np.nonzero(found >= 0)
    points = projected(search, found[owner, place], owner)
    apart, _ = record.measured(points, owner)
    to_center, is_center = np.full(len(search.factuals), np.inf), place >= found.shape[1] - CENTERS
    np.minimum.at(to_center, owner[is_center], apart[is_center])
    return points, owner, np.where(np.isfinite(to_center), to_center, 0.0)


def donors_among(search: Search, wanted: Mask, looked_at: int, most: int) -> tuple[Matrix, Rows, Rows]:
    """Return the first fitted rows, among the nearest, that are answers with a bound on neighbours if the model agrees.

    With immutable values put in, as they may be returned; also the factual of each, and its label.
    """
    found = search.table.nearest_rows(search.factuals, search.free, wanted, looked_at)
    owner, place = np.nonzero(found >= 0)
    rows, start = found[owner, place], search.factuals[owner]
    points, label = search.values.placed(projected(search, rows, owner), start), search.table.labels[rows]
    kept = np.flatnonzero(search.values.allowed(points, start) & differs(points, start).any(axis=1))
    kept = kept[search.share(points[kept], owner[kept], label[kept]) >= search.least_share]
    kept = kept[turns(owner[kept]) < most]
    return points[kept], owner[kept], label[kept]


def projected(search: Search, rows: Rows, owner: Rows) -> Matrix:
    """Return fitted rows with what a factual cannot change, and what they lack, as it is there."""
    given = search.table.N[rows]
    return np.where(search.free[owner] & ~np.isnan(given), given, search.factuals[owner])


# --- the rounds after it -------------------------------------------------------------------------------------------


def search_rounds(search: Search, record: Record, wanted: Mask, active: Mask, price: Matrix) -> Matrix:
    """Combine, refine, and refine again; return the score of each point asked about."""
    score = choose.worth(record, price, 1, search.neighbours)  # the same points whatever n is
    n_rounds = np.ones(len(active), dtype=np.intp)
    for turn in range(1, len(CAPS) + EXTRA_ROUNDS):
        room = np.where(active, room_of(search, turn), 0)
        if search.oracle.is_limited:
            search.oracle.ran_out |= active & (room < usual_room(search, turn))
        if not room.any():
            break
        parts = [_pulled(search, record, active, score, price), propose(record, active, score, turn)]
        ask(search, record, wanted, stack(parts), room, NEARER)
        n_rounds += active
        before = record.lowest.copy()
        score = choose.worth(record, price, 1, search.neighbours)
        least, still = search.oracle.patience
        if turn == 1 and least == 2 and 0.0 < search.options.plausibility < 1.0:
            active = active & ~_settled(record, score)
        if turn >= least:  # those go on that have no answer, or got better
            best = record.lowest
            active = active & ~(np.isfinite(best) & (best >= before * (1.0 - still))).all(axis=0)
    return needed_only(search, record, wanted, price, score, MOST_ROUNDS - n_rounds)


def _settled(record: Record, score: Matrix) -> Mask:
    """Say which factuals have one changed number as their best, which can hardly be shortened."""
    found = np.zeros(len(score), dtype=np.int8)
    kernels.settle(record.trace, record.features, score, SETTLED, found)
    return found.astype(bool)


def needed_only(search: Search, record: Record, wanted: Mask, price: Matrix, score: Matrix, most: Rows) -> Matrix:
    """Undo changes of the best point and of the nearest until none can be undone, in so many calls per factual."""
    for turn in range(0 if search.oracle.is_limited else int(most.max(initial=0))):
        nearest = choose.nearness(record, np.zeros(len(most), dtype=bool))
        row, slot = np.concatenate([choose.chosen(record, scores, 1, price) for scores in (score, nearest)], axis=1)
        left = most[row] > turn
        if not _undone(search, record, wanted, row[left], slot[left], guess=True):
            break
        score = choose.worth(record, price, 1, search.neighbours)
    return score


def without_rules(search: Search, record: Record, wanted: Mask, active: Mask, price: Matrix) -> Mask:
    """Ask the same question without its rules; say which factuals get an answer that keeps them all the same.

    So a rule never makes an answer farther than it must be. What was accepted and keeps the rules competes in any case.
    """
    free = replace(search, values=search.values.free(), max_changes=None, n=1)
    other, _, _ = first_round(free, wanted, active)
    score = search_rounds(free, other, wanted, active, price)
    if search.options.plausibility == 0.0:
        score = nearest_of_all(free, other, wanted, active, ~active)
    row, slot = _taken_over(search, record, other)
    best = score.argmin(axis=1)
    is_kept = np.zeros(score.shape, dtype=bool)
    is_kept[row, slot] = True
    every = np.arange(len(score))
    return np.isfinite(score[every, best]) & is_kept[every, best]


def _taken_over(search: Search, record: Record, other: Record) -> tuple[Rows, Rows]:
    """Write down what another search has accepted and this one allows, nearest first; return where it was there."""
    row, slot = np.nonzero(other.accepted())
    points, start = other.points[row, slot], search.factuals[row]
    few = other.n_changed[row, slot] <= (search.max_changes or start.shape[1])
    order = np.argsort(other.base[row, slot], kind="stable")
    order = order[(few & search.values.allowed(points, start))[order]]
    row, slot, points = row[order], slot[order], points[order]
    endless, every = np.full(len(search.factuals), len(points), dtype=np.intp), np.ones(len(points), dtype=bool)
    to_row, to_slot, line = record.add(points, row, every, endless)
    for name in ("margin", "base", "code", "probability", "share"):
        getattr(record, name)[to_row, to_slot] = getattr(other, name)[to_row, slot[line]]
    return row, slot


def _other_ways(search: Search, record: Record, wanted: Mask, price: Matrix, ways: tuple[Rows, Rows]) -> bool:
    """Ask the same question without what the first ways of a factual all change; say whether there was such a factual.

    As many ways are looked at whatever n is.
    """
    first = turns(ways[0]) < ALIKE
    row, slot = ways[0][first], ways[1][first]
    shared = np.zeros(search.factuals.shape, dtype=bool)
    shared[row] = True
    np.logical_and.at(shared, row, differs(record.points[row, slot], search.factuals[row]))
    without = replace(search, free=search.free & ~shared, n=1)
    active: Mask = np.asarray(shared.any(axis=1) & without.free.any(axis=1))
    if not active.any():
        return False
    other, _, _ = first_round(without, wanted, active)
    search_rounds(without, other, wanted, active, price)
    _taken_over(search, record, other)
    return True


def propose(record: Record, active: Mask, score: Matrix, turn: int) -> Proposed:
    """Return what the kernels propose for a round."""
    owner, part = np.empty(len(record.raw), dtype=np.intp), np.empty(len(record.raw), dtype=np.int8)
    sizes = (COMBINED, FIRST_REFINED, REFINED_SIZES) if turn == 1 else (COMBINED[:0], REFINED_SIZES, REFINED_SIZES)
    given = record.trace, record.features, score, BELIEFS, *sizes, REPAIR_BELIEF, active.astype(np.int8)
    n = kernels.propose(*given, record.raw, owner, part)
    return Proposed(record.raw[:n], owner[:n], part[:n])


def _pulled(search: Search, record: Record, active: Mask, score: Matrix, price: Matrix) -> Proposed:
    """Return points that would be better than the best known if the model accepts them, for their neighbours' sake.

    Neighbours are known without the model.
    """
    raw, (owner, label) = (
        np.empty((PULLED * len(active), search.factuals.shape[1])),
        np.empty((2, PULLED * len(active)), int),
    )
    n = kernels.pull(record.trace, record.features, score, active.astype(np.int8), raw, owner, label)
    raw, owner, label = raw[:n], owner[:n], label[:n]
    points, limit = search.values.placed(raw, search.factuals[owner]), record.lowest[0, owner]
    hope, n_changed = record.measured(points, owner)
    hope += choose.SPARSITY * n_changed
    kept = np.flatnonzero((n_changed > 0) & (hope < limit))
    shares = search.share(points[kept], owner[kept], label[kept])
    hope[kept] += price[owner[kept]] * (1.0 - shares) ** choose.POWER
    kept = kept[hope[kept] < limit[kept]]
    kept = kept[np.lexsort((hope[kept], owner[kept]))]
    return Proposed(points[kept], owner[kept], np.ones(len(kept), dtype=np.int8))


def chosen(search: Search, record: Record, score: Matrix) -> tuple[Rows, Rows]:
    is_nearest = search.options.plausibility == 0.0
    return choose.chosen(record, score, search.n, search.table.scale, is_nearest)


def nearest_of_all(search: Search, record: Record, wanted: Mask, active: Mask, is_proven: Mask) -> Matrix:
    """Refine the nearest points as long as that brings them nearer, then undo changes until none can be undone.

    For dial 0, where every change is needed; so its answers can only be nearer than those of other places of the dial.
    """
    score, record = choose.nearness(record, is_proven), replace(record, features=search.features(0.0))
    for _ in range(0 if search.oracle.is_limited else NEAREST_ROUNDS):
        room, before = np.where(active, room_of(search, len(CAPS)), 0), score.min(axis=1)
        if not room.any():
            break
        ask(search, record, wanted, propose(record, active, score, len(CAPS)), room, NEARER)
        score = choose.nearness(record, is_proven)
        active = active & (score.min(axis=1) < before)
    for _ in range(0 if search.oracle.is_limited else search.factuals.shape[1]):
        if not _undone(search, record, wanted, *chosen(search, record, score)):
            break
        score = choose.nearness(record, is_proven)
    return score


def needed_of_all(search: Search, record: Record, wanted: Mask, price: Matrix, score: Matrix) -> Matrix:
    """Undo what the second answer of a factual and later ones change for nothing; the first stays what it is.

    Nobody has refined them, and a donor changes every feature, also those of which the model knows nothing. As many are
    looked at whatever n is, so that the k-th does not depend on it.
    """
    first = score.argmin(axis=1)
    row = np.flatnonzero(np.isfinite(score[np.arange(len(score)), first]))
    first = first[row]
    for turn in range(0 if search.oracle.is_limited else MOST_ROUNDS):
        score[row, first] = np.minimum(score[row, first], score[row].min(axis=1))
        ways = choose.chosen(record, score, max(search.n, WAYS), search.table.scale)
        if search.oracle.is_late:
            break
        is_new = turn == 0 and _other_ways(search, record, wanted, price, ways)
        if not _undone(search, record, wanted, *ways, guess=True, parts=True) and not is_new:
            break
        own = score[row, first]
        score = choose.worth(record, price, search.n, search.neighbours)
        score[row, first] = own
    score[row, first] = np.minimum(score[row, first], score[row].min(axis=1) - SLIGHT)
    return score


def _parts(search: Search, record: Record, row: Rows, slot: Rows) -> tuple[Matrix, Rows]:
    """Return points with those of their changes only that gain most alone: the best one, the two best, and so on."""
    points, owner = [np.empty((0, search.factuals.shape[1]))], [np.empty(0, dtype=np.intp)]
    for r, s in zip(row.tolist(), slot.tolist(), strict=True):
        changed = np.flatnonzero(differs(record.points[r, s], search.factuals[r]))
        if len(changed) < FEW_CHANGES or len(changed) > MOST_UNDONE:
            continue
        alone = np.flatnonzero(
            (record.n_changed[r, : record.size[r]] == 1) & np.isfinite(record.margin[r, : record.size[r]])
        )
        gain = np.full(search.factuals.shape[1], -np.inf)
        only = differs(record.points[r, alone], search.factuals[r]).argmax(axis=1)
        np.maximum.at(gain, only, record.margin[r, alone])
        place = np.empty(len(gain), dtype=np.intp)
        place[search.table.telling] = np.arange(len(gain))
        order = changed[np.lexsort((place[changed], -gain[changed]))]
        parts = np.repeat(search.factuals[[r]], len(order) - 1, axis=0)
        for at, feature in enumerate(order[:-1].tolist()):
            parts[at:, feature] = record.points[r, s, feature]
        points.append(parts)
        owner.append(np.full(len(parts), r, dtype=np.intp))
    return np.concatenate(points), np.concatenate(owner)


def _undone(
    search: Search, record: Record, wanted: Mask, row: Rows, slot: Rows, guess: bool = False, parts: bool = False
) -> bool:
    """Ask about points with each of their changes undone, and with several; say whether there was anything to ask.

    Where a guess will do, not where a point that changes the same features, and farther, was refused before. With
    parts, also about what is left of many changes when those that gain least alone are undone.
    """
    points, start, before = record.points[row, slot], search.factuals[row], record.size.sum()
    changed, least_telling = differs(points, start), search.table.telling[::-1]
    for wide in np.flatnonzero(record.n_changed[row, slot] > MOST_UNDONE).tolist():
        changed[wide, least_telling[changed[wide, least_telling]][MOST_UNDONE:]] = False
    line, at = np.nonzero(changed & (record.n_changed[row, slot] > 1)[:, np.newaxis])
    undone = points[line]
    undone[np.arange(len(line)), at] = start[line, at]
    if guess:
        open_ = ~record.refused(undone, row[line])
        undone, line = undone[open_], line[open_]
    several = [_in_common(search, record, row, slot)] + [_parts(search, record, row, slot)] * parts
    raw = np.concatenate([undone, *(some for some, _ in several)])
    owner = np.concatenate([row[line], *(whose for _, whose in several)])
    ask(search, record, wanted, Proposed.of(raw, owner), search.oracle.room(0))
    return bool(record.size.sum() > before)


def _in_common(search: Search, record: Record, row: Rows, slot: Rows) -> tuple[Matrix, Rows]:
    """Return points with only those changes that the next cheapest answers make, too, and the factual of each.

    First what it has in common with the cheapest of these, then with the two cheapest, and so on.
    """
    points, owner = [np.empty((0, search.factuals.shape[1]))], [np.empty(0, dtype=np.intp)]
    for r, s in zip(row.tolist(), slot.tolist(), strict=True):
        if record.n_changed[r, s] < 3:
            continue
        good = np.flatnonzero(record.margin[r, : record.size[r]] > 0)
        others = good[np.argsort(record.base[r, good], kind="stable")[:IN_COMMON]]
        changed = differs(record.points[r, np.append(s, others)], search.factuals[r])
        kept = np.logical_and.accumulate(changed, axis=0)[1:]
        points.append(np.where(kept, record.points[r, s], search.factuals[r]))
        owner.append(np.full(len(kept), r, dtype=np.intp))
    return np.concatenate(points), np.concatenate(owner)
