"""Run cells in parallel, in processes of their own; resume where the last run stopped.

    settings  ->  cells  ->  one file per cell (written atomically)  +  manifest.json

Where many cells wait, those that follow each other with the same table and model share a process: the table is read and
the model trained once. A cell whose file exists is not computed again, so starting a killed run again resumes it. A
cell that fails, crashes or exceeds its time limit is kept with its error, and the rest of its process is started anew;
`retry` computes such cells again.
"""

import json
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import takewhile
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from onbmacf._base.checks import check_count
from onbmacf._base.files import forget_dead_drafts, sole_writer, write_atomically
from onbmacf.bench import cells as cells_module
from onbmacf.bench.cells import MANIFEST, Cell
from onbmacf.errors import StoreError

TIME_LIMIT = 1800.0
POLL = 0.5
MOST_IN_BATCH = 100
REFUSED = f"{StoreError.__name__}: could not write"  # how the error of a cell begins that could not keep its network
UNWRITTEN = 74  # exit code of a child whose file the disk refused: EX_IOERR of sysexits.h
PRELOADED = ["onbmacf.bench.cells", "onbmacf.bench.network", "scipy.sparse.csgraph"]


@dataclass(frozen=True)
class Plan:
    """The cells of a run and the file of each."""

    folder: Path
    data_dir: Path | None
    files: dict[Cell, Path]

    @classmethod
    def of(cls, cells: Iterable[Cell], folder: Path, data_dir: Path | None) -> "Plan":
        """Name each cell's file after the hash of its inputs, and write the manifest."""
        files = {cell: folder / "cells" / _file_name(cell, data_dir) for cell in cells}
        entries = [{**asdict(cell), "file": str(path.relative_to(folder))} for cell, path in files.items()]
        manifest = {"cells": entries, "versions": cells_module.versions()}
        write_atomically(folder / MANIFEST, json.dumps(manifest, indent=1).encode())
        return cls(folder, data_dir, files)

    def open_cells(self, retry: bool) -> list[Cell]:
        """Return the cells that are still to be computed; with `retry`, what is kept of failed ones is removed."""
        for path in self.files.values() if retry else ():
            if path.exists() and not _is_done(path):
                path.unlink()
        return [cell for cell, path in self.files.items() if not path.exists()]


class Batch:
    """Cells that a process computes one after the other; the first without a file is the one it is at."""

    def __init__(self, cells: list[Cell], plan: Plan) -> None:
        self.cells, self.plan, self.since = cells, plan, time.monotonic()
        files = [(cell, plan.files[cell]) for cell in cells]
        self.process: BaseProcess = _context().Process(
            target=_work, args=(files, plan.data_dir, plan.folder / "models"), daemon=True
        )
        self.process.start()

    def finished(self) -> Iterator[tuple[Cell, float]]:
        """Yield the cells whose file has appeared, and how long each took, to the next look."""
        while self.cells and self.plan.files[self.cells[0]].exists():
            now = time.monotonic()
            yield self.cells.pop(0), now - self.since
            self.since = now


def run(
    cells: Iterable[Cell],
    folder: Path,
    *,
    data_dir: Path | None = None,
    jobs: int = 1,
    time_limit: float = TIME_LIMIT,
    retry: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Plan:
    """Compute the cells that have no file yet, `jobs` at a time; a second run in the same folder is an error."""
    check_count("jobs", jobs)
    check_folder(folder)
    with sole_writer(folder / MANIFEST, ".lock"):
        return _run(Plan.of(cells, folder, data_dir), jobs, time_limit, retry, say)


def check_folder(folder: Path) -> None:
    """Make the folder of a run, without the drafts that a killed run has left."""
    try:
        for place in (folder / "cells", folder / "models"):
            place.mkdir(parents=True, exist_ok=True)
            for draft in place.glob(".*.*"):
                forget_dead_drafts(draft.with_name(draft.name[1:].rpartition(".")[0]))
    except OSError as error:
        raise StoreError(f"could not write to {folder}: {error.strerror}.") from error


def _run(plan: Plan, jobs: int, time_limit: float, retry: bool, say: Callable[[str], None]) -> Plan:
    waiting = plan.open_cells(retry)
    say(f"{len(plan.files)} cells, {len(plan.files) - len(waiting)} already computed, {jobs} at a time.")
    progress = RunProgress(len(waiting), say)
    running: list[Batch] = []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(Batch(_take(waiting, jobs), plan))
            wait([batch.process.sentinel for batch in running], timeout=POLL)
            for batch in list(running):
                ended = not batch.process.is_alive()  # asked before the files are: none appears after the end
                for cell, seconds in batch.finished():
                    progress.ended(cell, _read(plan.files[cell]), seconds)
                late = bool(batch.cells) and time.monotonic() - batch.since > time_limit
                if ended or late:
                    running.remove(batch)
                    _stop(batch, late, time_limit, progress)
                    waiting[:0] = batch.cells
    finally:
        for batch in running:
            batch.process.kill()
    return plan


def _take(waiting: list[Cell], jobs: int) -> list[Cell]:
    """Take the next cells of one table and model: fewer and fewer, so that all processes end at about the same time."""
    most = min(MOST_IN_BATCH, max(1, len(waiting) // (4 * jobs)))
    about = (waiting[0].dataset, waiting[0].model)
    same = takewhile(lambda cell: (cell.dataset, cell.model) == about, waiting[:most])
    taken = list(same)
    del waiting[: len(taken)]
    return taken


def _stop(batch: Batch, late: bool, time_limit: float, progress: "RunProgress") -> None:
    """End the process of a batch; the cell it was at, if there is one, gets a document with what went wrong."""
    batch.process.kill()
    batch.process.join()
    if batch.process.exitcode == UNWRITTEN:  # the fault of the disk, not of the method: nothing is recorded
        raise StoreError(
            f"could not write to {batch.plan.folder / 'cells'}. Finished cells are kept: the same command goes on from "
            "there."
        )
    if batch.cells:
        cell = batch.cells.pop(0)
        code = batch.process.exitcode
        error = f"more than {time_limit:g} s" if late else f"the process ended with exit code {code}"
        document = {**asdict(cell), "status": "timeout" if late else "crashed", "error": error}
        write_atomically(batch.plan.files[cell], json.dumps(document).encode())
        progress.ended(cell, document, time.monotonic() - batch.since)


class RunProgress:
    """Reports each finished cell and the time left."""

    def __init__(self, total: int, say: Callable[[str], None]) -> None:
        self.total, self.say, self.done, self.started = total, say, 0, time.monotonic()

    def ended(self, cell: Cell, document: dict[str, Any], seconds: float) -> None:
        """Count a cell and report its outcome."""
        self.done += 1
        how = f"{document['status']}: {document['error']}"
        if document["status"] == "done":
            found = [count > 0 for count in document["lines"]["n_found"]]
            how = f"success {sum(found) / max(len(found), 1):.3f}"
        place = f"[{self.done:>{len(str(self.total))}}/{self.total}]"
        about_case = "" if cell.protocol == "paper" else f"{cell.protocol} {cell.model} {cell.seed} "
        left = (time.monotonic() - self.started) / self.done * (self.total - self.done)
        about = f"{left:.0f} s" if left < 90 else f"{left / 60:.0f} min"
        self.say(
            f"{place} {cell.dataset:<20} {cell.method:<13} {about_case}{seconds:7.1f} s  {how}  (about {about} left)"
        )


def _file_name(cell: Cell, data_dir: Path | None) -> str:
    return f"{cell.dataset}-{cell.method.lower().replace('+', 'plus')}-{cells_module.key(cell, data_dir)[:16]}.json"


def _is_done(path: Path) -> bool:
    return bool(_read(path)["status"] == "done")


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def _context() -> Any:
    """Fork from a clean process that has imported the heavy libraries once; use spawn where fork is not available."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def _work(files: list[tuple[Cell, Path]], data_dir: Path | None, models: Path) -> None:
    """Compute cells in a child process and write their files; where the disk refuses, end with an exit code for it."""
    threading.Thread(target=_die_with_parent, daemon=True).start()
    try:
        for cell, path in files:
            document = cells_module.compute(cell, data_dir, models)
            if document["error"].startswith(REFUSED):
                raise StoreError(document["error"])
            write_atomically(path, json.dumps(document).encode())
    except StoreError as error:
        with suppress(OSError):  # what is said may go to the same disk
            print(error, file=sys.stderr, flush=True)
        os._exit(UNWRITTEN)


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
