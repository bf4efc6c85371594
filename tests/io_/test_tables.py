"""Tables from files: numbers come back exactly, every fault is one plain sentence."""

import bz2
import gzip
import io
import lzma
import pickle
import re
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest

import onbmacf.io
from onbmacf.errors import OnbmacfWarning, ParameterError, TableError
from onbmacf.io import read_table


def no_option(error):
    """A message of the library names no option of the command line."""
    assert not re.search(r"(^|\s)--\w", str(error.value)), error.value


def test_the_package_is_light_and_lists_its_names():
    code = "import sys, onbmacf.io, onbmacf.io.models; print(dir(onbmacf.io), *sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    names = [
        "RemoteModel",
        "RemoteRowsError",
        "TrainedModel",
        "load_model",
        "read_table",
        "train_network",
        "train_trees",
    ]
    assert str(names) in out
    assert not {"numpy", "pandas", "sklearn", "torch"} & set(out.split())
    for name in onbmacf.io.__all__:
        assert getattr(onbmacf.io, name).__doc__
    with pytest.raises(AttributeError, match=r"'onbmacf\.io' has no attribute 'read_tabel'"):
        onbmacf.io.read_tabel  # noqa: B018


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_found_and_numbers_are_exact(tmp_path, separator):
    values = np.random.default_rng(0).normal(size=500) * 10.0 ** np.random.default_rng(1).integers(-200, 200, 500)
    lines = ["a b" + separator + "c", *(f"{value!r}{separator}x" for value in values.tolist())]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = read_table(path)
    assert list(table.columns) == ["a b", "c"]
    assert (table["a b"].to_numpy() == values).all()
    pd.testing.assert_frame_equal(read_table(str(path)), table)


def test_compressed_files_and_parquet(tmp_path):
    table = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n1,x\n2,y\n"))
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.csv.gz"), table, check_dtype=False)
    pytest.importorskip("pyarrow")
    table.to_parquet(tmp_path / "t.parquet")
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.parquet"), table, check_dtype=False)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").write_bytes(b"")

    def without(path):
        raise ImportError("Unable to find a usable engine;\nmany\nlines")

    monkeypatch.setattr(pd, "read_parquet", without)
    with pytest.raises(ImportError, match=r"^Parquet files need pyarrow: pip install 'onbmacf\[files\]'$"):
        read_table(tmp_path / "t.parquet")


def test_quoted_line_breaks_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes('\ufeff"first\nname",age\n"x, y",3\n'.encode())
    table = read_table(path)
    assert list(table.columns) == ["first\nname", "age"]
    assert table.iloc[0].tolist() == ["x, y", 3]
    path.write_bytes("\ufeff1.5,a\n2.5,b\n".encode())
    with pytest.raises(TableError, match=r"its first line holds '1\.5'"):
        read_table(path)


def test_a_header_is_guessed_and_can_be_told(tmp_path):
    path = tmp_path / "years.csv"
    path.write_text("2019,2020\n1,2\n", encoding="utf-8")
    assert list(read_table(path, header=True).columns) == ["2019", "2020"]
    assert read_table(path, header=False).to_dict("list") == {"x0": [2019, 1], "x1": [2020, 2]}
    with pytest.raises(TableError) as error:
        read_table(path)
    assert str(error.value) == (
        f"{path} seems to have no header: its first line holds '2019'. Add a line of column names, or pass "
        "header=False (the columns are then named x0, x1, ...), or header=True if that line is the header."
    )


def test_another_encoding(tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes("größe,b\n1,2\n".encode("latin-1"))
    assert list(read_table(path, encoding="latin-1").columns) == ["größe", "b"]
    with pytest.raises(TableError, match=r'is not utf-8 text: .*\. Pass its encoding, e\.g\. encoding="latin-1"\.$'):
        read_table(path, encoding="utf-8")
    with pytest.raises(ParameterError, match=r"encoding must be one that Python knows, .* got 'latin-x'"):
        read_table(path, encoding="latin-x")


def test_a_wrong_byte_far_into_the_file_is_the_same_error(tmp_path, monkeypatch):
    path = tmp_path / "late.csv"
    path.write_bytes(b"a,b\n" + b"1,x\n" * 50_000 + "1,é\n".encode("latin-1"))
    monkeypatch.setattr(onbmacf.io.tables, "FIRST_PART", 100)
    with pytest.raises(TableError, match=r"is not utf-8 text: .* Pass its encoding"):
        read_table(path, encoding="utf-8")
    with pytest.warns(OnbmacfWarning, match=r"late\.csv is not UTF-8 \(.*0xe9.*\): read as latin-1"):
        assert read_table(path)["b"].iloc[-1] == "é"


ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32")


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("packed", ["", ".gz", ".bz2", ".xz"])
def test_the_first_bytes_tell_the_encoding_also_of_packed_text(tmp_path, encoding, packed):
    content = "größe;ort\n1,5;München\n2;Ελλάδα\n".encode(encoding)
    path = tmp_path / f"t.csv{packed}"
    path.write_bytes({"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[packed](content))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = read_table(path)
    assert table.to_dict("list") == {"größe": ["1,5", "2"], "ort": ["München", "Ελλάδα"]}
    pd.testing.assert_frame_equal(read_table(path, encoding=encoding), table)


def test_text_that_is_not_utf_8_is_read_as_latin_1_and_said_so(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("größe,b\n1,é\n".encode("latin-1"))
    with pytest.warns(OnbmacfWarning, match=r"read as latin-1\. If letters look wrong, pass its encoding\.$"):
        assert read_table(path).to_dict("list") == {"größe": [1], "b": ["é"]}


def test_spreadsheets(tmp_path):
    pytest.importorskip("openpyxl")
    table = pd.DataFrame({"age": [31, 54], "pay": [0.5, 1.25], "town": ["A", "B"], "ok": [True, False]})
    table["day"] = pd.to_datetime(["2024-01-05", "2023-12-31"]).as_unit("us")
    table.to_excel(tmp_path / "t.xlsx", index=False)
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.xlsx"), table, check_dtype=False)
    assert read_table(tmp_path / "t.xlsx").dtypes.astype(str).str[:3].tolist()[:2] == ["int", "flo"]
    (tmp_path / "t.csv").write_bytes((tmp_path / "t.xlsx").read_bytes())  # a wrong name
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.csv"), read_table(tmp_path / "t.xlsx"))
    with pd.ExcelWriter(tmp_path / "two.xlsx") as book:
        table.to_excel(book, sheet_name="first", index=False)
        table[["age"]].to_excel(book, sheet_name="other", index=False, header=False)
    with pytest.warns(OnbmacfWarning, match=r"two\.xlsx has 2 sheets: read the first, 'first'\. Pass sheet="):
        assert read_table(tmp_path / "two.xlsx").shape == (2, 5)
    assert read_table(tmp_path / "two.xlsx", sheet=1, header=False).to_dict("list") == {"x0": [31, 54]}
    with pytest.raises(TableError, match=r"seems to have no header: its first line holds '31'"):
        read_table(tmp_path / "two.xlsx", sheet="other")
    with pytest.raises(ParameterError, match=r"has no sheet 'third'\. Sheets: 'first', 'other'"):
        read_table(tmp_path / "two.xlsx", sheet="third")
    (tmp_path / "plain.csv").write_text("a\nx\n", encoding="utf-8")
    with pytest.raises(ParameterError, match="sheet is for spreadsheets"):
        read_table(tmp_path / "plain.csv", sheet=0)


def test_what_a_file_is_its_content_says(tmp_path):
    table = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    pytest.importorskip("pyarrow")
    table.to_parquet(tmp_path / "t.csv")
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.csv"), table, check_dtype=False)
    (tmp_path / "g.csv").write_bytes(gzip.compress(b"a,b\n1,x\n2,y\n"))
    pd.testing.assert_frame_equal(read_table(tmp_path / "g.csv"), table, check_dtype=False)
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("inner.csv", "a,b\n1,x\n2,y\n")
    pd.testing.assert_frame_equal(read_table(tmp_path / "z.zip"), table, check_dtype=False)


def zipped(*names):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return made.getvalue()


BAD_TABLES = {
    "nowhere.csv": (None, "nowhere.csv does not exist: give a CSV file with a header line."),
    "": (None, " is a folder: give a CSV file with a header line."),
    "empty.csv": (b"", "empty.csv is empty or starts with an empty line: give a CSV file with a header line."),
    "blank.csv": (b"\na,b\n", "blank.csv is empty or starts with an empty line"),
    "twice.csv": (b"a,b,a\n1,2,3\n", "twice.csv: column names repeat: 'a'. Rename them."),
    "ragged.csv": (b"a,b\n1,2,3\n4,5,6,7\n", "ragged.csv cannot be read as a table: "),
    "cut.csv.gz": (gzip.compress(b"a,b\n" + bytes(range(48, 58)) * 99)[:30], "cut.csv.gz cannot be read: "),
    "not.csv.gz": (b"a,b\n1,2\n", "not.csv.gz cannot be read: "),
    "a.csv": (b"%PDF-1.7 ...", "a.csv is a PDF document: copy the table out of it."),
    "b.csv": (b"\x89PNG\r\n", "b.csv is a PNG picture: give the table itself."),
    "c.csv": (b"<!DOCTYPE html><html>", "c.csv is a web page or XML, not a table: export it as CSV."),
    "d.csv": (b'[{"a": 1}]', "d.csv is JSON, not a table: read it with pandas.read_json and write it as CSV."),
    "e.csv": (b"SQLite format 3\0", "e.csv is an SQLite database: export a table as CSV."),
    "f.docx": (zipped("word/document.xml", "b"), "f.docx is a Word document: copy the table out of it."),
    "g.zip": (zipped("a.csv", "b.csv"), "g.zip is a zip file of 2 files: unpack it and give one of them."),
    "h.zip": (b"PK\x03\x04junk", "h.zip is a broken zip file: "),
    "i.pkl": (pickle.dumps({"a": "b" * 99}), "i.pkl is a pickle: write the table as Parquet or CSV."),
    "j.onb": (b"x", "j.onb is a map of this package: give the table that it was built from."),
    "k.xlsx": (b"a,b\n", "k.xlsx cannot be read as a spreadsheet: "),
    "broken.parquet": (b"PAR1junk", "broken.parquet cannot be read as a Parquet file: "),
}


@pytest.mark.parametrize("name, case", BAD_TABLES.items(), ids=lambda value: value if isinstance(value, str) else "")
def test_a_file_that_is_no_table_is_one_sentence(tmp_path, name, case):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    content, message = case
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError) as error:
        read_table(tmp_path / name)
    assert message in str(error.value)
    no_option(error)
