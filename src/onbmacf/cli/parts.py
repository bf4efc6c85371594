"""Long work in parts that are kept on disk: after Ctrl-C or a crash the same command continues where it stopped.

    rows  ->  chunks  ->  explain  ->  one file per chunk (whole or not there)  ->  joined answers

A part's name holds a digest of all that decides it, so a part of another question is never used.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from onbmacf import __version__
from onbmacf._base.arrays import objects
from onbmacf._disk import store
from onbmacf._rows.form import TableForm
from onbmacf.cli.terminal import Progress
from onbmacf.errors import StoreError
from onbmacf.explainer import ONBMACF
from onbmacf.explanations import Batch, Explanations
from onbmacf.report.fingerprint import model_digest, table_digest

CHUNK = 100  # rows per part
NOTHING: Mapping[str, Any] = {}  # further arguments of explain, where there are none
FRAMES = ("values", "semifactual_values")  # columns of a batch that are frames
OF_ROWS = ("labels", "statuses", "reasons", "would_need")
COUNTS = ("n_calls", "n_questions", "n_model_rows")
LAYOUT = (*Batch._fields, *OF_ROWS, *COUNTS)  # of a part: part of its name, so that another layout is never read


class StoppedError(Exception):
    """Ctrl-C: holds the answers so far."""

    def __init__(self, answers: list[Explanations], n_rows: int) -> None:
        super().__init__(f"stopped after {sum(map(len, answers)):,} of {n_rows:,} rows")
        self.answers = answers


@dataclass(frozen=True, eq=False)
class Parts:
    """Where the parts of one question are kept; nowhere, if there is no folder."""

    folder: Path | None
    question: str = ""

    def path(self, rows: pd.DataFrame, start: int) -> Path | None:
        """Return the file of a chunk of rows."""
        if self.folder is None:
            return None
        content = rows.to_csv(index=True).encode("utf-8", "backslashreplace")
        key = sha256(self.question.encode() + content).hexdigest()[:16]
        return self.folder / f"part-{start:09d}-{key}.onb"

    def clear(self, paths: list[Path | None]) -> None:
        """Remove the parts of finished work, and the folder if nothing else is in it."""
        for path in paths:
            if path is not None:
                path.unlink(missing_ok=True)
        if self.folder is not None:
            with suppress(OSError):
                self.folder.rmdir()


def parts_beside(out: Path | None, explainer: ONBMACF, target: Any, asked: Mapping[str, Any] = NOTHING) -> Parts:
    """Return the parts that belong to a result's file and to this question."""
    if out is None:
        return Parts(None)
    options = [(name, value) for name, value in explainer.get_params().items() if name != "n_jobs"]
    schema = repr(explainer.schema_)
    digests = (table_digest(explainer), model_digest(explainer))
    question = repr([__version__, LAYOUT, options, schema, target, dict(asked), *digests])
    return Parts(out.with_name(out.name + ".parts"), question)


def explain_in_parts(
    explainer: ONBMACF, rows: pd.DataFrame, target: Any, parts: Parts, asked: Mapping[str, Any] = NOTHING
) -> Explanations:
    """Explain rows chunk by chunk, reading parts that are there; Ctrl-C is a StoppedError with the answers so far."""
    chunk = CHUNK * explainer.n_jobs
    starts = range(0, max(len(rows), 1), chunk)
    chunks = [rows.iloc[start : start + chunk] for start in starts]
    paths = [parts.path(piece, start) for piece, start in zip(chunks, starts, strict=True)]
    n_there = sum(len(piece) for piece, path in zip(chunks, paths, strict=True) if path is not None and path.exists())
    progress = Progress(len(rows), n_there)
    answers: list[Explanations] = []
    try:
        for piece, path in zip(chunks, paths, strict=True):
            found = None if path is None else _read(path, piece, explainer)
            if found is None:
                found = explainer.explain(piece, target=target, **asked)
                _write(path, found, explainer)
                progress.advance(len(piece))
            answers.append(found)
    except KeyboardInterrupt:
        raise StoppedError(answers, len(rows)) from None
    parts.clear(paths)
    return Explanations.concat(answers)


def _write(path: Path | None, answers: Explanations, explainer: ONBMACF) -> None:
    """Write a part: numbers as arrays, words in the manifest."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays, words = _split(answers.batch, explainer.fitted_.space.form)
    of_rows = {name: [_plain(value) for value in getattr(answers, name)] for name in OF_ROWS}
    counts = {name: getattr(answers, name) for name in COUNTS}
    store.write(path, arrays, {"words": words, "warnings": list(answers.warnings), **of_rows, **counts})


def _read(path: Path, rows: pd.DataFrame, explainer: ONBMACF) -> Explanations | None:
    """Return the answers in a part; None if there is none, or none that can be read."""
    if not path.exists():
        return None
    try:
        arrays, manifest = store.read(path)
    except StoreError:
        return None
    form = explainer.fitted_.space.form
    of_rows: dict[str, Any] = {name: objects(manifest[name]) for name in OF_ROWS}
    counts = {name: manifest[name] for name in COUNTS}
    batch, warnings = _joined(arrays, manifest["words"], form), tuple(manifest["warnings"])
    return Explanations(rows=form.arrange(rows)[0], batch=batch, warnings=warnings, **of_rows, **counts)


def _split(batch: Batch, form: TableForm) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the columns of a batch that are numbers, frames among them, and those that are words or None."""
    columns = batch._asdict() | {name: form.numbers(getattr(batch, name)) for name in FRAMES}
    arrays: dict[str, Any] = {}
    words: dict[str, Any] = {}
    for name, column in columns.items():
        if column is None or column.dtype == object:
            words[name] = None if column is None else [_plain(value) for value in column]
        else:
            arrays[name] = column
    return arrays, words


def _joined(arrays: Mapping[str, Any], words: Mapping[str, Any], form: TableForm) -> Batch:
    """Return the batch that `_split` took apart."""
    numbers = {name: np.array(column) for name, column in arrays.items()}
    frames = {name: form.frame(numbers[name]) for name in FRAMES}
    texts = {name: None if column is None else objects(column) for name, column in words.items()}
    return Batch(**numbers | frames | texts)


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    json.dumps(value)  # a label that JSON cannot hold is an error now, not when the part is read
    return value
