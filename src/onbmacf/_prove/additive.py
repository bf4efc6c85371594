"""The nearest point that a sum of one term per feature gives a label, by branch and bound over boxes of choices.

    Terms, Demand  ->  expand  ->  candidates in the order of their distance, and how far it has got

Choices are sorted by cost, the row's own first. The bound of a box takes what each feature gives for its cost from
above, along the outline of its choices, and buys by gain per cost until the condition holds: the last purchase may be
a part of a choice. That choice is where the box is cut. For the Chebyshev metric every feature may cost the distance.
"""

from typing import NamedTuple

import numpy as np

from onbmacf._base.arrays import Matrix, Rows
from onbmacf._base.jit import kernel, part
from onbmacf._prove.boxes import NEVER, SLACK
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
    state,
)


class Outline(NamedTuple):
    """Room for one box: the outline of each feature, and where the buying stopped."""

    corner: Rows  # per choice: the corners of a feature's outline, from its start on
    n_corners: Rows  # per feature
    at: Rows  # per feature: the corner that is bought
    cut: Rows  # the feature that is bought in part, -1 if none is, and the first choice above that part
    point: Rows  # a point that meets the condition
    first: Rows  # the cheapest point of the box
    distances: Matrix  # all costs, sorted


def outline_of(choosable: Choosable) -> Outline:
    """Return room for the boxes of a row."""
    n_features = len(choosable.own)
    corner, cut = np.zeros(len(choosable.cost), np.intp), np.zeros(2, np.intp)
    n_corners, at, point, first = np.zeros((4, n_features), np.intp)
    return Outline(corner, n_corners, at, cut, point, first, np.unique(choosable.cost))


@part
def _trace(choosable: Choosable, gain: Matrix, feature: int, low: int, high: int, room: Outline) -> None:
    """Find the corners of the outline above a feature's choices from low to high: cost against gain."""
    start, n = choosable.start[feature], 0
    cost, corner = choosable.cost, room.corner
    for choice in range(start + low, start + high + 1):
        if n > 0 and gain[choice] <= gain[corner[start + n - 1]]:
            continue
        while n > 0 and cost[corner[start + n - 1]] == cost[choice]:
            n -= 1
        while n > 1:
            last, one = corner[start + n - 1], corner[start + n - 2]
            turn = (gain[choice] - gain[one]) * (cost[last] - cost[one])
            if turn < (gain[last] - gain[one]) * (cost[choice] - cost[one]):
                break
            n -= 1
        corner[start + n] = choice
        n += 1
    room.n_corners[feature] = n


@part
def _steepest(choosable: Choosable, gain: Matrix, room: Outline) -> int:
    """Return the feature that gives most for what its next corner costs; -1 if none has one."""
    best, most = -1, 0.0
    for feature in range(len(room.at)):
        if room.at[feature] + 1 < room.n_corners[feature]:
            at = choosable.start[feature] + room.at[feature]
            one, other = room.corner[at], room.corner[at + 1]
            rate = (gain[other] - gain[one]) / (choosable.cost[other] - choosable.cost[one])
            if rate > most:
                best, most = feature, rate
    return best


@part
def _buy(choosable: Choosable, gain: Matrix, need: float, firm: float, lo: Rows, hi: Rows, room: Outline) -> float:
    """Return the least sum of costs at which a condition may hold, and leave the corners bought and where to cut."""
    total, sum_ = 0.0, 0.0
    room.cut[0] = -1
    for feature in range(len(lo)):
        _trace(choosable, gain, feature, lo[feature], hi[feature], room)
        room.at[feature] = 0
        first = room.corner[choosable.start[feature]]
        total, sum_ = total + choosable.cost[first], sum_ + gain[first]
    while sum_ < need:
        feature = _steepest(choosable, gain, room)
        if feature < 0:
            return NEVER
        at = choosable.start[feature] + room.at[feature]
        one, other = room.corner[at], room.corner[at + 1]
        cost, more = choosable.cost[other] - choosable.cost[one], gain[other] - gain[one]
        if sum_ + more >= need:
            part_of_cost = (need - sum_) / more * cost
            _leave_cut(choosable, gain, feature, one, other, choosable.cost[one] + part_of_cost, firm - sum_, room)
            return (total + part_of_cost) * (1.0 - SLACK)
        total, sum_ = total + cost, sum_ + more
        room.at[feature] += 1
    return total * (1.0 - SLACK)


@part
def _leave_cut(
    choosable: Choosable, gain: Matrix, feature: int, one: int, other: int, cost: float, lacks: float, room: Outline
) -> None:
    """Write down where the part that is bought ends, and the cheapest choice that gives all that is lacking."""
    start, last = choosable.start[feature], one
    while last + 1 < other and choosable.cost[last + 1] <= cost:
        last += 1
    room.cut[0], room.cut[1] = feature, last + 1 - start
    for choice in range(one, other + 1):
        if gain[choice] - gain[one] >= lacks:
            room.point[feature] = choice - start
            return
    room.point[feature] = other - start


@part
def _bought(choosable: Choosable, room: Outline) -> None:
    """Write down the point that was bought."""
    for feature in range(len(room.at)):
        if feature != room.cut[0]:
            start = choosable.start[feature]
            room.point[feature] = room.corner[start + room.at[feature]] - start


@part
def _give_within(choosable: Choosable, gain: Matrix, distance: float, lo: Rows, hi: Rows, room: Outline) -> float:
    """Return the most that a box gives where no feature costs more than a distance, and leave the point."""
    total = 0.0
    for feature in range(len(lo)):
        start = choosable.start[feature]
        best = start + lo[feature]
        for choice in range(best + 1, start + hi[feature] + 1):
            if choosable.cost[choice] > distance:
                break
            if gain[choice] > gain[best]:
                best = choice
        room.point[feature] = best - start
        total += gain[best]
    return total


@part
def _spend(choosable: Choosable, gain: Matrix, need: float, base: float, lo: Rows, hi: Rows, room: Outline) -> float:
    """Return the least distance at which a condition may hold if every feature may cost as much."""
    room.cut[0] = -1
    distances, low, high = room.distances, 0, len(room.distances) - 1
    while distances[low] < base:
        low += 1
    if _give_within(choosable, gain, distances[high], lo, hi, room) < need:
        return NEVER
    while low < high:
        middle = (low + high) // 2
        if _give_within(choosable, gain, distances[middle], lo, hi, room) >= need:
            high = middle
        else:
            low = middle + 1
    _give_within(choosable, gain, distances[low], lo, hi, room)
    return max(base, distances[low])


@part
def _bound(
    choosable: Choosable, gains: Matrix, demand: Demand, lo: Rows, hi: Rows, base: float, room: Outline, only: int
) -> tuple[float, int]:
    """Return the bound of a box and the condition that sets it; of one condition alone unless `only` is -1."""
    highest, tightest = base, 0
    for k in range(len(gains)):
        if only >= 0 and k != only:
            continue
        if choosable.is_sum:
            bound = _buy(choosable, gains[k], demand.need[k], demand.firm[k], lo, hi, room)
            _bought(choosable, room)
        else:
            bound = _spend(choosable, gains[k], demand.need[k], base, lo, hi, room)
        if not bound < demand.limit[0]:
            return NEVER, k
        if bound > highest:
            highest, tightest = bound, k
    return highest, tightest


@part
def _meets(choosable: Choosable, gains: Matrix, demand: Demand, point: Rows, least: Matrix) -> bool:
    """Say whether a point meets all conditions and keeps the pairs and the number of changes."""
    for k in range(len(gains)):
        total = 0.0
        for feature in range(len(point)):
            total += gains[k, choosable.start[feature] + point[feature]]
        if total < least[k]:
            return False
    return keeps(choosable, demand, point)


@part
def _offer(choosable: Choosable, gains: Matrix, demand: Demand, queue: Queue, room: Outline) -> None:
    """Queue the point that was bought, if it meets everything and is nearer than what is known."""
    cost = cheapest(choosable, room.point, room.point, room.point)
    if cost < demand.limit[0] and _meets(choosable, gains, demand, room.point, demand.firm):
        push_point(queue, demand, room.point, cost)


@part
def _enter(choosable: Choosable, gains: Matrix, demand: Demand, queue: Queue, room: Outline, box: int) -> None:
    """Bound a box, and queue it unless it is known to hold nothing."""
    lo, hi, bound, tightest, point = queue.lo[box], queue.hi[box], NEVER, 0, room.first
    base = cheapest(choosable, lo, hi, point)
    if base < demand.limit[0] and not is_hopeless(choosable, demand, lo, hi):
        bound, tightest = _bound(choosable, gains, demand, lo, hi, base, room, -1)
    if not bound < demand.limit[0]:
        give_back(queue, box)
        return
    if len(gains) > 1:
        _bound(choosable, gains, demand, lo, hi, base, room, tightest)  # again, for where to cut
    queue.feature[box], queue.place[box] = room.cut[0], room.cut[1]
    if room.cut[0] < 0:
        cut_in_half(choosable, demand, queue, box, point)
    if _meets(choosable, gains, demand, point, demand.need):
        push_candidate(queue, demand, box, base, _meets(choosable, gains, demand, point, demand.firm))
    else:
        push(queue, box, max(bound, queue.bound[box]), OPEN)
        _offer(choosable, gains, demand, queue, room)


@kernel
def expand(choosable: Choosable, gains: Matrix, demand: Demand, queue: Queue, room: Outline, n_steps: int) -> int:
    """Cut boxes, those with the least bound first, so many times at most; return why it stopped."""
    for _ in range(n_steps):
        now = state(queue, demand)
        if now != GOING or queue.n[1] < 4:
            return FULL if now == GOING else now
        for box in cut_first(queue):
            if box >= 0:
                _enter(choosable, gains, demand, queue, room, box)
    return state(queue, demand)
