# cython: infer_types=True, annotation_typing=False
"""The nearest point that a sum of one term per feature gives a label, by branch and bound over boxes of choices.

    gains of choices  ->  AdditiveSearch.run  ->  candidates in the order of their distance, and how far it has got

Choices are sorted by cost, the row's own first. The bound of a box takes what each feature gives for its cost from
above, along the outline of its choices, and buys by gain per cost until the condition holds: the last purchase may be
a part of a choice. That choice is where the box is cut. For the Chebyshev metric every feature may cost the distance.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onbmacf._base.arrays import Matrix, Rows
from onbmacf._prove.kernels.constants import NEVER, OPEN, SLACK
from onbmacf._prove.kernels.search import Search, numbers

try:
    import cython
except ImportError:  # the source runs as it is
    from onbmacf._base import plain_cython as cython


class AdditiveSearch(Search):
    """A search over the choices of an additive model; `gains` has a line per condition."""

    def __init__(self, choosable: Any, demand: Any, gains: Matrix) -> None:
        super().__init__(choosable, demand)
        self.gains, self.distances = numbers(gains), np.unique(choosable.cost)
        self.corner = np.zeros(len(choosable.cost), np.intp)
        self.n_corners, self.bought = np.zeros((2, self.n_features), np.intp)
        self.cut, self.cut_place, self.tightest = -1, 0, 0

    def _enter(self, box: int) -> None:
        """Bound a box, and queue it unless it is known to hold nothing."""
        bound, base = NEVER, self._cheapest(box)
        if base < self.limit and not self._is_hopeless(box):
            bound = self._bound_of_all(box, base)
        if not bound < self.limit:
            self._give_back(box)
            return
        if self.gains.shape[0] > 1:
            self._bound_of(self.tightest, box, base)  # again, for where to cut
        self.feature[box], self.place[box] = self.cut, self.cut_place
        if self.cut < 0:
            self._cut_in_half(box)
        if self._meets(self.first, self.need):
            self._push_candidate(box, base, self._meets(self.first, self.firm))
        else:
            self._push(box, max(bound, self.bound[box]), OPEN)
            self._offer()

    def _bound_of_all(self, box: int, base: float) -> float:
        """Return the bound of a box, and leave the condition that sets it."""
        highest, self.tightest = base, 0
        for k in range(self.gains.shape[0]):
            bound = self._bound_of(k, box, base)
            if not bound < self.limit:
                return NEVER
            if bound > highest:
                highest, self.tightest = bound, k
        return highest

    def _bound_of(self, k: int, box: int, base: float) -> float:
        """Return the bound that a condition sets to a box, and leave the point that was bought."""
        self.cut = -1
        if not self.is_sum:
            return self._spend(k, box, base)
        bound = self._buy(k, box)
        for feature in range(self.n_features):
            if feature != self.cut:
                start = self.start[feature]
                self.point[feature] = self.corner[start + self.bought[feature]] - start
        return bound

    def _buy(self, k: int, box: int) -> float:
        """Return the least sum of costs at which a condition may hold; leave the corners bought and where to cut."""
        total, sum_, need = 0.0, 0.0, self.need[k]
        for feature in range(self.n_features):
            start = self.start[feature]
            self._trace(k, feature, start + self.lo[box, feature], start + self.hi[box, feature])
            self.bought[feature] = 0
            first = self.corner[start]
            total, sum_ = total + self.cost[first], sum_ + self.gains[k, first]
        while sum_ < need:
            best = self._steepest(k)
            if best < 0:
                return NEVER
            at = self.start[best] + self.bought[best]
            one, other = self.corner[at], self.corner[at + 1]
            cost, more = self.cost[other] - self.cost[one], self.gains[k, other] - self.gains[k, one]
            if sum_ + more >= need:
                part_of_cost = (need - sum_) / more * cost
                self._leave_cut(k, best, self.cost[one] + part_of_cost, self.firm[k] - sum_)
                return (total + part_of_cost) * (1.0 - SLACK)
            total, sum_ = total + cost, sum_ + more
            self.bought[best] += 1
        return total * (1.0 - SLACK)

    @cython.final
    def _trace(self, k: int, feature: int, first: int, last: int) -> None:
        """Find the corners of the outline above a feature's choices from first to last: cost against gain."""
        start, n = self.start[feature], 0
        for choice in range(first, last + 1):
            cost, gain = self.cost[choice], self.gains[k, choice]
            if n > 0 and gain <= self.gains[k, self.corner[start + n - 1]]:
                continue
            while n > 0 and self.cost[self.corner[start + n - 1]] == cost:
                n -= 1
            while n > 1:
                other, one = self.corner[start + n - 1], self.corner[start + n - 2]
                turn = (gain - self.gains[k, one]) * (self.cost[other] - self.cost[one])
                if turn < (self.gains[k, other] - self.gains[k, one]) * (cost - self.cost[one]):
                    break
                n -= 1
            self.corner[start + n] = choice
            n += 1
        self.n_corners[feature] = n

    @cython.final
    def _steepest(self, k: int) -> int:
        """Return the feature that gives most for what its next corner costs; -1 if none has one."""
        best, most = -1, 0.0
        for feature in range(self.n_features):
            if self.bought[feature] + 1 < self.n_corners[feature]:
                at = self.start[feature] + self.bought[feature]
                one, other = self.corner[at], self.corner[at + 1]
                rate = (self.gains[k, other] - self.gains[k, one]) / (self.cost[other] - self.cost[one])
                if rate > most:
                    best, most = feature, rate
        return best

    def _leave_cut(self, k: int, feature: int, cost: float, lacks: float) -> None:
        """Write down where the part that is bought ends, and the cheapest choice that gives all that is lacking."""
        start, at = self.start[feature], self.start[feature] + self.bought[feature]
        one, other = self.corner[at], self.corner[at + 1]
        last = one
        while last + 1 < other and self.cost[last + 1] <= cost:
            last += 1
        self.cut, self.cut_place, self.point[feature] = feature, last + 1 - start, other - start
        for choice in range(one, other + 1):
            if self.gains[k, choice] - self.gains[k, one] >= lacks:
                self.point[feature] = choice - start
                break

    def _spend(self, k: int, box: int, base: float) -> float:
        """Return the least distance at which a condition may hold if every feature may cost as much."""
        low, high, need = 0, self.distances.shape[0] - 1, self.need[k]
        while self.distances[low] < base:
            low += 1
        if self._give_within(k, box, self.distances[high]) < need:
            return NEVER
        while low < high:
            middle = (low + high) // 2
            if self._give_within(k, box, self.distances[middle]) >= need:
                high = middle
            else:
                low = middle + 1
        self._give_within(k, box, self.distances[low])
        return max(base, self.distances[low])

    @cython.final
    def _give_within(self, k: int, box: int, distance: float) -> float:
        """Return the most that a box gives where no feature costs more than a distance, and leave the point."""
        total = 0.0
        for feature in range(self.n_features):
            start = self.start[feature]
            best = start + self.lo[box, feature]
            for choice in range(best + 1, start + self.hi[box, feature] + 1):
                if self.cost[choice] > distance:
                    break
                if self.gains[k, choice] > self.gains[k, best]:
                    best = choice
            self.point[feature] = best - start
            total += self.gains[k, best]
        return total

    def _meets(self, point: Rows, least: Matrix) -> bool:
        """Say whether a point meets all conditions and keeps the pairs and the number of changes."""
        for k in range(self.gains.shape[0]):
            total = 0.0
            for feature in range(self.n_features):
                total += self.gains[k, self.start[feature] + point[feature]]
            if total < least[k]:
                return False
        return self._keeps(point)

    def _offer(self) -> None:
        """Queue the point that was bought, if it meets everything and is nearer than what is known."""
        cost = self._cost_of(self.point)
        if cost < self.limit and self._meets(self.point, self.firm):
            self._push_point(cost)
