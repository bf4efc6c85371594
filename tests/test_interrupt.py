"""Ctrl-C ends fit and explain at once, as KeyboardInterrupt, and leaves no process behind."""

import os
import signal
import subprocess
import sys
import time

import pytest

from commands import hears_ctrl_c

PREAMBLE = """
import sys, time
import numpy as np, pandas as pd
from onbmacf import ONBMACF
from onbmacf._balls.cover import build_cover

def model(rows):
    time.sleep(0.05)
    return (rows["a"] + rows["b"] > 1).astype(int)

def ready():
    print("ready", flush=True)

rng = np.random.default_rng(0)
table = pd.DataFrame(rng.random((600, 2)), columns=list("ab"))
"""
WORK = {
    "asking the model": "ready(); [ONBMACF(predict_chunk=1).fit(table, model) for _ in range(99)]",
    "compiled cover": """
Z = rng.random((60_000, 12))
labels = (Z.sum(axis=1) > 6).astype(np.intp)
build_cover(Z[:500], labels[:500], fast=True)
ready()
[build_cover(Z, labels) for _ in range(99)]
""",
    "explain": "e = ONBMACF(predict_chunk=8).fit(table, model); ready(); e.explain(table)",
    "explain in two processes": """
e = ONBMACF(predict_chunk=64, n_jobs=2).fit(table, model)
e.explain(table.head(4))
ready()
e.explain(table)
""",
}


@pytest.mark.skipif(os.name != "posix", reason="needs process groups")
@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_ctrl_c_ends_it_and_leaves_no_process(work, tmp_path):
    script = tmp_path / "work.py"
    script.write_text(PREAMBLE + work)
    running = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hears_ctrl_c,
    )
    try:
        assert running.stdout.readline() == "ready\n"
        time.sleep(0.7)
        assert running.poll() is None, "the work was over before it was interrupted"
        running.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in running.communicate(timeout=20)[1]
        assert running.returncode != 0
        assert not lives(running.pid, patience=10)
    finally:
        if lives(running.pid):
            os.killpg(running.pid, signal.SIGKILL)


def lives(group, patience=0.0):
    """Say whether any process of a group is left once patience is over."""
    until = time.monotonic() + patience
    while True:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        if time.monotonic() >= until:
            return True
        time.sleep(0.05)
