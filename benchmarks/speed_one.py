"""One row per call: what an answer costs and how good it is, here and with NICE and DiCE, on the same pipelines.

    python benchmarks/speed_one.py [--quick] [--rows N] [--tables A,B] [--models A,B] [--methods A,B] [--code FOLDER]
                                   [--baseline FILE] [--cache FOLDER] [--json FILE] [--markdown FILE]

Every pair of a table and a model has a process of its own, with one thread, one after the other. The page is printed.
`--code` measures the package in another folder (its `src`) and `--baseline` compares with the JSON of an earlier run.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from speed_machine import machine
from speed_one_report import markdown
from speed_pipelines import MODELS, ONE_THREAD, TABLES

HERE = Path(__file__).parent
CACHE = HERE.parent / ".speed"
ROWS = 40
DICE_ROWS = 6
QUICK = {"rows": 6, "dice_rows": 2, "tables": ["saheart", "titanic"], "models": ["logistic", "forest"]}
METHODS = ("ours", "nice", "dice")


def main():
    """Measure, print, and write the results."""
    options = parsed()
    results = one_row_results(options)
    if options.baseline is not None:
        results["baseline"] = json.loads(options.baseline.read_text(encoding="utf-8"))["pairs"]
    write(results, markdown(results), options.json, options.markdown)


def parsed():
    """Return the command line's options, with the smaller sizes of a quick run filled in."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two tables, two models and few rows, to try the script")
    parser.add_argument("--rows", type=int, help=f"rows per pair (default: {ROWS})")
    parser.add_argument("--dice-rows", type=int, help=f"rows per pair for DiCE, which is slow (default: {DICE_ROWS})")
    parser.add_argument("--tables", type=names, help=f"of {','.join(TABLES)} (default: all)")
    parser.add_argument("--models", type=names, help=f"of {','.join(MODELS)} (default: all)")
    parser.add_argument("--methods", type=names, default=list(METHODS), help=f"of {','.join(METHODS)} (default: all)")
    parser.add_argument("--code", type=Path, help="folder of the package to measure (default: this one's src)")
    parser.add_argument("--baseline", type=Path, help="JSON of an earlier run to compare with")
    parser.add_argument("--cache", type=Path, default=CACHE, help="trained pipelines and NICE")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--markdown", type=Path, help="write the page to this file")
    options = parser.parse_args()
    defaults = {"rows": ROWS, "dice_rows": DICE_ROWS, "tables": list(TABLES), "models": list(MODELS)}
    for name, value in (defaults | (QUICK if options.quick else {})).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    return options


def names(text):
    """Return the parts of a comma-separated list."""
    return text.split(",")


def one_row_results(options):
    """Measure every pair."""
    rows = {name: options.dice_rows if name == "dice" else options.rows for name in options.methods}
    wanted = [f"{name}={most}" for name, most in rows.items()]
    pairs = {
        table: {
            model: child("speed_pair.py", options, table, model, options.cache, *wanted) for model in options.models
        }
        for table in options.tables
    }
    return {"machine": machine(), "quick": options.quick, "pairs": pairs}


def child(script, options, *arguments):
    """Run another script of this folder on the chosen code and return its result; a failure is a result too."""
    print("...", script, *arguments, file=sys.stderr, flush=True)
    command = [sys.executable, HERE / script, *arguments]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=surroundings(options))
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]}
    return json.loads(done.stdout)


def surroundings(options):
    """Return the variables of a child: one thread, the chosen code first, then NICE."""
    code = options.code or HERE.parent / "src"
    return os.environ | ONE_THREAD | {"PYTHONPATH": f"{Path(code).resolve()}{os.pathsep}{nice_folder(options.cache)}"}


def nice_folder(cache):
    """Return a folder with NICEx, installed there on first use.

    NICEx asks for numpy and pandas below 2 and runs unchanged on later ones, so it is installed without what it depends
    on. That lets it share one environment, and thereby the very same pipelines, with all other methods.
    """
    folder = Path(cache).resolve() / "packages" / "NICEx"
    if not (folder / "nice").exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), "NICEx"]
        subprocess.run(command, check=True)
    return folder


def write(results, text, json_path, markdown_path):
    """Print the page, and write both files where they are wanted."""
    print(text)
    if json_path is not None:
        json_path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if markdown_path is not None:
        markdown_path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
