"""A caller's table, or rows to explain, as a pandas DataFrame, whatever container they came in.

    table  ->  as_frame  ->  DataFrame with distinct columns
    rows, names of the columns, those as an Index  ->  rows_frame  ->  DataFrame with the columns that the rows have

Columns are told apart by name; positions count only where there are no names: arrays and plain lists. Frames of polars
are converted column by column, tables of other libraries (pyarrow and the like) convert themselves.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.checks import error_words, listed
from onbmacf._columns.blocks import frame_of_row
from onbmacf.errors import RowsError, TableError

ARGUMENTS = {  # dtypes that are saved, with what else has to be known of each
    **{f"{sign}Int{size}": () for sign in ("", "U") for size in (8, 16, 32, 64)},
    **dict.fromkeys(("Float32", "Float64", "Boolean", "String", "Categorical", "Date"), ()),
    "Datetime": ("time_unit", "time_zone"),
    "Duration": ("time_unit",),
    "Decimal": ("precision", "scale"),
    "Enum": ("categories",),
}
FOREIGN = ("to_pandas", "__arrow_c_stream__", "__dataframe__")  # what tables of other libraries have


# --- containers -------------------------------------------------------------------------------------------------------


def is_foreign_table(rows: Any) -> bool:
    """Say whether something is a table, or a column, of another library than pandas."""
    is_own = type(rows).__module__.split(".")[0] in ("pandas", "numpy")
    return not is_own and any(hasattr(rows, name) for name in FOREIGN)


def is_dask_frame(rows: Any) -> bool:
    """Say whether rows are a Dask DataFrame, without importing Dask."""
    return type(rows).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(rows, "map_partitions")


def kind_of(rows: Any) -> str:
    """Return the library and the type of something in words.

    >>> kind_of(np.zeros(2))
    'numpy ndarray'
    """
    return f"{type(rows).__module__.split('.')[0]} {type(rows).__name__}"


def plain_array(rows: Any, error: type[Exception], as_objects: bool = True) -> NDArray[Any]:
    """Return rows without names as an array: cells of a list each as it is, unless told otherwise; masked: missing."""
    if "sparse" in type(rows).__module__:
        raise error(f"{type(rows).__name__} is sparse: only dense rows are supported. Call .toarray() first.")
    if isinstance(rows, np.ma.MaskedArray):
        return np.asarray(np.ma.filled(rows.astype(object), None))
    try:
        return np.array(rows, dtype=object) if as_objects and isinstance(rows, list | tuple) else np.asarray(rows)
    except Exception as cause:
        raise error(f"{type(rows).__name__} cannot be read as rows and columns: {cause}") from cause


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
        times, zone = pd.Series(series.to_numpy(writable=True)), getattr(dtype, "time_zone", None)
        return times if zone is None else times.dt.tz_localize("UTC").dt.tz_convert(zone)
    if name == "Boolean" or (dtype.is_integer() and name in ARGUMENTS):
        return _pandas_whole(series)
    if dtype.is_float():
        return series.to_numpy(writable=True)
    is_text = name == "String" and series.null_count() < len(series)
    return pd.Series(series.to_list(), dtype=None if is_text else object)


def _pandas_whole(series: Any) -> Any:
    """Return whole numbers or truth values: of numpy where none is missing, otherwise of pandas."""
    if not series.null_count():
        return series.to_numpy(writable=True)
    made = pd.arrays.BooleanArray if _name(series.dtype) == "Boolean" else pd.arrays.IntegerArray
    known = series.fill_null(strategy="zero") if made is pd.arrays.IntegerArray else series.fill_null(False)
    return made(known.to_numpy(writable=True), series.is_null().to_numpy(writable=True))


@dataclass(frozen=True)
class PolarsTypes:
    """The dtypes of a caller's frame of polars, in the order of the features."""

    dtypes: tuple[Any, ...]
    is_nan: tuple[bool, ...]  # per column: whether a missing value is NaN; it is null otherwise

    @classmethod
    def of(cls, table: Any, names: Iterable[Hashable]) -> "PolarsTypes":
        """Return the dtypes of these columns; a column of floats that has NaN and no null keeps NaN."""
        columns = [table.get_column(name) for name in names]
        is_nan = [c.dtype.is_float() and not c.null_count() and bool(c.is_nan().any()) for c in columns]
        return cls(tuple(column.dtype for column in columns), tuple(is_nan))

    def frame(self, frame: pd.DataFrame) -> Any:
        """Return rows as a frame of polars in these dtypes."""
        columns = zip(frame.columns, self.dtypes, self.is_nan, strict=True)
        return _polars().DataFrame([polars_column(name, frame[name], *how) for name, *how in columns])

    def described(self) -> list[list[Any]]:
        """Return the dtypes in a form that JSON can hold: name, arguments, whether missing values are NaN."""
        entries: list[list[Any]] = []
        for dtype, is_nan in zip(self.dtypes, self.is_nan, strict=True):
            values = [getattr(dtype, argument) for argument in ARGUMENTS.get(_name(dtype), ())]
            arguments = [value.to_list() if hasattr(value, "to_list") else value for value in values]
            entries.append([_name(dtype), arguments, is_nan])
        return entries

    @classmethod
    def from_description(cls, entries: Iterable[list[Any]]) -> "PolarsTypes":
        """Return the dtypes that were described."""
        known = [(getattr(_polars(), name)(*arguments), is_nan) for name, arguments, is_nan in entries]
        return cls(tuple(dtype for dtype, _ in known), tuple(is_nan for _, is_nan in known))


def polars_column(name: Hashable, column: "pd.Series[Any]", dtype: Any = None, is_nan: bool = False) -> Any:
    """Return a column as one of polars: in a dtype, or by default in that of its values."""
    kind, lacks = column.dtype.kind, column.isna().to_numpy()
    if kind in "mM":
        is_local = getattr(column.dtype, "tz", None) is None
        utc = column if is_local else column.dt.tz_convert("UTC").dt.tz_localize(None)
        found = _polars().Series(utc.dt.as_unit("us").to_numpy())
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


def _plain(value: Any) -> Any:
    """Return a value as it is, or as text where it is an object of ours."""
    return value if type(value).__module__ in ("builtins", "datetime", "decimal", "numpy") else str(value)


def _name(dtype: Any) -> str:
    return str(dtype.base_type())


def _polars() -> Any:
    try:
        return import_module("polars")
    except ImportError as error:
        raise ImportError("frames of polars need polars: pip install polars") from error


# --- tables -----------------------------------------------------------------------------------------------------------


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
    """Return records, or columns by name, as a DataFrame; as objects where pandas cannot infer what the cells are."""
    try:
        return pd.DataFrame(cells, columns=columns)
    except (UnicodeEncodeError, OverflowError):  # half a character; pandas 2 makes a float of 10**400
        return pd.DataFrame(cells, columns=columns, dtype=object)


def arrow_as_pandas(table: Any) -> Any:
    """Return a table of pyarrow as a DataFrame in its dtypes, dictionaries as categories; anything else as it is."""
    if kind_of(table) not in ("pyarrow Table", "pyarrow RecordBatch"):
        return table
    return table.to_pandas(types_mapper=lambda a: None if str(a).startswith("dictionary") else pd.ArrowDtype(a))


def repeated(names: Iterable[Hashable]) -> list[Hashable]:
    """Return the names that occur more than once."""
    seen: set[Hashable] = set()
    return sorted({name for name in names if name in seen or seen.add(name)}, key=str)  # type: ignore[func-returns-value]


# --- rows -------------------------------------------------------------------------------------------------------------


def rows_frame(rows: Any, names: tuple[Hashable, ...], columns: Any) -> pd.DataFrame:
    """Return rows as a DataFrame with the columns that they have; what has no names must have as many as `names`."""
    rows = pandas_frame(arrow_as_pandas(rows))
    if isinstance(rows, pd.DataFrame):
        return rows
    if isinstance(rows, pd.Series):
        made = None
        if rows.name is None or type(rows.name) in (str, int):
            made = frame_of_row(rows.tolist(), rows.index, pd.Index([rows.name]))
        return frame_of_cells([rows.tolist()], rows.index).set_axis([rows.name]) if made is None else made
    if _is_record(rows):
        record, made = _record(rows), None
        if type(columns) is pd.Index and len(record) == len(names) and all(name in record for name in names):
            made = frame_of_row([record[name] for name in names], columns, pd.RangeIndex(1))
        return frame_of_cells([record]) if made is None else made
    if is_foreign_table(rows):
        return _by_name(rows)
    if isinstance(rows, list | tuple) and len(rows) and all(_is_record(row) for row in rows):
        return frame_of_cells([_record(row) for row in rows])
    values = plain_array(rows, RowsError)
    if values.ndim == 0:
        raise RowsError(f"the rows are of type {type(rows).__name__}. Pass a DataFrame, a Series, a dict or an array.")
    if not values.dtype.names:
        return _positional(values, names)
    try:
        return pd.DataFrame(values)
    except ValueError as cause:
        raise RowsError(f"the structured array cannot be read as rows and columns: {cause}.") from cause


def _is_record(row: Any) -> bool:
    return isinstance(row, Mapping) or (isinstance(row, tuple) and hasattr(row, "_asdict"))


def _record(row: Any) -> dict[Any, Any]:
    return dict(row) if isinstance(row, Mapping) else row._asdict()


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


def _positional(values: NDArray[Any], names: tuple[Hashable, ...]) -> pd.DataFrame:
    """Return an array as rows: one row where it has one dimension."""
    if values.ndim == 1:
        inner = [value for value in values.tolist() if isinstance(value, list | tuple | np.ndarray | Mapping)]
        if inner:  # what should be one row holds rows: lists of different lengths, or dicts among others
            sizes = listed(sorted({len(value) for value in inner}))
            raise RowsError(f"the rows are of different forms or lengths ({sizes}): every row needs all columns.")
        values = values[np.newaxis, :] if values.size else np.empty((0, len(names)))
    if values.ndim != 2 or values.shape[1] != len(names):
        width = values.shape[1] if values.ndim == 2 else f"shape {values.shape}"
        raise RowsError(f"the rows have width {width}; fit saw {len(names)} columns: {listed(names)}.")
    frame = pd.DataFrame(values, columns=pd.Index(names, dtype=object), dtype=values.dtype)
    try:
        return frame.infer_objects()
    except (UnicodeEncodeError, OverflowError):  # see frame_of_cells
        return frame
