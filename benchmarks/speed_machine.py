"""Describe the machine of a measurement, without host names or paths."""

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("onbmacf", "numpy", "scipy", "pandas", "scikit-learn", "xgboost", "onnxruntime", "dice-ml")


def machine():
    """Return the day, cores, processor, memory and versions."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "processor": processor(),
        "memory_gb": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := installed(name)) is not None},
    }


def processor():
    """Return the processor's model as the system names it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()


def installed(name):
    """Return a package's version, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
