"""A frame as text: Markdown, CSV or LaTeX. Every value is data and is written as such."""

import math
from typing import Any

import pandas as pd

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
_MARKDOWN = {mark: f"\\{mark}" for mark in "\\`*_{}[]<>|$#"}
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def as_markdown(frame: pd.DataFrame, digits: int = 3) -> str:
    """Return a Markdown table; numbers to the right."""
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


def as_csv(frame: pd.DataFrame, digits: int = 3) -> str:
    """Return CSV; text that a spreadsheet would run as a formula gets a leading apostrophe."""
    safe = frame.rename(columns=_no_formula).copy()
    for name in safe.columns[[not pd.api.types.is_numeric_dtype(dtype) for dtype in safe.dtypes]]:
        safe[name] = safe[name].map(_no_formula)
    return str(safe.to_csv(index=False, float_format=f"%.{digits}f", lineterminator="\n"))


def _row(values: Any, digits: int) -> str:
    cells = (_escape(_text(value, digits), _MARKDOWN) for value in values)
    return "| " + " | ".join(cells) + " |"


def _latex_row(values: Any, digits: int) -> str:
    return " & ".join(_escape(_text(value, digits), _LATEX) for value in values) + r" \\"


def _text(value: Any, digits: int) -> str:
    if isinstance(value, float):
        return "Na" if math.isnan(value) else f"{value:.{digits}f}"
    return " ".join(str(value).split())


def _escape(text: str, marks: dict[str, str]) -> str:
    return "".join(marks.get(mark, mark) for mark in text)


def _no_formula(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
