"""The nearest answer to one of LiCE's rows as a mixed-integer program, solved by HiGHS: to compare proofs with.

    Split, row  ->  moves_of (what may change, at what cost)  ->  solved: the least distance, and a bound

"If education rises, age must rise" makes two programs: one in which the age rises, one in which nothing rises that asks
for it. The nearer answer of the two is the nearest.
"""

import time
from types import SimpleNamespace

import numpy as np
import onnx
from onnx import numpy_helper

from lice_split import AGE, HOME, IMMUTABLE, ORDERED
from optimum_programs import Moves, score_program

SLACK = 1e-6  # of the distance known, beyond which nothing is looked for


def layers_of(split):
    """Return the weights and offsets of the network's layers."""
    graph = onnx.load(split.network.path).graph
    given = {one.name: numpy_helper.to_array(one).astype(float) for one in graph.initializer}
    gemms = [node for node in graph.node if node.op_type == "Gemm"]
    return [(given[node.input[1]].T, given[node.input[2]]) for node in gemms]


def moves_of(split, row, most, is_older):
    """Return every move that their rules leave a row, and what it costs.

    Where the age rises or not, one of two programs each, all that depends on it is a matter of single moves.
    """
    lines, block = [], 0
    for place, name in enumerate(split.train):
        width = split.width(name)
        weights, first, block = split.weights[block : block + width], block, block + width
        if name in IMMUTABLE[split.name] or (name == AGE[split.name] and not is_older):
            continue
        found = numbers_moves if name in split.numbers else level_moves
        lines += [(*line, place) for line in found(split, row, name, weights, first, is_older)]
    lines = [line for line in lines if line[2] * (1 if line[3] else 0) <= most and line[1] > 0]
    shift = np.zeros((block, len(lines)))
    for move, (changes, *_) in enumerate(lines):
        for column, change in changes:
            shift[column, move] = change
    columns = [
        np.array([line[part] for line in lines], dtype=kind) for part, kind in ((1, float), (2, float), (3, bool))
    ]
    return Moves(shift, *columns, np.array([line[4] for line in lines], dtype=int))


def numbers_moves(split, row, name, weights, first, is_older):
    """Yield the moves of a number, up and down: what changes, how far, at what cost, whether in whole steps."""
    low, high = split.ends(name)
    is_whole, unit = name not in split.reals, 1.0 / (high - low)
    for sign, room in ((1.0, high - row[name]), (-1.0, row[name] - low)):
        is_held = (name == AGE[split.name] and sign < 0) or (name == HOME and sign > 0 and not is_older)
        if not is_held:
            yield [(first, sign * unit)], float(room), unit * weights[0], is_whole


def level_moves(split, row, name, weights, first, is_older):
    """Yield the moves to each other level."""
    levels = split.levels(name)
    own = levels.index(row[name])
    for at in range(len(levels)):
        rise = at - own if name in ORDERED else 0
        if at == own or (rise > 0 and not is_older) or (rise < 0 and name == "education"):
            continue
        if len(weights) == 1:
            yield [(first, float(at - own))], 1.0, weights[0], True
        else:
            yield [(first + own, -1.0), (first + at, 1.0)], 1.0, weights[own] + weights[at], True


def solved(split, row, label, most, seconds):
    """Return the least distance within their rules, as a mixed-integer program, and a bound; `most` is known."""
    sign = 1.0 if label == 0 else -1.0
    layers = layers_of(split)
    layers[-1] = tuple(sign * part for part in layers[-1])
    z, row = split.encoded(row)[0], row.iloc[0]
    least, bound = np.inf, np.inf
    groups = [SimpleNamespace(is_group=split.width(name) > 1) for name in split.train]
    for is_older in (False, True):
        moves = moves_of(split, row, most, is_older)
        older = np.flatnonzero(moves.feature == list(split.train).index(AGE[split.name]))
        if is_older and (not len(older) or moves.costs[older[0]] > most):
            continue
        program = score_program(layers, z, moves, groups, most, 0.0)
        if is_older:
            program.low[older[0]] = 1.0
        found = program.solve(seconds)
        least, bound = min(least, found.cost), min(bound, found.bound)
    return least, bound


def checked(split, lines, seconds):
    """Return what HiGHS says of each row that has an answer."""
    found = []
    for line in lines:
        row, start = split.rows.loc[[line["row"]]], time.perf_counter()
        most = line.get("distance", float(10 * split.weights.sum())) * (1.0 + SLACK) + SLACK
        least, bound = solved(split, row, split.labels(row)[0], most, seconds)
        found.append({"row": line["row"], "bound": bound, "s": time.perf_counter() - start} | distance_of(least))
    return found


def distance_of(least):
    """Return a distance as an entry; none where nothing was found."""
    return {"distance": least} if np.isfinite(least) else {}
