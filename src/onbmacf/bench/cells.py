"""A cell is one method on one dataset: what its result depends on, and how it is computed.

    Cell  ->  key (a hash of all its inputs)        Cell  ->  compute  ->  a JSON document

The hash covers the settings, the data, the versions of the libraries and the code that is used (without comments
and layout): if a method changes, only its own cells are computed again.
"""

import ast
import hashlib
import json
import platform
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from onbmacf.bench import sources
from onbmacf.bench.methods import REGISTRY

MANIFEST = "manifest.json"  # lists the cells of a run, in the same folder
PACKAGE = Path(__file__).parents[1]
LIBRARIES = ("numpy", "pandas", "scipy", "scikit-learn", "torch", "dice-ml")
COMMON_CODE = (
    "schema.py",
    "_columns/*.py",
    *(f"_table/{name}.py" for name in ("space", "scales", "form", "blocks", "cells", "containers")),
    *(f"bench/{name}.py" for name in ("protocol", "datasets", "_torch", "network", "metrics", "results", "cells")),
    "bench/methods/_[!_]*.py",  # what methods share; the registry is not code: each entry is hashed with its method
)


@dataclass(frozen=True)
class Cell:
    """One method on one dataset, with all settings."""

    dataset: str
    method: str
    n_factuals: int = 200
    n_counterfactuals: int = 1
    seed: int = 0
    target: int = 1
    paper_sizes: bool = False
    n_retrainings: int = 10


def key(cell: Cell, data_dir: Path | None) -> str:
    """Return a hash of everything that a cell's result depends on."""
    inputs = {
        "cell": asdict(cell),
        "data": sources.locate(cell.dataset, data_dir).digest,
        "versions": versions(),
        "code": _code_digest(cell.method),
    }
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def versions() -> dict[str, str]:
    """Return the versions that results depend on."""
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "absent"
    return found


def compute(cell: Cell, data_dir: Path | None, models: Path) -> dict[str, Any]:
    """Run a cell and return its document; an error is recorded as its status."""
    document: dict[str, Any] = {**asdict(cell), "status": "done", "error": "", "versions": versions()}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            document |= _run(cell, data_dir, models)
        except Exception as error:
            text = traceback.format_exc()
            document |= {"status": "failed", "error": f"{type(error).__name__}: {error}", "traceback": text}
    document["warnings"] = sorted({str(warning.message) for warning in caught})
    return document


def _run(cell: Cell, data_dir: Path | None, models: Path) -> dict[str, Any]:
    from onbmacf.bench.datasets import load_task
    from onbmacf.bench.methods import create
    from onbmacf.bench.network import retrained_networks, trained_network
    from onbmacf.bench.protocol import factual_rows
    from onbmacf.bench.results import evaluate

    _one_thread()
    task = load_task(cell.dataset, data_dir, target=cell.target, paper_sizes=cell.paper_sizes)
    model = trained_network(task, cell.seed, models)
    rows = factual_rows(task, model, cell.n_factuals)
    method = create(cell.method)
    started = time.perf_counter()
    method.fit(task, model, cell.seed)
    fitted = time.perf_counter()
    method.explain(task.Z[rows[:1]], cell.n_counterfactuals)  # warm-up: what is made on first use is not timed
    warm = time.perf_counter()
    found = method.explain(task.Z[rows], cell.n_counterfactuals)
    ended = time.perf_counter()
    retrained = retrained_networks(task, cell.seed, cell.n_retrainings, models)
    lines = evaluate(task, model, rows, found, retrained).assign(remark=getattr(method, "remarks_", ""))
    return {
        "n_factuals": len(rows),
        "fit_seconds": round(fitted - started, 4),
        "explain_seconds": round(ended - warm, 4),
        "features": [str(name) for name in task.schema.names],
        "lines": {name: _plain(lines[name]) for name in lines.columns},
        "counterfactuals": [None if answer is None else np.asarray(answer).tolist() for answer in found],
    }


def _plain(column: Any) -> list[Any]:
    """Return a column as a list for JSON: NaN becomes null."""
    return [None if isinstance(value, float) and np.isnan(value) else value for value in column.tolist()]


def _one_thread() -> None:
    """Limit every method to one thread, since their times are compared."""
    import threadpoolctl
    import torch

    torch.set_num_threads(1)
    threadpoolctl.threadpool_limits(1)


@cache
def _code_digest(method: str) -> str:
    parts = [str(asdict(REGISTRY[method])), *(_logic(path.read_text(encoding="utf-8")) for path in _code_files(method))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _code_files(method: str) -> list[Path]:
    """Return the modules that decide a method's results."""
    entry = REGISTRY[method]
    patterns = [*COMMON_CODE, *entry.also, entry.module.removeprefix("onbmacf.").replace(".", "/") + ".py"]
    return sorted({path for pattern in patterns for path in PACKAGE.glob(pattern)})


@cache
def _logic(source: str) -> str:
    """Return a module's code without docstrings, comments and layout."""
    tree = ast.parse(source)
    for node in _documented(tree):
        node.body = node.body[1:]
    return ast.dump(tree)


def _documented(tree: ast.Module) -> Iterator[Any]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            yield node
