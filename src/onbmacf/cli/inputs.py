"""What a command reads: words, tables, rows of a file, and the model, or one trained on the target column.

words such as a=1,b or 3,17-20  ->  columns_of, kinds_of, labels_of, numbered, ...  ->  what they name
Arguments  ->  read_columns  ->  Columns: features, target column, row numbers
features, target column, Arguments  ->  chosen_model  ->  ChosenModel: the model, its name, remarks for a report
rows of a file, fitted form  ->  as_fitted  ->  rows whose cells are as the fitted columns have them
"""

import sys
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from importlib import import_module
from math import isfinite
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from onbmacf._base.checks import did_you_mean, error_words, listed
from onbmacf._columns.moments import with_dates
from onbmacf._table.form import TableForm
from onbmacf.cli.explain import Arguments
from onbmacf.cli.terminal import say
from onbmacf.datasets import load_heart
from onbmacf.errors import ParameterError, RowsError, TableError
from onbmacf.io.models import load_model
from onbmacf.io.tables import read_table
from onbmacf.io.trained import own_texts, train_network, train_trees
from onbmacf.schema import Feature, schema_file

# --- words -----------------------------------------------------------------------------------------------------------


def columns_of(words: Iterable[str], columns: Sequence[Any], option: str) -> list[str]:
    """Return column names from words that may join several with commas; unknown ones are an error.

    >>> columns_of(["age,sex", "last, first"], ["age", "sex", "last, first"], "--drop")
    ['age', 'sex', 'last, first']
    """
    names: list[str] = []
    for word in words:
        names += [word] if word in columns else split(word)
    for name in names:
        if name not in columns:
            hint = did_you_mean(name, columns)
            raise ParameterError(f"{option} names {name!r}, which is not a column.{hint} Columns: {listed(columns)}.")
    return names


def kinds_of(words: Iterable[str], columns: Sequence[Any]) -> tuple[dict[Any, Any], dict[Any, list[str]]]:
    """Return the kinds of columns, and the levels of ordinal ones from the lowest, from words such as a=binary.

    >>> kinds_of(["zip=categorical,size=S<M<L"], ["zip", "size"])
    ({'zip': 'categorical'}, {'size': ['S', 'M', 'L']})
    """
    kinds: dict[Any, Any] = {}
    ordinal: dict[Any, list[str]] = {}
    for word in split(",".join(words)):
        name, equals, kind = word.rpartition("=")
        if not equals:
            raise ParameterError(f"--kinds takes column=kind, or column=low<middle<high, got {word!r}.")
        columns_of([name], columns, "--kinds")
        if "<" in kind:
            ordinal[name] = [level.strip() for level in kind.split("<")]
        else:
            kinds[name] = kind.strip()
    return kinds, ordinal


def bands_of(words: Iterable[str], columns: Sequence[Any]) -> dict[Hashable, list[Any]]:
    """Return where the bands of columns begin, from words such as age=30,50 or born=1980-01-01.

    >>> bands_of(["age=30,50", "born=1980-01-01"], ["age", "born"])
    {'age': [30.0, 50.0], 'born': ['1980-01-01']}
    """
    bands: dict[Hashable, list[Any]] = {}
    for word in words:
        name, equals, edges = word.rpartition("=")
        if not equals or not split(edges):
            raise ParameterError(f"--bands takes column=edge,edge such as age=30,50, got {word!r}.")
        if name not in columns:
            hint = did_you_mean(name, columns)
            raise ParameterError(
                f"--bands names {name!r}, by which nothing is grouped.{hint} Columns: {listed(columns)}."
            )
        try:
            bands[name] = [float(edge) for edge in split(edges)]
        except ValueError:
            bands[name] = list(split(edges))
    return bands


def ends_of(word: str) -> dict[str, float]:
    """Return the ends of a range from words such as 200,300 or 200, or ,300.

    >>> ends_of("200,"), ends_of("-1,2.5")
    ({'low': 200.0}, {'low': -1.0, 'high': 2.5})
    """
    low, comma, high = word.partition(",")
    try:
        ends = {name: float(end) for name, end in (("low", low), ("high", high)) if end.strip()}
    except ValueError:
        ends = {}
    if not comma or not ends:
        raise ParameterError(f"--between takes two numbers such as 200,300 or one of them, 200, or ,300, got {word!r}.")
    return ends


def label_of(word: str, classes: Iterable[Any], option: str) -> Any:
    """Return the model's own label that is written like this."""
    written = {str(label): label for label in classes}
    if word not in written:
        raise ParameterError(f"{option} must be among the model's labels {listed(written)}, got {word!r}.")
    return written[word]


def same_label(value: Any, known: dict[str, Any]) -> Any:
    """Return the model's own label for a true one that is written like it, or NaN; `known` has them by their text.

    >>> same_label(1.0, {"0": 0, "1": 1}), same_label("yes", {"0": 0})
    (1, nan)
    """
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    return known.get(str(value), known.get(text, float("nan")))


def labels_of(words: Iterable[str], classes: Iterable[Any], option: str) -> list[Any]:
    """Return the labels that words name, which may be joined with commas; a label may hold a comma itself."""
    classes, whole = list(classes), ",".join(words)
    return [label_of(word, classes, option) for word in ([whole] if whole in map(str, classes) else split(whole))]


def numbered(words: str, numbers: Iterable[int]) -> list[int]:
    """Return the positions of rows from words such as 3,17,20-29 or all; `numbers` are the rows' own.

    >>> numbered("3,5-7", range(10)), numbered("3-6", [1, 3, 6])
    ([3, 5, 6, 7], [1, 2])
    """
    place_of = {int(number): place for place, number in enumerate(numbers)}
    if words.strip() == "all":
        return list(place_of.values())
    return [place for word in words.split(",") for place in _span(word.strip(), place_of, words)]


def _span(word: str, place_of: dict[int, int], words: str) -> list[int]:
    """Return the positions of one number, or of those from a first to a last that are there."""
    first, dash, last = word.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()) or int(last or first) < int(first):
        raise ParameterError(f"--rows takes numbers such as 3,17 or 20-29, or 'all', got {words!r}.")
    low, high, highest = int(first), int(last or first), max(place_of, default=-1)
    found = [place_of[number] for number in range(low, min(high, highest) + 1) if number in place_of]
    if high > highest or not found:
        fault = "was left out" if 0 <= high < highest else "is not in the table"
        raise RowsError(f"--rows names {high}, which {fault}: rows are 0 to {highest}.")
    return found


def named(words: Iterable[str], names: Iterable[Any]) -> list[int]:
    """Return the positions of rows by their name, as it is written in the file.

    >>> named(["P5,P9", "P5"], ["P9", "P5", "P5"])
    [1, 2, 0, 1, 2]
    """
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(str(name), []).append(place)
    chosen: list[int] = []
    for word in split(",".join(words)):
        if word not in places:
            raise RowsError(f"--ids names {word!r}, but no row has that name.{did_you_mean(word, places)}")
        chosen += places[word]
    return chosen


def split(word: str) -> list[str]:
    """Return the parts of a word between its commas, without blanks and empty ones."""
    return [part.strip() for part in word.split(",") if part.strip()]


# --- tables -----------------------------------------------------------------------------------------------------------


class Columns(NamedTuple):
    """The columns of a table by what they are used for."""

    features: pd.DataFrame  # the index names the rows
    target: "pd.Series[Any] | None"  # the target column, if there is one
    numbers: "pd.Index[Any] | None" = None  # the rows' numbers in the file, where some were left out


def labelled_heart() -> "tuple[pd.DataFrame, pd.Series[Any]]":
    """Return the embedded table, and who is at risk in words."""
    table, chd = load_heart()
    return table, chd.map({0: "healthy", 1: "at risk"})


def read_file(path: Path, arguments: Arguments) -> pd.DataFrame:
    """Read a file as the request says; dates are text."""
    sheet = int(arguments.sheet) if arguments.sheet.isdecimal() else arguments.sheet or None
    return read_table(path, encoding=arguments.encoding or None, header=arguments.header, sheet=sheet)


def read_columns(path: Path, arguments: Arguments) -> Columns:
    """Read the table of a request, without the columns and the rows that it leaves out."""
    table = read_file(path, arguments)
    dates = [*arguments.dates, *(schema_file(arguments.rules)[0].get("dates", ()) if arguments.rules else ())]
    table = with_dates(table, columns_of(dates, list(table.columns), "--dates"))
    table = table.drop(columns=columns_of(arguments.drop, list(table.columns), "--drop"))
    columns = list(table.columns)
    target = columns_of([arguments.target_column] if arguments.target_column else [], columns, "--target-column")
    names = columns_of([arguments.id_column] if arguments.id_column else [], columns, "--id-column")
    numbers, missing = None, table.isna().any(axis=1)
    if arguments.drop_missing and missing.any():
        table, numbers = table[~missing], table.index[~missing]
        n_lacking = int(missing.sum())
        rows = "1 row" if n_lacking == 1 else f"{n_lacking:,} rows"
        say(f"Left out {rows} with missing values; {len(table):,} remain.")
    table = table.set_index(names[0]) if names else table
    return Columns(table.drop(columns=target), table[target[0]] if target else None, numbers)


def read_folder(arguments: Arguments) -> Any:
    """Return a folder of parquet files as a Dask DataFrame, without the columns that the request leaves out."""
    try:
        dask, frames = import_module("dask"), import_module("dask.dataframe")
    except ImportError as error:
        raise ImportError("a folder of parquet files needs the extra 'dask': pip install 'onbmacf[dask]'.") from error
    try:
        with dask.config.set({"dataframe.convert-string": False}):  # text as in a table of one file
            table = frames.read_parquet(f"{arguments.table}/*.parquet")
            columns = list(table.columns)
    except (OSError, ValueError) as error:
        raise TableError(f"{arguments.table} holds no parquet files that can be read: {error_words(error)}") from error
    if not columns:
        raise TableError(f"{arguments.table} holds no parquet files that can be read: there is none, or no column.")
    left_out = columns_of(arguments.drop, columns, "--drop")
    target = [arguments.target_column] if arguments.target_column else []
    return table.drop(columns=[*left_out, *columns_of(target, columns, "--target-column")])


# --- cells of a file --------------------------------------------------------------------------------------------------


def as_fitted(rows: pd.DataFrame, form: TableForm) -> pd.DataFrame:
    """Return rows whose numbers are numbers where the fitted column has numbers, and names where it has names.

    A file says nothing of dtypes: one cell of text makes a column of numbers text, and where no cell is text, names
    such as "3" are read as numbers. Either would cost every row of the file, not the one with the odd cell.
    """
    rows = rows.copy()
    for place, feature in enumerate(form.schema.features):
        if feature.name in rows.columns and form.converter(place) is None:  # dates are read from text later
            rows[feature.name] = _cells(rows[feature.name], feature)
    return rows


def _cells(column: "pd.Series[Any]", feature: Feature) -> "pd.Series[Any]":
    """Return a column with numbers where the feature has numbers, cell by cell, and names where it has names."""
    levels = feature.levels or ()
    if feature.is_numeric or all(isinstance(level, Real) and not isinstance(level, bool) for level in levels):
        if not pd.api.types.is_object_dtype(column.dtype) and not pd.api.types.is_string_dtype(column.dtype):
            return column
        found = pd.to_numeric(column, errors="coerce")
        return found.astype(object).where(found.notna(), column.astype(object))
    return _names(column, levels) if pd.api.types.is_numeric_dtype(column.dtype) else column


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


# --- models -----------------------------------------------------------------------------------------------------------


class ChosenModel(NamedTuple):
    """A model, what to call it, what the reader should know of it, and where it can be compared with true labels."""

    model: Any
    name: str
    notes: tuple[str, ...] = ()
    truth: "pd.Series[Any] | None" = None  # missing where the model was trained on it


def chosen_model(features: pd.DataFrame, y: "pd.Series[Any] | None", arguments: Arguments) -> ChosenModel:
    """Return the model that a request names; without one, a model that takes the table, trained on its labels."""
    if arguments.model:
        name = arguments.model if "://" in arguments.model else Path(arguments.model).name
        return ChosenModel(named_model(features, arguments), name, truth=y)
    assert y is not None  # prepare has made sure of it
    return _trained_model(features, y)


def named_model(features: pd.DataFrame, arguments: Arguments) -> Any:
    """Return the model that a request names: a file, an address, or module:name."""
    name, folder = arguments.model, str(Path.cwd())
    if ":" in name and "://" not in name and not Path(name).exists() and not {"", folder} & set(sys.path):
        sys.path.append(folder)  # after all others: a file there must not stand in for a library
        say(f"note: {name} is also looked for in the working folder, {folder}, after the installed modules.")
    return load_model(name, features, trust_pickle=arguments.trust_pickle)


def _trained_model(features: pd.DataFrame, y: "pd.Series[Any]") -> ChosenModel:
    """Train on the rows that have a label: a network, or boosted trees where values are missing (decision 0062)."""
    known, lacking = y.notna(), [name for name in features.columns if features[name].isna().any()]
    trained = (train_trees if lacking else train_network)(features[known], y[known])
    why = f" and values are missing in {listed(lacking)}: {trained.kind}, which take them, were" if lacking else ""
    of_rows = f"{len(features):,} rows" if known.all() else f"{int(known.sum()):,} rows that have a label"
    own = own_texts(features[known])
    without = f", without {listed(own)}, where nearly every row has a text of its own" if own else ""
    note = (
        f"No model was given{why or f': {trained.kind} was'} trained on {y.name!r} with {trained.n_trained:,} of "
        f"{of_rows} (seed 0){without}; {trained.comparison}. What follows is about that model."
    )
    say(note)
    name = f"{'boosted trees' if lacking else 'a 32-16 network'} trained here"
    unseen = np.isin(np.arange(len(y)), np.flatnonzero(known)[trained.tested])
    notes = (note, f"Warning: {trained.warning}") if trained.warning else (note,)
    return ChosenModel(trained.model, name, notes, y.where(unseen))
