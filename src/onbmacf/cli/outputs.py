"""The answers as text, and the file that holds them.

    Explanations  ->  written  ->  a table for people, CSV for spreadsheets, JSON for programs, sentences for letters

    with output_file(out, request):      # what is there, the folder, the inputs; a second writer is told
        answers = explain_in_parts(...)  # kept beside the file, part by part
        write_atomically(out, ...)       # the old file, or the complete new one
        parts.clear()                    # only now

A failure at any step leaves the old file and the parts (docs/decisions/0059-outputs.md).
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._base.checks import listed
from onbmacf._base.files import check_replaceable, check_space, sole_writer
from onbmacf._text.frames import as_csv, as_markdown, say_proven
from onbmacf._text.wording import COLUMNS, joined, lines, shown, visible, why_none
from onbmacf.cli.options import Arguments
from onbmacf.errors import OnbmacfError, ParameterError, StoreError
from onbmacf.explanations import Explanations

PROVEN = {"nearest": "nearest", "within": "near to the nearest", "none_exists": "none exists"}
FROM = 1  # column of to_frame: the label of the row
SUFFIXES = {".csv": "csv", ".json": "json", ".txt": "sentences", ".md": "markdown"}
BYTES_PER_CELL, BYTES_PER_ANSWER = 40, 1000  # of a value and of all else, in a part and in the result together

# --- text -------------------------------------------------------------------------------------------------------------


def kind_of(chosen: str, out: Path | None) -> str:
    """Return the chosen format, or the one that the file's name says; a table otherwise."""
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
    """Return how much of the answers is proven, and why the rest is not; empty where no proof was wanted."""
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
        free = name
        while free in found.columns:
            free = f"{free}_"
        found.insert(0, free, list(values[place]))
    return found.iloc[np.argsort(place, kind="stable")].reset_index(drop=True)


def _sentences(answers: Explanations) -> str:
    texts = []
    for answer in answers:
        said = answer.sentences() if answer.counterfactuals else [why_none(answer)]
        texts += [visible(f"Row {shown(answer.factual.name)}: {sentence}") for sentence in said]
    return "".join(f"{text}\n" for text in texts)


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
    "csv": lambda answers: as_csv(tidy(answers), None),
    "json": Explanations.to_json,
    "sentences": _sentences,
    "markdown": lambda answers: as_markdown(pd.DataFrame(_lines(answers), columns=list(COLUMNS))),
}

# --- file -------------------------------------------------------------------------------------------------------------


@contextmanager
def output_file(out: Path | None, arguments: Arguments) -> Iterator[None]:
    """Check where the result is to be written, before any work, and hold it; nothing to do without a file."""
    if out is None:
        yield
        return
    if not out.parent.is_dir():
        raise ParameterError(f"--out: there is no folder {out.parent}.")
    try:
        check_replaceable(out)
    except StoreError as error:
        raise ParameterError(f"--out: {error}") from error
    for path in arguments.inputs():
        if out.exists() and path.exists() and out.samefile(path):
            raise ParameterError(f"--out names {out}, which this command reads: name another file.")
    with sole_writer(out, ".lock"):
        yield


def check_room(out: Path | None, shape: tuple[int, ...], n: int) -> None:
    """Raise an error if the disk cannot hold the parts and the result of rows and columns, with n answers a row."""
    if out is not None:
        check_space(out, shape[0] * n * (shape[1] * BYTES_PER_CELL + BYTES_PER_ANSWER))


def check_installed(what: str, modules: Iterable[str], extra: str) -> None:
    """Raise an ImportError that names the extra if a module that the result needs at the end is missing."""
    for module in modules:
        try:
            import_module(module)
        except ImportError as error:
            raise ImportError(f"{what} needs the extra {extra!r}: pip install 'onbmacf[{extra}]'.") from error


def check_names(kind: str, columns: Iterable[Any]) -> None:
    """Raise an error if a format writes columns by the text of their names and two of these are the same."""
    texts = [str(name) for name in columns]
    repeated = sorted({text for text in texts if texts.count(text) > 1}) if kind == "json" else []
    if repeated:
        raise ParameterError(f"--format json: column names are the same as text: {listed(repeated)}. Rename them.")


@contextmanager
def kept_parts(folder: Path | None) -> Iterator[None]:
    """Say in an error of the last step, writing the result, that the answers are kept and how to continue."""
    try:
        yield
    except (OnbmacfError, ImportError, OSError) as error:
        if folder is None or not folder.is_dir():
            raise
        raise StoreError(f"{error} The answers are kept in {folder}: the same command goes on from there.") from error
