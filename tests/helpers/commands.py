"""What tests of other processes share: a command, how to wait for what it does, and what bad input must look like."""

import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

PATIENCE = 600  # seconds; reached only where nothing happens any more, however busy the machine is


def one_line(code, err, pattern):
    assert code == 2
    last = err.splitlines()[-1]
    assert last.startswith("onbmacf: ")
    assert re.search(pattern, last), last
    assert "Traceback" not in err


def hears_ctrl_c():
    """Undo what a shell does to commands in the background: they would ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def command(*words, limit=None, **how):
    """Start a command; with a limit, the system refuses to let a file of its grow beyond so many bytes."""
    code = "from onbmacf.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUNBUFFERED": "1"}
    how = {"stdout": subprocess.PIPE, **how}
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)], stderr=subprocess.PIPE, text=True,
        env=environment, preexec_fn=lambda: _prepared(limit), **how,
    )  # fmt: skip


def _prepared(limit):
    hears_ctrl_c()
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def wait_for(event, process=None):
    """Wait until something is the case; it is an error if the process that must bring it about ends before."""
    end = time.monotonic() + PATIENCE
    while not event():
        assert process is None or process.poll() is None, f"it ended with exit code {process.returncode} before"
        assert time.monotonic() < end, f"nothing happened for {PATIENCE} s"
        time.sleep(0.01)


def members(group):
    """Return the processes of a group that are alive; a dead one that nobody has asked after is not."""
    if not Path("/proc/self/stat").exists():
        return [group] if _answers(group) else []
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, in_group = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[:3]
        except (OSError, ValueError):
            continue  # it ended while we looked
        if int(in_group) == group and state not in "ZX":
            found.append(int(path.parent.name))
    return found


def _answers(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def kill_group(group):
    """End what is left of a group, if anything is."""
    if members(group):
        os.killpg(group, signal.SIGKILL)
