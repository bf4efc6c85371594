"""One output as a transaction: checked before the work, held by one writer, replaced whole, its parts deleted last.

    with output_file(out, request):      # what is there, the folder, the inputs; a second writer is told
        answers = explain_in_parts(...)  # kept beside the file, part by part
        write_atomically(out, ...)       # the old file, or the complete new one
        parts.clear()                    # only now

A failure at any step leaves the old file and the parts (docs/decisions/0059-outputs.md).
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from onbmacf._base.checks import listed
from onbmacf._base.files import check_replaceable, check_space, sole_writer
from onbmacf.cli.request import Request
from onbmacf.errors import OnbmacfError, ParameterError, StoreError

BYTES_PER_CELL, BYTES_PER_ANSWER = 40, 1000  # of a value and of all else, in a part and in the result together


@contextmanager
def output_file(out: Path | None, request: Request) -> Iterator[None]:
    """Check where the result is to be written, before any work, and hold it; nothing to do without a file."""
    if out is None:
        yield
        return
    check_out(out, inputs_of(request))
    with sole_writer(out, ".lock"):
        yield


def check_out(out: Path, inputs: Iterable[Path]) -> None:
    """Raise an error where `--out` could not be written, or is what the command reads."""
    if not out.parent.is_dir():
        raise ParameterError(f"--out: there is no folder {out.parent}.")
    try:
        check_replaceable(out)
    except StoreError as error:
        raise ParameterError(f"--out: {error}") from error
    for path in inputs:
        if out.exists() and path.exists() and out.samefile(path):
            raise ParameterError(f"--out names {out}, which this command reads: name another file.")


def inputs_of(request: Request) -> list[Path]:
    """Return the files that a command reads."""
    model = Path(request.model) if request.model else None
    return [path for path in (request.table, request.rules, request.map, request.rows_file, model) if path is not None]


def check_room(out: Path | None, shape: tuple[int, ...], n: int) -> None:
    """Raise an error if the disk cannot hold the parts and the result of rows and columns, with n answers a row."""
    if out is not None:
        check_space(out, shape[0] * n * (shape[1] * BYTES_PER_CELL + BYTES_PER_ANSWER))


def check_installed(what: str, modules: Iterable[str], extra: str) -> None:
    """Raise an ImportError that names the extra if a module that the result needs at the end is missing."""
    for module in modules:
        try:
            import_module(module)
        except ImportError as error:
            raise ImportError(f"{what} needs the extra {extra!r}: pip install 'onbmacf[{extra}]'.") from error


def check_names(kind: str, columns: Iterable[Any]) -> None:
    """Raise an error if a format writes columns by the text of their names and two of these are the same."""
    texts = [str(name) for name in columns]
    repeated = sorted({text for text in texts if texts.count(text) > 1}) if kind == "json" else []
    if repeated:
        raise ParameterError(f"--format json: column names are the same as text: {listed(repeated)}. Rename them.")


@contextmanager
def kept_parts(folder: Path | None) -> Iterator[None]:
    """Say in an error of the last step, writing the result, that the answers are kept and how to go on."""
    try:
        yield
    except (OnbmacfError, ImportError, OSError) as error:
        if folder is None or not folder.is_dir():
            raise
        raise StoreError(f"{error} The answers are kept in {folder}: the same command goes on from there.") from error
