"""Rows of a file, each cell as the fitted column has it.

    rows, form  ->  as_fitted  ->  rows

A file says nothing of dtypes: one cell of text makes a column of numbers text, and where no cell is text, names such as
"3" are read as numbers. Either would cost every row of the file, not the one with the odd cell.
"""

from collections import Counter
from collections.abc import Iterable
from math import isfinite
from numbers import Real
from typing import Any

import pandas as pd

from onbmacf._table.form import TableForm
from onbmacf.schema import Feature


def as_fitted(rows: pd.DataFrame, form: TableForm) -> pd.DataFrame:
    """Return rows whose numbers are numbers where the fitted column has numbers, and names where it has names."""
    rows = rows.copy()
    for place, feature in enumerate(form.schema.features):
        if feature.name in rows.columns and form.converter(place) is None:  # dates are read from text later
            rows[feature.name] = _cells(rows[feature.name], feature)
    return rows


def _cells(column: "pd.Series[Any]", feature: Feature) -> "pd.Series[Any]":
    is_text = pd.api.types.is_object_dtype(column.dtype) or pd.api.types.is_string_dtype(column.dtype)
    levels = feature.levels or ()
    if feature.is_numeric or all(isinstance(level, Real) and not isinstance(level, bool) for level in levels):
        return _numbers(column) if is_text else column
    return _names(column, levels) if pd.api.types.is_numeric_dtype(column.dtype) else column


def _numbers(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return the cells that are numbers as such, and the others as they are."""
    found = pd.to_numeric(column, errors="coerce")
    return found.astype(object).where(found.notna(), column.astype(object))


def _names(column: "pd.Series[Any]", levels: Iterable[Any]) -> "pd.Series[Any]":
    """Return numbers as the names that are written so; of two names of one number, neither."""
    named = {number: level for level in levels if (number := _number(level)) is not None}
    counts = Counter(_number(level) for level in levels)
    single = {number: level for number, level in named.items() if counts[number] == 1}
    return column.astype(object).map(lambda value: single.get(value, value)) if single else column


def _number(level: Any) -> float | None:
    try:
        number = float(level) if isinstance(level, str) else float("nan")
    except ValueError:
        return None
    return number if isfinite(number) else None
