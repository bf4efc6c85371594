"""The answers: explained in parts that outlast a stop, written as text, kept in a file.

    rows  ->  chunks  ->  explain  ->  one file per chunk (whole or not there)  ->  Explanations

    Explanations  ->  written  ->  a table for people, CSV for spreadsheets, JSON for programs, sentences for letters

    with output_file(out, arguments):    # what is there, the folder, the inputs; a second writer is told
        answers = explain_in_parts(...)  # kept beside the file, part by part
        write_atomically(out, ...)       # the old file, or the complete new one
        parts.clear()                    # only now

A failure at any step leaves the old file and the parts (docs/decisions/0059-outputs.md).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from onbmacf import __version__
from onbmacf._base.checks import listed
from onbmacf._base.files import check_replaceable, check_space, sole_writer
from onbmacf._base.limits import CTRL_C, NEVER, deadline_after, exit_code, is_over, seconds_left
from onbmacf._disk.answer_file import COUNTS, LAYOUT, read_answers, write_answers
from onbmacf._text.frames import as_csv, as_markdown, say_proven
from onbmacf._text.wording import COLUMNS, joined, lines, shown, visible, why_none
from onbmacf.cli.explain import Arguments
from onbmacf.cli.terminal import Progress
from onbmacf.errors import OnbmacfError, ParameterError, StoreError
from onbmacf.explainer import ONBMACF
from onbmacf.explanations import Explanations
from onbmacf.report.render import model_digest, table_digest

PROVEN = {"nearest": "nearest", "within": "near to the nearest", "none_exists": "none exists"}
FROM = 1  # column of to_frame: the label of the row
SUFFIXES = {".csv": "csv", ".json": "json", ".txt": "sentences", ".md": "markdown"}
BYTES_PER_CELL, BYTES_PER_ANSWER = 40, 1000  # of a value and of all else, in a part and in the result together
CHUNK = 100  # rows per part
LEAST_SECONDS = 1e-6  # for rows that are not reached in time: they must say so
NOTHING: Mapping[str, Any] = {}

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
    """Check, before any work, that the result can be written, and keep other commands from writing there meanwhile."""
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


# --- parts ------------------------------------------------------------------------------------------------------------

# A part's name holds a digest of all that decides it, and so does the file: a part of another question or of other rows
# is never used, not even a copy under this name. How rows are cut into chunks does not depend on the number of
# processes. Parts are deleted when the result is written, and not before. A part that the time limit of the command has
# cut short is not kept, so what is kept does not depend on that limit.


class StoppedError(Exception):
    """Ctrl-C, or SIGTERM: holds the answers so far, and the exit code."""

    def __init__(self, answers: list[Explanations], n_rows: int, code: int = CTRL_C) -> None:
        super().__init__(f"stopped after {sum(map(len, answers)):,} of {n_rows:,} rows")
        self.answers, self.code = answers, code


class Chunk(NamedTuple):
    """Some rows of the work and the file of their answers; None where none is kept."""

    rows: pd.DataFrame
    path: Path | None

    @property
    def is_there(self) -> bool:
        """Whether there is a file."""
        return self.path is not None and self.path.exists()


@dataclass(frozen=True, eq=False)
class Parts:
    """Where the parts of one question are kept; nowhere, if there is no folder."""

    folder: Path | None
    question: str = ""

    def path(self, rows: pd.DataFrame, start: int) -> Path | None:
        """Return the file of a chunk of rows."""
        if self.folder is None:
            return None
        content = rows.to_csv(index=True).encode("utf-8", "backslashreplace")
        key = sha256(self.question.encode("utf-8", "backslashreplace") + content).hexdigest()[:16]
        return self.folder / f"part-{start:09d}-{key}.onb"

    def of(self, rows: pd.DataFrame) -> list[Chunk]:
        """Cut rows into chunks."""
        starts = range(0, max(len(rows), 1), CHUNK)
        pieces = [rows.iloc[start : start + CHUNK] for start in starts]
        return [Chunk(piece, self.path(piece, start)) for piece, start in zip(pieces, starts, strict=True)]

    def clear(self, rows: pd.DataFrame) -> None:
        """Remove the parts of finished work, and the folder if nothing else is in it."""
        for chunk in self.of(rows):
            if chunk.path is not None:
                chunk.path.unlink(missing_ok=True)
        if self.folder is not None:
            with suppress(OSError):
                self.folder.rmdir()


def parts_beside(out: Path | None, explainer: ONBMACF, target: Any, arguments: Mapping[str, Any] = NOTHING) -> Parts:
    """Return the parts that belong to a result's file and to this question."""
    if out is None:
        return Parts(None)
    options = [(name, value) for name, value in explainer.get_params().items() if name != "n_jobs"]
    schema = repr(asdict(explainer.schema_))
    digests = (table_digest(explainer), model_digest(explainer))
    reading = explainer.fitted_.black_box.reading
    more = sorted((name, value) for name, value in arguments.items() if name != "max_seconds")
    question = repr([__version__, LAYOUT, options, schema, reading, target, more, *digests])
    return Parts(out.with_name(out.name + ".parts"), question)


def explain_in_parts(
    explainer: ONBMACF, rows: pd.DataFrame, target: Any, parts: Parts, arguments: Mapping[str, Any] = NOTHING
) -> Explanations:
    """Explain rows part by part, reading those that are there; Ctrl-C is a StoppedError with the answers so far.

    As many parts as there are processes are explained together, and kept one by one.
    """
    chunks, deadline = parts.of(rows), deadline_after(arguments.get("max_seconds"))
    progress = Progress(len(rows), sum(len(chunk.rows) for chunk in chunks if chunk.is_there))
    answers: list[Explanations | None] = [None] * len(chunks)
    form = explainer.fitted_.space.form
    try:
        for place, chunk in enumerate(chunks):
            answers[place] = None if chunk.path is None else read_answers(chunk.path, chunk.rows, form)
        still_open = [place for place, found in enumerate(answers) if found is None]
        for start in range(0, len(still_open), explainer.n_jobs):
            places = still_open[start : start + explainer.n_jobs]
            timed = {"target": target, **_in_time(arguments, deadline)}
            explained = _explained(explainer, [chunks[place] for place in places], timed, deadline)
            for place, found in zip(places, explained, strict=True):
                answers[place] = found
                progress.advance(len(found))
    except KeyboardInterrupt as error:
        done = [found for found in answers if found is not None]
        raise StoppedError(done, len(rows), exit_code(error)) from None
    return Explanations.concat([found for found in answers if found is not None])


def _in_time(arguments: Mapping[str, Any], deadline: float) -> dict[str, Any]:
    """Return the arguments of explain with the seconds that are left for the rows not explained yet."""
    if deadline == NEVER:
        return dict(arguments)
    return {**arguments, "max_seconds": max(LEAST_SECONDS, seconds_left(deadline, arguments["max_seconds"]))}


def _explained(
    explainer: ONBMACF, chunks: list[Chunk], arguments: Mapping[str, Any], deadline: float
) -> Iterator[Explanations]:
    """Explain chunks in one call; yield the answers to each once they are kept.

    What the call counts (questions, calls, ...) is of all chunks together, and is put down to the first.
    """
    together = explainer.explain(pd.concat([chunk.rows for chunk in chunks]), **arguments)
    start, is_whole = 0, not is_over(deadline)
    for chunk in chunks:
        found = together[start : start + len(chunk.rows)]
        counts: dict[str, Any] = {name: getattr(together, name) if start == 0 else 0 for name in COUNTS}
        found = replace(found, **counts)
        if chunk.path is not None and is_whole:
            folder = chunk.path.parent
            try:
                folder.mkdir(exist_ok=True)
            except OSError as error:
                raise StoreError(f"could not keep the answers in {folder}: {error.strerror}.") from error
            write_answers(chunk.path, found, explainer.fitted_.space.form)
        start += len(chunk.rows)
        yield found
