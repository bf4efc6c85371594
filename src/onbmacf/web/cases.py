"""What the page lets a person ask (`Preferences`), and what it keeps of it in memory, per session.

form  ->  Preferences  ->  Question                what a person wants, as a question to the library
Sessions  ->  Session  ->  Case, SavedPlan    what each browser has open
"""

import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._base.arrays import take
from onbmacf._base.checks import shortened, whole_number
from onbmacf._explain.request import Question
from onbmacf._text.wording import joined, shown
from onbmacf._views.fields import Field, read_end
from onbmacf._views.plans import Source, label_of
from onbmacf.errors import ParameterError
from onbmacf.explainer import ONBMACF
from onbmacf.explanation import Counterfactual
from onbmacf.explanations import Explanations
from onbmacf.rules import Rule, Rules, sentence
from onbmacf.web.responses import HTTPProblem, not_found
from onbmacf.web.security import new_id

MOST_SESSIONS, MOST_CASES, MOST_SAVED = 200, 100, 12
MOST_PLANS = 5
DIRECTIONS = ("up", "down")
COSTS = {"easy": 1 / 3, "usual": 1.0, "hard": 3.0}  # what a change of a feature costs, in the order of plans
SPARE = 4  # plans to choose from, per plan shown, where features are easy or hard


# --- preferences ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Preferences:
    """What a person says about features and plans."""

    locked: frozenset[Hashable] = frozenset()
    low: Mapping[Hashable, float] = field(default_factory=dict)
    high: Mapping[Hashable, float] = field(default_factory=dict)
    direction: Mapping[Hashable, str] = field(default_factory=dict)  # "up" or "down"
    ease: Mapping[Hashable, str] = field(default_factory=dict)  # "easy" or "hard"
    only: Mapping[Hashable, tuple[Any, ...]] = field(default_factory=dict)  # the levels that a feature may change to
    relations: tuple[Any, ...] = ()  # rules between features
    dial: float | None = None
    n: int = 3
    target: Any = None

    @classmethod
    def from_form(cls, form: Mapping[str, str], fields: list[Field], source: Source) -> "Preferences":
        """Return what a form says; a field left empty says nothing, a fault names the field and what is allowed."""
        ends: dict[str, dict[Hashable, float]] = {"low": {}, "high": {}}
        for entry in fields:
            for end in ends if entry.is_number else ():
                if text := form.get(f"{entry.id}-{end}", "").strip():
                    ends[end][entry.name] = read_end(entry, text)
        ease = {entry.name: form.get(f"{entry.id}-ease", "") for entry in fields}
        direction = {entry.name: form.get(f"{entry.id}-direction", "") for entry in fields}
        target = form.get("target", "")
        return cls(
            locked=frozenset(entry.name for entry in fields if form.get(f"{entry.id}-lock")),
            low=ends["low"],
            high=ends["high"],
            direction={name: way for name, way in direction.items() if way in DIRECTIONS},
            ease={name: kind for name, kind in ease.items() if kind in COSTS and kind != "usual"},
            only={entry.name: chosen for entry in fields if (chosen := _chosen_levels(entry, form))},
            relations=_read_relations(form.get("relations", ""), source),
            dial=_read_dial(form.get("dial", "")),
            n=_read_count(form.get("n", "3")),
            target=label_of(target, source.classes) if target else source.target,
        )

    @property
    def relation_lines(self) -> str:
        """The rules between features, one per line."""
        return "\n".join(map(sentence, self.relations))

    def ask(self, explainer: ONBMACF, ranges: bool = False) -> Question:
        """Return the question that the preferences make."""
        names, fitted_rules = explainer.schema_.names, explainer.fitted_.constraints.rules
        if len(self.locked) == len(names):
            raise ParameterError("every feature is locked: nothing could change. Unlock at least one.")
        for name, low in self.low.items():
            if low > (high := self.high.get(name, inf)):
                called = explainer.schema_.labels.name(name)
                raise ParameterError(f"{called!r}: nothing is at least {shown(low)} and at most {shown(high)}.")
        rules = self.narrowed(fitted_rules)
        return Question(
            target=self.target,
            n=self.n * SPARE if self.ease else self.n,
            plausibility=self.dial,
            vary=tuple(name for name in names if name not in self.locked),
            rules=None if rules == fitted_rules else rules,
            ranges=ranges,
        )

    def with_suggested(self, suggested: Mapping[Hashable, str]) -> "Preferences":
        """Return the preferences with what names suggest (`Schema.suggested`); what was said before stays."""
        stays = {name for name, what in suggested.items() if what == "immutable"}
        ways = {name: what for name, what in suggested.items() if what in DIRECTIONS}
        return replace(self, locked=self.locked | stays, direction={**ways, **self.direction})

    def conditions(self, explainer: ONBMACF) -> list[str]:
        """Return what plans keep to, a line each, for a page on paper."""
        wanted = self.target if isinstance(self.target, list) else [] if self.target is None else [self.target]
        words = explainer.schema_.labels
        kept = [words.name(name) for name in explainer.schema_.names if name in self.locked]
        lines = [f"Wanted: {joined([shown(label) for label in wanted], 'or')}"] if wanted else []
        lines += [f"Kept as they are: {joined(kept)}"] if kept else []
        lines += words.rules(self.narrowed(explainer.fitted_.constraints.rules)).in_words()
        lines += [f"{words.name(name)}: {kind} to change" for name, kind in self.ease.items()]
        dial = explainer.plausibility if self.dial is None else self.dial
        return [*lines, f"From nearest (0) to most typical (1): {shown(dial)}"]

    def narrowed(self, rules: Rules) -> Rules:
        """Return the rules of a map, in which dates are numbers, narrowed by the preferences."""
        features = dict(rules.features)
        for name in dict.fromkeys([*self.low, *self.high, *self.direction, *self.only]):
            rule, only = features.get(name, Rule()), self.only.get(name)
            both = [level for level in only or () if rule.allowed is None or level in rule.allowed]
            features[name] = replace(
                rule,
                low=max(rule.low, self.low.get(name, -inf)),
                high=min(rule.high, self.high.get(name, inf)),
                direction=self.direction.get(name, rule.direction),
                allowed=rule.allowed if only is None else tuple(both),
            )
        return replace(rules, features=features, relations=(*rules.relations, *self.relations))


def _chosen_levels(entry: Field, form: Mapping[str, str]) -> tuple[Any, ...]:
    """Return the levels that are ticked; none: any."""
    levels = entry.feature.levels or () if entry.offers_levels else ()
    return tuple(level for place, level in enumerate(levels) if form.get(f"{entry.id}-only{place}"))


def _read_relations(text: str, source: Source) -> tuple[Any, ...]:
    """Return the rules between features that a form has, one per line, with the names of columns or of people."""
    explainer = source.explainer
    called = {explainer.schema_.labels.name(name): str(name) for name in explainer.schema_.names}
    rules = Rules(relations=tuple(line for line in map(str.strip, text.splitlines()) if line))
    found = tuple(one.named([called.get(str(name), name) for name in one.features]) for one in rules.relations)
    explainer.fitted_.under(explainer.schema_.with_rules(Rules(relations=found))).constraints  # noqa: B018 - checked
    return found


def _read_dial(text: str) -> float | None:
    if not text:
        return None
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise HTTPProblem(422, "Parameter error", f"The dial must be from 0 to 1, got {shortened(text)}.")
    return share


def _read_count(text: str) -> int:
    if not 1 <= whole_number(text) <= MOST_PLANS:
        raise HTTPProblem(422, "Parameter error", f"There may be 1 to {MOST_PLANS} plans, got {shortened(text)}.")
    return int(text)


def order_by_ease(answers: Explanations, preferences: Preferences, explainer: ONBMACF) -> Explanations:
    """Return the answers for one row with its cheapest plans first, where features are easy or hard; as many as wanted.

    The cost of a plan is the sum of its changes, each as a share of the feature's range, times what the feature costs.
    """
    batch, features, space = answers.batch, explainer.schema_.features, explainer.fitted_.space
    if not preferences.ease or not len(batch.factual):
        return answers
    before, after = space.form.numbers(answers.rows), space.form.numbers(batch.values)  # dates are numbers, too
    low, high = space.ranges(explainer.Z_).T
    shares = np.abs(after - before) / np.where(high > low, high - low, 1.0)
    shares[:, [not feature.is_numeric for feature in features]] = 1.0
    costs = shares * [COSTS[preferences.ease.get(feature.name, "usual")] for feature in features]
    totals = np.where(batch.changed, costs, 0.0).sum(axis=1)
    order = np.argsort(totals.round(9), kind="stable")[: preferences.n]
    return replace(answers, batch=take(batch, order))


# --- cases and sessions -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Case:
    """A row and everything that was asked about it so far."""

    id: str
    row: pd.DataFrame  # one line, with the table's columns
    title: str
    preferences: Preferences
    what_if: pd.DataFrame | None = None
    view: tuple[Hashable, Hashable, int] | None = None  # two features and the plan that are drawn
    memo: dict[Hashable, Any] = field(default_factory=dict)  # answers, by what was asked

    def with_preferences(self, preferences: Preferences) -> "Case":
        """Return the case with other preferences; the answers to the old ones are forgotten."""
        return replace(self, preferences=preferences, memo={}, view=None)


@dataclass(frozen=True, eq=False)
class SavedPlan:
    """A plan that a person wants to keep."""

    id: str
    case_id: str
    title: str
    answers: Explanations  # of the one row
    place: int  # which of its counterfactuals

    @property
    def counterfactual(self) -> Counterfactual:
        """The plan itself, as people call its values."""
        return self.answers[0].in_words().counterfactuals[self.place]


class Session:
    """What one browser has open and has saved."""

    def __init__(self) -> None:
        self.cases: OrderedDict[str, Case] = OrderedDict()
        self.saved: list[SavedPlan] = []
        self.suggested: Mapping[Hashable, str] | None = None  # what was agreed to; None: the question is still open

    def answer_suggestions(self, suggested: Mapping[Hashable, str]) -> None:
        """Take the answer to what names of columns suggest, for open rows and for those to come; empty: nothing."""
        self.suggested = suggested
        for name, case in self.cases.items() if suggested else ():
            self.cases[name] = case.with_preferences(case.preferences.with_suggested(suggested))

    def start(self, case: Case) -> Case:
        """Open a row with what was agreed to."""
        return self.keep(replace(case, preferences=case.preferences.with_suggested(self.suggested or {})))

    def case(self, name: str, table: pd.DataFrame, preferences: Preferences) -> Case:
        """Return a case by its name: one that is open, or a row of the table by its place (r17)."""
        if name in self.cases:
            return self.cases[name]
        place = whole_number(name[1:]) if name[:1] == "r" else -1
        if not 0 <= place < len(table):
            raise not_found("row: it was closed, or the service was started again")
        return self.start(Case(name, table.iloc[[place]], f"Row {table.index[place]}", preferences))

    def keep(self, case: Case) -> Case:
        """Keep a case, as the newest; the oldest goes where there are too many."""
        self.cases[case.id] = case
        self.cases.move_to_end(case.id)
        while len(self.cases) > MOST_CASES:
            self.cases.popitem(last=False)
        return case

    def save(self, case: Case, answers: Explanations, place: int) -> None:
        """Save a plan; the oldest goes where there are too many."""
        plan = SavedPlan(new_id(), case.id, f"{case.title}, plan {place + 1}", answers, place)
        self.saved = [*self.saved, plan][-MOST_SAVED:]

    def forget(self, plan_id: str) -> None:
        """Remove a saved plan."""
        self.saved = [plan for plan in self.saved if plan.id != plan_id]


class Sessions:
    """All sessions, the latest last; the oldest goes where there are too many."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, session_id: str) -> Session:
        """Return a session, a new one where there is none yet."""
        with self._lock:
            found = self._sessions.setdefault(session_id, Session())
            self._sessions.move_to_end(session_id)
            while len(self._sessions) > MOST_SESSIONS:
                self._sessions.popitem(last=False)
            return found
