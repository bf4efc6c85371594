"""Notebooks that are run: their outputs without what belongs to one machine or one moment, and what they show.

    notebook  ->  run (a kernel of its own)  ->  cleaned  ->  compared with the file, or written into it

`ONBMACF_WRITE_DOCS=1` writes what came out into the notebook.
"""

import base64
import io
import os
import re
from pathlib import Path

import nbformat
from nbclient import NotebookClient

import pages

SECONDS = 600  # for one cell, on a busy machine
ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def run(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Return the notebook as a fresh kernel leaves it, without what differs from run to run."""
    notebook = nbformat.read(path, as_version=4)
    setting = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute(env=setting)
    for cell in code_cells(notebook):
        cell.metadata.pop("execution", None)
        cell.outputs = [_cleaned(output) for output in cell.outputs if not _is_progress(output)]
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def _is_progress(output: nbformat.NotebookNode) -> bool:
    """Say whether an output is how far a long call has got, which a busy machine shows and a quiet one does not."""
    is_widget = "application/vnd.jupyter.widget-view+json" in output.get("data", {})
    text = output.get("text", "")
    return is_widget or (output.get("name") == "stderr" and ("%|" in text or not text.strip()))  # blanks erase a bar


def _cleaned(output: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return an output with small pictures and without addresses of memory."""
    for kind, content in output.get("data", {}).items():
        output.data[kind] = pages.small(content) if kind == "image/png" else ADDRESS.sub("", content)
    return output


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def draws(source: str) -> bool:
    """Say whether a cell makes a plot: it calls `.plot(` or a function of `plots`."""
    return bool(re.search(r"\.plot\(|\bplots\.\w+\(", source))


def pictures(cell: nbformat.NotebookNode) -> list[bytes]:
    """Return the pictures that a cell shows."""
    found = [output.data["image/png"] for output in cell.outputs if "image/png" in output.get("data", {})]
    return [base64.b64decode(content) for content in found]


def said(cell: nbformat.NotebookNode) -> str:
    """Return what a cell prints and returns, as text."""
    parts = [output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return "\n".join(part for part in parts if not part.startswith("<Figure size"))


def size_of(png: bytes) -> tuple[int, int]:
    from PIL import Image

    with Image.open(io.BytesIO(png)) as picture:
        return picture.size
