"""What fit notices but goes on with, and the rows by which a model is recognised.

table, cover, model  ->  fit_warnings  ->  sentences        number of rows  ->  probe_rows  ->  some of them
"""

from collections.abc import Hashable
from shlex import quote

import numpy as np

from onbmacf._balls.cover import BallCover
from onbmacf._base.arrays import Matrix, Rows
from onbmacf._base.checks import listed
from onbmacf._columns.moments import is_date_text
from onbmacf._rows.company import model_warnings
from onbmacf._rows.form import TableForm
from onbmacf._rows.model import BlackBox
from onbmacf.schema import Schema

N_PROBES = 64  # rows asked twice at fit, and again at load
MOST_LEVELS = 100  # looked at to see whether they are dates
KEPT_ONE = "column {}: taken for an identifier or free text, it is kept as it is"
KEPT_MANY = "columns {}: taken for identifiers or free text, they are kept as they are"
TARGET_ROWS = 8  # with fewer rows, a column that matches the labels means little


def fit_warnings(form: TableForm, N: Matrix, cover: BallCover, black_box: BlackBox, labels: Rows) -> tuple[str, ...]:
    """Return what a caller should know of the table and the model just fitted."""
    messages = _dates_as_text(form.schema) + _held(form.schema)
    identifiers = [name for name in form.identifier_like(N) if name not in form.schema.held]
    if identifiers:
        columns = f"column{'s' * (len(identifiers) > 1)} {listed(identifiers)}"
        messages.append(f"every row has its own value in {columns}: an identifier explains nothing.")
    targets = _target_like(form, N, labels)
    if targets:
        messages.append(
            f"the values of column {listed(targets)} match the model's labels one to one: if it is the target, leave "
            "it out of the table."
        )
    conflicting = np.flatnonzero(cover.reach == 0)
    if len(conflicting):
        messages.append(
            f"{len(conflicting)} rows coincide with a row of another label, at positions "
            f"{listed(conflicting.tolist())}: their balls hold their own point only."
        )
    return (*messages, *model_warnings(black_box, N, labels, probe_rows(len(N))))


def _dates_as_text(schema: Schema) -> list[str]:
    """Return which columns of text hold dates: as levels they have no order and no days between them."""
    names = [f.name for f in schema.features if f.levels and all(map(is_date_text, f.levels[:MOST_LEVELS]))]
    if not names:
        return []
    s, them = ("", "it") if len(names) == 1 else ("s", "them")
    return [
        f"column{s} {listed(names)} hold{'' if s else 's'} dates as text, which have no order here: convert {them} "
        f"with pd.to_datetime, or name {them} in read_table(..., dates=[{names[0]!r}]) or --dates "
        f"{quote(str(names[0]))}."
    ]


def _held(schema: Schema) -> list[str]:
    """Return what was done about text of each row's own, and how to undo it (decision 0083)."""
    if not schema.held:
        return []
    first, option = schema.held[0], quote(f"{schema.held[0]}=categorical")
    is_one = len(schema.held) == 1
    kept = (KEPT_ONE if is_one else KEPT_MANY).format(listed(schema.held))
    return [
        f"nearly every row has a text of its own in {kept}. To let {'it' if is_one else 'one'} change, name its kind, "
        f"as in Schema.infer(table, kinds={{{first!r}: 'categorical'}}) or --kinds {option}, or name it in "
        "explain(vary=...)."
    ]


def _target_like(form: TableForm, N: Matrix, labels: Rows) -> list[Hashable]:
    """Return the columns whose values match the model's labels one to one, as those of a target column do."""
    if len(N) < TARGET_ROWS:
        return []
    of_labels = [N[labels == label] for label in np.unique(labels)]
    values = np.array([rows[0] for rows in of_labels])
    is_constant = np.all([(rows == rows[0]).all(axis=0) for rows in of_labels], axis=0)
    is_different = np.array([len(np.unique(column)) == len(column) for column in values.T])
    return [name for name, is_such in zip(form.schema.names, is_constant & is_different, strict=True) if is_such]


def probe_rows(n_rows: int) -> Rows:
    """Return the rows by which a model is recognised: up to 64, spread evenly."""
    return np.unique(np.linspace(0, n_rows - 1, num=min(N_PROBES, n_rows)).astype(np.intp))
