"""The nearest counterfactual of a tree, a forest or boosted trees, exactly.

    trees, factual  ->  options_of (per feature, the few values that matter)  ->  nearest_leaf or nearest_by_program

A tree sees float32 values and asks `value <= threshold`, so between two thresholds all values are alike and the one
nearest to the factual stands for them. What is left is a choice among a few values per feature. One tree: the cheapest
leaf. Several: a program with a variable per threshold and per leaf (Misic, Operations Research 68, 2020), without the
values and leaves that are dearer than a counterfactual already known.
"""

from typing import NamedTuple

import numpy as np

from optimum_program import Program

TIE = 1e-9  # a score so near to the threshold may be on either side of it in floating point


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
        """Return the float32 thresholds of a column, ascending."""
        found = [tree.threshold[tree.feature == column] for tree in self.trees]
        return np.unique(float32_below(np.concatenate(found)))


def float32_below(thresholds):
    """Return the largest float32 not above each threshold: `x <= t` then gives the same result for every float32 x."""
    near = np.asarray(thresholds).astype(np.float32)
    return np.where(near > thresholds, np.nextafter(near, np.float32(-np.inf)), near)


def trees_of(model):
    """Return a fitted scikit-learn model as trees whose values add up."""
    if hasattr(model, "init_"):
        return _boosted(model)
    trees = [part.tree_ for part in getattr(model, "estimators_", [model])]
    shares = [tree.value[:, 0, 1] / tree.value[:, 0].sum(axis=1) for tree in trees]
    return Trees(trees, shares, -0.5 * len(trees))


def _boosted(model):
    trees = [part.tree_ for part in model.estimators_[:, 0]]
    values = [model.learning_rate * tree.value[:, 0, 0] for tree in trees]
    nothing = np.zeros((1, model.n_features_in_), dtype=np.float32)
    constant = float(np.ravel(model._raw_predict_init(nothing))[0])
    return Trees(trees, values, constant)


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
    return [_chosen(own, solution.values) for own in places], solution


class Places(NamedTuple):
    """The variables of a feature: one per level, or one per number but the last (1: at most this number)."""

    is_group: bool
    columns: list
    one: int  # a variable that is 1


def _add_feature(program, feature, choice):
    """Add a feature's variables, and the cost of its options."""
    if feature.is_group:
        places = Places(True, [program.add(0, 1, 0.0, True) for _ in choice.costs], -1)
        program.add_row(places.columns, np.ones(len(places.columns)), 1, 1)
    else:
        places = Places(False, [program.add(0, 1, 0.0, True) for _ in choice.costs[1:]], program.add(1, 1))
        for first, second in zip(places.columns[:-1], places.columns[1:], strict=True):
            program.add_row([second, first], [1, -1], low=0)
    for column, cost in zip(*_priced(places, choice.costs), strict=True):
        program.cost[column] = cost
    return places


def _priced(places, costs):
    """Return variables and factors whose sum is the cost of the chosen option."""
    if places.is_group:
        return places.columns, list(costs)
    return [*places.columns, places.one], [*-np.diff(costs), costs[-1]]


def _add_limit(program, places, options, limit):
    """Add a row: the chosen options cost no more than the limit."""
    priced = [_priced(own, choice.costs) for own, choice in zip(places, options, strict=True)]
    columns = [column for columns, _ in priced for column in columns]
    program.add_row(columns, [factor for _, factors in priced for factor in factors], high=limit + 1e-9)


def _chosen(places, values):
    """Return the chosen option of a feature."""
    if places.is_group:
        return int(np.argmax(values[places.columns]))
    return len(places.columns) - int(np.round(values[places.columns]).sum())


def _left(places, goes_left):
    """Return the variables whose sum says that a split is passed to the left."""
    if places.is_group:
        return [column for column, passes in zip(places.columns, goes_left, strict=True) if passes]
    return [places.columns[int(goes_left.sum()) - 1]]


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
    side = _left(places[node.feature], node.goes_left)
    program.add_row(left + side, [1] * len(left) + [-1] * len(side), high=0)
    program.add_row(right + side, [1] * len(right) + [1] * len(side), high=1)
    return left + right
