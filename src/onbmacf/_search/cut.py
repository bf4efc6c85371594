"""Undo the changes of a projected centre that are not needed, many at once, by halving.

    start (the factual), goal (accepted)  ->  cut_changes  ->  points with few changes

Changes are put in order, the largest first (or the smallest). Halving finds how many of the first are enough; the last
of these is needed and moves to the front. Halving again finds how many must follow it, and so on: while there are FEW
left or PASSES are not over. A point that needs more seldom wins, and only the best are looked at again.
"""

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._search.cut_plans import FEW, PASSES, Cut, Plan, plans_of, walked
from onbmacf._search.halving import Bracket, narrow
from onbmacf._search.problem import Asking, Features
from onbmacf._search.undo import changed_in_order, keeping

ROOM = 2  # places of a call per line from which on it is worth to look ahead


def cut_changes(
    start: Matrix, goal: Matrix, features: Features, asking: Asking, largest_first: Mask | None = None
) -> Matrix:
    """Undo changes that are not needed: for few lines some questions ahead, for many all lines together."""
    order, n_changes = _what_stays(start, goal, features, largest_first)
    cut = _cut_ahead if (n_changes > 1).sum() * ROOM <= asking.places else _cut_together
    return cut(start, goal, order, n_changes, features, asking)


def first_cuts(
    start: Matrix, goal: Matrix, features: Features, places: int, largest_first: Mask | None = None
) -> tuple[Matrix, Rows]:
    """Return the points that `cut_changes` may ask about first, as many as fit, and the line of each."""
    order, n_changes = _what_stays(start, goal, features, largest_first)
    some = np.flatnonzero(n_changes > 1)
    if not len(some) or len(some) > places:
        return goal[:0], some[:0]
    return _trials(start, goal, order, features, some, plans_of(_first(n_changes[some]), places))


def _cut_ahead(start: Matrix, goal: Matrix, order: Rows, n_changes: Rows, features: Features, asking: Asking) -> Matrix:
    """Ask about each line what it will probably ask, in as few calls as there is room for.

    What was asked ahead is followed first: then the first call has all its places for what comes after.
    """
    n_kept, lines = n_changes.copy(), np.flatnonzero(n_changes > 1)
    at, places, is_first = _first(n_changes[lines]), tuple(range(order.shape[1])), True
    while at:
        plans = plans_of(at, asking.places)
        trials = _trials(start, goal, order, features, lines, plans)
        answers = (asking.known(*trials) if is_first else asking.holds(*trials)).tolist()
        is_first = False
        ends, moves, stop = [], [], 0
        for plan in plans:
            first, stop = stop, stop + len(plan.then)
            now, moved = walked(plan, answers[first:stop])
            ends.append(now)
            moves.append((*moved, *places[len(moved) :]))
        order[lines] = np.take_along_axis(order[lines], np.array(moves), axis=1)
        n_kept[lines] = [now.high for now in ends]
        lines, at = lines[[now.is_open for now in ends]], [now for now in ends if now.is_open]
    is_kept = np.arange(order.shape[1]) < n_kept[:, np.newaxis]
    return keeping(start, goal, order, features, np.arange(len(goal)), is_kept)


def _first(n_changes: Rows) -> list[Cut]:
    return [Cut(0, 0, size) for size in n_changes.tolist()]


def _trials(
    start: Matrix, goal: Matrix, order: Rows, features: Features, lines: Rows, plans: list[Plan]
) -> tuple[Matrix, Rows]:
    """Return the points that plans ask about, and the line of each."""
    own = np.repeat(lines, [len(plan.then) for plan in plans])
    is_kept, stop = np.zeros((len(own), order.shape[1]), dtype=bool), 0
    for plan in plans:
        first, stop = stop, stop + len(plan.then)
        is_kept[first:stop, : plan.is_kept.shape[1]] = plan.is_kept
    return keeping(start, goal, order, features, own, is_kept), own


def _cut_together(
    start: Matrix, goal: Matrix, order: Rows, n_changes: Rows, features: Features, asking: Asking
) -> Matrix:
    """Return the same with one question per line at a time."""
    n_needed = np.zeros_like(n_changes)  # changes at the front of the order that are known to be needed
    at = Bracket(np.zeros_like(n_changes), n_changes.copy(), goal.copy())

    def with_first(lines: Rows, n_kept: Rows) -> Matrix:
        is_kept = np.arange(order.shape[1]) < n_kept[:, np.newaxis]
        return keeping(start, goal, order, features, lines, is_kept)

    while len(lines := np.flatnonzero(at.high - at.low > 1)):
        narrow(at, lines, start, with_first, asking.holds, 0)
        done = lines[at.high[lines] - at.low[lines] <= 1]
        _to_front(order, done, at.high[done] - 1, n_needed[done])
        n_needed[done] += 1
        goes_on = (n_needed[done] < PASSES) | (at.high[done] <= FEW + 1)
        at.low[done] = np.where(goes_on, np.minimum(n_needed[done] - 1, at.high[done]), at.high[done])
    return at.best


def _what_stays(start: Matrix, goal: Matrix, features: Features, largest_first: Mask | None) -> tuple[Rows, Rows]:
    """Return the changed features of each line, those that go last in front, and how many there are."""
    order, n_changes = changed_in_order(start, goal, features, largest_first)
    place = n_changes[:, np.newaxis] - 1 - np.arange(order.shape[1])  # backwards
    return np.take_along_axis(order, np.where(place < 0, np.arange(order.shape[1]), place), axis=1), n_changes


def _to_front(order: Rows, lines: Rows, source: Rows, target: Rows) -> None:
    """Move in each of these lines the entry at `source` forward to `target`; those between move back by one."""
    place = np.arange(order.shape[1])
    source, target = source[:, np.newaxis], target[:, np.newaxis]
    taken = np.where(place == target, source, np.where((place > target) & (place <= source), place - 1, place))
    order[lines] = np.take_along_axis(order[lines], taken, axis=1)
