"""Fetch the eight tables of the benchmark, with the digests that it knows, into one folder: `make tables`."""

import sys
from pathlib import Path
from shutil import copy

from onbmacf.bench.datasets import PUBLISHED, locate

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for name in PUBLISHED:
    found = locate(name).path
    copy(found, folder / (name + "".join(found.suffixes)))
print(folder)
