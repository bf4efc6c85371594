"""What the user forbids or prefers, as data: per feature, between features, and for the whole counterfactual.

    Rules(features={"age": Rule(direction="up")}, at_most=[("debt", "income")], max_changes=3)
    Rules(relations=["if education rises, age must rise by at least 2", "stocks + bonds = 100"])
    Rules.from_toml("rules.toml")

A rule speaks of changed values only: a row that breaks a rule itself may keep what it has. Contradictions are errors
that name the rule, before any work. A kind of rule about one feature is a field of `Rule` and an entry in KINDS,
all in this file; `_table/constraints.py` applies whatever is there.
"""

import tomllib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from math import inf
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from onbmacf._base.arrays import Mask, Matrix
from onbmacf._base.checks import (
    Check,
    check_count,
    checked,
    count,
    did_you_mean,
    level,
    listed,
    number,
    optional,
    sequence,
    shortened,
    table,
    word,
)
from onbmacf._base.missing import WEIGHTS
from onbmacf._columns.converters import Converter
from onbmacf._columns.moments import bound, end_in, is_moment_text, step_in
from onbmacf._columns.relations import Relation, quoted_name, read, resolved
from onbmacf._text import records as short
from onbmacf._text.wording import shown, visible
from onbmacf.errors import ParameterError

DIRECTIONS = ("up", "down")
EPSILON = 1e-9  # of a step: rounding error forgiven
Codes = Callable[[Iterable[Any]], Matrix]  # levels -> the numbers that stand for them


# What the fields of a rule may hold, wherever it comes from; what contradicts itself is found by the kinds below.
PAIRS = sequence(sequence(level, length=2))
RULE_KEYS: dict[str, Check] = {
    "direction": optional(word(*DIRECTIONS)),
    "low": bound,
    "high": bound,
    "allowed": optional(sequence(level)),
    "step": optional(bound),
    "weight": number(),
    "forbidden": PAIRS,
}
RULES_KEYS: dict[str, Check] = {"features": table, "at_most": PAIRS, "max_changes": optional(count(1))}
RULES_KEYS["immutable"] = sequence(level)
RULES_KEYS["relations"] = sequence(read)


@dataclass(frozen=True)
class Rule:
    """What holds for one feature, wherever a counterfactual changes it.

    Parameters
    ----------
    direction : {"up", "down"}, optional
        The only way the value may move. Not for categories, which have no order.
    low, high : float, date, time, duration or period
        Smallest and largest value it may change to. For numbers and for dates and the like, which may also be written
        as text: ``low="2024-05-31"``. They are kept as text (decision 0068).
    allowed : sequence, optional
        Levels it may change to. For features with levels.
    step : float or duration, optional
        Values are ``low`` (or 0, or 1970-01-01) plus a whole number of steps. Between dates and times a step is a
        duration, such as ``"7 days"`` or ``pd.Timedelta(hours=36)``, between periods a number of them.
    weight : float
        What a change costs, compared with 1, the cost of other features: it stretches the feature's distances.
    forbidden : sequence of pairs
        Transitions (from, to) between levels that are not allowed.

    Examples
    --------
    >>> Rule(direction="up", high=65)
    Rule(direction='up', high=65)
    >>> Rule(low="2024-01-01", step="7 days")
    Rule(low='2024-01-01', step='7 days')

    """

    direction: str | None = None
    low: Any = -inf
    high: Any = inf
    allowed: tuple[Any, ...] | None = None
    step: Any = None
    weight: float = 1.0
    forbidden: tuple[tuple[Any, Any], ...] = ()

    def __post_init__(self) -> None:
        for name, value in checked("Rule", {name: getattr(self, name) for name in RULE_KEYS}, RULE_KEYS).items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return short.only_set(self)

    @property
    def kinds(self) -> "tuple[RuleKind, ...]":
        """The kinds of prohibition that this rule holds."""
        return tuple(kind for kind in KINDS if kind.is_set(self))

    @property
    def has_only_steps(self) -> bool:
        """Whether it forbids nothing but values between steps."""
        return all(isinstance(kind, _Step) for kind in self.kinds)

    @property
    def is_measured(self) -> bool:
        """Whether its range and step are numbers, and no text that waits for its column."""
        return not any(isinstance(value, str) for value in (self.low, self.high, self.step))

    def measured(self, name: Hashable, by: Converter | None) -> "Rule":
        """Return the rule with its range and step as numbers in the unit of a column."""
        low, high = (end_in(f"rule for {shortened(name)}: {end}", getattr(self, end), by) for end in ("low", "high"))
        return replace(self, low=low, high=high, step=step_in(f"rule for {shortened(name)}: step", self.step, by))

    def check(self, name: Hashable) -> None:
        """Raise an error that names the rule if it contradicts itself."""
        for kind in self.kinds:
            kind.check(self, f"rule for {shortened(name)}")
        least, most = WEIGHTS
        if not least <= self.weight <= most:  # beyond, distances are no numbers any more, or no different ones
            name = shortened(name)
            raise ParameterError(
                f"rule for {name}: weight must be above 0, from {least:g} to {most:g}, got {self.weight!r}."
            )

    def only_weight(self) -> "Rule":
        """Return the cost without any prohibition."""
        return Rule(weight=self.weight)


class RuleKind:
    """One kind of prohibition: which rules hold it, what it forbids, where it moves a value, how it reads.

    A subclass overrides what applies to it; values and levels are numbers here, one per line.
    """

    needs: ClassVar[str] = "numbers"  # "numbers", "levels" or "order"
    is_exact: ClassVar[bool] = True  # whether no rounding error of the column's dtype is forgiven

    def is_set(self, rule: Rule) -> bool:
        """Say whether a rule holds this prohibition."""
        raise NotImplementedError

    def check(self, rule: Rule, name: str) -> None:
        """Raise an error that starts with `name` if the rule contradicts itself."""

    def levels(self, rule: Rule) -> tuple[Any, ...]:
        """Return the levels that a rule names."""
        return ()

    def keeps(self, rule: Rule, value: Matrix, before: Matrix, codes: Codes) -> Mask:
        """Say which values, changed from those before, the rule allows."""
        raise NotImplementedError

    def move(self, rule: Rule, value: Matrix) -> Matrix:
        """Return the nearest values that the rule allows; as they are where it has none."""
        return value

    def words(self, rule: Rule) -> str:
        """Return the prohibition in words."""
        raise NotImplementedError


class _Direction(RuleKind):
    needs = "order"

    def is_set(self, rule: Rule) -> bool:
        return rule.direction is not None

    def keeps(self, rule: Rule, value: Matrix, before: Matrix, codes: Codes) -> Mask:
        return value >= before if rule.direction == "up" else value <= before

    def words(self, rule: Rule) -> str:
        return f"only {rule.direction}"


class _Range(RuleKind):
    def is_set(self, rule: Rule) -> bool:
        return rule.low != -inf or rule.high != inf

    def check(self, rule: Rule, name: str) -> None:
        if not rule.is_measured:
            return
        if not rule.low <= rule.high:
            raise ParameterError(f"{name}: the range {rule.low} to {rule.high} is reversed.")
        if rule.low == inf or rule.high == -inf:
            raise ParameterError(f"{name}: the range {rule.low} to {rule.high} holds no number.")

    def keeps(self, rule: Rule, value: Matrix, before: Matrix, codes: Codes) -> Mask:
        return (value >= rule.low) & (value <= rule.high)

    def move(self, rule: Rule, value: Matrix) -> Matrix:
        return np.clip(value, rule.low, rule.high)

    def words(self, rule: Rule) -> str:
        if rule.high == inf:
            return f"{'no earlier than' if is_moment_text(rule.low) else 'at least'} {shown(rule.low)}"
        if rule.low == -inf:
            return f"{'no later than' if is_moment_text(rule.high) else 'at most'} {shown(rule.high)}"
        return f"from {shown(rule.low)} to {shown(rule.high)}"


class _Allowed(RuleKind):
    needs = "levels"

    def is_set(self, rule: Rule) -> bool:
        return rule.allowed is not None

    def check(self, rule: Rule, name: str) -> None:
        if not rule.allowed:
            raise ParameterError(f"{name}: no level is allowed. Make it immutable instead.")

    def levels(self, rule: Rule) -> tuple[Any, ...]:
        return rule.allowed or ()

    def keeps(self, rule: Rule, value: Matrix, before: Matrix, codes: Codes) -> Mask:
        return np.isin(value, codes(rule.allowed or ()))

    def words(self, rule: Rule) -> str:
        return f"one of {listed(rule.allowed or ())}"


class _Step(RuleKind):
    is_exact = False

    def is_set(self, rule: Rule) -> bool:
        return rule.step is not None

    def check(self, rule: Rule, name: str) -> None:
        if not rule.is_measured:
            return
        if not 0 < (rule.step or 0) < inf:
            raise ParameterError(f"{name}: step must be above 0, got {rule.step!r}.")
        if 0 < rule.high - rule.low < (rule.step or 0):
            raise ParameterError(f"{name}: a step of {rule.step} does not fit the range {rule.low} to {rule.high}.")

    def keeps(self, rule: Rule, value: Matrix, before: Matrix, codes: Codes) -> Mask:
        steps = (value - anchor(rule)) / (rule.step or 1.0)
        return np.asarray(np.abs(steps - np.round(steps)) <= EPSILON * np.maximum(1.0, np.abs(steps)))

    def move(self, rule: Rule, value: Matrix) -> Matrix:
        step = rule.step or 1.0
        value = anchor(rule) + np.round((value - anchor(rule)) / step) * step
        return np.where(value > rule.high, value - step, np.where(value < rule.low, value + step, value))

    def words(self, rule: Rule) -> str:
        return f"in steps of {shown(rule.step)}"


class _Forbidden(RuleKind):
    needs = "levels"

    def is_set(self, rule: Rule) -> bool:
        return bool(rule.forbidden)

    def levels(self, rule: Rule) -> tuple[Any, ...]:
        return tuple(level for pair in rule.forbidden for level in pair)

    def keeps(self, rule: Rule, value: Matrix, before: Matrix, codes: Codes) -> Mask:
        pairs = [codes(pair) for pair in rule.forbidden]
        return ~np.any([(before == old) & (value == new) for old, new in pairs], axis=0)

    def words(self, rule: Rule) -> str:
        return ", ".join(f"not from {a!r} to {b!r}" for a, b in rule.forbidden)


KINDS: tuple[RuleKind, ...] = (_Direction(), _Range(), _Allowed(), _Step(), _Forbidden())  # in the order of moving


@dataclass(frozen=True)
class Rules:
    """All rules of a table. Empty by default.

    Parameters
    ----------
    features : mapping of name to Rule
        What holds for single features.
    at_most : sequence of pairs
        Pairs (a, b) of numeric features: a must be at most b wherever one of them is changed.
    max_changes : int, optional
        The most features that a counterfactual may change.
    immutable : sequence of hashable
        Features that must keep their value, beside those of the schema: a schema that is given these rules takes them
        over as its own.
    relations : sequence of str
        Rules between features, as sentences: ``"if education rises, age must rise by at least 2"``, ``"if housing is
        own, rent is 0"``, ``"stocks + bonds + cash = 100"`` (or ``<=``, ``>=``), ``"experience moves with age"``, also
        ``"... times 0.5"``. They bind where one of their features changes. A name that could be misread is put in
        quotes. After a name may stand: rises, falls (also by at least so much), changes, stays, is, is not, is at
        least, is at most.

    Examples
    --------
    >>> rules = Rules({"age": Rule(direction="up")}, at_most=[("debt", "income")], max_changes=3)
    >>> Rules.from_dict({"features": {"age": {"direction": "up"}}}).features["age"] == rules.features["age"]
    True

    """

    features: Mapping[Hashable, Rule] = field(default_factory=dict)
    at_most: tuple[tuple[Hashable, Hashable], ...] = ()
    max_changes: int | None = None
    immutable: tuple[Hashable, ...] = ()
    relations: tuple[Any, ...] = ()  # of sentences, or of what they read as

    def __post_init__(self) -> None:
        for role in ("immutable", "relations"):
            object.__setattr__(self, role, RULES_KEYS[role](role, getattr(self, role)))
        if not isinstance(self.features, Mapping):
            raise ParameterError(f"features must map names to rules, got {shortened(self.features)}.")
        for name, rule in self.features.items():
            if not isinstance(rule, Rule):
                raise ParameterError(f"rule for {shortened(name)} must be a Rule, got {shortened(rule)}.")
        object.__setattr__(self, "at_most", PAIRS("at_most", self.at_most))
        if self.max_changes is not None:
            check_count("max_changes", self.max_changes)

    @classmethod
    def from_toml(cls, path: Any) -> "Rules":
        """Read rules from a TOML file with the keys of `from_dict`.

        ::

            immutable = ["sex"]
            max_changes = 3
            at_most = [["debt", "income"]]
            relations = ["if education rises, age must rise by at least 2"]
            [features.age]
            direction = "up"
        """
        return cls.from_dict(toml_of(path), str(path))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], origin: str = "rules") -> "Rules":
        """Read rules from plain dicts and lists; `origin` names them in error messages."""
        found = checked(origin, content, RULES_KEYS)
        named = found.get("features", {}).items()
        entries = {name: checked(f"{origin}: features.{name}", entry, RULE_KEYS) for name, entry in named}
        features = {name: Rule(**entry) for name, entry in entries.items()}
        return cls(features, **{name: value for name, value in found.items() if name != "features"})

    def __repr__(self) -> str:
        return "\n".join(["Rules", *(f"  {words}" for words in self.in_words())]) if self else "Rules()"

    def __bool__(self) -> bool:
        of_all = self.at_most or self.max_changes is not None or self.immutable or self.relations
        return bool(self.features or of_all)

    def in_words(self) -> list[str]:
        """Return every rule as a line of text.

        >>> Rules({"age": Rule(direction="up")}, at_most=[("debt", "income")], max_changes=3).in_words()
        ['age: only up', 'debt <= income', 'at most 3 changes']
        """
        lines = [f"{visible(name)}: {visible(summary(rule))}" for name, rule in self.features.items()]
        lines += [f"{visible(low)} <= {visible(high)}" for low, high in self.at_most]
        lines += [visible(one.words()) for one in self.relations]
        if self.max_changes is not None:
            lines.append(self.most())
        return lines + [f"{visible(name)}: immutable" for name in self.immutable]

    def most(self) -> str:
        """Return in words how many features may change."""
        return f"at most {self.max_changes} change{'s' * (self.max_changes != 1)}"

    def check(self, names: Iterable[Hashable]) -> None:
        """Raise an error that names the rule where one contradicts itself, another, or the table's columns."""
        names = list(names)
        mentioned = [*self.features, *(name for pair in self.at_most for name in pair), *self.immutable]
        for name in mentioned:
            if name not in names:
                raise ParameterError(
                    f"rule for {shortened(name)}: there is no such feature.{did_you_mean(name, names)}"
                )
        for name, rule in self.features.items():
            rule.check(name)
        for relation in self.relations:
            resolved(relation, names)
        graph: dict[Hashable, set[Hashable]] = {}
        for low, high in self.at_most:
            graph.setdefault(low, set()).add(high)
        try:
            list(TopologicalSorter(graph).static_order())
        except CycleError as error:
            raise ParameterError(f"the rules a <= b go in a circle: {listed(error.args[1])}.") from error

    def singly_without(self) -> Iterator[tuple[str, "Rules"]]:
        """Yield each rule's name and the rules without it."""
        for name, rule in self.features.items():
            if rule.kinds:
                rest = {**self.features, name: rule.only_weight()}
                yield f"the rule for {shortened(name)} ({describe(rule)})", replace(self, features=rest)
        for low, high in self.at_most:
            rest_pairs = tuple(pair for pair in self.at_most if pair != (low, high))
            yield f"the rule {low!r} <= {high!r}", replace(self, at_most=rest_pairs)
        for one in self.relations:
            yield f"the rule {one.words()!r}", replace(self, relations=tuple(o for o in self.relations if o is not one))
        if self.max_changes is not None:
            yield f"the rule of {self.most()}", replace(self, max_changes=None)

    def only_weights(self) -> "Rules":
        """Return the costs without any prohibition."""
        return Rules({name: rule.only_weight() for name, rule in self.features.items()})


def sentence(rule: Relation) -> str:
    """Return a rule between features as a sentence that is read again: names in quotes where that is needed."""
    return rule.words(quoted_name)


def toml_of(path: Any) -> dict[str, Any]:
    """Return what a TOML file holds."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # also text that is not UTF-8, or is no TOML
        raise ParameterError(f"rules file {path}: {error}") from error


def describe(rule: Rule) -> str:
    """Return a rule's prohibitions in words; empty where it has none."""
    return ", ".join(kind.words(rule) for kind in rule.kinds)


def summary(rule: Rule) -> str:
    """Return a rule's prohibitions and its cost in words."""
    cost = [] if rule.weight == 1 else [f"costs {shown(rule.weight)}"]
    return ", ".join([kind.words(rule) for kind in rule.kinds] + cost) or "no limit"


def anchor(rule: Rule) -> float:
    """Return the value from which steps are counted."""
    return float(rule.low) if rule.low > -inf else 0.0
