"""The only module that imports numba: how kernels are compiled, and how they run on threads.

Kernels are compiled on first use and cached on disk. They release the interpreter lock and never reorder
floating-point sums (no `fastmath`). None uses numba's parallel mode: threads come from `map_chunks`, so
kernels can be called from any thread, any number of times at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile `function` on first use."""
    return _compile(function, inline=False)


def inlined(function: Function) -> Function:
    """Compile `function` into the kernels that call it: for innermost loops, where a call would cost too much."""
    return _compile(function, inline=True)


def _compile(function: Function, inline: bool) -> Function:
    """Compile with a cache on disk, or without one if neither the package's nor the user's cache folder is writable."""
    try:
        compiled: Any = numba.njit(function, nogil=True, forceinline=inline, cache=True)
    except RuntimeError:
        compiled = numba.njit(function, nogil=True, forceinline=inline)
    return compiled


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
    threads = min(threads or cores(), len(spans))
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
