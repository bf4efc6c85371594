"""One person's conversation: a row, what may change and how, and what was saved. Kept in memory, per session.

Sessions  ->  Session (cases, saved plans)  ->  Case (a row and its Wishes)  ->  Ask
"""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import pandas as pd

from onbmacf._views.plans import Ask
from onbmacf.errors import ParameterError
from onbmacf.explainer import ONBMACF
from onbmacf.explanations import Explanations
from onbmacf.rules import Rule, Rules
from onbmacf.web.problems import not_found

MOST_SESSIONS, MOST_CASES, MOST_SAVED = 200, 100, 12
MOST_PLANS = 5
COSTS = {"easy": 1 / 3, "usual": 1.0, "hard": 3.0}  # what a change of a feature costs, in the order of plans
SPARE = 4  # plans to choose from, per plan shown, where features are easy or hard


@dataclass(frozen=True)
class Wishes:
    """What a person says about features and plans."""

    locked: frozenset[Hashable] = frozenset()
    low: Mapping[Hashable, float] = field(default_factory=dict)
    high: Mapping[Hashable, float] = field(default_factory=dict)
    direction: Mapping[Hashable, str] = field(default_factory=dict)  # "up" or "down"
    ease: Mapping[Hashable, str] = field(default_factory=dict)  # "easy" or "hard"
    dial: float | None = None
    n: int = 3
    target: Any = None

    def rules(self, own: Rules) -> Rules:
        """Return the rules of a map, in which dates are numbers, narrowed by the wishes."""
        names = {*self.low, *self.high, *self.direction}
        narrowed = {name: self._narrowed(own.features.get(name, Rule()), name) for name in names}
        return replace(own, features={**own.features, **narrowed})

    def ask(self, explainer: ONBMACF, ranges: bool = False) -> Ask:
        """Return the question that the wishes make."""
        schema, own = explainer.schema_, explainer.fitted_.constraints.rules
        if len(self.locked) == len(schema.names):
            raise ParameterError("every feature is locked: nothing could change. Unlock at least one.")
        rules = self.rules(own)
        return Ask(
            target=self.target,
            n=self.n * SPARE if self.ease else self.n,
            plausibility=self.dial,
            vary=tuple(name for name in schema.names if name not in self.locked),
            rules=None if rules == own else rules,
            ranges=ranges,
        )

    def _narrowed(self, rule: Rule, name: Hashable) -> Rule:
        low, high = max(rule.low, self.low.get(name, -inf)), min(rule.high, self.high.get(name, inf))
        return replace(rule, low=low, high=high, direction=self.direction.get(name, rule.direction))


@dataclass(frozen=True, eq=False)
class Case:
    """A row and everything asked about it so far."""

    id: str
    row: pd.DataFrame  # one line, with the table's columns
    title: str
    wishes: Wishes
    what_if: pd.DataFrame | None = None
    view: tuple[Hashable, Hashable, int] | None = None  # two features and the plan that are drawn
    answers: dict[Any, Explanations] = field(default_factory=dict)  # by what was asked

    def with_wishes(self, wishes: Wishes) -> "Case":
        """Return the case with other wishes; what was answered to the old ones is forgotten."""
        return replace(self, wishes=wishes, answers={}, view=None)


@dataclass(frozen=True, eq=False)
class Saved:
    """A plan that a person wants to keep."""

    id: str
    case: str
    title: str
    answers: Explanations  # of the one row
    place: int  # which of its counterfactuals


class Session:
    """What one browser has open and has saved."""

    def __init__(self) -> None:
        self.cases: OrderedDict[str, Case] = OrderedDict()
        self.saved: list[Saved] = []

    def keep(self, case: Case) -> Case:
        """Keep a case, as the newest; the oldest goes where there are too many."""
        self.cases[case.id] = case
        self.cases.move_to_end(case.id)
        while len(self.cases) > MOST_CASES:
            self.cases.popitem(last=False)
        return case

    def save(self, case: Case, answers: Explanations, place: int) -> None:
        """Save a plan; the oldest goes where there are too many."""
        title = f"{case.title}, plan {place + 1}"
        self.saved = [*self.saved, Saved(new_id(), case.id, title, answers, place)][-MOST_SAVED:]

    def forget(self, saved: str) -> None:
        """Remove a saved plan."""
        self.saved = [plan for plan in self.saved if plan.id != saved]


class Sessions:
    """All sessions, the latest last; the oldest goes where there are too many."""

    def __init__(self) -> None:
        self._all: OrderedDict[str, Session] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, session: str) -> Session:
        """Return a session, a new one where there is none yet."""
        with self._lock:
            found = self._all.setdefault(session, Session())
            self._all.move_to_end(session)
            while len(self._all) > MOST_SESSIONS:
                self._all.popitem(last=False)
            return found


def case_of(session: Session, name: str, table: pd.DataFrame, wishes: Wishes) -> Case:
    """Return a case by its name: one that is open, or a row of the table by its place (r17)."""
    if name in session.cases:
        return session.cases[name]
    place = int(name[1:]) if name[:1] == "r" and name[1:].isdecimal() and len(name) < 12 else -1
    if not 0 <= place < len(table):
        raise not_found("row: it was closed, or the service was started again")
    return session.keep(Case(name, table.iloc[[place]], f"Row {table.index[place]}", wishes))


def new_id() -> str:
    """Return a name that nobody guesses."""
    return secrets.token_urlsafe(9)
