"""Long work in parts that are kept on disk: after Ctrl-C or a crash the same command continues where it stopped.

    rows  ->  chunks  ->  explain  ->  one file per chunk (whole or not there)  ->  joined answers

A part's name holds a digest of all that decides it, so a part of another question is never used. Parts are of the
same rows for any number of processes. They are deleted when the result is written, and not before. A part that the
time for the whole command has cut short is not kept, so what is kept does not depend on that time.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from onbmacf import __version__
from onbmacf._base.limits import CTRL_C, NEVER, deadline_after, exit_code, is_over, seconds_left
from onbmacf._disk.answer_file import COUNTS, LAYOUT, read_answers, write_answers
from onbmacf._table.form import TableForm
from onbmacf.cli.terminal import Progress
from onbmacf.errors import StoreError
from onbmacf.explainer import ONBMACF
from onbmacf.explanations import Explanations
from onbmacf.report.render import model_digest, table_digest

CHUNK = 100  # rows per part
LEAST_SECONDS = 1e-6  # for rows that are not reached in time: they must say so
NOTHING: Mapping[str, Any] = {}  # further arguments of explain, where there are none


class StoppedError(Exception):
    """Ctrl-C, or SIGTERM: holds the answers so far, and the exit code."""

    def __init__(self, answers: list[Explanations], n_rows: int, code: int = CTRL_C) -> None:
        super().__init__(f"stopped after {sum(map(len, answers)):,} of {n_rows:,} rows")
        self.answers, self.code = answers, code


class Part(NamedTuple):
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

    def of(self, rows: pd.DataFrame) -> list[Part]:
        """Cut rows into parts."""
        starts = range(0, max(len(rows), 1), CHUNK)
        chunks = [rows.iloc[start : start + CHUNK] for start in starts]
        return [Part(piece, self.path(piece, start)) for piece, start in zip(chunks, starts, strict=True)]

    def clear(self, rows: pd.DataFrame) -> None:
        """Remove the parts of finished work, and the folder if nothing else is in it."""
        for part in self.of(rows):
            if part.path is not None:
                part.path.unlink(missing_ok=True)
        if self.folder is not None:
            with suppress(OSError):
                self.folder.rmdir()


def parts_beside(out: Path | None, explainer: ONBMACF, target: Any, asked: Mapping[str, Any] = NOTHING) -> Parts:
    """Return the parts that belong to a result's file and to this question."""
    if out is None:
        return Parts(None)
    options = [(name, value) for name, value in explainer.get_params().items() if name != "n_jobs"]
    schema = repr(asdict(explainer.schema_))
    digests = (table_digest(explainer), model_digest(explainer))
    reading = explainer.fitted_.black_box.reading
    more = sorted((name, value) for name, value in asked.items() if name != "max_seconds")
    question = repr([__version__, LAYOUT, options, schema, reading, target, more, *digests])
    return Parts(out.with_name(out.name + ".parts"), question)


def explain_in_parts(
    explainer: ONBMACF, rows: pd.DataFrame, target: Any, parts: Parts, more: Mapping[str, Any] = NOTHING
) -> Explanations:
    """Explain rows part by part, reading those that are there; Ctrl-C is a StoppedError with the answers so far.

    As many parts as there are processes are explained together, and kept one by one.
    """
    every, deadline = parts.of(rows), deadline_after(more.get("max_seconds"))
    progress = Progress(len(rows), sum(len(part.rows) for part in every if part.is_there))
    answers: list[Explanations | None] = [None] * len(every)
    try:
        for place, part in enumerate(every):
            answers[place] = None if part.path is None else read_answers(part.path, part.rows, _form(explainer))
        still_open = [place for place, found in enumerate(answers) if found is None]
        for start in range(0, len(still_open), explainer.n_jobs):
            places = still_open[start : start + explainer.n_jobs]
            asked = {"target": target, **_in_time(more, deadline)}
            told = _explained(explainer, [every[p] for p in places], asked, deadline)
            for place, found in zip(places, told, strict=True):
                answers[place] = found
                progress.advance(len(found))
    except KeyboardInterrupt as error:
        done = [found for found in answers if found is not None]
        raise StoppedError(done, len(rows), exit_code(error)) from None
    return Explanations.concat([found for found in answers if found is not None])


def _in_time(more: Mapping[str, Any], deadline: float) -> dict[str, Any]:
    """Return the further arguments of explain with the seconds that are left for the rows not explained yet."""
    if deadline == NEVER:
        return dict(more)
    return {**more, "max_seconds": max(LEAST_SECONDS, seconds_left(deadline, more["max_seconds"]))}


def _explained(
    explainer: ONBMACF, some: list[Part], asked: Mapping[str, Any], deadline: float
) -> Iterator[Explanations]:
    """Explain parts together; yield the answers to each when they are kept. All that was asked counts for the first."""
    together = explainer.explain(pd.concat([part.rows for part in some]), **asked)
    start, is_whole = 0, not is_over(deadline)
    for part in some:
        found = together[start : start + len(part.rows)]
        counts: dict[str, Any] = {name: getattr(together, name) if start == 0 else 0 for name in COUNTS}
        found = replace(found, **counts)
        if part.path is not None and is_whole:
            _make(part.path.parent)
            write_answers(part.path, found, _form(explainer))
        start += len(part.rows)
        yield found


def _make(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise StoreError(f"could not keep the answers in {folder}: {error.strerror}.") from error


def _form(explainer: ONBMACF) -> TableForm:
    return explainer.fitted_.space.form
