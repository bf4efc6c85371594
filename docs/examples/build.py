"""Make the example reports again, each by the command that its last section prints.

python docs/examples/build.py        (titanic.csv is found as the benchmark finds it, see ONBMACF_DATA)
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from onbmacf.bench.sources import locate

HERE = Path(__file__).parent
COMMANDS = {
    "heart": "audit --by age --out heart.html",
    "titanic": (
        "audit titanic.csv --model titanic_network:predict --target-column survived --target survived --drop-missing "
        "--immutable gender,age,country --by gender,age --most 2000 --out titanic.html"
    ),
}


def build(name: str, folder: Path, out: Path, suffix: str = ".html") -> Path:
    """Run one example's command in a folder that holds what it needs; put the report into `out`."""
    shutil.copy(HERE / "titanic_network.py", folder)
    if name == "titanic":
        shutil.copy(locate("titanic").path, folder / "titanic.csv")
    words = COMMANDS[name].replace(".html", suffix).split()
    subprocess.run([sys.executable, "-m", "onbmacf", *words], cwd=folder, check=True)
    return Path(shutil.copy(folder / f"{name}{suffix}", out))


if __name__ == "__main__":
    for name in sys.argv[1:] or COMMANDS:
        for suffix in (".html", ".md"):
            with tempfile.TemporaryDirectory() as folder:
                print(build(name, Path(folder), HERE, suffix))
