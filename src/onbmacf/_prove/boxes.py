"""Boxes of cells, and how a box of additive trees is bounded: the kernels of `trees.py`.

    box (lo, hi per feature)  ->  bound_box  ->  the least distance at which the trees could agree on the target

A feature has cells, each of values that no split tells apart, in an order in which the cost rises away from the row's
own cell. A leaf of a tree has a cost of its own: what the splits on its way make the row change. Within a distance,
each tree gives at most the best of the leaves that cost no more; where these do not add up to the target, nothing does.
"""

from typing import NamedTuple

import numpy as np

from onbmacf._base.arrays import Matrix, Rows
from onbmacf._base.jit import kernel, part
from onbmacf._prove.queue import Choosable

N_BUCKETS = 64  # distances at which the trees are added up, from 0 to the limit
NEVER = np.inf
SLACK = 1e-12  # rounding error forgiven to a bound: the edge of a bucket, what is bought, a budget


class Nodes(NamedTuple):
    """Trees as arrays, one entry per node, each tree from its root downwards, the left branch first."""

    split: Rows  # the number of the node's split; -1 for a leaf
    left: Rows  # the next node on the left; for a leaf, -1
    right: Rows
    after: Rows  # the node that follows when this one and all below are left out
    upper: Rows  # the node above; -1 for a root
    is_right: Rows  # 1 where the node is the right branch of the one above
    before: Rows  # the nearest node above that a split of the same feature leads to; -1: none
    roots: Rows  # and one past the last node
    values: Matrix  # per node: what a leaf adds to each condition


class Cells(NamedTuple):
    """Where the splits cut a row's choices."""

    feature: Rows  # per split
    place: Rows  # per split: the cells before this one go left; -1 where that is not so
    table: Rows  # per split: where its counts begin in `counts`, for splits without a place
    counts: Rows  # how many of the first 0, 1, 2, ... cells go left


class Paths(NamedTuple):
    """Per node: the feature of the split above, and its cells here and at the node before."""

    feature: Rows
    low: Rows
    high: Rows
    low_before: Rows
    high_before: Rows


class RowTrees(NamedTuple):
    """The trees, and how the choices of one row lead through them."""

    nodes: Nodes
    choosable: Choosable
    cells: Cells
    paths: Paths


@part
def _cells_of_side(cells: Cells, split: int, side: int, low: int, high: int) -> tuple[int, int]:
    """Return the first and last cell of a range that go to one side of a split; reversed if none does."""
    place = cells.place[split]
    if place >= 0:
        return (max(low, place), high) if side else (low, min(high, place - 1))
    at = cells.table[split]
    while low <= high and (cells.counts[at + low + 1] - cells.counts[at + low] == 1) == (side == 1):
        low += 1
    while low <= high and (cells.counts[at + high + 1] - cells.counts[at + high] == 1) == (side == 1):
        high -= 1
    return low, high


@part
def _has_side(cells: Cells, split: int, side: int, low: int, high: int) -> bool:
    """Say whether a cell of a range goes to one side of a split."""
    if low > high:
        return False
    if cells.place[split] >= 0:
        return True  # the range has been cut
    at = cells.table[split]
    n_left = cells.counts[at + high + 1] - cells.counts[at + low]
    return n_left < high - low + 1 if side else n_left > 0


@kernel
def find_paths(nodes: Nodes, choosable: Choosable, cells: Cells, paths: Paths) -> None:
    """Write down, for every node but the roots, which cells of the feature above lead there."""
    for node in range(len(nodes.split)):
        if nodes.upper[node] < 0:
            continue
        split = nodes.split[nodes.upper[node]]
        feature, before = cells.feature[split], nodes.before[node]
        low, high = 0, choosable.start[feature + 1] - choosable.start[feature] - 1
        if before >= 0:
            low, high = paths.low[before], paths.high[before]
        paths.feature[node], paths.low_before[node], paths.high_before[node] = feature, low, high
        low, high = _cells_of_side(cells, split, nodes.is_right[node], low, high)
        paths.low[node], paths.high[node] = low, high


@part
def _cost(choosable: Choosable, feature: int, low: int, high: int) -> float:
    """Return what the cheapest cell of a range costs."""
    return choosable.cost[choosable.start[feature] + min(max(choosable.own[feature], low), high)]


@part
def _cost_here(choosable: Choosable, paths: Paths, node: int, lo: Rows, hi: Rows, above: float) -> float:
    """Return what it costs to come to a node within a box; `above` is the cost of the node above."""
    feature = paths.feature[node]
    low, high = max(lo[feature], paths.low[node]), min(hi[feature], paths.high[node])
    one = _cost(choosable, feature, low, high)
    if not choosable.is_sum:
        return max(above, one)
    low, high = max(lo[feature], paths.low_before[node]), min(hi[feature], paths.high_before[node])
    return above + (one - _cost(choosable, feature, low, high))


@part
def _is_open(cells: Cells, nodes: Nodes, paths: Paths, node: int, lo: Rows, hi: Rows) -> bool:
    """Say whether a box has a cell that leads from the node above to this one."""
    feature = paths.feature[node]
    low, high = max(lo[feature], paths.low[node]), min(hi[feature], paths.high[node])
    return _has_side(cells, nodes.split[nodes.upper[node]], nodes.is_right[node], low, high)


class Scratch(NamedTuple):
    """Room for one box: written by every bound."""

    cost: Matrix  # per node
    best: Matrix  # per node
    votes: Matrix  # per split: how much the trees' best sums differ on its two sides; -1: the box is on one side of it
    total: Matrix  # conditions x buckets
    stairs: Matrix
    met: Rows  # the nodes within the limit, in order
    n_met: Rows  # how many they are
    point: Rows  # the cheapest point of the box
    sums: Matrix  # and what the trees give it


def scratch_of(nodes: Nodes, n_splits: int, n_features: int) -> Scratch:
    """Return room for the boxes of some trees."""
    n_nodes, n_conditions = nodes.values.shape
    total, stairs = np.zeros((2, n_conditions, N_BUCKETS))
    met, n_met, point = (np.zeros(n, np.intp) for n in (n_nodes, 1, n_features))
    cost, best, votes, sums = (np.zeros(n) for n in (n_nodes, n_nodes, n_splits, n_conditions))
    return Scratch(cost, best, votes, total, stairs, met, n_met, point, sums)


@part
def bound_box(trees: RowTrees, lo: Rows, hi: Rows, base: float, need: Matrix, limit: float, room: Scratch) -> float:
    """Return a distance below which a box holds no point that meets all conditions; NEVER if none below the limit.

    `base` is what the cheapest point of the box costs, `need` the least sum of each condition. The votes of the splits
    are left in `room`.
    """
    _clear(room.total, 0.0)
    room.n_met[0] = 0
    for tree in range(len(trees.nodes.roots) - 1):
        _clear(room.stairs, -np.inf)
        _visit(trees, lo, hi, tree, base, limit, room)
        _add_stairs(room)
    tightest, first, least = 0, 0, np.inf
    for k in range(len(need)):
        bucket = 0
        while bucket < N_BUCKETS and room.total[k, bucket] < need[k]:
            bucket += 1
        if bucket == N_BUCKETS:
            return NEVER
        first = max(first, bucket)
        if room.total[k, N_BUCKETS - 1] - need[k] < least:
            tightest, least = k, room.total[k, N_BUCKETS - 1] - need[k]
    _vote(trees.nodes, tightest, limit, room)
    return max(base, first * limit / N_BUCKETS * (1.0 - SLACK))


@part
def _visit(trees: RowTrees, lo: Rows, hi: Rows, tree: int, base: float, limit: float, room: Scratch) -> None:
    """Find what the nodes of a tree cost within a box, and the best leaf at each distance."""
    nodes, choosable, cells, paths = trees
    node, cost = nodes.roots[tree], room.cost
    while node < nodes.roots[tree + 1]:
        if nodes.upper[node] < 0:
            cost[node] = base
        elif _is_open(cells, nodes, paths, node, lo, hi):
            cost[node] = _cost_here(choosable, paths, node, lo, hi, cost[nodes.upper[node]])
        else:
            cost[node] = NEVER
        if not cost[node] < limit:
            node = nodes.after[node]
            continue
        room.met[room.n_met[0]] = node
        room.n_met[0] += 1
        if nodes.split[node] < 0:
            bucket = min(N_BUCKETS - 1, int(cost[node] / limit * N_BUCKETS))
            for k in range(len(room.stairs)):
                room.stairs[k, bucket] = max(room.stairs[k, bucket], nodes.values[node, k])
        node += 1


@part
def _clear(numbers: Matrix, value: float) -> None:
    for k in range(numbers.shape[0]):
        for bucket in range(numbers.shape[1]):
            numbers[k, bucket] = value


@part
def _add_stairs(room: Scratch) -> None:
    """Add the best that one tree gives within each distance."""
    for k in range(len(room.stairs)):
        highest = -np.inf
        for bucket in range(N_BUCKETS):
            highest = max(highest, room.stairs[k, bucket])
            room.total[k, bucket] += highest


@part
def _vote(nodes: Nodes, condition: int, limit: float, room: Scratch) -> None:
    """Let every node with both branches within the limit vote for its split: by how much the branches differ."""
    for split in range(len(room.votes)):
        room.votes[split] = -1.0
    best, cost = room.best, room.cost
    for met in range(room.n_met[0] - 1, -1, -1):
        node = room.met[met]
        if nodes.split[node] < 0:
            best[node] = nodes.values[node, condition]
            continue
        left, right = nodes.left[node], nodes.right[node]
        has_left, has_right = cost[left] < limit, cost[right] < limit
        one = best[left] if has_left else -np.inf
        other = best[right] if has_right else -np.inf
        best[node] = max(one, other)
        if has_left and has_right:
            split = nodes.split[node]
            room.votes[split] = max(room.votes[split], 0.0) + abs(one - other)
