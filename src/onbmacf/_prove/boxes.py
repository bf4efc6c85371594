"""Branch and bound over boxes of values: additive trees cut the values into cells, and boxes of cells are searched.

one row, one label  ->  solve  ->  the nearest that the model accepts, or a bound, slice by slice
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onbmacf._base.arrays import Matrix, Rows
from onbmacf._prove.columns import NotKnownError
from onbmacf._prove.domain import Choices, ColumnTable, Domain, only_own
from onbmacf._prove.kernels.search import Search
from onbmacf._prove.kernels.trees import link, walk_down
from onbmacf._prove.readers import OTHER
from onbmacf._prove.structures import Trees
from onbmacf._table.calls import ENDLESS

SLICE = 64  # boxes that are cut between two looks at the clock
IsAnswer = Callable[[Matrix], bool]  # of a row as numbers


# --- trees over cells -------------------------------------------------------------------------------------------------


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


class Splits(NamedTuple):
    """The different splits of all trees, sorted by column, then threshold."""

    column: Rows
    threshold: Matrix
    feature: Rows  # the feature that the column changes with; -1 for none


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees laid out for boxes, and the columns of all values."""

    splits: Splits
    nodes: Nodes  # with one value per class
    structure: Trees
    domain: Domain
    table: ColumnTable
    by_feature: list[Rows]  # the splits of each feature

    @classmethod
    def of(cls, structure: Trees, domain: Domain, table: ColumnTable) -> "Forest":
        """Lay the trees out."""
        column = np.concatenate([tree.column[tree.left >= 0] for tree in structure.trees])
        threshold = np.concatenate([tree.threshold[tree.left >= 0] for tree in structure.trees])
        order = np.lexsort((threshold, column))
        is_new = np.ones(len(order), dtype=bool)
        is_new[1:] = (np.diff(column[order]) != 0) | (np.diff(threshold[order]) != 0)
        number = np.empty(len(order), dtype=np.intp)
        number[order] = np.cumsum(is_new) - 1
        column, threshold = column[order][is_new], threshold[order][is_new]
        splits = Splits(column.astype(np.intp), threshold, table.owner()[column])
        nodes = _laid_out(structure, number, np.maximum(splits.feature, 0))
        by_feature = [np.flatnonzero(splits.feature == at) for at in range(len(domain.is_held))]
        return cls(splits, nodes, structure, domain, table, by_feature)

    def cells(self, row: int) -> tuple[Cells, list[Choices]]:
        """Return a row's cells, and per feature the choice that stands for each cell: the cheapest in it."""
        splits = self.splits
        place, at_table = np.full(len(splits.column), -1, dtype=np.intp), np.zeros(len(splits.column), dtype=np.intp)
        counts: list[Rows] = [np.zeros(1, dtype=np.intp)]
        kept = []
        for at, mine in enumerate(self.by_feature):
            choices, lefts = self._split_choices(row, at, mine)
            kept.append(choices)
            if lefts is None:
                continue
            is_cut = (lefts[:-1] >= lefts[1:]).all(axis=0)  # those that go left come first
            place[mine[is_cut]] = lefts[:, is_cut].sum(axis=0)
            for split, left in zip(mine[~is_cut], lefts[:, ~is_cut].T, strict=True):
                at_table[split] = sum(map(len, counts))
                counts.append(np.concatenate([[0], np.cumsum(left)]))
        unowned = splits.feature < 0
        goes_left = self.structure.rounded(self.table.own[row])[splits.column] <= splits.threshold
        place[unowned] = np.where(goes_left[unowned], len(kept[0].cost), 0)
        return Cells(np.maximum(splits.feature, 0), place, at_table, np.concatenate(counts)), kept

    def edges(self, row: int, at: int) -> tuple[Choices, Rows]:
        """Return all choices of a feature, and which of them are nearest to a border between cells, on either side."""
        choices, kept = self._of_row[row, at]
        near = np.concatenate([kept - 1, kept, kept + 1])
        return choices, np.unique(near[(near >= 0) & (near < len(choices.cost))])

    @cached_property
    def _of_row(self) -> dict[tuple[int, int], tuple[Choices, Rows]]:
        """The choices of the last row, and the one that stands for each cell: a memo."""
        return {}

    def _split_choices(self, row: int, at: int, mine: Rows) -> tuple[Choices, NDArray[Any] | None]:
        """Return one choice per cell of a feature, and which of them go left at each of its splits."""
        if at == 0:
            self._of_row.clear()
        choices = self.domain.choices(row, at)
        self._of_row[row, at] = choices, np.array([choices.own])
        if not len(mine):
            return (choices if at in self.domain.pairs else only_own(choices)), None
        columns = self.structure.rounded(self.table.of_choices(row, at, choices))
        place, threshold = (
            np.searchsorted(self.table.columns[at], self.splits.column[mine]),
            self.splits.threshold[mine],
        )
        if at in self.domain.pairs:
            return choices, columns[:, place] <= threshold
        kept = _cheapest_of_runs(_sides(columns, place, threshold), choices.own)
        self._of_row[row, at] = choices, kept
        lefts = columns[np.ix_(kept, place)] <= threshold
        return Choices(choices.line[kept], choices.value[kept], choices.cost[kept], choices.own_among(kept)), lefts


def _sides(columns: Matrix, place: Rows, threshold: Matrix) -> NDArray[Any]:
    """Return numbers by which choices are told apart: for one column, how many thresholds lie below."""
    if columns.shape[1] == 1:
        return np.searchsorted(threshold, columns)
    return columns[:, place] <= threshold


def _cheapest_of_runs(lefts: NDArray[Any], own: int) -> Rows:
    """Return, of each run of choices that no split tells apart, the one nearest to the row's own in order."""
    starts = np.flatnonzero(np.r_[True, (lefts[1:] != lefts[:-1]).any(axis=1)])
    ends = np.r_[starts[1:], len(lefts)] - 1
    return np.clip(own, starts, ends)


def _laid_out(structure: Trees, number: Rows, feature: Rows) -> Nodes:
    """Return all trees as one list of nodes, each tree from its root downwards, the left branch first."""
    sizes = np.array([len(tree.left) for tree in structure.trees])
    first = np.r_[0, np.cumsum(sizes)]
    left = np.concatenate([np.where(t.left >= 0, t.left + s, -1) for t, s in zip(structure.trees, first, strict=False)])
    right = np.concatenate(
        [np.where(t.left >= 0, t.right + s, -1) for t, s in zip(structure.trees, first, strict=False)]
    )
    split = np.full(len(left), -1, dtype=np.intp)
    split[left >= 0] = number
    order, upper, is_right = np.zeros((3, len(left)), dtype=np.intp)
    roots = np.zeros(len(first), dtype=np.intp)
    stack = np.zeros((3, len(left) + 1), dtype=np.intp)
    n_nodes = walk_down(left, right, first, order, upper, is_right, roots, stack)
    order, upper, is_right = order[:n_nodes], upper[:n_nodes], is_right[:n_nodes]
    place = np.full(len(left), -1, dtype=np.intp)
    place[order] = np.arange(n_nodes)
    inner = left[order] >= 0
    left = np.where(inner, place[left[order]], -1)
    right = np.where(inner, place[right[order]], -1)
    after, before = np.arange(1, n_nodes + 1), np.full(n_nodes, -1, dtype=np.intp)
    link(left, right, upper, split[order], feature, after, before)
    values = np.concatenate([tree.values for tree in structure.trees])[order]
    return Nodes(split[order], left, right, after, upper, is_right, before, roots, values)


# --- the search -------------------------------------------------------------------------------------------------------


class Solved(NamedTuple):
    """What is known of one row and one label; costs, not distances."""

    bound: float  # nothing below this
    point: Matrix | None  # the nearest point, as numbers, where one below the limit was found
    is_over: bool  # whether nothing is left to look for


class Conditions(NamedTuple):
    """What the sums of a label must reach."""

    need: Matrix
    error: float  # that rounding may make
    is_exact: bool  # whether a point that meets them is an answer


class Choosable(NamedTuple):
    """The choices of all features, those of one after the other."""

    start: Rows  # of each feature, and one past the last
    cost: Matrix  # what a choice costs; it rises away from the row's own
    own: Rows  # per feature: the choice that is the row's own value, or a place outside where that is none
    is_sum: bool  # whether costs add up; otherwise the largest counts


class Demand(NamedTuple):
    """What a point must meet."""

    need: Matrix  # the least sum of each condition, rounding error forgiven
    firm: Matrix  # the sum of each condition at which no rounding error matters; infinite where the model must be asked
    limit: float  # only what is nearer is looked for
    most: int  # features that may change
    pairs: Rows  # two columns of features: the first must be at most the second
    amount: Matrix  # the value of each choice


def posed(conditions: Conditions, limit: float, domain: Domain, kept: list[Choices]) -> tuple[Choosable, Demand]:
    """Return what may be chosen and what a point must meet; only what costs less than the limit is looked for."""
    need, error = conditions.need, conditions.error
    firm = need + error if conditions.is_exact else np.full(len(need), np.inf)
    whole = sum(float(choices.cost.max()) for choices in kept) + 1.0  # more than anything costs
    amount = np.concatenate([choices.value for choices in kept])
    demand = Demand(need - error, firm, min(limit, whole), domain.most_changes, domain.pairs, amount)
    return choosable_of(kept, domain.is_sum), demand


def choosable_of(kept: list[Choices], is_sum: bool) -> Choosable:
    """Return the choices of all features as arrays."""
    start: Rows = np.cumsum([0, *(len(choices.cost) for choices in kept)])
    cost, own = np.concatenate([choices.cost for choices in kept]), np.array([choices.own for choices in kept])
    return Choosable(start, cost, own, is_sum)


def solve(search: Search, is_answer: IsAnswer, deadline: float, most_slices: int = ENDLESS) -> Solved:
    """Run a search until it is over, or the time or the work is; ask the model about every candidate that comes out."""
    highest = search.limit
    for n_slices in count(1):
        search.run(SLICE)
        if search.is_over():
            return Solved(highest, None, True)
        if search.has_candidate():
            point = _confirmed(search, is_answer)
            if point is not None:
                return Solved(search.least_bound(), point, True)
            if search.is_firm():
                raise NotKnownError(OTHER)
            search.refuse()
        if n_slices >= most_slices or perf_counter() >= deadline:
            return Solved(search.least_bound(), _confirmed(search, is_answer), False)
    raise AssertionError("unreachable: counting never ends")


def _confirmed(search: Search, is_answer: IsAnswer) -> Matrix | None:
    """Return the nearest candidate that waits, if the model says that it is an answer."""
    point = search.candidate()
    return point if point is not None and is_answer(point) else None


# --- a single tree ----------------------------------------------------------------------------------------------------


def nearest_leaf(
    forest: Forest, row: int, conditions: Conditions, values: Matrix, limit: float, is_answer: IsAnswer
) -> Solved:
    """Look at the leaves of a single tree, nearest first: they are a list, so the search always ends.

    `values` is what each node adds to the conditions.
    """
    leaves = sorted(_reached(forest, row, limit), key=lambda leaf: leaf.cost)
    for leaf in leaves:
        over = values[leaf.node] - conditions.need
        if (over < -conditions.error).any():
            continue
        if is_answer(leaf.point):
            return Solved(leaf.cost, leaf.point, True)
        if conditions.is_exact and (over >= conditions.error).all():
            raise NotKnownError(OTHER)
    return Solved(limit, None, True)


class _Leaf(NamedTuple):
    """A leaf that a row can reach, and the nearest point in it."""

    node: int
    cost: float
    point: Matrix


def _reached(forest: Forest, row: int, limit: float) -> Iterator[_Leaf]:
    """Yield the leaves that a row can reach below a limit, within the number of changes."""
    split, left, right = forest.nodes.split, forest.nodes.left, forest.nodes.right
    each = [forest._split_choices(row, at, mine) for at, mine in enumerate(forest.by_feature)]
    place = np.empty(len(forest.splits.column), dtype=np.intp)  # of a split among those of its feature
    for mine in forest.by_feature:
        place[mine] = np.arange(len(mine))
    own_side = forest.structure.rounded(forest.table.own[row])[forest.splits.column] <= forest.splits.threshold
    open_nodes: list[tuple[int, dict[int, Rows]]] = [(0, {})]  # with the choices of each feature that lead there
    while open_nodes:
        node, kept = open_nodes.pop()
        nearest = {at: int(some[each[at][0].cost[some].argmin()]) for at, some in kept.items()}
        costs = [float(each[at][0].cost[chosen]) for at, chosen in nearest.items()]
        cost = sum(costs) if forest.domain.is_sum else max(costs, default=0.0)
        if cost >= limit or sum(map(bool, costs)) > forest.domain.most_changes:
            continue
        if left[node] < 0:
            point = forest.domain.N[row].copy()
            for at, chosen in nearest.items():
                point[at] = each[at][0].value[chosen]
            yield _Leaf(node, cost, point)
            continue
        at = int(forest.splits.feature[split[node]])
        if at < 0:
            open_nodes.append((int((left if own_side[split[node]] else right)[node]), kept))
            continue
        choices, lefts = each[at]
        assert lefts is not None, "a feature with a split has sides"
        some = kept.get(at, np.arange(len(choices.cost)))
        is_left = lefts[some, place[split[node]]]
        for side, child in ((is_left, left[node]), (~is_left, right[node])):
            if side.any():
                open_nodes.append((int(child), {**kept, at: some[side]}))
