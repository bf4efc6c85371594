"""The values that a row may change to, feature by feature, what each costs, and what the model sees of it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from onbmacf._balls.distance import paired
from onbmacf._balls.metrics import Metric, power_of
from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._prove.columns import NotKnownError, ToColumns
from onbmacf._table.constraints import Constraints
from onbmacf._table.form import TableForm
from onbmacf._table.space import FeatureSpace
from onbmacf._table.values import ends_of, values_of

EDGE = 1e-12  # rounding error forgiven at the ends of a range
MOST_VALUES = 1 << 18  # of one feature
AT_ONCE = 1 << 15  # rows that are turned into columns together


# --- values and costs -------------------------------------------------------------------------------------------------


class Choices(NamedTuple):
    """What one feature of a row may become, in the order of its values; a category's own level comes first."""

    line: Rows  # position among the feature's values; -1 for the row's own value
    value: Matrix
    cost: Matrix
    own: int  # the place of the row's own value


def near_enough(choices: Choices, limit: float) -> Rows:
    """Return the places of the choices that cost less than a limit, the row's own among them."""
    return np.flatnonzero((choices.cost < limit) | (choices.cost == 0))


def below(choices: Choices, limit: float) -> Choices:
    """Return the choices that cost less than a limit, in their order."""
    near = near_enough(choices, limit)
    own = int(np.searchsorted(near, choices.own))
    return Choices(choices.line[near], choices.value[near], choices.cost[near], own)


def only_own(choices: Choices) -> Choices:
    """Return the row's own value alone."""
    here = slice(choices.own, choices.own + 1)
    return Choices(choices.line[here], choices.value[here], choices.cost[here], 0)


@dataclass(frozen=True, eq=False)
class Domain:
    """The values that rows may change to under some rules."""

    space: FeatureSpace
    constraints: Constraints
    ranges: Matrix  # per feature: smallest and largest fitted value
    is_held: Mask
    metric: Metric
    N: Matrix  # the rows that are asked about

    def __post_init__(self) -> None:
        if power_of(self.metric) is None:
            what = f"the metric {self.metric!r}" if isinstance(self.metric, str) else "a metric that is a function"
            raise NotKnownError(f"nothing is proven with {what}")
        if self.constraints.rules.relations:
            rule = self.constraints.rules.relations[0].words()
            raise NotKnownError(f"proofs do not read rules between features such as {rule!r}")

    @property
    def is_sum(self) -> bool:
        """Whether costs add up."""
        return power_of(self.metric) != 0

    @property
    def power(self) -> int:
        """The power of the distance that costs stand for."""
        return power_of(self.metric) or 1

    @cached_property
    def pairs(self) -> Rows:
        """Features of which the first must be at most the second, where one of them changes."""
        names = self.space.schema.names
        pairs = [[names.index(low), names.index(high)] for low, high in self.constraints.rules.at_most]
        return np.array(pairs, dtype=np.intp).reshape(-1, 2)

    @property
    def most_changes(self) -> int:
        """How many features may change."""
        return self.constraints.rules.max_changes or len(self.is_held)

    @cached_property
    def values(self) -> list[Matrix]:
        """All values of each feature that any of the rows may change to; none for one that is held."""
        return [np.empty(0) if self.is_held[at] else self._of_feature(at) for at in range(len(self.is_held))]

    def choices(self, row: int, at: int) -> Choices:
        """Return what one feature of a row may become, its own value included."""
        own, values = self.N[row, at], self.values[at]
        if not len(values):
            return Choices(np.array([-1]), np.array([own]), np.zeros(1), 0)
        low, high = self._ends[0][at], self._ends[1][at]
        near = np.flatnonzero((values >= min(low, own)) & (values <= max(high, own)) & (values != own))
        rows = np.zeros((len(near), len(self.is_held)))
        rows[:, at] = values[near]
        near = near[self.constraints.keeps(at, rows, self.N[row])]
        place = 0 if self._is_category(at) else int(np.searchsorted(values[near], own))
        line, value = np.insert(near, place, -1), np.insert(values[near], place, own)
        return Choices(line, value, self._costs(at, value, own), place)

    def cost(self, at: int, value: float, own: float) -> float:
        """Return what it costs to change a feature to a value."""
        return float(self._costs(at, np.array([value]), own)[0])

    def _costs(self, at: int, values: Matrix, own: float) -> Matrix:
        if self._is_category(at):
            return np.where(values == own, 0.0, self._cost_of_category[at])
        low, span = self.space.low[at], self.space.span[at]
        return np.abs((values - low) / span - (own - low) / span) ** self.power

    @cached_property
    def _cost_of_category(self) -> Matrix:
        """What another level costs, per feature."""
        width = len(self.is_held)
        rows = np.vstack([np.zeros(width), np.eye(width) * [self._is_category(at) for at in range(width)]])
        rows[:, [len(f.levels or ()) == 1 for f in self.space.schema.features]] = 0.0
        Z = self.space.encode_numbers(rows)
        return paired(np.repeat(Z[:1], width, axis=0), Z[1:], self.metric) ** self.power

    def _is_category(self, at: int) -> bool:
        return bool(self.space.is_group[at])

    @cached_property
    def _ends(self) -> tuple[Matrix, Matrix]:
        return ends_of(self.space, self.constraints.in_steps, self.ranges)

    def _of_feature(self, at: int) -> Matrix:
        ends = float(self._ends[0][at]), float(self._ends[1][at])
        beyond = float(self.N[:, at].min()), float(self.N[:, at].max())
        values = values_of(self.space, self.constraints.in_steps, at, ends, beyond, MOST_VALUES)
        if values is None:
            raise NotKnownError(f"{self.space.schema.names[at]!r} has more than {MOST_VALUES:,} values")
        return values


# --- columns by value -------------------------------------------------------------------------------------------------


class ColumnTable(NamedTuple):
    """The model's columns of every value and of every row."""

    columns: list[Rows]  # per feature: the columns that change with it
    values: list[Matrix]  # per feature: one line per value, one number per such column
    own: Matrix  # rows x columns

    @classmethod
    def of(cls, domain: Domain, form: TableForm, to_columns: ToColumns) -> "ColumnTable":
        """Turn every value of every feature into columns, the other features as in the first row."""
        own = _checked(to_columns(form.rows_for_model(domain.N)))
        columns, values = [], []
        for at, numbers in enumerate(domain.values):
            every = np.concatenate([numbers, np.unique(domain.N[:, at])]) if len(numbers) else numbers
            seen = _with_values(domain.N[0], at, every, form, to_columns, own.shape[1])
            mine = np.flatnonzero((seen != own[0]).any(axis=0))
            columns.append(mine)
            values.append(seen[:, mine])
        owners = np.bincount(np.concatenate(columns), minlength=own.shape[1])
        if owners.max(initial=0) > 1:
            raise NotKnownError("a column of the model depends on several features")
        return cls(columns, values, own)

    def of_choices(self, row: int, at: int, choices: Choices) -> Matrix:
        """Return what a feature's choices make of its columns."""
        seen = np.empty((len(choices.line), len(self.columns[at])))
        is_other = choices.line >= 0
        seen[is_other] = self.values[at][choices.line[is_other]]
        seen[choices.own] = self.own[row, self.columns[at]]
        return seen

    def size(self) -> Matrix:
        """Return the largest number, without its sign, that any row or value makes of each column."""
        size: Matrix = np.abs(self.own).max(axis=0)
        for mine, values in zip(self.columns, self.values, strict=True):
            size[mine] = np.maximum(size[mine], np.abs(values).max(axis=0, initial=0.0))
        return size

    def owner(self) -> Rows:
        """Return per column the feature that it changes with; -1 for none."""
        owner = np.full(self.own.shape[1], -1, dtype=np.intp)
        for at, mine in enumerate(self.columns):
            owner[mine] = at
        return owner


def _with_values(row: Matrix, at: int, numbers: Matrix, form: TableForm, to_columns: ToColumns, width: int) -> Matrix:
    parts = [np.empty((0, width))]
    for start in range(0, len(numbers), AT_ONCE):
        some = numbers[start : start + AT_ONCE]
        rows = np.repeat(row[np.newaxis], len(some), axis=0)
        rows[:, at] = some
        parts.append(_checked(to_columns(form.rows_for_model(rows))))
    return np.concatenate(parts)


def _checked(columns: Any) -> Matrix:
    if not np.isfinite(columns).all():
        raise NotKnownError("the model takes columns that are not finite")
    found: Matrix = columns
    return found
