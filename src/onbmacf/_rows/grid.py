"""The readable values of one feature as whole positions: where a range around a value may begin and end.

    values  ->  Grid.positions  ->  numbers of steps        positions  ->  Grid.values  ->  values

Between whole positions lie values with more digits; integers, and features with a rule of steps, have none there. The
positions of a feature with levels are the numbers of its levels.
"""

from dataclasses import dataclass
from functools import cached_property
from math import floor, log10

import numpy as np

from onbmacf._base.arrays import Matrix
from onbmacf._rows.scales import HEADROOM
from onbmacf._rows.space import FeatureSpace
from onbmacf.rules import Rule, anchor

SAME = 1e-4  # of a step: a position closer than this to a whole one is whole


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
        return np.where(np.abs(at - whole) <= SAME, whole, at)

    def values(self, positions: Matrix) -> Matrix:
        """Return the values at positions; readable where they are whole."""
        value = self.origin + positions * self.step
        return np.where(positions == np.round(positions), np.round(value, self.decimals), value)

    @cached_property
    def marks(self) -> Matrix:
        """The positions of the fitted values and of the middles between them: where a tree may split."""
        return self.positions(np.union1d(self.seen, (self.seen[:-1] + self.seen[1:]) / 2))
