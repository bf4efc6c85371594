"""The border where tables come in: whatever is in a file, it is read as it is written, or one sentence says why not."""

import bz2
import gzip
import io
import lzma
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from onbmacf.errors import OnbmacfError, ParameterError, TableError
from onbmacf.io import RemoteModel, load_model, read_table

GOOD = b"a,b\n" + b"1,2\n3,4\n" * 300


def zipped(files, change=lambda raw: None):
    """Return a zip file, with some bytes changed."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    raw = bytearray(packed.getvalue())
    change(raw)
    return bytes(raw)


def flipped(raw, *places):
    """Return bytes of which some are others."""
    raw = bytearray(raw)
    for place in places:
        raw[place] ^= 0xFF
    return bytes(raw)


def encrypted(raw):
    """Say in both headers of a zip file that its content is encrypted."""
    raw[6] |= 1
    raw[raw.find(b"PK\x01\x02") + 8] |= 1


def unknown_method(raw):
    raw[8] = raw[raw.find(b"PK\x01\x02") + 10] = 99


BROKEN = {
    "zip, damaged": (zipped({"a.csv": GOOD}, lambda raw: raw.__setitem__(slice(45, 55), bytes(10))), "cannot be read"),
    "zip, encrypted": (zipped({"a.csv": GOOD}, encrypted), "cannot be read: .*encrypted"),
    "zip, an unknown method": (zipped({"a.csv": GOOD}, unknown_method), "cannot be read: .*compression method"),
    "zip, empty": (zipped({}), "is a zip file of 0 files"),
    "gzip, damaged": (flipped(gzip.compress(GOOD), 25, 30), "cannot be read"),
    "gzip, cut off": (gzip.compress(GOOD)[:-20], "cannot be read"),
    "bz2, damaged": (flipped(bz2.compress(GOOD), 12, 13, 14, 15), "cannot be read"),
    "xz, damaged": (flipped(lzma.compress(GOOD), 40), "cannot be read"),
    "a value too many": (b"a,b\n1,2,3\n4,5,6\n", "a line has more values than the header has names"),
    "two values too many": (b"a,b\n1,2,3,4\n", "a line has more values than the header has names"),
    "numbers of rows without a name": (b"a,b\n0,2,3\n1,5,6\n", "a line has more values than the header has names"),
}


@pytest.mark.parametrize("content, pattern", BROKEN.values(), ids=BROKEN)
def test_a_file_that_would_be_misread_is_one_sentence(tmp_path, content, pattern):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(TableError, match=f"t.csv.*{pattern}"):
        read_table(path)


HUGE = b"a,b\n" + b"1,2\n" * (6 << 20)
BOMBS = {
    "t.csv.gz": lambda: (gzip.compress(HUGE), "Unpack it and give the file that is in it"),
    "t.csv.bz2": lambda: (bz2.compress(HUGE), "Unpack it"),
    "t.csv.xz": lambda: (lzma.compress(HUGE, preset=0), "Unpack it"),
    "t.zip": lambda: (zipped({"a.csv": HUGE}), "Unpack it"),
    "t.xlsx": lambda: (
        zipped({"xl/workbook.xml": b"<a/>", "xl/sheet1.xml": HUGE}),
        "Write the table as CSV or Parquet",
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_unpacks_to_a_huge_one_is_refused_unread(tmp_path, monkeypatch, name):
    monkeypatch.setattr("onbmacf.io.tables.MOST_UNPACKED", 16 << 20, raising=False)
    packed, remedy = BOMBS[name]()
    (tmp_path / name).write_bytes(packed)
    tracemalloc.start()
    try:
        with pytest.raises(TableError, match=rf"{name} holds more than 16 MiB, unpacked\. {remedy}"):
            read_table(tmp_path / name)
        assert tracemalloc.get_traced_memory()[1] < 12 << 20
    finally:
        tracemalloc.stop()


def test_a_separator_at_the_end_of_lines_shifts_no_value(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,b\n1,2,\n4,5,\n")
    assert read_table(tmp_path / "t.csv").to_dict("list") == {"a": [1, 4], "b": [2, 5]}


ENCODINGS = ["base64", "rot13", "zlib", "undefined", "utf-8\0", "a" * 999]


@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda name: repr(name[:9]))
def test_an_encoding_of_something_else_than_text_is_refused(tmp_path, encoding):
    (tmp_path / "t.csv").write_bytes(GOOD)
    with pytest.raises(ParameterError, match="encoding must be one that Python knows"):
        read_table(tmp_path / "t.csv", encoding=encoding)


@pytest.mark.parametrize("encoding", ["utf-16", "punycode"])
def test_text_that_is_in_another_encoding_is_told(tmp_path, encoding):
    (tmp_path / "t.csv").write_bytes(GOOD)
    with pytest.raises(TableError, match=f"t.csv is not {encoding} text"):
        read_table(tmp_path / "t.csv", encoding=encoding)


def test_an_old_spreadsheet_needs_what_reads_it_whatever_it_is_called(tmp_path):
    pytest.importorskip("openpyxl")
    (tmp_path / "t.csv").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    with pytest.raises((ImportError, TableError), match=r"xlrd|spreadsheet") as caught:
        read_table(tmp_path / "t.csv")
    assert "openpyxl" not in str(caught.value)


PLACES = {
    "a device": ("/dev/null", TableError, "/dev/null is no regular file"),
    "a long name": ("a" * 5000, TableError, "cannot be read: File name too long"),
    "a number": (5, ParameterError, "path must name a file, got 5"),
    "bytes": (b"t.csv", ParameterError, "path must name a file, got b't.csv'"),
    "nothing": (None, ParameterError, "path must name a file, got None"),
}


@pytest.mark.parametrize("path, error, pattern", PLACES.values(), ids=PLACES)
def test_a_path_that_is_none_is_told(path, error, pattern):
    with pytest.raises(error, match=pattern):
        read_table(path)


SERVERS = {
    "no address": ({"url": "http://["}, "url must start with http"),
    "a port that is none": ({"url": "http://localhost:99999/"}, "url must start with http"),
    "a blank": ({"url": "http://local host/"}, "url must start with http"),
    "a number": ({"url": 5}, "url must start with http:// or https:// and name a host, got 5"),
    "text as seconds": ({"url": "http://localhost/", "timeout": "5"}, "timeout must be above 0 seconds, got '5'"),
    "too long": ({"url": "http://localhost/", "timeout": 10**400}, "timeout must be above 0 seconds, got 1000"),
}


@pytest.mark.parametrize("told, pattern", SERVERS.values(), ids=SERVERS)
def test_a_server_that_cannot_be_one_is_refused(told, pattern):
    with pytest.raises(ParameterError, match=pattern):
        RemoteModel(**told)


def test_a_model_of_any_name_is_found_or_refused_by_a_typed_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for source in (":", "a:", "os:path.", "os:..", "http://[", "ftp://x", "", "\0:a", "a\0.pkl", "..:x", "a b:c"):
        with pytest.raises(OnbmacfError):
            load_model(source)
    for suffix in (".pkl", ".joblib", ".onnx", ".skops"):
        Path(f"junk{suffix}").write_bytes(b"junk")
        with pytest.raises((OnbmacfError, ImportError)):
            load_model(f"junk{suffix}", trust_pickle=True)
