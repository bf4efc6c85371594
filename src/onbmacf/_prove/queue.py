"""The boxes that are still to be looked into, the least bound first; kernels that both kinds of search share.

A box is a range of choices per feature. It is a candidate if its cheapest point seems to be an answer: nothing in it is
nearer, so when it comes first in the queue it is the nearest of all, and the model is asked.
"""

from typing import NamedTuple

import numpy as np

from onbmacf._base.arrays import Matrix, Rows
from onbmacf._base.jit import kernel, part

NEW, OPEN, CANDIDATE, FIRM = -1, 0, 1, 2  # not bounded yet; to be cut; a candidate; one beyond all rounding error
DONE, ASK, GOING, FULL = 0, 1, 2, 3  # nothing is left; the first box is a candidate; go on; no room for more boxes
ULP, TINY = 2.0**-52, 1e-300
FIRST_ROOM = 1 << 8  # boxes


class Demand(NamedTuple):
    """What a point must meet."""

    need: Matrix  # the least sum of each condition, rounding error forgiven
    firm: Matrix  # the sum of each condition at which no rounding error matters; infinite where the model must be asked
    limit: Matrix  # one number: only what is nearer is looked for
    most: int  # features that may change
    pairs: Rows  # two columns of features: the first must be at most the second
    amount: Matrix  # per choice of each feature: the value by which pairs are compared


class Choosable(NamedTuple):
    """The choices of all features, those of one after the other."""

    start: Rows  # of each feature, and one past the last
    cost: Matrix  # what a choice costs; it rises away from the row's own
    own: Rows  # per feature: the choice that is the row's own value
    is_sum: bool  # whether costs add up; otherwise the largest counts


class Queue(NamedTuple):
    """A heap of boxes by bound, candidates first, then the newest."""

    lo: Rows  # boxes x features
    hi: Rows
    bound: Matrix
    kind: Rows
    feature: Rows  # where to cut: a feature, -1 for a single point
    place: Rows  # and the first choice of its upper part
    age: Rows
    heap: Rows  # boxes; the first `n[0]` entries are a heap
    free: Rows  # boxes that are not in use; the first `n[1]`
    n: Rows  # boxes in the heap, free boxes, boxes made


@part
def _comes_first(queue: Queue, one: int, other: int) -> bool:
    if queue.bound[one] != queue.bound[other]:
        return queue.bound[one] < queue.bound[other]
    if queue.kind[one] != queue.kind[other]:
        return queue.kind[one] > queue.kind[other]
    return queue.age[one] > queue.age[other]


@part
def push(queue: Queue, box: int, bound: float, kind: int) -> None:
    """Queue a box."""
    queue.n[2] += 1
    queue.bound[box], queue.kind[box], queue.age[box] = bound, kind, queue.n[2]
    place, heap = queue.n[0], queue.heap
    queue.n[0] += 1
    while place > 0 and _comes_first(queue, box, heap[(place - 1) // 2]):
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = box


@part
def pop(queue: Queue) -> int:
    """Take the first box out of the queue."""
    heap = queue.heap
    first, queue.n[0] = heap[0], queue.n[0] - 1
    last, n, place = heap[queue.n[0]], queue.n[0], 0
    while 2 * place + 1 < n:
        child = 2 * place + 1
        if child + 1 < n and _comes_first(queue, heap[child + 1], heap[child]):
            child += 1
        if not _comes_first(queue, heap[child], last):
            break
        heap[place] = heap[child]
        place = child
    heap[place] = last
    return first


@part
def give_back(queue: Queue, box: int) -> None:
    """Let a box be used again."""
    queue.free[queue.n[1]] = box
    queue.n[1] += 1


@part
def state(queue: Queue, demand: Demand) -> int:
    """Say whether to go on."""
    if queue.n[0] == 0 or not queue.bound[queue.heap[0]] < demand.limit[0]:
        return DONE
    if queue.kind[queue.heap[0]] > OPEN:
        return ASK
    return FULL if queue.n[1] < 2 else GOING


@part
def cut_first(queue: Queue) -> tuple[int, int]:
    """Take the first box out and return its two parts, -1 for what there is not: a new box is one part."""
    box = pop(queue)
    feature, place = queue.feature[box], queue.place[box]
    if queue.kind[box] == NEW:
        return box, -1
    if feature < 0:
        give_back(queue, box)
        return -1, -1
    queue.n[1] -= 1
    other = queue.free[queue.n[1]]
    for at in range(queue.lo.shape[1]):
        queue.lo[other, at], queue.hi[other, at] = queue.lo[box, at], queue.hi[box, at]
    queue.hi[box, feature], queue.lo[other, feature] = place - 1, place
    queue.bound[other] = queue.bound[box]
    return box, other


@kernel
def refuse(queue: Queue) -> None:
    """Put the first box, a candidate that the model refused, back to be cut further."""
    box = pop(queue)
    push(queue, box, queue.bound[box], OPEN)


@part
def push_candidate(queue: Queue, demand: Demand, box: int, cost: float, is_firm: bool) -> None:
    """Queue a box whose cheapest point seems to be an answer; where it is one, only what is no dearer is looked for."""
    if is_firm:
        demand.limit[0] = min(demand.limit[0], cost * (1.0 + ULP) + TINY)
    push(queue, box, cost, FIRM if is_firm else CANDIDATE)


@part
def push_point(queue: Queue, demand: Demand, point: Rows, cost: float) -> None:
    """Queue a point that is an answer, as a box of its own."""
    queue.n[1] -= 1
    box = queue.free[queue.n[1]]
    for feature in range(len(point)):
        queue.lo[box, feature] = queue.hi[box, feature] = point[feature]
    queue.feature[box] = -1
    push_candidate(queue, demand, box, cost, True)


@part
def reach(sums: Matrix, least: Matrix) -> bool:
    """Say whether every sum is large enough."""
    is_enough = True
    for k in range(len(sums)):
        is_enough &= sums[k] >= least[k]
    return is_enough


@part
def cheapest(choosable: Choosable, lo: Rows, hi: Rows, point: Rows) -> float:
    """Write the cheapest point of a box, and return what it costs."""
    total = 0.0
    for feature in range(len(lo)):
        point[feature] = min(max(choosable.own[feature], lo[feature]), hi[feature])
        one = choosable.cost[choosable.start[feature] + point[feature]]
        total = total + one if choosable.is_sum else max(total, one)
    return total


@part
def broken_pair(choosable: Choosable, demand: Demand, point: Rows) -> int:
    """Return the first pair that a point breaks, -1 if it breaks none; a pair that is not changed is not broken."""
    for pair in range(len(demand.pairs)):
        low, high = demand.pairs[pair, 0], demand.pairs[pair, 1]
        is_changed = point[low] != choosable.own[low] or point[high] != choosable.own[high]
        least = demand.amount[choosable.start[low] + point[low]]
        if is_changed and least > demand.amount[choosable.start[high] + point[high]]:
            return pair
    return -1


@part
def keeps(choosable: Choosable, demand: Demand, point: Rows) -> bool:
    """Say whether a point changes no more features than it may and keeps the pairs."""
    n_changed = 0
    for feature in range(len(point)):
        n_changed += point[feature] != choosable.own[feature]
    return n_changed <= demand.most and broken_pair(choosable, demand, point) < 0


@part
def is_hopeless(choosable: Choosable, demand: Demand, lo: Rows, hi: Rows) -> bool:
    """Say whether every point of a box changes too many features or breaks a pair."""
    n_changed = 0
    for feature in range(len(lo)):
        n_changed += choosable.own[feature] < lo[feature] or choosable.own[feature] > hi[feature]
    if n_changed > demand.most:
        return True
    for pair in range(len(demand.pairs)):
        low, high = demand.pairs[pair, 0], demand.pairs[pair, 1]
        keeps = lo[low] <= choosable.own[low] <= hi[low] and lo[high] <= choosable.own[high] <= hi[high]
        least = _least(choosable, demand, low, lo[low], hi[low])
        if not keeps and least > _most(choosable, demand, high, lo[high], hi[high]):
            return True
    return False


@part
def _least(choosable: Choosable, demand: Demand, feature: int, low: int, high: int) -> float:
    least, start = np.inf, choosable.start[feature]
    for choice in range(start + low, start + high + 1):
        least = min(least, demand.amount[choice])
    return least


@part
def _most(choosable: Choosable, demand: Demand, feature: int, low: int, high: int) -> float:
    most, start = -np.inf, choosable.start[feature]
    for choice in range(start + low, start + high + 1):
        most = max(most, demand.amount[choice])
    return most


@part
def cut_in_half(choosable: Choosable, demand: Demand, queue: Queue, box: int, point: Rows) -> None:
    """Cut a box that nothing else says how to cut: at a feature of a broken pair, else at the widest."""
    lo, hi = queue.lo[box], queue.hi[box]
    widest, pair = 0, broken_pair(choosable, demand, point)
    for feature in range(1, len(lo)):
        if hi[feature] - lo[feature] > hi[widest] - lo[widest]:
            widest = feature
    if pair >= 0:
        low, high = demand.pairs[pair, 0], demand.pairs[pair, 1]
        widest = low if hi[low] - lo[low] >= hi[high] - lo[high] else high
    queue.feature[box] = widest if hi[widest] > lo[widest] else -1
    queue.place[box] = (lo[widest] + hi[widest] + 1) // 2


def first_queue(choosable: Choosable) -> Queue:
    """Return a queue that holds the box of everything."""
    queue = empty_queue(len(choosable.own))
    queue.n[1] -= 1
    box = queue.free[queue.n[1]]
    queue.hi[box] = np.diff(choosable.start) - 1
    queue.kind[box], queue.heap[0], queue.n[0] = NEW, box, 1
    return queue


def empty_queue(n_features: int, n_boxes: int = FIRST_ROOM) -> Queue:
    """Return a queue with room for some boxes."""
    lo, hi = np.zeros((2, n_boxes, n_features), np.intp)
    kind, feature, place, age, heap = np.zeros((5, n_boxes), np.intp)
    free = np.arange(n_boxes)[::-1].copy()
    return Queue(lo, hi, np.zeros(n_boxes), kind, feature, place, age, heap, free, np.array([0, n_boxes, 0]))


def larger(queue: Queue) -> Queue:
    """Return a queue with the same boxes and twice the room."""
    n_boxes, n_features = queue.lo.shape
    other, n_free = empty_queue(n_features, 2 * n_boxes), queue.n[1]
    for old, new in zip(queue[:-2], other[:-2], strict=True):
        new[:n_boxes] = old
    other.free[: n_boxes + n_free] = np.concatenate([np.arange(n_boxes, 2 * n_boxes), queue.free[:n_free]])
    other.n[:] = queue.n[0], n_boxes + n_free, queue.n[2]
    return other
