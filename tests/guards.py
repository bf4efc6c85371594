"""What guards the borders, broken on purpose: for each line of the tables in tests/borders, a test goes red.

    python tests/guards.py          # every guard, in a copy of the package; fails where a test stays green
    python tests/guards.py rows     # those of one border

borders/test_guards.py checks that the lines and the tests are still there.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from borders.guard import Guard
from borders.guards_of_calls import MODEL, ROWS
from borders.guards_of_files import FILES, HELD, OUTPUTS, STALLS

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src"
SECONDS = 180  # a broken guard may make a test wait for ever: that is red, too
BORDERS = {"rows": ROWS, "model": MODEL, "outputs": OUTPUTS, "files": FILES, "held": HELD, "stalls": STALLS}


def place_of(guard: Guard) -> Path:
    """Return the file in which the test of a guard is."""
    return (TESTS / "borders" / guard.test.partition("::")[0]).resolve()


def copied(folder: Path) -> Path:
    """Return a copy of the package to break."""
    return Path(shutil.copytree(SOURCE, folder / "src", ignore=shutil.ignore_patterns("__pycache__")))


def check(guard: Guard, package: Path) -> str:
    """Break a guard in a copy of the package, and return what the test says; empty where it stays green."""
    source = package / "onbmacf" / guard.file
    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace(guard.right, guard.wrong), encoding="utf-8")
    try:
        return _failure(guard, package)
    finally:
        source.write_text(text, encoding="utf-8")


def _failure(guard: Guard, package: Path) -> str:
    """Run the test of a guard; return its last words if it fails."""
    test = f"{place_of(guard)}::{guard.test.partition('::')[2]}"
    words = [
        sys.executable,
        "-m",
        "pytest",
        test,
        "-q",
        "-x",
        "--tb=line",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
    ]
    there = {"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            words, cwd=TESTS.parent, env=os.environ | there, capture_output=True, text=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"not over within {SECONDS} s"
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{test} cannot be run:\n{done.stdout}{done.stderr}")
    lines = [line for line in done.stdout.splitlines() if re.match("(FAILED|E  |/.*Error|/.*Failed)", line)]
    return (lines[0] if lines else done.stdout[-300:]) if done.returncode else ""


def main() -> None:
    """Break every guard in turn."""
    chosen = sys.argv[1:] or list(BORDERS)
    green = []
    with tempfile.TemporaryDirectory() as folder:
        package = copied(Path(folder))
        for border, guards in ((name, BORDERS[name]) for name in chosen):
            for against, guard in guards.items():
                said = check(guard, package)
                print(f"{border}: {against}: {f'red: {said[-160:]}' if said else 'GREEN'}", flush=True)
                green += [] if said else [against]
    print(f"{sum(len(BORDERS[name]) for name in chosen)} guards broken, {len(green)} not seen: {green}")
    sys.exit(bool(green))


if __name__ == "__main__":
    main()
