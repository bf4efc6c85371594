"""How long maps of large tables take, and how much memory: uniform rows, and complete tables of the benchmark.

    python benchmarks/speed_fit.py [--quick] [--million] [--cache FOLDER] [--json FILE] [--write docs/speed/README.md]

Each table has a process of its own (speed_cover.py). Uniform rows have the labels of a smooth model. Complete tables
are labelled by the 32-16 network, and 200 of their rows are explained in one call.
"""

import argparse
import json
from pathlib import Path

from speed_child import CACHE, child
from speed_page import QUICK, fill, shown, table

UNIFORM = ((10_000, 10), (100_000, 10), (100_000, 20))
MILLION = (1_000_000, 10)
WHOLE = {"adult": "adult", "give_me_some_credit": "Give Me Some Credit"}
COLUMNS = {  # figure: heading and digits
    "table_rows": ("rows", 0),
    "seconds": ("fit, s", 2),
    "balls": ("balls", 0),
    "peak_mb": ("peak memory, MB", 0),
    "explain_ms": ("explained, ms per row", 2),
}


def main():
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one small table, to try the script")
    parser.add_argument("--million", action="store_true", help="also a million uniform rows")
    parser.add_argument("--cache", type=Path, default=CACHE, help="trained models")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--write", type=Path, help="put the table into the place of this page")
    options = parser.parse_args()
    results = measured(options)
    text = QUICK * options.quick + page(results)
    print(text)
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if options.write is not None:
        fill(options.write, {"fit": text})


def measured(options):
    """Return the figures of every table, by its name."""
    sizes = UNIFORM[:1] if options.quick else [*UNIFORM, *[MILLION] * options.million]
    found = {}
    for rows, columns in sizes:
        own = child("speed_cover.py", "cover", rows, columns, "fast", cache=options.cache)
        found.setdefault(f"uniform, {columns} numbers", []).append({"table_rows": rows} | own)
    for name in {} if options.quick else WHOLE:
        found[WHOLE[name]] = [complete(name, options.cache)]
    return found


def complete(name, cache):
    """Return the figures of a complete table."""
    from speed_problem import write_problem

    folder = cache / "problems" / name
    write_problem(name, folder)
    own = child("speed_cover.py", "fit", folder, 200, cache=cache)
    if "failed" in own:
        return own
    return own | {"seconds": own["fit_seconds"], "explain_ms": 1000 * own["explain_seconds"] / own["rows"]}


def page(results):
    """Return one line per table."""
    lines = []
    for name, runs in results.items():
        for own in runs:
            if "failed" in own:
                lines.append([name, f"not measured: {own['failed'][:100]}", *[""] * (len(COLUMNS) - 1)])
                continue
            cells = [shown(own[key], digits) if key in own else "" for key, (_, digits) in COLUMNS.items()]
            lines.append([name, *cells])
    return table(["table", *(head for head, _ in COLUMNS.values())], lines)


if __name__ == "__main__":
    main()
