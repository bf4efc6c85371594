"""Atomic writing: a file is either complete or absent, and only a regular file is ever replaced.

    content  ->  draft beside the file  ->  fsync  ->  rename

A draft is named after its process; one whose process was killed is removed by the next writer of the same file.
"""

import os
import shutil
import stat
from contextlib import suppress
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
    for draft in path.parent.glob(f".{_literal(path.name)}.*"):
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


def _literal(name: str) -> str:
    """Return a name as a pattern that matches it alone."""
    return "".join(f"[{mark}]" if mark in "*?[" else mark for mark in name)


def _forget(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)
