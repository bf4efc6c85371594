"""Files that are either whole or not there."""

import os
from contextlib import suppress
from pathlib import Path

from onbmacf.errors import StoreError


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file beside its place, then move it there: a reader never sees half of it."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        _forget(beside)
        raise StoreError(f"could not write {path}: {error.strerror}. A file there before is untouched.") from error
    except BaseException:
        _forget(beside)
        raise


def _forget(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)
