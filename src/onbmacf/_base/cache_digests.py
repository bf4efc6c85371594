"""Damaged files of a cache of kernels are found before they are loaded: numba would run what they hold.

    discard_damaged(folder)  ->  compile, which may write files  ->  record(folder)

Both are called by the process that holds the folder's lock. What has no digest, or another one, is removed, and the
kernel is compiled again.
"""

import hashlib
import json
from contextlib import suppress
from functools import cache
from pathlib import Path

NAME = "digests.json"
PATTERN = "*.nb[ic]"  # numba's indexes and machine code, which lie in a folder of numba's own below ours


@cache
def discard_damaged(folder: Path) -> None:
    """Remove the files of a cache that are not what was written; once per process."""
    known = _known(folder)
    with suppress(OSError):
        for name in times(folder):
            if known.get(name) != _digest(folder / name):
                (folder / name).unlink(missing_ok=True)


def record(folder: Path, before: dict[str, float]) -> None:
    """Write down the digests of files that are new or changed since `before`; a full disk leaves the old digests."""
    with suppress(OSError):
        changed = {name for name, when in times(folder).items() if before.get(name) != when}
        if changed:
            digests = _known(folder) | {name: _digest(folder / name) for name in changed}
            draft = folder / f"{NAME}.draft"
            draft.write_text(json.dumps(digests), encoding="utf-8")
            draft.replace(folder / NAME)


def times(folder: Path) -> dict[str, float]:
    """Return when each file of a cache was written, by its place in the folder."""
    with suppress(OSError):
        return {path.relative_to(folder).as_posix(): path.stat().st_mtime_ns for path in folder.rglob(PATTERN)}
    return {}


def _known(folder: Path) -> dict[str, str]:
    try:
        return dict(json.loads((folder / NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
