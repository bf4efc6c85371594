"""Files to frames: a table with a header, and the rows of it that are to be explained."""

import csv
import gzip
from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._base.checks import did_you_mean, listed
from onbmacf.errors import ParameterError, RowsError, TableError

SEPARATORS = (",", ";", "\t", "|")
# Numbers as they are written: the default of older pandas may differ in the last digit.
EXACT: dict[str, Any] = {"low_memory": False, "float_precision": "round_trip"}


def read_table(path: Path, encoding: str = "utf-8", header: bool | None = None) -> pd.DataFrame:
    """Return the table in a file; every fault is one line that says how to mend it."""
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise TableError(f"{path} {what}: give a CSV file with a header line.")
    if path.suffix.lower() in (".parquet", ".pq"):
        return pd.read_parquet(path)
    separator, names = _first_record(path, encoding)
    has_header = _looks_like_header(path, names) if header is None else header
    if has_header:
        _check_distinct(path, names)
    try:
        frame = pd.read_csv(path, sep=separator, encoding=encoding, header=0 if has_header else None, **EXACT)
    except (ValueError, pd.errors.ParserError) as error:
        raise TableError(f"{path} is not a table: {error}") from error
    return frame if has_header else frame.set_axis([f"x{place}" for place in range(frame.shape[1])], axis=1)


def columns_of(words: Iterable[str], columns: Sequence[Any], option: str) -> list[str]:
    """Return column names from words that may join several with commas; unknown ones are an error."""
    names: list[str] = []
    for word in words:
        names += [word] if word in columns else [part.strip() for part in word.split(",") if part.strip()]
    for name in names:
        if name not in columns:
            hint = did_you_mean(name, columns)
            raise ParameterError(f"{option} names {name!r}, which is not a column.{hint} Columns: {listed(columns)}.")
    return names


def numbered(words: str, n_rows: int, numbers: "pd.Index[Any] | None" = None) -> list[int]:
    """Return positions of rows from words such as 3,17,20-29 or all; `numbers` are the rows' own where some are gone.

    >>> numbered("3,5-7", 10)
    [3, 5, 6, 7]
    """
    if words.strip() == "all":
        return list(range(n_rows))
    place_of = {int(number): place for place, number in enumerate(range(n_rows) if numbers is None else numbers)}
    chosen: list[int] = []
    for word in words.split(","):
        low, dash, high = word.strip().partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()):
            raise ParameterError(f"--rows takes numbers such as 3,17 or 20-29, or 'all', got {words!r}.")
        last, found = int(high or low), [place_of[n] for n in range(int(low), int(high or low) + 1) if n in place_of]
        if last > max(place_of, default=-1) or not found:
            gone = "was left out" if last in range(max(place_of, default=0)) else "is not there"
            raise RowsError(f"--rows names {last}, which {gone}: rows are 0 to {max(place_of, default=-1)}.")
        chosen += found
    return chosen


def named(ids: Iterable[str], index: "pd.Index[Any]") -> list[int]:
    """Return the positions of rows by their name, as it is written in the file."""
    places: dict[str, list[int]] = {}
    for place, value in enumerate(index):
        places.setdefault(str(value), []).append(place)
    chosen: list[int] = []
    for word in (part.strip() for words in ids for part in words.split(",")):
        if word not in places:
            raise RowsError(f"--ids names {word!r}, which no row is called.{did_you_mean(word, places)}")
        chosen += places[word]
    return chosen


def as_label(word: str, classes: Iterable[Any], option: str) -> Any:
    """Return the model's own label that is written like this."""
    written = {str(label): label for label in classes}
    if word not in written:
        raise ParameterError(f"{option} must be among the model's labels {listed(written)}, got {word!r}.")
    return written[word]


def sampled(places: list[int], most: int, seed: int) -> list[int]:
    """Return the places, or so many of them drawn by chance with a seed, in order."""
    if len(places) <= most:
        return places
    return sorted(np.random.default_rng(seed).choice(places, size=most, replace=False).tolist())


def _first_record(path: Path, encoding: str) -> tuple[str, list[str]]:
    """Return the separator and the first record, which may hold line breaks in quotes."""
    opened: Any = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opened(path, "rt", encoding=encoding, newline="") as file:
            start = str(file.read(1 << 20)).lstrip("\ufeff")
    except (UnicodeDecodeError, LookupError) as error:
        raise TableError(f"{path} is not {encoding}: {error}. Say --encoding, e.g. latin-1.") from error
    except (OSError, EOFError) as error:
        raise TableError(f"{path} cannot be read: {error}") from error
    line = start.splitlines()[0] if start else ""
    if not line.strip():
        raise TableError(f"{path} is empty or starts with an empty line: give a CSV file with a header line.")
    separator = max(SEPARATORS, key=line.count)
    return separator, next(csv.reader(StringIO(start), delimiter=separator), [])


def _looks_like_header(path: Path, names: list[str]) -> bool:
    numbers = [name for name in names if _is_number(name)]
    if numbers:
        raise TableError(
            f"{path} seems to have no header: its first line holds {numbers[0]!r}. Add a line of column names, or say "
            "--no-header (columns are called x0, x1, ...) or --header if it is one."
        )
    return True


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.strip().lower() not in ("nan", "inf", "infinity")


def _check_distinct(path: Path, names: list[str]) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise TableError(f"{path}: column names repeat: {listed(repeated)}. Rename them.")
