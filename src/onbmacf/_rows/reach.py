"""Every row that a row may become, where they are few: the allowed values of each free feature, combined.

    numbers of a row  ->  Reach.rows  ->  all allowed combinations as numbers, or None if there are too many

The values of a feature are its levels, the whole numbers of its fitted range, or the readable values of its fitted
range; a rule's range takes the place of the fitted one, and its ends are values, too.
"""

from dataclasses import dataclass
from functools import cached_property
from math import isfinite, prod
from typing import Any

import numpy as np

from onbmacf._base.arrays import Mask, Matrix
from onbmacf._rows.cells import cast, cast_within
from onbmacf._rows.constraints import Constraints
from onbmacf._rows.space import FeatureSpace
from onbmacf.rules import Rule
from onbmacf.schema import Feature

LARGEST = 1 << 16  # values of one feature beyond which nothing is combined


@dataclass(frozen=True, eq=False)
class Reach:
    """The allowed combinations under some rules."""

    space: FeatureSpace
    constraints: Constraints
    ranges: Matrix  # per feature: its smallest and largest fitted value
    is_held: Mask  # per feature: whether it must keep its value

    def rows(self, own: Matrix, most: int) -> Matrix | None:
        """Return all rows that a row may become, itself left out; None if there could be more than `most`."""
        if self._values is None or prod(map(len, self._values)) > most * LARGEST or self._least > most:
            return None
        values = [self._allowed(at, own) for at in range(len(own))]
        if prod(map(len, values)) > most:
            return None
        combined = np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(-1, len(own))
        changed = combined != own
        few = changed.any(axis=1) & (changed.sum(axis=1) <= (self.constraints.rules.max_changes or len(own)))
        combined = combined[few]
        return combined[self.constraints.allowed(combined, np.broadcast_to(own, combined.shape))]

    @cached_property
    def _values(self) -> list[Matrix] | None:
        """The values of each feature, whatever the row; none for one that is held; None if one has too many."""
        values = []
        for at in range(len(self.is_held)):
            found = np.empty(0) if self.is_held[at] else self._of_feature(at)
            if found is None:
                return None
            values.append(found)
        return values

    @cached_property
    def _least(self) -> int:
        """How many combinations every row has at least: those of the features without a rule, held ones left out."""
        free, names = self.constraints.rules.features, self.space.schema.names
        return prod(len(own) or 1 for name, own in zip(names, self._values or (), strict=True) if name not in free)

    def _of_feature(self, at: int) -> Matrix | None:
        feature = self.space.schema.features[at]
        if not feature.is_numeric:
            return np.arange(len(feature.levels or ()), dtype=np.float64)
        rule, dtype = self.constraints.rules.features.get(feature.name, Rule()), self.space.form.given_dtypes[at]
        low, high = self.ranges[at]
        low, high = (rule.low if isfinite(rule.low) else low), (rule.high if isfinite(rule.high) else high)
        step = rule.step or 10.0 ** -(self.space.readable[at] or 0)
        if (high - low) / step > LARGEST:
            return None
        start = rule.low if rule.step and isfinite(rule.low) else np.ceil(low / step - 1e-9) * step
        values = start + step * np.arange(int((high - start) / step + 1e-9) + 1)
        values = values if rule.step else np.round(values, self.space.readable[at] or 0)
        values = values[
            (values >= low) & (values <= high) & ((feature.kind != "integer") | (values == np.round(values)))
        ]
        return np.union1d(cast(values, dtype), self._ends(rule, feature, dtype))

    def _ends(self, rule: Rule, feature: Feature, dtype: Any) -> Matrix:
        """Return the ends of a rule's range as the model gets them: values that a point may be moved to."""
        ends = [end for end in (rule.low, rule.high) if isfinite(end) and feature.kind != "integer" and not rule.step]
        return cast_within(np.array(ends), dtype, rule.low, rule.high)

    def _allowed(self, at: int, own: Matrix) -> Matrix:
        """Return the values of a feature that this row may change to, and its own."""
        assert self._values is not None
        values = self._values[at]
        rows = np.repeat(own[np.newaxis], len(values), axis=0)
        rows[:, at] = values
        return np.union1d(values[self.constraints.keeps(at, rows, own)], own[at])
