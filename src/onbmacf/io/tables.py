"""A file to a DataFrame. Every fault is one sentence that says what was found and what to do.

path  ->  separator and first line  ->  header or not  ->  pandas
"""

import csv
import gzip
import os
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd

from onbmacf._base.checks import listed
from onbmacf.errors import ParameterError, TableError

PARQUET = (".parquet", ".pq")
SEPARATORS = (",", ";", "\t", "|")
FIRST_PART = 1 << 20  # characters read to find the separator and the first line
# Numbers exactly as they are written: before pandas 3.1 the default may differ in the last digit.
EXACT: dict[str, Any] = {"low_memory": False}
if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):  # pragma: no cover - depends on the installation
    EXACT["float_precision"] = "round_trip"


def read_table(path: str | os.PathLike[str], *, encoding: str = "utf-8", header: bool | None = None) -> pd.DataFrame:
    """Read a table from a file.

    The separator of a CSV file may be a comma, a semicolon, a tab or a vertical bar; it is found in the first line.
    Numbers are read exactly as they are written.

    Parameters
    ----------
    path : str or path-like
        A CSV file, also compressed (``.csv``, ``.tsv``, ``.csv.gz``), or a Parquet file (``.parquet``, ``.pq``).
    encoding : str, default "utf-8"
        Encoding of a CSV file.
    header : bool, optional
        Whether the first line of a CSV file names the columns. By default it does, and a first line with a number in
        it is an error. With False the columns are named x0, x1, ...

    Returns
    -------
    DataFrame
        One line per row of the file, numbered from 0.

    Raises
    ------
    TableError
        The file does not exist, is empty, is not text in this encoding, is no table, has no header, or has two
        columns of the same name.
    ParameterError
        Python does not know the encoding.
    ImportError
        A Parquet file needs pyarrow, which is not installed.

    Examples
    --------
    >>> from importlib.resources import files
    >>> from onbmacf.io import read_table
    >>> table = read_table(files("onbmacf.datasets") / "heart.csv")
    >>> table.shape
    (462, 10)

    """
    path = Path(path)
    if not path.is_file():
        found = "is a folder" if path.is_dir() else "does not exist"
        raise TableError(f"{path} {found}: give a CSV file with a header line.")
    if path.suffix.lower() in PARQUET:
        return _read_parquet(path)
    separator, names = _first_record(path, encoding)
    has_header = _looks_like_header(path, names) if header is None else header
    if has_header:
        _check_distinct(path, names)
    frame = _read_csv(path, separator, encoding, has_header)
    return frame if has_header else frame.set_axis([f"x{place}" for place in range(frame.shape[1])], axis=1)


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install pyarrow") from error
    except Exception as error:  # whatever the engine makes of a broken file
        raise TableError(f"{path} cannot be read as a Parquet file: {error}") from error


def _read_csv(path: Path, separator: str, encoding: str, has_header: bool) -> pd.DataFrame:
    try:
        return pd.read_csv(path, sep=separator, encoding=encoding, header=0 if has_header else None, **EXACT)
    except UnicodeDecodeError as error:
        raise _other_encoding(path, encoding, error) from error
    except (ValueError, OSError, EOFError) as error:
        raise TableError(f"{path} cannot be read as a table: {error}") from error


def _first_record(path: Path, encoding: str) -> tuple[str, list[str]]:
    """Return the separator and the first record, which may hold line breaks in quotes."""
    start = _start_of(path, encoding).lstrip("\ufeff")
    line = start.splitlines()[0] if start else ""
    if not line.strip():
        raise TableError(f"{path} is empty or starts with an empty line: give a CSV file with a header line.")
    separator = max(SEPARATORS, key=line.count)
    try:
        return separator, next(csv.reader(StringIO(start, newline=None), delimiter=separator), [])
    except csv.Error as error:
        raise TableError(f"{path}: the first line cannot be read as names of columns: {error}.") from error


def _start_of(path: Path, encoding: str) -> str:
    opened: Any = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opened(path, "rt", encoding=encoding, newline="") as file:
            return str(file.read(FIRST_PART))
    except UnicodeDecodeError as error:
        raise _other_encoding(path, encoding, error) from error
    except LookupError as error:
        raise ParameterError(f"encoding must be one that Python knows, e.g. 'latin-1', got {encoding!r}.") from error
    except (OSError, EOFError) as error:
        raise TableError(f"{path} cannot be read: {error}") from error


def _other_encoding(path: Path, encoding: str, error: UnicodeDecodeError) -> TableError:
    return TableError(f'{path} is not {encoding} text: {error}. Pass its encoding, e.g. encoding="latin-1".')


def _looks_like_header(path: Path, names: list[str]) -> bool:
    numbers = [name for name in names if _is_number(name)]
    if numbers:
        raise TableError(
            f"{path} seems to have no header: its first line holds {numbers[0]!r}. Add a line of column names, or pass "
            "header=False (the columns are then named x0, x1, ...), or header=True if that line is the header."
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
