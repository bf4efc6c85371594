"""Points of actions completed to whole rows: what follows from the changed values follows.

    Causes, form, fitted numbers  ->  Effects.of  ->  Effects
    actions, factuals             ->  Effects.complete  ->  whole rows, and which are possible

A search moves actions. Before the model is asked, rules are checked and neighbours are looked at, every effect whose
causes have moved is predicted with its row's own residual, in the order of the graph; an effect that an action moves
itself is cut from its causes (docs/decisions/0131-what-follows.md). A value is rounded before others are computed from
it, so that what is printed obeys the equations.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._base.checks import listed, shortened
from onbmacf._base.missing import differs
from onbmacf._columns.converters import Converter
from onbmacf._table.cells import cast
from onbmacf._table.form import TableForm
from onbmacf._table.scales import own_decimals, present
from onbmacf.causes import Causes, Mechanism
from onbmacf.errors import ParameterError

MOST_EXACT = 9  # decimals of a derived column that are looked at: with more, its values are kept as computed
EQUAL = 1e-9  # of a value: rounding error between an equation and what the table holds


@dataclass(frozen=True, eq=False)
class Effect:
    """One effect, by positions."""

    at: int
    causes: Rows
    mechanism: Mechanism
    decimals: int | None  # to which its values are rounded; None: as computed
    step: float  # of which they are multiples
    dtype: Any  # in which the model gets them
    converter: Converter | None

    def placed(self, said: Any) -> Matrix:
        """Return what a mechanism says as values of the column; NaN for what it cannot hold."""
        try:
            known = self.converter is not None and np.asarray(said).dtype.kind not in "fiu"
            value = self.converter.numbers(pd.Series(said)) if known and self.converter else said.astype(np.float64)
        except (TypeError, ValueError) as error:
            what = f"{shortened(said[0])} for {self.mechanism.effect!r}"
            raise ParameterError(f"causes: the function returned {what}, which is no number.") from error
        value = value if self.decimals is None else np.round(value / self.step, self.decimals) * self.step
        value = np.where(np.isfinite(value), value, np.nan)
        given = cast(value, self.dtype)
        is_kept = (given == value) if self.dtype.kind != "f" else np.isfinite(given)
        return np.where(is_kept, given, np.nan)


@dataclass(frozen=True, eq=False)
class Effects:
    """Causes bound to the form of a table: the mechanisms with positions, causes before their effects."""

    form: TableForm
    causes: Causes
    each: tuple[Effect, ...]
    derived: Mask  # per feature: whether it is computed, and never chosen

    @classmethod
    def of(
        cls,
        form: TableForm,
        N: Matrix,
        readable: Sequence[int | None],
        causes: Any,
        known: Mapping[Hashable, Mechanism] | None = None,
    ) -> "Effects":
        """Learn what is to be learned from the fitted rows, given as numbers; some mechanisms may be known.

        `readable` are the decimals of values that a feature may change to.
        """
        if not isinstance(causes, Causes):
            raise ParameterError(f"causes must be Causes, got {shortened(causes)}.")
        for name, given in causes.effects.items():
            _check_effect(form, name, is_derived=callable(given))
        mechanisms = causes.learn(form.frame(N), known)
        each = tuple(_effect(form, N, readable, mechanism) for mechanism in mechanisms)
        exact = [effect.at for effect in each if effect.mechanism.is_exact]
        return cls(form, causes, each, np.isin(np.arange(N.shape[1]), exact))

    def complete(self, N: Matrix, factual: Matrix) -> tuple[Matrix, Mask]:
        """Return points of actions with all that follows, and which of them are possible.

        An impossible one, whose effects are no values of their columns, is its factual. A whole row stays as it is.
        """
        whole = np.where(self.derived, factual, N)
        moved, is_possible = differs(whole, factual), np.ones(len(N), dtype=bool)
        for effect in self.each:
            lines = np.flatnonzero(moved[:, effect.causes].any(axis=1) & ~moved[:, effect.at])
            if not len(lines):
                continue
            own = factual[lines, effect.at]
            value = self._value(effect, whole[lines], factual[lines], own)
            is_possible[lines] &= ~np.isnan(value) | np.isnan(own)
            whole[lines, effect.at] = value
            moved[lines, effect.at] = differs(value, own)
        whole[~is_possible] = factual[~is_possible]
        return whole, is_possible

    def whole(self, N: Matrix, factual: Matrix) -> Matrix:
        """Return points of actions with all that follows."""
        return self.complete(N, factual)[0]

    def unrounded(self) -> "Effects":
        """Return the same with values as they are computed, where their dtypes hold them."""
        each = (replace(one, decimals=None if one.dtype.kind == "f" else one.decimals) for one in self.each)
        return replace(self, each=tuple(each))

    def followed(self, N: Matrix, factual: Matrix, changed: Mask) -> Mask:
        """Say which features of whole rows differ from the factual's without having been changed."""
        return differs(N, factual) & ~changed

    def _value(self, effect: Effect, whole: Matrix, factual: Matrix, own: Matrix) -> Matrix:
        """Return the values of an effect whose causes have moved."""
        after = self.form.frame(whole)
        before = after if effect.mechanism.is_exact else self.form.frame(factual)
        return effect.placed(effect.mechanism.values(after, before, own))

    def notes(self, N: Matrix) -> tuple[str, ...]:
        """Return what a caller should know of derived columns: fitted rows that are not as computed."""
        said = []
        for effect in self.each:
            if not effect.mechanism.is_exact:
                continue
            value, own = self._value(effect, N, N, N[:, effect.at]), N[:, effect.at]
            with np.errstate(invalid="ignore"):
                apart = np.flatnonzero(differs(value, own) & ~(np.abs(value - own) <= EQUAL * np.abs(own)))
            if len(apart):
                first = f"{own[apart[0]]:g} is there, {value[apart[0]]:g} is computed"
                said.append(
                    f"column {effect.mechanism.effect!r} is not what its function says in {len(apart):,} of {len(N):,} "
                    f"fitted rows; at position {apart[0]}, {first}. Such a row keeps its value until a cause changes."
                )
        return tuple(said)


def _check_effect(form: TableForm, name: Hashable, is_derived: bool) -> None:
    feature = {one.name: one for one in form.schema.features}.get(name)
    if feature is not None and not feature.is_numeric:
        numbers = listed(one.name for one in form.schema.features if one.is_numeric)
        raise ParameterError(
            f"causes of {shortened(name)}: an effect must be a number, it is {feature.kind}. Numbers are: {numbers}."
        )
    by = form.converter(form.schema.names.index(name)) if feature is not None else None
    if by is not None and by.kind != "decimal" and not is_derived:
        raise ParameterError(
            f"causes of {shortened(name)}: it holds dates or durations, of which nothing is learned. Give a function."
        )


def _effect(form: TableForm, N: Matrix, readable: Sequence[int | None], mechanism: Mechanism) -> Effect:
    """Return a mechanism with the positions of its columns, and how its values are rounded."""
    names = form.schema.names
    at = names.index(mechanism.effect)
    dates = [name for name in mechanism.causes if (by := form.converter(names.index(name))) and by.kind != "decimal"]
    if dates and not mechanism.is_exact:
        raise ParameterError(
            f"causes of {mechanism.effect!r}: {listed(dates)} holds dates or durations, from which nothing is learned. "
            "Give a function of the rows, or a column of numbers."
        )
    feature, values = form.schema.features[at], present(N[:, at])
    decimals: int | None = 0
    if feature.kind == "continuous":  # what is computed is as exact as the table has it, what is learned readable
        exact = feature.decimals is None and mechanism.is_exact
        decimals = own_decimals(values, form.dtypes[at], MOST_EXACT) if exact else readable[at]
    step = 1.0 if mechanism.is_exact or feature.step is None else float(feature.step)
    places = np.array([names.index(name) for name in mechanism.causes], dtype=np.intp)
    return Effect(at, places, mechanism, decimals, step, form.given_dtypes[at], form.converter(at))
