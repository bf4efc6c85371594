"""Every extra alone installs, does what its page says, and is named where it lacks: `make test-extras`.

dist/*.whl  ->  one new environment per extra  ->  a user's few lines  ->  what is imported, what it weighs
"""

import argparse
import re
import tempfile
import time
from pathlib import Path

from environments import Environment, wheel

START = """
import json, warnings
from onbmacf import ONBMACF, Schema
from onbmacf.datasets import heart_network, load_heart
table, chd = load_heart()
model = heart_network().fit(table, chd)
explainer = ONBMACF().fit(table, model, schema=Schema.infer(table, immutable=["age"]))
answers = explainer.explain(table.iloc[[3, 4]], target=0)
assert len(answers.to_frame()) == 2
"""
# What a user of each extra does first; `core` is the package without any, and the benchmark is a command.
DOES = {
    "core": """
explainer.save("heart.onb")
again = ONBMACF.load("heart.onb", model).explain(table.iloc[[3, 4]], target=0)
assert again.sentences() == answers.sentences() and json.loads(answers.to_json())
assert explainer.explain(table.iloc[[4]], target=0, prove=True, ranges=True)[0].certificate
""",
    "cli": """
import subprocess
for words in (["onbmacf", "demo", "--people", "1"], ["onbmacf", "explain", "--rows", "3", "--format", "csv"]):
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0 and "tobacco" in done.stdout, done
""",
    "plot": 'answers.plot().figure.savefig("a.png")',
    "report": """
from onbmacf.report import audit_report
report = audit_report(explainer, explainer.explain(table.head(20), target=0), target=0)
report.save("a.html")
assert "</html>" in open("a.html", encoding="utf-8").read()
assert "</html>" in answers[0].notice(explainer).html()
""",
    "widget": "assert explainer.widget(table.iloc[4]).comm is not None",
    "web": """
import re, subprocess, sys, urllib.request
code = "from start import *; import onbmacf; onbmacf.serve(explainer, table, port=0, open_browser=False)"
process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
base, token = re.search(r"(http://127\\.0\\.0\\.1:[0-9]+)/[?]token=(\\S+)", process.stdout.readline()).groups()
asked = urllib.request.Request(base + "/v1/schema", headers={"Authorization": "Bearer " + token})
assert b"tobacco" in urllib.request.urlopen(asked, timeout=60).read()
process.terminate()
assert process.wait(60) == 0
""",
    "dask": """
import dask.dataframe
rows = dask.dataframe.from_pandas(table.head(4), npartitions=2)
assert len(explainer.explain(rows, target=0)) == 4
""",
    "files": """
import skops.io
from sklearn.linear_model import LogisticRegression
from onbmacf.io import load_model, read_table
table = table.select_dtypes("number")
model = LogisticRegression(max_iter=1000).fit(table, chd)
table.to_excel("a.xlsx", index=False), table.to_parquet("a.parquet"), skops.io.dump(model, "a.skops")
for name in ("a.xlsx", "a.parquet"):
    assert read_table(name).shape == table.shape
assert (load_model("a.skops", table).predict(table) == model.predict(table)).all()
""",
    "all": """
import subprocess
assert subprocess.run(["onbmacf", "audit", "--most", "10", "--out", "a.html"]).returncode == 0
""",
    "bench": """
import subprocess
words = "bench run --folder b --datasets saheart --methods ONB-MACF,NICE --factuals 5 --retrainings 0 --strict"
assert subprocess.run(["onbmacf", *words.split()]).returncode == 0
""",
}
# Without any extra: what is asked, and the extra that the one sentence names.
LACKS = {
    "cli": 'import runpy, sys; sys.argv = ["onbmacf"]; runpy.run_module("onbmacf", run_name="__main__")',
    "plot": "answers.plot()",
    "report": "answers[0].notice(explainer).html()",
    "widget": "explainer.widget(table.iloc[4])",
    "web": "import onbmacf; onbmacf.serve(explainer, table)",
    "files": 'open("a.parquet", "wb"); from onbmacf.io import read_table; read_table("a.parquet")',
    "bench": 'import os; os.environ["XDG_CACHE_HOME"] = "."; from onbmacf.bench.datasets import locate; locate("wine")',
}
COST = """
import sys, time
before, start = set(sys.modules), time.perf_counter()
import onbmacf
first = time.perf_counter()
print("import onbmacf:", len(set(sys.modules) - before), "modules,", round(1000 * (first - start), 1), "ms")
from onbmacf import ONBMACF
roots = {name.split(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
brought = sorted(roots & {"joblib", "numpy", "pandas", "scipy", "sklearn"})
print("from onbmacf import ONBMACF:", round(1000 * (time.perf_counter() - first)), "ms, with", *brought)
"""


def main() -> None:
    """Try each extra that is named, or every one but `bench`, which brings torch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("extras", nargs="*", default=[extra for extra in DOES if extra != "bench"])
    for extra in parser.parse_args().extras:
        with tempfile.TemporaryDirectory() as folder:
            attempt(extra, Environment(Path(folder)))


def attempt(extra: str, environment: Environment) -> None:
    """Install one extra, do what it is for, and print what it brought."""
    start = time.perf_counter()
    extras = {"core": "", "bench": "[bench,cli]"}.get(extra, f"[{extra}]")
    environment.install(f"{wheel()}{extras}")
    (environment.home / "start.py").write_text(START, encoding="utf-8")
    installed = time.perf_counter() - start
    environment.run("python", "-c", f"from start import *\n{DOES[extra]}")
    packages = len(environment.versions())
    print(
        f"{extra}: {packages} packages, {megabytes(environment):.0f} MB, installed in {installed:.0f} s: works",
        flush=True,
    )
    if extra == "core":
        print(environment.run("python", "-c", COST), end="")
        for lacked, code in LACKS.items():
            printed = environment.run("python", "-c", f"from start import *\n{code}", fails=True, ONBMACF_DATA="")
            check_sentence(lacked, printed)


def check_sentence(extra: str, printed: str) -> None:
    """Stop unless the last line of what is printed names the extra and how to get it."""
    last = printed.strip().splitlines()[-1]
    assert re.search(rf"pip install 'onbmacf\[{extra}\]'", last), printed
    print(f"  without {extra}: {last}")


def megabytes(environment: Environment) -> float:
    """Return what the packages of an environment weigh on disk."""
    (folder,) = environment.bin.parent.glob("[Ll]ib/**/site-packages")
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


if __name__ == "__main__":
    main()
