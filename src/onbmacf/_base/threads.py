"""Work in chunks on threads: kernels release the interpreter lock, so chunks run at the same time."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


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
