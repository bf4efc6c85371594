"""The nearest counterfactual as a mixed-integer linear program, solved by HiGHS through scipy.

    trees, factual   ->  options_of (per feature, the few values that matter)  ->  leaves_reached or nearest_by_program
    layers, factual  ->  moves_of (every way to move)  ->  score_program  ->  solve  ->  Solution

A tree sees float32 values and asks `value <= threshold`, so between two thresholds all values are alike and the one
nearest to the factual stands for them. What is left is a choice among a few values per feature. One tree: the cheapest
leaf. Several: a program with a variable per threshold and per leaf (Misic, Operations Research 68, 2020), without the
values and leaves that are dearer than a counterfactual already known.

The score of a logistic regression is a linear function of the moves, that of a ReLU network one of units that each need
one yes-or-no variable: active or not. How large a unit's input can get is bounded first, within the distance of a
counterfactual already known: the smaller these bounds, the faster the proof.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

TIE = 1e-9  # a score so near to the threshold may be on either side of it in floating point
GAP = 1e-7  # relative: where HiGHS calls a point optimal
OPTIMAL, INFEASIBLE = 0, 2  # scipy's numbers


class Solution(NamedTuple):
    """What HiGHS says: values is None where it has no point."""

    status: int
    values: np.ndarray | None
    cost: float
    bound: float  # no point costs less; infinite where none exists


class Program:
    """Variables with bounds and costs, and rows low <= a x <= high."""

    def __init__(self):
        self.low, self.high, self.cost, self.is_integer = [], [], [], []
        self.columns, self.factors, self.starts, self.row_low, self.row_high = [], [], [0], [], []

    def add(self, low, high, cost=0.0, is_integer=False):
        """Add a variable and return its number."""
        self.low.append(low)
        self.high.append(high)
        self.cost.append(cost)
        self.is_integer.append(int(is_integer))
        return len(self.low) - 1

    def add_row(self, columns, factors, low=-np.inf, high=np.inf):
        """Add a row: low <= the sum of factors times variables <= high."""
        self.columns.extend(columns)
        self.factors.extend(factors)
        self.starts.append(len(self.columns))
        self.row_low.append(low)
        self.row_high.append(high)

    def fixed(self, values):
        """Return the program with its integer variables at these values: what remains is linear."""
        other = Program.__new__(Program)
        other.__dict__.update(self.__dict__)
        rounded = np.round(values)
        is_integer = np.array(self.is_integer, dtype=bool)
        other.low = np.where(is_integer, rounded, self.low)
        other.high = np.where(is_integer, rounded, self.high)
        other.is_integer = np.zeros(len(self.low))
        return other

    def solve(self, seconds):
        """Minimise the cost."""
        shape = (len(self.row_low), len(self.low))
        factors = csr_array((self.factors, self.columns, self.starts), shape)
        found = milp(
            np.array(self.cost),
            integrality=np.array(self.is_integer),
            bounds=Bounds(np.array(self.low, dtype=float), np.array(self.high, dtype=float)),
            constraints=LinearConstraint(factors, self.row_low, self.row_high),
            options={"time_limit": max(seconds, 0.1), "mip_rel_gap": GAP},
        )
        if found.status == INFEASIBLE:
            return Solution(INFEASIBLE, None, np.inf, np.inf)
        bound = -np.inf if found.mip_dual_bound is None else float(found.mip_dual_bound)
        cost = np.inf if found.x is None else float(found.fun)
        if found.status == OPTIMAL and not any(self.is_integer):
            bound = cost
        return Solution(int(found.status), found.x, cost, bound)


class Options(NamedTuple):
    """The values that a feature may take: encoded, one line each, numbers in ascending order."""

    values: np.ndarray  # options x columns of the feature
    costs: np.ndarray
    own: int  # the factual's


class Node(NamedTuple):
    """A split, with the options that go left, or a leaf (feature -1)."""

    feature: int
    goes_left: np.ndarray | None
    left: "Node | None"
    right: "Node | None"
    value: float


class Trees(NamedTuple):
    """Trees whose values add up: the label is 1 where constant + sum > 0."""

    trees: list  # of scikit-learn's trees
    values: list  # per tree: the value of each node
    constant: float

    def thresholds(self, column):
        """Return the thresholds of a column, ascending, each as the largest float32 not above it.

        `x <= t` then gives the same result for every float32 x.
        """
        found = np.concatenate([tree.threshold[tree.feature == column] for tree in self.trees])
        near = found.astype(np.float32)
        return np.unique(np.where(near > found, np.nextafter(near, np.float32(-np.inf)), near))


def trees_of(model):
    """Return a fitted scikit-learn model as trees whose values add up."""
    if hasattr(model, "init_"):  # boosted trees
        trees = [part.tree_ for part in model.estimators_[:, 0]]
        values = [model.learning_rate * tree.value[:, 0, 0] for tree in trees]
        nothing = np.zeros((1, model.n_features_in_), dtype=np.float32)
        return Trees(trees, values, float(np.ravel(model._raw_predict_init(nothing))[0]))
    trees = [part.tree_ for part in getattr(model, "estimators_", [model])]
    shares = [tree.value[:, 0, 1] / tree.value[:, 0].sum(axis=1) for tree in trees]
    return Trees(trees, shares, -0.5 * len(trees))


def options_of(trees, features, z):
    """Return, per feature, the values that the trees tell apart, each the nearest of its kind to the factual z."""
    return [_options(trees, feature, z[feature.block]) for feature in features]


def _options(trees, feature, own):
    if feature.is_fixed:
        return Options(own[np.newaxis].copy(), np.zeros(1), 0)
    if feature.is_group:
        levels = np.eye(len(own))
        return Options(levels, (levels != own).any(axis=1).astype(float), int(own.argmax()))
    thresholds = trees.thresholds(feature.block.start)
    values = _whole(feature.grid, thresholds, own[0]) if feature.is_whole else _reals(thresholds, own[0])
    values = np.unique(np.append(values, own[0]))
    return Options(values[:, np.newaxis], np.abs(values - own[0]), int(np.searchsorted(values, own[0])))


def _reals(thresholds, own):
    """Return the nearest number beyond each threshold: the threshold itself below, the next float32 above."""
    below = thresholds[thresholds < np.float32(own)]
    above = np.nextafter(thresholds[thresholds >= np.float32(own)], np.float32(np.inf))
    values = np.concatenate([below, above]).astype(np.float64)
    return values[(values >= 0) & (values <= 1)]


def _whole(grid, thresholds, own):
    """Return the nearest value of the grid beyond each threshold."""
    narrow = grid.astype(np.float32)
    beyond = np.searchsorted(narrow, thresholds, side="right")  # the first above
    at = int(np.searchsorted(grid, own))
    places = np.concatenate([beyond[beyond > at], beyond[beyond <= at] - 1])
    return grid[places[(places >= 0) & (places < len(grid))]]


def cheaper(options, most):
    """Leave out the options that alone cost more than `most`."""
    kept = []
    for choice in options:
        stays = choice.costs <= most
        kept.append(Options(choice.values[stays], choice.costs[stays], int(stays[: choice.own].sum())))
    return kept


def point_of(options, chosen):
    """Return the encoded point of one option per feature."""
    return np.concatenate([choice.values[place] for choice, place in zip(options, chosen, strict=True)])


def nodes_of(trees, features, options):
    """Return the trees over the options: splits that all options pass the same way are left out."""
    feature_at = np.repeat(np.arange(len(features)), [f.block.stop - f.block.start for f in features])
    narrow = [choice.values.astype(np.float32) for choice in options]

    def node(tree, values, place, open_):
        if tree.children_left[place] < 0:
            return Node(-1, None, None, None, float(values[place]))
        at = feature_at[tree.feature[place]]
        passes = narrow[at][:, tree.feature[place] - features[at].block.start] <= tree.threshold[place]
        here = open_[at]
        if not (here & ~passes).any():
            return node(tree, values, tree.children_left[place], open_)
        if not (here & passes).any():
            return node(tree, values, tree.children_right[place], open_)
        sides = [
            node(tree, values, child, {**open_, at: here & side})
            for child, side in ((tree.children_left[place], passes), (tree.children_right[place], ~passes))
        ]
        return Node(at, passes, *sides, 0.0)

    everything = {place: np.ones(len(choice.costs), dtype=bool) for place, choice in enumerate(options)}
    return [node(tree, values, 0, everything) for tree, values in zip(trees.trees, trees.values, strict=True)]


def leaves_of(node, options):
    """Yield each leaf's value, its cheapest option per feature on the way to it, and their cost."""
    stack = [(node, {})]
    while stack:
        here, masks = stack.pop()
        if here.feature < 0:
            chosen = {at: int(np.where(mask, options[at].costs, np.inf).argmin()) for at, mask in masks.items()}
            yield here, chosen, sum(options[at].costs[place] for at, place in chosen.items())
            continue
        before = masks.get(here.feature, np.ones(len(options[here.feature].costs), dtype=bool))
        for child, side in ((here.left, here.goes_left), (here.right, ~here.goes_left)):
            if (before & side).any():
                stack.append((child, {**masks, here.feature: before & side}))


def leaves_reached(trees, features, options):
    """Yield the cheapest options that reach each leaf of label 1 of a single tree, and their cost.

    A feature changes only where its own value does not lead there, so they change as few features as any.
    """
    (root,) = nodes_of(trees, features, options)
    for leaf, chosen, cost in leaves_of(root, options):
        if trees.constant + leaf.value > 0:
            yield [chosen.get(at, choice.own) for at, choice in enumerate(options)], cost


class Places(NamedTuple):
    """The variables of a feature: one per level, or one per number but the last (1: at most this number)."""

    is_group: bool
    columns: list
    one: int  # a variable that is 1

    def priced(self, costs):
        """Return variables and factors whose sum is the cost of the chosen option."""
        if self.is_group:
            return self.columns, list(costs)
        return [*self.columns, self.one], [*-np.diff(costs), costs[-1]]

    def chosen(self, values):
        """Return the chosen option."""
        if self.is_group:
            return int(np.argmax(values[self.columns]))
        return len(self.columns) - int(np.round(values[self.columns]).sum())

    def left(self, goes_left):
        """Return the variables whose sum says that a split is passed to the left."""
        if self.is_group:
            return [column for column, passes in zip(self.columns, goes_left, strict=True) if passes]
        return [self.columns[int(goes_left.sum()) - 1]]


def nearest_by_program(trees, features, options, most, margin, seconds, budget=None):
    """Return the cheapest options whose values add up to at least `margin`, and the solver's solution.

    Nothing costs more than `most`. `budget`, options with other costs and a limit, holds besides.
    """
    program = Program()
    places = [_add_feature(program, feature, choice) for feature, choice in zip(features, options, strict=True)]
    _add_limit(program, places, options, most)
    if budget is not None:
        _add_limit(program, places, *budget)
    total_columns, total_factors = [], []
    for root in nodes_of(trees, features, options):
        columns, values = _add_tree(program, root, options, places, most)
        total_columns += columns
        total_factors += values
    scale = 1000.0  # HiGHS keeps rows to 1e-6
    program.add_row(total_columns, np.multiply(total_factors, scale), low=(margin - trees.constant) * scale)
    solution = program.solve(seconds)
    if solution.values is None:
        return None, solution
    return [own.chosen(solution.values) for own in places], solution


def _add_feature(program, feature, choice):
    """Add a feature's variables, and the cost of its options."""
    if feature.is_group:
        places = Places(True, [program.add(0, 1, 0.0, True) for _ in choice.costs], -1)
        program.add_row(places.columns, np.ones(len(places.columns)), 1, 1)
    else:
        places = Places(False, [program.add(0, 1, 0.0, True) for _ in choice.costs[1:]], program.add(1, 1))
        for first, second in zip(places.columns[:-1], places.columns[1:], strict=True):
            program.add_row([second, first], [1, -1], low=0)
    for column, cost in zip(*places.priced(choice.costs), strict=True):
        program.cost[column] = cost
    return places


def _add_limit(program, places, options, limit):
    """Add a row: the chosen options cost no more than the limit."""
    priced = [own.priced(choice.costs) for own, choice in zip(places, options, strict=True)]
    columns = [column for columns, _ in priced for column in columns]
    program.add_row(columns, [factor for _, factors in priced for factor in factors], high=limit + 1e-9)


def _add_tree(program, root, options, places, most):
    """Add a tree: a share per leaf, held by each split on the way; return the leaves' variables and values."""
    columns, values, costs, lasting = [], [], [], {}
    for leaf, _, cost in leaves_of(root, options):
        columns.append(program.add(0, 1 if cost <= most else 0))
        values.append(leaf.value)
        costs.append(cost)
        lasting[id(leaf)] = columns[-1]
    program.add_row(columns, np.ones(len(columns)), 1, 1)
    _add_splits(program, root, places, lasting)
    priced = [place for place, cost in enumerate(program.cost) if cost]  # no leaf costs more than the whole point
    factors = [program.cost[place] for place in priced] + [-cost for cost in costs]
    program.add_row(priced + columns, factors, low=0)
    return columns, values


def _add_splits(program, node, places, lasting):
    """Add the rows of every split below; return the variables of its leaves."""
    if node.feature < 0:
        return [lasting[id(node)]] if id(node) in lasting else []
    left = _add_splits(program, node.left, places, lasting)
    right = _add_splits(program, node.right, places, lasting)
    side = places[node.feature].left(node.goes_left)
    program.add_row(left + side, [1] * len(left) + [-1] * len(side), high=0)
    program.add_row(right + side, [1] * len(right) + [1] * len(side), high=1)
    return left + right


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
    program.add_row(amounts, moves.costs, high=most + 1e-9)
    for place in np.unique(moves.feature):
        own = np.flatnonzero(moves.feature == place)
        if features[place].is_group:  # to one other level at most
            program.add_row([amounts[move] for move in own], np.ones(len(own)), high=1)
        if count_changes:  # a variable says whether the feature moves at all
            changed = program.add(0, 1, 1.0, True)
            program.add_row([*(amounts[move] for move in own), changed], [*1.0 / moves.highest[own], -1.0], high=0)
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
