"""A request made ready: the table read, the model loaded or trained, the map fitted or loaded, the rows chosen.

Arguments  ->  prepare  ->  Setup  ->  chosen_rows  ->  rows to explain
"""

import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._explain.fitted_parts import fit_parts
from onbmacf._explain.request import Question
from onbmacf._search.options import Options
from onbmacf._table.form import TableForm
from onbmacf._table.readings import Between
from onbmacf._text.labels import Labels
from onbmacf.cli.explain import Arguments
from onbmacf.cli.inputs import (
    as_fitted,
    chosen_model,
    columns_of,
    ends_of,
    kinds_of,
    label_of,
    labelled_heart,
    labels_of,
    named,
    named_model,
    numbered,
    read_columns,
    read_file,
    read_folder,
    split,
)
from onbmacf.cli.terminal import flag, say
from onbmacf.datasets import heart_network
from onbmacf.errors import OnbmacfWarning, ParameterError
from onbmacf.explainer import ONBMACF
from onbmacf.report.render import file_digest
from onbmacf.rules import Rules
from onbmacf.schema import Schema, schema_file

MANY = 1000  # rows of a folder by which a model is loaded
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
    truth: "pd.Series[Any] | None" = None  # the target column, if there is one, without labels trained on
    numbers: "pd.Index[Any] | None" = None  # the rows' numbers in the file, where some were left out
    arguments: dict[str, Any] = field(default_factory=dict)  # of explain, beside rows and target


# --- table, model and map ---------------------------------------------------------------------------------------------


def prepare(arguments: Arguments) -> Setup:
    """Read the table, load or train the model, and fit; tell on stderr what the reader should know."""
    arguments.check()
    if arguments.table is None:
        return _with_heart(arguments)
    if not arguments.model and not arguments.target_column:
        raise ParameterError("give a model (--model), or a column to train one on (--target-column).")
    table, y, numbers = read_columns(arguments.table, arguments)
    # Faults of the table are told before a model is trained, which takes time.
    TableForm.fit(table, Schema.infer(table) if arguments.map else _schema(table, arguments))
    chosen = chosen_model(table, y, arguments)
    explainer, target = _fitted(table, chosen.model, arguments)
    return Setup(
        table,
        explainer,
        target,
        str(arguments.table),
        chosen.name,
        _digests(arguments),
        chosen.notes,
        chosen.truth,
        numbers,
        arguments.explain_arguments(),
    )


def _with_heart(arguments: Arguments) -> Setup:
    table, labels = labelled_heart()
    age_stays = not arguments.immutable and not arguments.vary and arguments.map is None
    arguments = replace(
        arguments, immutable=("age",) if age_stays else arguments.immutable, target=arguments.target or ("healthy",)
    )
    name = arguments.model or "a 32-16 network"
    model = named_model(table, arguments) if arguments.model else heart_network().fit(table, labels)
    age = " Age must stay as it is." if age_stays else ""
    say(f"Using the embedded heart data: {len(table)} men; {name} predicts who is at risk.{age}")
    explainer, target = _fitted(table, model, arguments)
    return Setup(
        table,
        explainer,
        target,
        "the embedded heart data",
        name,
        _digests(arguments),
        truth=labels if arguments.model else None,  # the network was trained on all of them
        arguments=arguments.explain_arguments(),
    )


def fitted_folder(arguments: Arguments, coverage: float, passes: Path) -> ONBMACF:
    """Return an explainer of a folder of parquet files, which may be larger than memory."""
    arguments.check()
    if not arguments.model:
        raise ParameterError(f"{arguments.table} is a folder: give a model (--model), none is trained on one.")
    unread = {"id_column": arguments.id_column, "drop_missing": arguments.drop_missing, "dates": arguments.dates}
    if given := [flag(name) for name, value in unread.items() if value]:
        raise ParameterError(f"{given[0]} is for a table in one file, not for a folder of parquet files.")
    table = read_folder(arguments)
    explainer = ONBMACF(**_options(arguments))
    explainer.fitted_ = fit_parts(
        table,
        named_model(table.head(MANY), arguments),
        lambda rows: _schema(rows, arguments),
        Options(**explainer.get_params()),
        arguments.output,
        None,
        {
            "threshold": arguments.threshold,
            "classes": split(",".join(arguments.classes)) or None,
            "between": Between(**ends_of(arguments.between)) if arguments.between else None,
        },
        coverage,
        passes,
    )
    for message in explainer.warnings_:
        warnings.warn(message, OnbmacfWarning, stacklevel=2)
    return explainer


def fitted_again(setup: Setup, arguments: Arguments, spec: str) -> ONBMACF:
    """Return an explainer of another model, fitted on the same table with the same rules and options."""
    model = named_model(setup.table, replace(arguments, model=spec))
    return ONBMACF(**_options(arguments)).fit(
        setup.table, model, schema=setup.explainer.schema_, output=arguments.output
    )


def _fitted(table: pd.DataFrame, model: Any, arguments: Arguments) -> tuple[ONBMACF, Any]:
    """Return the explainer, and the label or labels to reach."""
    explainer = _loaded(arguments.map, model, arguments) if arguments.map else _fresh(table, model, arguments)
    words = arguments.target or (("inside",) if arguments.between else ())
    labels = labels_of(words, explainer.classes_, "--target")
    return explainer, None if not labels else labels[0] if len(labels) == 1 else labels


def _loaded(path: Path, model: Any, arguments: Arguments) -> ONBMACF:
    """Load a map; what the request leaves out stays as the map was built."""
    explainer = ONBMACF.load(path, model).set_params(**_options(arguments))
    said, rules = _rules(arguments, explainer.schema_.rules)
    said.pop("dates", None)
    fixed = (arguments.kinds, arguments.fillable, arguments.classes, arguments.between, said)
    if any(fixed) or arguments.threshold is not None:
        names = "--kinds, --fillable, --threshold, --classes and --between"
        say(f"note: {names} are ignored: a map keeps those it was built with.")
    columns = explainer.schema_.names
    immutable, vary = (columns_of(getattr(arguments, name), columns, flag(name)) for name in ("immutable", "vary"))
    schema = Question(immutable=immutable or None, vary=vary or None, rules=rules).schema(explainer.schema_)
    schema = schema if arguments.labels is None else replace(schema, labels=Labels.from_toml(arguments.labels))
    explainer.fitted_ = explainer.fitted_.under(schema)
    return explainer


def _rules(arguments: Arguments, otherwise: Rules) -> tuple[dict[str, Any], Rules | None]:
    """Return what the file says of columns, and its rules with those typed; None where there are neither."""
    said, rules = ({}, None) if arguments.rules is None else schema_file(arguments.rules)
    if arguments.relations:
        rules = otherwise if rules is None else rules
        rules = replace(rules, relations=(*rules.relations, *arguments.relations))
    return said, rules


def _fresh(table: pd.DataFrame, model: Any, arguments: Arguments) -> ONBMACF:
    return ONBMACF(**_options(arguments)).fit(
        table,
        model,
        target=Between(**ends_of(arguments.between)) if arguments.between else None,
        threshold=arguments.threshold,
        classes=split(",".join(arguments.classes)) or None,
        schema=_schema(table, arguments),
        output=arguments.output,
    )


def _options(arguments: Arguments) -> dict[str, Any]:
    """Return the options of the explainer that were typed; the others keep their defaults, or those of a map."""
    typed = {
        "strategy": arguments.strategy or None,
        "plausibility": arguments.plausibility,
        "release": arguments.release or None,
        "private": arguments.private,
        "cover_rows": arguments.cover_rows,
        "max_model_rows": arguments.max_model_rows,
        "max_model_calls": arguments.max_model_calls,
    }
    typed = {name: value for name, value in typed.items() if value is not None}
    return {"n_counterfactuals": arguments.n, "n_jobs": arguments.jobs, **typed}


def _schema(table: pd.DataFrame, arguments: Arguments) -> Schema:
    columns = list(table.columns)
    immutable = columns_of(arguments.immutable, columns, "--immutable")
    fillable = columns_of(arguments.fillable, columns, "--fillable")
    kinds, ordinal = kinds_of(arguments.kinds, columns)
    said, rules = _rules(arguments, Rules())
    schema = Schema.infer(
        table,
        immutable=immutable,
        kinds={**said.get("kinds", {}), **kinds},
        ordinal={**said.get("ordinal", {}), **ordinal},
        decimals=said.get("decimals"),
        fillable=[*said.get("fillable", ()), *fillable],
        rules=rules,
        labels=None if arguments.labels is None else Labels.from_toml(arguments.labels),
    )
    schema = Question(vary=columns_of(arguments.vary, columns, "--vary") or None).schema(schema)
    return schema if rules is None else schema.with_rules(rules)


def _digests(arguments: Arguments) -> dict[str, str]:
    return {path.name: file_digest(path) for path in arguments.inputs() if path.is_file()}


# --- rows -------------------------------------------------------------------------------------------------------------


def chosen_rows(setup: Setup, arguments: Arguments, most: int | None, seed: int | None = None) -> pd.DataFrame:
    """Return the rows that the request names; without any, those that do not have the target label.

    Of these at most `most` are taken, drawn with a seed, or the first ones without; a line on stderr says so.
    """
    return as_fitted(_chosen(setup, arguments, most, seed), setup.explainer.fitted_.space.form)


def _chosen(setup: Setup, arguments: Arguments, most: int | None, seed: int | None) -> pd.DataFrame:
    table = setup.table
    if arguments.rows_file is not None:
        if arguments.predicted:
            raise ParameterError("--predicted chooses among the rows of the table: leave it or --rows-file out.")
        rows = read_file(arguments.rows_file, arguments)
        known = [name for name in rows.columns if name in table.columns]
        return (rows.set_index(arguments.id_column) if arguments.id_column in rows.columns else rows)[known]
    if arguments.ids:
        return table.iloc[_predicted(setup, arguments, named(arguments.ids, table.index))]
    if arguments.rows:
        numbers = range(len(table)) if setup.numbers is None else setup.numbers
        return table.iloc[_predicted(setup, arguments, numbered(arguments.rows, numbers))]
    places = _places(setup, arguments)
    if most is None or len(places) <= most:
        return table.iloc[places]
    if seed is None:
        kept, which = places[:most], f"the first {most:,}"
    else:
        kept = np.sort(np.random.default_rng(seed).choice(places, size=most, replace=False)).tolist()
        which = f"a random {most:,} (seed {seed})"
    say(f"Explaining {which} of {len(places):,} rows; choose others with --rows 3,17 or --rows all.")
    return table.iloc[kept]


def _predicted(setup: Setup, arguments: Arguments, places: list[int]) -> list[int]:
    """Return those of the rows that are named which the model gives the label asked for; all where none is."""
    if not arguments.predicted:
        return places
    wanted = set(_places(setup, arguments))
    kept = [place for place in places if place in wanted]
    if not kept:
        raise ParameterError(f"--predicted: the model says {arguments.predicted!r} of none of the rows that are named.")
    return kept


def _places(setup: Setup, arguments: Arguments) -> list[int]:
    """Return the positions of the rows to explain by what the model says of them."""
    explainer = setup.explainer
    if len(explainer.labels_) != len(setup.table):  # a map of another table: what the model says here is not known
        return list(range(len(setup.table)))
    labels = explainer.classes_[explainer.labels_]
    if arguments.predicted:
        label = label_of(arguments.predicted, explainer.classes_, "--predicted")
        return [place for place, said in enumerate(labels) if said == label]
    wanted = setup.target if isinstance(setup.target, list) else [setup.target]
    return [place for place, said in enumerate(labels) if said not in wanted]
