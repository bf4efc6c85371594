"""`onbmacf schema`: what the columns of a table are taken for and what their names suggest, as a TOML file to edit.

table  ->  schema_text  ->  comments, each of them a line that may be let hold
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onbmacf.cli.explain import READING, Arguments, offers
from onbmacf.cli.terminal import say, show

if TYPE_CHECKING:
    from onbmacf.schema import Feature

OutOption = Annotated[Path | None, typer.Option(help="File to write; the terminal by default.")]
HEAD = """\
# The columns of {table}: what they are taken for, and what you may say of them.
# Remove "# " from a line to put it into force; as it stands, this file changes nothing. Then:
# onbmacf explain {table} --rules {file}    or, in Python:    Schema.from_toml("{file}", table)
"""


@offers("table", "target_column", "out", *(name for name in READING if name not in ("kinds", "drop_missing")))
def schema(arguments: Arguments, out: OutOption = None) -> None:
    """Write what the columns are taken for, with suggestions, as a TOML file to edit and to give to --rules.

    \b
    onbmacf schema people.csv --target-column income --out people.toml
    onbmacf explain people.csv --target-column income --rules people.toml
    """
    from onbmacf._base.files import write_atomically
    from onbmacf.cli.inputs import labelled_heart, read_columns
    from onbmacf.cli.outputs import output_file

    with output_file(out, arguments):
        table = labelled_heart()[0] if arguments.table is None else read_columns(arguments.table, arguments).features
        text = schema_text(table, str(arguments.table or "TABLE"), str(out or "THIS_FILE"))
        if out is None:
            show(text)
        else:
            write_atomically(out, text.encode("utf-8", "backslashreplace"))
            say(f"{table.shape[1]:,} columns. Written to {out}: edit it, and give it to --rules.")


def schema_text(table: Any, name: str, file: str) -> str:
    """Return the schema of a table as comments in TOML, each of which may be let hold by itself."""
    from onbmacf._columns.kinds import are_dates, suggested
    from onbmacf._text.wording import visible
    from onbmacf.schema import Schema

    schema = Schema.infer(table)
    stays = [str(f.name) for f in schema.features if suggested(f.name, is_number=False)]
    dates = [str(held) for held in schema.held if are_dates(table[held].dropna().tolist())]
    lines = [HEAD.format(table=visible(name), file=visible(file))]
    lines += ["# The most columns that one answer may change:", "# max_changes = 3", ""]
    lines += [
        '# Rules between columns are sentences in a list named relations: ["if a rises, b must rise", "a + b = 100"]',
        "",
    ]
    lines += ["# Columns that nobody can change, by their names:", f"# immutable = {_toml(stays)}", ""] if stays else []
    lines += ["# Text that says dates:", f"# dates = {_toml(dates)}", ""] if dates else []
    for feature in schema.features:
        lines += [*_column(feature, schema.suggested.get(feature.name, "")), ""]
    return "\n".join(lines)


def _column(feature: "Feature", direction: str) -> Iterator[str]:
    """Yield the lines of a column: what it is, and what may be said of it."""
    from onbmacf._text.wording import visible

    name, levels = str(feature.name), list(feature.levels or ())
    key = name if re.fullmatch(r"[\w-]+", name, re.ASCII) else _toml(name)
    kept = ": an identifier, a code, free text or dates? Kept as it is, unless its kind is named"
    yield f"# {visible(feature.name)}{kept if feature.held else ''}"
    yield f"# ordinal.{key} = {_toml(levels)}" if feature.kind == "ordinal" else f'# kinds.{key} = "{feature.kind}"'
    if direction == "up":
        yield f'# features.{key}.direction = "up"'
    if feature.step is not None:
        yield f"# features.{key}.step = {feature.step}"


def _toml(value: Any) -> str:
    """Return text, or a list of it, as TOML writes it: as JSON does, but for one character.

    >>> _toml(["a", 'b "c"'])
    '["a", "b \\\\"c\\\\""]'
    """
    return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")
