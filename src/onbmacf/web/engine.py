"""Where the library is called: a bounded queue in front of one thread, or of processes that share the map.

    async with engine.slot():                         503 where too many wait
        await engine.run(function, *arguments)        function(explainer, *arguments), 503 where it takes too long
    await engine.call(function, *arguments)           both, for a request that is one call

The model of a caller need not be safe for threads, so one thread asks it. With workers, each process reads the map from
one file, memory-mapped: its arrays are in memory once (docs/decisions/0074-one-thread-or-processes.md). The file is the
owner's alone, and neither it nor a worker outlives this process.
"""

import asyncio
import multiprocessing
import os
import pickle
import shutil
import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from onbmacf.errors import ParameterError
from onbmacf.explainer import ONBMACF
from onbmacf.web.responses import HTTPProblem
from onbmacf.web.settings import Settings

_WORKER: dict[str, ONBMACF] = {}  # in a worker process: the explainer that it has read


class Engine:
    """Calls functions of an explainer, in the order in which they came."""

    def __init__(self, explainer: ONBMACF, settings: Settings) -> None:
        self.explainer, self.limits = explainer, settings.limits
        self.n_waiting, self.n_at_once = 0, settings.workers or 1
        self.overdue: set[Future[Any]] = set()  # calls that were given up but go on: Python cannot end a thread
        self.folder: Path | None = None
        self.plot_executor = ThreadPoolExecutor(1, "plots")  # matplotlib is not safe for threads
        self.executor: Executor = (
            self._processes(settings.workers) if settings.workers else ThreadPoolExecutor(1, "model")
        )

    def _processes(self, n_workers: int) -> Executor:
        import joblib
        from joblib.externals.loky.backend import resource_tracker  # a process that outlives this one, however it ends

        self.folder = Path(tempfile.mkdtemp(prefix="onbmacf-map-"))  # for the owner only
        resource_tracker.register(str(self.folder), "folder")
        path = self.folder / "explainer"
        path.touch(mode=0o600)
        try:
            joblib.dump(self.explainer, path)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            self._forget_folder()
            raise ParameterError(f"workers need a model that can be pickled, which this one cannot: {error}") from error
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(n_workers, context, initializer=_start_worker, initargs=(path,))

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold a place in the queue for one request; a problem where the queue is full."""
        if self.n_waiting >= self.limits.max_waiting:
            detail = "Too many requests are waiting. Ask again shortly."
            raise HTTPProblem(503, "Busy", detail, {"Retry-After": "1"})
        self.n_waiting += 1
        try:
            yield
        finally:
            self.n_waiting -= 1

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return function(explainer, *arguments), called where the library is; a problem where it takes too long."""
        if self.is_stuck:
            calls = "a call" if len(self.overdue) == 1 else f"{len(self.overdue)} calls"
            detail = f"The model has not come back from {calls}, so nobody can be answered."
            detail += " Start the service again if it stays so."
            raise HTTPProblem(503, "Model stuck", detail, {"Retry-After": "30"})
        future = self._submit(function, arguments)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self.limits.timeout)
        except TimeoutError:
            if future.running():
                self.overdue.add(future)
                future.add_done_callback(self.overdue.discard)
            detail = f"No answer within {self.limits.timeout:g} s. Ask for fewer rows, or as a stream of lines."
            raise HTTPProblem(503, "Timed out", detail, {"Retry-After": "5"}) from None

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what `run` does, for a request that is this one call."""
        async with self.slot():
            return await self.run(function, *arguments)

    @property
    def is_stuck(self) -> bool:
        """Whether every thread or process that asks the model has been at one call for longer than a request may take.

        Nobody else can be answered then, so requests are refused at once; it ends when such a call does.
        """
        return len(self.overdue) >= self.n_at_once

    async def run_long(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what `run` does, however long it takes: for work in the background."""
        return await asyncio.wrap_future(self._submit(function, arguments))

    def warm_up(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a function and do not wait for its answer: what is made on first use is there when it is needed."""
        self._submit(function, arguments)

    def _submit(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> "Future[Any]":
        if isinstance(self.executor, ThreadPoolExecutor):
            return self.executor.submit(function, self.explainer, *arguments)
        return self.executor.submit(_run_in_worker, function, arguments)

    async def draw(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return function(*arguments), called in the thread that draws."""
        async with self.slot():
            future = self.plot_executor.submit(function, *arguments)
            return await asyncio.wait_for(asyncio.wrap_future(future), self.limits.timeout)

    async def draw_long(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what `draw` does, however long it takes."""
        return await asyncio.wrap_future(self.plot_executor.submit(function, *arguments))

    def close(self) -> None:
        """End the threads or processes, after what they are doing; what was given up is not waited for."""
        self.plot_executor.shutdown(cancel_futures=True)
        self.executor.shutdown(wait=not self.overdue, cancel_futures=True)
        self._forget_folder()

    def _forget_folder(self) -> None:
        if self.folder is not None and self.folder.exists():
            from joblib.externals.loky.backend import resource_tracker

            shutil.rmtree(self.folder, ignore_errors=True)
            resource_tracker.unregister(str(self.folder), "folder")


def _start_worker(path: Path) -> None:
    """Read the explainer in a worker; arrays stay in the file, which all workers share."""
    import signal

    import joblib

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the service, which ends its workers itself
    threading.Thread(target=_end_with_the_service, daemon=True).start()
    _WORKER["explainer"] = joblib.load(path, mmap_mode="r")


def _end_with_the_service() -> None:
    """Wait for the service to end, and end: a worker of one that was killed would wait for work for ever."""
    service = multiprocessing.parent_process()
    assert service is not None
    service.join()
    os._exit(1)


def _run_in_worker(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return function(_WORKER["explainer"], *arguments)
