"""What a command reads: the table, the rows of a file, and the model, its own or one trained on the target column.

Arguments  ->  read_columns  ->  Columns: features, target column, row numbers
features, target column, Arguments  ->  chosen_model  ->  ChosenModel: the model, its name, remarks for a report
rows of a file, fitted form  ->  as_fitted  ->  rows whose cells are as the fitted columns have them
"""

import sys
from collections import Counter
from collections.abc import Iterable
from math import isfinite
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from onbmacf._base.checks import listed
from onbmacf._columns.moments import with_dates
from onbmacf._table.form import TableForm
from onbmacf.cli.options import Arguments
from onbmacf.cli.terminal import say
from onbmacf.cli.words import columns_of
from onbmacf.datasets import load_heart
from onbmacf.io.models import load_model
from onbmacf.io.tables import read_table
from onbmacf.io.trained import own_texts, train_network, train_trees
from onbmacf.schema import Feature, schema_file

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
        say(f"Left out {int(missing.sum()):,} rows with missing values; {len(table):,} remain.")
    table = table.set_index(names[0]) if names else table
    return Columns(table.drop(columns=target), table[target[0]] if target else None, numbers)


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
    without = f", without {listed(own)}, whose text is each row's own" if own else ""
    note = (
        f"No model was given{why or f': {trained.kind} was'} trained on {y.name!r} with {trained.n_trained:,} of "
        f"{of_rows} (seed 0){without}; {trained.comparison}. What follows is about that model."
    )
    say(note)
    name = f"{'boosted trees' if lacking else 'a 32-16 network'} trained here"
    unseen = np.isin(np.arange(len(y)), np.flatnonzero(known)[trained.tested])
    notes = (note, f"Warning: {trained.warning}") if trained.warning else (note,)
    return ChosenModel(trained.model, name, notes, y.where(unseen))
