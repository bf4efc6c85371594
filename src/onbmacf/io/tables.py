"""A file to a DataFrame. Every fault is one sentence that says what was found and what to do.

path  ->  kind_of  ->  "parquet", "excel", "gzip", ... or "text"  ->  encoding, separator, header or not  ->  pandas

What a file is, its first bytes say, whatever its name says; a kind that is no table is an error that names it.
"""

import bz2
import codecs
import csv
import gzip
import lzma
import os
import warnings
import zipfile
from collections.abc import Callable, Hashable, Iterable
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd

from onbmacf._base.checks import listed, shortened
from onbmacf._columns.moments import with_dates
from onbmacf.errors import OnbmacfWarning, ParameterError, TableError

SEPARATORS = (",", ";", "\t", "|")
FIRST_PART = 1 << 20  # characters read to find the separator and the first line
MOST_UNPACKED = 1 << 30  # bytes of a packed file: a small one may hold more than any memory
LATIN = "latin-1"  # of text that is not UTF-8 and says nothing else
# Numbers exactly as they are written: before pandas 3.1 the default may differ in the last digit.
EXACT: dict[str, Any] = {"low_memory": False}
if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):  # pragma: no cover - depends on the installation
    EXACT["float_precision"] = "round_trip"
HEAD = 4096  # bytes that tell what a file is
OLD_OFFICE = b"\xd0\xcf\x11\xe0"
OPENERS: dict[str, Callable[..., Any]] = {"gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open}
SUFFIXES = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".parquet": "parquet", ".pq": "parquet"}
SUFFIXES |= dict.fromkeys((".xlsx", ".xlsm", ".xls", ".xlsb", ".ods"), "excel")
READ = {b"PAR1": "parquet", b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ": "xz"}
# Kinds that are no table for us, by their first bytes: what they are, and what to do.
OTHERS = {
    b"%PDF": ("a PDF document", "copy the table out of it"),
    b"\x89PNG": ("a PNG picture", "give the table itself"),
    b"\xff\xd8\xff": ("a JPEG picture", "give the table itself"),
    b"ARROW1": ("an Arrow or Feather file", "write it as Parquet or CSV"),
    b"SQLite format 3": ("an SQLite database", "export a table as CSV"),
    b"\x89HDF": ("an HDF5 file", "write the table as Parquet or CSV"),
    b"\x93NUMPY": ("a NumPy array", "write it as CSV, with a line of column names"),
    b"Obj\x01": ("an Avro file", "write it as Parquet or CSV"),
    b"$FL2": ("an SPSS file", "write it as Parquet or CSV"),
    b"\x80\x04\x95": ("a pickle", "write the table as Parquet or CSV"),
    b"\x80\x05\x95": ("a pickle", "write the table as Parquet or CSV"),
    b"<stata_dta>": ("a Stata file", "write it as Parquet or CSV"),
}
MARKUP = (b"<!doctype html", b"<html", b"<?xml")
BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"}
BOMS |= {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


def read_table(
    path: str | os.PathLike[str],
    *,
    encoding: str | None = None,
    header: bool | None = None,
    sheet: str | int | None = None,
    dates: Iterable[Hashable] = (),
) -> pd.DataFrame:
    """Read a table from a file.

    What a file is, its content says, not its name. The separator of a CSV file may be a comma, a semicolon, a tab or a
    vertical bar; it is found in the first line. Numbers are read exactly as they are written.

    Parameters
    ----------
    path : str or path-like
        A CSV file (``.csv``, ``.tsv``), also compressed (``.csv.gz``, bz2, xz, or zip with one file), a Parquet file
        (``.parquet``, ``.pq``), or a spreadsheet (``.xlsx``, ``.xls``, ``.ods``).
    encoding : str, optional
        Encoding of a CSV file. By default what its first bytes say (UTF-8, UTF-16 or UTF-32 with a mark, UTF-16
        without), otherwise UTF-8; a file that is not is read as latin-1, with an `OnbmacfWarning` that says so.
    header : bool, optional
        Whether the first line of a CSV file names the columns. By default it does, and a first line with a number in
        it is an error. With False the columns are named x0, x1, ...
    sheet : str or int, optional
        The sheet of a spreadsheet, by name or by its number from 0. By default the first; where there are others, an
        `OnbmacfWarning` says so.
    dates : iterable of hashable, optional
        Columns of text that hold dates or times, written as ISO 8601 does (2024-05-31); an empty cell is a missing one.

    Returns
    -------
    DataFrame
        One line per row of the file, numbered from 0.

    Raises
    ------
    TableError
        The file does not exist, is empty, is not text in this encoding, is something else than a table, has no header,
        or has two columns of the same name; a packed file holds more than 1 GiB; or a column of dates is not there or
        holds something else.
    ParameterError
        Python does not know the encoding, or there is no such sheet.
    ImportError
        A Parquet file needs pyarrow, a spreadsheet openpyxl, and it is not installed.

    Examples
    --------
    >>> from importlib.resources import files
    >>> from onbmacf.io import read_table
    >>> table = read_table(files("onbmacf.datasets") / "heart.csv")
    >>> table.shape
    (462, 10)

    """
    return with_dates(_read(*_file(path), encoding, header, sheet), dates)


def _read(path: Path, kind: str, encoding: str | None, header: bool | None, sheet: str | int | None) -> pd.DataFrame:
    _check_unpacked(path, kind)
    if kind == "parquet":
        return _read_parquet(path)
    if kind == "excel":
        return _read_sheet(path, sheet, header)
    if sheet is not None:
        raise ParameterError(f"sheet is for spreadsheets, {path} is none.")
    if encoding is not None:
        return _read_text(path, kind, encoding, header)
    start = _start_of(path, kind, HEAD)
    said = encoding_of(start)
    try:
        return _read_text(path, kind, said, header)
    except NotThisEncodingError as error:
        if said != "utf-8" or b"\0" in start:  # no text of any one-byte encoding has a byte 0
            raise
        table = _read_text(path, kind, LATIN, header)
        where = str(error.__cause__)
    message = f"{path} is not UTF-8 ({where}): read as {LATIN}. If letters look wrong, pass its encoding."
    warnings.warn(message, OnbmacfWarning, stacklevel=3)
    return table


def _check_unpacked(path: Path, kind: str) -> None:
    """Raise an error for a packed file that holds more than may be read from one; nothing of it is kept."""
    try:
        size = _unpacked(path, kind)
    except Exception as error:  # whatever an unpacker makes of a broken file
        raise TableError(f"{path} cannot be read: {error}") from error
    if size > MOST_UNPACKED:
        remedy = "Write the table as CSV or Parquet" if kind == "excel" else "Unpack it and give the file that is in it"
        raise TableError(f"{path} holds more than {MOST_UNPACKED >> 20:,} MiB, unpacked. {remedy}.")


def _unpacked(path: Path, kind: str) -> int:
    """Return how many bytes a packed file holds, counted up to the most; 0 for a file that is not packed."""
    if kind == "excel" and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return sum(entry.file_size for entry in archive.infolist())  # no entry unpacks to more than it says
    size = 0
    if kind in (*OPENERS, "zip"):
        with _opened(path, kind) as file:
            while size <= MOST_UNPACKED and (block := file.read(FIRST_PART)):
                size += len(block)
    return size


def _file(path: Any) -> tuple[Path, str]:
    """Return a regular file, and what it is."""
    try:
        path = Path(path)
        if path.is_file():
            return path, kind_of(path)
        found = "is a folder" if path.is_dir() else "is no regular file" if path.exists() else "does not exist"
    except TypeError as error:
        raise ParameterError(f"path must name a file, got {shortened(path)}.") from error
    except OSError as error:
        raise TableError(f"{shortened(str(path))} cannot be read: {error.strerror}.") from error
    raise TableError(f"{path} {found}: give a CSV file with a header line.")


class NotThisEncodingError(TableError):
    """The text is in another encoding."""


def _read_text(path: Path, kind: str, encoding: str, header: bool | None) -> pd.DataFrame:
    separator, names = _first_record(path, kind, encoding)
    has_header = _is_header(path, names, header)
    frame = _read_csv(path, kind, separator, encoding, has_header)
    return frame if has_header else frame.set_axis([f"x{place}" for place in range(frame.shape[1])], axis=1)


def _read_sheet(path: Path, sheet: str | int | None, header: bool | None) -> pd.DataFrame:
    """Read a sheet of a workbook; its first line is the header as that of a CSV file is."""
    try:
        with pd.ExcelFile(path) as book:
            names = book.sheet_names
            if sheet is None and len(names) > 1:
                message = f"{path} has {len(names)} sheets: read the first, {names[0]!r}. Pass sheet=... for another."
                warnings.warn(message, OnbmacfWarning, stacklevel=4)
            chosen = 0 if sheet is None else sheet
            if chosen not in names and not (isinstance(chosen, int) and 0 <= chosen < len(names)):
                raise ParameterError(f"{path} has no sheet {chosen!r}. Sheets: {listed(names)}.")
            cells = pd.read_excel(book, sheet_name=chosen, header=None)
    except ImportError as error:
        engine = "odfpy" if path.suffix.lower() == ".ods" else "xlrd" if is_old_office(path) else "openpyxl"
        name = "'onbmacf[files]'" if engine == "openpyxl" else engine
        raise ImportError(f"such spreadsheets need {engine}: pip install {name}") from error
    except (ParameterError, TableError):
        raise
    except Exception as error:  # whatever the engine makes of a broken file
        raise TableError(f"{path} cannot be read as a spreadsheet: {error}") from error
    cells = cells.dropna(how="all")
    if not len(cells):
        raise TableError(f"{path} is empty: give a sheet with a header line.")
    names = [str(name) for name in cells.iloc[0]]
    has_header = _is_header(path, names, header)
    if not has_header:
        names = [f"x{place}" for place in range(cells.shape[1])]
    below = cells.iloc[int(has_header) :].reset_index(drop=True).set_axis(names, axis=1)
    return below.infer_objects()  # each column in the dtype of its values


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install 'onbmacf[files]'") from error
    except Exception as error:  # whatever the engine makes of a broken file
        raise TableError(f"{path} cannot be read as a Parquet file: {error}") from error


def _read_csv(path: Path, kind: str, separator: str, encoding: str, has_header: bool) -> pd.DataFrame:
    compression: Any = kind if kind in (*OPENERS, "zip") else None
    how: dict[str, Any] = {"sep": separator, "encoding": encoding, "compression": compression, "index_col": False}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(path, header=0 if has_header else None, **how, **EXACT)
    except UnicodeError as error:
        raise _other_encoding(path, encoding, error) from error
    except pd.errors.ParserWarning as error:  # pandas would leave them out, or take the first for the names of rows
        raise TableError(f"{path}: a line has more values than the header has names. Name every column.") from error
    except Exception as error:  # whatever pandas or an unpacker makes of a broken file
        raise TableError(f"{path} cannot be read as a table: {error}") from error


def _first_record(path: Path, kind: str, encoding: str) -> tuple[str, list[str]]:
    """Return the separator and the first record, which may hold line breaks in quotes."""
    content = _start_of(path, kind, FIRST_PART)
    try:
        start = _decoder(encoding)(content).lstrip("\ufeff")  # a character that the limit cuts in two does not count
    except UnicodeError as error:
        raise _other_encoding(path, encoding, error) from error
    line = start.splitlines()[0] if start else ""
    if not line.strip():
        raise TableError(f"{path} is empty or starts with an empty line: give a CSV file with a header line.")
    separator = max(SEPARATORS, key=line.count)
    try:
        return separator, next(csv.reader(StringIO(start, newline=None), delimiter=separator), [])
    except csv.Error as error:
        raise TableError(f"{path}: the first line cannot be read as names of columns: {error}.") from error


def _opened(path: Path, kind: str) -> Any:
    if kind == "zip":
        archive = zipfile.ZipFile(path)
        return archive.open(archive.namelist()[0])
    return OPENERS.get(kind, open)(path, "rb")


def _start_of(path: Path, kind: str, size: int) -> bytes:
    """Return the first bytes of a file, unpacked."""
    try:
        with _opened(path, kind) as file:
            return bytes(file.read(size))
    except Exception as error:  # whatever an unpacker makes of a broken file
        raise TableError(f"{path} cannot be read: {error}") from error


def _decoder(encoding: str) -> Any:
    """Return a function from bytes to text; Python also knows encodings of bytes, such as base64."""
    try:
        "".encode(encoding)  # refuses encodings of bytes
        return codecs.getincrementaldecoder(encoding)().decode
    except (LookupError, ValueError, TypeError) as error:
        example = f"e.g. 'latin-1', got {shortened(encoding)}"
        raise ParameterError(f"encoding must be one that Python knows, {example}.") from error


def _other_encoding(path: Path, encoding: str, error: UnicodeError) -> TableError:
    return NotThisEncodingError(f'{path} is not {encoding} text: {error}. Pass its encoding, e.g. encoding="latin-1".')


def _is_header(path: Path, names: list[str], header: bool | None) -> bool:
    """Return whether the first line names the columns; one that cannot is an error."""
    numbers = [name for name in names if _is_number(name)]
    if header is None and numbers:
        raise TableError(
            f"{path} seems to have no header: its first line holds {numbers[0]!r}. Add a line of column names, or pass "
            "header=False (the columns are then named x0, x1, ...), or header=True if that line is the header."
        )
    has_header = header is None or header
    repeated = sorted({name for name in names if names.count(name) > 1})
    if has_header and repeated:
        raise TableError(f"{path}: column names repeat: {listed(repeated)}. Rename them.")
    return has_header


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.strip().lower() not in ("nan", "inf", "infinity")


# --- what a file is ---------------------------------------------------------------------------------------------------


def kind_of(path: Path) -> str:
    """Return how a file is read: "text", a compression, "parquet" or "excel"; anything else is an error."""
    with path.open("rb") as file:
        head = file.read(HEAD)
    found = next((kind for start, kind in READ.items() if head.startswith(start)), None)
    if found is None and head.startswith(OLD_OFFICE):
        found = "excel"
    if found is None and head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        found = _archive(path)
    if found is not None:
        return found
    _check_table(path, head)
    return SUFFIXES.get(path.suffix.lower(), "text")


def is_old_office(path: Path) -> bool:
    """Say whether a file is of Office before 2007."""
    with path.open("rb") as file:
        return file.read(len(OLD_OFFICE)) == OLD_OFFICE


def encoding_of(head: bytes) -> str:
    """Return the encoding that the first bytes of a text tell; UTF-8 where they tell none.

    >>> encoding_of("a;b".encode("utf-16")), encoding_of("a;b".encode("utf-16-le")), encoding_of(b"a;b")
    ('utf-16', 'utf-16-le', 'utf-8')
    """
    found = next((name for mark, name in BOMS.items() if head.startswith(mark)), None)
    if found is not None:
        return found
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if even + odd > len(head) // 4:  # text without a mark in which every other byte is 0
        return "utf-16-le" if odd > even else "utf-16-be"
    return "utf-8"


def _archive(path: Path) -> str:
    """Return what a zip file is."""
    try:
        names = zipfile.ZipFile(path).namelist()
    except (OSError, zipfile.BadZipFile) as error:
        raise TableError(f"{path} is a broken zip file: {error}.") from error
    if any(name.startswith("xl/") for name in names) or "content.xml" in names:
        return "excel"
    if any(name.startswith("word/") for name in names):
        raise TableError(f"{path} is a Word document: copy the table out of it.")
    if len(names) == 1:
        return "zip"
    raise TableError(f"{path} is a zip file of {len(names)} files: unpack it and give one of them.")


def _check_table(path: Path, head: bytes) -> None:
    if path.suffix.lower() == ".onb":
        raise TableError(f"{path} is a map of this package: give the table that it was built from.")
    for start, (what, remedy) in OTHERS.items():
        if head.startswith(start):
            raise TableError(f"{path} is {what}: {remedy}.")
    text = head.lstrip(codecs.BOM_UTF8 + b" \t\r\n")
    if text[:14].lower().startswith(MARKUP):
        raise TableError(f"{path} is a web page or XML, not a table: export it as CSV.")
    if text.startswith((b"{", b"[")):
        raise TableError(f"{path} is JSON, not a table: read it with pandas.read_json and write it as CSV.")
