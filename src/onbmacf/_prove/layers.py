"""A network of rectified units over a box of choices: what each of its sums is at most, within a budget.

    box (lo, hi per feature), a budget  ->  bound_units  ->  the least and the most that every unit's sum can be
    a condition, such a box  ->  line_above  ->  per feature: what it offers to a line that lies above the condition

The first layer's sums are one term per choice, so a line through them is one term per feature again. A unit that may be
on either side of 0 lies below the line through the ends of its range, and above a line through 0: a sum takes the upper
one of units that raise it and the lower one of the others. These are the linear bounds of Weng et al. (Fast-Lin, 2018)
and Zhang et al. (CROWN, 2018). Here they know that nothing dearer than the budget is looked for: what the features
offer is bought by gain per cost, and features that could each move a unit far cannot all do so together.
"""

from typing import NamedTuple

import numpy as np

from onbmacf._base.arrays import Matrix, Rows
from onbmacf._base.jit import part
from onbmacf._prove.boxes import SLACK
from onbmacf._prove.queue import Choosable


class Layers(NamedTuple):
    """A network as one row sees it: what each choice adds to the first layer's sums, and the layers after it."""

    given: Matrix  # choices x units of the first layer
    fixed: Matrix  # what the units of the first layer get whatever is chosen
    is_line: Rows  # per feature: 1 where its choices lie on one line, in order
    line: Matrix  # features x units of the first layer: the direction of such a line
    along: Matrix  # per choice of such a feature: how far along it lies
    sizes: Rows  # units per layer, the first one first; the last are the conditions
    start: Rows  # where each layer's units begin among all units
    weights: Matrix  # of the layers after the first, one after the other: units of the layer before x units
    at: Rows  # where the weights of each layer begin; of the first, nothing
    bias: Matrix  # of all units; of the first layer, nothing


class Box(NamedTuple):
    """Room for one box of choices: how far its features lead from its cheapest point, and what they offer to a sum."""

    lo: Rows  # choices, counted over all features: the first of each
    hi: Rows
    first: Rows  # the cheapest
    ways: Matrix  # 4 x features of a line: how far up and down it, and how far per cost, from the cheapest
    rate: Matrix  # per feature: the most gain per cost
    most: Matrix  # per feature: the most gain
    best: Rows  # per feature: the choice that gives the most
    is_bought: Rows  # per feature: 0 not at all, 1 in part, 2 whole
    open: Rows  # the features that have more than one choice, the first `n_open` entries
    n_open: Rows


class Span(NamedTuple):
    """Room for the units of one box."""

    low: Matrix  # per unit: the least that its sum can be
    high: Matrix
    weight: Matrix  # per unit: what one sum weighs it with, after the unit's line is taken
    raw: Matrix  # per unit: the same before that
    gap: Matrix  # per unit: how much its line gives away, as the condition weighs it
    fixed: Matrix  # per unit of the first layer: what it gets from features with one choice, and in any case


def box_of(n_features: int) -> Box:
    """Return room for the boxes of a row."""
    lo, hi, first, best, is_bought, open_ = np.zeros((6, n_features), np.intp)
    rate, most = np.zeros((2, n_features))
    return Box(lo, hi, first, np.zeros((4, n_features)), rate, most, best, is_bought, open_, np.zeros(1, np.intp))


def span_of(layers: Layers) -> Span:
    """Return room for the units of a network."""
    low, high, weight, raw, gap = np.zeros((5, int(layers.sizes.sum())))
    return Span(low, high, weight, raw, gap, np.zeros(int(layers.sizes[0])))


@part
def measure(layers: Layers, choosable: Choosable, lo: Rows, hi: Rows, point: Rows, box: Box, span: Span) -> None:
    """Take up a box whose cheapest point is given: its open features, and how far and at what cost its lines lead."""
    box.n_open[0] = 0
    for unit in range(layers.sizes[0]):
        span.fixed[unit] = layers.fixed[unit]
    for feature in range(len(lo)):
        start = choosable.start[feature]
        first = start + point[feature]
        box.lo[feature], box.hi[feature], box.first[feature] = start + lo[feature], start + hi[feature], first
        box.rate[feature] = box.most[feature] = 0.0
        box.best[feature], box.is_bought[feature] = first, 0
        if hi[feature] > lo[feature]:
            box.open[box.n_open[0]] = feature
            box.n_open[0] += 1
            _measure_line(layers, choosable, feature, box)
        else:
            for unit in range(layers.sizes[0]):
                span.fixed[unit] += layers.given[first, unit]


@part
def _measure_line(layers: Layers, choosable: Choosable, feature: int, box: Box) -> None:
    """Find how far a feature's line leads up and down from the cheapest choice, and how far per cost."""
    first = box.first[feature]
    for way in range(4):
        box.ways[way, feature] = 0.0
    if layers.is_line[feature]:
        for choice in range(box.lo[feature], box.hi[feature] + 1):
            far, more = layers.along[choice] - layers.along[first], choosable.cost[choice] - choosable.cost[first]
            way = 0 if far > 0.0 else 1
            if far != 0.0:
                box.ways[way, feature] = max(box.ways[way, feature], abs(far))
                per_cost = abs(far) / more if more > 0.0 else np.inf
                box.ways[2 + way, feature] = max(box.ways[2 + way, feature], per_cost)


@part
def _worth(layers: Layers, table: Matrix, line: int, unit: int, span: Span) -> float:
    """Return what a line of a table adds to a unit of the first layer or, one past the last, to the line that was left.

    The table has a choice per line (`given`), or the step along a feature's line (`line`).
    """
    if unit < layers.sizes[0]:
        return table[line, unit]
    total = 0.0
    for one in range(layers.sizes[0]):
        total += span.weight[one] * table[line, one]
    return total


@part
def _look_at(layers: Layers, choosable: Choosable, feature: int, unit: int, sign: float, box: Box, span: Span) -> float:
    """Find what a feature offers to a sum, or to its negative; return what it adds at the cost of the cheapest."""
    first, low, high = box.first[feature], box.lo[feature], box.hi[feature]
    box.rate[feature] = box.most[feature] = 0.0
    box.best[feature] = first
    if layers.is_line[feature]:
        slope = sign * _worth(layers, layers.line, feature, unit, span)
        if slope != 0.0:
            way = 0 if slope > 0.0 else 1
            box.most[feature] = abs(slope) * box.ways[way, feature]
            box.rate[feature] = abs(slope) * box.ways[2 + way, feature]
            box.best[feature] = high if (layers.along[high] > layers.along[low]) == (way == 0) else low
        return slope * layers.along[first]
    own, cost = sign * _worth(layers, layers.given, first, unit, span), choosable.cost[first]
    free, gain = 0.0, 0.0
    for choice in range(low, high + 1):
        more = sign * _worth(layers, layers.given, choice, unit, span) - own
        if choosable.cost[choice] <= cost:
            free = max(free, more)
        if more > gain:
            box.best[feature], gain = choice, more
    for choice in range(low, high + 1):
        if choosable.cost[choice] > cost:
            more = sign * _worth(layers, layers.given, choice, unit, span) - own - free
            box.rate[feature] = max(box.rate[feature], more / (choosable.cost[choice] - cost))
    box.most[feature] = gain - free
    return own + free


@part
def _look(layers: Layers, choosable: Choosable, unit: int, sign: float, box: Box, span: Span) -> float:
    """Find what all features offer to a sum; return what it is at the cost of the cheapest point."""
    total = 0.0
    if unit < layers.sizes[0]:
        total = sign * span.fixed[unit]
    else:
        for one in range(layers.sizes[0]):
            total += sign * span.weight[one] * span.fixed[one]
    for place in range(box.n_open[0]):
        total += _look_at(layers, choosable, box.open[place], unit, sign, box, span)
    return total


@part
def steepest(box: Box) -> int:
    """Return the feature that gives most per cost of those that are not bought; -1 if none gives anything."""
    found, highest = -1, 0.0
    for place in range(box.n_open[0]):
        feature = box.open[place]
        if box.is_bought[feature] == 0 and box.rate[feature] > highest:
            found, highest = feature, box.rate[feature]
    return found


@part
def _within(budget: float, is_sum: bool, box: Box) -> float:
    """Return the most that features give together: all that they have, or what a budget buys."""
    total = 0.0
    for place in range(box.n_open[0]):
        total += box.most[box.open[place]]
        box.is_bought[box.open[place]] = 0
    if not is_sum or total == 0.0:
        return total
    total = 0.0
    while budget > 0.0:
        feature = steepest(box)
        if feature < 0:
            break
        box.is_bought[feature] = 2
        gain = min(box.most[feature], box.rate[feature] * budget)
        total, budget = total + gain, budget - gain / box.rate[feature]
    return total


@part
def bound_units(layers: Layers, choosable: Choosable, budget: float, box: Box, span: Span) -> None:
    """Find the range of every unit's sum but the conditions', where no more than the budget is added to the cost."""
    budget = budget * (1.0 + SLACK) + SLACK
    for unit in range(layers.sizes[0]):
        for way in range(2):
            sign = 1.0 if way == 0 else -1.0
            most = _look(layers, choosable, unit, sign, box, span)
            most += _within(budget, choosable.is_sum, box)
            if way == 0:
                span.high[unit] = most
            else:
                span.low[unit] = -most
    for layer in range(1, len(layers.sizes) - 1):
        for unit in range(layers.sizes[layer]):
            for way in range(2):
                sign = 1.0 if way == 0 else -1.0
                most = _from_above(layers, layer, unit, sign, span)
                most += _look(layers, choosable, layers.sizes[0], 1.0, box, span)
                most += _within(budget, choosable.is_sum, box)
                most = min(most, _range_end(layers, layer, unit, sign, span))
                if way == 0:
                    span.high[layers.start[layer] + unit] = most
                else:
                    span.low[layers.start[layer] + unit] = -most


@part
def _range_end(layers: Layers, layer: int, unit: int, sign: float, span: Span) -> float:
    """Return the most of a sum, or of its negative, from the ranges of the units before it alone."""
    before, n_units = layers.start[layer - 1], layers.sizes[layer]
    total = sign * layers.bias[layers.start[layer] + unit]
    for one in range(layers.sizes[layer - 1]):
        weight = sign * layers.weights[layers.at[layer] + one * n_units + unit]
        total += weight * max(0.0, span.high[before + one] if weight > 0.0 else span.low[before + one])
    return total


@part
def line_above(layers: Layers, choosable: Choosable, condition: int, box: Box, span: Span) -> float:
    """Find what features offer to a line above a condition; return what it is at the cost of the cheapest point."""
    constant = _from_above(layers, len(layers.sizes) - 1, condition, 1.0, span)
    return constant + _look(layers, choosable, layers.sizes[0], 1.0, box, span)


@part
def _from_above(layers: Layers, layer: int, unit: int, sign: float, span: Span) -> float:
    """Bound a sum, or with sign -1 its negative: leave the weights of the first layer's sums, return the constant."""
    constant, n_units = sign * layers.bias[layers.start[layer] + unit], layers.sizes[layer]
    for one in range(layers.sizes[layer - 1]):
        span.raw[layers.start[layer - 1] + one] = sign * layers.weights[layers.at[layer] + one * n_units + unit]
    for below in range(layer - 1, -1, -1):
        for one in range(layers.sizes[below]):
            place = layers.start[below] + one
            low, high, raw = span.low[place], span.high[place], span.raw[place]
            if high <= 0.0:
                slope = 0.0
            elif low >= 0.0:
                slope = 1.0
            elif raw > 0.0:
                slope = high / (high - low)
                constant -= raw * slope * low
            else:
                slope = 1.0 if high > -low else 0.0
            span.weight[place] = raw * slope
        if below > 0:
            constant += _pass_down(layers, below, span)
    return constant


@part
def _pass_down(layers: Layers, layer: int, span: Span) -> float:
    """Turn weights of a layer's sums into weights of the units before it; return what its biases add."""
    constant, n_units = 0.0, layers.sizes[layer]
    for unit in range(n_units):
        constant += span.weight[layers.start[layer] + unit] * layers.bias[layers.start[layer] + unit]
    for one in range(layers.sizes[layer - 1]):
        total, at = 0.0, layers.at[layer] + one * n_units
        for unit in range(n_units):
            total += span.weight[layers.start[layer] + unit] * layers.weights[at + unit]
        span.raw[layers.start[layer - 1] + one] = total
    return constant


@part
def leave_gaps(layers: Layers, span: Span) -> None:
    """Write down how much every unit's own line gives away in the line of a condition, down to the first layer."""
    last = len(layers.sizes) - 1
    for layer in range(last - 1, -1, -1):
        for one in range(layers.sizes[layer]):
            place, passed = layers.start[layer] + one, 0.0
            low, high = span.low[place], span.high[place]
            share = high / (high - low) if low < 0.0 < high else 0.0
            if layer < last - 1:
                at = layers.at[layer + 1] + one * layers.sizes[layer + 1]
                for unit in range(layers.sizes[layer + 1]):
                    passed += span.gap[layers.start[layer + 1] + unit] * abs(layers.weights[at + unit])
            own, active = abs(span.raw[place]) * share * (1.0 - share), 1.0 if low >= 0.0 else share
            span.gap[place] = own + active * passed


@part
def gap_of(layers: Layers, feature: int, box: Box, span: Span) -> float:
    """Return how much the lines give away along a feature of the box."""
    total = 0.0
    for unit in range(layers.sizes[0]):
        if layers.is_line[feature]:
            far = abs(layers.line[feature, unit]) * (box.ways[0, feature] + box.ways[1, feature])
        else:
            low = high = layers.given[box.first[feature], unit]
            for choice in range(box.lo[feature], box.hi[feature] + 1):
                low, high = min(low, layers.given[choice, unit]), max(high, layers.given[choice, unit])
            far = high - low
        total += span.gap[unit] * far
    return total


@part
def sums_at(layers: Layers, choosable: Choosable, point: Rows, span: Span, sums: Matrix) -> None:
    """Write down what the network gives a point: the sum of each condition."""
    for unit in range(layers.sizes[0]):
        span.raw[unit] = layers.fixed[unit]
    for feature in range(len(point)):
        for unit in range(layers.sizes[0]):
            span.raw[unit] += layers.given[choosable.start[feature] + point[feature], unit]
    for layer in range(1, len(layers.sizes)):
        before, n_units = layers.start[layer - 1], layers.sizes[layer]
        for unit in range(n_units):
            total = layers.bias[layers.start[layer] + unit]
            for one in range(layers.sizes[layer - 1]):
                total += max(0.0, span.raw[before + one]) * layers.weights[layers.at[layer] + one * n_units + unit]
            span.raw[layers.start[layer] + unit] = total
    for k in range(len(sums)):
        sums[k] = span.raw[layers.start[len(layers.sizes) - 1] + k]
