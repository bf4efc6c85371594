"""The values that a feature may change to: one definition for searches, for "every combination" and for proofs.

    ends_of, values_of  all of them        Values.placed  raw numbers -> the nearest that may be
    Grid                as positions       Reach.rows     a row -> all that it may become, where few
    FittedValues        in blocks, values are a fitted row's

A level; a step of the feature's rule; or a number with readable decimals between two ends, and these themselves: those
of the feature's rule or, where it names none, the fitted ones rounded outwards, so that the smallest and the largest
fitted value lie within. How many decimals those are: `readable_of` in `scales.py`; searched values are
rounded in `kernels/place.py`, to rounder numbers by `rounder` in `_search/kernels/rounds.py`. A row whose own value
lies beyond an end may also come back by less.
"""

from dataclasses import dataclass
from functools import cached_property
from math import floor, isfinite, log10, prod

import numpy as np

from onbmacf._base.arrays import Mask, Matrix
from onbmacf._base.missing import differs
from onbmacf._table.cells import cast_within
from onbmacf._table.constraints import Constraints
from onbmacf._table.gate import as_given
from onbmacf._table.kernels.place import to_readable
from onbmacf._table.scales import HEADROOM
from onbmacf._table.space import SAME, FeatureSpace
from onbmacf.rules import Rule, Rules, anchor

WHOLE = 1e-4  # of a step: a position closer than this to a whole one is whole
LARGEST = 1 << 16  # values of one feature beyond which nothing is combined


# --- as positions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Grid:
    """The grid of a feature."""

    origin: float
    step: float
    decimals: int  # of a readable value
    is_whole: bool  # whether nothing lies between whole positions
    n_levels: int  # 0 for a number
    seen: Matrix  # the feature's fitted values, sorted, each once

    @classmethod
    def of(cls, space: FeatureSpace, at: int, seen: Matrix, rule: Rule | None) -> "Grid":
        """Return the grid of the feature at a place: its readable values, or those in the steps of its rule."""
        feature, dtype = space.schema.features[at], space.form.dtypes[at]
        if not feature.is_numeric:
            return cls(0.0, 1.0, 0, True, len(feature.levels or ()), seen)
        is_whole = feature.kind == "integer" or getattr(dtype, "kind", "f") in "iu"
        most = floor(log10(HEADROOM / max(float(np.abs(seen).max()), 1e-280)))
        if rule is not None and rule.step is not None:
            exact = space.decimals[at]
            return cls(anchor(rule), rule.step, most if exact is None else exact, True, 0, seen)
        decimals = min(0 if is_whole else space.readable[at] or 0, most)
        return cls(0.0, 10.0**-decimals, decimals, is_whole, 0, seen)

    def positions(self, values: Matrix) -> Matrix:
        """Return the positions of values, whole ones exactly."""
        at = (values - self.origin) / self.step
        whole = np.round(at)
        return np.where(np.abs(at - whole) <= WHOLE, whole, at)

    def values(self, positions: Matrix) -> Matrix:
        """Return the values at positions; readable where they are whole."""
        value = self.origin + positions * self.step
        return np.where(positions == np.round(positions), np.round(value, self.decimals), value)

    @cached_property
    def marks(self) -> Matrix:
        """The positions of the fitted values and of the middles between them: where a tree may split."""
        return self.positions(np.union1d(self.seen, (self.seen[:-1] + self.seen[1:]) / 2))


# --- placed -----------------------------------------------------------------------------------------------------------


def ends_of(space: FeatureSpace, rules: Rules, ranges: Matrix) -> tuple[Matrix, Matrix]:
    """Return per feature the least and the largest value: those of its rule, else the fitted ones rounded outwards."""
    low, high = np.array(ranges, dtype=np.float64).T
    for at, feature in enumerate(space.schema.features):
        rule, decimals = rules.features.get(feature.name, Rule()), space.readable[at] or 0
        if not feature.is_numeric:
            low[at], high[at] = 0.0, len(feature.levels or ()) - 1
            continue
        if not rule.step:
            unit = 10.0**-decimals
            low[at] = np.round(np.floor(low[at] / unit + 1e-9) * unit, decimals)
            high[at] = np.round(np.ceil(high[at] / unit - 1e-9) * unit, decimals)
        low[at] = rule.low if isfinite(rule.low) else low[at]
        high[at] = rule.high if isfinite(rule.high) else high[at]
    return low, high


def values_of(
    space: FeatureSpace, rules: Rules, at: int, ends: tuple[float, float], beyond: tuple[float, float], most: int
) -> Matrix | None:
    """Return all values of a feature, sorted: between its ends, or beyond them up to these; None if too many."""
    feature, dtype = space.schema.features[at], space.form.given_dtypes[at]
    if not feature.is_numeric:
        return np.arange(len(feature.levels or ()), dtype=np.float64)
    rule = rules.features.get(feature.name, Rule())
    low, high = min(ends[0], beyond[0]), max(ends[1], beyond[1])
    step = float(rule.step or 10.0 ** -(space.readable[at] or 0))
    start = anchor(rule) if rule.step else 0.0
    first, last = np.ceil((low - start) / step - 1e-9), np.floor((high - start) / step + 1e-9)
    if not last - first <= most:  # also where both are beyond all numbers
        return None
    values = start + step * (first + np.arange(max(0.0, last - first + 1)))
    if not rule.step:
        values = np.union1d(np.clip(np.round(values, space.readable[at] or 0), low, high), ends)
    values = values[(feature.kind != "integer") | (values == np.round(values))]
    return np.unique(cast_within(values, dtype, low, high))


@dataclass(frozen=True, eq=False)
class Values:
    """The values of a table's features under some rules."""

    space: FeatureSpace
    constraints: Constraints

    def free(self) -> "Values":
        """Return the values without any rule."""
        return Values(self.space, Constraints(self.space, Rules()))

    def placed(self, N: Matrix, factual: Matrix) -> Matrix:
        """Move numbers to the nearest values that may be returned; what is within rounding of the factual's is that.

        And so is what is no number: a factual millions of spans away makes such of a place between.
        """
        placed = self._readable(N, factual)
        if self.constraints:
            placed = self.constraints.moved(placed, factual)
            np.copyto(placed, factual, where=(factual == N) | np.isnan(N))
            if self.constraints.is_related:
                placed = self._readable(self.constraints.mended(placed, factual), factual)
        return placed

    def _readable(self, N: Matrix, factual: Matrix) -> Matrix:
        rounded, (up, down) = np.empty(N.shape), self._powers
        to_readable(np.ascontiguousarray(N), np.ascontiguousarray(factual), up, down, self._nothing, rounded)
        return as_given(self.space.form, rounded)

    def allowed(self, N: Matrix, factual: Matrix) -> Mask:
        """Say which lines keep every rule, the number of changes left aside."""
        if not self.constraints and self.space.effects is None:
            return np.ones(len(N), dtype=bool)
        return self.constraints.allowed(N, factual)

    def rounded(self, N: Matrix, factual: Matrix) -> Matrix:
        """Do the same, also where values are otherwise taken as they are."""
        return Values.placed(self, N, factual)

    @cached_property
    def steps(self) -> Matrix:
        """Per feature: the least by which a number moves."""
        rules, names = self.constraints.in_steps.features, self.space.schema.names
        given = [rules[name].step if name in rules else None for name in names]
        units = self._powers[1] / self._powers[0]
        return np.array([float(step or usual) for step, usual in zip(given, units.tolist(), strict=True)])

    @cached_property
    def is_written(self) -> Mask:
        """Per feature: whether its numbers are those that people read: no dates, and no steps of a rule."""
        rules, names = self.constraints.in_steps.features, self.space.schema.names
        is_written = np.array([name not in rules or not rules[name].step for name in names])
        is_written[[at for at, by in self.space.form.converters if by.kind != "decimal"]] = False
        return is_written

    @cached_property
    def _powers(self) -> tuple[Matrix, Matrix]:
        decimals = [0 if places is None else places for places in self.space.readable]
        return tuple(np.array([10.0 ** max(0, sign * places) for places in decimals]) for sign in (1, -1))  # type: ignore

    @cached_property
    def _nothing(self) -> Matrix:
        """Per feature: a difference that is none."""
        return SAME * self.space.span


class FittedValues(Values):
    """The same of points made of values of fitted rows, which are returned as they are."""

    def placed(self, N: Matrix, factual: Matrix) -> Matrix:
        """Return the points: nothing is rounded, and what breaks a rule is not allowed."""
        return N


# --- all that a row may become ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Reach:
    """The allowed combinations under some rules."""

    space: FeatureSpace
    constraints: Constraints
    ranges: Matrix  # per feature: its smallest and largest fitted value
    is_held: Mask  # per feature: whether it must keep its value

    def rows(self, factual: Matrix, most: int) -> Matrix | None:
        """Return all rows that a row may become, itself left out; None if there could be more than `most`."""
        if self._values is None or prod(map(len, self._values)) > most * LARGEST or self._least > most:
            return None
        values: list[Matrix] = []
        for at in range(len(factual)):
            found = self._allowed(at, factual)
            if found is None:
                return None
            values.append(found)
        if prod(map(len, values)) > most:
            return None
        combined = _combined(values)
        changed = differs(combined, factual)
        few = changed.any(axis=1) & (changed.sum(axis=1) <= (self.constraints.rules.max_changes or len(factual)))
        combined = combined[few]
        return combined[self.constraints.allowed(combined, np.broadcast_to(factual, combined.shape))]

    @cached_property
    def _ends(self) -> tuple[Matrix, Matrix]:
        return ends_of(self.space, self.constraints.in_steps, self.ranges)

    @cached_property
    def _values(self) -> list[Matrix] | None:
        """The values of each feature between its ends; none for one that is held; None if one has too many."""
        values = []
        for at in range(len(self.is_held)):
            found = np.empty(0) if self.is_held[at] else self._of_feature(at)
            if found is None:
                return None
            values.append(found)
        return values

    @cached_property
    def _least(self) -> int:
        """How many combinations every row has at least: those of the features without a rule, held ones left out.

        A feature that a row may lack is held there.
        """
        ruled, features = self.constraints.in_steps.features, self.space.schema.features
        is_free = [feature.name not in ruled and not feature.missing for feature in features]
        return prod(len(values) or 1 for values, free in zip(self._values or (), is_free, strict=True) if free)

    def _of_feature(self, at: int, value: float = np.nan) -> Matrix | None:
        ends = float(self._ends[0][at]), float(self._ends[1][at])
        beyond = ends if np.isnan(value) else (value, value)
        return values_of(self.space, self.constraints.in_steps, at, ends, beyond, LARGEST)

    def _allowed(self, at: int, factual: Matrix) -> Matrix | None:
        """Return the values of a feature that this row may change to, and its own; None if they are too many."""
        assert self._values is not None
        if np.isnan(factual[at]) and not self.space.is_fillable[at]:
            return factual[[at]]
        values: Matrix | None = self._values[at]
        if not len(self._values[at]):
            return factual[[at]]
        if not self._ends[0][at] <= factual[at] <= self._ends[1][at] and not np.isnan(factual[at]):
            values = self._of_feature(at, float(factual[at]))
        if values is None:
            return None
        rows = np.repeat(factual[np.newaxis], len(values), axis=0)
        rows[:, at] = values
        return np.union1d(values[self.constraints.keeps(at, rows, factual)], factual[at])


def _combined(values: list[Matrix]) -> Matrix:
    """Return every combination of some values per feature, the last feature's changing first.

    Column by column: arrays have fewer axes than a table may have columns.
    """
    n_rows = n_left = prod(map(len, values))
    combined = np.empty((n_rows, len(values)))
    for at, some in enumerate(values):
        n_left //= len(some)
        combined[:, at] = np.tile(np.repeat(some, n_left), n_rows // (n_left * len(some)))
    return combined
