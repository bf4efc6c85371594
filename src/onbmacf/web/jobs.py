"""Audits in the background, part by part. What is done is on disk: after a kill, the next start of the service resumes.

    AuditScope  ->  AuditJobs.start  ->  parts of rows through the engine  ->  a file each  ->  Explanations  ->  Report

A folder belongs to one table, model and version: the digest of all that decides an answer is in its name. A job is a
folder in it with a file that says what it is; no name of a request ever becomes a path. Two services on one table share
the folder: what the file says holds for both, and the one that has locked it runs the job.
"""

import asyncio
import errno
import json
import os
import shutil
import sys
import time
from collections.abc import Hashable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from onbmacf import __version__
from onbmacf._base.files import sole_writer, write_atomically
from onbmacf._disk.answer_file import read_answers, write_answers
from onbmacf._explain.request import Question
from onbmacf._text.records import plain
from onbmacf._views.plans import Source, explained, label_of
from onbmacf.errors import OnbmacfError, StoreError
from onbmacf.explanations import Explanations
from onbmacf.report.render import model_digest, table_digest
from onbmacf.web.engine import Engine
from onbmacf.web.metrics import LOG, log_failure
from onbmacf.web.responses import HTTPProblem, as_problem, not_found
from onbmacf.web.security import new_id

PER_PART = 8  # rows: a person's request waits for one part at most
MOST_KEPT = 8  # jobs
RUNNING, DONE, CANCELLED, FAILED = "running", "done", "cancelled", "failed"
FILE = "job.json"
CANNOT_KEEP = "audits cannot be kept in"


# --- one audit --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AuditScope:
    """What an audit covers."""

    places: tuple[int, ...]  # rows of the table
    target: Any  # label, tuple of labels, or None
    by: tuple[str, ...]  # columns, as text
    seed: int = 0
    n_cases: int = 6


@dataclass(eq=False)
class AuditJob:
    """One audit: what it covers, how far it is, and where it is kept."""

    id: str
    scope: AuditScope
    folder: Path
    status: str = RUNNING
    n_done: int = 0
    created: float = field(default_factory=time.time)
    error: str = ""
    answers: Explanations | None = None
    report: Any = None

    @property
    def n_rows(self) -> int:
        """How many rows it covers."""
        return len(self.scope.places)

    def state(self) -> dict[str, Any]:
        """Return how far it is, as programs read it."""
        names = ("id", "status", "n_done", "n_rows", "error")
        return {name: getattr(self, name) for name in names} | {"created": round(self.created, 3)}

    def write(self) -> None:
        """Write what the job is, whole or not at all."""
        scope = {"places": self.scope.places, "target": plain(self.scope.target), "by": self.scope.by}
        content = self.state() | scope | {"seed": self.scope.seed, "n_cases": self.scope.n_cases}
        write_atomically(self.folder / FILE, json.dumps(content).encode())

    @classmethod
    def read(cls, path: Path, classes: list[Any]) -> "AuditJob | None":
        """Return the job that a file describes; None where it cannot be read."""
        try:
            content = json.loads(path.read_bytes())
            target = content["target"]
            if isinstance(target, list):
                target = tuple(label_of(label, classes) for label in target)
            elif target is not None:
                target = label_of(target, classes)
            by, seed, n_cases = tuple(content["by"]), content["seed"], content["n_cases"]
            scope = AuditScope(tuple(content["places"]), target, by, seed, n_cases)
            state = (content[name] for name in ("status", "n_done", "created", "error"))
            return cls(content["id"], scope, path.parent, *state)
        except (OSError, ValueError, LookupError, TypeError, OnbmacfError):
            return None


# --- all audits of a service ------------------------------------------------------------------------------------------


class AuditJobs:
    """All audits of a service: one runs at a time."""

    def __init__(self, source: Source, engine: Engine, folder: Path) -> None:
        self.source, self.engine, self.folder = source, engine, folder
        self.jobs: dict[str, AuditJob] = {}
        self.stamps: dict[Path, tuple[int, ...]] = {}  # of the files, when they were read
        self.tasks: dict[str, asyncio.Task[None]] = {}  # what runs here, by the job's id

    def resume(self) -> None:
        """Go on with what was running, and say where nothing can be kept; called once, within the loop."""
        fault = _fault(self.folder)
        if fault:
            LOG.warning("%s", fault)
        self.refresh()

    def refresh(self) -> None:
        """Read what has changed on disk, and go on with what nobody runs any more."""
        found = {path: _stamp(path) for path in sorted(self.folder.glob(f"*/{FILE}"))}
        for path, stamp in found.items():
            job = None if self.stamps.get(path) == stamp else AuditJob.read(path, self.source.classes)
            if job is not None:
                known = self.jobs.setdefault(job.id, job)
                known.status, known.error = job.status, job.error
                known.n_done = known.n_done if job.id in self.tasks else job.n_done
        self.stamps = found
        for job in list(self.jobs.values()):
            if job.id in self.tasks:
                continue
            if job.folder / FILE not in found:
                del self.jobs[job.id]
            elif job.status == RUNNING and not self._begin(job):  # another service is at it
                job.n_done = min(job.n_rows, PER_PART * len(list(job.folder.glob("part-*"))))

    def start(self, scope: AuditScope) -> AuditJob:
        """Start an audit; a problem where one is running, here or in another service on this table."""
        self.refresh()
        if any(job.status == RUNNING for job in self.jobs.values()):
            detail = "An audit is running. Wait for it, or cancel it."
            raise HTTPProblem(429, "Too many audits", detail, {"Retry-After": "30"})
        if not scope.places:
            detail = "Every row of the table already has a label that is wanted."
            raise HTTPProblem(422, "Nothing to audit", detail)
        job = AuditJob(new_id(), scope, self.folder / new_id())
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            job.folder.mkdir(mode=0o700)
        except OSError as error:
            raise StoreError(_fault(self.folder) or f"{CANNOT_KEEP} {self.folder}: {error.strerror}.") from error
        job.write()
        self.jobs[job.id] = job
        for old in sorted(self.jobs.values(), key=lambda one: one.created)[:-MOST_KEPT]:
            self.cancel(old)
            del self.jobs[old.id]
            shutil.rmtree(old.folder, ignore_errors=True)
        self._begin(job)
        return job

    def of(self, name: str) -> AuditJob:
        """Return a job by its id, as it is on disk now."""
        self.refresh()
        if name not in self.jobs:
            raise not_found("audit")
        return self.jobs[name]

    def cancel(self, job: AuditJob) -> None:
        """Stop a job after the part that is being answered, wherever it runs."""
        if job.status == RUNNING:
            job.status = CANCELLED
            job.write()

    async def pause(self) -> None:
        """Stop what runs, when the service ends; it goes on when the service is back."""
        tasks = list(self.tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def report(self, job: AuditJob) -> Any:
        """Return the report of a job whose rows are all answered; made once, where pictures are drawn."""
        if job.report is None:
            job.answers = await asyncio.to_thread(self._read_answers, job)
            job.report = await self.engine.draw_long(_make_report, self.source, job.answers, job.scope)
        return job.report

    def _begin(self, job: AuditJob) -> bool:
        """Run a job in the background; False where another service runs it."""
        lock = ExitStack()
        try:
            lock.enter_context(sole_writer(job.folder / FILE, ".running"))
        except StoreError:
            return False
        self.tasks[job.id] = asyncio.get_running_loop().create_task(self._run(job, lock))
        return True

    async def _run(self, job: AuditJob, lock: ExitStack) -> None:
        with lock:
            try:
                await self._answer(job)
                if job.status == RUNNING:
                    await self.report(job)
                    self.refresh()
                job.status = DONE if job.status == RUNNING else job.status
                job.write()
            except Exception as error:  # not CancelledError: the service ends, and what is done is on disk
                log_failure(error)
                job.status, job.error = FAILED, as_problem(error).detail
                with suppress(StoreError):  # where the disk is full, it is not known after the next start
                    job.write()
            finally:
                del self.tasks[job.id]

    async def _answer(self, job: AuditJob) -> None:
        """Answer the parts that are not on disk yet."""
        ask, form = Question(target=job.scope.target), self.source.explainer.fitted_.space.form
        job.n_done = 0
        for rows, path in self._parts(job):
            self.refresh()  # it may have been cancelled in another service
            if job.status != RUNNING:
                return
            if await asyncio.to_thread(read_answers, path, rows, form) is None:
                answers = await self.engine.run_long(explained, rows, ask)
                await asyncio.to_thread(write_answers, path, answers, form)
            job.n_done += len(rows)

    def _read_answers(self, job: AuditJob) -> Explanations:
        form = self.source.explainer.fitted_.space.form
        parts = [read_answers(path, rows, form) for rows, path in self._parts(job)]
        found = [part for part in parts if part is not None]
        if len(found) < len(parts):
            raise not_found("audit: a part of it is damaged. Start it again")
        return Explanations.concat(found)

    def _parts(self, job: AuditJob) -> Iterator[tuple[pd.DataFrame, Path]]:
        """Yield the rows of each part, and the file for their answers."""
        for start in range(0, job.n_rows, PER_PART):
            places = list(job.scope.places[start : start + PER_PART])
            yield self.source.table.iloc[places], job.folder / f"part-{start:09d}-{job.folder.name}.onb"


def draw_places(source: Source, target: Any, most: int, seed: int) -> tuple[int, ...]:
    """Return the places of the rows to audit: those without a wanted label; of too many, some drawn at random."""
    wanted = target if isinstance(target, list | tuple) else [target]
    places = np.arange(len(source.table))
    if source.labels is not None:
        places = np.array([place for place in places if source.labels[place] not in wanted], dtype=np.intp)
    if len(places) > most:
        places = np.sort(np.random.default_rng(seed).choice(places, size=most, replace=False))
    return tuple(places.tolist())


def _make_report(source: Source, answers: Explanations, scope: AuditScope) -> Any:
    from onbmacf.report import About, audit_report

    by: list[Hashable] = [source.column_of[name] for name in scope.by]
    about = About(f"Audit of {source.name}", source.name, source.model_name, source.files, "", source.notes)
    target = list(scope.target) if isinstance(scope.target, tuple) else scope.target
    return audit_report(
        source.explainer, answers, target=target, by=by, n_cases=scope.n_cases, seed=scope.seed, about=about
    )


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:  # removed meanwhile
        return ()
    return found.st_mtime_ns, found.st_ino, found.st_size


def _fault(folder: Path) -> str:
    """Return why nothing can be kept in a folder, which need not be there yet; nothing where something can."""
    try:
        there = next(one for one in (folder, *folder.parents) if one.exists())
        reason = "" if os.access(there, os.W_OK | os.X_OK) else os.strerror(errno.EACCES)
        reason = reason if there.is_dir() else os.strerror(errno.ENOTDIR)
    except OSError as error:
        reason = error.strerror or "it cannot be read"
    return reason and f"{CANNOT_KEEP} {folder}: {reason}. Start the service with another --folder."


def jobs_folder(source: Source, folder: Path | None) -> Path:
    """Return where the jobs of this table, model and version are kept: below a folder, by default the user's cache."""
    explainer = source.explainer
    options = [(name, value) for name, value in explainer.get_params().items() if name not in ("n_jobs", "committee")]
    content = repr([__version__, options, explainer.schema_, table_digest(explainer), model_digest(explainer)])
    content += repr([list(source.table.index[:100]), len(source.table)])
    digest = sha256(content.encode("utf-8", "backslashreplace")).hexdigest()[:16]
    if folder is None:
        local = {"win32": "AppData/Local", "darwin": "Library/Caches"}.get(sys.platform, ".cache")
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / local) / "onbmacf"
    return folder / f"serve-{digest}"
