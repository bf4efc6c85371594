"""One writer at a time: a lock on a file beside what is written. It ends with its process, however that ends.

    with sole_writer(Path("answers.csv")):  # a second writer gets a StoreError
        ...

The content of the lock's file says nothing, so damage to it means nothing. A file left by a killed process is taken
over (docs/decisions/0059-outputs.md).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from onbmacf.errors import StoreError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def sole_writer(path: Path, suffix: str = ".writing") -> Iterator[None]:
    """Hold the lock of a file; an error where another process holds it, or where nothing can be written."""
    lock = path.with_name(path.name + suffix)
    try:
        opened = _opened(lock)
    except OSError as error:
        raise StoreError(f"could not write {path}: {error.strerror}.") from error
    if opened is None:
        raise StoreError(f"{path} is being written by another process; try again when it is done.")
    try:
        yield
    finally:
        with suppress(OSError):
            lock.unlink(missing_ok=True)  # while it is locked: whoever waits for it sees that it is gone
        os.close(opened)


def _opened(lock: Path) -> int | None:
    """Return a locked file at this path; None where another process has locked it."""
    while True:
        opened = os.open(lock, FLAGS, 0o600)
        if not _is_ours(opened):
            os.close(opened)
            return None
        if _is_at(opened, lock):
            return opened
        os.close(opened)  # its holder has removed it in between: try the new one


def _is_ours(opened: int) -> bool:
    """Lock an open file; say whether it worked. A file system without locks lets everybody in."""
    if fcntl is None:  # pragma: no cover - Windows
        return True
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # pragma: no cover - depends on the file system
        return True
    return True


def _is_at(opened: int, lock: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(opened), lock.stat())
    except FileNotFoundError:
        return False
