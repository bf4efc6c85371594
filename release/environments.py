"""Environments that hold the built wheel and nothing of the source tree, and commands in them."""

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATIENCE = 900  # seconds for one command


def wheel() -> Path:
    """Return the wheel that `make dist` left for this Python."""
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    found = sorted(ROOT.glob(f"dist/onbmacf-*-{tag}-*.whl"))
    if len(found) != 1:
        sys.exit(f"dist/ must hold one wheel for {tag}, got {len(found)}: run make dist.")
    return found[0]


class Environment:
    """A new virtual environment, and an empty folder that is no part of a source tree."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "a folder, ñandú"
        self.home.mkdir(parents=True)
        self.bin = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        venv.create(folder / "venv", with_pip=True)

    def install(self, *requirements: object) -> None:
        """Install with pip: a wheel is given as `path[extra]`."""
        self.run("python", "-m", "pip", "install", "--quiet", *requirements)

    def run(self, program: str, *arguments: object, fails: bool = False, **variables: str) -> str:
        """Run a program of the environment in the empty folder, and return what it prints on both channels."""
        done = subprocess.run(
            [self.bin / program, *map(str, arguments)],
            cwd=self.home,
            env=self.variables() | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
        )
        if bool(done.returncode) != fails:
            sys.exit(f"{program} {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stdout}")
        return done.stdout

    def variables(self) -> dict[str, str]:
        """Return the variables of a shell that knows this environment only."""
        kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        return kept | {"PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}"}
