"""Where the library is called: a bounded queue in front of one thread, or of processes that share the map.

    async with engine.slot():                         503 where too many wait
        await engine.run(function, *arguments)        function(explainer, *arguments), 503 where it takes too long: it
                                                      asks the model nothing more then
    await engine.call(function, *arguments)           both, for a request that is one call

The model of a caller need not be safe for threads, so one thread asks it. With workers, each process reads the map from
one file, memory-mapped: its arrays are in memory once (docs/decisions/0074-one-thread-or-processes.md). The file is the
owner's alone, and neither it nor a worker outlives this process. A worker that dies takes the calls in flight with it
(503); the next call starts new ones.
"""

import asyncio
import multiprocessing
import os
import pickle
import shutil
import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic, time
from typing import Any

from onbmacf._base.limits import OverdueError, awaited_until
from onbmacf.errors import ModelError, ParameterError
from onbmacf.explainer import ONBMACF
from onbmacf.web.responses import HTTPProblem
from onbmacf.web.settings import Settings

PROBE_SECONDS = 1.0  # that /healthz waits; a probe behind a long call goes on waiting, and the next /healthz sees it
MOST_LOST = 3  # times that work in the background is begun again where its worker died
START_SECONDS = 60.0  # for workers to start, on a busy machine
LONG_PATIENCE = 10  # times the seconds of a request: for workers that have work in the background
MAP_FILE = "explainer"
_WORKER: dict[str, ONBMACF] = {}  # in a worker process: the explainer that it has read


class Engine:
    """Calls functions of an explainer, in the order in which they came."""

    def __init__(self, explainer: ONBMACF, settings: Settings) -> None:
        self.explainer, self.limits = explainer, settings.limits
        self.n_waiting, self.n_at_once = 0, settings.workers or 1
        self.overdue: dict[Future[Any], float] = {}  # given up but going on, since when: Python cannot end a thread
        self.n_long, self.long_since = 0, 0.0  # calls in the background, and when the latest was made
        self.pool_since, self.answered = 0.0, -inf  # when the pool was made, and when a worker last came back
        self.probe: asyncio.Task[None] | None = None
        self.trouble = ""  # what the last probe that ended has found
        self.folder: Path | None = None
        self.plot_executor = ThreadPoolExecutor(1, "plots")  # matplotlib is not safe for threads
        if settings.workers:
            self._write_map()
        self.executor: Executor = self._pool() if settings.workers else ThreadPoolExecutor(1, "model")

    def _write_map(self) -> None:
        """Write the file that the workers share."""
        import joblib
        from joblib.externals.loky.backend import resource_tracker  # a process that outlives this one, however it ends

        self.folder = Path(tempfile.mkdtemp(prefix="onbmacf-map-"))  # for the owner only
        resource_tracker.register(str(self.folder), "folder")
        path = self.folder / MAP_FILE
        path.touch(mode=0o600)
        try:
            joblib.dump(self.explainer, path)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            self._forget_folder()
            raise ParameterError(f"workers need a model that can be pickled, which this one cannot: {error}") from error

    def _pool(self) -> Executor:
        assert self.folder is not None
        context = multiprocessing.get_context("spawn")
        path = self.folder / MAP_FILE
        self.pool_since, self.answered = monotonic(), -inf
        return ProcessPoolExecutor(self.n_at_once, context, initializer=_start_worker, initargs=(path,))

    def _replace(self, broken: Executor) -> None:
        """Put a new pool in the place of one whose worker died; of several calls that saw it die, the first does."""
        if self.executor is broken:
            self.executor = self._pool()
            _kill(broken)

    def _replace_if_lost(self, since: float) -> None:
        """End workers none of which has come back for as long as a request may take, from a time on."""
        patience = self.limits.timeout
        if self.answered < self.pool_since:  # they read the map, and import what the model needs
            since, patience = self.pool_since, max(patience, START_SECONDS)
        elif self.n_long:
            since, patience = max(self.answered, self.long_since), LONG_PATIENCE * patience
        is_lost = monotonic() - max(since, self.answered) >= patience
        if is_lost and not isinstance(self.executor, ThreadPoolExecutor):
            self.overdue.clear()
            self._replace(self.executor)

    def _note_answer(self, executor: Executor, future: "Future[Any]") -> None:
        """Note that a worker came back, be it with an error of its own."""
        is_back = not future.cancelled() and not isinstance(future.exception(), BrokenExecutor)
        if is_back and executor is self.executor:
            self.answered = monotonic()

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
            self._replace_if_lost(-inf)
        if self.is_stuck:
            calls = "a call" if self.n_at_once == 1 else f"{self.n_at_once} calls"
            detail = f"The model has not come back from {calls}, so nobody can be answered."
            detail += " Start the service again if it stays so."
            raise HTTPProblem(503, "Model stuck", detail, {"Retry-After": "30"})
        submitted = monotonic()
        executor, future = self._submit(partial(awaited_until, time() + self.limits.timeout, function), arguments)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self.limits.timeout)
        except BrokenExecutor:
            self._replace(executor)
            detail = "A process that answers has died, and this request with it. Ask again."
            raise HTTPProblem(503, "Worker lost", detail, {"Retry-After": "1"}) from None
        except (TimeoutError, OverdueError):
            if future.running():
                self.overdue[future] = monotonic()
                future.add_done_callback(lambda ended: self.overdue.pop(ended, None))
            self._replace_if_lost(submitted)
            raise self._too_late("Ask for fewer rows, or as a stream of lines.") from None

    def _too_late(self, advice: str) -> HTTPProblem:
        detail = f"No answer within {self.limits.timeout:g} s. {advice}"
        return HTTPProblem(503, "Timed out", detail, {"Retry-After": "5"})

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what `run` does, for a request that is this one call."""
        async with self.slot():
            return await self.run(function, *arguments)

    @property
    def is_stuck(self) -> bool:
        """Whether every thread or process that asks the model is still at a call that was given up long ago.

        As long ago as a request may take: one that is slow comes back before. Nobody else can be answered then, so
        requests are refused at once; it ends when such a call does.
        """
        long_ago = monotonic() - self.limits.timeout
        return sum(since <= long_ago for since in list(self.overdue.values())) >= self.n_at_once

    async def run_long(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what `run` does, however long it takes: for background work, begun again where a worker died."""
        for _ in range(MOST_LOST):
            executor, future = self._submit(function, arguments)
            self.n_long, self.long_since = self.n_long + 1, monotonic()
            try:
                return await asyncio.wrap_future(future)
            except BrokenExecutor:
                self._replace(executor)
            finally:
                self.n_long -= 1
        raise ModelError(f"the process that asks the model has died {MOST_LOST} times at the same rows.")

    async def health(self) -> str:
        """Return what keeps the library from answering, or nothing: a call that does nothing must come back.

        One probe is under way at a time, however often this is asked. A probe that waits behind a long call is no
        trouble until it has waited as long as a request may.
        """
        if self.is_stuck:
            self._replace_if_lost(-inf)
        if self.is_stuck:
            return "stuck: the model does not come back from its calls"
        if self.probe is None or self.probe.done():
            self.probe = asyncio.get_running_loop().create_task(self._probe())
        await asyncio.wait({self.probe}, timeout=PROBE_SECONDS)
        return self.trouble

    async def _probe(self) -> None:
        try:
            await self.run(_answer)
            self.trouble = ""
        except HTTPProblem as problem:
            self.trouble = f"{problem.title.lower()}: {problem.detail}"

    def warm_up(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a function and do not wait for its answer: what is made on first use is there when it is needed."""
        self._submit(function, arguments)

    def _submit(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> "tuple[Executor, Future[Any]]":
        """Return a call that was handed over, and to whom."""
        if isinstance(self.executor, ThreadPoolExecutor):
            return self.executor, self.executor.submit(function, self.explainer, *arguments)
        try:
            future = self.executor.submit(_run_in_worker, function, arguments)
        except BrokenExecutor:  # a worker died while nobody asked
            self._replace(self.executor)
            future = self.executor.submit(_run_in_worker, function, arguments)
        executor = self.executor
        future.add_done_callback(lambda done: self._note_answer(executor, done))
        return executor, future

    async def draw(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return function(*arguments), called in the thread that draws."""
        async with self.slot():
            future = self.plot_executor.submit(function, *arguments)
            try:
                return await asyncio.wait_for(asyncio.wrap_future(future), self.limits.timeout)
            except TimeoutError:
                raise self._too_late("Other pictures are being drawn: ask again shortly.") from None

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


def _kill(pool: Executor) -> None:
    """End the processes of a pool and all calls in it."""
    # A worker that was killed while it wrote its result leaves half of it in the pipe. The thread that reads it would
    # wait for the rest for ever, and the end of this process for that thread, as long as anybody could write there.
    with suppress(AttributeError, OSError):
        pool._result_queue._writer.close()  # type: ignore[attr-defined]
    for worker in list((getattr(pool, "_processes", None) or {}).values()):
        worker.kill()
    pool.shutdown(wait=False, cancel_futures=True)


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


def _answer(explainer: ONBMACF) -> None:
    """Do nothing: that it is done shows that somebody is there."""


def _run_in_worker(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return function(_WORKER["explainer"], *arguments)
