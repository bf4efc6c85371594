"""What the tests of the command line share: a command in a process of its own, and what bad input must look like."""

import os
import re
import signal
import subprocess
import sys


def one_line(code, err, pattern):
    assert code == 2
    last = err.splitlines()[-1]
    assert last.startswith("onbmacf: ")
    assert re.search(pattern, last), last
    assert "Traceback" not in err


def hears_ctrl_c():
    """Undo what a shell does to commands in the background: they would ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def command(*words):
    code = "from onbmacf.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=environment, preexec_fn=hears_ctrl_c,
    )  # fmt: skip
