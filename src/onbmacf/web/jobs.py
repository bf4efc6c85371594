"""Audits in the background, part by part. What is done is on disk: a service that was killed goes on when it is back.

    Plan  ->  Jobs.start  ->  parts of rows through the engine  ->  one file each  ->  Explanations  ->  Report

A folder belongs to one table, model and version: the digest of all that decides an answer is in its name. A job is a
folder of ours with a file that says what it is; no name of a request ever becomes a path.
"""

import asyncio
import json
import os
import shutil
import sys
import time
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from onbmacf import __version__
from onbmacf._base.files import write_atomically
from onbmacf._disk.answer_file import read_answers, write_answers
from onbmacf._text.records import plain
from onbmacf._views.plans import Ask, Source, explained, label_of
from onbmacf.errors import OnbmacfError
from onbmacf.explanations import Explanations
from onbmacf.report.render import model_digest, table_digest
from onbmacf.web.cases import new_id
from onbmacf.web.engine import Engine
from onbmacf.web.metrics import log_failure
from onbmacf.web.problems import Problem, not_found

PART = 8  # rows: a person's request waits for one part at most
MOST_KEPT = 8  # jobs
RUNNING, DONE, CANCELLED, FAILED = "running", "done", "cancelled", "failed"
FILE = "job.json"


@dataclass(frozen=True)
class Plan:
    """What an audit covers."""

    places: tuple[int, ...]  # rows of the table
    target: Any  # label, tuple of labels, or None
    by: tuple[str, ...]  # columns, as text
    seed: int = 0
    n_cases: int = 6


@dataclass(eq=False)
class Job:
    """One audit: what it covers, how far it is, and where it is kept."""

    id: str
    plan: Plan
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
        return len(self.plan.places)

    def state(self) -> dict[str, Any]:
        """Return how far it is, as programs read it."""
        names = ("id", "status", "n_done", "n_rows", "error")
        return {name: getattr(self, name) for name in names} | {"created": round(self.created, 3)}

    def write(self) -> None:
        """Write what the job is, whole or not at all."""
        plan = {"places": self.plan.places, "target": plain(self.plan.target), "by": self.plan.by}
        content = self.state() | plan | {"seed": self.plan.seed, "n_cases": self.plan.n_cases}
        write_atomically(self.folder / FILE, json.dumps(content).encode())


class Jobs:
    """All audits of a service: one runs at a time."""

    def __init__(self, source: Source, engine: Engine, folder: Path) -> None:
        self.source, self.engine, self.folder = source, engine, folder
        self.jobs: dict[str, Job] = {}
        self.tasks: set[asyncio.Task[None]] = set()

    def go_on(self) -> None:
        """Read the jobs that are on disk, and go on with what was running; called once, within the loop."""
        for path in sorted(self.folder.glob(f"*/{FILE}")):
            job = _read_job(path, self.source.classes)
            if job is not None:
                self.jobs[job.id] = job
                if job.status == RUNNING:
                    self._begin(job)

    def start(self, plan: Plan) -> Job:
        """Start an audit; a problem where one is running."""
        if any(job.status == RUNNING for job in self.jobs.values()):
            raise Problem(
                429, "Too many audits", "An audit is running. Wait for it, or cancel it.", {"Retry-After": "30"}
            )
        if not plan.places:
            raise Problem(422, "Nothing to audit", "Every row of the table already has a label that is wanted.")
        job = Job(new_id(), plan, self.folder / new_id())
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        job.folder.mkdir(mode=0o700)
        job.write()
        self.jobs[job.id] = job
        for old in sorted(self.jobs.values(), key=lambda one: one.created)[:-MOST_KEPT]:
            self._remove(old)
        self._begin(job)
        return job

    def of(self, name: str) -> Job:
        """Return a job by its id."""
        if name not in self.jobs:
            raise not_found("audit")
        return self.jobs[name]

    def cancel(self, job: Job) -> None:
        """Stop a job after the part that is being answered."""
        if job.status == RUNNING:
            job.status = CANCELLED
            job.write()

    async def pause(self) -> None:
        """Stop what runs, when the service ends; it goes on when the service is back."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def _begin(self, job: Job) -> None:
        task = asyncio.get_running_loop().create_task(self._run(job))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _run(self, job: Job) -> None:
        try:
            await self._answer(job)
            if job.status == RUNNING:
                await self.report(job)
                job.status = DONE
                job.write()
        except asyncio.CancelledError:  # the service ends; what is done is on disk
            raise
        except Exception as error:
            log_failure(error)
            job.status = FAILED
            job.error = str(error) if isinstance(error, OnbmacfError) else "Something went wrong here. See the log."
            job.write()

    async def _answer(self, job: Job) -> None:
        """Answer the parts that are not on disk yet."""
        ask, form = Ask(target=job.plan.target), self.source.explainer.fitted_.space.form
        for start in range(0, job.n_rows, PART):
            if job.status != RUNNING:
                return
            rows, path = self._part(job, start)
            if await asyncio.to_thread(read_answers, path, rows, form) is None:
                answers = await self.engine.run_long(explained, rows, ask)
                await asyncio.to_thread(write_answers, path, answers, form)
            job.n_done = start + len(rows)

    def _part(self, job: Job, start: int) -> tuple[pd.DataFrame, Path]:
        places = list(job.plan.places[start : start + PART])
        return self.source.table.iloc[places], job.folder / f"part-{start:09d}.onb"

    async def report(self, job: Job) -> Any:
        """Return the report of a job whose rows are all answered; made once, where pictures are drawn."""
        if job.report is None:
            job.answers = await asyncio.to_thread(self._joined, job)
            job.report = await self.engine.draw_long(partial(_report, self.source, job.answers, job.plan))
        return job.report

    def _joined(self, job: Job) -> Explanations:
        form, parts = self.source.explainer.fitted_.space.form, []
        for start in range(0, job.n_rows, PART):
            rows, path = self._part(job, start)
            found = read_answers(path, rows, form)
            if found is None:
                raise not_found("audit: a part of it is damaged. Start it again")
            parts.append(found)
        return Explanations.concat(parts)

    def _remove(self, job: Job) -> None:
        self.cancel(job)
        self.jobs.pop(job.id, None)
        shutil.rmtree(job.folder, ignore_errors=True)


def chosen_places(source: Source, target: Any, most: int, seed: int) -> tuple[int, ...]:
    """Return the rows to audit: those that do not have a wanted label; of many, some drawn at random with a seed."""
    wanted = target if isinstance(target, list | tuple) else [target]
    places = np.arange(len(source.table))
    if source.labels is not None:
        places = np.array([place for place in places if source.labels[place] not in wanted], dtype=np.intp)
    if len(places) > most:
        places = np.sort(np.random.default_rng(seed).choice(places, size=most, replace=False))
    return tuple(places.tolist())


def _report(source: Source, answers: Explanations, plan: Plan) -> Any:
    from onbmacf.report import About, audit_report

    by: list[Hashable] = [source.column_of[name] for name in plan.by]
    about = About(f"Audit of {source.name}", source.name, source.model_name, source.files, "", source.notes)
    more: dict[str, Any] = {"n_cases": plan.n_cases, "seed": plan.seed, "about": about}
    target = list(plan.target) if isinstance(plan.target, tuple) else plan.target
    return audit_report(source.explainer, answers, target=target, by=by, **more)


def _read_job(path: Path, classes: list[Any]) -> Job | None:
    """Return the job that a file describes; None where it cannot be read."""
    try:
        told = json.loads(path.read_bytes())
        target = _target(told["target"], classes)
        plan = Plan(tuple(told["places"]), target, tuple(told["by"]), told["seed"], told["n_cases"])
        job = Job(told["id"], plan, path.parent, told["status"], told["n_done"], told["created"], told["error"])
    except (OSError, ValueError, LookupError, TypeError, OnbmacfError):
        return None
    return job


def _target(told: Any, classes: list[Any]) -> Any:
    if isinstance(told, list):
        return tuple(label_of(label, classes) for label in told)
    return None if told is None else label_of(told, classes)


def kept_folder(source: Source, folder: Path | None) -> Path:
    """Return where the jobs of this table, model and version are kept: in the user's cache, or in a folder given."""
    explainer = source.explainer
    options = [(name, value) for name, value in explainer.get_params().items() if name not in ("n_jobs", "committee")]
    told = repr([__version__, options, explainer.schema_, table_digest(explainer), model_digest(explainer)])
    told += repr([list(source.table.index[:100]), len(source.table)])
    key = sha256(told.encode("utf-8", "backslashreplace")).hexdigest()[:16]
    return (folder or _users_folder()) / f"serve-{key}"


def _users_folder() -> Path:
    local = {"win32": "AppData/Local", "darwin": "Library/Caches"}.get(sys.platform, ".cache")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / local) / "onbmacf"
