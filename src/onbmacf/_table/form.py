"""The caller's table <-> a matrix of numbers: numbers are unchanged, levels become their positions.

    frame  ->  TableForm.numbers  ->  N (rows x features, float64)  ->  TableForm.rows_for_model

A missing value is NaN among the numbers, and comes back as what it was in the caller's column: NaN, None or pd.NA. The
only module that knows about dtypes, column names and indexes.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._base.arrays import Mask, Matrix, Rows, arrays_of, shared
from onbmacf._base.checks import did_you_mean, is_absent, listed
from onbmacf._columns.blocks import BlockForm
from onbmacf._columns.converters import Converter, converter_of, holds
from onbmacf._columns.interop import PolarsTypes, arrow_as_pandas, as_frame, is_polars, rows_frame
from onbmacf._columns.kinds import LARGEST_EXACT, observed_levels
from onbmacf._columns.moments import allowed_in
from onbmacf._table.cells import comes_back, exact_numbers, given_dtype, level_codes, shown
from onbmacf._text.frames import with_room
from onbmacf.errors import RowsError, TableError
from onbmacf.schema import Feature, Schema

MASKED = (pd.arrays.IntegerArray, pd.arrays.FloatingArray, pd.arrays.BooleanArray)  # of pandas' nullable dtypes
IDENTIFIER_ROWS = 20  # with fewer rows, all values being different means little


@dataclass(frozen=True, eq=False)
class TableForm:
    """The form of the caller's rows: names, dtypes, levels, and whether they are a frame or an array."""

    schema: Schema
    dtypes: tuple[Any, ...]
    array_dtype: Any = None  # None: the caller uses frames
    lacking: tuple[Any, ...] = ()  # per feature: what stands for a missing value where its dtype leaves that open
    converters: tuple[tuple[int, Converter], ...] = ()  # positions of dates, decimals and the like; float64 in `dtypes`
    polars: PolarsTypes | None = None  # the dtypes of polars, where the caller uses its frames
    origin: "TableForm | None" = None  # of which this is a view with other immutable features and rules

    @classmethod
    def fit(cls, table: Any, schema: Schema | None) -> "TableForm":
        """Check the table given to fit and record its form."""
        table = arrow_as_pandas(table)
        frame = as_frame(table)
        _check_size(frame)
        schema = Schema.infer(frame) if schema is None else schema
        frame = _in_order(frame, schema.names, TableError)[0]
        empty = [name for name in frame.columns if frame[name].isna().all()]
        if empty:
            raise TableError(f"every value of column {listed(empty)} is missing. Leave it out.")
        types = PolarsTypes.of(table, schema.names) if is_polars(table) else None
        if types is not None:  # polars has null in every dtype, numpy has not
            frame = with_room(frame, [feature.name for feature in schema.features if feature.missing])
        features = tuple(_with_levels(feature, frame[feature.name]) for feature in schema.features)
        array_dtype = None if isinstance(table, pd.DataFrame) or types is not None else np.asarray(table).dtype
        dtypes, given = tuple(frame[name].dtype for name in schema.names), frame if array_dtype is None else table
        form = cls(replace(schema, features=features), dtypes, array_dtype, missing_values(given, len(features)))
        form = replace(form.converting(frame), polars=types)
        N = form.numbers(frame)
        _check_finite(form, N)
        _check_exact(form, frame, N)
        return form

    def converting(self, frame: pd.DataFrame) -> "TableForm":
        """Return the form with a converter for each column whose values are measured as numbers but are none."""
        columns = [(at, frame[f.name]) for at, f in enumerate(self.schema.features) if f.is_numeric]
        found = tuple((at, converter) for at, column in columns if (converter := converter_of(column)) is not None)
        places = dict(found)
        dtypes = tuple(np.dtype(np.float64) if at in places else dtype for at, dtype in enumerate(self.dtypes))
        return replace(self, schema=with_holds(self.schema, places), dtypes=dtypes, converters=found)

    @property
    def days(self) -> tuple[Hashable, ...]:
        """The names of the columns that hold dates as times of whole days."""
        return tuple(
            self.schema.names[at]
            for at, converter in self.converters
            if converter.kind == "time" and converter.unit == "D"
        )

    def under(self, schema: Schema) -> "TableForm":
        """Return the same form with other immutable features and rules."""
        return replace(self, schema=schema, origin=self.origin or self)

    def __getstate__(self) -> dict[str, Any]:
        return {name: held for name, held in self.__dict__.items() if name != "_blocks"}  # pandas' own, not to be sent

    def numbers(self, frame: pd.DataFrame) -> Matrix:
        """Return the rows as numbers: NaN for a missing value, infinity for no number, -1 for an unseen level."""
        N = np.empty((len(frame), len(self.schema.features)))
        frame = frame if frame.columns.tolist() == list(self.schema.names) else frame[list(self.schema.names)]
        with np.errstate(over="ignore"):  # a number that float64 cannot hold is infinite
            for position, array in enumerate(arrays_of(frame)):
                if position in self._converter_of:
                    N[:, position] = self._converter_of[position].numbers(
                        pd.Series(array, dtype=array.dtype, copy=False)  # as it is: pandas cannot infer every cell
                    )
                elif position in self._code_of:
                    N[:, position] = level_codes(array, self._code_of[position])
                else:
                    N[:, position] = exact_numbers(array)
        return N

    @shared
    def _code_of(self) -> dict[int, dict[Any, int]]:
        """The code of each level, for the features that have levels."""
        return {
            position: {level: code for code, level in enumerate(feature.levels or ())}
            for position, feature in enumerate(self.schema.features)
            if not feature.is_numeric
        }

    @shared
    def _converter_of(self) -> dict[int, Converter]:
        return dict(self.converters)

    def converter(self, position: int) -> Converter | None:
        """Return how the values of a feature become numbers; None where they are numbers or levels."""
        return self._converter_of.get(position)

    def frame(self, N: Matrix) -> pd.DataFrame:
        """Return numbers as rows with the caller's columns and dtypes: the inverse of `numbers`."""
        return self.plain_frame(N) if self._blocks is None else self._blocks.frame(N)

    def plain_frame(self, N: Matrix) -> pd.DataFrame:
        """Return what `frame` does, column by column."""
        columns = {}
        for position, feature in enumerate(self.schema.features):
            if feature.is_numeric:
                array = self._number_array(position, N[:, position])
            else:
                array = self._level_arrays[position].take(self._places(N, position))
            columns[feature.name] = pd.Series(array, dtype=array.dtype, copy=False)
        return pd.DataFrame(columns, index=pd.RangeIndex(len(N)), copy=False)

    def _number_array(self, position: int, numbers: Matrix) -> Any:
        """Return a column of numbers, dates and the like in the caller's dtype."""
        converter, kind = self.converter(position), self.schema.features[position].kind
        array = _as_dtype(numbers, kind, self.dtypes[position]) if converter is None else converter.array(numbers)
        if array.dtype == object and (lacks := np.isnan(numbers)).any():
            array[lacks] = self.lacking[position] if self.lacking else None  # what it is in the caller's column
        return array

    def row(self, numbers: Matrix, label: Hashable) -> "pd.Series[Any]":
        """Return one row: its values have the types that they have in a frame, each that of its own column."""
        cells = [
            self._level_cells[at][-1 if np.isnan(number) else int(number)]  # the missing value stands last
            if at in self._level_cells
            else self._number_array(at, numbers[at : at + 1])[0]
            for at, number in enumerate(numbers)
        ]
        return pd.Series(cells, self._columns.view(), dtype=self._row_dtype, name=label)

    @shared
    def _level_cells(self) -> dict[int, list[Any]]:
        levels_at = self._level_arrays.items()
        return {position: [levels[at] for at in range(len(levels))] for position, levels in levels_at}

    @shared
    def _row_dtype(self) -> Any:
        """The dtype of all columns, or of objects where they have different ones."""
        dtypes = {
            converter.dtype if (converter := self.converter(at)) else dtype for at, dtype in enumerate(self.dtypes)
        }
        return dtypes.pop() if len(dtypes) == 1 else np.dtype(object)

    def _places(self, N: Matrix, position: int) -> Rows:
        """Return where the levels of one feature lie in its array of levels; a missing value is the last of them."""
        codes, feature = N[:, position], self.schema.features[position]
        places = np.where(np.isnan(codes), len(feature.levels or ()), codes) if feature.missing else codes
        return places.astype(np.intp)

    @shared
    def _blocks(self) -> BlockForm | None:
        """How frames are made of blocks; None where this pandas does not make the frame that it makes of columns."""
        has_missing = {at for at in self._level_arrays if self.schema.features[at].missing}
        arrays_of = {}
        for at, (feature, dtype) in enumerate(zip(self.schema.features, self.dtypes, strict=True)):
            is_cast = isinstance(dtype, np.dtype) and dtype.kind in "fiub" and at not in self._converter_of
            if feature.is_numeric and not is_cast:
                arrays_of[at] = partial(self._number_array, at)
        rows = np.zeros((2, len(self.dtypes)))
        rows[1, self.may_lack] = np.nan
        try:
            blocks = BlockForm.of(self._columns, self.dtypes, self._level_arrays, has_missing, arrays_of)
            return blocks if blocks.frame(rows).equals(self.plain_frame(rows)) else None
        except Exception:  # what pandas keeps to itself may be anything in its next release
            return None

    @shared
    def _columns(self) -> Any:
        return pd.DataFrame({name: [] for name in self.schema.names}).columns

    @shared
    def _level_arrays(self) -> dict[int, Any]:
        """The levels of each feature that has them, in the caller's dtype; behind them the missing value, if any."""
        lacking, found = self.lacking or (None,) * len(self.dtypes), {}
        for at, (feature, dtype) in enumerate(zip(self.schema.features, self.dtypes, strict=True)):
            if not feature.is_numeric:
                levels = [*(feature.levels or ()), *([lacking[at]] if self.may_lack[at] else [])]
                found[at] = pd.Series(levels, dtype=object).astype(dtype).array
        return found

    def rows_for_model(self, N: Matrix) -> Any:
        """Return numbers in the form that the caller gave to fit: a frame of pandas or polars, or an array."""
        if self.array_dtype is None:
            return self.frame(N) if self.polars is None else self.polars.frame(self.frame(N))
        if self.array_dtype.kind not in "fiu":
            return self._with_missing(self.frame(N).to_numpy(dtype=self.array_dtype, copy=True), N)
        rows = N.astype(self.array_dtype)
        for position, levels in self._level_arrays.items():
            rows[:, position] = levels.to_numpy(dtype=self.array_dtype)[self._places(N, position)]
        return rows

    def _with_missing(self, rows: Any, N: Matrix) -> Any:
        """Return an array of objects with missing values as the caller writes them."""
        for position, feature in enumerate(self.schema.features):
            if feature.missing and self.lacking:
                rows[np.isnan(N[:, position]), position] = self.lacking[position]
        return rows

    def arrange(self, rows: Any) -> tuple[pd.DataFrame, tuple[str, ...]]:
        """Return the rows given to explain as a frame in the fitted column order, and any warnings."""
        rows = rows_frame(rows, self.schema.names, self._columns)
        if rows.columns.tolist() == list(self.schema.names):
            return rows, ()
        if not rows.columns.is_unique:
            raise RowsError("column names repeat in the rows to explain. Rename them.")
        return _in_order(rows, self.schema.names, RowsError)

    def faults(self, frame: pd.DataFrame, N: Matrix) -> dict[int, str]:
        """Return the reason for each row that cannot be encoded, by position."""
        reasons: dict[int, str] = {}
        bad = np.isinf(N) | (self._has_levels & (N < 0)) | (np.isnan(N) & ~self.may_lack)
        for position, row in np.argwhere(bad.T).tolist() if bad.any() else ():
            feature = self.schema.features[position]
            value = frame[feature.name].iloc[row]
            reasons.setdefault(row, _fault(feature, value, self.dtypes[position], self.converter(position)))
        return reasons

    @shared
    def _has_levels(self) -> Mask:
        return np.array([not feature.is_numeric for feature in self.schema.features])

    @shared
    def may_lack(self) -> Mask:
        """Per feature: whether a row may lack it."""
        both = zip(self.schema.features, self.dtypes, strict=True)
        return np.array([bool(feature.missing) and can_lack(dtype) for feature, dtype in both])

    @shared
    def given_dtypes(self) -> tuple[Any, ...]:
        """Per feature: the numpy dtype to which its numbers are cast on their way to the model; None with levels."""
        return tuple(
            given_dtype(dtype, feature.kind, self.array_dtype) if feature.is_numeric else None
            for feature, dtype in zip(self.schema.features, self.dtypes, strict=True)
        )

    @shared
    def given_together(self) -> tuple[tuple[Any, Rows], ...]:
        """The features of each of these dtypes; not of float64, which holds every number as it is."""
        known = [dtype for dtype in dict.fromkeys(self.given_dtypes) if dtype is not None and dtype != np.float64]
        return tuple((dtype, np.flatnonzero([each == dtype for each in self.given_dtypes])) for dtype in known)

    @shared
    def narrow_dtypes(self) -> tuple[tuple[int, Any], ...]:
        """Features, and their dtypes, that do not hold every number that a search makes for them as it is."""
        narrow = []
        for at, (feature, dtype) in enumerate(zip(self.schema.features, self.given_dtypes, strict=True)):
            if dtype and not (dtype.itemsize >= 8 and (dtype.kind == "f" or feature.kind == "integer")):
                narrow.append((at, dtype))
        return tuple(narrow)

    def identifier_like(self, N: Matrix) -> list[Hashable]:
        """Return the features, other than continuous ones, in which every row has a different value."""
        if len(N) < IDENTIFIER_ROWS:
            return []
        return [
            feature.name
            for position, feature in enumerate(self.schema.features)
            if feature.kind != "continuous" and len(np.unique(N[:, position])) == len(N)
        ]


def with_holds(schema: Schema, converters: Mapping[int, Converter]) -> Schema:
    """Return the schema with what each column holds, by the converters of the columns that are no numbers."""
    features = (replace(feature, holds=holds(converters.get(at))) for at, feature in enumerate(schema.features))
    return replace(schema, features=tuple(features))


def _as_dtype(numbers: Matrix, kind: str, dtype: Any) -> Any:
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return numbers.astype(dtype)
    lacks = np.isnan(numbers)
    known = np.where(lacks, 0.0, numbers).astype(np.int64 if kind == "integer" else np.float64)
    if isinstance(dtype, np.dtype):
        return known.astype(object)
    if (made := dtype.construct_array_type()) in MASKED:
        return made(known.astype(dtype.numpy_dtype), lacks)
    values = pd.array(known).astype(dtype)
    if lacks.any():
        values[lacks] = pd.NA
    return values


def missing_values(table: Any, width: int) -> tuple[Any, ...]:
    """Return per column what stands for a missing value: the first one where values are objects, otherwise NaN.

    In a column of objects None is not NaN to every model; columns of other dtypes have one missing value only.
    """
    frame = table if isinstance(table, pd.DataFrame) else pd.DataFrame(np.asarray(table))
    found = []
    for at in range(width):
        column = frame.iloc[:, at]
        lacks = column.isna().to_numpy() if pd.api.types.is_object_dtype(column.dtype) else np.zeros(0, dtype=bool)
        found.append(column.iloc[int(lacks.argmax())] if lacks.any() else np.nan)
    return tuple(found)


def can_lack(dtype: Any) -> bool:
    """Say whether a dtype has a missing value: whole numbers and bools of numpy have none."""
    return not (isinstance(dtype, np.dtype) and dtype.kind in "iub")


def _with_levels(feature: Feature, column: "pd.Series[Any]") -> Feature:
    feature = replace(feature, missing=feature.missing or bool(column.isna().any()))
    if feature.is_numeric:
        return feature
    found = observed_levels(column)
    levels = found if feature.levels is None else feature.levels
    declared = set(levels)
    unknown = [level for level in found if level not in declared]
    if unknown:
        raise TableError(
            f"column {feature.name!r} holds {unknown[0]!r}, which is not among its levels: {listed(levels)}."
        )
    if feature.kind == "binary" and len(levels) > 2:
        raise TableError(f"column {feature.name!r} is declared binary but has {len(levels)} values: {listed(levels)}.")
    return replace(feature, levels=levels)


def _check_size(frame: pd.DataFrame) -> None:
    if frame.shape[1] == 0:
        raise TableError("the table has no columns.")
    if len(frame) < 2:
        size = "1 row" if len(frame) else "no rows"
        raise TableError(f"the table has {size}: a cover needs at least 2, of different labels.")


def _check_finite(form: TableForm, N: Matrix) -> None:
    bad = np.isinf(N)
    if bad.any():
        names = [name for position, name in enumerate(form.schema.names) if bad[:, position].any()]
        rows = np.flatnonzero(bad.any(axis=1))
        raise TableError(
            f"infinite values or values that are not numbers in column {listed(names)}: {len(rows)} rows, the first at "
            f"positions {', '.join(map(str, rows[:5]))}. Drop or fill them."
        )
    for position, feature in enumerate(form.schema.features):
        if feature.kind == "integer" and np.nanmax(np.abs(N[:, position])) >= LARGEST_EXACT:
            if feature.holds:
                raise TableError(f"column {feature.name!r} is too long in microseconds to count. Round it to seconds.")
            raise TableError(
                f"column {feature.name!r} holds whole numbers beyond 2**53, which float64 cannot tell apart. "
                "If it is an identifier, leave it out; otherwise convert it with .astype(float)."
            )


def _check_exact(form: TableForm, frame: pd.DataFrame, N: Matrix) -> None:
    """Raise an error that names the first cell that does not come back from its number as it is."""
    for position, feature in enumerate(form.schema.features):
        column, numbers, converter = frame[feature.name], N[:, position], form.converter(position)
        if converter is not None:
            same, why = converter.comes_back(column, numbers), f"{converter.precision}. Round or convert it"
        elif feature.is_numeric:
            same, why = comes_back(column.array, numbers), "float64 cannot hold it. Convert it with .astype(float)"
        else:
            same, why = ~(numbers < 0), f"as a level it is not found again. Convert it from {column.dtype} to text"
        if not same.all():
            row = int(same.argmin())
            value = shown(column.iloc[row])
            raise TableError(f"column {feature.name!r} holds {value} at position {row}, which is not kept: {why}.")


def _in_order(
    frame: pd.DataFrame, names: tuple[Hashable, ...], error: type[TableError] | type[RowsError]
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    given, expected = set(frame.columns), set(names)
    missing = [name for name in names if name not in given]  # "x" is in an index with levels, but is none of its names
    if missing:
        levels = " The names of its columns have levels: make them one." if frame.columns.nlevels > 1 else ""
        raise error(
            f"the rows lack {len(missing)} of the {len(names)} expected columns: {listed(missing)}."
            f"{did_you_mean(missing[0], frame.columns)}{levels} Column order does not matter."
        )
    extra = [name for name in frame.columns if name not in expected]
    if extra and error is TableError:
        raise TableError(f"the schema does not describe column {listed(extra)}. Drop it or add a Feature.")
    warnings = (
        (f"ignored {len(extra)} column{'s' * (len(extra) > 1)} not seen in fit: {listed(extra)}.",) if extra else ()
    )
    return (frame if list(frame.columns) == list(names) else frame[list(names)]), warnings


def _fault(feature: Feature, value: Any, dtype: Any, converter: Converter | None) -> str:
    if is_absent(value):
        why = "no fitted row lacks it. Declare Feature(..., missing=True) if the model takes rows without it"
        why = why if can_lack(dtype) else f"the fitted dtype {dtype} has no missing value"
        return f"column {feature.name!r}: the value is missing, and {why}."
    if feature.is_numeric:
        what = "a finite number" if converter is None else allowed_in(converter)
        return f"column {feature.name!r}: {shown(value)} is not {what}."
    if feature.held:  # the thousand names of others are no help
        why = "no fitted row has it, and the column was taken for names, identifiers, codes or free text"
        return f"column {feature.name!r}: {shown(value)}: {why}. To explain new rows, fit without it (--drop)."
    levels, close = feature.levels or (), did_you_mean(value, feature.levels or ()) if isinstance(value, str) else ""
    return f"column {feature.name!r}: unseen level {shown(value)}.{close} Known: {listed(levels)}."
