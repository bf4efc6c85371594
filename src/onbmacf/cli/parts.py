"""Long work in parts that are kept on disk: after Ctrl-C or a crash the same command continues where it stopped.

    rows  ->  chunks  ->  explain  ->  one file per chunk (whole or not there)  ->  joined answers

A part's name holds a digest of all that decides it and stands in the file, too, so a part of another question or of
other rows is never used, not even a copy under this name. How rows are cut into
chunks does not depend on the number of processes. Parts are deleted when the result is written, and not before. A part
that the time limit of the command has cut short is not kept, so what is kept does not depend on that limit.
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
from onbmacf.cli.terminal import Progress
from onbmacf.errors import StoreError
from onbmacf.explainer import ONBMACF
from onbmacf.explanations import Explanations
from onbmacf.report.render import model_digest, table_digest

CHUNK = 100  # rows per part
LEAST_SECONDS = 1e-6  # for rows that are not reached in time: they must say so
NOTHING: Mapping[str, Any] = {}


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
