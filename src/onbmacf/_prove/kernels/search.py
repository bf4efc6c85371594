# cython: infer_types=True, annotation_typing=False
"""The boxes that are still to be looked into, the least bound first: what the searches over all kinds of models share.

A box is a range of choices per feature. It is a candidate if its cheapest point seems to be an answer: nothing in it is
nearer, so when it comes first in the queue it is the nearest of all, and the model is asked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onbmacf._base.arrays import Matrix, Rows
from onbmacf._prove.kernels.constants import CANDIDATE, FIRM, NEVER, NEW, OPEN

try:
    import cython
except ImportError:  # the source runs as it is
    from onbmacf._base import plain_cython as cython

ULP, TINY = 2.0**-52, 1e-300
FIRST_ROOM = 1 << 8  # boxes
BOXES_PER_STEP = 3  # that a step adds at most: a box is cut in two, and each part may offer a point


class Search:
    """A heap of boxes by bound, candidates first, then the newest; a kind of model says how a box is bounded."""

    def __init__(self, choosable: Any, demand: Any) -> None:
        self.start, self.cost = integers(choosable.start), numbers(choosable.cost)
        self.own, self.is_sum = integers(choosable.own), choosable.is_sum
        self.need, self.firm, self.limit = numbers(demand.need), numbers(demand.firm), demand.limit
        self.most, self.pairs, self.amount = demand.most, integers(demand.pairs), numbers(demand.amount)
        self.n_features = len(choosable.own)
        self.first, self.point = np.zeros((2, self.n_features), np.intp)
        self.sums = np.zeros(len(demand.need))
        self.n_heap = self.n_free = self.n_made = 0
        self.lo, self.hi = np.zeros((2, 0, self.n_features), np.intp)
        self.kind, self.feature, self.place, self.age, self.heap, self.free = np.zeros((6, 0), np.intp)
        self.bound = np.zeros(0)
        self._add_room()
        everything = self._take_free()
        np.asarray(self.hi)[everything] = np.diff(choosable.start) - 1
        self.kind[everything], self.heap[0], self.n_heap = NEW, everything, 1

    def run(self, n_steps: int) -> None:
        """Cut boxes, those with the least bound first, so many times at most or until a candidate comes first."""
        while self.n_free < BOXES_PER_STEP * n_steps:
            self._add_room()
        with cython.nogil:
            self._expand(n_steps)

    def is_over(self) -> bool:
        """Say whether nothing is left below the limit."""
        return self.n_heap == 0 or not self.bound[self.heap[0]] < self.limit

    def has_candidate(self) -> bool:
        """Say whether the first box is a candidate."""
        return self.kind[self.heap[0]] > OPEN

    def is_firm(self) -> bool:
        """Say whether the first box is a candidate that no rounding error can make another."""
        return self.kind[self.heap[0]] == FIRM

    def least_bound(self) -> float:
        """Return what every point that is still to be found costs at least."""
        return self.bound[self.heap[0]] if self.n_heap > 0 else self.limit

    def candidate(self) -> Matrix | None:
        """Return the nearest point that seems to be an answer, as numbers; None where none waits."""
        best = -1
        for at in range(self.n_heap):
            box = self.heap[at]
            if self.kind[box] > OPEN and (best < 0 or self.bound[box] < self.bound[best]):
                best = box
        if best < 0:
            return None
        self._cheapest(best)
        return np.array([self.amount[self.start[at] + self.first[at]] for at in range(self.n_features)])

    def refuse(self) -> None:
        """Put the first box, a candidate that the model refused, back to be cut further."""
        box = self._pop()
        self._push(box, self.bound[box], OPEN)

    def _add_room(self) -> None:
        """Make room for twice as many boxes."""
        n_boxes = len(self.bound)
        more = max(n_boxes, FIRST_ROOM)
        self.lo, self.hi = _longer(self.lo, more), _longer(self.hi, more)
        self.bound, self.kind, self.age = _longer(self.bound, more), _longer(self.kind, more), _longer(self.age, more)
        self.feature, self.place = _longer(self.feature, more), _longer(self.place, more)
        self.heap = _longer(self.heap, more)
        self.free = np.concatenate([np.arange(n_boxes + more - 1, n_boxes - 1, -1), self.free])
        self.n_free += more

    def _expand(self, n_steps: int) -> None:
        for _ in range(n_steps):
            if self._is_stopped():
                break
            box = self._pop()
            if self.kind[box] == NEW:
                self._enter(box)
            elif self.feature[box] < 0:
                self._give_back(box)
            else:
                other = self._cut(box)
                self._enter(box)
                self._enter(other)

    def _is_stopped(self) -> bool:
        if self.n_heap == 0 or not self.bound[self.heap[0]] < self.limit:
            return True
        return self.kind[self.heap[0]] > OPEN

    def _enter(self, box: int) -> None:
        """Bound a box, and queue it unless it is known to hold nothing."""

    def _comes_first(self, one: int, other: int) -> bool:
        if self.bound[one] != self.bound[other]:
            return self.bound[one] < self.bound[other]
        if self.kind[one] != self.kind[other]:
            return self.kind[one] > self.kind[other]
        return self.age[one] > self.age[other]

    def _push(self, box: int, bound: float, kind: int) -> None:
        """Queue a box."""
        self.n_made += 1
        self.bound[box], self.kind[box], self.age[box] = bound, kind, self.n_made
        place = self.n_heap
        self.n_heap += 1
        while place > 0 and self._comes_first(box, self.heap[(place - 1) // 2]):
            self.heap[place] = self.heap[(place - 1) // 2]
            place = (place - 1) // 2
        self.heap[place] = box

    def _pop(self) -> int:
        """Take the first box out of the queue."""
        self.n_heap -= 1
        box, last, place = self.heap[0], self.heap[self.n_heap], 0
        while 2 * place + 1 < self.n_heap:
            child = 2 * place + 1
            if child + 1 < self.n_heap and self._comes_first(self.heap[child + 1], self.heap[child]):
                child += 1
            if not self._comes_first(self.heap[child], last):
                break
            self.heap[place] = self.heap[child]
            place = child
        self.heap[place] = last
        return box

    def _take_free(self) -> int:
        self.n_free -= 1
        return self.free[self.n_free]

    def _give_back(self, box: int) -> None:
        """Let a box be used again."""
        self.free[self.n_free] = box
        self.n_free += 1

    def _cut(self, box: int) -> int:
        """Cut a box where it says; it keeps the lower part, and the box returned has the upper one."""
        other, feature, place = self._take_free(), self.feature[box], self.place[box]
        for at in range(self.n_features):
            self.lo[other, at], self.hi[other, at] = self.lo[box, at], self.hi[box, at]
        self.hi[box, feature], self.lo[other, feature] = place - 1, place
        self.bound[other] = self.bound[box]
        return other

    def _push_candidate(self, box: int, cost: float, is_firm: bool) -> None:
        """Queue a box whose cheapest point seems to be an answer; if it is, only what is no dearer is looked for."""
        if is_firm:
            self.limit = min(self.limit, cost * (1.0 + ULP) + TINY)
        self._push(box, cost, FIRM if is_firm else CANDIDATE)

    def _push_point(self, cost: float) -> None:
        """Queue the point that was found to be an answer, as a box of its own."""
        box = self._take_free()
        for feature in range(self.n_features):
            self.lo[box, feature] = self.hi[box, feature] = self.point[feature]
        self.feature[box] = -1
        self._push_candidate(box, cost, True)

    def _cheapest(self, box: int) -> float:
        """Leave the cheapest point of a box in `first`, and return what it costs."""
        for feature in range(self.n_features):
            self.first[feature] = min(max(self.own[feature], self.lo[box, feature]), self.hi[box, feature])
        return self._cost_of(self.first)

    def _cost_of(self, point: Rows) -> float:
        total = 0.0
        for feature in range(self.n_features):
            one = self.cost[self.start[feature] + point[feature]]
            total = total + one if self.is_sum else max(total, one)
        return total

    def _reaches(self, least: Matrix) -> bool:
        """Say whether every sum is large enough."""
        k = 0
        while k < self.sums.shape[0] and self.sums[k] >= least[k]:
            k += 1
        return k == self.sums.shape[0]

    def _keeps(self, point: Rows) -> bool:
        """Say whether a point changes no more features than it may and keeps the pairs."""
        n_changed = 0
        for feature in range(self.n_features):
            if point[feature] != self.own[feature]:
                n_changed += 1
        return n_changed <= self.most and self._broken_pair(point) < 0

    def _broken_pair(self, point: Rows) -> int:
        """Return the first pair that a point breaks, -1 if it breaks none; a pair that is not changed is not broken."""
        for pair in range(self.pairs.shape[0]):
            low, high = self.pairs[pair, 0], self.pairs[pair, 1]
            is_changed = point[low] != self.own[low] or point[high] != self.own[high]
            least = self.amount[self.start[low] + point[low]]
            if is_changed and least > self.amount[self.start[high] + point[high]]:
                return pair
        return -1

    def _is_hopeless(self, box: int) -> bool:
        """Say whether every point of a box changes too many features or breaks a pair."""
        n_changed = 0
        for at in range(self.n_features):
            if self.own[at] < self.lo[box, at] or self.own[at] > self.hi[box, at]:
                n_changed += 1
        if n_changed > self.most:
            return True
        for pair in range(self.pairs.shape[0]):
            low, high = self.pairs[pair, 0], self.pairs[pair, 1]
            may_keep_low = self.lo[box, low] <= self.own[low] <= self.hi[box, low]
            may_keep_high = self.lo[box, high] <= self.own[high] <= self.hi[box, high]
            least = self._least(low, self.lo[box, low], self.hi[box, low])
            most = self._most(high, self.lo[box, high], self.hi[box, high])
            if not (may_keep_low and may_keep_high) and least > most:
                return True
        return False

    def _least(self, feature: int, low: int, high: int) -> float:
        least, start = NEVER, self.start[feature]
        for choice in range(start + low, start + high + 1):
            least = min(least, self.amount[choice])
        return least

    def _most(self, feature: int, low: int, high: int) -> float:
        most, start = -NEVER, self.start[feature]
        for choice in range(start + low, start + high + 1):
            most = max(most, self.amount[choice])
        return most

    def _cut_in_half(self, box: int) -> None:
        """Cut a box that nothing else says how to cut: at a pair that its cheapest point breaks, else at the widest."""
        widest, pair = 0, self._broken_pair(self.first)
        for at in range(1, self.n_features):
            if self.hi[box, at] - self.lo[box, at] > self.hi[box, widest] - self.lo[box, widest]:
                widest = at
        if pair >= 0:
            low, high = self.pairs[pair, 0], self.pairs[pair, 1]
            is_low = self.hi[box, low] - self.lo[box, low] >= self.hi[box, high] - self.lo[box, high]
            widest = low if is_low else high
        self.feature[box] = widest if self.hi[box, widest] > self.lo[box, widest] else -1
        self.place[box] = (self.lo[box, widest] + self.hi[box, widest] + 1) // 2


def integers(values: Any) -> Rows:
    """Return an array of integers as kernels take them."""
    return np.ascontiguousarray(values, np.intp)


def numbers(values: Any) -> Matrix:
    """Return an array of numbers as kernels take them."""
    return np.ascontiguousarray(values, np.float64)


def _longer(values: Any, more: int) -> Any:
    """Return an array with so many more lines."""
    values = np.asarray(values)
    return np.concatenate([values, np.zeros((more, *values.shape[1:]), values.dtype)])
