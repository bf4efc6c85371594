"""What the model sees of each value: the columns that belong to each feature, value by value.

Domain, rows -> columns  ->  ColumnTable.of  ->  per feature: its columns, and what each of its values makes of them
"""

from typing import Any, NamedTuple

import numpy as np

from onbmacf._base.arrays import Matrix, Rows
from onbmacf._prove.columns import ToColumns
from onbmacf._prove.values import Choices, Domain, NotKnownError
from onbmacf._rows.form import TableForm

AT_ONCE = 1 << 15  # rows that are turned into columns together


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
