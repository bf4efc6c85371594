"""Map a pure function over pieces of work: on threads, in several processes, or on a Dask cluster.

function, pieces  ->  map_chunks, run_all  ->  results, in the order of the pieces
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from onbmacf._base.limits import as_awaited
from onbmacf.errors import ModelError, OnbmacfWarning, ParameterError

Piece = TypeVar("Piece")
Result = TypeVar("Result")

EVERY = 0.1  # seconds after which processes started since are watched, too
ENDED = (-signal.SIGKILL, -signal.SIGTERM)  # how the pool ends the others
PATIENCE = 1.0  # seconds before a progress bar appears
SHARES = 4  # pieces per thread of a cluster: enough that no thread is idle for long at the end
_OPENING = threading.Lock()  # several threads of a worker may call one parcel at the same time


# --- threads ----------------------------------------------------------------------------------------------------------


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_chunks(work: Callable[[int, int], None], total: int, size: int, threads: int | None) -> None:
    """Call `work(start, stop)` for the chunks of `range(total)`, on `threads` threads (None: one per core).

    Chunks write to disjoint parts of the result, so their order and the number of threads do not affect it.
    After an error or Ctrl-C, chunks that have not started are cancelled.
    """
    spans = [(start, min(start + size, total)) for start in range(0, total, size)]
    threads = 1 if len(spans) == 1 else min(threads or cores(), len(spans))
    if threads < 2:
        for span in spans:
            work(*span)
        return
    pool = ThreadPoolExecutor(threads)
    try:
        for done in [pool.submit(work, *span) for span in spans]:
            done.result()
    finally:
        pool.shutdown(cancel_futures=True)


# --- a process that died ----------------------------------------------------------------------------------------------


class Watch:
    """Watches, in a thread, for the first child process that dies instead of returning.

    >>> with Watch() as watch:
    ...     pass
    >>> watch.first()
    'a worker process'
    """

    def __init__(self) -> None:
        self._seen: dict[Any, BaseProcess] = {}
        self._dead: list[BaseProcess] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._wait, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._over.set()
        self._thread.join()

    def first(self) -> str:
        """Return the name of the first that died, and how, in words."""
        self._over.set()
        self._thread.join()
        unseen = [child for child in self._seen.values() if child.exitcode]  # that died between two looks
        dead = [*self._dead, *unseen]
        for child in dead:
            child.join(EVERY)
        if not dead:
            return "a worker process"
        one = next((child for child in dead if child.exitcode not in ENDED), dead[0])
        return f"worker {one.name} (process {one.pid}, exit code {one.exitcode})"

    def _wait(self) -> None:
        while not self._over.is_set() and not self._dead:
            children: dict[Any, BaseProcess] = {child.sentinel: child for child in multiprocessing.active_children()}
            self._seen |= {child.pid: child for child in children.values()}
            ended = wait(list(children), timeout=EVERY) if children else self._over.wait(EVERY) and []
            # Without an exit code yet it may be a worker that ended by itself; one that did not is found in `first`.
            self._dead = [children[one] for one in ended or [] if one in children and children[one].exitcode]


# --- processes and clusters -------------------------------------------------------------------------------------------


def run_all(
    function: Callable[[Piece], Result],
    pieces: Sequence[Piece],
    n_jobs: int = 1,
    describe: str = "",
    client: Any = None,
    told: Callable[[str], None] | None = None,
) -> list[Result]:
    """Return function(piece) for every piece, in order; long work shows a progress bar (`watched`).

    Where all runs in this process though others were asked for, there is a warning, and `told` gets it.
    """
    if client is not None:
        check_client(client)
        packed = _packed(as_awaited(function), told) if pieces else None
        if packed is not None:
            return _run_on(client, Parcel(packed=packed), pieces, describe)
    elif n_jobs > 1 and len(pieces) > 1:
        packed = _packed(as_awaited(function), told) if _packed(pieces[0], told) is not None else None
        if packed is not None:
            return _run_in_processes(Parcel(packed=packed), pieces, min(n_jobs, len(pieces)), describe)
    return [function(piece) for piece in (watched(pieces, describe) if len(pieces) > 1 else pieces)]


def _run_in_processes(parcel: Parcel, pieces: Sequence[Any], n_jobs: int, describe: str) -> list[Any]:
    """Run pieces in other processes; one that dies is an error that names it, never a hang."""
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import BrokenProcessPool

    with Watch() as watch:
        try:
            results = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(call)(parcel, piece) for piece in pieces)
            return list(watched(results, describe, len(pieces)))
        except BrokenProcessPool as error:
            raise ModelError(
                f"{watch.first()} died while it asked the model (n_jobs={n_jobs}): the model ended the process, or the "
                "system did, for want of memory. Try n_jobs=1 to see more."
            ) from error


def shares(total: int, client: Any, least: int = 1, most: int | None = None) -> list[slice]:
    """Cut `total` items into slices of `least` to `most` items, about SHARES per thread of the cluster."""
    check_client(client)
    n_threads = sum(client.nthreads().values())
    step = max(least, -(-total // max(1, SHARES * n_threads)))
    step = min(step, most or step)
    return [slice(start, min(start + step, total)) for start in range(0, total, step)]


def check_client(client: Any) -> None:
    """Raise an error for an object that is not a client, a closed client, or one without workers."""
    if not (hasattr(client, "scatter") and hasattr(client, "submit")):
        raise ParameterError(f"client must be a dask.distributed.Client, got {type(client).__name__}.")
    if client.status != "running":
        raise ParameterError(f"client must be connected, got one that is {client.status}: {client!r}.")
    if not client.nthreads():
        raise ParameterError(f"client must have workers, got none: {client!r}.")


class Parcel:
    """A pickled function with all the objects it holds; a process that receives it unpickles it on the first call."""

    def __init__(self, function: Callable[..., Any] | None = None, packed: Any = None) -> None:
        self._function, self._packed = function, packed

    def __reduce__(self) -> Any:
        packed = _cloudpickle().dumps(self._function) if self._packed is None else self._packed
        return Parcel, (None, pickle.PickleBuffer(packed))

    def __call__(self, piece: Any) -> Any:
        """Call the function."""
        with _OPENING:
            if self._function is None:
                self._function, self._packed = _opened(self._packed), None
        return self._function(piece)


def send(client: Any, parcel: Parcel) -> Any:
    """Send a parcel to every worker once; return the future that refers to it there."""
    for worker, answer in client.run(_present, on_error="return").items():
        if isinstance(answer, ImportError):
            raise ParameterError(f"worker {worker} cannot import this package: {answer}.")
    return client.scatter(parcel, broadcast=True, hash=False)


def call(function: Callable[[Piece], Result], piece: Piece) -> Result:
    """Return function(piece): this is what a worker runs."""
    return function(piece)


def _run_on(client: Any, parcel: Parcel, pieces: Sequence[Any], describe: str) -> list[Any]:
    """Send the parcel to each worker and each piece to one of them; an error or Ctrl-C cancels the rest."""
    sent = send(client, parcel)
    futures = [client.submit(call, sent, piece, pure=False) for piece in pieces]
    try:
        return [future.result() for future in watched(futures, describe)]
    except import_module("distributed").KilledWorker as error:
        raise ModelError(f"worker {error.last_worker.address} died while it asked the model, as others had.") from error
    finally:
        if client.status == "running":
            client.cancel([future for future in futures if not future.done()])


def _opened(packed: Any) -> Any:
    try:
        return pickle.loads(packed)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise ModelError(
            f"worker {_worker()} cannot load the model ({what}). Install what the model needs on that worker."
        ) from error


def _worker() -> str:
    try:
        return str(import_module("distributed").get_worker().address)
    except (ImportError, ValueError):
        return multiprocessing.current_process().name


def _present() -> bool:
    """Say that a worker can import this module, which it has to in order to run this."""
    return True


def watched(items: Iterable[Piece], describe: str, total: int | None = None) -> Iterable[Piece]:
    """Return items with a progress bar where they take long: on a terminal or in a notebook, never in a log."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a notebook without widgets gets a bar of text
        from tqdm.auto import tqdm

    off = False if _is_notebook() else None  # None: no bar where there is no terminal
    bar: Iterable[Piece] = tqdm(items, total=total, desc=describe, disable=off, delay=PATIENCE, leave=False)
    return bar


def _is_notebook() -> bool:
    """Say whether this runs in a Jupyter kernel, whose output is no terminal but shows a bar."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


def _packed(work: Any, told: Callable[[str], None] | None) -> Any:
    """Return work pickled for another process, with all the objects it holds; warn and return None if that fails."""
    try:
        return pickled(work)
    except Exception as error:
        message = f"the model cannot be sent to other processes ({error}): everything runs in this one."
        warnings.warn(message, OnbmacfWarning, stacklevel=3)
        if told is not None:
            told(message)
        return None


def pickled(work: Any) -> Any:
    """Return work pickled for another process, with all the objects it holds."""
    return _cloudpickle().dumps(work)


def _cloudpickle() -> Any:
    """Return the cloudpickle that joblib uses: a separate package, or in older releases a part of joblib."""
    try:
        return import_module("cloudpickle")
    except ImportError:
        return import_module("joblib.externals.cloudpickle")
