"""What several scripts share: the machine, figures as Markdown, pages with places, processes of their own.

    figures  ->  table  ->  save (JSON; and what lies between `<!-- name -->` and `<!-- /name -->` of a page)
    script, arguments  ->  child (a fresh process, one thread)  ->  what it printed, as a dict

What was not measured is None: it is shown as such, and no ratio is made of it.
"""

import contextlib
import io
import json
import os
import platform
import subprocess
import sys
import time
import warnings
from importlib import metadata
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
CACHE = HERE.parent / ".speed"
TARGET = 1  # the label to reach
SEED = 0
PATIENCE = 1800  # seconds after which a process is stopped
QUICK = "A quick run to try the script: these figures mean little.\n\n"
PACKAGES = ("onbmacf", "numpy", "scipy", "pandas", "scikit-learn", "xgboost", "onnxruntime", "dice-ml")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def names(text):
    """Return the parts of a comma-separated list."""
    return text.split(",")


def add_output(parser):
    """Add the options that all speed scripts have."""
    parser.add_argument("--quick", action="store_true", help="small sizes, to try the script")
    parser.add_argument("--cache", type=Path, default=CACHE, help="trained models and NICE")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--write", type=Path, help="put the tables into the places of this page")


def save(options, results, places):
    """Write the figures to the JSON file and the texts into the page, where asked to."""
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if options.write is not None:
        fill(options.write, places)


def fill(page, places):
    """Replace what lies between the marks of a page by the text of each place; the words around it stay."""
    text = page.read_text(encoding="utf-8")
    for name, part in places.items():
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        if start not in text or end not in text:
            raise SystemExit(f"{page.name} has no place between {start.strip()!r} and {end!r}.")
        before, rest = text.split(start, 1)
        text = f"{before}{start}{part.rstrip()}\n{rest[rest.index(end) :]}"
    page.write_text(text, encoding="utf-8")


def table(heads, lines):
    """Return a Markdown table."""
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def shown(value, digits):
    """Return a number as text."""
    return "not measured" if value is None else f"{value:,.{digits}f}"


def over(above, below):
    """Return a ratio, or None where either was not measured."""
    return None if above is None or not below else above / below


def mean(values):
    """Return the mean of what was measured, or None if nothing was."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def spread(values, digits=2):
    """Return the median of what was measured, and its ends, as text."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return "not measured"
    return f"{np.median(known):.{digits}f} ({known[0]:.{digits}f} to {known[-1]:.{digits}f})"


def machine():
    """Return the day, cores, processor, memory and versions; no host names and no paths."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "date": time.strftime("%Y-%m-%d"),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "processor": models[0] if models else platform.processor(),
        "memory_gb": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := installed(name)) is not None},
    }


def installed(name):
    """Return a package's version, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def about(machine):
    """Return a sentence about the machine and the versions."""
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    return (
        f"{machine['date']}, {machine['cores']} cores of {machine['processor']}, {machine['memory_gb']} GB of memory, "
        f"{machine['system']}, Python {machine['python']}; {versions}."
    )


def child(script, *arguments, cache=CACHE, with_nice=True):
    """Return what a script of this folder prints in a process of its own; a failure is a result too."""
    print("...", script, *arguments, file=sys.stderr, flush=True)
    command = [str(part) for part in (sys.executable, HERE / script, *arguments)]
    folders = [HERE.parent / "src", *[nice_folder(cache)] * with_nice]
    path = os.pathsep.join(str(Path(folder).resolve()) for folder in folders)
    around = os.environ | ONE_THREAD | {"PYTHONPATH": path}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=around, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return {"failed": f"took longer than {PATIENCE} s"}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]}
    return json.loads(done.stdout)


def printed(function, *arguments):
    """Print what a function returns as one line of JSON, keeping all other output away from it."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        answer = function(*arguments)
    print(json.dumps(answer))


def nice_folder(cache):
    """Return a folder with NICEx, installed there on first use.

    NICEx asks for numpy and pandas below 2 and runs unchanged on later ones, so it is installed without what it depends
    on. That lets it share one environment, and thereby the very same pipelines, with all other methods.
    """
    folder = Path(cache) / "packages" / "NICEx"
    if not (folder / "nice").exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), "NICEx"]
        subprocess.run(command, check=True)
    return folder


def nice_version(cache):
    """Return the version of NICEx in its folder."""
    return next(metadata.distributions(name="NICEx", path=[str(nice_folder(cache))])).version


class Smooth:
    """Uniform rows, and the smooth model that gives half of them each label.

    The label says whether `linear score + 0.3 sin(7 first column)` is above its median, so balls are wide away from the
    boundary and narrow along it, as with a trained model.
    """

    classes_ = np.array([0, 1])

    def __init__(self, n_rows, n_columns):
        rng = np.random.default_rng(SEED)
        self.rows = rng.random((n_rows, n_columns))
        self.weights = rng.normal(size=n_columns)
        scores = self.rows @ self.weights + 0.3 * np.sin(7 * self.rows[:, 0])
        self.median = np.median(scores)
        self.labels = (scores > self.median).astype(np.intp)

    def predict(self, rows):
        """Return the label of each row."""
        rows = np.asarray(rows, dtype=np.float64)
        # Not a matrix product: its last decimals depend on the number of rows.
        scores = (rows * self.weights).sum(axis=1) + 0.3 * np.sin(7 * rows[:, 0])
        return (scores > self.median).astype(np.intp)
