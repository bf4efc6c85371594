"""Digests that identify the rows and the model of a report, and the versions that produced it."""

from collections.abc import Iterable
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from typing import Any

import numpy as np

from onbmacf import __version__

LIBRARIES = ("numpy", "pandas", "scikit-learn")


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    digest = sha256()
    with Path(path).open("rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def table_digest(explainer: Any) -> str:
    """Return the SHA-256 of the fitted rows: column names, kinds, and encoded values in row order."""
    schema = explainer.schema_
    digest = sha256(repr([(feature.name, feature.kind, feature.levels) for feature in schema.features]).encode())
    for array in (explainer.fitted_.space.low, explainer.fitted_.space.span, explainer.Z_):
        digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return digest.hexdigest()


def model_digest(explainer: Any) -> str:
    """Return the SHA-256 of the model's labels on the fitted rows; equal for models that give the same labels there."""
    digest = sha256(repr(explainer.classes_.tolist()).encode("utf-8", "backslashreplace"))
    digest.update(np.ascontiguousarray(explainer.labels_, dtype="<i8").tobytes())
    return digest.hexdigest()


def versions(libraries: Iterable[str] = LIBRARIES) -> dict[str, str]:
    """Return the versions of Python and of the libraries that the result depends on."""
    found = {"onbmacf": __version__, "python": python_version()}
    for library in libraries:
        try:
            found[library] = version(library)
        except PackageNotFoundError:  # pragma: no cover - run from a source tree
            continue
    return found
