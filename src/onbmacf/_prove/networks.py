"""The nearest point that a network of rectified units gives a label, by branch and bound over boxes of choices.

    Layers, Demand  ->  expand  ->  candidates in the order of their distance, and how far it has got

In a box every condition lies below a sum of one term per feature. The bound of the box is what it costs at least until
this sum is large enough: a feature gives at most its best choice, and at most its best gain per cost. A box is cut
where the lines of its units give most away, or, where they give nothing away, at the choice that was bought in part.
"""

from typing import NamedTuple

import numpy as np

from onbmacf._base.arrays import Matrix, Rows
from onbmacf._base.jit import kernel, part
from onbmacf._prove.boxes import NEVER, SLACK
from onbmacf._prove.layers import (
    Box,
    Layers,
    Span,
    bound_units,
    box_of,
    gap_of,
    leave_gaps,
    line_above,
    measure,
    span_of,
    steepest,
    sums_at,
)
from onbmacf._prove.queue import (
    FULL,
    GOING,
    OPEN,
    Choosable,
    Demand,
    Queue,
    cheapest,
    cut_first,
    cut_in_half,
    give_back,
    is_hopeless,
    keeps,
    push,
    push_candidate,
    push_point,
    reach,
    state,
)

HALVINGS = 48  # of a distance, where every feature may cost as much


class Room(NamedTuple):
    """Room for one box."""

    box: Box
    span: Span
    point: Rows  # the point that is bought
    first: Rows  # the cheapest point of the box
    sums: Matrix  # what the network gives a point


def room_of(layers: Layers, n_features: int) -> Room:
    """Return room for the boxes of a row."""
    point, first = np.zeros((2, n_features), np.intp)
    return Room(box_of(n_features), span_of(layers), point, first, np.zeros(int(layers.sizes[-1])))


@part
def _buy(need: float, base: float, sum_: float, box: Box) -> float:
    """Return the least cost at which the sum may be reached, the best gain per cost first."""
    total = base
    for place in range(box.n_open[0]):
        box.is_bought[box.open[place]] = 0
    while sum_ < need:
        feature = steepest(box)
        if feature < 0:
            return NEVER
        gain = min(box.most[feature], need - sum_)
        box.is_bought[feature] = 2 if gain == box.most[feature] else 1
        total += gain / box.rate[feature]
        if box.is_bought[feature] == 1:
            break
        sum_ += gain
    return total * (1.0 - SLACK)


@part
def _given_within(choosable: Choosable, distance: float, box: Box) -> float:
    """Return the most that features add where none costs more than a distance."""
    total = 0.0
    for place in range(box.n_open[0]):
        feature = box.open[place]
        spent, rate = max(0.0, distance - choosable.cost[box.first[feature]]), box.rate[feature]
        total += box.most[feature] if rate == np.inf else min(box.most[feature], rate * spent)
    return total


@part
def _spend(choosable: Choosable, limit: float, need: float, base: float, sum_: float, box: Box) -> float:
    """Return a distance below which the sum is not reached, if every feature may cost as much."""
    low, high = base, limit
    for place in range(box.n_open[0]):
        box.is_bought[box.open[place]] = 2
    if sum_ + _given_within(choosable, high, box) < need:
        return NEVER
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        if sum_ + _given_within(choosable, middle, box) >= need:
            high = middle
        else:
            low = middle
    return low


@part
def _bound_of(layers: Layers, choosable: Choosable, demand: Demand, base: float, k: int, room: Room) -> float:
    """Return the bound that a condition sets to a box."""
    sum_ = line_above(layers, choosable, k, room.box, room.span)
    if choosable.is_sum:
        return _buy(demand.need[k], base, sum_, room.box)
    return _spend(choosable, demand.limit[0], demand.need[k], base, sum_, room.box)


@part
def _bound(layers: Layers, choosable: Choosable, demand: Demand, base: float, room: Room) -> float:
    """Return the bound of a box, and leave what features offer to the condition that sets it."""
    highest, tightest, last = base, 0, len(demand.need) - 1
    for k in range(len(demand.need)):
        bound = _bound_of(layers, choosable, demand, base, k, room)
        if not bound < demand.limit[0]:
            return NEVER
        if bound > highest:
            highest, tightest = bound, k
    if tightest != last:
        _bound_of(layers, choosable, demand, base, tightest, room)  # again, for where to cut
    return highest


@part
def _choose_cut(layers: Layers, choosable: Choosable, demand: Demand, queue: Queue, box: int, room: Room) -> None:
    """Write down where to cut a box: where its units' lines give most away, else at what was bought in part."""
    lo, hi, cut, most = queue.lo[box], queue.hi[box], -1, 0.0
    leave_gaps(layers, room.span)
    for feature in range(len(lo)):
        if hi[feature] > lo[feature]:
            gap = gap_of(layers, feature, room.box, room.span)
            if gap > most:
                cut, most = feature, gap
    if cut < 0:
        for feature in range(len(lo)):
            if room.box.is_bought[feature] == 1 and hi[feature] > lo[feature]:
                cut = feature
    if cut < 0:
        cut_in_half(choosable, demand, queue, box, room.first)
        return
    low, high, own = lo[cut], hi[cut], choosable.own[cut]
    place = low + 1 if low == own and not layers.is_line[cut] else (low + high + 1) // 2
    queue.feature[box], queue.place[box] = cut, place


@part
def _holds(layers: Layers, choosable: Choosable, demand: Demand, room: Room) -> bool:
    """Say whether the network, beyond all rounding error, gives the point that is bought its label."""
    sums_at(layers, choosable, room.point, room.span, room.sums)
    return reach(room.sums, demand.firm)


@part
def _take_back(layers: Layers, choosable: Choosable, demand: Demand, feature: int, room: Room) -> None:
    """Take back as much of what was bought of a feature as a few halvings find not to be needed."""
    low, high = room.first[feature], room.point[feature]
    while abs(high - low) > 1:
        room.point[feature] = (low + high) // 2
        if _holds(layers, choosable, demand, room):
            high = room.point[feature]
        else:
            low = room.point[feature]
    room.point[feature] = high


@part
def _offer(layers: Layers, choosable: Choosable, demand: Demand, queue: Queue, room: Room) -> None:
    """Queue the point that was bought, if it meets everything and is nearer than what is known."""
    for feature in range(len(room.point)):
        bought = room.box.best[feature] - choosable.start[feature]
        room.point[feature] = bought if room.box.is_bought[feature] else room.first[feature]
    if not _holds(layers, choosable, demand, room):
        return
    for feature in range(len(room.point)):
        if room.box.is_bought[feature]:
            _take_back(layers, choosable, demand, feature, room)
    cost = cheapest(choosable, room.point, room.point, room.point)
    if cost < demand.limit[0] and keeps(choosable, demand, room.point):
        push_point(queue, demand, room.point, cost)


@part
def _enter(layers: Layers, choosable: Choosable, demand: Demand, queue: Queue, room: Room, box: int) -> None:
    """Bound a box, and queue it unless it is known to hold nothing."""
    lo, hi, bound = queue.lo[box], queue.hi[box], NEVER
    base = cheapest(choosable, lo, hi, room.first)
    if base < demand.limit[0] and not is_hopeless(choosable, demand, lo, hi):
        measure(layers, choosable, lo, hi, room.first, room.box, room.span)
        bound_units(layers, choosable, demand.limit[0] - base, room.box, room.span)
        bound = _bound(layers, choosable, demand, base, room)
    if not bound < demand.limit[0]:
        give_back(queue, box)
        return
    _choose_cut(layers, choosable, demand, queue, box, room)
    sums_at(layers, choosable, room.first, room.span, room.sums)
    if keeps(choosable, demand, room.first) and reach(room.sums, demand.need):
        push_candidate(queue, demand, box, base, reach(room.sums, demand.firm))
    else:
        push(queue, box, max(bound, queue.bound[box]), OPEN)
        _offer(layers, choosable, demand, queue, room)


@kernel
def expand(layers: Layers, choosable: Choosable, demand: Demand, queue: Queue, room: Room, n_steps: int) -> int:
    """Cut boxes, those with the least bound first, so many times at most; return why it stopped."""
    for _ in range(n_steps):
        now = state(queue, demand)
        if now != GOING or queue.n[1] < 4:
            return FULL if now == GOING else now
        for box in cut_first(queue):
            if box >= 0:
                _enter(layers, choosable, demand, queue, room, box)
    return state(queue, demand)
