"""Run a script of this folder in a process of its own: one thread, this package and NICE on the path."""

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from speed_pipelines import ONE_THREAD

HERE = Path(__file__).parent
OWN_CODE = HERE.parent / "src"
CACHE = HERE.parent / ".speed"
PATIENCE = 1800  # seconds after which a script is stopped


def child(script, *arguments, cache=CACHE):
    """Return what a script prints; a failure is a result too."""
    print("...", script, *arguments, file=sys.stderr, flush=True)
    command = [str(part) for part in (sys.executable, HERE / script, *arguments)]
    path = os.pathsep.join(str(Path(folder).resolve()) for folder in (OWN_CODE, nice_folder(cache)))
    around = os.environ | ONE_THREAD | {"PYTHONPATH": path}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=around, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return {"failed": f"took longer than {PATIENCE} s"}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]}
    return json.loads(done.stdout)


def nice_version(cache):
    """Return the version of NICEx in its folder."""
    return next(metadata.distributions(name="NICEx", path=[str(nice_folder(cache))])).version


def nice_folder(cache):
    """Return a folder with NICEx, installed there on first use.

    NICEx asks for numpy and pandas below 2 and runs unchanged on later ones, so it is installed without what it depends
    on. That lets it share one environment, and thereby the very same pipelines, with all other methods.
    """
    folder = Path(cache) / "packages" / "NICEx"
    if not (folder / "nice").exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), "NICEx"]
        subprocess.run(command, check=True)
    return folder
