"""What fit warns of: a table that still holds its target column."""

import warnings

import numpy as np
import pandas as pd
import pytest

from conftest import by_table
from onbmacf import ONBMACF, Schema
from onbmacf._explain.fitted import TARGET_ROWS
from onbmacf.bench.datasets import DESCRIPTIONS, load_task
from onbmacf.datasets import load_heart
from onbmacf.errors import OnbmacfWarning

MATCHES = "match the model's labels one to one"


def warned_of(table, model, **options):
    """Return what fit warns of about columns that match the labels; each warning is kept in warnings_, too."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", OnbmacfWarning)
        fitted = ONBMACF().fit(table, model, **options)
    assert tuple(str(one.message) for one in seen if one.category is OnbmacfWarning) == fitted.warnings_
    return [message for message in fitted.warnings_ if MATCHES in message]


@pytest.mark.parametrize("words", [None, {0: "healthy", 1: "ill"}, {0: False, 1: True}, {0: 1.5, 1: -2.0}])
def test_the_target_column_is_noticed_whatever_its_values(words):
    table, chd = load_heart()
    assert warned_of(table, lambda rows: np.where(rows["ldl"] > 5, "b", "a")) == []
    table["chd"] = chd if words is None else chd.map(words)
    known = table["chd"].iloc[0]
    [message] = warned_of(table, lambda rows: np.where(rows["chd"] == known, "b", "a"))
    assert message == f"the values of column 'chd' {MATCHES}: if it is the target, leave it out of the table."


def test_with_three_labels_every_label_needs_a_value_of_its_own():
    random = np.random.default_rng(0)
    kind = random.choice(["a", "b", "c"], 60)
    table = pd.DataFrame({"x": random.normal(size=60), "kind": kind, "is_a": kind == "a", "constant": 1})
    table["finer"] = table["kind"] + random.choice(["1", "2"], 60)  # tells the label, but is no target
    table["rank"] = table["kind"].map({"a": 10, "b": 30, "c": 20})
    [message] = warned_of(table, lambda rows: rows["kind"].to_numpy())
    assert "column 'kind', 'rank' match" in message
    assert warned_of(table.drop(columns=["kind", "rank"]), lambda rows: rows["finer"].str[0].to_numpy()) == []


def test_one_row_that_differs_is_no_target():
    table = pd.DataFrame({"x": np.arange(40), "flag": np.arange(40) >= 20})
    assert len(warned_of(table, lambda rows: (rows["x"] >= 20).to_numpy())) == 1
    assert warned_of(table, lambda rows: (rows["x"] >= 21).to_numpy()) == []


def test_a_few_rows_match_by_chance():
    for n, expected in ((TARGET_ROWS - 1, 0), (TARGET_ROWS, 1)):
        table = pd.DataFrame({"flag": np.arange(n) % 2})
        model = lambda rows: (rows["flag"] == 1).to_numpy()  # noqa: E731
        assert len(warned_of(table, model, schema=Schema.infer(table))) == expected


@by_table(DESCRIPTIONS)
def test_no_column_of_the_eight_tables_is_taken_for_a_target(data_dir, network_of, name):
    from onbmacf._explain.fitted import _target_like

    task = load_task(name, data_dir)
    labels = network_of(task).label_of(task.Z)
    assert len(np.unique(labels)) == 2
    form, N = task.space.form, task.space.form.numbers(task.table)
    assert _target_like(form, N, labels) == []
    assert _target_like(form, np.column_stack([N[:, 1:], labels]), labels) == [form.schema.names[-1]]
