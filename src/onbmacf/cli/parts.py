"""Long work in parts that are kept on disk: after Ctrl-C or a crash the same command goes on where it stopped.

    rows  ->  chunks  ->  explain  ->  one file per chunk (whole or not there)  ->  joined answers

A part's name holds a digest of all that decides it, so a part of another question is never taken.
"""

import json
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from onbmacf import __version__
from onbmacf._disk import store
from onbmacf.cli.terminal import Progress
from onbmacf.errors import StoreError
from onbmacf.explainer import ONBMACF, PARAMETERS
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
    options = [(name, getattr(explainer, name)) for name in PARAMETERS if name != "n_jobs"]
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
    return joined(answers)


def joined(answers: list[Explanations]) -> Explanations:
    """Put the answers of successive rows together."""
    if len(answers) == 1:
        return answers[0]
    starts = np.cumsum([0, *(len(part) for part in answers)])[:-1]
    batches = [
        replace(part.batch, factual=part.batch.factual + start) for part, start in zip(answers, starts, strict=True)
    ]
    batch = Batch(**{field.name: _stacked([getattr(b, field.name) for b in batches]) for field in fields(Batch)})
    return Explanations(
        pd.concat([part.rows for part in answers]),
        np.concatenate([part.labels for part in answers]),
        np.concatenate([part.statuses for part in answers]),
        np.concatenate([part.reasons for part in answers]),
        batch,
        tuple(dict.fromkeys(message for part in answers for message in part.warnings)),
        sum(part.n_calls for part in answers),
        sum(part.n_rows for part in answers),
    )


def _stacked(columns: list[Any]) -> Any:
    if any(column is None for column in columns):
        return None
    if isinstance(columns[0], pd.DataFrame):
        return pd.concat(columns, ignore_index=True)
    return np.concatenate(columns)


def _write(path: Path | None, answers: Explanations, explainer: ONBMACF) -> None:
    """Write a part: numbers as arrays, words in the manifest."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {"chunk": np.arange(len(answers))}
    words: dict[str, Any] = {}
    for field in fields(Batch):
        column = getattr(answers.batch, field.name)
        if isinstance(column, pd.DataFrame):
            arrays[field.name] = explainer.space_.form.numbers(column)
        elif column is None or column.dtype == object:
            words[field.name] = None if column is None else [_plain(value) for value in column]
        else:
            arrays[field.name] = column
    per_row = {name: [_plain(v) for v in getattr(answers, name)] for name in ("labels", "statuses", "reasons")}
    counts = {"warnings": list(answers.warnings), "n_calls": answers.n_calls, "n_rows": answers.n_rows}
    store.write(path, arrays, {"words": words, **per_row, **counts})


def _read(path: Path, rows: pd.DataFrame, explainer: ONBMACF) -> Explanations | None:
    """Return the answers in a part; None if there is none, or none that can be read."""
    if not path.exists():
        return None
    try:
        arrays, manifest = store.read(path)
    except StoreError:
        return None
    form = explainer.space_.form
    columns: dict[str, Any] = {}
    for field in fields(Batch):
        if field.name in manifest["words"]:
            held = manifest["words"][field.name]
            columns[field.name] = None if held is None else _objects(held)
        elif field.name in ("values", "semifactual_values"):
            columns[field.name] = form.frame(np.array(arrays[field.name]))
        else:
            columns[field.name] = np.array(arrays[field.name])
    labels, statuses, reasons = (_objects(manifest[name]) for name in ("labels", "statuses", "reasons"))
    warnings, n_calls, n_rows = tuple(manifest["warnings"]), manifest["n_calls"], manifest["n_rows"]
    kept = form.arrange(rows)[0]
    return Explanations(kept, labels, statuses, reasons, Batch(**columns), warnings, n_calls, n_rows)


def _objects(values: list[Any]) -> Any:
    return np.array([*values, None], dtype=object)[:-1]


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    json.dumps(value)  # a label that JSON cannot hold is told now
    return value
