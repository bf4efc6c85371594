# cython: infer_types=True, annotation_typing=False
"""The nearest point that a network of rectified units gives a label, by branch and bound over boxes of choices.

    Layers  ->  NetworkSearch.run  ->  candidates in the order of their distance, and how far it has got

The first layer's sums are one term per choice, so a line through them is one term per feature again. A unit that may be
on either side of 0 lies below the line through the ends of its range, and above a line through 0: a sum takes the upper
one of units that raise it and the lower one of the others. These are the linear bounds of Weng et al. (Fast-Lin, 2018)
and Zhang et al. (CROWN, 2018). Here they know that nothing dearer than the budget is looked for: what the features
offer is bought by gain per cost, and features that could each move a unit far cannot all do so together.

In a box every condition lies below such a line. The bound of the box is what it costs at least until the line is high
enough: a feature gives at most its best choice, and at most its best gain per cost. A box is cut where the lines of its
units give most away, or, where they give nothing away, at the choice that was bought in part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onbmacf._base.arrays import Matrix, Rows
from onbmacf._prove.kernels.constants import NEVER, OPEN, SLACK
from onbmacf._prove.kernels.search import Search, integers, numbers

try:
    import cython
except ImportError:  # the source runs as it is
    from onbmacf._base import plain_cython as cython

HALVINGS = 48  # of a distance, where every feature may cost as much


class NetworkSearch(Search):
    """A search over the choices of a network; Layers says what its arrays hold."""

    def __init__(self, choosable: Any, demand: Any, layers: Any) -> None:
        super().__init__(choosable, demand)
        self.given, self.fixed, self.line = numbers(layers.given), numbers(layers.fixed), numbers(layers.line)
        self.is_line, self.along = integers(layers.is_line), numbers(layers.along)
        self.sizes, self.unit_start = integers(layers.sizes), integers(layers.start)
        self.weights, self.weight_start, self.bias = numbers(layers.weights), integers(layers.at), numbers(layers.bias)
        self.n_layers, self.n_first = len(layers.sizes), layers.sizes[0]
        n_features, n_units = self.n_features, int(layers.sizes.sum())
        self.from_choice, self.to_choice, self.first_choice = np.zeros((3, n_features), np.intp)
        self.best, self.bought, self.open = np.zeros((3, n_features), np.intp)
        self.rate, self.gain = np.zeros((2, n_features))
        self.ways, self.n_open, self.worth = np.zeros((4, n_features)), 0, np.zeros(len(choosable.cost))
        self.low, self.high, self.weight, self.raw, self.gap = np.zeros((5, n_units))
        self.settled = np.zeros(self.n_first)

    def _enter(self, box: int) -> None:
        """Bound a box, and queue it unless it is known to hold nothing."""
        bound, base = NEVER, self._cheapest(box)
        if base < self.limit and not self._is_hopeless(box):
            self._measure(box)
            self._bound_units(self.limit - base)
            bound = self._bound_of_all(base)
        if not bound < self.limit:
            self._give_back(box)
            return
        self._choose_cut(box)
        self._add_up(self.first)
        if self._keeps(self.first) and self._reaches(self.need):
            self._push_candidate(box, base, self._reaches(self.firm))
        else:
            self._push(box, max(bound, self.bound[box]), OPEN)
            self._offer()

    def _measure(self, box: int) -> None:
        """Take up a box whose cheapest point is known: its open features, and how far and at what cost lines lead."""
        self.n_open = 0
        for unit in range(self.n_first):
            self.settled[unit] = self.fixed[unit]
        for feature in range(self.n_features):
            start, low, high = self.start[feature], self.lo[box, feature], self.hi[box, feature]
            first = start + self.first[feature]
            self.from_choice[feature], self.to_choice[feature] = start + low, start + high
            self.first_choice[feature] = self.best[feature] = first
            self.rate[feature] = self.gain[feature] = 0.0
            self.bought[feature] = 0
            if high > low:
                self.open[self.n_open] = feature
                self.n_open += 1
                self._measure_line(feature)
            else:
                for unit in range(self.n_first):
                    self.settled[unit] += self.given[first, unit]

    def _measure_line(self, feature: int) -> None:
        """Find how far a feature's line leads up and down from the cheapest choice, and how far per cost."""
        first = self.first_choice[feature]
        for way in range(4):
            self.ways[way, feature] = 0.0
        if self.is_line[feature]:
            for choice in range(self.from_choice[feature], self.to_choice[feature] + 1):
                far, more = self.along[choice] - self.along[first], self.cost[choice] - self.cost[first]
                if far != 0.0:
                    side = 0 if far > 0.0 else 1
                    self.ways[side, feature] = max(self.ways[side, feature], abs(far))
                    per_cost = abs(far) / more if more > 0.0 else NEVER
                    self.ways[2 + side, feature] = max(self.ways[2 + side, feature], per_cost)

    @cython.final
    def _look(self, unit: int, sign: float) -> float:
        """Find what all features offer to a sum, or to its negative; return what it is at the cheapest cost.

        The sum is a unit of the first layer or, with -1 for it, the line that was left in `weight`.
        """
        total = 0.0
        if unit >= 0:
            total = sign * self.settled[unit]
        else:
            for one in range(self.n_first):
                total += sign * self.weight[one] * self.settled[one]
        for at in range(self.n_open):
            if self.is_line[self.open[at]]:
                total += self._look_at_line(self.open[at], unit, sign)
            else:
                total += self._look_at_choices(self.open[at], unit, sign)
        return total

    @cython.final
    def _look_at_line(self, feature: int, unit: int, sign: float) -> float:
        """Find what a feature whose choices lie on a line offers; return what it adds at the cheapest point."""
        low, high = self.from_choice[feature], self.to_choice[feature]
        slope = sign * (self.line[feature, unit] if unit >= 0 else self._weighed(self.line, feature))
        self.rate[feature] = self.gain[feature] = 0.0
        self.best[feature] = self.first_choice[feature]
        if slope != 0.0:
            way = 0 if slope > 0.0 else 1
            self.gain[feature] = abs(slope) * self.ways[way, feature]
            self.rate[feature] = abs(slope) * self.ways[2 + way, feature]
            self.best[feature] = high if (self.along[high] > self.along[low]) == (way == 0) else low
        return slope * self.along[self.first_choice[feature]]

    @cython.final
    def _look_at_choices(self, feature: int, unit: int, sign: float) -> float:
        """Find what a feature's choices offer; return what it adds at the cost of the cheapest."""
        low, high, first = self.from_choice[feature], self.to_choice[feature], self.first_choice[feature]
        cost, free, gain, rate = self.cost[first], 0.0, 0.0, 0.0
        for choice in range(low, high + 1):
            self.worth[choice] = sign * (self.given[choice, unit] if unit >= 0 else self._weighed(self.given, choice))
        own = self.worth[first]
        self.best[feature] = first
        for choice in range(low, high + 1):
            more = self.worth[choice] - own
            if self.cost[choice] <= cost:
                free = max(free, more)
            if more > gain:
                self.best[feature], gain = choice, more
        for choice in range(low, high + 1):
            if self.cost[choice] > cost:
                rate = max(rate, (self.worth[choice] - own - free) / (self.cost[choice] - cost))
        self.rate[feature], self.gain[feature] = rate, gain - free
        return own + free

    @cython.final
    def _weighed(self, table: Matrix, line: int) -> float:
        """Return what a line of a table, one number per unit of the first layer, adds to the line left in `weight`."""
        total = 0.0
        for unit in range(self.n_first):
            total += self.weight[unit] * table[line, unit]
        return total

    @cython.final
    def _steepest(self) -> int:
        """Return the feature that gives most per cost of those that are not bought; -1 if none gives anything."""
        found, highest = -1, 0.0
        for at in range(self.n_open):
            feature = self.open[at]
            if self.bought[feature] == 0 and self.rate[feature] > highest:
                found, highest = feature, self.rate[feature]
        return found

    @cython.final
    def _within(self, budget: float) -> float:
        """Return the most that features give together: all that they have, or what a budget buys."""
        total = 0.0
        for at in range(self.n_open):
            total += self.gain[self.open[at]]
            self.bought[self.open[at]] = 0
        if not self.is_sum or total == 0.0:
            return total
        total = 0.0
        while budget > 0.0:
            feature = self._steepest()
            if feature < 0:
                break
            self.bought[feature] = 2
            gain = min(self.gain[feature], self.rate[feature] * budget)
            total, budget = total + gain, budget - gain / self.rate[feature]
        return total

    def _bound_units(self, budget: float) -> None:
        """Find the range of every unit's sum but the conditions', where the cost rises by the budget at most."""
        budget = budget * (1.0 + SLACK) + SLACK
        for unit in range(self.n_first):
            self.high[unit] = self._look(unit, 1.0)
            self.high[unit] += self._within(budget)
            self.low[unit] = self._look(unit, -1.0)
            self.low[unit] = -(self.low[unit] + self._within(budget))
        for layer in range(1, self.n_layers - 1):
            for unit in range(self.sizes[layer]):
                for way in range(2):
                    sign = 1.0 if way == 0 else -1.0
                    most = self._from_above(layer, unit, sign)
                    most += self._look(-1, 1.0)
                    most += self._within(budget)
                    most = min(most, self._range_end(layer, unit, sign))
                    if way == 0:
                        self.high[self.unit_start[layer] + unit] = most
                    else:
                        self.low[self.unit_start[layer] + unit] = -most

    def _range_end(self, layer: int, unit: int, sign: float) -> float:
        """Return the most of a sum, or of its negative, from the ranges of the units before it alone."""
        before, n_units = self.unit_start[layer - 1], self.sizes[layer]
        total = sign * self.bias[self.unit_start[layer] + unit]
        for one in range(self.sizes[layer - 1]):
            weight = sign * self.weights[self.weight_start[layer] + one * n_units + unit]
            total += weight * max(0.0, self.high[before + one] if weight > 0.0 else self.low[before + one])
        return total

    def _from_above(self, layer: int, unit: int, sign: float) -> float:
        """Bound a sum, or with sign -1 its negative: leave weights of the first layer's sums, return the constant."""
        constant, n_units = sign * self.bias[self.unit_start[layer] + unit], self.sizes[layer]
        for one in range(self.sizes[layer - 1]):
            self.raw[self.unit_start[layer - 1] + one] = (
                sign * self.weights[self.weight_start[layer] + one * n_units + unit]
            )
        for below in range(layer - 1, -1, -1):
            for one in range(self.sizes[below]):
                place = self.unit_start[below] + one
                low, high, raw = self.low[place], self.high[place], self.raw[place]
                if high <= 0.0:
                    slope = 0.0
                elif low >= 0.0:
                    slope = 1.0
                elif raw > 0.0:
                    slope = high / (high - low)
                    constant -= raw * slope * low
                else:
                    slope = 1.0 if high > -low else 0.0
                self.weight[place] = raw * slope
            if below > 0:
                constant += self._pass_down(below)
        return constant

    def _pass_down(self, layer: int) -> float:
        """Turn weights of a layer's sums into weights of the units before it; return what its biases add."""
        constant, start, n_units = 0.0, self.unit_start[layer], self.sizes[layer]
        for unit in range(n_units):
            constant += self.weight[start + unit] * self.bias[start + unit]
        for one in range(self.sizes[layer - 1]):
            total, at = 0.0, self.weight_start[layer] + one * n_units
            for unit in range(n_units):
                total += self.weight[start + unit] * self.weights[at + unit]
            self.raw[self.unit_start[layer - 1] + one] = total
        return constant

    def _bound_of_all(self, base: float) -> float:
        """Return the bound of a box, and leave what features offer to the condition that sets it."""
        highest, tightest, last = base, 0, self.need.shape[0] - 1
        for k in range(self.need.shape[0]):
            bound = self._bound_of(k, base)
            if not bound < self.limit:
                return NEVER
            if bound > highest:
                highest, tightest = bound, k
        if tightest != last:
            self._bound_of(tightest, base)  # again, for where to cut
        return highest

    def _bound_of(self, k: int, base: float) -> float:
        """Return the bound that a condition sets to a box: where a line above it is high enough."""
        sum_ = self._from_above(self.n_layers - 1, k, 1.0)
        sum_ += self._look(-1, 1.0)
        return self._buy(self.need[k], base, sum_) if self.is_sum else self._spend(self.need[k], base, sum_)

    def _buy(self, need: float, base: float, sum_: float) -> float:
        """Return the least cost at which the sum may be reached, the best gain per cost first."""
        total = base
        for at in range(self.n_open):
            self.bought[self.open[at]] = 0
        while sum_ < need:
            feature = self._steepest()
            if feature < 0:
                return NEVER
            gain = min(self.gain[feature], need - sum_)
            self.bought[feature] = 2 if gain == self.gain[feature] else 1
            total += gain / self.rate[feature]
            if self.bought[feature] == 1:
                break
            sum_ += gain
        return total * (1.0 - SLACK)

    def _spend(self, need: float, base: float, sum_: float) -> float:
        """Return a distance below which the sum is not reached, if every feature may cost as much."""
        low, high = base, self.limit
        for at in range(self.n_open):
            self.bought[self.open[at]] = 2
        if sum_ + self._given_within(high) < need:
            return NEVER
        for _ in range(HALVINGS):
            middle = (low + high) / 2.0
            if sum_ + self._given_within(middle) >= need:
                high = middle
            else:
                low = middle
        return low

    def _given_within(self, distance: float) -> float:
        """Return the most that features add where none costs more than a distance."""
        total = 0.0
        for at in range(self.n_open):
            feature = self.open[at]
            spent, rate = max(0.0, distance - self.cost[self.first_choice[feature]]), self.rate[feature]
            total += self.gain[feature] if rate == NEVER else min(self.gain[feature], rate * spent)
        return total

    def _choose_cut(self, box: int) -> None:
        """Write down where to cut a box: where its units' lines give most away, else at what was bought in part."""
        cut, most = -1, 0.0
        self._leave_gaps()
        for at in range(self.n_open):
            gap = self._gap_of(self.open[at])
            if gap > most:
                cut, most = self.open[at], gap
        if cut < 0:
            for at in range(self.n_open):
                if self.bought[self.open[at]] == 1:
                    cut = self.open[at]
        if cut < 0:
            self._cut_in_half(box)
            return
        low, high = self.lo[box, cut], self.hi[box, cut]
        is_own_alone = low == self.own[cut] and not self.is_line[cut]
        self.feature[box], self.place[box] = cut, low + 1 if is_own_alone else (low + high + 1) // 2

    def _leave_gaps(self) -> None:
        """Write down how much every unit's own line gives away in the line of a condition, down to the first layer."""
        last = self.n_layers - 1
        for layer in range(last - 1, -1, -1):
            for one in range(self.sizes[layer]):
                place, passed = self.unit_start[layer] + one, 0.0
                low, high = self.low[place], self.high[place]
                share = high / (high - low) if low < 0.0 < high else 0.0
                if layer < last - 1:
                    at = self.weight_start[layer + 1] + one * self.sizes[layer + 1]
                    for unit in range(self.sizes[layer + 1]):
                        passed += self.gap[self.unit_start[layer + 1] + unit] * abs(self.weights[at + unit])
                lost, active = abs(self.raw[place]) * share * (1.0 - share), 1.0 if low >= 0.0 else share
                self.gap[place] = lost + active * passed

    def _gap_of(self, feature: int) -> float:
        """Return how much the lines give away along a feature of the box."""
        total = 0.0
        for unit in range(self.n_first):
            if self.is_line[feature]:
                far = abs(self.line[feature, unit]) * (self.ways[0, feature] + self.ways[1, feature])
            else:
                low = high = self.given[self.first_choice[feature], unit]
                for choice in range(self.from_choice[feature], self.to_choice[feature] + 1):
                    low, high = min(low, self.given[choice, unit]), max(high, self.given[choice, unit])
                far = high - low
            total += self.gap[unit] * far
        return total

    def _add_up(self, point: Rows) -> None:
        """Leave what the network gives a point: the sum of each condition."""
        for unit in range(self.n_first):
            self.raw[unit] = self.fixed[unit]
        for feature in range(self.n_features):
            choice = self.start[feature] + point[feature]
            for unit in range(self.n_first):
                self.raw[unit] += self.given[choice, unit]
        for layer in range(1, self.n_layers):
            before, start, n_units = self.unit_start[layer - 1], self.unit_start[layer], self.sizes[layer]
            for unit in range(n_units):
                total, at = self.bias[start + unit], self.weight_start[layer] + unit
                for one in range(self.sizes[layer - 1]):
                    total += max(0.0, self.raw[before + one]) * self.weights[at + one * n_units]
                self.raw[start + unit] = total
        for k in range(self.sums.shape[0]):
            self.sums[k] = self.raw[self.unit_start[self.n_layers - 1] + k]

    def _holds(self) -> bool:
        """Say whether the network, beyond all rounding error, gives the point that is bought its label."""
        self._add_up(self.point)
        return self._reaches(self.firm)

    def _take_back(self, feature: int) -> None:
        """Take back as much of what was bought of a feature as a few halvings find not to be needed."""
        low, high = self.first[feature], self.point[feature]
        while high - low > 1 or low - high > 1:
            self.point[feature] = (low + high) // 2
            if self._holds():
                high = self.point[feature]
            else:
                low = self.point[feature]
        self.point[feature] = high

    def _offer(self) -> None:
        """Queue the point that was bought, if it meets everything and is nearer than what is known."""
        for feature in range(self.n_features):
            bought = self.best[feature] - self.start[feature]
            self.point[feature] = bought if self.bought[feature] else self.first[feature]
        if not self._holds():
            return
        for feature in range(self.n_features):
            if self.bought[feature]:
                self._take_back(feature)
        cost = self._cost_of(self.point)
        if cost < self.limit and self._keeps(self.point):
            self._push_point(cost)
