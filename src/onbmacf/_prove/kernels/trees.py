# cython: infer_types=True, annotation_typing=False
"""The nearest point that additive trees give a label, by branch and bound over boxes of cells.

    Nodes, Cells  ->  TreeSearch.run  ->  candidates in the order of their distance, and how far it has got

A feature has cells, each of values that no split tells apart, in an order in which the cost rises away from the row's
own cell. A leaf of a tree has a cost of its own: what the splits on its way make the row change. Within a distance,
each tree gives at most the best of the leaves that cost no more; where these do not add up to the target, nothing does.
The box with the least bound is cut at the split that its trees disagree about most.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onbmacf._base.arrays import Rows
from onbmacf._prove.kernels.constants import NEVER, OPEN, SLACK
from onbmacf._prove.kernels.search import Search, integers, numbers

try:
    import cython
except ImportError:  # the source runs as it is
    from onbmacf._base import plain_cython as cython

N_BUCKETS = 64  # distances at which the trees are added up, from 0 to the limit


class TreeSearch(Search):
    """A search over the cells of additive trees; Nodes and Cells say what their arrays hold."""

    def __init__(self, choosable: Any, demand: Any, nodes: Any, cells: Any) -> None:
        super().__init__(choosable, demand)
        self.split, self.left, self.right, self.after = map(integers, nodes[:4])
        self.upper, self.is_right, self.before, self.roots = map(integers, nodes[4:8])
        self.values = numbers(nodes.values)
        self.split_feature, self.split_place, self.table, self.counts = map(integers, cells)
        n_nodes, n_conditions = nodes.values.shape
        self.path_feature, self.path_low, self.path_high = np.zeros((3, n_nodes), np.intp)
        self.low_before, self.high_before, self.met = np.zeros((3, n_nodes), np.intp)
        self.node_cost, self.best = np.zeros((2, n_nodes))
        self.votes, self.n_met = np.zeros(len(cells.feature)), 0
        self.total, self.stairs = np.zeros((2, n_conditions, N_BUCKETS))
        self._find_paths()

    def _find_paths(self) -> None:
        """Write down, for every node but the roots, which cells of the feature above lead there."""
        for node in range(self.split.shape[0]):
            if self.upper[node] < 0:
                continue
            split, before = self.split[self.upper[node]], self.before[node]
            feature = self.split_feature[split]
            low, high = 0, self.start[feature + 1] - self.start[feature] - 1
            if before >= 0:
                low, high = self.path_low[before], self.path_high[before]
            self.path_feature[node], self.low_before[node], self.high_before[node] = feature, low, high
            self._keep_side(node, split)

    @cython.final
    def _keep_side(self, node: int, split: int) -> None:
        """Leave the first and last cell that go a node's way at the split above it; reversed if none does."""
        low, high, side = self.low_before[node], self.high_before[node], self.is_right[node]
        place = self.split_place[split]
        if place >= 0 and side:
            low = max(low, place)
        elif place >= 0:
            high = min(high, place - 1)
        else:
            while low <= high and not self._is_side(split, low, side):
                low += 1
            while low <= high and not self._is_side(split, high, side):
                high -= 1
        self.path_low[node], self.path_high[node] = low, high

    @cython.final
    def _is_side(self, split: int, cell: int, side: int) -> bool:
        """Say whether a cell goes to one side of a split that has no place."""
        at = self.table[split] + cell
        return (self.counts[at + 1] > self.counts[at]) == (side == 0)

    def _enter(self, box: int) -> None:
        """Bound a box, and queue it unless it is known to hold nothing."""
        bound, cost = NEVER, self._cheapest(box)
        if cost < self.limit and not self._is_hopeless(box):
            bound = max(self.bound[box], self._bound_of(box, cost))
        if not bound < self.limit:
            self._give_back(box)
            return
        self._add_up()
        self._choose_cut(box)
        if self._reaches(self.need) and self._broken_pair(self.first) < 0:
            self._push_candidate(box, cost, self._reaches(self.firm))
        else:
            self._push(box, bound, OPEN)

    def _bound_of(self, box: int, base: float) -> float:
        """Return a distance below which a box holds no point that meets all conditions; NEVER if none below the limit.

        `base` is what the cheapest point of the box costs. The votes of the splits are left for where to cut.
        """
        self.total[:, :] = 0.0
        self.n_met = 0
        for tree in range(self.roots.shape[0] - 1):
            self.stairs[:, :] = -NEVER
            self._visit(tree, box, base)
            self._add_stairs()
        tightest, first, least = 0, 0, NEVER
        for k in range(self.need.shape[0]):
            bucket = 0
            while bucket < N_BUCKETS and self.total[k, bucket] < self.need[k]:
                bucket += 1
            if bucket == N_BUCKETS:
                return NEVER
            first = max(first, bucket)
            if self.total[k, N_BUCKETS - 1] - self.need[k] < least:
                tightest, least = k, self.total[k, N_BUCKETS - 1] - self.need[k]
        self._vote(tightest)
        return max(base, first * self.limit / N_BUCKETS * (1.0 - SLACK))

    @cython.final
    def _visit(self, tree: int, box: int, base: float) -> None:
        """Find what the nodes of a tree cost within a box, and the best leaf at each distance."""
        node = self.roots[tree]
        while node < self.roots[tree + 1]:
            if self.upper[node] < 0:
                self.node_cost[node] = base
            elif self._is_open(node, box):
                self.node_cost[node] = self._cost_here(node, box)
            else:
                self.node_cost[node] = NEVER
            if not self.node_cost[node] < self.limit:
                node = self.after[node]
                continue
            self.met[self.n_met] = node
            self.n_met += 1
            if self.split[node] < 0:
                bucket = int(self.node_cost[node] / self.limit * N_BUCKETS)
                bucket = min(bucket, N_BUCKETS - 1)
                for k in range(self.stairs.shape[0]):
                    self.stairs[k, bucket] = max(self.stairs[k, bucket], self.values[node, k])
            node += 1

    @cython.final
    def _is_open(self, node: int, box: int) -> bool:
        """Say whether a box has a cell that leads from the node above to this one."""
        feature, split = self.path_feature[node], self.split[self.upper[node]]
        low, high = max(self.lo[box, feature], self.path_low[node]), min(self.hi[box, feature], self.path_high[node])
        if low > high:
            return False
        if self.split_place[split] >= 0:
            return True  # the path has been cut there
        at = self.table[split]
        n_left = self.counts[at + high + 1] - self.counts[at + low]
        return n_left < high - low + 1 if self.is_right[node] else n_left > 0

    @cython.final
    def _cost_here(self, node: int, box: int) -> float:
        """Return what it costs to come to a node within a box; the cost of the node above is known."""
        feature, above = self.path_feature[node], self.node_cost[self.upper[node]]
        first, last = self.lo[box, feature], self.hi[box, feature]
        one = self._cost_between(feature, max(first, self.path_low[node]), min(last, self.path_high[node]))
        if not self.is_sum:
            return max(above, one)
        low, high = max(first, self.low_before[node]), min(last, self.high_before[node])
        return above + (one - self._cost_between(feature, low, high))

    @cython.final
    def _cost_between(self, feature: int, low: int, high: int) -> float:
        """Return what the cheapest cell of a range costs."""
        return self.cost[self.start[feature] + min(max(self.own[feature], low), high)]

    @cython.final
    def _add_stairs(self) -> None:
        """Add the best that one tree gives within each distance."""
        for k in range(self.stairs.shape[0]):
            highest = -NEVER
            for bucket in range(N_BUCKETS):
                highest = max(highest, self.stairs[k, bucket])
                self.total[k, bucket] += highest

    def _vote(self, condition: int) -> None:
        """Let every node with both branches within the limit vote for its split: by how much the branches differ."""
        self.votes[:] = -1.0
        for at in range(self.n_met - 1, -1, -1):
            node = self.met[at]
            if self.split[node] < 0:
                self.best[node] = self.values[node, condition]
                continue
            left, right, split = self.left[node], self.right[node], self.split[node]
            has_left, has_right = self.node_cost[left] < self.limit, self.node_cost[right] < self.limit
            one = self.best[left] if has_left else -NEVER
            other = self.best[right] if has_right else -NEVER
            self.best[node] = max(one, other)
            if has_left and has_right:
                self.votes[split] = max(self.votes[split], 0.0) + abs(one - other)

    def _add_up(self) -> None:
        """Leave what the trees give the cheapest point of the box."""
        self.sums[:] = 0.0
        for tree in range(self.roots.shape[0] - 1):
            node = self.roots[tree]
            while self.split[node] >= 0:
                split = self.split[node]
                cell, place = self.first[self.split_feature[split]], self.split_place[split]
                goes_left = cell < place if place >= 0 else self._is_side(split, cell, 0)
                node = self.left[node] if goes_left else self.right[node]
            for k in range(self.sums.shape[0]):
                self.sums[k] += self.values[node, k]

    def _choose_cut(self, box: int) -> None:
        """Write down where to cut a box: at the split with the most votes, if any has a choice on both sides."""
        cut, most = -1, -1.0
        for split in range(self.votes.shape[0]):
            if self.votes[split] > most:
                cut, most = split, self.votes[split]
        if cut < 0:
            self._cut_in_half(box)
            return
        feature, place = self.split_feature[cut], self.split_place[cut]
        low, high = self.lo[box, feature], self.hi[box, feature]
        if place < 0:
            place = low + 1 if low == self.own[feature] else (low + high + 1) // 2
        self.feature[box], self.place[box] = feature, place


def walk_down(
    left: Rows, right: Rows, first: Rows, order: Rows, upper: Rows, is_right: Rows, roots: Rows, stack: Rows
) -> int:
    """Number the nodes that can be reached from each root, a node before those below it; return how many they are.

    The three lines of `stack` hold the nodes that wait, their numbers of the node above, and their side of it.
    """
    n = 0
    for tree in range(first.shape[0] - 1):
        roots[tree] = n
        depth, stack[0, 0], stack[1, 0], stack[2, 0] = 1, first[tree], -1, 0
        while depth > 0:
            depth -= 1
            node = stack[0, depth]
            order[n], upper[n], is_right[n] = node, stack[1, depth], stack[2, depth]
            if left[node] >= 0:
                stack[0, depth], stack[1, depth], stack[2, depth] = right[node], n, 1
                stack[0, depth + 1], stack[1, depth + 1], stack[2, depth + 1] = left[node], n, 0
                depth += 2
            n += 1
    roots[first.shape[0] - 1] = n
    return n


def link(left: Rows, right: Rows, upper: Rows, split: Rows, feature: Rows, after: Rows, before: Rows) -> None:
    """Find what follows each node's branch, and the nearest node above that a split of the same feature leads to."""
    for node in range(left.shape[0] - 1, -1, -1):
        if left[node] >= 0:
            after[node] = after[right[node]]
        if upper[node] >= 0:
            above = upper[node]
            while upper[above] >= 0 and feature[split[upper[above]]] != feature[split[upper[node]]]:
                above = upper[above]
            before[node] = above if upper[above] >= 0 else -1
