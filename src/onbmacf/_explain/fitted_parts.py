"""`fit` of a Dask DataFrame: a map whose rows are a sample, and whose balls are pure among all rows (decision 0138).

Dask DataFrame, model  ->  fit_parts (the passes of `streamed.py`)  ->  Fitted
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from onbmacf._balls.metrics import one_hot_height
from onbmacf._balls.sampled import LEAST_OF_LABEL
from onbmacf._base.arrays import Matrix, Rows
from onbmacf._base.checks import check_between
from onbmacf._base.executor import check_client
from onbmacf._explain.distributed import current_client
from onbmacf._explain.fitted import (
    COVERAGE,
    Fitted,
    Whole,
    fit_warnings,
    groups_of,
    learned,
    options_of_fit,
    probe_rows,
)
from onbmacf._explain.parts import Kept
from onbmacf._explain.streamed import (
    Encoding,
    Passes,
    Streamed,
    by_hash,
    columns_pass,
    cover_passes,
    joined,
    labels_pass,
    rows_pass,
)
from onbmacf._search.options import Options
from onbmacf._search.strategies import STRATEGIES, checked
from onbmacf._table.constraints import Constraints
from onbmacf._table.form import TableForm
from onbmacf._table.model import BlackBox
from onbmacf._table.readings import Reading
from onbmacf._table.space import FeatureSpace
from onbmacf.errors import ParameterError, TableError
from onbmacf.schema import Schema

MOST_COVERED = 200_000  # rows of a sample


def fit_parts(
    table: Any,
    model: Any,
    schema: Schema | Callable[[Any], Schema] | None,
    options: Options,
    output: str,
    client: Any,
    reading: Mapping[str, Any],
    coverage: float = COVERAGE,
    folder: Any = None,
) -> Fitted:
    """Cover a Dask DataFrame as a model labels it; finished passes are kept in a folder, if there is one.

    A schema may also be a function that makes one of a sample of the rows.
    """
    most = _check(options, schema, coverage)
    client = current_client() if client is None else client
    if client is not None:
        check_client(client)
    read = Reading.of(**reading)
    table = _with_known_levels(table)
    passes = Passes(table.to_delayed(), client)
    ends, n_rows = columns_pass(passes, table.dtypes.to_dict())
    rows = joined([rows_pass(passes, most, n_rows), ends])
    form = TableForm.fit(rows, schema(rows) if callable(schema) else schema)
    N = form.numbers(form.arrange(rows)[0])
    encoding = _encoding(form, N, options)
    Constraints(encoding.space, encoding.space.schema.rules)  # contradictions are reported before the model is asked
    box = BlackBox(model, form, options.predict_chunk, output, reading=read)
    kept = Kept(None if folder is None else Path(folder), _mark(N, n_rows, passes, box, options, coverage))
    box, told, of_each = labels_pass(passes, box, encoding, kept)
    sample = _with_rare(N, of_each, box, encoding)
    found = cover_passes(passes, encoding, told, sample, (options.competitors, most, coverage), kept)
    return _fitted(found, form, box, options)


def _with_rare(N: Matrix, of_each: Matrix, box: BlackBox, encoding: Encoding) -> tuple[Matrix, Rows]:
    """Return the sample and its labels, with rows of each label of which it has few; in the order of hashes."""
    own, codes = box.ask(N), box.ask(of_each)
    is_rare = (np.bincount(own, minlength=len(box.classes)) < LEAST_OF_LABEL)[codes]
    N, codes = np.concatenate([N, of_each[is_rare]]), np.concatenate([own, codes[is_rare]])
    first = by_hash(encoding.space.encode_numbers(N), codes)
    return N[first], codes[first]


def _mark(N: Any, n_rows: int, passes: Passes, box: BlackBox, options: Options, coverage: float) -> str:
    """Return a mark of a fit: of its sample, what the model says of some of it, and how it is covered."""
    said = box.ask_labels(N[probe_rows(len(N))]).tolist()
    how = (n_rows, len(passes.parts), options_of_fit(options), coverage, said)
    return sha256(np.ascontiguousarray(N).tobytes() + repr(how).encode()).hexdigest()[:16]


def check_alone(**given: Any) -> None:
    """Raise an error for an argument of `fit` that needs all rows at once."""
    for name, value in given.items():
        if value is not None:
            raise ParameterError(f"{name} needs all rows in one process: call .compute() on the Dask DataFrame first.")


def _check(options: Options, schema: Any, coverage: Any) -> int:
    """Return the rows of a sample, or raise an error where something is asked for that needs all rows at once."""
    checked(options)
    if schema is not None and not isinstance(schema, Schema) and not callable(schema):
        raise ParameterError(f"schema must be a Schema, got {schema!r}.")
    check_between("coverage", coverage, 0, 1)
    if STRATEGIES[options.strategy].needs_all or options.cover_rows is None:
        why = "cover_rows=None" if options.cover_rows is None else f"strategy={options.strategy!r}"
        raise ParameterError(f"{why} covers all rows in one process: call .compute() on the Dask DataFrame first.")
    if options.private:
        raise ParameterError("private makes groups of all rows in one process: call .compute() first.")
    return MOST_COVERED if options.cover_rows == "auto" else int(options.cover_rows)


def _with_known_levels(table: Any) -> Any:
    """Return the table with the same categories in all partitions, sorted where they had to be looked for."""
    if not len(table.columns):
        raise TableError("the table has no columns.")
    if not table.columns.is_unique:
        raise TableError("column names repeat. Rename them.")
    dtypes = table.dtypes
    unknown = [name for name in table.columns if dtypes[name] == "category" and not table[name].cat.known]
    if not unknown:
        return table
    table = table.categorize(columns=unknown, index=False)
    levels = {name: sorted(table[name].cat.categories.tolist()) for name in unknown}
    return table.assign(**{name: table[name].cat.set_categories(found) for name, found in levels.items()})


def _encoding(form: TableForm, N: Any, options: Options) -> Encoding:
    space = FeatureSpace.of_numbers(form, N, one_hot_height(options.metric))
    return Encoding(form, space, options.metric, groups_of(space))


def _fitted(found: Streamed, form: TableForm, box: BlackBox, options: Options) -> Fitted:
    """Return the map of the sampled rows; its form and scales are those that `load` reads off these rows."""
    form = TableForm.fit(form.frame(found.N), form.schema)
    space, probes = _encoding(form, found.N, options).space, probe_rows(len(found.N))
    box = learned(replace(box, form=form), found.N[probes], probes, found.codes[probes])
    warnings = fit_warnings(form, found.N, found.cover, box, found.codes)
    parts = (space, box, space.encode_numbers(found.N), found.codes, found.cover, found.N[probes])
    fitted = Fitted(*parts, options_of_fit(options), warnings, whole=Whole(found.n_rows, found.n_sampled, found.share))
    return fitted.reading() if options.read_model else fitted
