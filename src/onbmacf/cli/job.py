"""A request made ready: the table read, the model loaded or trained, the map fitted or loaded.

Request  ->  prepare  ->  Job  ->  rows.chosen_rows, parts.explain_in_parts
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from onbmacf._columns.moments import with_dates
from onbmacf._explain.request import Question
from onbmacf._table.form import TableForm
from onbmacf._table.readings import Between
from onbmacf.cli.asked import asked_of, check_asked
from onbmacf.cli.demo import labelled_heart
from onbmacf.cli.models import chosen_model, own_model
from onbmacf.cli.options import flag
from onbmacf.cli.request import Request
from onbmacf.cli.terminal import say
from onbmacf.cli.words import columns_of, ends_of, kinds_of, labels_of, split
from onbmacf.datasets import heart_network
from onbmacf.errors import ParameterError
from onbmacf.explainer import ONBMACF
from onbmacf.io.tables import read_table
from onbmacf.report.render import file_digest
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
    check_asked(request)
    if request.table is None:
        return _heart(request)
    if not request.model and not request.target_column:
        raise ParameterError("give a model (--model), or a column to train one on (--target-column).")
    whole = _with_dates(request.table, request)
    table, y, numbers = _features(whole, request)
    TableForm.fit(table, Schema.infer(table) if request.map else _schema(table, request))  # before a model is trained
    chosen = chosen_model(table, y, request)
    explainer, target = _fitted(table, chosen.model, request)
    told = (chosen.name, _digests(request), chosen.notes, y, numbers, asked_of(request))
    return Job(table, explainer, target, str(request.table), *told)


def read_file(path: Path, request: Request) -> pd.DataFrame:
    """Read a file as the request says; dates are text."""
    sheet = int(request.sheet) if request.sheet.isdecimal() else request.sheet or None
    return read_table(path, encoding=request.encoding or None, header=request.header, sheet=sheet)


def _with_dates(path: Path, request: Request) -> pd.DataFrame:
    table = read_file(path, request)
    return with_dates(table, columns_of(request.dates, list(table.columns), "--dates"))


def _heart(request: Request) -> Job:
    table, labels = labelled_heart()
    age_stays = not request.immutable and not request.vary and request.map is None
    request = replace(
        request, immutable=("age",) if age_stays else request.immutable, target=request.target or ("healthy",)
    )
    name, notes = request.model or "a 32-16 network", ()
    model = own_model(table, request) if request.model else heart_network().fit(table, labels)
    age = " Age must stay as it is." if age_stays else ""
    say(f"Using the embedded heart data: {len(table)} men; {name} predicts who is at risk.{age}")
    explainer, target = _fitted(table, model, request)
    told = (name, _digests(request), notes, labels)
    return Job(table, explainer, target, "the embedded heart data", *told, asked=asked_of(request))


def fitted_again(job: Job, request: Request, spec: str) -> ONBMACF:
    """Return an explainer of another model, fitted on the same table with the same rules and options."""
    model = own_model(job.table, replace(request, model=spec))
    return ONBMACF(**_options(request)).fit(job.table, model, schema=job.explainer.schema_, output=request.output)


def _fitted(table: pd.DataFrame, model: Any, request: Request) -> tuple[ONBMACF, Any]:
    """Return the explainer, and the label or labels to reach."""
    explainer = _loaded(request.map, model, request) if request.map else _fresh(table, model, request)
    words = request.target or (("inside",) if request.between else ())
    labels = labels_of(words, explainer.classes_, "--target")
    return explainer, None if not labels else labels[0] if len(labels) == 1 else labels


def _loaded(path: Path, model: Any, request: Request) -> ONBMACF:
    fixed = (request.kinds, request.fillable, request.classes, request.between)
    if any(fixed) or request.threshold is not None:
        names = "--kinds, --fillable, --threshold, --classes and --between"
        say(f"note: {names} are ignored: a map keeps those it was built with.")
    explainer = ONBMACF.load(path, model).set_params(**_options(request))
    schema = _question(request, explainer.schema_.names).schema(explainer.schema_)
    explainer.fitted_ = explainer.fitted_.under(schema)
    return explainer


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
        "private": request.private,
        "max_model_rows": request.max_model_rows,
        "max_model_calls": request.max_model_calls,
    }
    given = {name: value for name, value in given.items() if value is not None}
    return {"n_counterfactuals": request.n, "n_jobs": request.jobs, **given}


def _question(request: Request, columns: Sequence[Any]) -> Question:
    """Return what the request says of the features of a map: what it leaves out stays as the map was built."""
    immutable, vary = (columns_of(getattr(request, name), columns, flag(name)) for name in ("immutable", "vary"))
    rules = None if request.rules is None else Rules.from_toml(request.rules)
    return Question(immutable=immutable or None, vary=vary or None, rules=rules)


def _schema(table: pd.DataFrame, request: Request) -> Schema:
    columns = list(table.columns)
    immutable = columns_of(request.immutable, columns, "--immutable")
    fillable = columns_of(request.fillable, columns, "--fillable")
    kinds, ordinal = kinds_of(request.kinds, columns)
    schema = Schema.infer(table, immutable=immutable, kinds=kinds, ordinal=ordinal, fillable=fillable)
    schema = Question(vary=columns_of(request.vary, columns, "--vary") or None).schema(schema)
    return schema if request.rules is None else schema.with_rules(Rules.from_toml(request.rules))


def _features(
    table: pd.DataFrame, request: Request
) -> "tuple[pd.DataFrame, pd.Series[Any] | None, pd.Index[Any] | None]":
    """Return the columns to explain; the target column if there is one; and the rows' numbers in the file."""
    table = table.drop(columns=columns_of(request.drop, list(table.columns), "--drop"))
    columns = list(table.columns)
    target = columns_of([request.target_column] if request.target_column else [], columns, "--target-column")
    names = columns_of([request.id_column] if request.id_column else [], columns, "--id-column")
    table, numbers = _complete(table, request.drop_missing)
    table = table.set_index(names[0]) if names else table
    return table.drop(columns=target), table[target[0]] if target else None, numbers


def _complete(table: pd.DataFrame, drop_missing: bool) -> "tuple[pd.DataFrame, pd.Index[Any] | None]":
    """Return the rows without missing values, if such are to be left out; then their numbers, too."""
    missing = table.isna().any(axis=1)
    n_missing = int(missing.sum())
    if not n_missing or not drop_missing:
        return table, None
    say(f"Left out {n_missing:,} rows with missing values; {len(table) - n_missing:,} remain.")
    return table[~missing], table.index[~missing]


def _digests(request: Request) -> dict[str, str]:
    model = Path(request.model) if request.model else None
    paths = (request.table, request.rules, request.map, request.rows_file, model)
    return {path.name: file_digest(path) for path in paths if path is not None and path.is_file()}
