"""Make the example reports again, each by the command that its last section prints.

python docs/examples/build.py        (the tables are found as the benchmark finds them, see ONBMACF_DATA)

`titanic.csv` is the benchmark's table, with the model's words 'survived' and 'died' for yes and no. `adult.csv` holds
the first 8,000 rows of the census table; `lots.csv` 3,000 of them with the sex of each row drawn by lot. The date in
the reports is fixed, so that a report changes only where its content does.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from onbmacf.bench.datasets import locate

HERE = Path(__file__).parent
DATE = "1767225600"  # 2026-01-01, as SOURCE_DATE_EPOCH
PEOPLE = "--target 1 --immutable sex,race,age --by sex,race"
COMMANDS = {
    "heart": "audit --by age --out heart.html",
    "titanic": (
        "audit titanic.csv --model titanic_network:predict --target-column survived --target survived --drop-missing "
        "--immutable gender,age,country --by gender,age --most 500 --cases 4 --out titanic.html"
    ),
    "adult": (
        f"audit adult.csv --model adult_models:trained --target-column income --drop fnlwgt {PEOPLE} --most 400 "
        "--cases 4 --out adult.html"
    ),
    "unfair": (
        f"audit lots.csv --model adult_models:unfair --drop fnlwgt,income {PEOPLE} --most 300 --cases 2 --actions 0 "
        "--out unfair.html"
    ),
    "fair": (
        f"audit lots.csv --model adult_models:fair --drop fnlwgt,income {PEOPLE} --most 300 --cases 2 --actions 0 "
        "--out fair.html"
    ),
}


def build(name: str, folder: Path, out: Path, suffix: str = ".html") -> Path:
    """Run one example's command in a folder that holds what it needs; put the report into `out`."""
    prepare(name, folder)
    words = COMMANDS[name].replace(".html", suffix).split()
    fixed = {**os.environ, "SOURCE_DATE_EPOCH": DATE}
    subprocess.run([sys.executable, "-m", "onbmacf", *words], cwd=folder, check=True, env=fixed)
    return Path(shutil.copy(folder / f"{name}{suffix}", out))


def prepare(name: str, folder: Path) -> None:
    """Put the models and the table of an example into a folder."""
    for module in ("titanic_network.py", "adult_models.py"):
        shutil.copy(HERE / module, folder)
    if name == "titanic":
        table = pd.read_csv(locate("titanic").path)
        fates = table["survived"].map({"yes": "survived", "no": "died"})
        table.assign(survived=fates).to_csv(folder / "titanic.csv", index=False)
    if name in ("adult", "unfair", "fair"):
        table = pd.read_csv(locate("adult").path).head(8000)
        table.to_csv(folder / "adult.csv", index=False)
        lots = table.head(3000)
        sexes = np.random.default_rng(0).permutation(lots["sex"].to_numpy())
        lots.assign(sex=sexes).to_csv(folder / "lots.csv", index=False)


if __name__ == "__main__":
    for name in sys.argv[1:] or COMMANDS:
        for suffix in (".html", ".md"):
            with tempfile.TemporaryDirectory() as folder:
                print(build(name, Path(folder), HERE, suffix))
