"""Results as plain Python values and as one JSON document, and objects as the few lines that a prompt shows."""

import html
import json
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import MISSING, fields
from datetime import datetime
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._text.wording import MIDNIGHT, marked, proven_of, quoted, rounded, shown, visible
from onbmacf.errors import ParameterError

FORMAT = "onbmacf-explanations"
Days = tuple[Hashable, ...]  # names of columns whose times are whole days
VERSION = 1  # of the keys; raise it when one changes its meaning or goes
MOST_CHANGES = 8  # of one answer
MOST_LINES = 40  # of a table
MOST_LEVELS = 5  # of one feature
MOST_ANSWERS = 5  # of one row


# --- records and JSON -------------------------------------------------------------------------------------------------


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
        **({} if found.predicted is None else {"predicted": [plain(number) for number in found.predicted]}),
        "changes": _changes(found, days),
        **_effects(found, days),
        **({} if found.donor is None else {"donor": found.donor, "blocks": [plain(name) for name in found.blocks]}),
        "values": _values(found.values, days),
        "semifactual": None
        if kept is None
        else {
            "distance": kept.distance,
            "changes": _changes(kept, days),
            **_effects(kept, days),
            "values": _values(kept.values, days),
        },
        **_ranges(found, days),
    }


def _ranges(found: Any, days: Days) -> dict[str, Any]:
    """Return the ranges and the box of a counterfactual; nothing where they were not asked for."""
    if found.ranges is None:
        return {}
    box = None if found.box is None else [_range(each, days) for each in found.box.values()]
    return {"ranges": [_range(each, days) for each in found.ranges.values()], "box": box}


def _range(found: Any, days: Days) -> dict[str, Any]:
    levels = None if found.levels is None else [plain(level) for level in found.levels]
    is_day = found.feature in days
    ends = {"low": cell(found.low, is_day), "high": cell(found.high, is_day), "levels": levels}
    reaches = {"reaches_low": found.reaches_low, "reaches_high": found.reaches_high}
    return {"feature": plain(found.feature), "text": str(found), **ends, **reaches, "n_asked": found.n_asked}


def _certificate(certificate: Any) -> dict[str, Any]:
    """Return a certificate without its seconds, so that equal answers give equal documents; None for infinite."""
    numbers = {name: getattr(certificate, name) for name in ("bound", "gap")}
    finite = {name: value if isfinite(value) else None for name, value in numbers.items()}
    return {"kind": str(certificate.kind), **finite, "sentence": certificate.sentence()}


def _changes(found: Any, days: Days, of: str = "changed") -> list[dict[str, Any]]:
    return [
        {"feature": plain(name)}
        | {"before": cell(found.factual[name], name in days), "after": cell(found.values[name], name in days)}
        for name in getattr(found, of)
    ]


def _effects(found: Any, days: Days) -> dict[str, Any]:
    """Return what follows from the changes; nothing where nothing does."""
    return {"effects": _changes(found, days, "effects")} if found.effects else {}


def _values(row: Any, days: Days) -> dict[str, Any]:
    """Return a row's values by the text of their column's name."""
    values = {str(name): cell(value, name in days) for name, value in row.items()}
    if len(values) < len(row):
        raise ParameterError("two column names are the same as text: rename them to write the answers as dicts.")
    return values


# --- a few lines ------------------------------------------------------------------------------------------------------


def few(values: Iterable[Any], most: int = MOST_LEVELS, separator: str = ", ") -> str:
    """Return the first values as text, and how many others there are.

    >>> few(["A", "B", "C"]), few(range(14), most=2)
    ('A, B, C', '0, 1 and 12 others')
    """
    texts = [visible(shown(value)) for value in values]
    if len(texts) <= most + 1:  # "and 1 others" would be no shorter
        return separator.join(texts)
    return f"{separator.join(texts[:most])} and {len(texts) - most:,} others"


def changes(found: Any, released: tuple[Any, ...] = ()) -> str:
    """Return what changes: 'tobacco 13.6 -> 9.44; ldl 3.5 -> 2.03'."""
    told = (
        f"{marked(name, released)} {shown(found.factual[name])} -> {shown(found.values[name])}"
        for name in found.changed
    )
    follows = [f"{name} {shown(found.factual[name])} -> {shown(found.values[name])}" for name in found.effects]
    then = f" (then {few(follows, MOST_CHANGES, '; ')})" if follows else ""
    return (few(told, MOST_CHANGES, "; ") or "nothing changes") + then


def of_donor(found: Any) -> str:
    """Return whose values a counterfactual has, and in which blocks; empty without blocks."""
    return "" if found.donor is None else f" (of fitted row {found.donor}: {few(found.blocks, MOST_CHANGES)})"


def counterfactual(found: Any) -> str:
    """Return one counterfactual as one line."""
    said = f"{changes(found, found.released)}{of_donor(found)}; distance {rounded(found.distance)}"
    return f"<Counterfactual {visible(quoted(found.label))}: {said}>"


def semifactual(found: Any) -> str:
    """Return one semifactual as one line."""
    return f"<Semifactual: {changes(found)}; distance {rounded(found.distance)}>"


def explanation(answer: Any) -> str:
    """Return the answer for one row: a heading, then one line per counterfactual, or why there is none."""
    answer = answer.in_words()
    row, label = visible(shown(answer.factual.name)), visible(quoted(answer.label))
    head = f"<Explanation of row {row}: the model says {label}; {answer.status}"
    found = answer.counterfactuals
    if not found:
        return f"{head}: {visible(' '.join(filter(None, [answer.reason, proven_of(answer)])))}>"
    mark = "" if answer.certificate is None else answer.certificate.mark()
    lines = [_line(one, mark if place == 0 else "") for place, one in enumerate(found[:MOST_ANSWERS])]
    more = [f"  and {len(found) - MOST_ANSWERS:,} more"] if len(found) > MOST_ANSWERS else []
    return "\n".join([head, *lines, *more]) + ">"


def _line(found: Any, mark: str) -> str:
    said = f"{changes(found, found.released)}{of_donor(found)}"
    return f"  it would say {visible(quoted(found.label))} if {said}; distance {rounded(found.distance)}{mark}"


def only_set(value: Any, *leading: str) -> str:
    """Return a dataclass as its call, with the leading fields and those that differ from their defaults."""
    parts = [repr(getattr(value, name)) for name in leading]
    for one in fields(value):
        default = one.default if one.default_factory is MISSING else one.default_factory()
        held = getattr(value, one.name)
        if one.name not in leading and held != default:
            is_long = isinstance(held, tuple) and len(held) > MOST_LEVELS + 1
            first = ", ".join(repr(part) for part in held[:MOST_LEVELS]) if is_long else ""
            told = f"({first}, ... {len(held) - MOST_LEVELS:,} more)" if is_long else repr(held)
            parts.append(f"{one.name}={told}")
    return f"{type(value).__name__}({', '.join(parts)})"


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return lines with aligned columns, at most MOST_LINES of them; columns without content are left out.

    >>> print(text_table(["feature", "kind"], [["age", "integer"], ["sex", "binary"]]))
    feature  kind
    age      integer
    sex      binary
    """
    kept = [place for place in range(len(head)) if any(row[place] for row in rows)] or [0]
    cells = [[visible(row[place]) for place in kept] for row in (head, *rows[:MOST_LINES])]
    widths = [max(len(row[place]) for row in cells) for place in range(len(kept))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join(lines + _rest(rows))


def grid(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return an HTML table under a title, at most MOST_LINES long; columns without content are left out."""
    kept = [place for place in range(len(head)) if any(row[place] for row in rows)] or [0]
    top = "".join(f'<th style="text-align:left">{html.escape(head[place])}</th>' for place in kept)
    body = "".join(f"<tr>{''.join(_cell(row[place]) for place in kept)}</tr>" for row in rows[:MOST_LINES])
    more = "".join(f"<p>{line}</p>" for line in _rest(rows))
    table = f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    return f"<p>{html.escape(visible(title))}</p>{table}{more}"


def _cell(text: str) -> str:
    return f'<td style="text-align:left">{html.escape(visible(text))}</td>'


def _rest(rows: Sequence[Any]) -> list[str]:
    return [f"... and {len(rows) - MOST_LINES:,} more"] if len(rows) > MOST_LINES else []
