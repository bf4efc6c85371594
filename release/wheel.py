"""Install the built wheel away from the source, and do what a stranger does first: `make test-wheel`.

dist/*.whl  ->  a new environment  ->  commands, the service, types  ->  the fast tests, without src/
"""

import argparse
import json
import re
import shutil
import subprocess
import tempfile
import urllib.request
from pathlib import Path

from environments import ROOT, Environment, wheel

HERE = Path(__file__).parent
MAKE_TABLE = (
    "from onbmacf.datasets import load_heart as load; t, y = load(); t.assign(chd=y).to_csv('p.csv', index=False)"
)
ASKED = ("p.csv", "--target-column", "chd", "--immutable", "age,famhist")


def main() -> None:
    """Run every step; the first that fails ends it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tests", nargs="*", default=["tests"], help="files or folders of tests; none: 'none'")
    tests = parser.parse_args().tests
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment(Path(folder))
        environment.install(f"{wheel()}[all]")
        commands(environment)
        service(environment)
        types(environment)
        if tests != ["none"]:
            environment.fast_tests(tests)


def commands(environment: Environment) -> None:
    """Run the commands of the first pages on a table of the user's own."""
    environment.run("python", "-c", MAKE_TABLE)
    assert "If " in environment.run("onbmacf", "demo", "--people", 1)
    environment.run("onbmacf", "explain", *ASKED, "--rows", "3,17", "--format", "json", "--out", "answers.json")
    answers = json.loads((environment.home / "answers.json").read_text("utf-8"))
    assert [answer["row"] for answer in answers["answers"]] == [3, 17], answers
    environment.run("onbmacf", "audit", *ASKED, "--target", 0, "--most", 20, "--out", "report.html")
    assert "</html>" in (environment.home / "report.html").read_text("utf-8")
    environment.run("onbmacf", "map", "build", *ASKED, "--out", "people.onb")
    assert "462" in environment.run("onbmacf", "map", "info", "people.onb")
    for page in ("data-scientist", "auditor"):
        (line,) = re.findall(r"^\$ (onbmacf .*)$", (ROOT / f"docs/start/{page}.md").read_text("utf-8"), flags=re.M)
        environment.run(*line.split())
    print("demo, explain, audit, map, and the commands of the first pages: as they should be")


def service(environment: Environment) -> None:
    """Serve on a free port of this machine, ask once, and end it."""
    words = [environment.bin / "onbmacf", "serve", *ASKED, "--port", "0", "--no-open"]
    how = {"cwd": environment.home, "env": environment.variables(), "text": True}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **how)
    try:
        base, token = re.fullmatch(r"(http://127\.0\.0\.1:\d+)/\?token=(\S+)\s*", process.stdout.readline()).groups()
        request = urllib.request.Request(f"{base}/v1/schema", headers={"Authorization": f"Bearer {token}"})
        assert b"tobacco" in urllib.request.urlopen(request, timeout=60).read()
    finally:
        process.terminate()
        process.wait(60)
    print("serve: answers on loopback, and ends")


def types(environment: Environment) -> None:
    """Check a typed script of a user against what is installed, and run it."""
    shutil.copy(HERE / "typed.py", environment.home / "script.py")
    environment.install("mypy", "pandas-stubs", "pyright[nodejs]")
    environment.run("mypy", "--strict", "script.py")
    environment.run("pyright", "script.py")
    assert "must" in environment.run("python", "script.py")
    print("types: mypy --strict and pyright agree with a user's script, which runs")


if __name__ == "__main__":
    main()
