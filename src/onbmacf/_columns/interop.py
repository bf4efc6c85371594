"""A caller's table as a pandas DataFrame with distinct columns, whatever it came as; polars column by column."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._base.checks import error_words, listed
from onbmacf._base.containers import is_foreign_table, kind_of, plain_array
from onbmacf.errors import TableError

ARGUMENTS = {  # dtypes that are saved, with what else has to be known of each
    **{f"{sign}Int{size}": () for sign in ("", "U") for size in (8, 16, 32, 64)},
    **dict.fromkeys(("Float32", "Float64", "Boolean", "String", "Categorical", "Date"), ()),
    "Datetime": ("time_unit", "time_zone"),
    "Duration": ("time_unit",),
    "Decimal": ("precision", "scale"),
    "Enum": ("categories",),
}
ARROW = ("pyarrow Table", "pyarrow RecordBatch")


# --- polars -----------------------------------------------------------------------------------------------------------


def is_polars(table: Any) -> bool:
    """Say whether something is a DataFrame of polars."""
    return kind_of(table) == "polars DataFrame"


def pandas_frame(table: Any) -> pd.DataFrame:
    """Return a frame of polars as one of pandas; anything else as it is."""
    if not is_polars(table):
        return table
    columns = {series.name: _pandas_column(series) for series in table.get_columns()}
    return pd.DataFrame(columns, index=pd.RangeIndex(table.height))


def _pandas_column(series: Any) -> Any:
    """Return a column in the dtype of pandas that is nearest to its own; null and NaN are both missing."""
    dtype, name = series.dtype, _name(series.dtype)
    if name == "Enum":
        return pd.Categorical(series.to_list(), categories=dtype.categories.to_list(), ordered=True)
    if name == "Categorical":  # the levels that the column has, sorted: polars shares its list with other columns
        return pd.Categorical(series.to_list())
    if name in ("Date", "Datetime", "Duration"):
        return _pandas_times(series, getattr(dtype, "time_zone", None))
    if name == "Boolean" or (dtype.is_integer() and name in ARGUMENTS):
        return _pandas_whole(series)
    if dtype.is_float():
        return series.to_numpy(writable=True)
    is_text = name == "String" and series.null_count() < len(series)
    return pd.Series(series.to_list(), dtype=None if is_text else object)


def _pandas_times(series: Any, zone: str | None) -> "pd.Series[Any]":
    times = pd.Series(series.to_numpy(writable=True))
    return times if zone is None else times.dt.tz_localize("UTC").dt.tz_convert(zone)


def _pandas_whole(series: Any) -> Any:
    """Return whole numbers or truth values: of numpy where none is missing, otherwise of pandas."""
    if not series.null_count():
        return series.to_numpy(writable=True)
    made = pd.arrays.BooleanArray if _name(series.dtype) == "Boolean" else pd.arrays.IntegerArray
    known = series.fill_null(strategy="zero") if made is pd.arrays.IntegerArray else series.fill_null(False)
    return made(known.to_numpy(writable=True), series.is_null().to_numpy(writable=True))


def with_room(frame: pd.DataFrame, names: Iterable[Hashable]) -> pd.DataFrame:
    """Return a frame in which some columns can lack values: polars has null in every dtype, numpy has not."""
    plain = {name: frame[name].dtype for name in names if isinstance(frame[name].dtype, np.dtype)}
    sizes = {"i": "Int", "u": "UInt"}
    room = {
        name: "boolean" if dtype.kind == "b" else f"{sizes[dtype.kind]}{8 * dtype.itemsize}"
        for name, dtype in plain.items()
        if dtype.kind in "iub"
    }
    return frame.astype(room) if room else frame


@dataclass(frozen=True)
class PolarsTypes:
    """The dtypes of a caller's frame of polars, in the order of the features."""

    dtypes: tuple[Any, ...]
    is_nan: tuple[bool, ...]  # per column: whether a missing value is NaN; it is null otherwise

    @classmethod
    def of(cls, table: Any, names: Iterable[Hashable]) -> "PolarsTypes":
        """Return the dtypes of these columns; a column of floats that has NaN and no null keeps NaN."""
        columns = [table.get_column(name) for name in names]
        return cls(tuple(column.dtype for column in columns), tuple(_has_only_nan(column) for column in columns))

    def frame(self, frame: pd.DataFrame) -> Any:
        """Return rows as a frame of polars in these dtypes."""
        columns = zip(frame.columns, self.dtypes, self.is_nan, strict=True)
        return _polars().DataFrame([polars_column(name, frame[name], *how) for name, *how in columns])

    def described(self) -> list[list[Any]]:
        """Return the dtypes in a form that JSON can hold: name, arguments, whether missing values are NaN."""
        return [
            [_name(dtype), _arguments(dtype), is_nan] for dtype, is_nan in zip(self.dtypes, self.is_nan, strict=True)
        ]

    @classmethod
    def from_description(cls, entries: Iterable[list[Any]]) -> "PolarsTypes":
        """Return the dtypes that were described."""
        known = [(getattr(_polars(), name)(*arguments), is_nan) for name, arguments, is_nan in entries]
        return cls(tuple(dtype for dtype, _ in known), tuple(is_nan for _, is_nan in known))


def polars_column(name: Hashable, column: "pd.Series[Any]", dtype: Any = None, is_nan: bool = False) -> Any:
    """Return a column as one of polars: in a dtype, or by default in that of its values."""
    kind, lacks = column.dtype.kind, column.isna().to_numpy()
    if kind in "mM":
        found = _polars_times(column)
        zone = getattr(dtype, "time_zone", None) if dtype is not None else getattr(column.dtype, "tz", None)
        found = found if zone is None else found.dt.replace_time_zone("UTC").dt.convert_time_zone(str(zone))
    elif isinstance(column.dtype, np.dtype) and kind in "fiub":
        found = _polars().Series(column.to_numpy())
        found = found.fill_nan(None) if kind == "f" and not is_nan and lacks.any() else found
    else:
        values = [None if lack else _plain(value) for value, lack in zip(column.tolist(), lacks, strict=True)]
        found = _polars().Series(values, dtype=None if values else dtype)
    return (found if dtype is None else found.cast(dtype)).alias(str(name))


def polars_frame(frame: pd.DataFrame, features: Iterable[Hashable], types: PolarsTypes | None) -> Any:
    """Return any frame as one of polars; its features in the caller's dtypes, where these are known."""
    how = {} if types is None else dict(zip(features, zip(types.dtypes, types.is_nan, strict=True), strict=True))
    return _polars().DataFrame([polars_column(name, frame[name], *how.get(name, ())) for name in frame.columns])


def _polars_times(column: "pd.Series[Any]") -> Any:
    """Return times in UTC, or durations."""
    plain = column if getattr(column.dtype, "tz", None) is None else column.dt.tz_convert("UTC").dt.tz_localize(None)
    return _polars().Series(plain.dt.as_unit("us").to_numpy())


def _plain(value: Any) -> Any:
    """Return a value as it is, or as text where it is an object of ours."""
    return value if type(value).__module__ in ("builtins", "datetime", "decimal", "numpy") else str(value)


def _has_only_nan(series: Any) -> bool:
    return bool(series.dtype.is_float() and not series.null_count() and series.is_nan().any())


def _arguments(dtype: Any) -> list[Any]:
    values = [getattr(dtype, name) for name in ARGUMENTS.get(_name(dtype), ())]
    return [value.to_list() if hasattr(value, "to_list") else value for value in values]


def _name(dtype: Any) -> str:
    return str(dtype.base_type())


def _polars() -> Any:
    try:
        return import_module("polars")
    except ImportError as error:
        raise ImportError("frames of polars need polars: pip install polars") from error


# --- any frame --------------------------------------------------------------------------------------------------------


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
