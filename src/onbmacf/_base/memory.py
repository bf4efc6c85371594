"""Whether what is asked fits into memory, asked before the work.

needed bytes  ->  check_memory  ->  nothing, or an error with both numbers
"""

import os
from pathlib import Path

from onbmacf.errors import NotEnoughMemoryError

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")  # what a container may use


def check_memory(needed: float, what: str, remedy: str) -> None:
    """Raise an error if `needed` bytes are more than there are; say nothing where that cannot be known."""
    free = available_bytes()
    if free is not None and needed > free:
        raise NotEnoughMemoryError(
            f"{what} needs about {needed / 1e9:,.1f} GB of memory, and {free / 1e9:,.1f} GB are available. {remedy}"
        )


def available_bytes() -> int | None:
    """Return how many bytes this process can still get without swapping, or None."""
    known = [limit for limit in (_machine(), _container()) if limit is not None]
    return min(known, default=None)


def _machine() -> int | None:
    """Return what the system calls available; where it does not say, all there is."""
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
    """Return what is left of a container's limit; file pages count as free, since they give way."""
    try:
        limit = int((CGROUP / "memory.max").read_text(encoding="ascii"))  # "max": no limit
        used = int((CGROUP / "memory.current").read_text(encoding="ascii"))
        stat = dict(line.split() for line in (CGROUP / "memory.stat").read_text(encoding="ascii").splitlines())
        return max(0, limit - used + int(stat.get("file", 0)))
    except (OSError, ValueError):
        return None
