"""Where the library is called: a bounded queue in front of one thread, or of processes that share the map.

    async with engine.place():                        503 where too many wait
        await engine.run(function, *arguments)        function(explainer, *arguments), 503 where it takes too long

The model of a caller need not be safe for threads, so one thread asks it. With workers, each process reads the map from
one file, memory-mapped: its arrays are in memory once (docs/decisions/0074-one-thread-or-processes.md).
"""

import asyncio
import multiprocessing
import pickle
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from onbmacf.errors import ParameterError
from onbmacf.explainer import ONBMACF
from onbmacf.web.problems import busy, stuck, too_slow
from onbmacf.web.settings import Settings

_OWN: dict[str, ONBMACF] = {}  # in a worker: the explainer that it has read


class Engine:
    """Calls functions of an explainer, in the order in which they came."""

    def __init__(self, explainer: ONBMACF, settings: Settings) -> None:
        self.explainer, self.limits = explainer, settings.limits
        self.n_waiting, self.n_at_once = 0, settings.workers or 1
        self.overdue: set[Future[Any]] = set()  # calls that were given up but go on: Python cannot end a thread
        self.folder: Path | None = None
        self.drawing = ThreadPoolExecutor(1, "drawing")  # matplotlib is drawn with in one thread
        self.executor: Executor = (
            self._processes(settings.workers) if settings.workers else ThreadPoolExecutor(1, "asking")
        )

    def _processes(self, n_workers: int) -> Executor:
        self.folder = Path(tempfile.mkdtemp(prefix="onbmacf-map-"))
        path = self.folder / "explainer"
        _write(self.explainer, path)
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(n_workers, context, initializer=_read, initargs=(path,))

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Take a place in the queue for one request; a problem where it is full."""
        if self.n_waiting >= self.limits.max_waiting:
            raise busy()
        self.n_waiting += 1
        try:
            yield
        finally:
            self.n_waiting -= 1

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return function(explainer, *arguments), called where the library is; a problem where it takes too long."""
        if self.is_stuck:
            raise stuck(len(self.overdue))
        future = self._submitted(function, arguments)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self.limits.timeout)
        except TimeoutError:
            if future.running():
                self.overdue.add(future)
                future.add_done_callback(self.overdue.discard)
            raise too_slow(self.limits.timeout) from None

    @property
    def is_stuck(self) -> bool:
        """Whether every thread or process that asks the model has been at one call for longer than a request may take.

        Nobody else can be answered then, so requests are refused at once; it ends when such a call does.
        """
        return len(self.overdue) >= self.n_at_once

    async def run_long(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what `run` does, however long it takes: for work in the background."""
        return await asyncio.wrap_future(self._submitted(function, arguments))

    def warm_up(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call something whose answer nobody waits for: what is made on first use is there when it is needed."""
        self._submitted(function, arguments)

    def _submitted(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> "Future[Any]":
        if isinstance(self.executor, ThreadPoolExecutor):
            return self.executor.submit(function, self.explainer, *arguments)
        return self.executor.submit(_call, function, arguments)

    async def ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what `run` does, for a request that is this one call."""
        async with self.place():
            return await self.run(function, *arguments)

    async def draw(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return function(*arguments), called in the thread that draws."""
        async with self.place():
            future = self.drawing.submit(function, *arguments)
            return await asyncio.wait_for(asyncio.wrap_future(future), self.limits.timeout)

    async def draw_long(self, function: Callable[[], Any]) -> Any:
        """Return function(), called in the thread that draws, however long it takes."""
        return await asyncio.wrap_future(self.drawing.submit(function))

    def close(self) -> None:
        """End the threads or processes, after what they are doing; what was given up is not waited for."""
        self.drawing.shutdown(cancel_futures=True)
        self.executor.shutdown(wait=not self.overdue, cancel_futures=True)
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def _write(explainer: ONBMACF, path: Path) -> None:
    import joblib

    try:
        joblib.dump(explainer, path)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ParameterError(f"workers need a model that can be pickled, which this one cannot: {error}") from error


def _read(path: Path) -> None:
    """Read the explainer in a worker; arrays stay in the file, which all workers share."""
    import signal

    import joblib

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the service, which ends its workers itself
    _OWN["explainer"] = joblib.load(path, mmap_mode="r")


def _call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return function(_OWN["explainer"], *arguments)
