"""What a point is worth, and which n points of a factual are returned.

    Record  ->  worth  ->  score of each accepted point        Record, scores  ->  chosen  ->  n per factual

A score is the distance, a little for each changed feature, and a price for neighbours of another label that rises with
the option `plausibility` (docs/decisions/0100-price-of-neighbours.md). Neighbours are counted cheapest point first,
until no other point can win.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._base.missing import differs
from onbmacf._search.kernels import rounds
from onbmacf._search.record import Record

SPARSITY = 0.03  # what one more changed feature costs, in units of distance; also in kernels/rounds.py
OF_THE_NEAREST = 0.02  # the same at plausibility=0, where what is chosen is the nearest,
TIE_BREAK = 1e-9  # and where that is proven
PRICE = 0.28  # distance that it costs at plausibility=0.5 to have no neighbour of the label,
PER_DISTANCE = 0.12  # and so much more for each unit of distance to the nearest projected centre
POWER = 1.5  # of the share of neighbours that are missing; also in kernels/rounds.py, in `weigh`
ANYTHING = 1e6  # the price at plausibility=1
OVERLAP = 1.0  # what it costs to change the same features as a counterfactual chosen before
ALIKE = 0.01  # of a feature's range: points that change the same features and are so near each other are one answer
TOGETHER = 16  # points of a factual whose neighbours are counted at once
OF_A_SET = 3  # points of each set of changes that compete where several counterfactuals are asked for
MOST_SETS = 60  # points of a factual whose neighbours are counted for several counterfactuals

Share = Callable[[Matrix, Rows], Matrix]  # points in numbers, labels -> share of neighbours with the label


def price_of(plausibility: float, to_center: Matrix) -> Matrix:
    """Return per factual what a point may be farther for the sake of all its neighbours: nothing at 0, anything at 1.

    Between, it is in proportion to what lies before the factual: its distance to the nearest projected centre.
    """
    if plausibility == 1.0:
        return np.full(len(to_center), ANYTHING)
    return plausibility / (1.0 - plausibility) * (PRICE + PER_DISTANCE * to_center)


def worth(record: Record, price: Matrix, n: int, share: Share) -> Matrix:
    """Return the score of each accepted point; infinite for the others, and where a better one is known to win."""
    needless = record.needless
    if price.max(initial=0.0) < ANYTHING:  # a change that can be undone is none, unless neighbours are all that counts
        record.find_needless()
    else:
        needless = np.zeros_like(needless)
    if n > 1 and price.any():
        _count(record, *_of_each_set(record, needless), share)
    return weighed(record, price, needless, share)


def weighed(record: Record, price: Matrix, needless: NDArray[np.int8], share: Share) -> Matrix:
    """Return the scores of the points that are not needless, whatever their costs are."""
    total = np.full(record.margin.shape, np.inf)
    is_open, (row, slot) = np.ones(len(price), dtype=np.int8), np.empty((2, len(price) * TOGETHER), dtype=np.intp)
    while n_open := rounds.weigh(record.trace, price, needless, is_open, total, record.lowest, TOGETHER, row, slot):
        _count(record, row[:n_open], slot[:n_open], share)
    return total


def nearness(record: Record, is_proven: Mask) -> Matrix:
    """Return the score of each accepted point where only distance counts: at plausibility=0."""
    total, nothing = np.full(record.margin.shape, np.inf), np.zeros(len(record.factuals))
    record.find_needless()
    every, (row, slot) = np.ones(len(nothing), dtype=np.int8), np.empty((2, 0), dtype=np.intp)
    rounds.weigh(record.trace, nothing, record.needless, every, total, np.empty((2, len(nothing))), 0, row, slot)
    each = np.where(is_proven, TIE_BREAK, OF_THE_NEAREST)[:, np.newaxis]
    return total - (SPARSITY - each) * record.n_changed


def _count(record: Record, row: Rows, slot: Rows, share: Share) -> None:
    new = np.isnan(record.share[row, slot])
    row, slot = row[new], slot[new]
    if len(row):
        points = record.points[row, slot]
        points = points if record.complete is None else record.complete(points, record.factuals[row])
        record.share[row, slot] = share(points, record.code[row, slot])


def _of_each_set(record: Record, needless: NDArray[np.int8]) -> tuple[Rows, Rows]:
    """Return the cheapest points of each set of changes, as many per factual as compete."""
    base = np.where(record.accepted() & (needless == 0), record.base, np.inf)
    rows, slots = [], []
    for row in range(len(base)):
        order = np.argsort(base[row], kind="stable")
        order = order[np.isfinite(base[row, order])]
        turn: dict[int, int] = {}
        kept = []
        for slot in order.tolist():
            key = int(record.key[row, slot])
            turn[key] = turn.get(key, 0) + 1
            if turn[key] <= OF_A_SET:
                kept.append(slot)
            if len(kept) == MOST_SETS:
                break
        rows.append(np.full(len(kept), row, dtype=np.intp))
        slots.append(np.array(kept, dtype=np.intp))
    return np.concatenate(rows), np.concatenate(slots)


def chosen(record: Record, score: Matrix, n: int, span: Matrix, is_nearest: bool = False) -> tuple[Rows, Rows]:
    """Pick n points per factual, the best first; return factuals and slots.

    Each later one changes other features than those before where there is such a point: the same set again, or a set
    that holds one of them, only where nothing else is left; the latter never where the nearest are wanted, for whom a
    change that can be undone is none. The k-th choice does not depend on n.
    """
    if n == 1:
        slot = score.argmin(axis=1)
        row = np.flatnonzero(np.isfinite(score[np.arange(len(score)), slot]))
        return row, slot[row]
    slots = [_several(record, at, score[at], n, span, is_nearest) for at in range(len(score))]
    rows = np.repeat(np.arange(len(score)), [len(places) for places in slots])
    return rows, np.concatenate([np.empty(0, dtype=np.intp), *slots])


def _several(record: Record, row: int, score: Matrix, n: int, span: Matrix, is_nearest: bool) -> Rows:
    """Return the slots of the points of one factual that are returned."""
    slots = np.flatnonzero(np.isfinite(score))
    points, start = record.points[row, slots], record.factuals[row]
    changed = differs(points, start)
    rank = score[slots].copy()
    is_free, is_repeat = np.ones(len(slots), dtype=bool), np.zeros(len(slots), dtype=np.intp)
    picked: list[int] = []
    penalty = np.zeros(len(slots))
    while len(picked) < n and is_free.any():
        order = np.lexsort((rank + penalty, is_repeat, ~is_free))
        best = order[0]
        picked.append(int(slots[best]))
        both, either = (changed & changed[best]).sum(axis=1), (changed | changed[best]).sum(axis=1)
        penalty = np.maximum(penalty, OVERLAP * both / np.maximum(1, either))
        is_same = (changed == changed[best]).all(axis=1)
        is_repeat = np.maximum(is_repeat, np.where(is_same, 1, 2 * (both == changed[best].sum())))
        with np.errstate(invalid="ignore"):
            apart = np.nansum(np.abs(points - points[best]) * span, axis=1)
        is_free &= ~(is_same & (apart <= ALIKE))
        is_free &= ~((is_repeat == 2) & is_nearest)
        is_free[best] = False
    return np.array(picked, dtype=np.intp)
