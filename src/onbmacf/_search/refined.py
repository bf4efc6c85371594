"""The refined strategy: five rounds of questions, all factuals in lock-step.

    singles and donors -> combinations -> refined -> refined finer -> confirmed

1. Every free feature alone, both ways, and the nearest fitted rows and ball centres of the wanted label.
2. What the singles gain adds up to a guess of any combination: the cheapest that should do, and parts of donors.
3. The best point of each set of changes: changes dropped and shrunk, refused points repaired; for the dial, points
   with more neighbours of the label.
4. The same again for factuals that still get better, up to twice; then the best point with each change undone.
5. The points chosen are asked about again by `predict`, as they will be printed, with the way back to the factual.

`kernels/rounds.py` proposes points, `record.py` keeps them, `choose.py` weighs them, `oracle.py` asks.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onbmacf._base.arrays import Mask, Matrix, Rows, stack, take
from onbmacf._base.missing import differs
from onbmacf._search import choose
from onbmacf._search.budget import UNASKED, turns
from onbmacf._search.kernels import rounds
from onbmacf._search.options import Options, effort_of
from onbmacf._search.oracle import Oracle, Reply
from onbmacf._search.problem import Found, Strategy
from onbmacf._search.record import Record
from onbmacf._search.table import SearchTable
from onbmacf._search.walk import WAY_BACK, margins
from onbmacf._table.model import FAILED
from onbmacf._table.values import Values

SHARES = np.array([1.0, 0.15, 0.6, 0.06, 0.3, 0.02])  # of all ranks: how far away a single is, the most telling first
BELIEFS = np.array([1.0, 0.75, 1.5])  # times what is missing: the sum of gains is a guess
USUAL = 0.5  # the dial at which points are looked for
CAPS = (240, 160, 145, 135)  # points per factual and round
EXTRA_ROUNDS = 1  # for factuals that still get better
MOST_ROUNDS = 6  # and those in which the best points are asked about with changes undone
REFINED_AGAIN = 2  # times, what dial 1 or the last resort has found
ROWS, CENTERS = 16, 8  # donors
COMBINED = np.array([10, 12, 8, 6, 10])  # features of triples; pairs, triples, greedy sets per belief; donors followed
# Sets of changes, places of a change alone and among others, repairs, refused points probed, gaps explored.
FIRST_REFINED = np.array([3, 8, 0, 0, 1, 24])
REFINED_SIZES = np.array([8, 12, 7, 24, 2, 24])
REPAIR_BELIEF = 1.15
PULLED = 13  # points per factual and round that are looked at for the sake of their neighbours
FEW_JOINT = 512  # combinations of values that are asked about at once, instead of a search
MOST_JOINT = 1 << 14  # combinations that are asked about when a search finds nothing
MOST_CORNERS = 1 << 10
MOST_DONORS = 512
CLIMBS, STARTS, MOST_LEVELS = 6, 4, 48  # where nothing is found: rounds, points that each begins from, levels looked at
AT_ONCE = 1 << 16  # combinations in one step
CAPACITY = sum(CAPS) + EXTRA_ROUNDS * CAPS[-1] + FEW_JOINT  # points that are remembered of a factual
IN_COMMON = 16  # answers with which the best one is compared for changes that both make
LADDER, TRIES = 16, 8  # where `predict` contradicts scores: points that are asked about, choices made again
NEARER = 0.65  # of a round, for points that may be nearer; the rest for those that may be better for their neighbours
SHARES_OF_ROUNDS = (0.4, 0.25, 0.2, 0.15)  # of a limited number of rows


class Proposed(NamedTuple):
    """Points to ask about, before they are placed, one line each."""

    raw: Matrix
    owner: Rows  # the factual
    part: NDArray[np.int8]  # 0 where it may be nearer, 1 where it may be better

    @classmethod
    def of(cls, raw: Matrix, owner: Rows) -> "Proposed":
        """Return points that are all of one part."""
        return cls(raw, owner, np.zeros(len(raw), dtype=np.int8))


@dataclass(frozen=True, eq=False)
class Search:
    """Everything that is needed to explain some factuals together."""

    table: SearchTable
    values: Values
    oracle: Oracle
    own: Matrix  # the factuals, as numbers
    free: Mask  # factuals x features: what may change
    targets: Rows | None  # labels to reach; None: any but the factual's own
    options: Options
    n: int  # counterfactuals per factual
    max_changes: int | None
    encode: Callable[[Matrix], Matrix]  # numbers -> encoded points
    neighbours: Callable[[Matrix, Rows], Matrix]  # numbers, labels -> share of neighbours that have the label
    reach: Callable[
        [Matrix, int], Matrix | None
    ]  # a factual -> all that it may become; None if it is more than so many
    plausible: Callable[[Matrix, Mask], Rows]  # encoded factual, wanted labels -> fitted rows in the midst of theirs
    distance: Callable[[Matrix, Matrix], Matrix] | None  # of numbers, where the kernels do not know the metric

    @property
    def effort(self) -> float:
        """How many points are asked about, in parts of the usual number."""
        return effort_of(self.options.effort)

    @property
    def is_ruled(self) -> bool:
        """Whether rules or a number of changes bind the answers."""
        return self.max_changes is not None or bool(self.values.constraints)

    @property
    def reserve(self) -> int:
        """How many points of a factual the last call asks about at least: the answers, and the factual itself."""
        return self.n + self.oracle.sees_scores

    @property
    def n_classes(self) -> int:
        """How many labels the fitted rows have."""
        return len(self.oracle.box.classes)


class Outcome(NamedTuple):
    """What was found, what every combination of values proves, and what the model says of the factuals."""

    found: Found
    is_proven: Mask
    codes: Rows
    labels: NDArray[Any]  # the model's own labels, or the error that it raised; None where it was not asked


def find(search: Search, active: Mask | None = None) -> Outcome:
    """Return up to n counterfactuals per factual, the best first; of some factuals, where they are named."""
    if 1 in (search.options.max_model_rows, search.options.max_model_calls) and not search.oracle.reads:
        search = replace(search, oracle=search.oracle.by_labels())  # scores could not be confirmed
    record, wanted, to_center = _first_round(search, None, active)
    is_open: Mask = np.asarray(wanted.any(axis=1))
    # Points are looked for at one and the same price whatever the dial, which then only chooses: so it never reverses.
    usual = choose.price_of(USUAL, to_center)
    price = choose.price_of(search.options.plausibility, to_center)
    is_proven = _ask_all(search, record, wanted, is_open, FEW_JOINT)
    active = is_open & ~is_proven
    if search.is_ruled and not search.oracle.is_limited and not search.oracle.is_late:
        active &= ~_without_rules(search, record, wanted, active, usual)
    score = _rounds(search, record, wanted, active, usual)
    _last_resort(search, record, wanted, is_open, is_proven, usual, score)
    if search.options.plausibility == 1.0 and not search.oracle.is_late:
        _into_the_midst(search, record, wanted, is_open & ~is_proven, price)
    if search.options.plausibility > 0.0:
        score = choose.worth(record, price, search.n, search.neighbours)
    else:
        score = _irreducible(search, record, wanted, is_proven)
    return _confirmed(search, record, wanted, is_proven, score)


# --- asking --------------------------------------------------------------------------------------------------------


def _wanted(codes: Rows, targets: Rows | None, n_classes: int) -> Mask:
    """Return per factual which labels are to be reached; none where it has a target already or no label at all."""
    allowed = np.full(n_classes, targets is None)
    allowed[targets if targets is not None else []] = True
    known = np.clip(codes, -1, n_classes)  # a label that no fitted row has is beyond all others
    is_there = np.append(allowed, [False, False])[known] & (targets is not None)
    return allowed & (np.arange(n_classes) != codes[:, np.newaxis]) & ~(is_there | (codes == FAILED))[:, np.newaxis]


def _ask(search: Search, record: Record, wanted: Mask, proposed: Proposed, room: Rows, nearer: float = 1.0) -> None:
    """Place points, ask about those that are new, and write down what comes back.

    Those that may be nearer get their share of the room before those that may be better.
    """
    own = search.own[proposed.owner]
    points = search.values.placed(proposed.raw, own)
    allowed = search.values.allowed(points, own)
    _note_limits(search, proposed.owner[allowed], room)
    row, slot, _ = record.add(points, proposed.owner, allowed, room, proposed.part, nearer)
    _hear(search, record, wanted, row, slot)


def _note_limits(search: Search, owner: Rows, room: Rows) -> None:
    """Note which factuals have more to ask about than their budget allows."""
    if search.oracle.is_limited:
        search.oracle.ran_out |= np.bincount(owner, minlength=len(room)) > room


def _hear(search: Search, record: Record, wanted: Mask, row: Rows, slot: Rows) -> None:
    """Ask about points that were added, and write down what comes back."""
    if len(row):
        points = record.points[row, slot]
        _write_down(search, record, wanted, row, slot, search.oracle.ask(points, row))


def _write_down(search: Search, record: Record, wanted: Mask, row: Rows, slot: Rows, reply: Reply) -> None:
    points = record.points[row, slot]
    if search.distance is not None:
        apart = search.distance(search.own[row], points)
        record.base[row, slot] = apart + choose.SPARSITY * record.n_changed[row, slot]
    record.code[row, slot] = reply.codes
    if reply.probability is not None:
        known = np.clip(reply.codes, 0, reply.probability.shape[1] - 1)
        record.probability[row, slot] = reply.probability[np.arange(len(row)), known]
    record.margin[row, slot] = search.oracle.margins(reply, points, row, wanted)


def _room(search: Search, turn: int) -> Rows:
    """Return how many points each factual may ask about in a round: fewer within a budget, which lasts to the end."""
    room = search.oracle.room(search.reserve)
    if search.oracle.is_limited:
        n_rounds = min(len(CAPS), search.oracle.calls_left - 1 + turn)  # the last call confirms
        shares = SHARES_OF_ROUNDS[turn:n_rounds]
        room = (room * (shares[0] / sum(shares))).astype(np.intp) if shares else np.zeros_like(room)
    return np.minimum(room, _usual_room(search, turn))


def _usual_room(search: Search, turn: int) -> int:
    return int(CAPS[min(turn, len(CAPS) - 1)] * search.effort)


# --- round 1 -------------------------------------------------------------------------------------------------------


def _first_round(search: Search, wanted: Mask | None = None, active: Mask | None = None) -> tuple[Record, Mask, Matrix]:
    """Ask about the factuals, their donors and every free feature alone; return also what each is to reach.

    Labels come with this very call. Donors are chosen before: of the targets or, where any other label will do, of
    labels other than that of the nearest fitted row.
    """
    own, n = search.own, len(search.own)
    features = search.table.features(search.values.steps, search.options.metric, search.max_changes)
    capacity = FEW_JOINT + int((CAPACITY - FEW_JOINT) * max(1.0, search.effort))
    record = Record.of(own, search.free, features, capacity, 2 * max(CAPS))
    guess = np.full(n, UNASKED, dtype=np.intp)
    if search.targets is None and wanted is None:
        every = np.ones((n, search.n_classes), dtype=bool)
        nearest = search.table.nearest_rows(own, np.ones_like(search.free), every, 1)[:, 0]
        guess = search.table.labels[nearest]
    likely = _wanted(guess, search.targets, search.n_classes) if wanted is None else wanted
    donors, owner, to_center = _donors(search, record, likely)
    room = np.maximum(_room(search, 0), np.minimum(1, search.oracle.room(0)))
    room = room if active is None else np.where(active, room, 0)
    if search.oracle.is_limited:
        most = np.maximum(2, room // 3)
        kept = turns(owner) < most[owner]
        donors, owner = donors[kept], owner[kept]
    n_free = max(1, int(search.free.sum(axis=1).max(initial=0)))
    per_row = int(room.max(initial=0))
    n_turns = int(np.clip(per_row // (2 * n_free), 1, len(SHARES)))
    singles, singles_owner = np.empty((n * per_row + 1, own.shape[1])), np.empty(n * per_row + 1, dtype=np.intp)
    order = search.table.telling
    n_singles = rounds.singles(record.trace, features, order, SHARES[:n_turns], per_row, singles, singles_owner)
    raw = np.concatenate([own, donors, singles[:n_singles]])
    owner = np.concatenate([np.arange(n), owner, singles_owner[:n_singles]])
    return *_opened(search, record, raw, owner, room, wanted), to_center


def _opened(
    search: Search, record: Record, raw: Matrix, owner: Rows, room: Rows, wanted: Mask | None
) -> tuple[Record, Mask]:
    """Ask the first question, and settle by what comes back which labels each factual is to reach."""
    own = search.own[owner]
    points = search.values.placed(raw, own)
    points[: len(search.own)] = search.own
    allowed = search.values.allowed(points, own)
    allowed[: len(search.own)] = True
    _note_limits(search, owner[allowed], room)
    row, slot, _ = record.add(points, owner, allowed, room)
    points = record.points[row, slot]
    reply = search.oracle.ask(points, row)
    if (reply.codes == FAILED).any() and not search.oracle.is_limited:
        _ask_what_raised(search, reply, points, row, slot)
    codes = np.full(len(search.own), FAILED, dtype=np.intp)
    codes[row[slot == 0]] = reply.codes[slot == 0]
    wanted = _wanted(codes, search.targets, search.n_classes) if wanted is None else wanted
    _write_down(search, record, wanted, row, slot, reply)
    record.margin[~wanted.any(axis=1)] = np.nan
    return record, wanted


def _ask_what_raised(search: Search, reply: Reply, points: Matrix, row: Rows, slot: Rows) -> None:
    """Ask again about every factual that raised, then about the points of those that do not: none is lost."""
    own = np.flatnonzero((slot == 0) & (reply.codes == FAILED))
    search.oracle.ask_again(reply, points, row, own, is_own=True)
    raises = np.isin(row, row[own[reply.codes[own] == FAILED]])
    search.oracle.ask_again(reply, points, row, np.flatnonzero((reply.codes == FAILED) & ~raises))


def _donors(search: Search, record: Record, wanted: Mask) -> tuple[Matrix, Rows, Matrix]:
    """Return fitted rows with immutable values put in, the factual of each, and how far the nearest centre is."""
    table, how = search.table, (search.own, search.free, wanted)
    balls = table.nearest_balls(*how, CENTERS)
    found = np.concatenate([table.nearest_rows(*how, ROWS), np.where(balls >= 0, table.centers[balls], -1)], axis=1)
    owner, place = np.nonzero(found >= 0)
    points = _projected(search, found[owner, place], owner)
    apart, _ = record.measured(points, owner)
    to_center, is_center = np.full(len(search.own), np.inf), place >= found.shape[1] - CENTERS
    np.minimum.at(to_center, owner[is_center], apart[is_center])
    return points, owner, np.where(np.isfinite(to_center), to_center, 0.0)


def _projected(search: Search, rows: Rows, owner: Rows) -> Matrix:
    """Return fitted rows with what a factual cannot change, and what they lack, as it is there."""
    given = search.table.N[rows]
    return np.where(search.free[owner] & ~np.isnan(given), given, search.own[owner])


# --- the rounds after it -------------------------------------------------------------------------------------------


def _rounds(search: Search, record: Record, wanted: Mask, active: Mask, price: Matrix) -> Matrix:
    """Combine, refine, and refine again; return the score of each point asked about."""
    score = choose.worth(record, price, 1, search.neighbours)  # the same points whatever n is
    n_rounds = np.ones(len(active), dtype=np.intp)
    for turn in range(1, len(CAPS) + EXTRA_ROUNDS):
        room = np.where(active, _room(search, turn), 0)
        if search.oracle.is_limited:
            search.oracle.ran_out |= active & (room < _usual_room(search, turn))
        if not room.any():
            break
        parts = [_pulled(search, record, active, score, price), _proposed(record, active, score, turn)]
        _ask(search, record, wanted, stack(parts), room, NEARER)
        n_rounds += active
        before = record.lowest.copy()
        score = choose.worth(record, price, 1, search.neighbours)
        least, still = search.oracle.patience
        if turn >= least:  # those go on that have no answer, or got better
            best = record.lowest
            active = active & ~(np.isfinite(best) & (best >= before * (1.0 - still))).all(axis=0)
    return _needed_only(search, record, wanted, price, score, MOST_ROUNDS - n_rounds)


def _needed_only(search: Search, record: Record, wanted: Mask, price: Matrix, score: Matrix, most: Rows) -> Matrix:
    """Undo changes of the best point and of the nearest until none can be undone, in so many calls per factual."""
    for turn in range(0 if search.oracle.is_limited else int(most.max(initial=0))):
        nearest = choose.nearness(record, np.zeros(len(most), dtype=bool))
        row, slot = np.concatenate([choose.chosen(record, own, 1, price) for own in (score, nearest)], axis=1)
        left = most[row] > turn
        if not _undone(search, record, wanted, row[left], slot[left], guess=True):
            break
        score = choose.worth(record, price, 1, search.neighbours)
    return score


def _without_rules(search: Search, record: Record, wanted: Mask, active: Mask, price: Matrix) -> Mask:
    """Ask the same question without its rules; say which factuals get an answer that keeps them all the same.

    So a rule never makes an answer farther than it must be. What was accepted and keeps the rules competes in any case.
    """
    free = replace(search, values=search.values.free(), max_changes=None, n=1)
    other, _, _ = _first_round(free, wanted, active)
    score = _rounds(free, other, wanted, active, price)
    row, slot = np.nonzero(other.accepted())
    points, own = other.points[row, slot], search.own[row]
    few = other.n_changed[row, slot] <= (search.max_changes or own.shape[1])
    allowed = few & search.values.allowed(points, own)
    endless = np.full(len(search.own), len(points), dtype=np.intp)
    order = np.argsort(other.base[row, slot], kind="stable")
    row, slot, points, allowed = row[order], slot[order], points[order], allowed[order]
    to_row, to_slot, line = record.add(points, row, allowed, endless)
    from_slot = slot[line]
    for name in ("margin", "base", "code", "probability", "share"):
        getattr(record, name)[to_row, to_slot] = getattr(other, name)[to_row, from_slot]
    best = score.argmin(axis=1)
    is_kept = np.zeros(score.shape, dtype=bool)
    is_kept[row[allowed], slot[allowed]] = True
    every = np.arange(len(score))
    return np.isfinite(score[every, best]) & is_kept[every, best]


def _proposed(record: Record, active: Mask, score: Matrix, turn: int) -> Proposed:
    """Return what the kernels propose for a round."""
    owner, part = np.empty(len(record.raw), dtype=np.intp), np.empty(len(record.raw), dtype=np.int8)
    sizes = (COMBINED, FIRST_REFINED, REFINED_SIZES) if turn == 1 else (COMBINED[:0], REFINED_SIZES, REFINED_SIZES)
    given = record.trace, record.features, score, BELIEFS, *sizes, REPAIR_BELIEF, active.astype(np.int8)
    n = rounds.propose(*given, record.raw, owner, part)
    return Proposed(record.raw[:n], owner[:n], part[:n])


def _pulled(search: Search, record: Record, active: Mask, score: Matrix, price: Matrix) -> Proposed:
    """Return points that would be better than the best known if the model accepts them, for their neighbours' sake.

    Neighbours are known without the model.
    """
    raw, (owner, label) = (
        np.empty((PULLED * len(active), search.own.shape[1])),
        np.empty((2, PULLED * len(active)), int),
    )
    n = rounds.pull(record.trace, record.features, score, active.astype(np.int8), raw, owner, label)
    raw, owner, label = raw[:n], owner[:n], label[:n]
    points, limit = search.values.placed(raw, search.own[owner]), record.lowest[0, owner]
    hope, n_changed = record.measured(points, owner)
    hope += choose.SPARSITY * n_changed
    kept = np.flatnonzero((n_changed > 0) & (hope < limit))
    hope[kept] += price[owner[kept]] * (1.0 - search.neighbours(points[kept], label[kept])) ** choose.POWER
    kept = kept[hope[kept] < limit[kept]]
    kept = kept[np.lexsort((hope[kept], owner[kept]))]
    return Proposed(points[kept], owner[kept], np.ones(len(kept), dtype=np.int8))


def _into_the_midst(search: Search, record: Record, wanted: Mask, active: Mask, price: Matrix) -> None:
    """For the dial at 1: ask about fitted rows in the midst of their label, and refine what has all its neighbours."""
    rows = np.flatnonzero(active)
    Z = search.encode(search.own[rows])
    midst = [search.plausible(z, own) for z, own in zip(Z, wanted[rows], strict=True)]
    owner = np.repeat(rows, [len(own) for own in midst])
    given = np.concatenate([np.empty(0, dtype=np.intp), *midst])
    points, label = _projected(search, given, owner), search.table.labels[given]
    cut = _cut(search, points, owner, label)
    raw = np.concatenate([points, *cut])
    _ask(search, record, wanted, Proposed.of(raw, np.tile(owner, 1 + len(cut))), search.oracle.room(search.reserve))
    for _ in range(REFINED_AGAIN):
        score = choose.worth(record, price, 1, search.neighbours)
        proposed = _proposed(record, active, score, len(CAPS))
        _ask(search, record, wanted, proposed, np.where(active, _room(search, len(CAPS)), 0))


def _cut(search: Search, points: Matrix, owner: Rows, label: Rows) -> list[Matrix]:
    """Put changes back, the dearest first, and halve those that are left, while all neighbours have the label.

    Only the fitted rows are looked at: the model is asked about the points at the end, without and with halving.
    """
    own, points = search.own[owner], search.values.placed(points, search.own[owner])
    lines = np.arange(len(points))
    with np.errstate(invalid="ignore"):
        cost = np.where(search.table.is_level, points != own, np.abs(points - own)) * search.table.scale
    cost = np.where(np.isnan(cost), search.table.absent, cost)
    order, stages = np.argsort(-cost, axis=1, kind="stable"), []
    for parts in ((0.0,), (0.5, 0.75, 0.9)):
        for place in range(order.shape[1]):
            at = order[:, place]
            for part in parts:
                trial = points.copy()
                back = own[lines, at] + part * (points[lines, at] - own[lines, at])
                is_number = ~search.table.is_level[at] & ~np.isnan(own[lines, at])
                trial[lines, at] = np.where(
                    is_number | (part == 0.0), back if part else own[lines, at], points[lines, at]
                )
                trial = search.values.placed(trial, own)
                moved = np.flatnonzero(differs(trial, points).any(axis=1) & differs(trial, own).any(axis=1))
                if len(moved):
                    good = moved[search.neighbours(trial[moved], label[moved]) == 1.0]
                    points[good] = trial[good]
        stages.append(points.copy())
    return stages


def _chosen(search: Search, record: Record, score: Matrix) -> tuple[Rows, Rows]:
    is_nearest = search.options.plausibility == 0.0
    return choose.chosen(record, score, search.n, search.table.scale, is_nearest)


def _irreducible(search: Search, record: Record, wanted: Mask, is_proven: Mask) -> Matrix:
    """Undo changes of the nearest points until none can be undone: at dial 0 every change is needed."""
    score = choose.nearness(record, is_proven)
    for _ in range(0 if search.oracle.is_limited else search.own.shape[1]):
        if not _undone(search, record, wanted, *_chosen(search, record, score)):
            break
        score = choose.nearness(record, is_proven)
    return score


def _undone(search: Search, record: Record, wanted: Mask, row: Rows, slot: Rows, guess: bool = False) -> bool:
    """Ask about points with each of their changes undone, and with several; say whether there was anything to ask.

    Where a guess will do, not where a point that changes the same features, and farther, was refused before.
    """
    points, own, before = record.points[row, slot], search.own[row], record.size.sum()
    line, at = np.nonzero(differs(points, own) & (record.n_changed[row, slot] > 1)[:, np.newaxis])
    undone = points[line]
    undone[np.arange(len(line)), at] = own[line, at]
    if guess:
        open_ = ~record.refused(undone, row[line])
        undone, line = undone[open_], line[open_]
    common, owner = _in_common(search, record, row, slot)
    raw, owner = np.concatenate([undone, common]), np.concatenate([row[line], owner])
    _ask(search, record, wanted, Proposed.of(raw, owner), search.oracle.room(0))
    return bool(record.size.sum() > before)


def _in_common(search: Search, record: Record, row: Rows, slot: Rows) -> tuple[Matrix, Rows]:
    """Return points with only those changes that the next cheapest answers make, too, and the factual of each.

    First what it has in common with the cheapest of these, then with the two cheapest, and so on.
    """
    points, owner = [np.empty((0, search.own.shape[1]))], [np.empty(0, dtype=np.intp)]
    for r, s in zip(row.tolist(), slot.tolist(), strict=True):
        if record.n_changed[r, s] < 3:
            continue
        base = np.where(record.margin[r] > 0, record.base[r], np.inf)
        others = np.argsort(base, kind="stable")[:IN_COMMON]
        others = others[np.isfinite(base[others])]
        kept = np.logical_and.accumulate(differs(record.points[r, np.append(s, others)], search.own[r]), axis=0)[1:]
        points.append(np.where(kept, record.points[r, s], search.own[r]))
        owner.append(np.full(len(kept), r, dtype=np.intp))
    return np.concatenate(points), np.concatenate(owner)


# --- all combinations, and the corners -----------------------------------------------------------------------------


def _ask_all(search: Search, record: Record, wanted: Mask, is_open: Mask, most: int) -> Mask:
    """Ask about every point that a factual may become, for those with at most so many; say which they are."""
    is_proven = np.zeros(len(search.own), dtype=bool)
    points, owner = [], []
    room = search.oracle.room(search.reserve)
    for row in np.flatnonzero(is_open):
        every = search.reach(search.own[row], most)
        if every is None or len(every) > room[row]:
            continue
        is_proven[row] = True
        points.append(every)
        owner.append(np.full(len(every), row, dtype=np.intp))
        if sum(map(len, points)) > AT_ONCE:
            _ask_each(search, record, wanted, np.concatenate(points), np.concatenate(owner))
            points, owner = [], []
    if points:
        _ask_each(search, record, wanted, np.concatenate(points), np.concatenate(owner))
    return is_proven & ~search.oracle.ran_out


def _ask_each(search: Search, record: Record, wanted: Mask, points: Matrix, owner: Rows) -> None:
    """Ask about points as they are; all are written down where there is room, else those that are answers."""
    endless = np.full(len(search.own), len(points), dtype=np.intp)
    if np.bincount(owner, minlength=1).max() <= FEW_JOINT:
        row, slot, _ = record.add(points, owner, np.ones(len(points), dtype=bool), endless)
        _hear(search, record, wanted, row, slot)
        return
    _keep_best(search, record, wanted, points, owner)


def _keep_best(search: Search, record: Record, wanted: Mask, points: Matrix, owner: Rows) -> None:
    """Ask about more points than there is room for; write down the answers, nearest first, and what is nearly one."""
    reply = search.oracle.ask(points, owner)
    margin = search.oracle.margins(reply, points, owner, wanted)
    cost, _ = record.measured(points, owner)
    order = np.lexsort((np.where(margin > 0, cost, -margin), margin <= 0, owner))
    order = order[(margin[order] > 0) | (turns(owner[order]) < STARTS)]
    endless = np.full(len(search.own), len(points), dtype=np.intp)
    row, slot, line = record.add(points[order], owner[order], np.ones(len(order), dtype=bool), endless)
    _write_down(search, record, wanted, row, slot, take(reply, order[line]))


def _last_resort(
    search: Search, record: Record, wanted: Mask, is_open: Mask, is_proven: Mask, price: Matrix, score: Matrix
) -> None:
    """Try more for factuals without an answer: all combinations where they are few, else fitted rows, then corners.

    From the points with the highest margins it climbs on, one feature at a time, cost what it may. `is_proven` is told
    which of them have been asked about everything.
    """
    none = is_open & ~is_proven & ~np.isfinite(score).any(axis=1)
    if not none.any() or search.oracle.is_late:
        return
    is_proven |= _ask_all(search, record, wanted, none, MOST_JOINT)
    none &= ~is_proven
    _ask_more_donors(search, record, wanted & none[:, np.newaxis])
    none &= ~record.accepted().any(axis=1)
    tried, climbed = _corners(search, record, none), np.zeros(record.margin.shape, dtype=bool)
    for _ in range(CLIMBS):
        if not len(tried.owner):
            break
        _ask(search, record, wanted, tried, np.where(none, search.oracle.room(search.reserve), 0))
        none &= ~record.accepted().any(axis=1)
        tried = _climb(search, record, none, climbed)
    found = is_open & ~is_proven & record.accepted().any(axis=1) & ~np.isfinite(score).any(axis=1)
    for _ in range(REFINED_AGAIN if found.any() else 0):
        base = np.where(record.accepted(), record.base, np.inf)
        proposed = _proposed(record, found, base, len(CAPS))
        _ask(search, record, wanted, proposed, np.where(found, _room(search, len(CAPS)), 0))
    if found.any():
        score = choose.worth(record, price, 1, search.neighbours)
        _needed_only(search, record, wanted, price, score, np.where(found, MOST_ROUNDS, 0))


def _ask_more_donors(search: Search, record: Record, wanted: Mask) -> None:
    """Ask about many fitted rows of the labels that are wanted, with immutable values put in."""
    found = search.table.nearest_rows(search.own, search.free, wanted, MOST_DONORS)
    owner, place = np.nonzero(found >= 0)
    points = search.values.placed(_projected(search, found[owner, place], owner), search.own[owner])
    kept = np.flatnonzero(search.values.allowed(points, search.own[owner]))
    room = search.oracle.room(search.reserve)
    _note_limits(search, owner[kept], room)
    kept = kept[turns(owner[kept]) < room[owner[kept]]]
    _keep_best(search, record, wanted, points[kept], owner[kept])


def _climb(search: Search, record: Record, rows: Mask, climbed: Mask) -> Proposed:
    """Return the points around the refused ones with the highest margins: each free feature at values of all sizes.

    No point is climbed from twice.
    """
    points, owner = [np.empty((0, search.own.shape[1]))], [np.empty(0, dtype=np.intp)]
    for row in np.flatnonzero(rows):
        margin = np.where(climbed[row] | np.isnan(record.margin[row]), -np.inf, record.margin[row])[: record.size[row]]
        best = np.argsort(-margin, kind="stable")[:STARTS]
        climbed[row, best] = True
        for start in record.points[row, best]:
            for at in np.flatnonzero(search.free[row]):
                ranks = search.table.ranks[at]
                values = ranks[~np.isnan(ranks)][:MOST_LEVELS] if search.table.is_level[at] else ranks[::10]
                trial = np.repeat(start[np.newaxis], len(values), axis=0)
                trial[:, at] = values
                points.append(trial)
                owner.append(np.full(len(trial), row, dtype=np.intp))
    return Proposed.of(np.concatenate(points), np.concatenate(owner))


def _corners(search: Search, record: Record, rows: Mask) -> Proposed:
    """Return the corners of the free features' ranges: all where they are few, else near the one that singles favour.

    Of a category the two levels that gain most alone stand for its ends.
    """
    points, owner = [np.empty((0, search.own.shape[1]))], [np.empty(0, dtype=np.intp)]
    for row in np.flatnonzero(rows):
        ends = _ends(search, record, int(row))
        free = [at for at in range(len(ends)) if len(ends[at]) > 1]
        if not free:
            continue
        n_all = np.prod([float(len(ends[at])) for at in free])
        if n_all <= MOST_CORNERS:
            grid = np.stack(np.meshgrid(*(ends[at] for at in free), indexing="ij"), axis=-1).reshape(-1, len(free))
        else:
            best = np.array([ends[at][0] for at in free])
            grid = np.repeat(best[np.newaxis], 1 + len(free), axis=0)
            for place, at in enumerate(free):
                grid[1 + place, place] = ends[at][1]
        own = np.repeat(search.own[[row]], len(grid), axis=0)
        own[:, free] = grid
        points.append(own)
        owner.append(np.full(len(own), row, dtype=np.intp))
    return Proposed.of(np.concatenate(points), np.concatenate(owner))


def _ends(search: Search, record: Record, row: int) -> list[Matrix]:
    """Return the values of each feature that make corners, the one that gains most alone first."""
    found, margin = [], record.margin[row, : record.size[row]]
    points = record.points[row, : record.size[row]]
    is_single = record.n_changed[row, : record.size[row]] == 1
    for at, own in enumerate(search.own[row].tolist()):
        if not search.free[row, at]:
            found.append(np.array([own]))
            continue
        if search.table.is_level[at]:
            single = np.flatnonzero(is_single & (points[:, at] != own))
            values = points[single[np.argsort(-margin[single], kind="stable")], at][:2]
            found.append(np.append(values, own))
            continue
        values = search.table.ranks[at, [0, -1]]
        gains = [margin[is_single & (points[:, at] == value)].max(initial=-np.inf) for value in values]
        found.append(values[np.argsort(-np.array(gains), kind="stable")])
    return found


# --- confirmed -----------------------------------------------------------------------------------------------------


def _confirmed(search: Search, record: Record, wanted: Mask, is_proven: Mask, score: Matrix) -> Outcome:
    """Choose, and ask the model's own `predict` about what was chosen, as it will be printed.

    A point that it gives another label is dropped for the next best, some times. Where it says something else of a
    factual, this one is searched again by labels alone; within a budget, it gets its label and no answer. Where it
    contradicts the copy of the model, all are asked about again without.
    """
    oracle, codes = search.oracle, record.code[:, 0].copy()
    labels = oracle.named(codes)
    row, slot = _chosen(search, record, score)
    confirmed = _look_back(search, record, row, slot, codes, with_own=not oracle.has_limits or oracle.sees_scores)
    if oracle.reads and _is_other(confirmed, record, row, slot, codes):
        oracle.distrust()
        return find(search)
    is_known = confirmed.own != UNASKED
    is_other = is_known & (confirmed.own != codes)  # factuals whose label is not the one with the highest score
    codes, labels = np.where(is_known, confirmed.own, codes), np.where(is_known, confirmed.labels, labels)
    is_doubted = is_other & (not oracle.has_limits and oracle.sees_scores)
    again = find(search, is_doubted) if oracle.doubt(is_doubted) else None
    oracle.ran_out |= is_other & ~is_doubted
    doubted = np.zeros(len(score), dtype=bool)
    for _ in range(TRIES):
        wrong = confirmed.again != record.code[row, slot]
        wrong &= (confirmed.again != UNASKED) & (confirmed.again != FAILED)
        if not wrong.any():
            break
        others = np.where(np.isin(np.arange(len(score)), row[wrong])[:, np.newaxis], score, np.inf)
        doubted[row[wrong]] = True
        right = score[row[~wrong], slot[~wrong]]
        for r in np.unique(row[wrong]).tolist():
            weak = np.isin(np.arange(score.shape[1]), slot[wrong & (row == r)])
            if oracle.scores(r):
                weak |= record.margin[r] <= _believed_from(search, record, r, slot[wrong & (row == r)])
            score[r, weak] = others[r, weak] = np.inf
        score[row[~wrong], slot[~wrong]] = right
        others[row[~wrong], slot[~wrong]] = np.where(np.isin(row[~wrong], row[wrong]), right, np.inf)
        if not np.isfinite(others).any():
            break
        more, places = _chosen(search, record, others)
        stays = ~np.isin(row, row[wrong])
        row, slot = np.concatenate([row[stays], more]), np.concatenate([slot[stays], places])
        order = np.argsort(row, kind="stable")
        row, slot = row[order], slot[order]
        confirmed = _look_back(search, record, row, slot, codes, with_own=False)
    found = _found(search, record, row, slot, confirmed)
    is_sure = ~doubted[row] | (confirmed.again != UNASKED)  # scores were wrong of such a row, so they are not believed
    outcome = Outcome(take(found, is_sure & ~is_other[row]), is_proven & ~is_other, codes, labels)
    return outcome if again is None else _with(outcome, again, is_doubted)


def _with(outcome: Outcome, again: Outcome, rows: Mask) -> Outcome:
    """Return an outcome with what was found when some rows were searched again."""
    found = stack([outcome.found, again.found])
    found = take(found, np.argsort(found.factual, kind="stable"))
    parts = zip(outcome[1:], again[1:], strict=True)
    return Outcome(found, *(np.where(rows, new, old) for old, new in parts))


def _believed_from(search: Search, record: Record, row: int, wrong: Rows) -> float:
    """Return the margin up to which `predict` contradicts the scores of a factual's points, by asking about some.

    Some are known to be wrong; within limits, nothing more is asked.
    """
    good = np.flatnonzero(record.accepted()[row] & (not search.oracle.has_limits))
    some = good[np.argsort(record.margin[row, good], kind="stable")][:: max(1, len(good) // LADDER)]
    said, _ = search.oracle.confirm(record.points[row, some], np.full(len(some), row, dtype=np.intp))
    others = some[(said != record.code[row, some]) & (said != UNASKED)]
    return float(record.margin[row, np.append(wrong, others)].max())


class LookedBack(NamedTuple):
    """What lies between points and their factuals, one line per point; and what the model says of the factuals."""

    semifactual: Matrix  # the factual itself where there is none
    has_semifactual: Mask
    again: Rows  # the label of the point when it was asked again
    margin: Matrix  # share of the way; NaN where it was not asked
    own: Rows  # UNASKED where it was not asked
    labels: NDArray[Any]


def _is_other(confirmed: LookedBack, record: Record, row: Rows, slot: Rows, codes: Rows) -> bool:
    """Say whether the model contradicts its copy."""
    again = (confirmed.again != record.code[row, slot]) & (confirmed.again != UNASKED)
    return bool(again.any() or ((confirmed.own != codes) & (confirmed.own != UNASKED)).any())


def _look_back(search: Search, record: Record, row: Rows, slot: Rows, codes: Rows, with_own: bool) -> LookedBack:
    """Ask again about points, and about the way from each back to its factual; and about the factuals themselves.

    The semifactual is the place nearest to the point that has the factual's label and keeps the rules. The margin is
    the share of the way on which the point's label holds without a gap.
    """
    points, own = record.points[row, slot], search.own[row]
    shares = np.arange(WAY_BACK, 0, -1) / WAY_BACK  # the point first: a budget may end on the way
    line = np.repeat(np.arange(len(row)), WAY_BACK)
    raw = _between(search.table, own[line], points[line], np.tile(shares, len(row)))
    places = search.values.placed(raw, own[line])
    places[::WAY_BACK] = points
    known = np.flatnonzero((record.size > 0) & with_own)
    n_own, asked = len(known), np.concatenate([search.own[known], places])
    # Points first, then all places next to them, and so on: where a budget ends, it ends for all alike.
    turn = np.concatenate([np.full(n_own, -1), np.tile(np.arange(WAY_BACK), len(row))])
    order = np.argsort(turn, kind="stable")
    said, names = search.oracle.confirm(asked[order], np.concatenate([known, row[line]])[order])
    codes_said, labels = np.empty_like(said), np.empty_like(names)
    codes_said[order], labels[order] = said, names
    said = codes_said[n_own:].reshape(-1, WAY_BACK)
    moved = differs(places, own[line]).any(axis=1) & _lies_between(own[line], places, points[line])
    same = (codes_said[n_own:] == codes[row[line]]) & moved
    same[same] = search.values.allowed(places[same], own[line[same]])
    same = same.reshape(-1, WAY_BACK)
    has, first = same.any(axis=1), np.arange(0, len(line), WAY_BACK) + same.argmax(axis=1)
    semifactual = np.where(has[:, np.newaxis], places[first], own) if len(row) else own
    margin = margins(said[:, 1:], record.code[row, slot])
    own_codes, own_labels = np.full(len(search.own), UNASKED), np.full(len(search.own), None, dtype=object)
    own_codes[known], own_labels[known] = codes_said[:n_own], labels[:n_own]
    return LookedBack(semifactual, has, said[:, 0], margin, own_codes, own_labels)


def _between(table: SearchTable, own: Matrix, goal: Matrix, share: Matrix) -> Matrix:
    """Return places on the way: levels change, and what is missing is filled in, from the middle on."""
    share = share[:, np.newaxis]
    places = own + share * (goal - own)
    return np.where(table.is_level | np.isnan(own), np.where(share < 0.5, own, goal), places)


def _lies_between(own: Matrix, points: Matrix, goal: Matrix) -> Mask:
    """Say which points are, in every feature, between their factual and their goal: rules may push one beyond."""
    low, high = np.fmin(own, goal), np.fmax(own, goal)
    edge = 1e-12 * (np.abs(low) + np.abs(high))
    return np.asarray((np.isnan(points) | ((points >= low - edge) & (points <= high + edge))).all(axis=1))


def _found(search: Search, record: Record, row: Rows, slot: Rows, back: LookedBack) -> Found:
    points, label = record.points[row, slot], record.code[row, slot]
    is_label = np.arange(search.n_classes) == label[:, np.newaxis]
    return Found(
        factual=row,
        ball=search.table.nearest_balls(points, np.ones(points.shape, dtype=bool), is_label, 1)[:, 0],
        label=label,
        relaxation=np.zeros(len(row), dtype=np.intp),
        counterfactual=search.encode(points),
        semifactual=search.encode(back.semifactual),
        has_semifactual=back.has_semifactual,
        again=back.again,
        margin=back.margin,
        numbers=points,
        semifactual_numbers=back.semifactual,
        probability=record.probability[row, slot],
    )


REFINED = Strategy(
    find,
    reserve=lambda options: 0,
    release="nothing",
    ignores=("step_ratio", "max_steps"),
    is_readable=True,
    is_distinct=True,
    finds_labels=True,
)
