"""The fast tests at both ends of the support window: `make test-floors`, `make test-newest`.

dist/*.whl  ->  a new environment with the oldest (newest) releases that pyproject.toml allows  ->  the fast tests
"""

import argparse
import re
import sys
import tempfile
import tomllib
from pathlib import Path

from environments import ROOT, Environment, wheel

OLDEST = ("--resolution", "lowest-direct")
USER_EXTRAS = ("cli", "dask", "files", "plot", "report", "web", "widget")


def main() -> None:
    """Install one end of the window, check that it is that end, and test it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("end", choices=["floors", "newest"])
    parser.add_argument("tests", nargs="*", default=["tests"])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment(Path(folder))
        floors = named_floors()
        how = (*OLDEST, *floors) if arguments.end == "floors" else ()
        environment.install(*how, f"{wheel()}[all]")
        print(
            "Python", *sys.version.split()[:1], *(f"{name} {version}" for name, version in sorted(shown(environment)))
        )
        if arguments.end == "floors":
            check_floors(environment, floors)
        environment.fast_tests(arguments.tests, tuple(f"{name}=={version}" for name, version in shown(environment)))


def named_floors() -> list[str]:
    """Return the requirements of the package and of the extras of its users, as pyproject.toml has them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lists = [project["dependencies"], *(project["optional-dependencies"][extra] for extra in USER_EXTRAS)]
    return [one for requirements in lists for one in requirements if not one.startswith("onbmacf")]


def shown(environment: Environment) -> list[tuple[str, str]]:
    """Return the versions of what pyproject.toml names."""
    names = [re.split(r"[>\[]", floor)[0] for floor in named_floors()]
    return [(name, version) for name, version in environment.versions().items() if name in names]


def check_floors(environment: Environment, floors: list[str]) -> None:
    """Stop if one requirement lifts the floor of another."""
    versions = environment.versions()
    for floor in floors:
        name, least = re.sub(r"\[.*\]", "", floor).split(">=")
        have = re.match(rf"{re.escape(least)}(\.0)*$", versions[name])
        if have is None:
            sys.exit(f"{floor} is not what it says, for something else needs {versions[name]}: raise this floor.")


if __name__ == "__main__":
    main()
