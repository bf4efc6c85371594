"""Writing files: complete or absent, only a regular file is ever replaced, and one writer at a time."""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from onbmacf.errors import StoreError

KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
}


# --- whole files ------------------------------------------------------------------------------------------------------


def write_atomically(path: Path, content: bytes) -> None:
    """Write to a temporary file beside `path`, then rename it: a reader never sees half a file."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    check_replaceable(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        forget_dead_drafts(path)
        beside.unlink(missing_ok=True)
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        _forget(beside)
        raise StoreError(f"could not write {path}: {error.strerror}. An existing file there is unchanged.") from error
    except BaseException:
        _forget(beside)
        raise


def check_replaceable(path: Path) -> None:
    """Raise an error if there is something at `path` that is no regular file: a link, a device, a pipe, a folder."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:  # nothing is there, or it cannot be looked at: writing will say so
        return
    if not stat.S_ISREG(mode):
        kind = KINDS.get(stat.S_IFMT(mode), "no regular file")
        raise StoreError(f"{path} is {kind}: only a regular file is written or replaced. Name another file.")


def check_space(path: Path, needed: int) -> None:
    """Raise an error if the disk that holds the folder of `path` has fewer bytes left than needed."""
    try:
        free = shutil.disk_usage(path.parent).free
    except OSError:  # it cannot be told
        return
    if free < needed:
        raise StoreError(
            f"{path} may need {needed:,} bytes, and the disk has {free:,} left. Free some, or write to another disk."
        )


def forget_dead_drafts(path: Path) -> None:
    """Remove what writers of this file that were killed have left beside it."""
    for draft in path.parent.glob(f".{escape(path.name)}.*"):
        pid = draft.name.rpartition(".")[2]
        if pid.isdecimal() and not is_alive(int(pid)):
            _forget(draft)


def is_alive(pid: int) -> bool:
    """Say whether a process is there."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it belongs to somebody else
        return True
    return True


def _forget(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)


# --- one writer at a time ---------------------------------------------------------------------------------------------


try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]


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
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)  # a link could lead to any file of the user's
    while True:
        opened = os.open(lock, flags, 0o600)
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
