"""A request made ready: the table read, the model loaded or trained, the map fitted or loaded, the rows chosen.

Request  ->  prepare  ->  Job  ->  chosen_rows  ->  rows to explain
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from onbmacf.cli.request import Request
from onbmacf.cli.terminal import say
from onbmacf.datasets import load_heart
from onbmacf.errors import ParameterError, TableError
from onbmacf.explainer import ONBMACF
from onbmacf.io import tables
from onbmacf.io.models import load_model, trained
from onbmacf.report.fingerprint import file_digest
from onbmacf.rules import Rules
from onbmacf.schema import Schema

FIRST = 10  # rows to explain where nobody said which


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
    numbers: "pd.Index[Any] | None" = None  # the rows' numbers in the file, where some were left out


def prepare(request: Request) -> Job:
    """Read, load or train, and fit; say what a reader should know."""
    if request.table is None:
        return _heart(request)
    if not request.model and not request.target_column:
        raise ParameterError("give a model (--model), or a column to train one on (--target-column).")
    table, y, numbers = _features(tables.read_table(request.table, request.encoding, request.header), request)
    model, notes = _model(table, y, request)
    files = {path.name: file_digest(path) for path in _files(request)}
    name = Path(request.model).name if request.model else "a 32-16 network trained here"
    return replace(_fitted(table, model, request, str(request.table), name, files, notes), numbers=numbers)


def chosen_rows(job: Job, request: Request, most: int | None, seed: int = 0) -> pd.DataFrame:
    """Return the rows asked for; without a word, those not of the target label: all, or `most` and said so."""
    if request.rows_file is not None:
        rows = tables.read_table(request.rows_file, request.encoding, request.header)
        known = [name for name in rows.columns if name in job.table.columns]
        rows = rows.set_index(request.id_column) if request.id_column in rows.columns else rows
        return rows[known]
    if request.ids:
        return job.table.iloc[tables.named(request.ids, job.table.index)]
    if request.rows:
        return job.table.iloc[tables.numbered(request.rows, len(job.table), job.numbers)]
    places = _places(job, request)
    kept = places if most is None else tables.sampled(places, most, seed) if seed >= 0 else places[:most]
    if len(kept) < len(places):
        how = f"a random {len(kept):,} (seed {seed})" if seed >= 0 else f"the first {len(kept):,}"
        say(f"Explaining {how} of {len(places):,} rows; --rows all or --rows 3,17 says which.")
    return job.table.iloc[kept]


def _heart(request: Request) -> Job:
    from onbmacf.demo import heart_network

    table, chd = load_heart()
    labels = chd.map({0: "healthy", 1: "at risk"})
    request = replace(
        request,
        immutable=request.immutable or (() if request.map else ("age",)),
        target=request.target or ("healthy",),
    )
    model, notes = _model(table, labels, request) if request.model else (heart_network().fit(table, labels), ())
    say("The embedded heart data: 462 men, a 32-16 network that predicts who is at risk; age must stay.")
    return _fitted(table, model, request, "the embedded heart data", request.model or "a 32-16 network", {}, notes)


def _fitted(
    table: pd.DataFrame,
    model: Any,
    request: Request,
    source: str,
    model_name: str,
    files: dict[str, str],
    notes: tuple[str, ...],
) -> Job:
    explainer = _explainer(table, model, request)
    classes = explainer.classes_
    whole = ",".join(request.target)
    words = [whole] if whole in map(str, classes) else [part.strip() for part in whole.split(",") if part.strip()]
    labels = [tables.as_label(word, classes, "--target") for word in words]
    target = None if not labels else labels[0] if len(labels) == 1 else labels
    return Job(table, explainer, target, source, model_name, files, notes)


def _explainer(table: pd.DataFrame, model: Any, request: Request) -> ONBMACF:
    if request.map is not None:
        if request.immutable or request.rules:
            say("note: --immutable and --rules are those that the map was built with; given again, they are not used.")
        explainer = ONBMACF.load(request.map, model)
        return explainer.set_params(n_counterfactuals=request.n, n_jobs=request.jobs)
    said = {"strategy": request.strategy or None, "plausibility": request.plausibility}
    options: dict[str, Any] = {name: word for name, word in said.items() if word is not None}
    explainer = ONBMACF(request.n, n_jobs=request.jobs, **options)
    return explainer.fit(table, model, schema=_schema(table, request), output=request.output)


def _schema(table: pd.DataFrame, request: Request) -> Schema:
    immutable = tables.columns_of(request.immutable, list(table.columns), "--immutable")
    schema = Schema.infer(table, immutable=immutable)
    return schema if request.rules is None else schema.with_rules(Rules.from_toml(request.rules))


def _model(table: pd.DataFrame, y: "pd.Series[Any] | None", request: Request) -> tuple[Any, tuple[str, ...]]:
    if request.model:
        return load_model(request.model, table, request.trust_pickle), ()
    assert y is not None  # prepare has seen to it
    model, note = trained(table, y)
    say(note)
    return model, (note,)


def _features(
    table: pd.DataFrame, request: Request
) -> "tuple[pd.DataFrame, pd.Series[Any] | None, pd.Index[Any] | None]":
    """Return the columns to explain, complete; the target column if there is one; and the rows' numbers in the file."""
    table = table.drop(columns=tables.columns_of(request.drop, list(table.columns), "--drop"))
    columns = list(table.columns)
    target = tables.columns_of([request.target_column] if request.target_column else [], columns, "--target-column")
    names = tables.columns_of([request.id_column] if request.id_column else [], columns, "--id-column")
    missing = table.isna().any(axis=1)
    if missing.any() and not request.drop_missing:
        lacking = ", ".join(str(name) for name in table.columns if table[name].isna().any())
        raise TableError(
            f"{int(missing.sum()):,} rows have missing values, in {lacking}: fill them, or say --drop-missing."
        )
    numbers = None
    if missing.any():
        say(f"Left out {int(missing.sum()):,} rows with missing values; {int((~missing).sum()):,} remain.")
        table = table[~missing]
        numbers = table.index
    table = table.set_index(names[0]) if names else table
    return table.drop(columns=target), table[target[0]] if target else None, numbers


def _files(request: Request) -> list[Path]:
    paths = [
        request.table,
        request.rules,
        request.map,
        request.rows_file,
        Path(request.model) if request.model else None,
    ]
    return [path for path in paths if path is not None and path.is_file()]


def _places(job: Job, request: Request) -> list[int]:
    """Return the positions of the rows to explain by what the model says of them."""
    explainer = job.explainer
    said = explainer.classes_[explainer.labels_] if len(explainer.labels_) == len(job.table) else None
    if said is None:
        return list(range(len(job.table)))
    if request.predicted:
        label = tables.as_label(request.predicted, explainer.classes_, "--predicted")
        return [place for place, word in enumerate(said) if word == label]
    wanted = job.target if isinstance(job.target, list) else [job.target]
    return [place for place, word in enumerate(said) if word not in wanted]
