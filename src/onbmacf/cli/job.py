"""A request made ready: the table read, the model loaded or trained, the map fitted or loaded.

Request  ->  prepare  ->  Job  ->  rows.chosen_rows, parts.explain_in_parts
"""

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from onbmacf._rows.form import TableForm
from onbmacf._rows.readings import Between
from onbmacf.cli.demo import labelled_heart
from onbmacf.cli.request import Request
from onbmacf.cli.terminal import say
from onbmacf.cli.words import columns_of, ends_of, kinds_of, labels_of, split
from onbmacf.datasets import heart_network
from onbmacf.errors import ParameterError, TableError
from onbmacf.explainer import ONBMACF
from onbmacf.io.models import load_model
from onbmacf.io.tables import read_table
from onbmacf.io.trained import train_network
from onbmacf.report.fingerprint import file_digest
from onbmacf.rules import Rules
from onbmacf.schema import Schema


@dataclass(frozen=True, eq=False)
class Job:
    """A fitted explainer and where it came from."""

    table: pd.DataFrame  # features only; the index names the rows
    explainer: ONBMACF
    target: Any  # label, labels, or None
    source: str
    model_name: str
    files: dict[str, str]  # SHA-256 by name
    notes: tuple[str, ...] = ()
    truth: "pd.Series[Any] | None" = None  # the target column, if there is one
    numbers: "pd.Index[Any] | None" = None  # the rows' numbers in the file, where some were left out
    asked: dict[str, Any] = field(default_factory=dict)  # further arguments of explain


def prepare(request: Request) -> Job:
    """Read the table, load or train the model, and fit; tell on stderr what the reader should know."""
    if request.table is None:
        return _heart(request)
    if not request.model and not request.target_column:
        raise ParameterError("give a model (--model), or a column to train one on (--target-column).")
    whole = read_file(request.table, request)
    table, y, numbers = _features(whole, request)
    TableForm.fit(table, Schema.infer(table) if request.map else _schema(table, request))  # before a model is trained
    model, notes = _model(table, y, request)
    explainer, target = _fitted(table, model, request)
    told = (_name(request), _digests(request), notes, y, numbers, _asked(request, table))
    return Job(table, explainer, target, str(request.table), *told)


def read_file(path: Path, request: Request) -> pd.DataFrame:
    """Read a table as the request says."""
    sheet = int(request.sheet) if request.sheet.isdecimal() else request.sheet or None
    return read_table(path, encoding=request.encoding or None, header=request.header, sheet=sheet)


def _name(request: Request) -> str:
    if "://" in request.model:
        return request.model
    return Path(request.model).name if request.model else "a 32-16 network trained here"


def _asked(request: Request, table: pd.DataFrame) -> dict[str, Any]:
    """Return what explain is asked beside the target; a map is asked with the immutable features and rules given."""
    asked: dict[str, Any] = {}
    if request.min_probability is not None:
        asked["min_probability"] = request.min_probability
    if request.map is not None and request.immutable:
        asked["immutable"] = columns_of(request.immutable, list(table.columns), "--immutable")
    if request.map is not None and request.rules is not None:
        asked["rules"] = Rules.from_toml(request.rules)
    return asked


def _heart(request: Request) -> Job:
    table, labels = labelled_heart()
    age_stays = not request.immutable and request.map is None
    request = replace(
        request, immutable=("age",) if age_stays else request.immutable, target=request.target or ("healthy",)
    )
    model, notes = _model(table, labels, request) if request.model else (heart_network().fit(table, labels), ())
    name = request.model or "a 32-16 network"
    age = " Age must stay as it is." if age_stays else ""
    say(f"Using the embedded heart data: {len(table)} men; {name} predicts who is at risk.{age}")
    explainer, target = _fitted(table, model, request)
    asked = _asked(request, table)
    return Job(table, explainer, target, "the embedded heart data", name, _digests(request), notes, labels, asked=asked)


def fitted_again(job: Job, request: Request, spec: str) -> ONBMACF:
    """Return an explainer of another model, fitted on the same table with the same rules and options."""
    model, _ = _model(job.table, None, replace(request, model=spec))
    return ONBMACF(**_options(request)).fit(job.table, model, schema=job.explainer.schema_, output=request.output)


def _fitted(table: pd.DataFrame, model: Any, request: Request) -> tuple[ONBMACF, Any]:
    """Return the explainer, and the label or labels to reach."""
    explainer = _loaded(request.map, model, request) if request.map else _fresh(table, model, request)
    words = request.target or (("inside",) if request.between else ())
    labels = labels_of(words, explainer.classes_, "--target")
    return explainer, None if not labels else labels[0] if len(labels) == 1 else labels


def _loaded(path: Path, model: Any, request: Request) -> ONBMACF:
    if request.kinds or request.threshold is not None or request.classes or request.between:
        say("note: --kinds, --threshold, --classes and --between are ignored: a map keeps those it was built with.")
    return ONBMACF.load(path, model).set_params(**_options(request))


def _fresh(table: pd.DataFrame, model: Any, request: Request) -> ONBMACF:
    explainer = ONBMACF(**_options(request))
    names = split(",".join(request.classes)) or None
    target = Between(**ends_of(request.between)) if request.between else None
    reading: dict[str, Any] = {"threshold": request.threshold, "classes": names, "target": target}
    return explainer.fit(table, model, schema=_schema(table, request), output=request.output, **reading)


def _options(request: Request) -> dict[str, Any]:
    """Return the options of the explainer that were given; the others stay as they are, also those of a map."""
    given = {
        "strategy": request.strategy or None,
        "plausibility": request.plausibility,
        "release": request.release or None,
        "max_model_rows": request.max_model_rows,
        "max_model_calls": request.max_model_calls,
    }
    given = {name: value for name, value in given.items() if value is not None}
    return {"n_counterfactuals": request.n, "n_jobs": request.jobs, **given}


def _schema(table: pd.DataFrame, request: Request) -> Schema:
    immutable = columns_of(request.immutable, list(table.columns), "--immutable")
    kinds, ordinal = kinds_of(request.kinds, list(table.columns))
    schema = Schema.infer(table, immutable=immutable, kinds=kinds, ordinal=ordinal)
    return schema if request.rules is None else schema.with_rules(Rules.from_toml(request.rules))


def _model(table: pd.DataFrame, y: "pd.Series[Any] | None", request: Request) -> tuple[Any, tuple[str, ...]]:
    """Return the model, and what a report should say about it."""
    if request.model:
        _look_here_too(request.model)
        return load_model(request.model, table, trust_pickle=request.trust_pickle), ()
    assert y is not None  # prepare has made sure of it
    trained = train_network(table, y)
    note = (
        f"No model was given: a network (32-16) was trained on {y.name!r} with {trained.n_trained:,} of {len(table):,} "
        f"rows (seed 0); {trained.comparison}. What follows is about that model."
    )
    say(note)
    return trained.model, (note, f"Warning: {trained.warning}") if trained.warning else (note,)


def _look_here_too(model: str) -> None:
    """Let modules of the working folder be found, after all others: a file there must not stand in for a library."""
    if ":" in model and "://" not in model and not Path(model).exists() and not {"", str(Path.cwd())} & set(sys.path):
        sys.path.append(str(Path.cwd()))
        say(f"note: {model} is also looked for in the working folder, {Path.cwd()}, after the installed modules.")


def _features(
    table: pd.DataFrame, request: Request
) -> "tuple[pd.DataFrame, pd.Series[Any] | None, pd.Index[Any] | None]":
    """Return the columns to explain, complete; the target column if there is one; and the rows' numbers in the file."""
    table = table.drop(columns=columns_of(request.drop, list(table.columns), "--drop"))
    columns = list(table.columns)
    target = columns_of([request.target_column] if request.target_column else [], columns, "--target-column")
    names = columns_of([request.id_column] if request.id_column else [], columns, "--id-column")
    table, numbers = _complete(table, request.drop_missing)
    table = table.set_index(names[0]) if names else table
    return table.drop(columns=target), table[target[0]] if target else None, numbers


def _complete(table: pd.DataFrame, drop_missing: bool) -> "tuple[pd.DataFrame, pd.Index[Any] | None]":
    """Return the rows without missing values; their numbers too, where others were left out."""
    missing = table.isna().any(axis=1)
    n_missing = int(missing.sum())
    if not n_missing:
        return table, None
    if not drop_missing:
        lacking = ", ".join(str(name) for name in table.columns if table[name].isna().any())
        raise TableError(f"{n_missing:,} rows have missing values, in {lacking}: fill them, or pass --drop-missing.")
    say(f"Left out {n_missing:,} rows with missing values; {len(table) - n_missing:,} remain.")
    return table[~missing], table.index[~missing]


def _digests(request: Request) -> dict[str, str]:
    model = Path(request.model) if request.model else None
    paths = (request.table, request.rules, request.map, request.rows_file, model)
    return {path.name: file_digest(path) for path in paths if path is not None and path.is_file()}
