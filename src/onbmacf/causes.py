"""What follows from what, as data: derived columns, and effects whose mechanism is learned from the table.

    Causes({"bmi": lambda rows: rows["weight"] / rows["height"] ** 2, "savings": ["income", "age"]})
    Causes, table  ->  learn  ->  Mechanisms, causes before their effects

A derived column is what its function says. An effect follows a structural equation with additive noise: its value is
f(causes) + residual, and the residual is the row's own. What would be, had the causes other values, is told as Pearl
does: the residual is read off the row (abduction), the causes are set (action), f is asked again (prediction).
`_table/effects.py` does this for rows; docs/decisions/0131-what-follows.md says what is assumed.
"""

from collections.abc import Callable, Hashable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._base.arrays import Matrix
from onbmacf._base.checks import did_you_mean, error_words, listed, names_of, shortened
from onbmacf._base.missing import differs
from onbmacf.errors import ParameterError

MOST_TRIED = 1_000  # rows on which it is found out what a function reads
FORMS = "a function of the rows, names of causes in a list, or a pair of such a list and a regressor or function"


@dataclass(frozen=True, eq=False)
class Causes:
    """What follows from what in a table.

    Parameters
    ----------
    effects : mapping
        By column, one of three. A function of a DataFrame of rows: the column is *derived*, computed and never chosen;
        what it is computed from is found out. A list of columns, its causes: an *effect*, whose linear mechanism is
        learned from the table given to ``fit``. A pair of such a list and a regressor of scikit-learn, or a
        function of rows: an effect with this mechanism, which gets the causes as a DataFrame, in the table's dtypes.

    Notes
    -----
    A function gets rows as a DataFrame of pandas and returns one number (of a column of dates, one date) per row.
    Effects and derived columns are numbers; their causes may be categories.

    Examples
    --------
    >>> causes = Causes({"bmi": lambda rows: rows["weight"] / rows["height"] ** 2, "savings": ["income", "age"]})
    >>> causes
    Causes: bmi is derived; savings follows from income, age

    """

    effects: Mapping[Hashable, Any]

    def __post_init__(self) -> None:
        if not isinstance(self.effects, Mapping) or not self.effects:
            raise ParameterError(f"causes must map columns to what they follow from, got {shortened(self.effects)}.")
        for name, given in self.effects.items():
            _read(name, given)

    def __repr__(self) -> str:
        read = {name: _read(name, given) for name, given in self.effects.items()}
        parts = [
            f"{name} is derived" if names is None else f"{name} follows from {', '.join(map(str, names))}"
            for name, (names, _) in read.items()
        ]
        return f"Causes: {'; '.join(parts)}"

    def learn(
        self, table: pd.DataFrame, known: "Mapping[Hashable, Mechanism] | None" = None
    ) -> "tuple[Mechanism, ...]":
        """Return the mechanisms, causes before their effects, learned where they are not known.

        Parameters
        ----------
        table : DataFrame
            The rows to learn from, with all columns.
        known : mapping of name to Mechanism, optional
            Linear mechanisms that were learned before.

        Returns
        -------
        tuple of Mechanism
            One per effect.

        """
        found: dict[Hashable, Mechanism] = {}
        for name, given in self.effects.items():
            names, how = _read(name, given)
            for column in (name, *(names or ())):
                _check_column(name, column, table)
            found[name] = _derived(name, how, table) if names is None else Mechanism(name, names, how)
        ordered = _in_order(found)
        return tuple((known or {}).get(one.effect) or one.learned(table) for one in ordered)


@dataclass(frozen=True, eq=False)
class Mechanism:
    """How one column follows from others.

    Attributes
    ----------
    effect : hashable
        The column.
    causes : tuple of hashable
        The columns that it follows from.
    how : object
        The function of a derived column; of an effect, a function or a fitted regressor, or None for a linear one.
    is_exact : bool
        Whether the column is what the function says, with no residual.
    weights : tuple
        Of a linear mechanism, per cause: the number by which it is multiplied, or a dict of what each level adds.

    """

    effect: Hashable
    causes: tuple[Hashable, ...]
    how: Any = None
    is_exact: bool = False
    weights: tuple[Any, ...] | None = None

    def learned(self, table: pd.DataFrame) -> "Mechanism":
        """Return the mechanism with its regressor fitted to a table, as far as there is something to learn."""
        if self.is_exact or (callable(self.how) and not hasattr(self.how, "fit")):
            return self
        own, X = table[self.effect].to_numpy(dtype=np.float64, na_value=np.nan), table[list(self.causes)]
        rows = np.flatnonzero(X.notna().all(axis=1).to_numpy() & ~np.isnan(own))
        if len(rows) <= len(self.causes):
            raise ParameterError(
                f"causes of {self.effect!r}: {len(rows)} rows have it and {listed(self.causes)}, too few to learn from."
            )
        X, y = X.iloc[rows], own[rows]
        if self.how is None:
            return Mechanism(self.effect, self.causes, weights=_least_squares(X, y))
        try:
            return Mechanism(self.effect, self.causes, deepcopy(self.how).fit(X, y))
        except Exception as error:
            raise ParameterError(
                f"causes of {self.effect!r}: {type(self.how).__name__} cannot be fitted to {listed(self.causes)}: "
                f"{error_words(error)}. Categories need a pipeline that encodes them."
            ) from error

    def values(self, after: pd.DataFrame, before: pd.DataFrame, own: Matrix) -> Any:
        """Return what the column would be in changed rows, whose residuals are those of the rows before.

        `own` is the column before.
        """
        if self.is_exact:
            return self.asked(after)
        if self.weights is None:  # a row and what becomes of it in one call, so that both have the same rounding error
            both = np.asarray(self.asked(pd.concat([before, after], ignore_index=True)), dtype=np.float64)
            return own - both[: len(before)] + both[len(before) :]
        value = own
        for name, weight in zip(self.causes, self.weights, strict=True):  # cause by cause: the same for any batch
            value = value + (_term(after[name], weight) - _term(before[name], weight))
        return value

    def asked(self, rows: pd.DataFrame) -> Any:
        """Return what the function or the regressor says of rows, checked for its shape."""
        function, given = self.how, rows
        if not self.is_exact:
            given = rows[list(self.causes)]
            function = self.how.predict if hasattr(self.how, "predict") else self.how
        try:
            said = function(given.copy())
        except Exception as error:
            raise ParameterError(f"causes: the function for {self.effect!r} raised {error_words(error)}.") from error
        shape = np.shape(said)
        if shape not in ((len(rows),), (len(rows), 1)):
            what = f"shape {shape}" if shape else shortened(said)
            raise ParameterError(
                f"causes: the function for {self.effect!r} returned {what} for {len(rows):,} rows: one number per row "
                "is due."
            )
        return np.asarray(said).reshape(-1)


def _read(name: Hashable, given: Any) -> tuple[tuple[Hashable, ...] | None, Any]:
    """Return the causes of a column, None where a function knows them, and how it follows from them."""
    if callable(given) and not hasattr(given, "fit"):
        return None, given
    is_pair = isinstance(given, tuple) and len(given) == 2 and (callable(given[1]) or hasattr(given[1], "fit"))
    names, how = given if is_pair else (given, None)
    if not isinstance(names, str | list | tuple) or not len(names):
        raise ParameterError(f"causes of {shortened(name)} must be {FORMS}, got {shortened(given)}.")
    if how is not None and hasattr(how, "fit") and not hasattr(how, "predict"):
        raise ParameterError(f"causes of {shortened(name)}: {shortened(how)} has no predict: give a regressor.")
    return tuple(names_of(f"causes of {shortened(name)}", names)), how


def _check_column(effect: Hashable, column: Hashable, table: pd.DataFrame) -> None:
    if column not in table.columns:
        role = "there is no such column" if column == effect else f"it follows from {shortened(column)}, no such column"
        known = f"Columns: {listed(table.columns)}."
        raise ParameterError(f"causes of {shortened(effect)}: {role}.{did_you_mean(column, table.columns)} {known}")


def _derived(name: Hashable, function: Callable[[pd.DataFrame], Any], table: pd.DataFrame) -> Mechanism:
    """Return the mechanism of a derived column, by leaving out one column after the other: what that changes, it reads.

    A function that reads its columns by name fails without them; one that takes all there are says something else.
    """
    exact, rows = Mechanism(name, (), function, is_exact=True), table.iloc[:MOST_TRIED]
    said = exact.asked(rows)
    if not _is_same(said, exact.asked(rows)):
        raise ParameterError(f"causes: the function for {name!r} says something else when it is asked again.")
    causes = []
    for column in table.columns:
        try:
            same = _is_same(said, exact.asked(rows.drop(columns=column)))
        except ParameterError:
            same = False
        if not same:
            causes.append(column)
    if not causes:
        raise ParameterError(f"causes: the function for {name!r} reads no column: what it says never changes.")
    return Mechanism(name, tuple(causes), function, is_exact=True)


def _is_same(said: Any, again: Any) -> bool:
    try:
        return not differs(said.astype(np.float64), again.astype(np.float64)).any()
    except (TypeError, ValueError):  # dates, or objects
        return bool(pd.Series(said).equals(pd.Series(again)))


def _in_order(found: Mapping[Hashable, Mechanism]) -> list[Mechanism]:
    """Return mechanisms with causes before their effects."""
    graph = {name: [cause for cause in one.causes if cause in found] for name, one in found.items()}
    try:
        return [found[name] for name in TopologicalSorter(graph).static_order()]
    except CycleError as error:
        raise ParameterError(
            f"causes go in a circle: {' <- '.join(map(shortened, error.args[1]))}. Nothing can follow from itself."
        ) from error


def _least_squares(X: pd.DataFrame, y: Matrix) -> tuple[Any, ...]:
    """Return the weights of a linear mechanism: of a number its coefficient, of a category what each level adds."""
    from sklearn.linear_model import LinearRegression  # here, since it takes two seconds to import

    columns: list[Matrix] = [np.zeros(len(X))]  # there is one even if every cause is a category of one level
    of_cause: list[list[Any] | None] = []
    for name in X.columns:
        if pd.api.types.is_numeric_dtype(X[name].dtype) and not pd.api.types.is_bool_dtype(X[name].dtype):
            columns.append(X[name].to_numpy(dtype=np.float64))
            of_cause.append(None)
        else:
            levels = list(dict.fromkeys(X[name].tolist()))
            columns += [(X[name] == level).to_numpy(dtype=np.float64) for level in levels[1:]]
            of_cause.append(levels)
    fitted = iter(LinearRegression().fit(np.column_stack(columns), y).coef_[1:].tolist())
    return tuple(
        next(fitted) if levels is None else {level: next(fitted) if at else 0.0 for at, level in enumerate(levels)}
        for levels in of_cause
    )


def _term(column: "pd.Series[Any]", weight: Any) -> Matrix:
    """Return what a cause adds to each row; NaN for a missing value or a level that was not seen."""
    if isinstance(weight, dict):
        return np.array([weight.get(value, np.nan) for value in column.tolist()], dtype=np.float64)
    return weight * column.to_numpy(dtype=np.float64, na_value=np.nan)
