"""The rules applied to points: which changed values are allowed, and the nearest allowed one.

    points, z  ->  constrain  ->  points whose changed values are in range, on the grid, in the right direction
    N, N of the factuals  ->  allowed  ->  per line: whether every changed value keeps every rule

`constrain` moves a value to where it is allowed, or back to the factual's; `allowed` is asked of every point before
the model is, so that no answer can break a rule. The number of changes is counted at the end of a search.
"""

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onbmacf._base.checks import listed
from onbmacf._rows.space import FeatureSpace
from onbmacf.errors import ParameterError
from onbmacf.rules import Rule, Rules
from onbmacf.schema import Feature

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]
EPSILON = 1e-9  # of a step or a range's end: rounding error forgiven


@dataclass(frozen=True, eq=False)
class Constraints:
    """Rules bound to the encoding of a table."""

    space: FeatureSpace
    rules: Rules

    def __post_init__(self) -> None:
        self.rules.check(self.space.schema.names)
        for name, rule in self.rules.features.items():
            _check_kind(self.space.schema.features[self._position(name)], rule)
        for low, high in self.rules.at_most:
            for name in (low, high):
                if not self.space.schema.features[self._position(name)].is_numeric:
                    raise ParameterError(f"the rule {low!r} <= {high!r} needs numbers, {name!r} has levels.")

    def __bool__(self) -> bool:
        return any(rule != Rule(weight=rule.weight) for rule in self.rules.features.values()) or bool(
            self.rules.at_most
        )

    def allowed(self, N: Matrix, factual: Matrix) -> Mask:
        """Return per line whether every changed value keeps every rule."""
        good = np.ones(len(N), dtype=bool)
        for position, feature, rule in self._each():
            changed = N[:, position] != factual[:, position]
            good &= ~changed | _keeps(rule, feature, N[:, position], factual[:, position])
        for low, high in self._pairs():
            changed = (N[:, [low, high]] != factual[:, [low, high]]).any(axis=1)
            good &= ~changed | (N[:, low] <= N[:, high])
        return good

    def constrain(self, points: Matrix, z: Matrix) -> Matrix:
        """Move changed values to where the rules allow them, or back to the factual's."""
        if not self:
            return points
        N, factual = self.space.decode_numbers(points), self.space.decode_numbers(z)
        wanted = N.copy()
        for position, feature, rule in self._each():
            value = _moved(rule, feature, N[:, position], factual[:, position])
            wanted[:, position] = np.where(N[:, position] == factual[:, position], N[:, position], value)
        for low, high in self._pairs():
            broken = wanted[:, low] > wanted[:, high]
            for place in (low, high):
                wanted[broken, place] = factual[broken, place]
        return self._replaced(points, z, N, wanted, factual)

    def broken_by(self, N: Matrix) -> dict[int, list[str]]:
        """Return per row which rules its own values break."""
        found: dict[int, list[str]] = {}
        for position, feature, rule in self._each():
            alone = Rule(low=rule.low, high=rule.high, allowed=rule.allowed)
            for row in np.flatnonzero(~_keeps(alone, feature, N[:, position], N[:, position])):
                found.setdefault(int(row), []).append(repr(feature.name))
        for low, high in self._pairs():
            names = [self.space.schema.names[place] for place in (low, high)]
            for row in np.flatnonzero(N[:, low] > N[:, high]):
                found.setdefault(int(row), []).append(f"{names[0]!r} <= {names[1]!r}")
        return found

    def _replaced(self, points: Matrix, z: Matrix, N: Matrix, wanted: Matrix, factual: Matrix) -> Matrix:
        encoded = self.space.encode_numbers(wanted)
        result = points.copy()
        for position, block in enumerate(self.space.blocks):
            back = (wanted[:, position] == factual[:, position])[:, np.newaxis]
            moved = (wanted[:, position] != N[:, position])[:, np.newaxis]
            result[:, block] = np.where(back, z[:, block], np.where(moved, encoded[:, block], points[:, block]))
        return result

    def _each(self) -> list[tuple[int, Feature, Rule]]:
        places = [(self._position(name), rule) for name, rule in self.rules.features.items()]
        return [(place, self.space.schema.features[place], rule) for place, rule in sorted(places, key=lambda p: p[0])]

    def _pairs(self) -> list[tuple[int, int]]:
        return [(self._position(low), self._position(high)) for low, high in self.rules.at_most]

    def _position(self, name: Any) -> int:
        return self.space.schema.names.index(name)


def _keeps(rule: Rule, feature: Feature, value: Matrix, before: Matrix) -> Mask:
    good = np.ones(len(value), dtype=bool)
    if rule.direction == "up":
        good &= value >= before
    if rule.direction == "down":
        good &= value <= before
    good &= (value >= rule.low) & (value <= rule.high)
    if rule.step is not None:
        steps = (value - _anchor(rule)) / rule.step
        good &= np.abs(steps - np.round(steps)) <= EPSILON * np.maximum(1.0, np.abs(steps))
    if rule.allowed is not None:
        good &= np.isin(value, _codes(feature, rule.allowed))
    for old, new in rule.forbidden:
        good &= ~((before == _codes(feature, [old])[0]) & (value == _codes(feature, [new])[0]))
    return good


def _moved(rule: Rule, feature: Feature, value: Matrix, before: Matrix) -> Matrix:
    """Return the nearest allowed value, the one before where there is none on the way."""
    if feature.is_numeric:
        low, high = rule.low, rule.high
        value = np.clip(value, low, high)
        if rule.step is not None:
            anchor = _anchor(rule)
            value = anchor + np.round((value - anchor) / rule.step) * rule.step
            value = np.where(value > high, value - rule.step, np.where(value < low, value + rule.step, value))
        if feature.kind == "integer":
            value = np.where(np.floor(value) >= low, np.floor(value), np.ceil(value))
    return np.where(_keeps(rule, feature, value, before), value, before)


def _anchor(rule: Rule) -> float:
    return rule.low if rule.low > -inf else 0.0


def _codes(feature: Feature, levels: Any) -> Matrix:
    known = list(feature.levels or ())
    return np.array([known.index(level) if level in known else -1 for level in levels], dtype=np.float64)


def _check_kind(feature: Feature, rule: Rule) -> None:
    """Raise an error where a rule does not fit the kind of its feature, or leaves it no value."""
    has_numbers = rule.low > -inf or rule.high < inf or rule.step is not None
    has_levels = rule.allowed is not None or bool(rule.forbidden)
    if has_numbers and not feature.is_numeric:
        raise ParameterError(f"rule for {feature.name!r}: a range or step needs numbers, it is {feature.kind}.")
    if has_levels and feature.is_numeric:
        raise ParameterError(f"rule for {feature.name!r}: levels need a feature with levels, it is {feature.kind}.")
    if rule.direction and feature.kind == "categorical":
        raise ParameterError(f"rule for {feature.name!r}: a direction needs an order, it is categorical.")
    named = [*(rule.allowed or ()), *(level for pair in rule.forbidden for level in pair)]
    unknown = [level for level in named if level not in (feature.levels or ())]
    if unknown:
        raise ParameterError(
            f"rule for {feature.name!r}: unknown level {unknown[0]!r}. Known: {listed(feature.levels or ())}."
        )
