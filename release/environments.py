"""Environments that hold the built wheel and nothing of the source tree, and commands and tests in them."""

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATIENCE = 900  # seconds for one command
TESTS_PATIENCE = 4 * 3600
NO_TREE = ("src", ".git", ".venv", "build", "dist")
FOR_TESTS = ("catboost", "httpx", "hypothesis", "imodels", "interpret-core", "ipykernel", "jsonschema", "lightgbm")
FOR_TESTS += ("nbclient", "onnx", "polars", "pytest<9.2", "pytest-xdist", "xgboost")
TORCH = r"^(?:from|import) torch"  # tests that need it are left out: it weighs more than all the rest


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
        venv.create(folder / "venv")

    def install(self, *requirements: object) -> None:
        """Install with uv, as one resolution; a wheel is given as `path[extra]`."""
        python = self.bin / "python"
        command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python, *requirements]
        self._done([str(word) for word in command], False, PATIENCE, {})

    def run(self, program: str, *arguments: object, fails: bool = False, **variables: str) -> str:
        """Run a program of the environment in the empty folder, and return what it prints on both channels."""
        return self._done([str(self.bin / program), *map(str, arguments)], fails, PATIENCE, variables)

    def versions(self) -> dict[str, str]:
        """Return what is installed."""
        code = "from importlib.metadata import distributions as d\nfor x in d(): print(x.name.lower(), x.version)"
        return dict(line.replace("_", "-").split() for line in self.run("python", "-c", code).splitlines())

    def fast_tests(self, tests: list[str], kept: tuple[str, ...] = ()) -> None:
        """Run tests from a copy of the tree that has no source: what they import is what is installed.

        `kept` are requirements that whatever else the tests need has to leave as they are.
        """
        tree, constraints = self.home / "tree", self.home / "kept.txt"
        constraints.write_text("\n".join(kept), encoding="utf-8")
        shutil.copytree(ROOT, tree, ignore=lambda folder, _: NO_TREE if Path(folder) == ROOT else ())
        self.install("--constraint", constraints, *FOR_TESTS)
        assert "site-packages" in self.run("python", "-c", "import onbmacf; print(onbmacf.__file__)")
        options = ["--rootdir", tree, "-c", tree / "pyproject.toml", "-p", "no:cacheprovider", "-rf", "-m", "not long"]
        left_out = [path for path in tree.rglob("test_*.py") if re.search(TORCH, path.read_text("utf-8"), flags=re.M)]
        print("without", *(str(path.relative_to(tree)) for path in left_out), flush=True)
        options += [word for path in left_out for word in ("--ignore", path)]
        words = [self.bin / "python", "-m", "pytest", *options, *(tree / path for path in tests)]
        print(self._done([str(word) for word in words], False, TESTS_PATIENCE, {"OMP_NUM_THREADS": "1"})[-2000:])

    def variables(self) -> dict[str, str]:
        """Return the variables of a shell that knows this environment only."""
        kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        return kept | {"PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}"}

    def _done(self, words: list[str], fails: bool, seconds: float, variables: dict[str, str]) -> str:
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        done = subprocess.run(words, cwd=self.home, env=self.variables() | variables, timeout=seconds, **how)
        if bool(done.returncode) != fails:
            sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}")
        return done.stdout
