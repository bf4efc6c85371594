"""The nearest counterfactual of a logistic regression or a small ReLU network, exactly.

    model, factual  ->  layers_of  ->  a program with the moves of each feature  ->  point and bound

The score of label 1 is a linear function of the moves, or of units that each need one yes-or-no variable: active or
not. How large a unit's input can get is bounded first, within the distance of a counterfactual already known: the
smaller these bounds, the faster the proof.
"""

from typing import NamedTuple

import numpy as np

from optimum_program import OPTIMAL, Program


class Moves(NamedTuple):
    """Every way to move away from a factual: the point is z + shift @ amounts."""

    shift: np.ndarray  # columns x moves
    highest: np.ndarray  # per move: the largest amount
    costs: np.ndarray  # per unit of the amount
    is_whole: np.ndarray
    feature: np.ndarray


def layers_of(model):
    """Return the weights and offsets of each layer; the last has one output, the score of label 1."""
    if hasattr(model, "coefs_"):
        return list(zip(model.coefs_, model.intercepts_, strict=True))
    return [(model.coef_.T, model.intercept_)]


def moves_of(features, z, most):
    """Return the moves that cost at most `most`: up and down in a number, to each other level of a category."""
    lines = [line for place, feature in enumerate(features) for line in _moves(feature, z, place, most)]
    shift = np.zeros((len(z), len(lines)))
    for move, (changes, *_) in enumerate(lines):
        for column, change in changes:
            shift[column, move] = change
    columns = [np.array([line[part] for line in lines]) for part in range(1, 5)]
    return Moves(shift, *columns)


def _moves(feature, z, place, most):
    if feature.is_fixed:
        return
    first = feature.block.start
    if feature.is_group:
        active = first + int(z[feature.block].argmax())
        for column in range(first, feature.block.stop):
            if column != active and most >= 1.0:
                yield [(active, -1.0), (column, 1.0)], 1.0, 1.0, True, place
        return
    unit = 1.0 / feature.span if feature.is_whole else 1.0
    for sign, room in ((1.0, 1.0 - z[first]), (-1.0, z[first])):
        reach = min(room, most)
        amount = np.floor(reach / unit + 1e-6) if feature.is_whole else reach
        if amount > 0:
            yield [(first, sign * unit)], float(amount), unit, feature.is_whole, place


def score_program(layers, z, moves, features, most, margin, count_changes=False):
    """Return the program of the cheapest amounts whose score is at least `margin` and which cost at most `most`.

    With `count_changes`, those that change the fewest features.
    """
    program = Program()
    amounts = [
        program.add(0, high, 0.0 if count_changes else cost, whole)
        for high, cost, whole in zip(moves.highest, moves.costs, moves.is_whole, strict=True)
    ]
    _add_groups(program, amounts, moves, features)
    program.add_row(amounts, moves.costs, high=most + 1e-9)
    if count_changes:
        _add_changes(program, amounts, moves)
    columns = amounts
    weights = layers[0][0].T @ moves.shift
    offsets = layers[0][0].T @ z + layers[0][1]
    low, high = _within_budget(weights, offsets, moves, most)
    for following, offset in layers[1:]:
        columns, low, high = _add_units(program, columns, weights, offsets, low, high)
        weights, offsets = following.T, offset
        low, high = _bounds(weights, offsets, low, high)
    program.add_row(columns, 100.0 * weights[0], low=100.0 * (margin - offsets[0]))
    return program


def _add_groups(program, amounts, moves, features):
    """A category goes to one other level at most."""
    for place, feature in enumerate(features):
        own = np.flatnonzero(moves.feature == place)
        if feature.is_group and len(own):
            program.add_row([amounts[move] for move in own], np.ones(len(own)), high=1)


def _add_changes(program, amounts, moves):
    """Let a variable per feature say whether it moves at all; their sum is the cost."""
    for place in np.unique(moves.feature):
        changed = program.add(0, 1, 1.0, True)
        own = np.flatnonzero(moves.feature == place)
        share = 1.0 / moves.highest[own]
        program.add_row([*(amounts[move] for move in own), changed], [*share, -1.0], high=0)


def _within_budget(weights, offsets, moves, most):
    """Return the bounds of each unit's input over all amounts that together cost at most `most`."""
    whole = moves.highest * moves.costs  # the cost of a whole move
    low, high = np.empty(len(weights)), np.empty(len(weights))
    for unit, line in enumerate(weights):
        for sign, side in ((1.0, high), (-1.0, low)):
            gain = sign * line / moves.costs  # per unit of cost
            order = np.argsort(-gain)
            spent = np.minimum(np.cumsum(whole[order]), most)
            spent = np.diff(spent, prepend=0.0)
            side[unit] = offsets[unit] + sign * float((spent * np.maximum(gain[order], 0.0)).sum())
    return low - 1e-9, high + 1e-9


def _bounds(weights, offsets, low, high):
    """Return the bounds of the next units' inputs from those of the units before."""
    low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
    rise, fall = np.maximum(weights, 0.0), np.minimum(weights, 0.0)
    return rise @ low + fall @ high + offsets, rise @ high + fall @ low + offsets


def _add_units(program, columns, weights, offsets, low, high):
    """Add a layer of units max(0, input); return their variables, and the bounds of their inputs."""
    low, high = low.copy(), high.copy()
    outputs = []
    for unit, line in enumerate(weights):
        used = np.flatnonzero(line)
        inputs = ([columns[place] for place in used], list(line[used]))
        low[unit], high[unit] = _tightened(program, *inputs, offsets[unit], low[unit], high[unit])
        outputs.append(_add_unit(program, *inputs, offsets[unit], low[unit], high[unit]))
    return outputs, low, high


def _tightened(program, columns, factors, offset, low, high):
    """Return the bounds of a unit's input over the linear relaxation of the program so far, where they matter."""
    if low >= 0 or high <= 0:
        return low, high
    relaxed = program.fixed(np.zeros(len(program.low)))
    relaxed.low, relaxed.high = program.low, program.high
    bounds = []
    for sign in (1.0, -1.0):
        relaxed.cost = np.zeros(len(program.low))
        np.add.at(relaxed.cost, columns, sign * np.array(factors))
        found = relaxed.solve(10.0)
        bounds.append(sign * found.cost + offset if found.status == OPTIMAL else (low, 0, high)[int(1 - sign)])
    return max(low, bounds[0] - 1e-6), min(high, bounds[1] + 1e-6)


def _add_unit(program, columns, factors, offset, low, high):
    """Add output = max(0, input): the input if it cannot be negative, 0 if it cannot be positive."""
    output = program.add(0, max(high, 0.0))
    if high <= 0:
        return output
    negative = [-factor for factor in factors]
    program.add_row([output, *columns], [1.0, *negative], low=offset)  # output >= input
    if low >= 0:
        program.add_row([output, *columns], [1.0, *negative], high=offset)
        return output
    active = program.add(0, 1, 0.0, True)
    program.add_row([output, *columns, active], [1.0, *negative, -low], high=offset - low)
    program.add_row([output, active], [1.0, -high], high=0)
    return output
