"""Answers to text: a table for people, CSV for spreadsheets, JSON for programs, sentences for letters."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._base.checks import listed
from onbmacf._text.formats import as_csv, as_markdown
from onbmacf._text.wording import COLUMNS, lines, shown, visible
from onbmacf.errors import ParameterError
from onbmacf.explanation import Counterfactual, Explanation, Explanations

SUFFIXES = {".csv": "csv", ".json": "json", ".txt": "sentences", ".md": "markdown"}


def kind_of(chosen: str, out: Path | None) -> str:
    """Return the format asked for, or the one that the file's name says; a table otherwise."""
    kind = chosen or (SUFFIXES.get(out.suffix.lower(), "") if out is not None else "table")
    if kind not in WRITERS:
        named = f"; {out} does not say which" if out is not None and not chosen else f", got {kind!r}"
        raise ParameterError(f"--format must be one of {listed(WRITERS)}{named}.")
    return kind


def written(answers: Explanations, kind: str, width: int | None = None) -> str:
    """Return the answers as text of a kind."""
    return _table(answers, width) if kind == "table" else WRITERS[kind](answers)


def summary(answers: Explanations) -> str:
    """Return one line: how many rows, and what became of them."""
    counts = pd.Series(answers.statuses, dtype=object).value_counts()
    said = ", ".join(f"{count:,} {status}" for status, count in counts.items())
    found, asked = len(answers.batch.factual), answers.n_questions
    return f"{len(answers):,} rows: {said or 'none'}; {found:,} counterfactuals, {asked:,} rows asked of the model."


def tidy(answers: Explanations) -> pd.DataFrame:
    """Return one line per counterfactual, and one for each row without any, named by the row."""
    found = answers.to_frame().astype(object)
    status = answers.status_frame()
    found.insert(0, "status", status["status"].to_numpy()[answers.batch.factual])
    found.insert(1, "reason", status["reason"].to_numpy()[answers.batch.factual])
    without = np.setdiff1d(np.arange(len(answers)), answers.batch.factual)
    empty = pd.DataFrame(None, index=answers.rows.index[without], columns=found.columns, dtype=object)
    empty.iloc[:, 0], empty.iloc[:, 1] = status["status"].to_numpy()[without], status["reason"].to_numpy()[without]
    empty[found.columns[3]] = answers.labels[without]
    frame = pd.concat([found, empty])
    frame = frame.iloc[np.argsort(np.concatenate([answers.batch.factual, without]), kind="stable")]
    name = answers.rows.index.name or "row"
    frame.insert(0, name if name not in frame.columns else f"{name}_", list(frame.index))
    return frame.reset_index(drop=True)


def _csv(answers: Explanations) -> str:
    return as_csv(tidy(answers), None)


def _json(answers: Explanations) -> str:
    document = [_record(answer) for answer in answers]
    return json.dumps(document, indent=1, ensure_ascii=True, default=_plain, allow_nan=False) + "\n"


def _sentences(answers: Explanations) -> str:
    lines = []
    for answer in answers:
        said = answer.sentences() if answer.counterfactuals else [f"{answer.status}: {answer.reason}"]
        lines += [visible(f"Row {shown(answer.factual.name)}: {sentence}") for sentence in said]
    return "".join(f"{line}\n" for line in lines)


def _markdown(answers: Explanations) -> str:
    return as_markdown(pd.DataFrame(_lines(answers), columns=list(COLUMNS)))


def _table(answers: Explanations, width: int | None) -> str:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=width)
    table = Table()
    for name in COLUMNS:
        table.add_column(name, justify="right" if name in ("row", "distance") else "left", overflow="fold")
    for line in _lines(answers):
        table.add_row(*(Text(visible(cell)) for cell in line))
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def _lines(answers: Explanations) -> list[list[str]]:
    return [line for answer in answers for line in lines(answer)]


def _record(answer: Explanation) -> dict[str, Any]:
    return {
        "row": answer.factual.name,
        "label": answer.label,
        "status": str(answer.status),
        "reason": answer.reason,
        "counterfactuals": [_found(found) for found in answer.counterfactuals],
    }


def _found(found: Counterfactual) -> dict[str, Any]:
    kept = found.semifactual
    return {
        "label": found.label,
        "distance": found.distance,
        "relaxation": str(found.relaxation),
        "changes": found.changes().to_dict("records"),
        "values": {str(name): value for name, value in found.values.items()},
        "semifactual": None
        if kept is None
        else {"distance": kept.distance, "changes": kept.changes().to_dict("records")},
    }


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


WRITERS: dict[str, Callable[[Explanations], str]] = {
    "table": lambda answers: _table(answers, None),
    "csv": _csv,
    "json": _json,
    "sentences": _sentences,
    "markdown": _markdown,
}
