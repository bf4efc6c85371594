"""What a file is, by its first bytes, whatever its name says; and in which encoding its text is.

path  ->  kind_of  ->  "parquet", "excel", "gzip", ... or "text";  a kind that is no table is an error that names it
"""

import bz2
import codecs
import gzip
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from onbmacf.errors import TableError

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
