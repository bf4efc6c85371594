"""One row, one label: the search over boxes, slice by slice, with the model asked about what comes out.

Problem, a limit, a clock, ask  ->  solve  ->  Solved: the nearest point below the limit, or how far it is proven
"""

from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple, Protocol

import numpy as np

from onbmacf._base.arrays import Matrix, Rows
from onbmacf._prove import additive, networks, trees
from onbmacf._prove.boxes import Cells, Nodes, Paths, RowTrees, find_paths, scratch_of
from onbmacf._prove.layers import Layers
from onbmacf._prove.queue import ASK, DONE, FIRM, FULL, OPEN, Choosable, Demand, Queue, first_queue, larger, refuse
from onbmacf._prove.values import Choices, Domain, NotKnownError

SLICE = 64  # boxes that are cut between two looks at the clock
Ask = Callable[[Matrix], bool]  # a row as numbers -> whether it is an answer


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


class Search(Protocol):
    """A search over boxes."""

    queue: Queue
    demand: Demand
    kept: list[Choices]

    def run(self, n_steps: int) -> int:
        """Cut boxes; return why it stopped."""


class TreeSearch:
    """A search over the cells of additive trees."""

    def __init__(self, nodes: Nodes, cells: Cells, kept: list[Choices], demand: Demand, is_sum: bool) -> None:
        choosable, paths = _choosable(kept, is_sum), Paths(*np.zeros((5, len(nodes.split)), np.intp))
        self.kept, self.demand, self.queue = kept, demand, first_queue(choosable)
        find_paths(nodes, choosable, cells, paths)
        self._before = (RowTrees(nodes, choosable, cells, paths), demand)
        self._room = scratch_of(nodes, len(cells.feature), len(kept))

    def run(self, n_steps: int) -> int:
        """Cut boxes; return why it stopped."""
        return int(trees.expand(*self._before, self.queue, self._room, n_steps))


class AdditiveSearch:
    """A search over the choices of an additive model; `gains` has a line per condition."""

    def __init__(self, gains: Matrix, kept: list[Choices], demand: Demand, is_sum: bool) -> None:
        choosable = _choosable(kept, is_sum)
        self.kept, self.demand, self.queue = kept, demand, first_queue(choosable)
        self._before = (choosable, gains, demand)
        self._room = additive.outline_of(choosable)

    def run(self, n_steps: int) -> int:
        """Cut boxes; return why it stopped."""
        return int(additive.expand(*self._before, self.queue, self._room, n_steps))


class NetworkSearch:
    """A search over the choices of a network."""

    def __init__(self, layers: Layers, kept: list[Choices], demand: Demand, is_sum: bool) -> None:
        choosable = _choosable(kept, is_sum)
        self.kept, self.demand, self.queue = kept, demand, first_queue(choosable)
        self._before = (layers, choosable, demand)
        self._room = networks.room_of(layers, len(kept))

    def run(self, n_steps: int) -> int:
        """Cut boxes; return why it stopped."""
        return int(networks.expand(*self._before, self.queue, self._room, n_steps))


def demand_of(conditions: Conditions, limit: float, domain: Domain, kept: list[Choices]) -> Demand:
    """Return what a point must meet; only what costs less than the limit is looked for."""
    least, error = conditions.need, conditions.error
    firm = least + error if conditions.is_exact else np.full(len(least), np.inf)
    whole = sum(float(choices.cost.max()) for choices in kept) + 1.0  # more than anything costs
    amount = np.concatenate([choices.value for choices in kept])
    return Demand(least - error, firm, np.array([min(limit, whole)]), domain.most_changes, domain.pairs, amount)


def solve(search: Search, ask: Ask, deadline: float) -> Solved:
    """Run a search until it is over or the time is; ask the model about every candidate that comes out."""
    highest = float(search.demand.limit[0])
    while True:
        now = search.run(SLICE)
        if now == DONE:
            return Solved(highest, None, True)
        if now == ASK:
            box = int(search.queue.heap[0])
            point, bound = _point(search, box), float(search.queue.bound[box])
            if ask(point):
                return Solved(bound, point, True)
            if search.queue.kind[box] == FIRM:
                raise NotKnownError("the model's answers are not those of its structure")
            refuse(search.queue)
        elif now == FULL:
            search.queue = larger(search.queue)
        if perf_counter() >= deadline:
            return _stopped(search, ask)


def _stopped(search: Search, ask: Ask) -> Solved:
    """Return what is known when the time is over; the nearest candidate that waits is asked about."""
    queue = search.queue
    waiting = queue.heap[: queue.n[0]]
    bound = float(queue.bound[waiting].min()) if len(waiting) else float(search.demand.limit[0])
    likely = waiting[queue.kind[waiting] > OPEN]
    if len(likely):
        point = _point(search, int(likely[queue.bound[likely].argmin()]))
        return Solved(bound, point if ask(point) else None, False)
    return Solved(bound, None, False)


def _point(search: Search, box: int) -> Matrix:
    """Return the cheapest point of a box as numbers."""
    lo, hi = search.queue.lo[box], search.queue.hi[box]
    places = [min(max(choices.own, low), high) for choices, low, high in zip(search.kept, lo, hi, strict=True)]
    return np.array([choices.value[place] for choices, place in zip(search.kept, places, strict=True)])


def _choosable(kept: list[Choices], is_sum: bool) -> Choosable:
    start: Rows = np.cumsum([0, *(len(choices.cost) for choices in kept)])
    cost, own = np.concatenate([choices.cost for choices in kept]), np.array([choices.own for choices in kept])
    return Choosable(start, cost, own, is_sum)
