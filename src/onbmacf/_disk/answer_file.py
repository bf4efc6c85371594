"""Answers to some rows as one file, and back: numbers as arrays, words in the manifest.

    answers  ->  write_answers  ->  a file of `store`, whole or not there  ->  read_answers(rows)  ->  answers

The rows themselves are not in the file; who reads it has them. What commands and the service keep of long work.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._base.arrays import objects
from onbmacf._disk import store
from onbmacf._disk.answer_words import ENDS, certificate_words, certificates_of, joined_ranges, split_ranges
from onbmacf._rows.form import TableForm
from onbmacf._rows.lazy_rows import LazyRows
from onbmacf.errors import StoreError
from onbmacf.explanations import Batch, Explanations

ROWS = ("rows", "semifactual_rows")  # columns of a batch that are rows of the table
RANGES = ("ranges", "box")  # columns of a batch that hold ranges
OF_ROWS = ("labels", "statuses", "reasons", "would_need")
COUNTS = ("n_calls", "n_questions", "n_model_rows", "n_member_questions", "n_copy_questions")
LAYOUT = (
    *Batch._fields,
    *OF_ROWS,
    *COUNTS,
    "n_members",
    "certificates",
)  # of a file: whoever names files puts it into the name


def write_answers(path: Path, answers: Explanations, form: TableForm) -> None:
    """Write answers: numbers as arrays, words in the manifest."""
    arrays, words = _split(answers.batch, form)
    of_rows = {name: [_plain(value) for value in getattr(answers, name)] for name in OF_ROWS}
    counts = {name: getattr(answers, name) for name in (*COUNTS, "n_members")}
    told = {"warnings": list(answers.warnings), "certificates": certificate_words(answers.certificates)}
    store.write(path, arrays, {"words": words, **told, **of_rows, **counts})


def read_answers(path: Path, rows: pd.DataFrame, form: TableForm) -> Explanations | None:
    """Return the answers to rows that a file holds; None if there is none, or none that can be read."""
    if not path.exists():
        return None
    try:
        arrays, manifest = store.read(path)
        return _answers(arrays, manifest, rows, form)
    except (StoreError, LookupError, TypeError, ValueError):  # damaged, or not ours: explained again
        return None


def _answers(arrays: Any, manifest: Any, rows: pd.DataFrame, form: TableForm) -> Explanations | None:
    """Return the answers that were taken apart; None if they are not those of as many rows."""
    of_rows: dict[str, Any] = {name: objects(manifest[name]) for name in OF_ROWS}
    if any(len(column) != len(rows) for column in of_rows.values()):
        return None
    counts: dict[str, Any] = {name: int(manifest[name]) for name in (*COUNTS, "n_members")}
    batch, warnings = _joined(arrays, manifest["words"], form), tuple(manifest["warnings"])
    whole = {"rows": form.arrange(rows)[0], "warnings": warnings, "polars": form.polars, "days": form.days}
    certificates = certificates_of(manifest["certificates"])
    return Explanations(batch=batch, certificates=certificates, **whole, **of_rows, **counts)


def _split(batch: Batch, form: TableForm) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the columns of a batch that are numbers, rows among them, and those that are words or None."""
    columns = batch._asdict() | {name: form.numbers(getattr(batch, name).frame) for name in ROWS}
    arrays: dict[str, Any] = {}
    words: dict[str, Any] = {}
    for name, column in columns.items():
        if name in RANGES and column is not None:
            ends, words[name] = split_ranges(column, batch.values, form)
            arrays |= {f"{name}_{end}": numbers for end, numbers in ends.items()}
        elif column is None or column.dtype == object:
            words[name] = None if column is None else [_plain(value) for value in column]
        else:
            arrays[name] = column
    return arrays, words


def _joined(arrays: Mapping[str, Any], words: Mapping[str, Any], form: TableForm) -> Batch:
    """Return the batch that `_split` took apart."""
    numbers = {name: np.array(column) for name, column in arrays.items()}
    rows: dict[str, Any] = {name: LazyRows(form, numbers[name]) for name in ROWS}
    texts = {name: None if column is None else objects(column) for name, column in words.items()}
    for name in [name for name in RANGES if words[name] is not None]:
        texts[name] = joined_ranges({end: numbers.pop(f"{name}_{end}") for end in ENDS}, words[name], form)
    return Batch(**numbers | rows | texts)


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    try:
        json.dumps(value)  # an error now, not when the file is read
    except TypeError as error:
        raise StoreError(f"label {value!r} cannot be kept in a file: only text, numbers and bools can.") from error
    return value
