"""The questions that a line which cuts its changes will probably ask, whatever the answers: the likeliest of them.

    Cut (where a line stands)  ->  plan_of  ->  Plan: questions of one call  ->  walked  ->  Cut (where it stands then)

What a line asks next depends on answers that are not known yet, and on nothing else: not on which features it has
changed. So a plan speaks of the first, second, ... change of a line, and is made once for all lines that stand at the
same place (docs/decisions/0054-fewer-rounds.md).
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from onbmacf._base.arrays import Mask

PASSES = 4  # changes that are found to be needed before a point with many is left alone
FEW = 4  # changes of a point that are looked at one by one before the best points are known
CHANCES = ((0.6, 0.4, 0.15), (0.25, 0.1, 0.07))  # of a yes: nothing or less refused before; up to 4, 8, more to halve
LEAST = (0.003, 0.006, 0.012, 0.02, 0.03, 0.05, 0.08, 0.12, 0.18, 0.27, 0.4, 1.0)  # chances of a question to be reached
KEPT_PLANS = 2048  # plans that are kept in memory


class Cut(NamedTuple):
    """Where a line stands that keeps its first `high` changes: fewer than `low` + 1 are not enough."""

    n_needed: int  # changes in front that are known to be needed
    low: int
    high: int

    @property
    def is_open(self) -> bool:
        """Whether there is something left to ask."""
        return self.high - self.low > 1

    @property
    def n_kept(self) -> int:
        """How many changes the next trial keeps."""
        return (self.low + self.high) // 2

    @property
    def chance(self) -> float:
        """How likely these are enough, as it was seen on several tables and models."""
        is_refused = self.low > max(0, self.n_needed - 1)  # fewer were not enough
        return CHANCES[is_refused][(self.high - self.low > 4) + (self.high - self.low > 8)]

    def after(self, is_yes: bool) -> tuple["Cut", int]:
        """Return where the line stands then, and the change that has moved to the front: -1 if none has."""
        at = Cut(self.n_needed, self.low, self.n_kept) if is_yes else Cut(self.n_needed, self.n_kept, self.high)
        if at.is_open:
            return at, -1
        n_needed, high = self.n_needed + 1, at.high
        goes_on = n_needed < PASSES or high <= FEW + 1
        return Cut(n_needed, min(n_needed - 1, high) if goes_on else high, high), high - 1


class Plan(NamedTuple):
    """Questions that follow each other; the first is asked in any case."""

    is_kept: Mask  # questions x changes, in the order of the line before the first question
    before: list[tuple[Cut, tuple[int, ...]]]  # per question: where a line stands that asks it, and its order then
    then: list[tuple[int, int]]  # per question: the one after a no and after a yes; -1 - k for the k-th end
    ends: list[tuple[Cut, tuple[int, ...]]]  # where a line stands, and its changes in their new order


@lru_cache(maxsize=KEPT_PLANS)
def plan_of(start: Cut, least: float) -> Plan:
    """Return the questions whose chance to be asked is not below `least`, and the first."""
    is_kept: list[tuple[int, ...]] = []
    before: list[tuple[Cut, tuple[int, ...]]] = []
    then: list[tuple[int, int]] = []
    ends: list[tuple[Cut, tuple[int, ...]]] = []

    def visit(at: Cut, order: tuple[int, ...], chance: float) -> int:
        if not at.is_open or (chance < least and then):
            ends.append((at, order))
            return -len(ends)
        here = len(then)
        is_kept.append(order[: at.n_kept])
        before.append((at, order))
        then.append((0, 0))
        (no, moved), (yes, moved_too), share = at.after(False), at.after(True), at.chance
        after_no = visit(no, _moved(order, at.n_needed, moved), chance * (1 - share))
        then[here] = (after_no, visit(yes, _moved(order, at.n_needed, moved_too), chance * share))
        return here

    visit(start, tuple(range(start.high)), 1.0)
    mask = np.zeros((len(is_kept), start.high), dtype=bool)
    for question, kept in enumerate(is_kept):
        mask[question, list(kept)] = True
    return Plan(mask, before, then, ends)


def n_questions(start: Cut, least: float) -> int:
    """Return how many questions the plan has that goes down to this chance, without making it."""
    chances = _chances_of(start)
    return max(1, len(chances) - bisect_left(chances, least))


@lru_cache(maxsize=KEPT_PLANS)
def _chances_of(start: Cut) -> list[float]:
    """Return the chances of all questions that any plan may ask, the lowest first."""
    found, waiting = [], [(start, 1.0)]
    while waiting:
        at, chance = waiting.pop()
        if at.is_open and chance >= LEAST[0]:
            found.append(chance)
            yes = at.chance
            waiting += [(at.after(True)[0], chance * yes), (at.after(False)[0], chance * (1 - yes))]
    return sorted(found)


def plans_of(lines: Sequence[Cut], places: int) -> list[Plan]:
    """Return a plan per line: as far ahead as there is room for all.

    A lower chance only adds questions, so the lowest that fits is found by halving; many lines stand at one place.
    """
    sizes = Counter(lines)

    def is_too_much(least: float) -> bool:
        return sum(n * n_questions(line, least) for line, n in sizes.items()) > places

    least = LEAST[bisect_left(LEAST[:-1], True, key=lambda least: not is_too_much(least))]
    plans = {line: plan_of(line, least) for line in sizes}
    return [plans[line] for line in lines]


def walked(plan: Plan, answers: Sequence[int]) -> tuple[Cut, tuple[int, ...]]:
    """Return where a line stands after the answers to its plan, and its changes in their new order.

    An answer is 1 for yes, 0 for no; it ends where one is not known, which is below 0.
    """
    at = 0
    while at >= 0:
        if answers[at] < 0:
            return plan.before[at]
        at = plan.then[at][answers[at]]
    return plan.ends[-1 - at]


def _moved(order: tuple[int, ...], front: int, source: int) -> tuple[int, ...]:
    """Return the order with the change at `source` behind the first `front`; as it is if that is no way forward."""
    if source < front:
        return order
    return (*order[:front], order[source], *order[front:source], *order[source + 1 :])
