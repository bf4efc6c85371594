"""A notebook as a page of the site: its text is Markdown, its outputs are shown as they were saved. Nothing is run.

.ipynb  ->  one Markdown text  ->  the parser of the other pages
"""

import json
from typing import Any

from myst_parser.parsers.sphinx_ import MystParser

FENCE = "`" * 4


class NotebookParser(MystParser):
    """Reads the cells of a notebook and their saved outputs."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: Any) -> None:
        """Parse a notebook as the Markdown that `as_markdown` makes of it."""
        super().parse(as_markdown(json.loads(inputstring)), document)


def as_markdown(notebook: dict[str, Any]) -> str:
    """Return the cells as Markdown: code in fences, outputs below it."""
    return "\n\n".join(_cell(cell) for cell in notebook["cells"]) + "\n"


def _cell(cell: dict[str, Any]) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    return "\n\n".join([f"{FENCE}python\n{source}\n{FENCE}", *map(_output, cell.get("outputs", []))])


def _output(output: dict[str, Any]) -> str:
    """Return one output: a picture or a table as HTML, anything else as text."""
    kinds = {kind: "".join(content) for kind, content in output.get("data", {}).items()}
    if "image/png" in kinds:
        source = f"data:image/png;base64,{kinds['image/png'].strip()}"
        return _html(f'<img class="output" alt="What the cell above draws" src="{source}">')
    if "text/html" in kinds:
        return _html(f'<div class="output">{kinds["text/html"]}</div>')
    return f"{FENCE}text\n{''.join(output.get('text', kinds.get('text/plain', '')))}\n{FENCE}"


def _html(text: str) -> str:
    return f"{FENCE}{{raw}} html\n{text}\n{FENCE}"


def setup(app: Any) -> dict[str, bool]:
    """Let Sphinx read notebooks."""
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True}
