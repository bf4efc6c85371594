"""The values that a feature may change to: whole numbers, readable decimals, levels, within the user's rules.

    numbers near some factuals  ->  Values.placed  ->  the nearest numbers that may be returned
    such numbers                ->  Values.allowed ->  whether they keep every rule

Numbers are in the caller's units, one column per feature, as the model gets them (`TableForm.numbers`).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from onbmacf._base.arrays import Mask, Matrix
from onbmacf._rows.constraints import Constraints
from onbmacf._rows.gate import as_given
from onbmacf._rows.space import SAME, FeatureSpace
from onbmacf.rules import Rules


@dataclass(frozen=True, eq=False)
class Values:
    """The values of a table's features under some rules."""

    space: FeatureSpace
    constraints: Constraints

    def free(self) -> "Values":
        """Return the values without any rule."""
        return Values(self.space, Constraints(self.space, Rules()))

    def placed(self, N: Matrix, own: Matrix) -> Matrix:
        """Return numbers at values that may be returned; one that is hardly another than the factual's is its own."""
        up, down = self._powers
        rounded = N * up
        rounded /= down
        np.rint(rounded, out=rounded)
        rounded /= up
        rounded *= down
        apart, is_own = np.subtract(rounded, own), own == N
        np.copyto(rounded, own, where=is_own | (np.abs(apart, out=apart) <= self._nothing))
        placed = as_given(self.space.form, rounded)
        if self.constraints:
            placed = self.constraints.moved(placed, own)
            np.copyto(placed, own, where=is_own)
        return placed

    def allowed(self, N: Matrix, own: Matrix) -> Mask:
        """Say which lines keep every rule, the number of changes left aside."""
        if not self.constraints:
            return np.ones(len(N), dtype=bool)
        return self.constraints.allowed(N, own)

    @cached_property
    def steps(self) -> Matrix:
        """Per feature: the least by which a number moves."""
        rules, names = self.constraints.rules.features, self.space.schema.names
        given = [rules[name].step if name in rules else None for name in names]
        own = self._powers[1] / self._powers[0]
        return np.array([float(step or usual) for step, usual in zip(given, own.tolist(), strict=True)])

    @cached_property
    def _powers(self) -> tuple[Matrix, Matrix]:
        decimals = [0 if own is None else own for own in self.space.readable]
        return tuple(np.array([10.0 ** max(0, sign * own) for own in decimals]) for sign in (1, -1))  # type: ignore

    @cached_property
    def _nothing(self) -> Matrix:
        """Per feature: a difference that is none."""
        return SAME * self.space.span
