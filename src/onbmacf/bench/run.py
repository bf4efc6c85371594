"""Run cells in parallel, each in its own process; resume where the last run stopped.

    settings  ->  cells  ->  one file per cell (written atomically)  +  manifest.json

A cell whose file exists is not computed again, so starting a killed run again resumes it. A cell that fails, crashes
or exceeds its time limit is kept with its error; `retry` computes such cells again.
"""

import json
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
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
        """Return the cells that are still to be computed."""
        return [cell for cell, path in self.files.items() if not path.exists() or (retry and not _is_done(path))]


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
    running: dict[BaseProcess, tuple[Cell, float]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                cell = waiting.pop(0)
                arguments = (cell, plan.files[cell], plan.data_dir, plan.folder / "models")
                process = _context().Process(target=_work, args=arguments, daemon=True)
                process.start()
                running[process] = (cell, time.monotonic())
            wait([process.sentinel for process in running], timeout=POLL)
            for process, (cell, started) in list(running.items()):
                if not process.is_alive() or time.monotonic() - started > time_limit:
                    del running[process]
                    document = _outcome(plan.files[cell], process, cell, time_limit)
                    progress.ended(cell, document, time.monotonic() - started)
    finally:
        for process in running:
            process.kill()
    return plan


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
        left = (time.monotonic() - self.started) / self.done * (self.total - self.done)
        about = f"{left:.0f} s" if left < 90 else f"{left / 60:.0f} min"
        self.say(f"{place} {cell.dataset:<20} {cell.method:<13} {seconds:7.1f} s  {how}  (about {about} left)")


def _file_name(cell: Cell, data_dir: Path | None) -> str:
    return f"{cell.dataset}-{cell.method.lower().replace('+', 'plus')}-{cells_module.key(cell, data_dir)[:16]}.json"


def _is_done(path: Path) -> bool:
    return bool(json.loads(path.read_text(encoding="utf-8"))["status"] == "done")


def _context() -> Any:
    """Fork from a clean process that has imported the heavy libraries once; use spawn where fork is not available."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def _work(cell: Cell, path: Path, data_dir: Path | None, models: Path) -> None:
    """Compute one cell in a child process and write its file; where the disk refuses, end with an exit code for it."""
    threading.Thread(target=_die_with_parent, daemon=True).start()
    try:
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


def _outcome(path: Path, process: BaseProcess, cell: Cell, time_limit: float) -> dict[str, Any]:
    """Return the cell's document; write one if the process ended without writing it."""
    late = process.is_alive()
    process.kill()
    process.join()
    if process.exitcode == UNWRITTEN:  # the fault of the disk, not of the method: nothing is recorded
        raise StoreError(
            f"could not write to {path.parent}. Finished cells are kept: the same command goes on from there."
        )
    if not path.exists() or late:
        error = f"more than {time_limit:g} s" if late else f"the process ended with exit code {process.exitcode}"
        document = {**asdict(cell), "status": "timeout" if late else "crashed", "error": error}
        write_atomically(path, json.dumps(document).encode())
    return json.loads(path.read_text(encoding="utf-8"))
