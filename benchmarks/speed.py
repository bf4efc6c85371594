"""Measure the package's speed: ratios of times from one run on one machine, printed and written as Markdown and JSON.

    python benchmarks/speed.py [--quick] [--million] [--before FOLDER] [--data-dir FOLDER] [--cache FOLDER]
                               [--out FOLDER]

Every figure comes from its own process, one after the other. NICE and DiCE run in virtual environments that this script
creates in the cache folder. One row per call (speed_one.py) comes last. Absolute times are not judged.
"""

import argparse
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

from speed_machine import machine
from speed_one import PARTS, measured
from speed_one import parsed as one_row_options
from speed_one_report import markdown as one_row_page
from speed_report import markdown, ratios

HERE = Path(__file__).parent
BASELINE = HERE.parent / "docs" / "speed" / "one-row-before.json"  # one row per call before the search asked ahead
DATASETS = {"saheart": "heart", "heloc": "heloc", "adult": "adult"}
WHOLE = {"adult": "adult", "give_me_some_credit": "Give Me Some Credit"}
RIVALS = {"nice": ["NICEx", "scipy", "onnxruntime"], "dice": ["dice-ml", "onnxruntime"]}
FULL = {"plain": 25_000, "growth": (25_000, 50_000, 100_000, 200_000), "wide": 100_000, "rows": 200, "dice_rows": 20}
QUICK = {"plain": 4_000, "growth": (4_000, 8_000, 16_000), "wide": 8_000, "rows": 30, "dice_rows": 3}
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
OWN = ("ours", "paper")
PATIENCE = {"ours": 600, "paper": 600, "nice": 120, "dice": 120}  # seconds after which a method gets no further row


def main():
    """Measure, print, and write the results."""
    options = parsed()
    sizes = QUICK if options.quick else FULL
    results = {"machine": machine(), "quick": options.quick}
    results["cover"] = cover_results(sizes, options.million)
    folders = problems(["saheart"] if options.quick else [*DATASETS, "give_me_some_credit"], options)
    results["whole"] = {name: fitted(folders[name], sizes) for name in WHOLE if name in folders}
    results["explain"] = explain_results(folders, sizes, options.cache)
    results["ratios"] = ratios(results)
    publish(results, markdown(results), options.out, "results")
    one_row = one_row_results(options)
    publish(one_row, one_row_page(one_row), options.out, "one-row")


def publish(results, text, folder, name):
    """Print a page, and write it and its figures if there is a folder for them."""
    print(text)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        (folder / f"{name}.md").write_text(text, encoding="utf-8")


def one_row_results(options):
    """Measure one row per call, budgets, many calls in a row, and batches beside those of an earlier version."""
    if options.data_dir is not None:
        os.environ["ONBMACF_DATA"] = str(options.data_dir)
    wanted = {"cache": options.cache, "baseline": BASELINE, "before": options.before}
    arguments = [part for name, value in wanted.items() if value is not None for part in (f"--{name}", str(value))]
    return measured(one_row_options(["--parts", ",".join(PARTS), *arguments, *["--quick"] * options.quick]))


def parsed():
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small tables and the heart data only, to try the script")
    parser.add_argument("--million", action="store_true", help="also cover a million rows")
    parser.add_argument(
        "--data-dir", type=Path, help="folder with the benchmark's tables (default: found or downloaded)"
    )
    parser.add_argument("--before", type=Path, help="src of an earlier version, against which batches are timed")
    parser.add_argument("--cache", type=Path, default=HERE.parent / ".speed", help="environments and trained models")
    parser.add_argument("--out", type=Path, help="write the pages and their figures to this folder")
    return parser.parse_args()


def cover_results(sizes, million):
    """Time the cover: against the plain functions, as the table grows, and of a wide table."""
    n = sizes["plain"]
    found = {"plain": cover(n, 10, "plain"), "fast": cover(n, 10, "fast"), "plain_rows": n}
    found["growth"] = {rows: cover(rows, 10, "fast") for rows in sizes["growth"]}
    found["wide_rows"], found["wide"] = sizes["wide"], cover(sizes["wide"], 20, "fast")
    found["million"] = cover(1_000_000, 10, "fast") if million else None
    return found


def cover(rows, columns, how):
    """Time one cover in its own process."""
    return child(f"cover of {rows:,} x {columns}, {how}", sys.executable, "speed_cover.py", "cover", rows, columns, how)


def problems(names, options):
    """Prepare the datasets: the same files for every method."""
    from speed_problem import write_problem

    folders = {name: options.cache / "problems" / name for name in names}
    for name, folder in folders.items():
        say(f"preparing {name}")
        write_problem(name, folder, options.data_dir)
    return folders


def fitted(folder, sizes):
    """Time the fit of a whole dataset, and some explanations."""
    return child(f"fit of {folder.name}", sys.executable, "speed_cover.py", "fit", folder, sizes["rows"])


def explain_results(folders, sizes, cache):
    """Time every method on every dataset and model, one after the other."""
    pythons = {**dict.fromkeys(OWN, sys.executable), **{name: environment(name, cache) for name in RIVALS}}
    rows = {**dict.fromkeys(pythons, sizes["rows"]), "dice": sizes["dice_rows"]}
    return {
        name: {
            kind: {
                method: explained(method, python, folders[name], kind, rows[method])
                for method, python in pythons.items()
            }
            for kind in ("network", "forest")
        }
        for name in DATASETS
        if name in folders
    }


def explained(method, python, folder, kind, rows):
    """Time one method on one problem."""
    label = f"{method} on {folder.name} with the {kind}"
    return child(label, python, "speed_method.py", method, folder, kind, rows, PATIENCE[method])


def environment(name, cache):
    """Return the interpreter of the virtual environment of a compared method, creating it if necessary."""
    folder = cache / "environments" / name
    python = folder / "bin" / "python"
    wanted = folder / "wanted.txt"
    if not (wanted.exists() and wanted.read_text() == " ".join(RIVALS[name])):
        say(f"creating the environment of {name}")
        venv.create(folder, clear=True, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *RIVALS[name]], check=True, env=surroundings(python))
        wanted.write_text(" ".join(RIVALS[name]))
    return python


def child(label, python, script, *arguments):
    """Run another script of this folder and return its result; a failure is a result too."""
    say(label)
    command = [str(part) for part in (python, HERE / script, *arguments)]
    more = ONE_THREAD if script == "speed_method.py" else {}
    done = subprocess.run(command, capture_output=True, text=True, env=surroundings(python) | more)
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}"}
    return json.loads(done.stdout)


def surroundings(python):
    """Return the environment variables for an interpreter; other environments do not get our PYTHONPATH."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH" or python == sys.executable}


def say(what):
    """Print what is being measured."""
    print(f"... {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
