"""Rules between features applied to points: which points keep them, and the nearest that do where that is plain.

    points, factuals  ->  kept    ->  per line: whether the rule holds, or none of its features has changed
    points, factuals  ->  mended  ->  points with one more feature moved where that makes the rule hold

A condition that must hold is made to hold, a sum is balanced by one feature, a link is followed; what cannot be mended
stays, and is refused. Only features that may change are moved, to readable values within their ends.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._base.checks import is_number, listed, shortened
from onbmacf._base.missing import differs
from onbmacf._columns.relations import Condition, IfThen, Relation, Sum
from onbmacf.errors import ParameterError
from onbmacf.schema import Schema

CLOSE = 1e-9  # of the numbers that are added up: rounding error forgiven


@dataclass(frozen=True, eq=False)
class Extent:
    """Per feature, where it may be moved to for the sake of a rule."""

    low: Matrix
    high: Matrix
    unit: Matrix  # the least by which it moves,
    origin: Matrix  # and from where that is counted
    is_free: Mask


@dataclass(frozen=True, eq=False)
class BoundRelation:
    """A rule with the positions of its features."""

    rule: Relation  # levels in it are positions
    at: Rows
    said: str  # as it is read

    @classmethod
    def of(cls, rule: Relation, schema: Schema, is_date: Callable[[int], bool]) -> "BoundRelation":
        """Return a rule bound to a schema: levels by position, numbers as numbers."""
        at = [schema.names.index(name) for name in rule.features]
        if isinstance(rule, IfThen):
            parts = zip((rule.when, rule.then), at, strict=True)
            when, then = (_bound(rule, part, schema, place, is_date(place)) for part, place in parts)
            return cls(IfThen(when, then), np.array(at), rule.words())
        for name, place in zip(rule.features, at, strict=True):
            if not schema.features[place].is_numeric or is_date(place):
                kind = "holds dates" if is_date(place) else f"is {schema.features[place].kind}"
                raise ParameterError(f"rule {rule.words()!r} needs numbers, {shortened(name)} {kind}.")
        return cls(rule, np.array(at), rule.words())

    def kept(self, N: Matrix, factual: Matrix) -> Mask:
        """Say which lines keep the rule, or have changed none of its features; what is missing breaks none."""
        stays = ~differs(N[:, self.at], factual[:, self.at]).any(axis=1)
        return np.asarray(stays | self.holds(N, factual) | np.isnan(N[:, self.at]).any(axis=1))

    def holds(self, N: Matrix, factual: Matrix) -> Mask:
        """Say where the rule holds."""
        rule, now, before = self.rule, N[:, self.at], factual[:, self.at]
        with np.errstate(invalid="ignore"):
            if isinstance(rule, IfThen):
                both = ((rule.when, 0), (rule.then, 1))
                when, then = (is_so(part, now[:, place], before[:, place]) for part, place in both)
                return ~when | then
            if isinstance(rule, Sum):
                total, edge = now.sum(axis=1), CLOSE * np.maximum(abs(rule.total), np.abs(now).sum(axis=1))
                over, under = total > rule.total + edge, total < rule.total - edge
                return np.asarray(~{"=": over | under, "<=": over, ">=": under}[rule.sign])
            moved = now - before
            edge = CLOSE * np.maximum(np.abs(now), np.abs(before)).sum(axis=1)
            return np.asarray(np.abs(moved[:, 0] - rule.times * moved[:, 1]) <= edge)

    def mended(self, N: Matrix, factual: Matrix, extent: Extent) -> Matrix:
        """Return the lines with one feature moved so that the rule holds; as they are where none can be."""
        broken = np.flatnonzero(~self.kept(N, factual))
        if not len(broken):
            return N
        some, before = N[broken], factual[broken]
        trials = [self._moved_to(some, before, place, extent) for place in range(len(self.at))]
        made, first = some.copy(), np.full(len(some), np.inf)
        for at, value, rank in zip(self.at.tolist(), *zip(*trials, strict=True), strict=True):
            is_in = (value >= extent.low[at]) & (value <= extent.high[at]) & extent.is_free[at]
            rank = np.where(is_in & ~np.isnan(before[:, at]), rank, np.inf)
            better = rank < first
            made[better], first[better] = some[better], rank[better]
            made[better, at] = value[better]
        result = N.copy()
        result[broken] = made
        return result

    def _moved_to(self, some: Matrix, before: Matrix, place: int, extent: Extent) -> tuple[Matrix, Matrix]:
        """Return what one feature would have to be, and a rank: the lowest is taken, infinite where it is no help."""
        rule, now, at = self.rule, some[:, self.at], int(self.at[place])
        own, value = before[:, at], now[:, place]
        if isinstance(rule, IfThen):
            rank = np.full(len(some), 1.0 if place else np.inf)
            made = _made_so(rule.then, value, own, float(extent.unit[at]), float(extent.origin[at])) if place else value
            return made, rank
        if isinstance(rule, Sum):  # one that has not changed yet, and is moved by the least part of its range
            needed = value + rule.total - now.sum(axis=1)
            part = np.abs(needed - own) / max(float(extent.high[at] - extent.low[at]), CLOSE)
            return needed, np.where(differs(value, own), 1.0 + part, np.minimum(part, 1.0))
        other = now[:, 1 - place] - before[:, self.at[1 - place]]
        times = rule.times if place == 0 else 1.0 / rule.times
        return own + times * other, np.where(other != 0, 1.0 + place, np.inf)


def _bound(rule: Relation, part: Condition, schema: Schema, at: int, is_date: bool) -> Condition:
    """Return a condition with a number for its value: that itself, or the position of a level."""
    feature, words = schema.features[at], f"rule {rule.words()!r}"
    if part.how in ("rises", "falls") and feature.kind == "categorical":
        raise ParameterError(f"{words}: {feature.name!r} is categorical: its levels have no order. Say is, or is not.")
    if part.how in ("at least", "at most") and not feature.is_numeric:
        raise ParameterError(f"{words}: {feature.name!r} is {feature.kind}, no number. Say is, or is not.")
    if part.how not in ("is", "is not"):
        if is_date and part.amount is not None:
            raise ParameterError(
                f"{words}: {feature.name!r} holds dates, of which only rises, falls and stays are read."
            )
        return part
    if feature.is_numeric:
        if is_date or not is_number(_as_number(part.amount)):
            raise ParameterError(f"{words}: {shortened(part.amount)} is no number, as {feature.name!r} is.")
        return Condition(part.feature, part.how, _as_number(part.amount))
    known = {str(level): code for code, level in enumerate(feature.levels or ())}
    if str(part.amount) not in known:
        raise ParameterError(f"{words}: {feature.name!r} has no level {part.amount!r}. Known: {listed(known)}.")
    return Condition(part.feature, part.how, float(known[str(part.amount)]))


def _as_number(text: Any) -> Any:
    try:
        return float(text)
    except (TypeError, ValueError):
        return text


def is_so(part: Condition, value: Matrix, before: Matrix) -> Mask:
    """Say where a condition holds."""
    by, edge, goal = part.amount or 0.0, CLOSE * np.maximum(np.abs(value), np.abs(before)), part.amount
    if part.how in ("rises", "falls"):
        moved = value - before if part.how == "rises" else before - value
        return np.asarray((moved > 0) & (moved >= by - edge))
    if part.how in ("changes", "stays"):
        return np.asarray(differs(value, before) == (part.how == "changes"))
    if part.how in ("is", "is not"):
        return np.asarray((value == goal) == (part.how == "is"))
    return np.asarray(value >= goal if part.how == "at least" else value <= goal)


def _made_so(part: Condition, value: Matrix, own: Matrix, unit: float, origin: float) -> Matrix:
    """Return the nearest value with which a condition holds; the value itself where there is no such one."""
    if part.how in ("rises", "falls"):
        sign = 1.0 if part.how == "rises" else -1.0
        at, by = sign * (own - origin) / unit, (part.amount or 0.0) / unit
        there = np.maximum(np.ceil(at + by - CLOSE), np.floor(at + CLOSE) + 1.0)  # the next step, and so far at least
        return origin + sign * there * unit
    if part.how in ("at least", "at most"):
        return (np.maximum if part.how == "at least" else np.minimum)(value, part.amount)
    return own if part.how == "stays" else np.full(len(value), part.amount) if part.how == "is" else value
