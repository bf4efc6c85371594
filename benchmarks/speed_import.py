"""What importing the package takes: processor time of fresh processes, and what they load.

    python benchmarks/speed_import.py [--quick] [--json FILE] [--write docs/speed/README.md]

What comes first loads what the later ones share, so each is measured in processes of its own; the median counts.
"""

import argparse
import json
import subprocess
import sys
import warnings

import numpy as np

from common import QUICK, add_output, machine, save
from common import table as markdown

PROCESSES = 15
LIBRARIES = ("numpy", "pandas", "scipy", "sklearn", "joblib", "matplotlib", "typer", "fastapi")
STATEMENTS = {
    "import onbmacf": "import onbmacf",
    "from onbmacf import ONBMACF, Schema": "from onbmacf import ONBMACF, Schema",
    "import onbmacf.cli": "import onbmacf.cli",
    "import pandas": "import pandas",
    "import sklearn.ensemble": "import sklearn.ensemble",
}
MEASURE = """
import json, sys, time
before, start = len(sys.modules), time.process_time()
{statement}
took = 1000 * (time.process_time() - start)
loaded = [name for name in {libraries!r} if name in sys.modules]
print(json.dumps({{"ms": took, "modules": len(sys.modules) - before, "libraries": loaded}}))
"""


def main():
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_output(parser)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = {"machine": machine(), "quick": options.quick, "imports": {}}
    for name, statement in STATEMENTS.items():
        results["imports"][name] = found = measured(statement, 1 if options.quick else PROCESSES)
        print(f"{name}: {found['ms']:.0f} ms, {found['modules']} modules, {', '.join(found['libraries'])}", flush=True)
    save(options, results, {"import": page(results)})


def measured(statement, n_processes):
    """Return the median of the milliseconds that fresh processes take, and what they load."""
    code = MEASURE.format(statement=statement, libraries=LIBRARIES)
    command = [sys.executable, "-c", code]
    runs = [json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout) for _ in range(n_processes)]
    return runs[0] | {"ms": float(np.median([run["ms"] for run in runs]))}


def page(results):
    """Return the table of all figures."""
    lines = [
        [f"`{name}`", f"{found['ms']:.0f}", str(found["modules"]), ", ".join(found["libraries"])]
        for name, found in results["imports"].items()
    ]
    heads = ["fresh process", "processor time, ms", "modules", "of these libraries"]
    return QUICK * results["quick"] + markdown(heads, lines)


if __name__ == "__main__":
    main()
