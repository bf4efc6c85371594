"""One row, one label: the search over boxes, slice by slice, with the model asked about what comes out.

conditions, a limit, a row's choices  ->  posed  ->  what a search of `kernels` takes
a search, ask, a clock  ->  solve  ->  Solved: the nearest point below the limit, or how far it is proven
"""

from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import numpy as np

from onbmacf._base.arrays import Matrix, Rows
from onbmacf._prove.kernels.search import Search
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


class Choosable(NamedTuple):
    """The choices of all features, those of one after the other."""

    start: Rows  # of each feature, and one past the last
    cost: Matrix  # what a choice costs; it rises away from the row's own
    own: Rows  # per feature: the choice that is the row's own value
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


def solve(search: Search, ask: Ask, deadline: float) -> Solved:
    """Run a search until it is over or the time is; ask the model about every candidate that comes out."""
    highest = search.limit
    while True:
        search.run(SLICE)
        if search.is_over():
            return Solved(highest, None, True)
        if search.has_candidate():
            point = _confirmed(search, ask)
            if point is not None:
                return Solved(search.least_bound(), point, True)
            if search.is_firm():
                raise NotKnownError("the model's answers are not those of its structure")
            search.refuse()
        if perf_counter() >= deadline:
            return Solved(search.least_bound(), _confirmed(search, ask), False)


def _confirmed(search: Search, ask: Ask) -> Matrix | None:
    """Return the nearest candidate that waits, if the model says that it is an answer."""
    point = search.candidate()
    return point if point is not None and ask(point) else None
