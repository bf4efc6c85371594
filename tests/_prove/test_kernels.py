"""The kernels of proofs and their plain twins: bounds of boxes, and searches over additive choices."""

import itertools

import numpy as np
import pytest

from amounts import seeds
from onbmacf._prove import boxes as forest
from onbmacf._prove.boxes import Cells, Choosable, Demand, _laid_out, choosable_of, solve
from onbmacf._prove.domain import Choices
from onbmacf._prove.kernels.additive import AdditiveSearch
from onbmacf._prove.kernels.trees import TreeSearch
from onbmacf._prove.structures import Tree, Trees
from plain_kernels import plain_kernels, steps

N_BUCKETS = 64  # distances at which trees are added up
NO_PAIRS = np.zeros((0, 2), np.intp)


def random_tree(random, n_splits, depth):
    left, right, column, values = [], [], [], []

    def grow(level):
        here = len(left)
        for part in (left, right, column):
            part.append(-1)
        values.append(0.0)
        if level == depth or random.random() < 0.2:
            values[here] = float(random.integers(-4, 5))
            return here
        column[here] = int(random.integers(n_splits))
        left[here], right[here] = grow(level + 1), grow(level + 1)
        return here

    grow(0)
    return Tree(np.array(left), np.array(right), np.array(column), np.zeros(len(left)), np.array([values]).T)


def plain_bound(trees, lefts, feature, costs, boxes, need, is_sum):
    """Return the least distance at which the best leaves within it add up to what is needed; infinite if none."""
    stairs = [list(leaves(tree, 0, lefts, feature, boxes, costs, is_sum)) for tree in trees]
    for distance in sorted({cost for tree in stairs for cost, _ in tree}):
        best = [[value for cost, value in tree if cost <= distance] for tree in stairs]
        if all(best) and sum(map(max, best)) >= need:
            return distance
    return np.inf


def leaves(tree, node, lefts, feature, boxes, costs, is_sum):
    """Yield cost and value of each leaf that a box reaches: a feature's cells are cut on the way."""
    if tree.left[node] < 0:
        least = [costs[at][sorted(cells)].min() for at, cells in enumerate(boxes)]
        yield (sum(least) if is_sum else max(least)), tree.values[node, 0]
        return
    at, left = feature[tree.column[node]], lefts[tree.column[node]]
    for child, side in ((tree.left[node], True), (tree.right[node], False)):
        kept = {cell for cell in boxes[at] if left[cell] == side}
        if kept:
            yield from leaves(tree, child, lefts, feature, [*boxes[:at], kept, *boxes[at + 1 :]], costs, is_sum)


class RandomTrees:
    """Random trees over few cells of three features, and what is asked of them."""

    def __init__(self, seed):
        random = np.random.default_rng(seed)
        n_features, n_splits, self.is_sum = 3, 8, bool(seed % 2)
        sizes = random.integers(2, 7, n_features)
        own = np.array([int(random.integers(size)) for size in sizes])
        self.costs = [np.abs(np.arange(size) - at) * 0.25 for size, at in zip(sizes, own, strict=True)]
        self.feature = random.integers(0, n_features, n_splits)
        place = np.array([int(random.integers(0, sizes[at] + 1)) for at in self.feature])
        self.lefts = [np.arange(sizes[at]) < first for at, first in zip(self.feature, place, strict=True)]
        self.trees = [random_tree(random, n_splits, 4) for _ in range(4)]
        self.need, self.limit = float(random.integers(0, 12)), 5.0
        self.cells = Cells(self.feature, place, np.zeros(n_splits, np.intp), np.zeros(1, np.intp))
        self.choosable = Choosable(np.r_[0, np.cumsum(sizes)], np.concatenate(self.costs), own, self.is_sum)
        amount = np.concatenate([np.arange(size, dtype=float) for size in sizes])
        self.demand = Demand(np.array([self.need]), np.array([np.inf]), self.limit, 9, NO_PAIRS, amount)

    def nodes(self):
        structure = Trees("", [0], self.trees, np.zeros(1), False, "", lambda columns: columns)
        number = np.concatenate([tree.column[tree.left >= 0] for tree in self.trees])
        return _laid_out(structure, number, self.feature)

    def with_table(self, random):
        """Return the cells of splits that send any cells left, not the first ones: counted in a table."""
        lefts = [random.random(len(left)) < 0.5 for left in self.lefts]
        counts = [np.r_[0, np.cumsum(left)] for left in lefts]
        table = np.cumsum([0, *map(len, counts)])[:-1]
        return Cells(self.feature, np.full(len(lefts), -1), table, np.concatenate(counts))


@pytest.mark.parametrize("seed", seeds(40))
def test_the_bound_of_a_box_agrees_with_its_plain_twin(seed):
    case = RandomTrees(seed)
    search = TreeSearch(case.choosable, case.demand, case.nodes(), case.cells)
    search.run(1)
    boxes = [set(range(len(cost))) for cost in case.costs]
    exact = plain_bound(case.trees, case.lefts, case.feature, case.costs, boxes, case.need, case.is_sum)
    assert search.is_over() == (exact >= case.limit)
    if not search.is_over():
        assert exact - case.limit / N_BUCKETS <= search.least_bound() <= exact


@pytest.mark.parametrize("seed", seeds(40))
def test_a_compiled_search_over_trees_takes_the_steps_of_its_source(seed, monkeypatch):
    case, plain = RandomTrees(seed), plain_kernels().trees
    firm = case.demand._replace(firm=case.demand.need + 1.0, pairs=np.array([[0, 1]]), most=2)
    nodes = case.nodes()
    monkeypatch.setattr(forest, "walk_down", plain.walk_down)
    monkeypatch.setattr(forest, "link", plain.link)
    for one, other in zip(nodes, case.nodes(), strict=True):
        assert np.array_equal(one, other)
    for cells in (case.cells, case.with_table(np.random.default_rng(seed))):
        for demand in (case.demand, firm):
            given = case.choosable, demand, nodes, cells
            assert steps(TreeSearch(*given)) == steps(plain.TreeSearch(*given))


class RandomTerms:
    """Five features of few choices, what each adds to one or two conditions, and what is asked of them."""

    def __init__(self, seed):
        random = np.random.default_rng(seed)
        n_conditions, self.is_sum = 1 + seed % 2, seed % 3 > 0
        self.kept, self.gains = [], []
        for size in random.integers(1, 6, 5):
            costs = np.r_[0.0, np.sort(random.integers(1, 30, size - 1) / 8)]
            self.kept.append(Choices(np.arange(size), np.arange(size, dtype=float), costs, 0))
            gains = random.integers(-9, 30, (size, n_conditions)) * 0.5
            self.gains.append(gains * (np.arange(size) > 0)[:, np.newaxis])
        self.need = random.integers(5, 45, n_conditions).astype(float)
        pairs = np.array([[0, 1]]) if seed % 5 == 0 else NO_PAIRS
        amount, most = np.concatenate([choices.value for choices in self.kept]), int(random.integers(2, 5))
        self.demand = Demand(self.need - 1e-9, self.need + 1e-9, 50.0, most, pairs, amount)

    def given(self):
        return choosable_of(self.kept, self.is_sum), self.demand, np.concatenate(self.gains).T

    def is_good(self, point):
        """Say whether a point meets the conditions, changes few enough features and keeps the pairs."""
        sums = sum(gain[at] for gain, at in zip(self.gains, point, strict=True))
        keeps = all((point[a], point[b]) == (0, 0) or point[a] <= point[b] for a, b in self.demand.pairs)
        return bool((sums >= self.need).all() and np.count_nonzero(point) <= self.demand.most and keeps)


@pytest.mark.parametrize("seed", seeds(60))
def test_a_search_over_additive_choices_agrees_with_all_of_them(seed):
    case = RandomTerms(seed)
    every = itertools.product(*(range(len(choices.cost)) for choices in case.kept))
    good = [point for point in every if case.is_good(point)]
    combine = sum if case.is_sum else max
    costs = [combine(choices.cost[at] for choices, at in zip(case.kept, point, strict=True)) for point in good]
    solved = solve(AdditiveSearch(*case.given()), lambda point: case.is_good(point.astype(int)), np.inf)
    assert solved.is_over
    assert (solved.point is None) == (not good)
    assert solved.bound == pytest.approx(min(costs, default=solved.bound))


@pytest.mark.parametrize("seed", seeds(60))
def test_a_compiled_search_over_additive_choices_takes_the_steps_of_its_source(seed):
    case = RandomTerms(seed)
    found = steps(AdditiveSearch(*case.given()))
    assert found == steps(plain_kernels().additive.AdditiveSearch(*case.given()))
