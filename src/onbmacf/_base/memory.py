"""Check before the work whether it fits into memory.

bytes needed  ->  check_memory  ->  nothing, or an error with both numbers
"""

import os
from pathlib import Path

from onbmacf.errors import NotEnoughMemoryError

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")  # limits of a container


def check_memory(needed: float, what: str, remedy: str) -> None:
    """Raise an error if more than the available bytes are needed; do nothing where these are not known."""
    free = available_bytes()
    if free is not None and needed > free:
        raise NotEnoughMemoryError(
            f"{what} needs about {needed / 1e9:,.1f} GB of memory, and {free / 1e9:,.1f} GB are available. {remedy}"
        )


def available_bytes() -> int | None:
    """Return how many bytes this process can still allocate without swapping, or None if unknown."""
    known = [limit for limit in (_machine(), _container()) if limit is not None]
    return min(known, default=None)


def _machine() -> int | None:
    """Return the memory that the system reports as available, or else all physical memory."""
    try:
        lines = dict(line.split(":", 1) for line in MEMINFO.read_text(encoding="ascii").splitlines())
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _container() -> int | None:
    """Return what is left of a container's limit; the page cache counts as free, since it can be reclaimed."""
    try:
        limit = int((CGROUP / "memory.max").read_text(encoding="ascii"))  # "max": no limit
        used = int((CGROUP / "memory.current").read_text(encoding="ascii"))
        stat = dict(line.split() for line in (CGROUP / "memory.stat").read_text(encoding="ascii").splitlines())
        return max(0, limit - used + int(stat.get("file", 0)))
    except (OSError, ValueError):
        return None
