"""The paper's eight tables, and the test tables of keel.py, as Tasks.

    name  ->  locate  ->  a file of the caller's, of the cache, or downloaded and checked
    file, DESCRIPTIONS  ->  load_task  ->  Task

Label 1 is the desired class everywhere: more than 50K, not high risk, no delinquency, a good risk, the leaving
certificate taken, *no* heart disease (the file's 1 is disease), survived, a wine of quality 6 or more.

A folder given by the caller or by ONBMACF_DATA comes first; saheart also ships with the package. A file that
differs from the published one is used with a warning; a download that differs is an error.
"""

import gzip
import hashlib
import os
import warnings
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.files import write_atomically
from onbmacf._columns.kinds import Kind
from onbmacf._table.space import FeatureSpace
from onbmacf.bench import keel
from onbmacf.bench.protocol import Labels, Task
from onbmacf.errors import OnbmacfWarning, ParameterError, StoreError
from onbmacf.schema import Schema

ONE_HOT_HEIGHT = 1.0  # the network's inputs: an active level is 1
ENVIRONMENT = "ONBMACF_DATA"
IRISH_SCORES = (
    *(18, 27, 28, 30, 31, 33, 35, 36, 37, 38, 40, 42, 43, 46),
    *(47, 48, 51, 53, 57, 58, 61, 62, 64, 65, 66, 69, 71, 75),
)
_CARLA = "https://raw.githubusercontent.com/carla-recourse/cf-data/2d56677095bd11deba5d8e3731f8941b95e0a880"

# --- tasks ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Description:
    """What is not in the file itself."""

    target: str
    desired: tuple[Any, ...]  # values of the target column that count as label 1
    class_names: tuple[str, str]  # of label 0 and label 1
    immutable: tuple[str, ...] = ()
    kinds: Mapping[Hashable, Kind] = field(default_factory=dict)  # where inference from the column would be wrong
    ordinal: Mapping[Hashable, tuple[str, ...]] = field(default_factory=dict)
    paper_rows: int | None = None  # rows that the paper kept by stratified subsampling


# PMLB, and therefore the paper, puts the unknown prestige above the highest. Kept as one more rank.
_PRESTIGE = (*map(str, IRISH_SCORES), "?")

DESCRIPTIONS: dict[str, Description] = {
    "adult": Description("income", (1,), ("at most 50K", "more than 50K"), ("age", "sex"), paper_rows=24_416),
    "compas": Description(
        "score", (1,), ("high risk", "not high risk"), ("age", "race", "sex"), {"two_year_recid": "binary"}
    ),
    "give_me_some_credit": Description(
        "SeriousDlqin2yrs",
        (1,),
        ("delinquent", "not delinquent"),
        ("age",),
        {"MonthlyIncome": "continuous"},
        paper_rows=23_105,
    ),
    "heloc": Description("RiskPerformance", (1,), ("bad risk", "good risk")),
    "irish": Description(
        "Leaving_Certificate",
        ("taken",),
        ("not taken", "taken"),
        ("Sex",),
        ordinal={"Prestige_score": _PRESTIGE},
    ),
    "saheart": Description("chd", (0,), ("disease", "no disease"), ("age",)),
    "titanic": Description("survived", ("yes",), ("died", "survived"), ("gender", "age", "country")),
    "wine": Description("quality", (6, 7, 8, 9), ("below 6", "6 or more")),
}


def load_task(name: str, data_dir: Path | None = None, *, target: int = 1, paper_sizes: bool = False) -> Task:
    """Return a dataset as a Task; with `target=0` the undesired label is to be reached."""
    if name not in DESCRIPTIONS and name not in keel.TABLES:
        raise ParameterError(f"dataset must be one of {', '.join((*DESCRIPTIONS, *keel.TABLES))}, got {name!r}.")
    source = locate(name, data_dir)
    if name in keel.TABLES:
        frame, labels = keel.read(source.path, name)
        return as_task(name, frame, Description(keel.OUTCOME, labels[1:], labels), target, source.digest)
    frame = pd.read_csv(source.path, compression="infer").dropna().reset_index(drop=True)
    description = DESCRIPTIONS[name]
    if paper_sizes and description.paper_rows is not None:
        frame = _subsample(frame, description, description.paper_rows)
    return as_task(name, frame, description, target, source.digest)


def as_task(name: str, frame: pd.DataFrame, description: Description, target: int = 1, digest: str = "") -> Task:
    """Return a table with its target column as a Task."""
    table = frame.drop(columns=description.target)
    schema = Schema.infer(table, immutable=description.immutable, kinds=description.kinds, ordinal=description.ordinal)
    space = FeatureSpace.fit(table, schema, ONE_HOT_HEIGHT)
    y = _labels(frame, description)
    return Task(name, table, space.schema, space, space.encode(table), y, target, description.class_names, digest)


def _labels(frame: pd.DataFrame, description: Description) -> Labels:
    return frame[description.target].isin(description.desired).to_numpy().astype(np.intp)


def _subsample(frame: pd.DataFrame, description: Description, rows: int) -> pd.DataFrame:
    """Keep a seeded random share of each class, in file order."""
    y = _labels(frame, description)
    random = np.random.default_rng(0)
    positives = round(rows * y.mean())
    kept = [_draw(random, y == 1, positives), _draw(random, y == 0, rows - positives)]
    return frame.iloc[np.sort(np.concatenate(kept))].reset_index(drop=True)


def _draw(random: np.random.Generator, among: NDArray[np.bool_], count: int) -> NDArray[np.intp]:
    return random.choice(np.flatnonzero(among), size=count, replace=False)


# --- files ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DataFile:
    """A file on this machine."""

    path: Path
    digest: str


@dataclass(frozen=True)
class Published:
    """A published file, and how to turn it into the benchmark's CSV."""

    digest: str  # SHA-256 of the CSV, unzipped
    url: str | None = None
    rebuild: Callable[[bytes], bytes] = bytes
    hint: str = ""


def locate(name: str, data_dir: Path | None = None) -> DataFile:
    """Return the file of a dataset, downloading it if necessary."""
    named = os.environ.get(ENVIRONMENT)
    folders = [folder for folder in (data_dir, Path(named) if named else None, cache_dir()) if folder is not None]
    if name in keel.TABLES:
        archive = keel.archive(folders, cache_dir())
        return DataFile(archive, keel.digest_of(archive, name))
    for folder in folders:
        for path in (folder / f"{name}.csv", folder / f"{name}.csv.gz"):
            if path.is_file():
                return _checked(name, path)
    if name == "saheart":
        return _checked(name, Path(str(files("onbmacf.datasets") / "heart.csv")))
    return _fetch(name, cache_dir() / f"{name}.csv")


def cache_dir() -> Path:
    """Return the folder for downloaded files."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "onbmacf" / "datasets"


def _checked(name: str, path: Path) -> DataFile:
    digest = _digest_of(path, path.stat().st_mtime_ns)
    if digest != PUBLISHED[name].digest:
        warnings.warn(
            f"{path} differs from the published {name} (SHA-256 {digest[:12]}..., expected "
            f"{PUBLISHED[name].digest[:12]}...): results are not comparable with the published ones.",
            OnbmacfWarning,
            stacklevel=3,
        )
    return DataFile(path, digest)


@cache
def _digest_of(path: Path, changed: int) -> str:
    """Return the SHA-256 of a file, unzipped; it is read again when it has changed: a run has thousands of cells."""
    content = path.read_bytes()
    return _digest(gzip.decompress(content) if path.suffix == ".gz" else content)


def _fetch(name: str, path: Path) -> DataFile:
    published = PUBLISHED[name]
    if published.url is None:
        raise _missing(name, "it cannot be downloaded")
    try:
        content = published.rebuild(_download(published.url))
    except ImportError:
        raise
    except Exception as error:
        raise _missing(name, f"downloading it failed ({type(error).__name__}: {error})") from error
    digest = _digest(content)
    if digest != published.digest:
        raise _missing(name, f"the file at {published.url} now has SHA-256 {digest}, not {published.digest}")
    write_atomically(path, content)
    return DataFile(path, digest)


def _download(url: str) -> bytes:
    try:
        import pooch
    except ImportError as error:
        raise ImportError("downloading a dataset needs pooch: pip install 'onbmacf[bench]'.") from error
    downloaded = pooch.retrieve(url, known_hash=None, path=cache_dir() / "downloads", progressbar=False)
    return Path(downloaded).read_bytes()


def _missing(name: str, why: str) -> StoreError:
    hint = PUBLISHED[name].hint
    return StoreError(
        f"no {name}.csv or {name}.csv.gz: {why}. Put the file into a folder and name the folder with --data-dir or "
        f"{ENVIRONMENT}.{' ' + hint if hint else ''}"
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _irish(content: bytes) -> bytes:
    """Turn PMLB's codes, which number the sorted names from 0, back into names."""
    coded = pd.read_csv(BytesIO(gzip.decompress(content)), sep="\t").astype(int)
    for column, names in _IRISH_NAMES.items():
        coded[column] = coded[column].map(dict(enumerate(names)))
    named = coded.rename(columns={"target": "Leaving_Certificate"})
    return named.to_csv(index=False, lineterminator="\n").encode()


_IRISH_NAMES = {
    "Sex": ["female", "male"],
    "Educational_level": [
        "3rd_level_complete",
        "3rd_level_incomplete",
        "?",
        "Junior_cycle_incomplete-secondary_school",
        "Junior_cycle_incomplete-vocational_school",
        "Junior_cycle_terminal_leaver-secondary_school",
        "Junior_cycle_terminal_leaver-vocational_school",
        "Primary_terminal_leaver",
        "Senior_cycle_incomplete-secondary_school",
        "Senior_cycle_incomplete-vocational_school",
        "Senior_cycle_terminal_leaver-secondary_school",
    ],
    "Prestige_score": [*map(str, IRISH_SCORES), "?"],
    "Type_school": ["primary_terminal_leaver", "secondary", "vocational"],
    "target": ["not_taken", "taken"],
}

PUBLISHED: dict[str, Published] = {
    "adult": Published("e98ef37848b34919802d9e110718dd02ccbc8ec0369677f92bb1fd40b71eccdc", f"{_CARLA}/adult.csv"),
    "compas": Published("e99430e4bdeebc858ba22726be3c3924c8435e6c890e2ae7f52d0411a3cc0516", f"{_CARLA}/compas.csv"),
    "give_me_some_credit": Published(
        "a79d610d1d3e1e8ee1906185cd958c671391fe4866a02f79c148ac6685a6dcb0",
        f"{_CARLA}/give_me_some_credit.csv",
    ),
    "heloc": Published("6a668dddbd2b59aed119c0169c562d54ad6a462580ca783628e88cbc59315d41", f"{_CARLA}/heloc.csv"),
    "irish": Published(
        "e729337e0fe174e49654d22f0de72aa625f34329ae955e200f94477f3e0de4fe",
        "https://raw.githubusercontent.com/EpistasisLab/pmlb/"
        "9cc9017958f2d8284e62d8bc54b77cb6fa1e9592/datasets/irish/irish.tsv.gz",
        _irish,
    ),
    "saheart": Published("82d9144a01e87336992259137c28bca747ea1af0352309c1a72fad04de712181"),
    "titanic": Published(
        "f338ce63293df41ea7dd73ca37af332c10558201d7e47851cb9bea2f287e8e66",
        hint="It is `titanic` of the R package DALEX, written as CSV with NA for missing values.",
    ),
    "wine": Published(
        "d99ea899f7ea892b717e34b0b6eaca33244c52d0d038dc4fcb6c728a64842562",
        "https://archive.ics.uci.edu/ml/machine-learning-databases/wine-quality/winequality-white.csv",
        lambda content: content.replace(b'"', b"").replace(b";", b","),
    ),
}
