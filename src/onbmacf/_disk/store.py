"""Arrays and a manifest in one file: safetensors, no pickle, a SHA-256 per block, written atomically.

    arrays, manifest  ->  write  ->  file  ->  read  ->  the same arrays, the same manifest

The layout is that of safetensors (8 bytes of header length, a JSON header, raw blocks), so other tools can read
it too; the manifest is in its metadata. What is read is checked by its digests and held in memory: what becomes of the
file afterwards changes no answer.
"""

import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onbmacf._base.checks import count
from onbmacf._base.files import check_replaceable, check_space, sole_writer
from onbmacf.errors import (
    CorruptFileError,
    EmptyFileError,
    ForeignFileError,
    NewerVersionError,
    StoreError,
    TruncatedFileError,
)

MARK = "onbmacf-map"
VERSION = 1
DTYPES = {"F64": np.float64, "I64": np.int64, "BOOL": np.bool_}
UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
Arrays = dict[str, NDArray[Any]]


def write(path: Any, arrays: Mapping[str, NDArray[Any]], manifest: Mapping[str, Any], notice: str = "") -> None:
    """Write a file atomically: readers see the old file or the complete new one. A notice stands at its beginning."""
    from safetensors.numpy import save_file

    path = Path(path)
    blocks = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    text = json.dumps({**manifest, "digests": {name: _digest(block) for name, block in blocks.items()}})
    label: dict[str, Any] = {"notice": notice} if notice else {}
    label |= {"version": VERSION, "sha256": _text_digest(text), "manifest": text}
    metadata = {MARK: json.dumps(label)}  # a single entry, because safetensors does not keep the order of several
    check_replaceable(path)
    with sole_writer(path):
        draft = path.with_name(path.name + ".draft")  # one name: what a killed writer left is removed by the next
        try:
            draft.unlink(missing_ok=True)
            check_space(path, sum(block.nbytes for block in blocks.values()) + len(text))
            save_file(blocks, draft, metadata=metadata)
            with draft.open("rb+") as file:
                os.fsync(file.fileno())
            os.replace(draft, path)
        except StoreError:
            raise
        except Exception as error:
            raise StoreError(f"could not write {path}: {error}. An existing file there is unchanged.") from error
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)


def read(path: Any) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays, checked, and the manifest of a file."""
    path = Path(path)
    header, start = _header(path)
    try:
        label = json.loads(header.pop("__metadata__")[MARK])
        version, text, digest = int(label["version"]), str(label["manifest"]), label["sha256"]
        end = start + max(int(entry["data_offsets"][1]) for entry in header.values())
    except UNREADABLE as error:
        raise CorruptFileError(f"{path}: the header cannot be read ({error}).") from error
    if version > VERSION:
        raise NewerVersionError(
            f"{path} has format {version}; this version of the package reads formats up to {VERSION}. Upgrade it."
        )
    if _text_digest(text) != digest:
        raise CorruptFileError(f"{path}: the manifest does not match its digest.")
    if path.stat().st_size < end:
        raise TruncatedFileError(f"{path} is truncated: it has {path.stat().st_size} of {end} bytes.")
    arrays = {name: _block(path, entry, start) for name, entry in header.items()}
    return arrays, _manifest(path, text, arrays)


def _manifest(path: Path, text: str, arrays: Arrays) -> dict[str, Any]:
    """Return the manifest, once every block has been compared with its digest there."""
    try:
        manifest = dict(json.loads(text))
        digests = dict(manifest.pop("digests"))
    except UNREADABLE as error:
        raise CorruptFileError(f"{path}: the manifest cannot be read ({error}).") from error
    for name in {**digests, **arrays}:
        if name not in arrays or _digest(arrays[name]) != digests.get(name):
            raise CorruptFileError(f"{path}: block {name!r} does not match its digest.")
    return manifest


def _header(path: Path) -> tuple[dict[str, Any], int]:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ForeignFileError(f"{path} is not a map written by this package: it is no regular file.")
        size = status.st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            raw = file.read(min(length, size))
    except ForeignFileError:
        raise
    except (OSError, ValueError) as error:
        raise StoreError(f"could not read {path}: {getattr(error, 'strerror', error)}.") from error
    if size == 0:
        raise EmptyFileError(f"{path} is empty.")
    if MARK.encode() not in raw[: 1 << 20]:
        raise ForeignFileError(f"{path} is not a map written by this package.")
    if size < 8 + length < 1 << 30:
        raise TruncatedFileError(
            f"{path} ends within its header: it has {size} bytes, and the header alone needs {8 + length}."
        )
    try:
        header = json.loads(raw)
        return {name: dict(entry) for name, entry in header.items()}, 8 + length
    except UNREADABLE as error:
        raise CorruptFileError(f"{path}: the header cannot be read ({error}).") from error


def _block(path: Path, entry: dict[str, Any], start: int) -> NDArray[Any]:
    """Return a block of the file as an array; its size is what the file itself says, and no more."""
    try:
        dtype, shape = np.dtype(DTYPES[entry["dtype"]]), tuple(count()("shape", size) for size in entry["shape"])
        first, last = (count()("data_offsets", place) for place in entry["data_offsets"])
        if last - first != prod(shape) * dtype.itemsize:
            raise CorruptFileError(f"{path}: a block of shape {shape} has {last - first} bytes.")
        if 0 in shape:
            return np.empty(shape, dtype=dtype)
        block = np.fromfile(path, dtype, prod(shape), offset=start + first).reshape(shape)
        block.flags.writeable = False
        return block
    except (OSError, *UNREADABLE) as error:
        raise CorruptFileError(f"{path}: a block cannot be read ({error}).") from error


def _digest(block: NDArray[Any]) -> str:
    digest = sha256(f"{block.dtype.str}{block.shape}".encode())
    digest.update(np.ascontiguousarray(block).view(np.uint8).data if block.size else b"")
    return digest.hexdigest()


def _text_digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
