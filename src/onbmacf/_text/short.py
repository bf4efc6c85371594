"""Objects as the few lines that a notebook or a prompt shows: what changes, what is set, how many others there are.

    counterfactual, explanation, schema  ->  lines of text, or an escaped HTML table

Plain ASCII around the values, so that any terminal prints it; every value of a table is data, never markup.
"""

import html
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any

from onbmacf._text.wording import marked, proven_of, quoted, rounded, shown, visible

MOST_CHANGES = 8  # of one answer
MOST_LINES = 40  # of a table
MOST_LEVELS = 5  # of one feature
MOST_ANSWERS = 5  # of one row


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
    return few(told, MOST_CHANGES, "; ") or "nothing changes"


def counterfactual(found: Any) -> str:
    """Return one counterfactual as one line."""
    said = f"{changes(found, found.released)}; distance {rounded(found.distance)}"
    return f"<Counterfactual {visible(quoted(found.label))}: {said}>"


def semifactual(found: Any) -> str:
    """Return one semifactual as one line."""
    return f"<Semifactual: {changes(found)}; distance {rounded(found.distance)}>"


def explanation(answer: Any) -> str:
    """Return the answer for one row: a heading, then one line per counterfactual, or why there is none."""
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
    said = changes(found, found.released)
    return f"  it would say {visible(quoted(found.label))} if {said}; distance {rounded(found.distance)}{mark}"


def only_set(value: Any, *leading: str) -> str:
    """Return a dataclass as its call, with the leading fields and those that differ from their defaults."""
    parts = [repr(getattr(value, name)) for name in leading]
    rest = [one for one in fields(value) if one.name not in leading and getattr(value, one.name) != _default(one)]
    parts += [f"{one.name}={_brief(getattr(value, one.name))}" for one in rest]
    return f"{type(value).__name__}({', '.join(parts)})"


def _default(one: "Field[Any]") -> Any:
    return one.default if one.default_factory is MISSING else one.default_factory()


def _brief(value: Any) -> str:
    if isinstance(value, tuple) and len(value) > MOST_LEVELS + 1:
        listed = ", ".join(repr(part) for part in value[:MOST_LEVELS])
        return f"({listed}, ... {len(value) - MOST_LEVELS:,} more)"
    return repr(value)


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
