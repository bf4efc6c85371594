"""A request made ready: the table read, the model loaded or trained, the map fitted or loaded, the rows chosen.

Request  ->  prepare  ->  Setup  ->  chosen_rows  ->  rows to explain
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._explain.request import Question
from onbmacf._table.form import TableForm
from onbmacf._table.readings import Between
from onbmacf.cli.inputs import as_fitted, chosen_model, labelled_heart, named_model, read_columns, read_file
from onbmacf.cli.options import Request, flag
from onbmacf.cli.terminal import say
from onbmacf.cli.words import columns_of, ends_of, kinds_of, label_of, labels_of, named, numbered, split
from onbmacf.datasets import heart_network
from onbmacf.errors import ParameterError
from onbmacf.explainer import ONBMACF
from onbmacf.report.render import file_digest
from onbmacf.rules import Rules
from onbmacf.schema import Schema

FIRST = 10  # rows to explain where the request does not say which


@dataclass(frozen=True, eq=False)
class Setup:
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
    arguments: dict[str, Any] = field(default_factory=dict)  # of explain, beside rows and target


# --- table, model and map ---------------------------------------------------------------------------------------------


def prepare(request: Request) -> Setup:
    """Read the table, load or train the model, and fit; tell on stderr what the reader should know."""
    request.check()
    if request.table is None:
        return _with_heart(request)
    if not request.model and not request.target_column:
        raise ParameterError("give a model (--model), or a column to train one on (--target-column).")
    table, y, numbers = read_columns(request.table, request)
    TableForm.fit(table, Schema.infer(table) if request.map else _schema(table, request))  # before a model is trained
    chosen = chosen_model(table, y, request)
    explainer, target = _fitted(table, chosen.model, request)
    return Setup(
        table,
        explainer,
        target,
        str(request.table),
        chosen.name,
        _digests(request),
        chosen.notes,
        y,
        numbers,
        request.explain_arguments(),
    )


def _with_heart(request: Request) -> Setup:
    table, labels = labelled_heart()
    age_stays = not request.immutable and not request.vary and request.map is None
    request = replace(
        request, immutable=("age",) if age_stays else request.immutable, target=request.target or ("healthy",)
    )
    name = request.model or "a 32-16 network"
    model = named_model(table, request) if request.model else heart_network().fit(table, labels)
    age = " Age must stay as it is." if age_stays else ""
    say(f"Using the embedded heart data: {len(table)} men; {name} predicts who is at risk.{age}")
    explainer, target = _fitted(table, model, request)
    return Setup(
        table,
        explainer,
        target,
        "the embedded heart data",
        name,
        _digests(request),
        truth=labels,
        arguments=request.explain_arguments(),
    )


def fitted_again(setup: Setup, request: Request, spec: str) -> ONBMACF:
    """Return an explainer of another model, fitted on the same table with the same rules and options."""
    model = named_model(setup.table, replace(request, model=spec))
    return ONBMACF(**_options(request)).fit(setup.table, model, schema=setup.explainer.schema_, output=request.output)


def _fitted(table: pd.DataFrame, model: Any, request: Request) -> tuple[ONBMACF, Any]:
    """Return the explainer, and the label or labels to reach."""
    explainer = _loaded(request.map, model, request) if request.map else _fresh(table, model, request)
    words = request.target or (("inside",) if request.between else ())
    labels = labels_of(words, explainer.classes_, "--target")
    return explainer, None if not labels else labels[0] if len(labels) == 1 else labels


def _loaded(path: Path, model: Any, request: Request) -> ONBMACF:
    """Load a map; what the request leaves out stays as the map was built."""
    fixed = (request.kinds, request.fillable, request.classes, request.between)
    if any(fixed) or request.threshold is not None:
        names = "--kinds, --fillable, --threshold, --classes and --between"
        say(f"note: {names} are ignored: a map keeps those it was built with.")
    explainer = ONBMACF.load(path, model).set_params(**_options(request))
    columns = explainer.schema_.names
    immutable, vary = (columns_of(getattr(request, name), columns, flag(name)) for name in ("immutable", "vary"))
    rules = None if request.rules is None else Rules.from_toml(request.rules)
    schema = Question(immutable=immutable or None, vary=vary or None, rules=rules).schema(explainer.schema_)
    explainer.fitted_ = explainer.fitted_.under(schema)
    return explainer


def _fresh(table: pd.DataFrame, model: Any, request: Request) -> ONBMACF:
    return ONBMACF(**_options(request)).fit(
        table,
        model,
        target=Between(**ends_of(request.between)) if request.between else None,
        threshold=request.threshold,
        classes=split(",".join(request.classes)) or None,
        schema=_schema(table, request),
        output=request.output,
    )


def _options(request: Request) -> dict[str, Any]:
    """Return the options of the explainer that were typed; the others keep their defaults, or those of a map."""
    typed = {
        "strategy": request.strategy or None,
        "plausibility": request.plausibility,
        "release": request.release or None,
        "private": request.private,
        "max_model_rows": request.max_model_rows,
        "max_model_calls": request.max_model_calls,
    }
    typed = {name: value for name, value in typed.items() if value is not None}
    return {"n_counterfactuals": request.n, "n_jobs": request.jobs, **typed}


def _schema(table: pd.DataFrame, request: Request) -> Schema:
    columns = list(table.columns)
    immutable = columns_of(request.immutable, columns, "--immutable")
    fillable = columns_of(request.fillable, columns, "--fillable")
    kinds, ordinal = kinds_of(request.kinds, columns)
    schema = Schema.infer(table, immutable=immutable, kinds=kinds, ordinal=ordinal, fillable=fillable)
    schema = Question(vary=columns_of(request.vary, columns, "--vary") or None).schema(schema)
    return schema if request.rules is None else schema.with_rules(Rules.from_toml(request.rules))


def _digests(request: Request) -> dict[str, str]:
    return {path.name: file_digest(path) for path in request.inputs() if path.is_file()}


# --- rows -------------------------------------------------------------------------------------------------------------


def chosen_rows(setup: Setup, request: Request, most: int | None, seed: int | None = None) -> pd.DataFrame:
    """Return the rows that the request names; without any, those that do not have the target label.

    Of these at most `most` are taken, drawn with a seed, or the first ones without; a line on stderr says so.
    """
    return as_fitted(_chosen(setup, request, most, seed), setup.explainer.fitted_.space.form)


def _chosen(setup: Setup, request: Request, most: int | None, seed: int | None) -> pd.DataFrame:
    table = setup.table
    if request.rows_file is not None:
        rows = read_file(request.rows_file, request)
        known = [name for name in rows.columns if name in table.columns]
        return (rows.set_index(request.id_column) if request.id_column in rows.columns else rows)[known]
    if request.ids:
        return table.iloc[named(request.ids, table.index)]
    if request.rows:
        return table.iloc[numbered(request.rows, range(len(table)) if setup.numbers is None else setup.numbers)]
    places = _places(setup, request)
    if most is None or len(places) <= most:
        return table.iloc[places]
    if seed is None:
        kept, which = places[:most], f"the first {most:,}"
    else:
        kept = np.sort(np.random.default_rng(seed).choice(places, size=most, replace=False)).tolist()
        which = f"a random {most:,} (seed {seed})"
    say(f"Explaining {which} of {len(places):,} rows; choose others with --rows 3,17 or --rows all.")
    return table.iloc[kept]


def _places(setup: Setup, request: Request) -> list[int]:
    """Return the positions of the rows to explain by what the model says of them."""
    explainer = setup.explainer
    if len(explainer.labels_) != len(setup.table):  # a map of another table: what the model says here is not known
        return list(range(len(setup.table)))
    labels = explainer.classes_[explainer.labels_]
    if request.predicted:
        label = label_of(request.predicted, explainer.classes_, "--predicted")
        return [place for place, said in enumerate(labels) if said == label]
    wanted = setup.target if isinstance(setup.target, list) else [setup.target]
    return [place for place, said in enumerate(labels) if said not in wanted]
