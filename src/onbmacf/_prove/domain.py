"""The values that a row may change to, feature by feature, what each costs, and what the model sees of it.

Rules between features are not about one feature, but "if a, then b" is: it holds where not a, and where b. So what such
rules allow is the union of a few domains, each with conditions on single features (`cases`), and the nearest answer of
all is the nearest of theirs.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from onbmacf._balls.distance import paired
from onbmacf._balls.metrics import Metric, proven_power
from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._columns.relations import Condition, IfThen
from onbmacf._prove.columns import NotKnownError, ToColumns
from onbmacf._table.constraints import Constraints
from onbmacf._table.form import TableForm
from onbmacf._table.space import FeatureSpace
from onbmacf._table.values import ends_of, values_of

EDGE = 1e-12  # rounding error forgiven at the ends of a range
MOST_VALUES = 1 << 18  # of one feature
AT_ONCE = 1 << 15  # rows that are turned into columns together
MOST_CASES = 64  # domains whose union is what rules between features allow
N_POINTS = 16  # between which a function of points is compared with the sum that it says to be
CLOSE = 1e-9  # of a distance: what a function of points may be off the sum that it says to be


# --- values and costs -------------------------------------------------------------------------------------------------


class Choices(NamedTuple):
    """What one feature of a row may become, in the order of its values; a category's own level comes first.

    Its other levels follow by cost. What costs least is nearest to the row's own value in order, also where a condition
    leaves that out: then its place is before the first, or after the last, and every choice is a change.
    """

    line: Rows  # position among the feature's values; -1 for the row's own value
    value: Matrix
    cost: Matrix
    own: int  # the place of the row's own value; -1 or their number where it is none of them

    def own_among(self, kept: Rows) -> int:
        """Return the place of the row's own value among some of the choices; outside stays outside."""
        if 0 <= self.own < len(self.cost):
            return int(np.searchsorted(kept, self.own))
        return -1 if self.own < 0 else len(kept)


def near_enough(choices: Choices, limit: float) -> Rows:
    """Return the places of the choices that cost less than a limit, the row's own among them."""
    return np.flatnonzero((choices.cost < limit) | (choices.cost == 0))


def chosen(choices: Choices, kept: Mask) -> Choices:
    """Return some of the choices; without the row's own value by cost, which is their order on either side of it."""
    places = np.flatnonzero(kept)
    own = choices.own_among(places)
    if not kept[choices.own]:
        is_below = len(places) > 0 and (places < choices.own).all()
        places = places if is_below else places[np.argsort(choices.cost[places], kind="stable")]
        own = len(places) if is_below else -1
    return Choices(choices.line[places], choices.value[places], choices.cost[places], own)


def below(choices: Choices, limit: float) -> Choices:
    """Return the choices that cost less than a limit, in their order."""
    near = near_enough(choices, limit)
    return Choices(choices.line[near], choices.value[near], choices.cost[near], choices.own_among(near))


def only_own(choices: Choices) -> Choices:
    """Return the row's own value alone, or the cheapest other where it is left out."""
    at = np.array([min(max(choices.own, 0), len(choices.cost) - 1)])
    return Choices(choices.line[at], choices.value[at], choices.cost[at], 0 if at[0] == choices.own else -1)


class Literal(NamedTuple):
    """A condition on one feature that must hold, or must not."""

    at: int
    condition: Condition
    holds: bool


@dataclass(frozen=True, eq=False)
class Domain:
    """The values that rows may change to under some rules."""

    space: FeatureSpace
    constraints: Constraints
    ranges: Matrix  # per feature: smallest and largest fitted value
    is_held: Mask
    metric: Metric
    N: Matrix  # the rows that are asked about
    literals: tuple[Literal, ...] = ()  # what must hold beside the rules: one of `cases`

    def __post_init__(self) -> None:
        if proven_power(self.metric) is None:
            what = f"the metric {self.metric!r}" if isinstance(self.metric, str) else "a metric that is a function"
            raise NotKnownError(f"nothing is proven with {what}")
        for relation in self.constraints.relations:
            if not isinstance(relation.rule, IfThen):
                raise NotKnownError(f"proofs do not read rules between features such as {relation.said!r}")

    @cached_property
    def cases(self) -> list["Domain"]:
        """The domains whose union is what the rules between features allow: without such rules, this one.

        Each rule holds where its first condition does not, or its second does; a row that itself breaks it may also
        leave both features as they are. A case within another is left out.
        """
        stays = {at: Literal(at, Condition(None, "stays"), True) for at in range(len(self.is_held))}
        ways: list[list[tuple[Literal, ...]]] = []
        for bound in self.constraints.relations:
            assert isinstance(bound.rule, IfThen)
            when, then = bound.at.tolist()
            ways.append([(Literal(when, bound.rule.when, False),), (Literal(then, bound.rule.then, True),)])
            own, meets = self.N[:, bound.at].T, self.constraints.meets
            is_broken = meets(when, bound.rule.when, own[0], own[0]) & ~meets(then, bound.rule.then, own[1], own[1])
            if is_broken.any():
                ways[-1].append((stays[when], stays[then]))
        if np.prod([float(len(ways_of_one)) for ways_of_one in ways]) > MOST_CASES:
            raise NotKnownError(f"proofs do not read so many rules between features as these {len(ways)}")
        found = list(dict.fromkeys(frozenset(one for part in parts for one in part) for parts in product(*ways)))
        least = [case for case in found if not any(other < case for other in found)]
        return [self] if least == [frozenset()] else [replace(self, literals=tuple(case)) for case in least]

    def is_within(self, row: int, limit: float) -> bool:
        """Say whether every feature with a condition has a choice that costs less than a limit."""
        return all(self.choices(row, one.at).cost.min(initial=np.inf) < limit for one in self.literals)

    @property
    def is_sum(self) -> bool:
        """Whether costs add up."""
        return proven_power(self.metric) != 0

    @property
    def power(self) -> int:
        """The power of the distance that costs stand for."""
        return proven_power(self.metric) or 1

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
            return self._meeting(at, Choices(np.array([-1]), np.array([own]), np.zeros(1), 0), own)
        low, high = self._ends[0][at], self._ends[1][at]
        edge = EDGE * self.space.span[at]  # a last step may lie beyond the end by rounding: 3 * 0.2 > 0.6
        is_within = (values >= min(low, own) - edge) & (values <= max(high, own) + edge)
        near = np.flatnonzero(is_within & (values != own))
        rows = np.zeros((len(near), len(self.is_held)))
        rows[:, at] = values[near]
        near = near[self.constraints.keeps(at, rows, self.N[row])]
        if self._is_category(at):
            near = near[np.argsort(self._costs(at, values[near], own), kind="stable")]
        place = 0 if self._is_category(at) else int(np.searchsorted(values[near], own))
        line, value = np.insert(near, place, -1), np.insert(values[near], place, own)
        return self._meeting(at, Choices(line, value, self._costs(at, value, own), place), own)

    def _meeting(self, at: int, choices: Choices, own: float) -> Choices:
        """Return the choices of a feature that meet the conditions on it."""
        kept = np.ones(len(choices.cost), dtype=bool)
        for one in self.literals:
            if one.at == at:
                before = np.full(len(choices.value), own)
                kept &= self.constraints.meets(at, one.condition, choices.value, before) == one.holds
        return choices if kept.all() else chosen(choices, kept)

    def cost(self, at: int, value: float, own: float) -> float:
        """Return what it costs to change a feature to a value."""
        return float(self._costs(at, np.array([value]), own)[0])

    def _costs(self, at: int, values: Matrix, own: float) -> Matrix:
        if not isinstance(self.metric, str):
            return self._costs_by_column(at, values, own)
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

    def _costs_by_column(self, at: int, values: Matrix, own: float) -> Matrix:
        """Return what values cost by a function of points that says how it adds up."""
        block = self.space.blocks[at]
        if self._is_category(at):
            of_level = self._cost_of_column[block] * self.space.heights[at] ** self.power
            return np.where(values == own, 0.0, of_level[values.astype(np.intp)] + of_level[int(own)])
        apart = np.abs(
            (values - self.space.low[at]) / self.space.span[at] - (own - self.space.low[at]) / self.space.span[at]
        )
        return np.asarray(self._cost_of_column[block.start] * apart**self.power)

    @cached_property
    def _cost_of_column(self) -> Matrix:
        """What a difference of 1 costs in each column of encoded points, by the metric, a function.

        Between points anywhere its distances must be what these add up to.
        """
        width, metric, power = self.space.width, self.metric, self.power
        found = paired(np.zeros((width, width)), np.eye(width), metric) ** power
        A, B = np.random.default_rng(0).random((2, N_POINTS, width))
        added = (np.abs(A - B) ** power @ found) ** (1.0 / power)
        if (np.abs(added - paired(A, B, metric)) > CLOSE * (1.0 + added)).any():
            raise NotKnownError(f"the metric, a function, is not the sum that its power of {power} says")
        return found

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
        seen[~is_other] = self.own[row, self.columns[at]]
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
