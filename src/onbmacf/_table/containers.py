"""Rows in whatever container a caller has them -> a DataFrame, by the names of columns where the container has any.

    rows, names of the columns, those as an Index  ->  rows_frame  ->  DataFrame

Positions count only where there are no names: arrays and plain lists. Frames of polars are turned column by column,
tables of other libraries (pyarrow and the like) make themselves a DataFrame.
"""

from collections.abc import Hashable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.checks import listed
from onbmacf._base.containers import is_foreign_table, kind_of, plain_array
from onbmacf._columns.interop import arrow_as_pandas, frame_of_cells, pandas_frame
from onbmacf._table.blocks import frame_of_row
from onbmacf.errors import RowsError


def rows_frame(rows: Any, names: tuple[Hashable, ...], columns: Any) -> pd.DataFrame:
    """Return rows as a DataFrame with the columns that they have; what has no names must have as many as `names`."""
    rows = pandas_frame(arrow_as_pandas(rows))
    if isinstance(rows, pd.DataFrame):
        return rows
    if isinstance(rows, pd.Series):
        return _of_series(rows)
    if _is_record(rows):
        return _of_record(_record(rows), names, columns)
    if is_foreign_table(rows):
        return _by_name(rows)
    if isinstance(rows, list | tuple) and len(rows) and all(_is_record(row) for row in rows):
        return frame_of_cells([_record(row) for row in rows])
    values = plain_array(rows, RowsError)
    if values.ndim == 0:
        raise RowsError(f"the rows are of type {type(rows).__name__}. Pass a DataFrame, a Series, a dict or an array.")
    return _of_fields(values) if values.dtype.names else _positional(values, names)


def _is_record(row: Any) -> bool:
    return isinstance(row, Mapping) or (isinstance(row, tuple) and hasattr(row, "_asdict"))


def _record(row: Any) -> dict[Any, Any]:
    return dict(row) if isinstance(row, Mapping) else row._asdict()


def _of_series(row: "pd.Series[Any]") -> pd.DataFrame:
    cells, made = row.tolist(), None
    if row.name is None or type(row.name) in (str, int):
        made = frame_of_row(cells, row.index, pd.Index([row.name]))
    return frame_of_cells([cells], row.index).set_axis([row.name]) if made is None else made


def _of_record(record: dict[Any, Any], names: tuple[Hashable, ...], columns: Any) -> pd.DataFrame:
    made = None
    if type(columns) is pd.Index and len(record) == len(names) and all(name in record for name in names):
        made = frame_of_row([record[name] for name in names], columns, pd.RangeIndex(1))
    return frame_of_cells([record]) if made is None else made


def _by_name(rows: Any) -> pd.DataFrame:
    """Return a table of another library as a DataFrame: through its own method, else through pyarrow."""
    kind = kind_of(rows)
    try:
        table = rows if hasattr(rows, "to_pandas") else import_module("pyarrow").table(rows)
        frame = table.to_pandas()
    except Exception as cause:
        raise RowsError(f"the {kind} cannot be made a pandas DataFrame ({cause}). Convert it first.") from cause
    if not isinstance(frame, pd.DataFrame):
        raise RowsError(f"a {kind} is one column without the names of features. Pass a table, a dict or a Series.")
    return frame


def _of_fields(values: NDArray[Any]) -> pd.DataFrame:
    """Return a structured array as a DataFrame."""
    try:
        return pd.DataFrame(values)
    except ValueError as cause:
        raise RowsError(f"the structured array cannot be read as rows and columns: {cause}.") from cause


def _positional(values: NDArray[Any], names: tuple[Hashable, ...]) -> pd.DataFrame:
    """Return an array as rows: one row where it has one dimension."""
    if values.ndim == 1:
        _check_cells(values)
        values = values[np.newaxis, :] if values.size else np.empty((0, len(names)))
    if values.ndim != 2 or values.shape[1] != len(names):
        width = values.shape[1] if values.ndim == 2 else f"shape {values.shape}"
        raise RowsError(f"the rows have width {width}; fit saw {len(names)} columns: {listed(names)}.")
    frame = pd.DataFrame(values, columns=pd.Index(names, dtype=object), dtype=values.dtype)
    try:
        return frame.infer_objects()
    except UnicodeEncodeError:  # half a character: see frame_of_cells
        return frame


def _check_cells(values: NDArray[Any]) -> None:
    """Raise an error where what should be one row holds rows: lists of different lengths, or dicts among others."""
    inner = [value for value in values.tolist() if isinstance(value, list | tuple | np.ndarray | Mapping)]
    if inner:
        sizes = sorted({len(value) for value in inner})
        raise RowsError(f"the rows are of different forms or lengths ({listed(sizes)}): every row needs all columns.")
