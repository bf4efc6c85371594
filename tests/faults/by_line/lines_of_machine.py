"""Files and what is shown, line by line: what is done, and its outcome."""

import os
import resource
from contextlib import contextmanager
from functools import cache
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from faults.by_line.outcomes import E, Is
from faults.by_line.samples import above, fit, frame
from onbmacf import ONBMACF, errors
from onbmacf._base.files import sole_writer
from onbmacf._text.frames import as_csv
from onbmacf.errors import ModelError, StoreError

NAMES = ["<script>alert(1)</script>", "[red]", "=1+1", "{{x}}"]


@cache
def many():
    return fit(pd.DataFrame({"x": np.arange(64) / 16, "y": np.arange(64) % 5}))


def loaded(change=lambda raw: raw, model=above):
    """Save a map, change its bytes, and load it."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "a map.onb")
        many().save(path)
        path.write_bytes(change(path.read_bytes()))
        return ONBMACF.load(path, model)


def saved_again(during):
    """Save over a file while something is in the way; the file must stay as it is, alone."""
    explainer = many()
    with TemporaryDirectory() as folder:
        path = Path(folder, "a map.onb")
        path.write_bytes(b"old")
        try:
            with during(path):
                explainer.save(path)
        finally:
            assert path.read_bytes() == b"old"
            assert [own.name for own in path.parent.iterdir()] == [path.name]


@contextmanager
def full_disk(_):
    """Let no file grow beyond some bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def read_only(path):
    """Let nothing be written into the folder, whoever runs this."""
    user = os.geteuid()
    path.parent.chmod(0o555)
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)
        path.parent.chmod(0o755)


FILES = {
    "truncated": (errors.TruncatedFileError, lambda raw: raw[:-100]),
    "bit-flipped": (errors.CorruptFileError, lambda raw: raw[:-20] + bytes([raw[-20] ^ 4]) + raw[-19:]),
    "foreign": (errors.ForeignFileError, lambda raw: b"PK\x03\x04 some other file" * 20),
    "empty": (errors.EmptyFileError, lambda raw: b""),
    "newer": (errors.NewerVersionError, lambda raw: raw.replace(rb"\"version\": 1", rb"\"version\": 9")),
}

MACHINE = {
    "model changed since the map was saved": (
        lambda: loaded(model=lambda rows: (rows["x"] > 2.5625).astype(int)),
        E(ModelError, "a map.onb was made for another model: 9 of 64 probe rows differ"),
    ),
    **{
        f"map file {how}": (lambda change=change: loaded(change), E(error, "a map.onb"))
        for how, (error, change) in FILES.items()
    },
    "disk full": (lambda: saved_again(full_disk), E(StoreError, "could not write .*a map.onb")),
    "read-only folder": (lambda: saved_again(read_only), E(StoreError, "a map.onb.*Permission denied")),
    "two writers": (lambda: saved_again(sole_writer), E(StoreError, "a map.onb is being written by")),
}


def shown(name):
    """Return how a column's name comes out: as a sentence, as text and as markup of HTML, as the header of CSV."""
    table = frame().rename(columns={"x": name})
    answers = fit(table, lambda rows: rows[name] > 2).explain(table.head(1))
    page, header = answers._repr_html_(), as_csv(answers.to_frame()).splitlines()[0].split(",")
    return answers.sentences()[0].startswith(f"If {name} were"), name in unescape(page), "<script" in page, header[-2]


OUTPUT = {
    name: (lambda name=name: shown(name), Is((True, True, False, "'=1+1" if name == "=1+1" else name)))
    for name in NAMES
}
