"""Long work in parts that are kept on disk: after Ctrl-C or a crash the same command goes on where it stopped.

    rows  ->  chunks  ->  explain  ->  one file per chunk (whole or not there)  ->  joined answers

A part's name holds a digest of all that decides it, so a part of another question is never taken.
"""

import json
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from onbmacf import __version__
from onbmacf._disk import store
from onbmacf.cli.terminal import Progress
from onbmacf.errors import StoreError
from onbmacf.explainer import ONBMACF
from onbmacf.explanation import Batch, Explanations
from onbmacf.report.fingerprint import model_digest, table_digest

CHUNK = 100  # rows per part


class StoppedError(Exception):
    """Ctrl-C: holds what is done."""

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


def parts_beside(out: Path | None, explainer: ONBMACF, target: Any) -> Parts:
    """Return the parts that belong to a result's file and to this question."""
    if out is None:
        return Parts(None)
    options = [(name, value) for name, value in explainer.get_params().items() if name != "n_jobs"]
    schema = repr(explainer.schema_)
    question = repr([__version__, options, schema, target, table_digest(explainer), model_digest(explainer)])
    return Parts(out.with_name(out.name + ".parts"), question)


def explain_in_parts(explainer: ONBMACF, rows: pd.DataFrame, target: Any, parts: Parts) -> Explanations:
    """Explain rows chunk by chunk, taking over parts that are there; Ctrl-C is a StoppedError with what is done."""
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
                found = explainer.explain(piece, target=target)
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
    arrays: dict[str, Any] = {"chunk": np.arange(len(answers))}
    words: dict[str, Any] = {}
    for name in Batch._fields:
        column = getattr(answers.batch, name)
        if isinstance(column, pd.DataFrame):
            arrays[name] = explainer.fitted_.space.form.numbers(column)
        elif column is None or column.dtype == object:
            words[name] = None if column is None else [_plain(value) for value in column]
        else:
            arrays[name] = column
    per_row = {name: [_plain(v) for v in getattr(answers, name)] for name in ("labels", "statuses", "reasons")}
    counts = {name: getattr(answers, name) for name in ("n_calls", "n_questions", "n_model_rows")}
    store.write(path, arrays, {"words": words, "warnings": list(answers.warnings), **per_row, **counts})


def _read(path: Path, rows: pd.DataFrame, explainer: ONBMACF) -> Explanations | None:
    """Return the answers in a part; None if there is none, or none that can be read."""
    if not path.exists():
        return None
    try:
        arrays, manifest = store.read(path)
    except StoreError:
        return None
    form = explainer.fitted_.space.form
    columns: dict[str, Any] = {}
    for name in Batch._fields:
        if name in manifest["words"]:
            held = manifest["words"][name]
            columns[name] = None if held is None else _objects(held)
        elif name in ("values", "semifactual_values"):
            columns[name] = form.frame(np.array(arrays[name]))
        else:
            columns[name] = np.array(arrays[name])
    labels, statuses, reasons = (_objects(manifest[name]) for name in ("labels", "statuses", "reasons"))
    counts = (manifest["n_calls"], manifest["n_questions"], manifest["n_model_rows"])
    kept = form.arrange(rows)[0]
    return Explanations(kept, labels, statuses, reasons, Batch(**columns), tuple(manifest["warnings"]), *counts)


def _objects(values: list[Any]) -> Any:
    return np.array([*values, None], dtype=object)[:-1]


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    json.dumps(value)  # a label that JSON cannot hold is told now
    return value
