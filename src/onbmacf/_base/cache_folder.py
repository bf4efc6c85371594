"""Where compiled kernels are kept, and the lock that lets only one process at a time compile them.

The first of these folders that can be written: the one in NUMBA_CACHE_DIR, the package's own, the user's cache folder,
a folder of the user's in the temporary folder. A subfolder per state of the source: numba looks only at the file of the
outermost function to tell whether a cached kernel is old (docs/decisions/0048-first-use.md).
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

from onbmacf.errors import OnbmacfWarning

try:
    import fcntl
except ImportError:  # Windows: processes may compile the same kernels; each writes whole files, so nothing breaks
    fcntl = None  # type: ignore[assignment]

NAME = "onbmacf-kernels"


@cache
def cache_folder(source: Path) -> Path | None:
    """Return the folder for the kernels of the source files in a folder; None, with a warning, where there is none."""
    for base in _bases(source):
        folder = base / f"{NAME}-{_digest(source)}"
        if _is_safe(folder):
            return folder
    warnings.warn(
        "no cache folder can be written: kernels are compiled in every process again, which takes seconds. "
        "Let NUMBA_CACHE_DIR name a folder that can be written.",
        OnbmacfWarning,
        stacklevel=2,
    )
    return None


def _bases(source: Path) -> Iterator[Path]:
    """Yield the folders that may hold the cache, the best first."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(os.environ["NUMBA_CACHE_DIR"])
    yield source / "__pycache__"
    with suppress(RuntimeError):  # no home folder
        home = Path.home()
        local = {"win32": "AppData/Local", "darwin": "Library/Caches"}.get(sys.platform, ".cache")
        yield Path(os.environ.get("XDG_CACHE_HOME") or home / local)
    user = os.getuid() if hasattr(os, "getuid") else "user"
    with suppress(OSError):  # no temporary folder
        yield Path(tempfile.gettempdir()) / f"onbmacf-{user}"


def _digest(source: Path) -> str:
    """Return a digest of the source files in a folder and the one above it: kernels are compiled from several files."""
    files = sorted([*source.glob("*.py"), *source.parent.glob("*.py")])
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def _is_safe(folder: Path) -> bool:
    """Create a folder; say whether files can be written there, and by nobody else: they are run as code."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=folder):
            pass
        return not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid()
    except OSError:
        return False


@contextmanager
def one_process_at_a_time(folder: Path | None) -> Iterator[None]:
    """Wait for the lock of a cache folder, and hold it; it ends with the process, however that ends."""
    if folder is None or fcntl is None:
        yield
        return
    with ExitStack() as held:
        with suppress(OSError):  # a full disk, or a file system without locks
            file = held.enter_context((folder / "lock").open("w"))
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
