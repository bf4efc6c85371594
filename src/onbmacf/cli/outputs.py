"""Answers to text: a table for people, CSV for spreadsheets, JSON for programs, sentences for letters."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._base.checks import listed
from onbmacf._text.frames import as_csv, as_markdown, say_proven
from onbmacf._text.wording import COLUMNS, joined, lines, shown, visible, why_none
from onbmacf.errors import ParameterError
from onbmacf.explanations import Explanations

PROVEN = {"nearest": "nearest", "within": "near to the nearest", "none_exists": "none exists"}
FROM = 1  # column of to_frame: the label of the row
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
    """Return one line: how many rows, their statuses, how much was asked of the model, and what was proven."""
    counts = pd.Series(answers.statuses, dtype=object).value_counts()
    statuses = ", ".join(f"{count:,} {status}" for status, count in counts.items())
    return (
        f"{_many(len(answers), 'row')}: {statuses or 'none'}; {_many(len(answers.batch.factual), 'counterfactual')}; "
        f"{_many(answers.n_questions, 'question')} to the model in {_many(answers.n_calls, 'call')} "
        f"({_many(answers.n_model_rows, 'row')} with padding).{_proofs(answers)}"
    )


def _proofs(answers: Explanations) -> str:
    """Return how much of the answers is proven, and why the rest is not; nothing where no proof was asked for."""
    known = [one for one in ([] if answers.certificates is None else answers.certificates) if one is not None]
    if not known:
        return ""
    words = [PROVEN.get(one.kind, "not proven") for one in known]
    counts = [f"{words.count(word):,} {word}" for word in (*PROVEN.values(), "not proven") if word in words]
    why = joined(list(dict.fromkeys(one.reason for one in known if one.reason)))
    return f" Proofs: {', '.join(counts)}{f' ({why})' if why else ''}."


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def tidy(answers: Explanations) -> pd.DataFrame:
    """Return one line per counterfactual, and one for each row without any: row, status, reason, then to_frame."""
    n_found = len(answers.batch.factual)
    without = np.setdiff1d(np.arange(len(answers)), answers.batch.factual)
    place = np.concatenate([answers.batch.factual, without])
    found = answers.to_frame().astype(object).reset_index(drop=True).reindex(range(len(place)))
    found.iloc[n_found:, FROM] = answers.labels[without]
    say_proven(found, answers, without)
    index = answers.rows.index
    for name, values in (("reason", answers.reasons), ("status", answers.statuses), (index.name or "row", index)):
        found.insert(0, _free(name, found.columns), list(values[place]))
    return found.iloc[np.argsort(place, kind="stable")].reset_index(drop=True)


def _free(name: Any, taken: Any) -> Any:
    while name in taken:
        name = f"{name}_"
    return name


def _csv(answers: Explanations) -> str:
    return as_csv(tidy(answers), None)


def _sentences(answers: Explanations) -> str:
    lines = []
    for answer in answers:
        said = answer.sentences() if answer.counterfactuals else [why_none(answer)]
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


WRITERS: dict[str, Callable[[Explanations], str]] = {
    "table": lambda answers: _table(answers, None),
    "csv": _csv,
    "json": Explanations.to_json,
    "sentences": _sentences,
    "markdown": _markdown,
}
