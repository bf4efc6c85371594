"""The rules applied to points: which changed values are allowed, and the nearest allowed one.

    points, z  ->  constrain  ->  points whose changed values are in range, on the grid, in the right direction
    N, N of the factuals  ->  allowed  ->  per line: whether every changed value keeps every rule

`constrain` moves a value to where it is allowed, or back to the factual's; `allowed` is asked of every point before
the model is, so that no answer can break a rule. The number of changes is counted at the end of a search. Rules between
features are in `relations.py`.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from onbmacf._base.arrays import Mask, Matrix
from onbmacf._base.checks import listed, shortened
from onbmacf._base.missing import differs
from onbmacf._columns.converters import Converter, unit_words
from onbmacf._columns.kinds import LARGEST_EXACT
from onbmacf._columns.moments import Amount, is_date_text
from onbmacf._columns.relations import Condition, resolved
from onbmacf._table.cells import cast_within, widened
from onbmacf._table.gate import as_given
from onbmacf._table.relations import BoundRelation, Extent, is_so
from onbmacf._table.scales import HEADROOM, weight_of, weights_of
from onbmacf._table.space import FeatureSpace
from onbmacf.errors import ParameterError
from onbmacf.rules import EPSILON, Rule, Rules, anchor
from onbmacf.schema import Feature, stepped

MOST_STEPS = 10_000  # looked at for one that is a whole number
NEEDS = {"numbers": "a range or step needs numbers", "levels": "levels need a feature with levels"}


@dataclass(frozen=True, eq=False)
class Constraints:
    """Rules bound to the encoding of a table; dates and the like in them are numbers of its columns' units."""

    space: FeatureSpace
    rules: Rules

    def __post_init__(self) -> None:
        names = self.space.schema.names
        self.rules.check(names)
        measured = {name: self._measured(name, rule) for name, rule in self.rules.features.items()}
        object.__setattr__(self, "rules", replace(self.rules, features=measured))
        self.rules.check(names)
        for name, rule in self.rules.features.items():
            _check_kind(self.space.schema.features[self._position(name)], rule)
            self._check_range(name, rule)
        for low, high in self.rules.at_most:
            self._check_pair(low, high)
        _ = self._relations

    def _measured(self, name: Hashable, rule: Rule) -> Rule:
        """Return a rule with numbers in place of dates and the like; one for levels as it is."""
        at = self._position(name)
        return rule.measured(name, self.space.form.converter(at)) if self.space.schema.features[at].is_numeric else rule

    def _check_range(self, name: Hashable, rule: Rule) -> None:
        """Raise an error for a range so far from the fitted values, or steps so small, that float64 has none there."""
        at = self._position(name)
        low, high = self.space.low[at], self.space.low[at] + self.space.span[at] * weight_of(self.space.schema, name)
        most = HEADROOM * max(1.0, abs(low), abs(high))
        for end, is_far in (("low", rule.low > most), ("high", rule.high < -most)):
            if is_far:
                raise ParameterError(
                    f"rule for {name!r}: {end} is {getattr(rule, end):g}, too far from the fitted values, which are "
                    f"from {low:g} to {high:g}."
                )

        farthest = max(abs(low), abs(high), abs(anchor(rule)))
        if rule.step and farthest > LARGEST_EXACT * rule.step:  # the number of steps would not be exact, or infinite
            raise ParameterError(
                f"rule for {name!r}: step is {rule.step:g}, too small to be counted from {anchor(rule):g} to the "
                f"fitted values, which are from {low:g} to {high:g}."
            )

    def _check_pair(self, low: Hashable, high: Hashable) -> None:
        """Raise an error where two features cannot be compared: dates are not numbers, nor days seconds."""
        for name in (low, high):
            if not self.space.schema.features[self._position(name)].is_numeric:
                raise ParameterError(f"the rule {low!r} <= {high!r} needs numbers, {name!r} has levels.")
        units = [unit_words(self.space.form.converter(self._position(name))) for name in (low, high)]
        if units[0] != units[1]:
            said = f"{low!r} is in {units[0]}, {high!r} in {units[1]}"
            raise ParameterError(f"the rule {low!r} <= {high!r} needs two columns in one unit: {said}.")

    @cached_property
    def in_steps(self) -> Rules:
        """The rules with the steps of the columns themselves: what values may be, if not what the caller has said."""
        features = self.space.schema.features
        own = {one.name: stepped(one, self.rules.features.get(one.name, Rule())) for one in features if one.step}
        return replace(self.rules, features={**self.rules.features, **own})

    def __bool__(self) -> bool:
        return bool(self._each or self._pairs or self._relations)

    @property
    def is_related(self) -> bool:
        """Whether a rule binds several features together."""
        return bool(self._relations)

    @property
    def has_only_steps(self) -> bool:
        """Whether every value lies near an allowed one: nothing is out of reach that would be in reach without."""
        return not self._pairs and not self._relations and all(bound.rule.has_only_steps for bound in self._each)

    def allowed(self, N: Matrix, factual: Matrix) -> Mask:
        """Return per line whether every changed value, and all that follows, keeps every rule."""
        good, N = np.ones(len(N), dtype=bool), as_given(self.space.form, N)
        if self.space.effects is not None:
            N, good = self.space.effects.complete(N, factual)
        for bound in self._checked:
            changed = differs(N[:, bound.position], factual[:, bound.position])
            good &= ~changed | bound.keeps(N[:, bound.position], factual[:, bound.position])
        for low, high in self._pairs:
            changed = np.asarray(differs(N[:, [low, high]], factual[:, [low, high]]).any(axis=1))
            good &= ~changed | ~(N[:, low] > N[:, high])  # what is missing breaks no rule
        if self._relations:
            N, factual = self._written(N), self._written(factual)
        for rule in self._relations:
            good &= rule.kept(N, factual)
        return good

    def kept(self, N: Matrix, factual: Matrix) -> Mask:
        """Return per line and feature whether its value keeps the feature's own rule."""
        good, N = np.ones(N.shape, dtype=bool), as_given(self.space.form, N)
        for bound in self._each:
            good[:, bound.position] = bound.keeps(N[:, bound.position], factual[:, bound.position])
        return good

    def keeps(self, position: int, N: Matrix, factual: Matrix) -> Mask:
        """Return per line whether the value of one feature keeps that feature's rule, changed from a row's own."""
        rule = self.in_steps.features.get(self.space.schema.names[position], Rule())
        before = np.full(len(N), factual[position])
        return self._bound(position, rule).keeps(as_given(self.space.form, N)[:, position], before)

    @property
    def relations(self) -> list[BoundRelation]:
        """The rules between features, bound."""
        return self._relations

    def meets(self, position: int, condition: Condition, values: Matrix, before: Matrix) -> Mask:
        """Return per value of one feature whether a condition of a rule between features holds, changed from another.

        As `allowed` compares them: numbers of narrow floats as they are written.
        """
        dtype = dict(self.space.form.narrow_dtypes).get(position)
        if dtype is not None and dtype.kind == "f":
            values, before = widened(values, dtype), widened(before, dtype)
        return is_so(condition, values, before)

    def constrain(self, points: Matrix, z: Matrix) -> Matrix:
        """Move changed values to where the rules allow them, or back to the factual's."""
        if not self:
            return points
        factual = as_given(self.space.form, self._decoded(z))  # as the points are, or a kept value would differ
        N = as_given(self.space.form, self.space.decode_numbers(points, near=(z, factual)))
        return self._replaced(points, z, N, self.mended(self.moved(N, factual), factual), factual)

    def moved(self, N: Matrix, factual: Matrix) -> Matrix:
        """Return numbers with changed values where the rules allow them, or back at the factual's."""
        wanted = N.copy()
        for bound in self._each:
            value, before = N[:, bound.position], factual[:, bound.position]
            wanted[:, bound.position] = np.where(differs(value, before), bound.moved(value, before), value)
        for low, high in self._pairs:
            broken = wanted[:, low] > wanted[:, high]
            for place in (low, high):
                wanted[broken, place] = factual[broken, place]
        return wanted

    def mended(self, N: Matrix, factual: Matrix) -> Matrix:
        """Return numbers with one more feature moved for each rule between features that they break."""
        if self._relations:
            N, factual = self._written(N), self._written(factual)
        for rule in self._relations:
            N = rule.mended(N, factual, self._extent)
        return N

    def broken_by(self, N: Matrix) -> dict[int, list[str]]:
        """Return per row which rules its own values break."""
        found: dict[int, list[str]] = {}
        for bound in self._each:
            alone = bound._replace(rule=Rule(low=bound.rule.low, high=bound.rule.high, allowed=bound.rule.allowed))
            for row in np.flatnonzero(~alone.keeps(N[:, bound.position], N[:, bound.position])):
                found.setdefault(int(row), []).append(repr(bound.feature.name))
        for low, high in self._pairs:
            names = [self.space.schema.names[place] for place in (low, high)]
            for row in np.flatnonzero(N[:, low] > N[:, high]):
                found.setdefault(int(row), []).append(f"{names[0]!r} <= {names[1]!r}")
        N = self._written(N) if self._relations else N
        for rule in self._relations:
            for row in np.flatnonzero(~rule.holds(N, N) & ~np.isnan(N[:, rule.at]).any(axis=1)):
                found.setdefault(int(row), []).append(repr(rule.said))
        return found

    def _decoded(self, z: Matrix) -> Matrix:
        """Return factuals as numbers; the lines of one factual follow each other and are decoded once."""
        is_new = np.ones(len(z), dtype=bool)
        is_new[1:] = (z[1:] != z[:-1]).any(axis=1)
        return self.space.decode_numbers(z[is_new])[np.cumsum(is_new) - 1]

    def _replaced(self, points: Matrix, z: Matrix, N: Matrix, wanted: Matrix, factual: Matrix) -> Matrix:
        """Return points with the factual's columns where its value is wanted, and others where a value was moved."""
        back, of_column = ~differs(wanted, factual), self.space.feature_of
        result = np.where(back[:, of_column], z, points)
        moved = differs(wanted, N) & ~back
        lines = np.flatnonzero(moved.any(axis=1))
        result[lines] = np.where(moved[lines][:, of_column], self.space.encode_numbers(wanted[lines]), result[lines])
        return result

    @cached_property
    def _each(self) -> list["Bound"]:
        """The rule of each feature that has a prohibition."""
        places = [(self._position(name), rule) for name, rule in self.in_steps.features.items() if rule.kinds]
        return [self._bound(place, rule) for place, rule in sorted(places, key=lambda p: p[0])]

    @cached_property
    def _checked(self) -> list["Bound"]:
        """The same without the steps of effects: what follows has the decimals of its computation."""
        if self.space.effects is None:
            return self._each
        follows = {effect.at for effect in self.space.effects.each}
        return [b._replace(rule=replace(b.rule, step=None)) if b.position in follows else b for b in self._each]

    def _bound(self, place: int, rule: Rule) -> "Bound":
        return Bound(place, self.space.schema.features[place], rule, self.space.form.given_dtypes[place])

    @cached_property
    def _pairs(self) -> list[tuple[int, int]]:
        return [(self._position(low), self._position(high)) for low, high in self.rules.at_most]

    @cached_property
    def _relations(self) -> list[BoundRelation]:
        schema, form = self.space.schema, self.space.form
        rules = [resolved(rule, schema.names) for rule in self.rules.relations]
        return [BoundRelation.of(rule, schema, lambda at: not _is_plain(form.converter(at))) for rule in rules]

    def _written(self, N: Matrix) -> Matrix:
        """Return numbers of narrow floats as they are written: those of float32 add up to 100 with an error."""
        for position, dtype in self.space.form.narrow_dtypes:
            if dtype.kind == "f":
                N = N.copy()
                N[:, position] = widened(N[:, position], dtype)
        return N

    @cached_property
    def _extent(self) -> Extent:
        """How far features may be moved for the sake of a rule between them: fitted values, or ends of rules."""
        space, rules = self.space, self.in_steps.features
        named = [rules.get(name, Rule()) for name in space.schema.names]
        levels = np.array([len(feature.levels or ()) for feature in space.schema.features])
        ends = space.low, np.where(levels > 0, levels - 1.0, space.low + space.span * weights_of(space.schema))
        low, high = np.array([[rule.low, rule.high] for rule in named], dtype=np.float64).T
        unit = [rule.step or 10.0 ** -(places or 0) for rule, places in zip(named, space.readable, strict=True)]
        origin = np.array([anchor(rule) if rule.step else 0.0 for rule in named])
        low, high = (np.where(np.isfinite(own), own, end) for own, end in zip((low, high), ends, strict=True))
        return Extent(low, high, np.array(unit, dtype=np.float64), origin, ~space.is_immutable)

    def _position(self, name: Any) -> int:
        return self.space.schema.names.index(name)


class Bound(NamedTuple):
    """One feature's rule, and the dtype in which the model gets its numbers; values are numbers as given."""

    position: int
    feature: Feature
    rule: Rule
    dtype: Any  # None with levels

    def keeps(self, value: Matrix, before: Matrix) -> Mask:
        """Say which values, changed from those before, the rule allows."""
        good = np.ones(len(value), dtype=bool)
        before = np.where(np.isnan(before), value, before)  # a value that is filled in has moved in no direction
        for kind in self.rule.kinds:
            exact = value if kind.is_exact or self.dtype is None else widened(value, self.dtype)
            good &= kind.keeps(self.rule, exact, before, partial(_codes, self.feature))
        return good | np.isnan(value)  # what is missing breaks no rule

    def moved(self, value: Matrix, before: Matrix) -> Matrix:
        """Return the nearest allowed values that the dtype holds, the one before where there is none on the way."""
        if self.feature.is_numeric:
            for kind in self.rule.kinds:
                value = kind.move(self.rule, value)
            if self.feature.kind == "integer":
                value = np.where(np.floor(value) >= self.rule.low, np.floor(value), np.ceil(value))
            value = cast_within(value, self.dtype, self.rule.low, self.rule.high)
        return np.where(self.keeps(value, before), value, before)


def _is_plain(converter: Converter | None) -> bool:
    """Say whether a column holds numbers, and no dates or durations."""
    return converter is None or converter.kind == "decimal"


def _codes(feature: Feature, levels: Iterable[Any]) -> Matrix:
    known = list(feature.levels or ())
    return np.array([known.index(level) if level in known else -1 for level in levels], dtype=np.float64)


def _check_kind(feature: Feature, rule: Rule) -> None:
    """Raise an error where a rule does not fit the kind of its feature, or names a level it does not have."""
    for needs in {kind.needs: None for kind in rule.kinds}:
        if needs in NEEDS and feature.is_numeric != (needs == "numbers"):
            is_text = all(map(is_date_text, feature.levels or (None,)))
            hint = " It holds dates as text: name it in --dates; in Python, pd.to_datetime." if is_text else ""
            raise ParameterError(f"rule for {feature.name!r}: {NEEDS[needs]}, it is {feature.kind}.{hint}")
        if needs == "order" and feature.kind == "categorical":
            raise ParameterError(f"rule for {feature.name!r}: a direction needs an order, it is categorical.")
    if feature.kind == "integer" and not _has_whole(rule):
        on = f" in steps of {rule.step}" if rule.step else ""
        is_plain = not any(isinstance(end, Amount) for end in (rule.low, rule.high))
        what = "whole number" if is_plain else "value of the column"
        raise ParameterError(f"rule for {feature.name!r}: no {what} lies in {rule.low} to {rule.high}{on}.")
    named = [level for kind in rule.kinds for level in kind.levels(rule)]
    unknown = [level for level in named if level not in (feature.levels or ())]
    if unknown:
        known = listed(feature.levels or ())
        raise ParameterError(f"rule for {feature.name!r}: unknown level {shortened(unknown[0])}. Known: {known}.")


def _has_whole(rule: Rule) -> bool:
    """Say whether a whole number is in a rule's range, on one of its first steps where it has any."""
    if rule.step is None or not np.isfinite(rule.low):
        return bool(rule.high == np.inf or np.floor(rule.high) >= rule.low)
    last = min(MOST_STEPS, np.floor((rule.high - rule.low) / rule.step + EPSILON))
    steps = rule.low + np.arange(last + 1) * rule.step
    return bool((np.abs(steps - np.round(steps)) <= EPSILON * np.maximum(1.0, np.abs(steps))).any())
