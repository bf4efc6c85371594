"""What the user forbids or prefers, as data: per feature, between features, and for the whole counterfactual.

    Rules(features={"age": Rule(direction="up")}, at_most=[("debt", "income")], max_changes=3)
    Rules.from_toml("rules.toml")

A rule speaks of changed values only: a row that breaks a rule itself may keep what it has. Contradictions are
errors that name the rule, before any work. `constraints.py` applies the rules.
"""

import tomllib
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from math import inf, isfinite
from pathlib import Path
from typing import Any

from onbmacf._base.checks import check_choice, check_count, did_you_mean, listed
from onbmacf.errors import ParameterError

DIRECTIONS = ("up", "down")
TOML_KEYS = ("direction", "low", "high", "allowed", "step", "weight", "forbidden")


@dataclass(frozen=True)
class Rule:
    """What holds for one feature."""

    direction: str | None = None  # "up" or "down": the only way it may move
    low: float = -inf
    high: float = inf
    allowed: tuple[Any, ...] | None = None  # levels it may change to
    step: float | None = None  # values are low (or 0) plus whole steps
    weight: float = 1.0  # what a change costs, in units of the usual cost
    forbidden: tuple[tuple[Any, Any], ...] = ()  # (from, to) pairs of levels

    def __post_init__(self) -> None:
        if self.allowed is not None:
            object.__setattr__(self, "allowed", tuple(self.allowed))
        object.__setattr__(self, "forbidden", tuple((a, b) for a, b in self.forbidden))

    def check(self, name: Hashable) -> None:
        """Raise an error that names the rule if it contradicts itself."""
        if self.direction is not None:
            check_choice(f"rule for {name!r}: direction", self.direction, DIRECTIONS)
        if not self.low <= self.high:
            raise ParameterError(f"rule for {name!r}: the range {self.low} to {self.high} is reversed.")
        if self.allowed is not None and not self.allowed:
            raise ParameterError(f"rule for {name!r}: no level is allowed. Make it immutable instead.")
        if self.step is not None and not 0 < self.step < inf:
            raise ParameterError(f"rule for {name!r}: step must be above 0, got {self.step!r}.")
        if not (isfinite(self.weight) and self.weight > 0):
            raise ParameterError(f"rule for {name!r}: weight must be above 0, got {self.weight!r}.")


@dataclass(frozen=True)
class Rules:
    """All rules of a table. Empty by default."""

    features: Mapping[Hashable, Rule] = field(default_factory=dict)
    at_most: tuple[tuple[Hashable, Hashable], ...] = ()  # (a, b): a <= b
    max_changes: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "at_most", tuple((a, b) for a, b in self.at_most))
        if self.max_changes is not None:
            check_count("max_changes", self.max_changes)

    @classmethod
    def from_toml(cls, path: Any) -> "Rules":
        """Read rules from a small TOML file.

        max_changes = 3
        at_most = [["debt", "income"]]
        [features.age]
        direction = "up"
        """
        try:
            content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ParameterError(f"rules file {path}: {error}") from error
        return cls.from_dict(content, str(path))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], origin: str = "rules") -> "Rules":
        """Read rules from plain dicts and lists."""
        _check_keys(origin, content, ("features", "at_most", "max_changes"))
        features = {}
        for name, entry in content.get("features", {}).items():
            _check_keys(f"{origin}: features.{name}", entry, TOML_KEYS)
            features[name] = Rule(**entry)
        return cls(features, tuple(content.get("at_most", ())), content.get("max_changes"))

    def __bool__(self) -> bool:
        return bool(self.features or self.at_most or self.max_changes is not None)

    def check(self, names: Iterable[Hashable]) -> None:
        """Raise an error that names the rule where one contradicts itself, another, or the table's columns."""
        names = list(names)
        mentioned = [*self.features, *(name for pair in self.at_most for name in pair)]
        for name in mentioned:
            if name not in names:
                raise ParameterError(f"rule for {name!r}: there is no such feature.{did_you_mean(name, names)}")
        for name, rule in self.features.items():
            rule.check(name)
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
            if rule != Rule(weight=rule.weight):
                rest = {**self.features, name: Rule(weight=rule.weight)}
                yield f"the rule for {name!r} ({describe(rule)})", replace(self, features=rest)
        for low, high in self.at_most:
            rest_pairs = tuple(pair for pair in self.at_most if pair != (low, high))
            yield f"the rule {low!r} <= {high!r}", replace(self, at_most=rest_pairs)
        if self.max_changes is not None:
            yield f"the rule of at most {self.max_changes} changes", replace(self, max_changes=None)

    def only_weights(self) -> "Rules":
        """Return the costs without any prohibition."""
        return Rules({name: Rule(weight=rule.weight) for name, rule in self.features.items()})


def describe(rule: Rule) -> str:
    """Write a rule in words."""
    parts = [f"only {rule.direction}"] if rule.direction else []
    if rule.low > -inf or rule.high < inf:
        parts.append(f"from {rule.low:g} to {rule.high:g}")
    parts += [f"one of {listed(rule.allowed)}"] if rule.allowed is not None else []
    parts += [f"in steps of {rule.step:g}"] if rule.step is not None else []
    parts += [f"not from {a!r} to {b!r}" for a, b in rule.forbidden]
    return ", ".join(parts)


def _check_keys(where: str, entry: Any, allowed: tuple[str, ...]) -> None:
    if not isinstance(entry, Mapping):
        raise ParameterError(f"{where} must be a table, got {entry!r}.")
    for key in entry:
        if key not in allowed:
            raise ParameterError(
                f"{where}: unknown key {key!r}.{did_you_mean(key, allowed)} Allowed: {listed(allowed)}."
            )
