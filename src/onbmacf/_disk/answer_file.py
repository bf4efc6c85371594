"""Answers to some rows as one file, and back: numbers as arrays, words, proofs and ranges in the manifest.

Explanations  ->  write_answers  ->  one file  ->  read_answers  ->  the same
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.arrays import objects
from onbmacf._base.enums import CertificateKind
from onbmacf._disk import store
from onbmacf._table.form import TableForm
from onbmacf._table.lazy_rows import LazyRows
from onbmacf._text.wording import Range
from onbmacf.blocks import Blocks
from onbmacf.certificate import Certificate
from onbmacf.errors import StoreError
from onbmacf.explanations import Batch, Explanations

ENDS = ("low", "high")
REST = ("n_asked", "reaches_low", "reaches_high")
ROWS = ("rows", "semifactual_rows", "donor_rows")  # columns of a batch that are rows of the table
RANGES = ("ranges", "box")  # columns of a batch that hold ranges
OF_ROWS = ("labels", "statuses", "reasons", "would_need")
COUNTS = ("n_calls", "n_questions", "n_model_rows", "n_member_questions", "n_copy_questions")
LAYOUT = (
    *Batch._fields,
    *OF_ROWS,
    *COUNTS,
    "n_members",
    "certificates",
    "part",
    "blocks",
)  # of a file: whoever names files puts it into the name


# --- proofs and ranges ------------------------------------------------------------------------------------------------


def split_ranges(ranges: NDArray[Any], values: pd.DataFrame, form: TableForm) -> tuple[dict[str, Any], list[Any]]:
    """Return the ends of ranges as numbers, one line per counterfactual, and what else they say as words.

    `values` are those of the counterfactuals: they stand where a feature has no ends.
    """
    ends = {end: form.numbers(_with_ends(ranges, values, end)) for end in ENDS}
    return ends, [None if of_row is None else [_words(one, form) for one in of_row.values()] for of_row in ranges]


def joined_ranges(ends: Mapping[str, Any], words: list[Any], form: TableForm) -> NDArray[Any]:
    """Return the ranges that `split_ranges` took apart."""
    frames = [form.frame(ends[end]) for end in ENDS]
    found = []
    for line, of_row in enumerate(words):
        ranges = [_range(told, [frame.iloc[line, told["at"]] for frame in frames], form) for told in of_row or ()]
        found.append(None if of_row is None else {one.feature: one for one in ranges})
    return objects(found)


def _with_ends(ranges: NDArray[Any], values: pd.DataFrame, end: str) -> pd.DataFrame:
    """Return the values of counterfactuals with one end of each range, low or high, in place of the value."""
    columns = {
        name: pd.Series(
            [_end(of_row, name, end, value) for of_row, value in zip(ranges, column, strict=True)], dtype=dtype
        )
        for (name, column), dtype in zip(values.items(), values.dtypes, strict=True)
    }
    return pd.DataFrame(columns)


def _end(ranges: Any, name: Any, end: str, value: Any) -> Any:
    found = (ranges or {}).get(name)
    return value if found is None or found.levels is not None else getattr(found, end)


def _words(range_: Range, form: TableForm) -> dict[str, Any]:
    """Return what a range holds beside its ends: positions of the feature and of levels, and the rest as it is."""
    at = form.schema.names.index(range_.feature)
    levels = (
        None if range_.levels is None else [(form.schema.features[at].levels or ()).index(one) for one in range_.levels]
    )
    return {"at": at, "levels": levels, **{name: getattr(range_, name) for name in REST}}


def _range(told: Mapping[str, Any], ends: list[Any], form: TableForm) -> Range:
    feature = form.schema.features[told["at"]]
    rest = [told[name] for name in REST]
    if told["levels"] is None:
        low, high = ends
        return Range(feature.name, low, high, None, *rest)
    return Range(feature.name, None, None, tuple((feature.levels or ())[code] for code in told["levels"]), *rest)


# --- the file ---------------------------------------------------------------------------------------------------------


def write_answers(path: Path, answers: Explanations, form: TableForm) -> None:
    """Write answers: numbers as arrays, words in the manifest, and which rows they are of."""
    arrays, words = _split(answers.batch, form)
    of_rows = {name: [_plain(value) for value in getattr(answers, name)] for name in OF_ROWS}
    counts = {name: getattr(answers, name) for name in (*COUNTS, "n_members")}
    proven = answers.certificates
    certificates = None if proven is None else [None if one is None else asdict(one) for one in proven]
    told = {"warnings": list(answers.warnings), "certificates": certificates, "part": _part(path, answers.rows)}
    blocks = answers.blocks
    parts = None if blocks is None else [[*map(list, blocks.groups.items())], blocks.shrink, blocks.shape]
    store.write(path, arrays, {"words": words, "blocks": parts, **told, **of_rows, **counts})


def read_answers(path: Path, rows: pd.DataFrame, form: TableForm) -> Explanations | None:
    """Return the answers to rows that a file holds; None if there is none, or none that can be read.

    A file that was copied or renamed, or is of other rows, counts as none.
    """
    if not path.exists():
        return None
    try:
        arrays, manifest = store.read(path)
        is_its_own = manifest["part"] == _part(path, form.arrange(rows)[0])
        return _answers(arrays, manifest, rows, form) if is_its_own else None
    except (StoreError, LookupError, TypeError, ValueError):  # damaged, or not ours: explained again
        return None


def _part(path: Path, rows: pd.DataFrame) -> list[str]:
    """Return what a file is: its name, which says of which question and place, and a digest of its rows."""
    return [path.name, sha256(rows.to_csv().encode("utf-8", "backslashreplace")).hexdigest()]


def _answers(arrays: Any, manifest: Any, rows: pd.DataFrame, form: TableForm) -> Explanations | None:
    """Return the answers that were taken apart; None if they are not those of as many rows."""
    of_rows: dict[str, Any] = {name: objects(manifest[name]) for name in OF_ROWS}
    if any(len(column) != len(rows) for column in of_rows.values()):
        return None
    counts: dict[str, Any] = {name: int(manifest[name]) for name in (*COUNTS, "n_members")}
    batch, warnings = _joined(arrays, manifest["words"], form), tuple(manifest["warnings"])
    whole = {"rows": form.arrange(rows)[0], "warnings": warnings, "polars": form.polars, "days": form.days}
    whole["words"] = form.schema.labels
    if (blocks := manifest["blocks"]) is not None:
        groups, shrink, shape = blocks
        whole["blocks"] = Blocks(dict(groups), shrink, None if shape is None else tuple(shape))
    told = manifest["certificates"]
    certificates = None
    if told is not None:
        certificates = objects(
            [None if one is None else Certificate(**{**one, "kind": CertificateKind(one["kind"])}) for one in told]
        )
    return Explanations(batch=batch, certificates=certificates, **whole, **of_rows, **counts)


def _split(batch: Batch, form: TableForm) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the columns of a batch that are numbers, rows among them, and those that are words or None."""
    held = {name: getattr(batch, name) for name in ROWS}
    columns = batch._asdict() | {
        name: None if rows is None else form.numbers(rows.frame) for name, rows in held.items()
    }
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
    rows: dict[str, Any] = {name: LazyRows(form, numbers[name]) for name in ROWS if name in numbers}
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
