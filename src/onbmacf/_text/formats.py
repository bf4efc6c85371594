"""A frame as text: Markdown, CSV or LaTeX. Every value is data and is escaped."""

import math
from typing import Any

import pandas as pd

from onbmacf._text.wording import visible

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
}
_MARKDOWN = {mark: f"\\{mark}" for mark in "\\`*_{}[]<>|$#~!@"} | {"&": "&amp;"}
_LINKS = {"://": "\\://", "www.": "www\\.", "WWW.": "WWW\\."}  # text that some viewers turn into a link
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_BLANK = " \u00a0\u200b\ufeff\x00"


def as_markdown(frame: pd.DataFrame, digits: int = 3) -> str:
    """Return a Markdown table with numbers aligned right."""
    numeric = [pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes]
    rule = "|".join([" --- " if not number else " ---: " for number in numeric])
    lines = [_row(frame.columns, digits), f"|{rule}|"]
    lines += [_row(values, digits) for values in frame.itertuples(index=False)]
    return "\n".join(lines) + "\n"


def as_latex(frame: pd.DataFrame, caption: str = "", digits: int = 3) -> str:
    """Return a LaTeX table with booktabs rules."""
    columns = "".join("r" if pd.api.types.is_numeric_dtype(dtype) else "l" for dtype in frame.dtypes)
    body = [_latex_row(frame.columns, digits), r"\midrule"]
    body += [_latex_row(values, digits) for values in frame.itertuples(index=False)]
    head = [r"\begin{table}", rf"\caption{{{_escape(caption, _LATEX)}}}", rf"\begin{{tabular}}{{{columns}}}"]
    return "\n".join([*head, r"\toprule", *body, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def as_csv(frame: pd.DataFrame, digits: int | None = 3, *, header: bool = True) -> str:
    """Return CSV; text that a spreadsheet would evaluate as a formula gets a leading apostrophe.

    digits=None writes every number in full.
    """
    columns = {place: _without_formulas(frame.iloc[:, place]) for place in range(frame.shape[1])}
    safe = pd.DataFrame(columns, index=frame.index)
    names = [no_formula(name) for name in frame.columns]
    written = None if digits is None else f"%.{digits}f"
    return str(safe.to_csv(index=False, header=names if header else False, float_format=written, lineterminator="\n"))


def markdown_text(text: str) -> str:
    """Return text escaped so that Markdown shows it unchanged, on one line."""
    escaped = _escape(" ".join(visible(text).split()), _MARKDOWN)
    for mark, plain in _LINKS.items():
        escaped = escaped.replace(mark, plain)
    return escaped


def no_formula(value: Any) -> Any:
    """Return a value for a cell; text that a spreadsheet would evaluate gets a leading apostrophe."""
    return f"'{value}" if isinstance(value, str) and value.lstrip(_BLANK).startswith(_FORMULA) else value


def _without_formulas(column: "pd.Series[Any]") -> "pd.Series[Any]":
    if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
        return column
    return pd.Series([no_formula(value) for value in column.array], index=column.index, dtype=object)


def _row(values: Any, digits: int) -> str:
    cells = (markdown_text(_text(value, digits)) for value in values)
    return "| " + " | ".join(cells) + " |"


def _latex_row(values: Any, digits: int) -> str:
    return " & ".join(_escape(_text(value, digits), _LATEX) for value in values) + r" \\"


def _text(value: Any, digits: int) -> str:
    if isinstance(value, float):
        return "Na" if math.isnan(value) else f"{value:.{digits}f}"
    return " ".join(str(value).split())


def _escape(text: str, marks: dict[str, str]) -> str:
    return "".join(marks.get(mark, mark) for mark in text)
