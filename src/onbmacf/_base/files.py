"""Atomic writing: a file is either complete or absent."""

import os
from contextlib import suppress
from pathlib import Path

from onbmacf.errors import StoreError


def write_atomically(path: Path, content: bytes) -> None:
    """Write to a temporary file beside `path`, then rename it: a reader never sees half a file."""
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
        raise StoreError(f"could not write {path}: {error.strerror}. An existing file there is unchanged.") from error
    except BaseException:
        _forget(beside)
        raise


def _forget(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)
