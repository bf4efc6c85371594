"""Pages whose code runs: what they print and draw, compared with what they show, or written into them.

A page has blocks of Python, each followed by what it prints or by the picture that it leaves in `ax`:

    ```python ... ```   ```text ... ```   ![what it shows](name.png)

`ONBMACF_WRITE_DOCS=1` writes what came out into the page and beside it.
"""

import base64
import io
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np

BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?(?:\n!\[[^\]]+\]\(([^)]+\.png)\)\n)?", flags=re.S)
WRITES = bool(os.environ.get("ONBMACF_WRITE_DOCS"))
DPI = 150
COLOURS = 64  # of a picture in the repository
CELLS = 24  # a side of the thumbnails that are compared
ALIKE = 0.03  # mean difference of their grey values, from 0 to 1


class Ran(NamedTuple):
    """What a block of a page printed and drew, and what the page shows."""

    code: str
    printed: str
    shown: str
    drawn: bytes | None
    picture: Path | None


def run(page: Path) -> list[Ran]:
    """Run the blocks of a page one after the other, with the same names."""
    names: dict = {}
    return [_run_block(names, page, *found) for found in BLOCK.findall(page.read_text(encoding="utf-8"))]


def _run_block(names: dict, page: Path, code: str, shown: str, picture: str) -> Ran:
    sink = io.StringIO()
    names.pop("ax", None)
    with redirect_stdout(sink):
        exec(compile(code, page.name, "exec"), names)
    drawn = _png(names["ax"].figure) if picture else None
    return Ran(code, sink.getvalue(), shown, drawn, page.parent / picture if picture else None)


def _png(figure) -> bytes:
    sink = io.BytesIO()
    figure.savefig(sink, format="png", dpi=DPI)
    return sink.getvalue()


def write(page: Path, blocks: list[Ran]) -> None:
    """Put what the blocks printed into the page, and what they drew beside it."""
    numbers = count()

    def fresh(found: re.Match) -> str:
        printed = blocks[next(numbers)].printed
        start, end = found.span(2)
        whole, at = found[0], found.start()
        return whole if start < 0 else whole[: start - at] + printed + whole[end - at :]

    page.write_text(BLOCK.sub(fresh, page.read_text(encoding="utf-8")), encoding="utf-8")
    for block in blocks:
        if block.picture is not None:
            _save_small(block.drawn, block.picture)


def _save_small(png: bytes, path: Path) -> None:
    """Save a picture with few colours."""
    path.write_bytes(_few_colours(png))


def small(content: str) -> str:
    """Return a picture with few colours, as base64."""
    return base64.b64encode(_few_colours(base64.b64decode(content))).decode("ascii")


def _few_colours(png: bytes) -> bytes:
    from PIL import Image

    sink = io.BytesIO()
    picture = Image.open(io.BytesIO(png)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    picture.save(sink, format="png", optimize=True)
    return sink.getvalue()


def difference(png: bytes, other: Path | bytes) -> float:
    """Return how much two pictures differ, from 0 to 1: as coarse grey thumbnails, so that fonts do not matter."""
    sources = [io.BytesIO(png), io.BytesIO(other) if isinstance(other, bytes) else other]
    one, other = (_thumbnail(source) for source in sources)
    return float(np.abs(one - other).mean())


def _thumbnail(source) -> np.ndarray:
    from PIL import Image

    with Image.open(source) as picture:
        size = (CELLS, CELLS)
        return np.asarray(picture.convert("L").resize(size, Image.Resampling.BOX), dtype=float) / 255


def without_numbers(text: str) -> str:
    """Return the words of a text: every number is 0, runs of blanks are one."""
    return re.sub(r"[ ]+", " ", re.sub(r"-?\d[\d,]*\.?\d*(e-?\d+)?", "0", text)).strip()


CONSOLE = re.compile(r"```console\n(.*?)```", flags=re.S)
PROGRESS = re.compile(r"^\d[\d,]* of \d[\d,]* rows explained.*\n", flags=re.M)


def commands(text: str) -> list[tuple[str, str]]:
    """Return the commands in a page's consoles, each with what is shown below it."""
    pieces = [piece for block in CONSOLE.findall(text) for piece in re.split(r"^\$ ", block, flags=re.M)[1:]]
    return [(line, shown) for line, _, shown in (piece.partition("\n") for piece in pieces)]


def run_command(line: str, folder: Path) -> str:
    """Run one `onbmacf ...` as a terminal of 84 columns shows it, errors included, without how far it has got."""
    words = [sys.executable, "-m", *shlex.split(line)]
    setting = {**os.environ, "COLUMNS": "84", "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(words, cwd=folder, env=setting, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return PROGRESS.sub("", done.stdout.decode("utf-8"))
