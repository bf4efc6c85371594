"""Results as plain Python values and as one JSON document, for programs and files.

Explanation  ->  record  ->  dict of text, numbers, bools and None        dicts  ->  document  ->  JSON
"""

import json
from collections.abc import Hashable, Sequence
from datetime import datetime
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._text.wording import MIDNIGHT
from onbmacf.errors import ParameterError

FORMAT = "onbmacf-explanations"
Days = tuple[Hashable, ...]  # names of columns whose times are whole days
VERSION = 1  # of the keys; raise it when one changes its meaning or goes


def record(answer: Any) -> dict[str, Any]:
    """Return one explanation as a dict."""
    return {
        "row": plain(answer.factual.name),
        "label": plain(answer.label),
        "status": str(answer.status),
        "reason": answer.reason,
        "would_need": list(answer.would_need),
        "factual": _values(answer.factual, answer.days),
        "counterfactuals": [_counterfactual(found, answer.days) for found in answer.counterfactuals],
        **({} if answer.certificate is None else {"certificate": _certificate(answer.certificate)}),
    }


def document(answers: Sequence[dict[str, Any]], warnings: Sequence[str], indent: int | None = None) -> str:
    """Return records as one JSON document with its format and version."""
    content = {"format": FORMAT, "version": VERSION, "warnings": list(warnings), "answers": list(answers)}
    return json.dumps(content, indent=indent, ensure_ascii=True, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """Return a value as JSON holds it: numpy's scalars as Python's, missing values as None, the rest as text."""
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        value = value.item()
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return None
    is_json = isinstance(value, bool | int | str) or (isinstance(value, float) and isfinite(value))
    return value if is_json else str(value)


def cell(value: Any, is_day: bool) -> Any:
    """Return a value of a row as JSON holds it; in a column of whole days, a day without its midnight.

    >>> cell(pd.Timestamp("2024-05-31"), True), cell(pd.Timestamp("2024-05-31"), False)
    ('2024-05-31', '2024-05-31 00:00:00')
    """
    text = plain(value)
    return MIDNIGHT.sub("", text) if is_day and isinstance(value, datetime | np.datetime64) and text else text


def _counterfactual(found: Any, days: Days) -> dict[str, Any]:
    kept = found.semifactual
    return {
        "label": plain(found.label),
        "distance": found.distance,
        "n_changes": found.n_changes,
        "released": [plain(name) for name in found.released],
        "relaxation": str(found.relaxation),
        "ball": found.ball,
        "plausibility": found.plausibility,
        "margin": plain(found.margin),
        "probability": plain(found.probability),
        **({} if found.stability is None else {"stability": found.stability}),
        "changes": _changes(found, days),
        "values": _values(found.values, days),
        "semifactual": None if kept is None else _semifactual(kept, days),
        **_ranges(found, days),
    }


def _ranges(found: Any, days: Days) -> dict[str, Any]:
    """Return the ranges and the box of a counterfactual; nothing where they were not asked for."""
    if found.ranges is None:
        return {}
    box = None if found.box is None else [_range(own, days) for own in found.box.values()]
    return {"ranges": [_range(own, days) for own in found.ranges.values()], "box": box}


def _range(own: Any, days: Days) -> dict[str, Any]:
    levels = None if own.levels is None else [plain(level) for level in own.levels]
    is_day = own.feature in days
    ends = {"low": cell(own.low, is_day), "high": cell(own.high, is_day), "levels": levels}
    reaches = {"reaches_low": own.reaches_low, "reaches_high": own.reaches_high}
    return {"feature": plain(own.feature), "text": str(own), **ends, **reaches, "n_asked": own.n_asked}


def _certificate(certificate: Any) -> dict[str, Any]:
    """Return a certificate without its seconds, so that equal answers give equal documents; None for infinite."""
    numbers = {name: getattr(certificate, name) for name in ("bound", "gap")}
    finite = {name: value if isfinite(value) else None for name, value in numbers.items()}
    return {"kind": str(certificate.kind), **finite, "sentence": certificate.sentence()}


def _semifactual(kept: Any, days: Days) -> dict[str, Any]:
    return {"distance": kept.distance, "changes": _changes(kept, days), "values": _values(kept.values, days)}


def _changes(found: Any, days: Days) -> list[dict[str, Any]]:
    return [
        {"feature": plain(name)}
        | {"before": cell(found.factual[name], name in days), "after": cell(found.values[name], name in days)}
        for name in found.changed
    ]


def _values(row: Any, days: Days) -> dict[str, Any]:
    """Return a row's values by the text of their column's name."""
    values = {str(name): cell(value, name in days) for name, value in row.items()}
    if len(values) < len(row):
        raise ParameterError("two column names are the same as text: rename them to write the answers as dicts.")
    return values
