"""Which process of a pool died first: the pool itself ends all the others before it says that one is dead."""

import multiprocessing
import signal
import threading
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any

EVERY = 0.1  # seconds after which processes started since are watched, too
ENDED = (-signal.SIGKILL, -signal.SIGTERM)  # how the pool ends the others


class Watch:
    """Waits, in a thread, for the first child of this process that ends by something other than its own return.

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

    def __enter__(self) -> "Watch":
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
            self._dead = [children[one] for one in ended or [] if one in children and children[one].exitcode != 0]
