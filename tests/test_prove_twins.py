"""The kernels of proofs and their plain twins: bounds of boxes, and searches over additive choices."""

import itertools

import numpy as np
import pytest

from onbmacf._prove.boxes import N_BUCKETS, Cells, Nodes, Paths, RowTrees, find_paths, scratch_of
from onbmacf._prove.forest import _laid_out
from onbmacf._prove.queue import Choosable, Demand, first_queue
from onbmacf._prove.solve import AdditiveSearch, solve
from onbmacf._prove.structures import Tree, Trees
from onbmacf._prove.trees import expand
from onbmacf._prove.values import Choices


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


@pytest.mark.parametrize("seed", range(40))
def test_the_bound_of_a_box_agrees_with_its_plain_twin(seed):
    random = np.random.default_rng(seed)
    n_features, n_splits, is_sum = 3, 8, bool(seed % 2)
    sizes = random.integers(2, 7, n_features)
    own = np.array([int(random.integers(size)) for size in sizes])
    costs = [np.abs(np.arange(size) - at) * 0.25 for size, at in zip(sizes, own, strict=True)]
    feature = random.integers(0, n_features, n_splits)
    place = np.array([int(random.integers(0, sizes[at] + 1)) for at in feature])
    lefts = [np.arange(sizes[at]) < first for at, first in zip(feature, place, strict=True)]
    trees = [random_tree(random, n_splits, 4) for _ in range(4)]
    structure = Trees("", [0], trees, np.zeros(1), False, "", lambda columns: columns)
    number = np.concatenate([tree.column[tree.left >= 0] for tree in trees])
    nodes: Nodes = _laid_out(structure, number, feature)
    choosable = Choosable(np.r_[0, np.cumsum(sizes)], np.concatenate(costs), own, is_sum)
    cells = Cells(feature, place, np.zeros(n_splits, np.intp), np.zeros(1, np.intp))
    paths, queue = Paths(*np.zeros((5, len(nodes.split)), np.intp)), first_queue(choosable)
    find_paths(nodes, choosable, cells, paths)
    need, limit = float(random.integers(0, 12)), 5.0
    demand = Demand(np.array([need]), np.array([np.inf]), np.array([limit]), 9, np.zeros((0, 2), np.intp), costs[0])
    row_trees = RowTrees(nodes, choosable, cells, paths)
    expand(row_trees, demand, queue, scratch_of(nodes, n_splits, n_features), 1)
    exact = plain_bound(trees, lefts, feature, costs, [set(range(size)) for size in sizes], need, is_sum)
    assert (queue.n[0] == 0) == (exact >= limit)
    if queue.n[0]:
        assert exact - limit / N_BUCKETS <= queue.bound[queue.heap[0]] <= exact


@pytest.mark.parametrize("seed", range(60))
def test_a_search_over_additive_choices_agrees_with_all_of_them(seed):
    random = np.random.default_rng(seed)
    n_conditions, is_sum = 1 + seed % 2, seed % 3 > 0
    kept, gains = [], []
    for size in random.integers(1, 6, 5):
        costs = np.r_[0.0, np.sort(random.integers(1, 30, size - 1) / 8)]
        kept.append(Choices(np.arange(size), np.arange(size, dtype=float), costs, 0))
        gains.append(random.integers(-9, 30, (size, n_conditions)) * 0.5 * (np.arange(size) > 0)[:, np.newaxis])
    need = random.integers(5, 45, n_conditions).astype(float)
    pairs = np.array([[0, 1]]) if seed % 5 == 0 else np.zeros((0, 2), np.intp)
    amount = np.concatenate([choices.value for choices in kept])
    demand = Demand(need - 1e-9, need + 1e-9, np.array([50.0]), int(random.integers(2, 5)), pairs, amount)
    search = AdditiveSearch(np.ascontiguousarray(np.concatenate(gains).T), kept, demand, is_sum)
    every = itertools.product(*(range(len(choices.cost)) for choices in kept))
    good = [point for point in every if is_good(point, gains, need, demand)]
    combine = sum if is_sum else max
    costs = [combine(choices.cost[at] for choices, at in zip(kept, point, strict=True)) for point in good]
    solved = solve(search, lambda point: is_good(point.astype(int), gains, need, demand), np.inf)
    assert solved.is_over
    assert (solved.point is None) == (not good)
    assert solved.bound == pytest.approx(min(costs, default=solved.bound))


def is_good(point, gains, need, demand):
    """Say whether a point meets the conditions, changes few enough features and keeps the pairs."""
    sums = sum(gain[at] for gain, at in zip(gains, point, strict=True))
    keeps = all((point[a], point[b]) == (0, 0) or point[a] <= point[b] for a, b in demand.pairs)
    return bool((sums >= need).all() and np.count_nonzero(point) <= demand.most and keeps)
