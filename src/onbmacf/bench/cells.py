"""A cell is one method on one case: what its result depends on, how it is computed, and all cells as one table.

    Cell  ->  key (a hash of all its inputs)        Cell  ->  case_of, compute  ->  a JSON document
    factuals, found  ->  evaluate  ->  lines (one per factual)        documents  ->  collect  ->  all lines, all cells

The hash covers the settings, the data, the versions of the libraries and the code that is used (without comments
and layout): if a method changes, only its own cells are computed again. A counterfactual counts only if the model gives
it the target label when it is asked again.
"""

import ast
import hashlib
import json
import platform
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from onbmacf._base.checks import check_choice
from onbmacf.bench import metrics
from onbmacf.bench.cases import MODELS, PROTOCOLS, SEEDS, Case, Split, separated, separated_case, trained
from onbmacf.bench.datasets import load_task, locate
from onbmacf.bench.methods import REGISTRY, create
from onbmacf.bench.protocol import Found, Matrix, Method, Model, Task, factual_rows, whole, with_noise
from onbmacf.errors import ParameterError, StoreError

MANIFEST = "manifest.json"  # lists the cells of a run, in the same folder
PACKAGE = Path(__file__).parents[1]
LIBRARIES = ("numpy", "pandas", "scipy", "scikit-learn", "torch", "dice-ml", "cfnow")
COMMON_CODE = (
    "schema.py",
    "_columns/*.py",
    *(f"_table/{name}.py" for name in ("space", "scales", "form", "cells")),
    *(f"bench/{name}.py" for name in ("protocol", "datasets", "keel", "cases", "network", "metrics", "cells")),
    "bench/methods/_[!_]*.py",  # what methods share; the registry is not code: each entry is hashed with its method
)

OF_A_LINE = [
    *("l0", "l1", "l2", "linf", "violations", "redundancy", "ynn", "redundancy_columns", "data_distance"),
    *("pairwise_distance", "distinct_changes", "n_ways", "stability"),
    *("fifth_distance", "lof", "isolation", "steadiness"),
]
NOISE = 0.005  # of a number's range, where a factual is asked again

KEYS = ["dataset", "method", "protocol", "model", "seed"]
CELL_COLUMNS = [*KEYS, "status", "error", "n_factuals", "features", "accuracy", "fit_seconds", "explain_seconds"]


@dataclass(frozen=True)
class Cell:
    """One method on one dataset, with all settings."""

    dataset: str
    method: str
    protocol: str = "paper"
    model: str = "network"
    n_factuals: int = 200
    n_counterfactuals: int = 1
    seed: int = 0
    target: int = 1
    paper_sizes: bool = False
    n_retrainings: int = 10
    n_noisy: int = 50  # the first factuals, asked again with noise; 0 where that takes too long

    def __post_init__(self) -> None:
        check_choice("protocol", self.protocol, PROTOCOLS)
        check_choice("model", self.model, MODELS)
        if self.protocol == "paper" and self.model != "network":
            raise ParameterError(f"the paper's protocol explains a network, got model={self.model!r}.")


def key(cell: Cell, data_dir: Path | None) -> str:
    """Return a hash of everything that a cell's result depends on."""
    inputs = {
        "cell": asdict(cell),
        "data": locate(cell.dataset, data_dir).digest,
        "versions": versions(),
        "code": _code_digest(cell.method),
    }
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


@cache
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
    import threadpoolctl
    import torch

    torch.set_num_threads(1)  # every method has one thread, since their times are compared
    threadpoolctl.threadpool_limits(1)
    case = case_of(cell, data_dir, models)
    method = create(cell.method)
    started = time.perf_counter()
    method.fit(case.task, case.model, cell.seed)
    fitted = time.perf_counter()
    method.explain(case.Z[:1], cell.n_counterfactuals)  # warm-up: what is made on first use is not timed
    warm = time.perf_counter()
    found = method.explain(case.Z, cell.n_counterfactuals)
    ended = time.perf_counter()
    found = _whole(cell, case, found)
    lines = evaluate(case, found).assign(remark=getattr(method, "remarks_", ""))
    lines["steadiness"] = _steadiness(cell, case, method, found)
    return {
        "n_factuals": len(case.rows),
        "accuracy": round(case.accuracy, 4),
        "fit_seconds": round(fitted - started, 4),
        "explain_seconds": round(ended - warm, 4),
        "features": [str(name) for name in case.task.schema.names],
        "lines": {name: _plain(lines[name]) for name in lines.columns},
        "counterfactuals": [None if answer is None else np.asarray(answer).tolist() for answer in found],
    }


# --- what is asked, and of what: shared by the cells of one process ---------------------------------------------------


def case_of(cell: Cell, data_dir: Path | None, models: Path) -> Case:
    """Return what a cell asks, and of what: the same for all methods."""
    return _case(replace(cell, method="", n_counterfactuals=1), data_dir, models)


@lru_cache(maxsize=2)
def _case(cell: Cell, data_dir: Path | None, models: Path) -> Case:
    if cell.protocol == "paper":
        return _paper_case(cell, data_dir, models)
    alike = replace(cell, protocol="unknown", n_factuals=0, n_retrainings=0)
    split, model = _known(alike, data_dir, models)
    seeds = [(cell.seed + 1 + place) % SEEDS for place in range(cell.n_retrainings)]
    others = [_known(replace(alike, seed=seed), data_dir, models)[1] for seed in seeds]
    return separated_case(split, model, others, cell.protocol, cell.n_factuals)


def _paper_case(cell: Cell, data_dir: Path | None, models: Path) -> Case:
    from onbmacf.bench.network import accuracy, retrained_networks, trained_network

    task = _task(cell.dataset, data_dir, cell.target, cell.paper_sizes)
    model = trained_network(task, cell.seed, models)
    rows = factual_rows(task, model, cell.n_factuals)
    retrained = retrained_networks(task, cell.seed, cell.n_retrainings, models)
    return Case(task, model, rows, task.Z[rows], [*retrained], accuracy(model, task, cell.seed)[1])


@lru_cache(maxsize=SEEDS)
def _known(cell: Cell, data_dir: Path | None, models: Path) -> tuple[Split, Model]:
    """Return the split of a seed, and the model that its known rows trained."""
    split = separated(_task(cell.dataset, data_dir, cell.target, cell.paper_sizes), cell.seed)
    return split, trained(cell.model, split.known, cell.seed, models)


@lru_cache(maxsize=1)
def _task(dataset: str, data_dir: Path | None, target: int, paper_sizes: bool) -> Task:
    return load_task(dataset, data_dir, target=target, paper_sizes=paper_sizes)


def _plain(column: Any) -> list[Any]:
    """Return a column as a list for JSON: NaN becomes null."""
    return [None if isinstance(value, float) and np.isnan(value) else value for value in column.tolist()]


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


# --- metrics ----------------------------------------------------------------------------------------------------------


def evaluate(case: Case, found: Sequence[Found]) -> pd.DataFrame:
    """Return one line per factual: whether a counterfactual was found, and its metrics (NaN if not)."""
    task, model, Z = case.task, case.model, case.Z
    valid = [_valid(answer, task, model) for answer in found]
    lines = pd.DataFrame({"row": case.rows, "n_found": [len(answers) for answers in valid]})
    lines[OF_A_LINE] = np.nan
    lines["changed"] = None
    hit = np.flatnonzero(lines["n_found"] > 0)
    if len(hit):
        best = np.stack([valid[place][0] for place in hit])
        for name, values in _metrics(case, Z[hit], best).items():
            lines.loc[hit, name] = values
        lines.loc[hit, "stability"] = metrics.stability(best, case.retrained, task.target)
        lines["pairwise_distance"] = [metrics.pairwise_distance(answers, task.blocks) for answers in valid]
        lines["distinct_changes"] = [
            metrics.distinct_changes(z, answers, task.blocks) for z, answers in zip(Z, valid, strict=True)
        ]
        lines["n_ways"] = [
            metrics.n_ways(z, answers, task.blocks, task.is_immutable, model.label_of, task.target)
            for z, answers in zip(Z, valid, strict=True)
        ]
        lines["changed"] = _changed_names(task, Z, valid)
    return lines


def _valid(answer: Found, task: Task, model: Model) -> Matrix:
    """Return the counterfactuals of an answer that have the target label; an empty matrix for None."""
    width = task.Z.shape[1]
    if answer is None:
        return np.empty((0, width))
    rows = np.atleast_2d(np.asarray(answer, dtype=np.float64))
    if rows.shape[1] != width or not np.isfinite(rows).all():
        raise ValueError(f"a counterfactual must be {width} finite numbers, got shape {rows.shape}.")
    return rows[model.label_of(rows) == task.target]


def _whole(cell: Cell, case: Case, found: Sequence[Found]) -> Sequence[Found]:
    """Make whole numbers whole; under the paper's protocol answers stay as a method returns them, as in CARLA."""
    if cell.protocol == "paper":
        return found
    return [None if answer is None else whole(case.task, case.model, np.atleast_2d(answer)) for answer in found]


def _steadiness(cell: Cell, case: Case, method: Method, found: Sequence[Found]) -> NDArray[np.float64]:
    """Ask about the first factuals again with noise: 1 where the same features change, 0 where they do not.

    NaN where there was no counterfactual to compare with, or where the noise alone gives the target label. Such a
    factual is asked without noise, so that the others keep their places: the random streams of a method follow these.
    """
    task, model = case.task, case.model
    steady = np.full(len(case.Z), np.nan)
    first = case.Z[: cell.n_noisy]
    if not len(first):
        return steady
    noisy = with_noise(task, first, NOISE, cell.seed)
    is_open = model.label_of(noisy) != task.target
    noisy = np.where(is_open[:, np.newaxis], noisy, first)
    again = _whole(cell, case, method.explain(noisy, cell.n_counterfactuals))
    for line in np.flatnonzero(is_open).tolist():
        before, after = (_valid(answers[line], task, model)[:1] for answers in (found, again))
        if len(before):
            pair = (first[[line]], before, noisy[[line]], after)
            steady[line] = metrics.steadiness(*pair, task.blocks)[0] if len(after) else 0.0
    return steady


def _metrics(case: Case, Z: Matrix, best: Matrix) -> dict[str, Matrix]:
    task, model = case.task, case.model
    differences = metrics.feature_differences(Z, best, task.blocks)
    return {
        "l0": metrics.l0(differences),
        "l1": metrics.l1(differences),
        "l2": metrics.l2(differences),
        "linf": metrics.linf(differences),
        "violations": metrics.violations(differences, task.is_immutable),
        "redundancy": metrics.redundancy(Z, best, task.blocks, model.label_of, task.target),
        "redundancy_columns": metrics.redundancy_columns(Z, best, model.label_of, task.target),
        **{name: measure(best) for name, measure in _among_rows(case).items()},
    }


@lru_cache(maxsize=2)
def _among_rows(case: Case) -> dict[str, metrics.Measure]:
    """Return the metrics that look at the rows of the table, prepared once for all methods."""
    task, model = case.task, case.model
    labels = model.label_of(task.Z)
    wanted = task.Z[labels == task.target]
    index = NearestNeighbors().fit(task.Z)
    return {
        "ynn": lambda best: metrics.ynn(best, index, labels, task.target),
        "data_distance": lambda best: metrics.distance_to_rows(best, wanted, task.blocks),
        "fifth_distance": lambda best: metrics.distance_to_rows(best, wanted, task.blocks, metrics.NEIGHBOURS),
        "lof": metrics.lof_among(wanted, task.blocks),
        "isolation": metrics.isolation_among(wanted),
    }


def _changed_names(task: Task, Z: Matrix, valid: list[Matrix]) -> list[list[str] | None]:
    names = np.array([str(name) for name in task.schema.names], dtype=object)
    return [
        names[metrics.changed_features(z[np.newaxis], answers[:1], task.blocks)[0]].tolist() if len(answers) else None
        for z, answers in zip(Z, valid, strict=True)
    ]


# --- all cells --------------------------------------------------------------------------------------------------------


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of the last run in a folder."""
    path = folder / MANIFEST
    if not path.is_file():
        raise StoreError(f"no benchmark run in {folder}: {MANIFEST} is missing. Start one with: onbmacf bench run.")
    return json.loads(path.read_text(encoding="utf-8"))


def collect(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the lines of all cells of a run, and one line per cell; a cell not yet run has status "missing"."""
    cells = []
    columns: dict[str, list[Any]] = {name: [] for name in [*KEYS, "row", "n_found", *OF_A_LINE, "changed", "remark"]}
    for entry in read_manifest(folder)["cells"]:
        path = folder / entry["file"]
        cell = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {**entry, "status": "missing"}
        cells.append({name: cell.get(name) for name in CELL_COLUMNS})
        found = cell.get("lines", {"row": []})
        count = len(found["row"])
        for name, values in columns.items():
            values += found.get(name, [None] * count) if name not in KEYS else [cell[name]] * count
    lines = pd.DataFrame(columns)
    lines[OF_A_LINE] = lines[OF_A_LINE].astype(np.float64)
    return lines, pd.DataFrame(cells)


def summary(lines: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Return one line per cell: means over the successes, the success rate, seconds per factual."""
    means = lines.groupby(KEYS, sort=False)[OF_A_LINE].mean()
    means["success_rate"] = (lines["n_found"] > 0).groupby([lines[key] for key in KEYS], sort=False).mean()
    table = cells.merge(means.reset_index(), on=KEYS, how="left")
    table["average_time"] = table["explain_seconds"] / table["n_factuals"]
    return table


def digest(lines: pd.DataFrame, cells: pd.DataFrame) -> str:
    """Return a SHA-256 of everything that a run found, without the times."""
    text = lines.to_csv(index=False) + cells[[*KEYS, "status", "error", "n_factuals"]].to_csv(index=False)
    return hashlib.sha256(text.encode()).hexdigest()
