"""A caller's table as a pandas DataFrame with distinct columns, whatever it came as."""

from collections.abc import Hashable, Iterable
from typing import Any

import pandas as pd

from onbmacf._base.checks import error_words, listed
from onbmacf._base.containers import is_foreign_table, kind_of, plain_array
from onbmacf._columns.polars_frames import pandas_frame
from onbmacf.errors import TableError

ARROW = ("pyarrow Table", "pyarrow RecordBatch")


def as_frame(table: Any) -> pd.DataFrame:
    """Return the table as a DataFrame with distinct columns; arrays get the names x0, x1, ..."""
    if hasattr(table, "toarray") or "sparse" in type(table).__module__:
        raise TableError("the table is a sparse matrix, which is not supported: dense only. Call .toarray() first.")
    table = pandas_frame(arrow_as_pandas(table))
    if isinstance(table, pd.DataFrame):
        if not table.columns.is_unique:
            raise TableError(f"column names repeat: {listed(repeated(table.columns))}. Rename them.")
        _check_readable(table)
        return table
    if is_foreign_table(table):
        raise TableError(
            f"the table is a {kind_of(table)}: pass a DataFrame of pandas or polars, a table of pyarrow, or an array."
        )
    if kind_of(table) == "polars LazyFrame":
        raise TableError("the table is a polars LazyFrame, whose rows are not read yet. Call .collect() first.")
    values = plain_array(table, TableError, as_objects=False)
    if values.ndim != 2:
        raise TableError(f"the table must have rows and columns, got an array of shape {values.shape}.")
    frame = pd.DataFrame(values, columns=[f"x{at}" for at in range(values.shape[1])], dtype=values.dtype)
    _check_readable(frame)
    return frame.infer_objects()


def _check_readable(table: pd.DataFrame) -> None:
    """Raise an error where pandas itself cannot look at the objects of a column: half a character, an odd decimal."""
    for column in (table.iloc[:, at] for at, dtype in enumerate(table.dtypes) if dtype.kind == "O"):
        try:
            column[column.notna()].infer_objects()
        except Exception as error:  # of whatever class the objects are
            raise TableError(f"column {column.name!r} holds what cannot be read: {error_words(error)}") from error


def frame_of_cells(cells: Any, columns: Any = None) -> pd.DataFrame:
    """Return records, or columns by name, as a DataFrame; as objects where a text holds half a character."""
    try:
        return pd.DataFrame(cells, columns=columns)
    except UnicodeEncodeError:  # pandas' own text cannot hold it
        return pd.DataFrame(cells, columns=columns, dtype=object)


def arrow_as_pandas(table: Any) -> Any:
    """Return a table of pyarrow as a DataFrame in its dtypes, dictionaries as categories; anything else as it is."""
    if kind_of(table) not in ARROW:
        return table

    def dtype_of(arrow: Any) -> Any:
        return None if str(arrow).startswith("dictionary") else pd.ArrowDtype(arrow)

    return table.to_pandas(types_mapper=dtype_of)


def repeated(names: Iterable[Hashable]) -> list[Hashable]:
    """Return the names that occur more than once."""
    seen: set[Hashable] = set()
    return sorted({name for name in names if name in seen or seen.add(name)}, key=str)  # type: ignore[func-returns-value]
