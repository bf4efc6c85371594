"""Commands that are killed, ended or run out of disk, and gone on with: the result is that of a command left in peace.

python tests/helpers/kills.py          # all 20, prints what became of each, fails where one is not as it should be
python tests/helpers/kills.py bench    # those of a command

A model waits when so many parts are kept, and a benchmark says when so many cells are done: the blow falls then,
however fast the machine is. A disk is full where the system refuses files beyond a size, as `ulimit -f` does.
"""

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from commands import PATIENCE, command, kill_group, members, wait_for

N_ROWS = 320  # four parts
WAITING = """
import time
from pathlib import Path
import numpy as np
def predict(rows):
    while Path("wait").exists() and len(list(Path().glob("*.parts/*.onb"))) >= int(Path("wait").read_text()):
        Path("waiting").touch()
        time.sleep(0.01)
    return np.where(rows["pay"] + 4 * (rows["town"] == "B") > 50, "high", "low")
"""
TABLE = ("people.csv", "--model", "waiting:predict", "--target-column", "income")
METHODS = "NICE,GS,ONB-MACF,WACHTER"
COMMANDS = {
    "explain": ("explain", *TABLE, "--rows", "all", "--out", "out.csv"),
    "audit": ("audit", *TABLE, "--rows", "all", "--out", "out.html"),
    "bench": ("bench", "run", "--folder", "out", "--datasets", "saheart", "--methods", METHODS, "--factuals", 4,
              "--retrainings", 1),
}  # fmt: skip
CODES = {signal.SIGKILL: -9, signal.SIGTERM: 143}


class Blow(NamedTuple):
    """What is done to a command, and when: after so many parts or cells, or where a file is larger than some bytes."""

    command: str
    how: signal.Signals | None  # None: the disk is full
    at: int = 0
    share: float = 0.0  # for a full disk: of the largest file that the command writes

    def __str__(self):
        what = f"disk full at {self.share:.2f} of the largest file" if self.how is None else self.how.name
        return f"{self.command}: {what}" + ("" if self.how is None else f" after {self.at}")


BLOWS = [
    *[Blow("explain", signal.SIGKILL, at) for at in (0, 1, 2, 3)],
    *[Blow("explain", signal.SIGTERM, at) for at in (1, 3)],
    *[Blow("explain", None, share=share) for share in (0.02, 0.99)],
    *[Blow("audit", signal.SIGKILL, at) for at in (1, 3)],
    *[Blow("audit", signal.SIGTERM, at) for at in (2,)],
    *[Blow("audit", None, share=share) for share in (0.005, 0.99)],
    *[Blow("bench", signal.SIGKILL, at) for at in (0, 1, 2)],
    *[Blow("bench", signal.SIGTERM, at) for at in (0, 2)],
    *[Blow("bench", None, share=share) for share in (0.1, 0.9)],
]


def prepared(folder):
    """Make a folder with a table and a model in it."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(3)
    table = {"age": rng.integers(20, 70, N_ROWS), "pay": rng.normal(50, 15, N_ROWS).round(1)}
    table |= {"sex": rng.choice(["f", "m"], N_ROWS), "town": rng.choice(["A", "B", "C"], N_ROWS)}
    table["income"] = np.where(table["pay"] + 0.1 * table["age"] > 54, "high", "low")
    pd.DataFrame(table).to_csv(folder / "people.csv", index=False)
    (folder / "waiting.py").write_text(WAITING, encoding="utf-8")
    return folder


def start(name, folder, limit=None):
    return command(*COMMANDS[name], limit=limit, cwd=folder, start_new_session=True)


def whole(name, folder):
    """Run a command that nobody disturbs; return what is in its folder."""
    running = start(name, prepared(folder))
    _, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, err
    return content_of(folder)


def content_of(folder):
    """Return the files of a folder; of a benchmark's cells, which hold times, all but these."""
    files = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {str(path.relative_to(folder)): _without_times(path) for path in files}


def _without_times(path):
    raw = path.read_bytes()
    if path.parent.name != "cells":
        return raw
    import json

    return {key: value for key, value in json.loads(raw).items() if not key.endswith("_seconds")}


def results_of(content):
    """Return the files that a command has made, and nothing that was there before."""
    return {name: own for name, own in content.items() if name not in ("people.csv", "waiting.py")}


def strike(blow, folder, expected):
    """Disturb a command; check how it ends, and return the files that it leaves."""
    largest = max(len(str(own)) if isinstance(own, dict) else len(own) for own in results_of(expected).values())
    if blow.how is not None and blow.command != "bench":
        (folder / "wait").write_text(str(blow.at), encoding="utf-8")
    running = start(blow.command, folder, limit=int(blow.share * largest) if blow.how is None else None)
    try:
        said = _struck(blow, running, folder)
        _, err = running.communicate(timeout=PATIENCE)
        wait_for(lambda: not members(running.pid))
    finally:
        kill_group(running.pid)
    assert running.returncode == CODES.get(blow.how, 2), (running.returncode, said + err)
    if blow.how is not signal.SIGKILL:  # a server of processes may say that whoever asked it was killed
        assert "Traceback" not in err, err
    for name in ("wait", "waiting"):
        (folder / name).unlink(missing_ok=True)
    return content_of(folder)


def _struck(blow, running, folder):
    """Wait until the work is where the blow is to fall, and send it; a full disk comes by itself."""
    said = ""
    if blow.how is None:
        return said
    if blow.command == "bench":
        said = "".join(running.stderr.readline() for _ in range(1 + blow.at))
    else:
        wait_for((folder / "waiting").exists, running)
    running.send_signal(blow.how)
    return said


def check(blow, folder, expected):
    """Disturb a command and run it again: nothing is lost, the result is the same, and nothing else is left."""
    left = strike(blow, prepared(folder), expected)
    kept = [name for name in left if ".parts" in name or name.startswith("out/cells/")]
    assert blow.how is None or len(kept) >= blow.at, sorted(left)
    times = {name: (folder / name).stat().st_mtime_ns for name in kept}
    running = start(blow.command, folder)
    _, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, err
    found = content_of(folder)
    assert sorted(found) == sorted(expected), "what is left behind"
    assert {name for name in expected if found[name] != expected[name]} == set(), "other content"
    computed_again = [name for name in times if name in found and (folder / name).stat().st_mtime_ns != times[name]]
    assert not computed_again, f"computed again: {computed_again}"


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as place:
        known = {}
        blows = [blow for blow in BLOWS if blow.command in (sys.argv[1:] or COMMANDS)]
        for number, blow in enumerate(blows):
            if blow.command not in known:
                known[blow.command] = whole(blow.command, Path(place, "whole " + blow.command))
            folder = Path(place, f"struck {number}")
            try:
                check(blow, folder, known[blow.command])
                print(f"{blow}: as if nothing had happened", flush=True)
            except AssertionError as error:
                failed += 1
                print(f"{blow}: {str(error)[:1500]}", flush=True)
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(blows)} blows, {failed} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    main()
