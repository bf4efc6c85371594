"""Long work in parts that are kept on disk: after Ctrl-C or a crash the same command continues where it stopped.

    rows  ->  chunks  ->  explain  ->  one file per chunk (whole or not there)  ->  joined answers

A part's name holds a digest of all that decides it, so a part of another question is never used. Parts are of the
same rows for any number of processes. They are deleted when the result is written, and not before.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from onbmacf import __version__
from onbmacf._base.arrays import objects
from onbmacf._base.stopped import CTRL_C, exit_code
from onbmacf._disk import store
from onbmacf._rows.form import TableForm
from onbmacf.cli.terminal import Progress
from onbmacf.errors import StoreError
from onbmacf.explainer import ONBMACF
from onbmacf.explanations import Batch, Explanations
from onbmacf.report.fingerprint import model_digest, table_digest

CHUNK = 100  # rows per part
FRAMES = ("values", "semifactual_values")  # columns of a batch that are frames
OF_ROWS = ("labels", "statuses", "reasons", "would_need")
COUNTS = ("n_calls", "n_questions", "n_model_rows")
LAYOUT = (*Batch._fields, *OF_ROWS, *COUNTS)  # of a part: part of its name, so that another layout is never read


class StoppedError(Exception):
    """Ctrl-C, or SIGTERM: holds the answers so far, and the exit code."""

    def __init__(self, answers: list[Explanations], n_rows: int, code: int = CTRL_C) -> None:
        super().__init__(f"stopped after {sum(map(len, answers)):,} of {n_rows:,} rows")
        self.answers, self.code = answers, code


class Part(NamedTuple):
    """Some rows of the work and the file of their answers; None where none is kept."""

    rows: pd.DataFrame
    path: Path | None

    @property
    def is_there(self) -> bool:
        """Whether there is a file."""
        return self.path is not None and self.path.exists()


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
        key = sha256(self.question.encode("utf-8", "backslashreplace") + content).hexdigest()[:16]
        return self.folder / f"part-{start:09d}-{key}.onb"

    def of(self, rows: pd.DataFrame) -> list[Part]:
        """Cut rows into parts."""
        starts = range(0, max(len(rows), 1), CHUNK)
        chunks = [rows.iloc[start : start + CHUNK] for start in starts]
        return [Part(piece, self.path(piece, start)) for piece, start in zip(chunks, starts, strict=True)]

    def clear(self, rows: pd.DataFrame) -> None:
        """Remove the parts of finished work, and the folder if nothing else is in it."""
        for part in self.of(rows):
            if part.path is not None:
                part.path.unlink(missing_ok=True)
        if self.folder is not None:
            with suppress(OSError):
                self.folder.rmdir()


def parts_beside(out: Path | None, explainer: ONBMACF, target: Any) -> Parts:
    """Return the parts that belong to a result's file and to this question."""
    if out is None:
        return Parts(None)
    options = [(name, value) for name, value in explainer.get_params().items() if name != "n_jobs"]
    schema = repr(asdict(explainer.schema_))
    digests = (table_digest(explainer), model_digest(explainer))
    question = repr([__version__, LAYOUT, options, schema, target, *digests])
    return Parts(out.with_name(out.name + ".parts"), question)


def explain_in_parts(explainer: ONBMACF, rows: pd.DataFrame, target: Any, parts: Parts) -> Explanations:
    """Explain rows part by part, reading those that are there; Ctrl-C is a StoppedError with the answers so far.

    As many parts as there are processes are explained together, and kept one by one.
    """
    every = parts.of(rows)
    progress = Progress(len(rows), sum(len(part.rows) for part in every if part.is_there))
    answers: list[Explanations | None] = [None] * len(every)
    try:
        for place, part in enumerate(every):
            answers[place] = _read(part, explainer)
        still_open = [place for place, found in enumerate(answers) if found is None]
        for start in range(0, len(still_open), explainer.n_jobs):
            places = still_open[start : start + explainer.n_jobs]
            for place, found in zip(places, _explained(explainer, [every[p] for p in places], target), strict=True):
                answers[place] = found
                progress.advance(len(found))
    except KeyboardInterrupt as error:
        done = [found for found in answers if found is not None]
        raise StoppedError(done, len(rows), exit_code(error)) from None
    return Explanations.concat([found for found in answers if found is not None])


def _explained(explainer: ONBMACF, some: list[Part], target: Any) -> Iterator[Explanations]:
    """Explain parts together; yield the answers to each when they are kept. All that was asked counts for the first."""
    together = explainer.explain(pd.concat([part.rows for part in some]), target=target)
    start = 0
    for part in some:
        found = together[start : start + len(part.rows)]
        counts: dict[str, Any] = {name: getattr(together, name) if start == 0 else 0 for name in COUNTS}
        found = replace(found, **counts)
        _write(part.path, found, explainer)
        start += len(part.rows)
        yield found


def _write(path: Path | None, answers: Explanations, explainer: ONBMACF) -> None:
    """Write a part: numbers as arrays, words in the manifest."""
    if path is None:
        return
    _make(path.parent)
    arrays, words = _split(answers.batch, explainer.fitted_.space.form)
    of_rows = {name: [_plain(value) for value in getattr(answers, name)] for name in OF_ROWS}
    counts = {name: getattr(answers, name) for name in COUNTS}
    store.write(path, arrays, {"words": words, "warnings": list(answers.warnings), **of_rows, **counts})


def _make(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise StoreError(f"could not keep the answers in {folder}: {error.strerror}.") from error


def _read(part: Part, explainer: ONBMACF) -> Explanations | None:
    """Return the answers in a part; None if there is none, or none that can be read."""
    if part.path is None or not part.is_there:
        return None
    try:
        arrays, manifest = store.read(part.path)
        return _answers(arrays, manifest, part.rows, explainer.fitted_.space.form)
    except (StoreError, LookupError, TypeError, ValueError):  # damaged, or not ours: explained again
        return None


def _answers(arrays: Any, manifest: Any, rows: pd.DataFrame, form: TableForm) -> Explanations | None:
    """Return the answers that `_write` took apart; None if they are not those of as many rows."""
    of_rows: dict[str, Any] = {name: objects(manifest[name]) for name in OF_ROWS}
    if any(len(column) != len(rows) for column in of_rows.values()):
        return None
    counts: dict[str, Any] = {name: int(manifest[name]) for name in COUNTS}
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
    try:
        json.dumps(value)  # an error now, not when the part is read
    except TypeError as error:
        raise StoreError(f"label {value!r} cannot be kept in a file: only text, numbers and bools can.") from error
    return value
