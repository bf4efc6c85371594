"""Frames for the model: made of blocks or column by column, the same to the dtype, the category and the bit."""

import pickle
from datetime import timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF
from onbmacf._columns.interop import frame_of_cells, rows_frame
from onbmacf._table.form import TableForm
from onbmacf._table.model import BlackBox
from onbmacf._text.frames import row_of

COLUMNS = {
    "float64": np.array([0.5, 1.5, 2.25]),
    "again float64": np.array([9.5, 1.25, 2.25]),
    "float32": np.array([0.1, 1.5, 2.25], dtype=np.float32),
    "int8": np.array([1, 2, 5], dtype=np.int8),
    "uint64": np.array([1, 2, 5], dtype=np.uint64),
    "zeros and ones": np.array([0, 1, 1]),
    "bool": np.array([True, False, True]),
    "object": pd.Series(["a", "b", "c"], dtype=object),
    "again object": pd.Series(["c", "d", "c"], dtype=object),
    "str": pd.Series(["x", "y", "z"], dtype="str"),
    "again str": pd.Series(["z", "u", "v"], dtype="str"),
    "string": pd.array(["x", "y", "z"], dtype="string"),
    "category": pd.Categorical(["x", "y", "z"]),
    "other order": pd.Categorical(["x", "y", "z"], categories=["z", "y", "x"]),
    "ordered": pd.Categorical(["x", "y", "z"], categories=["z", "w", "y", "x"], ordered=True),
    "number categories": pd.Categorical([3, 1, 2]),
}
DAYS = pd.date_range("2024-03-30", periods=3)
CAREFUL = {
    "Int64": pd.array([1, 2, 3], dtype="Int64"),
    "Int64 and missing": pd.array([1, None, 3], dtype="Int64"),
    "Float32 and missing": pd.array([0.1, None, 3], dtype="Float32"),
    "boolean": pd.array([True, False, True], dtype="boolean"),
    "boolean and missing": pd.array([True, None, False], dtype="boolean"),
    "numbers as objects": pd.Series([1, 2, 7], dtype=object),
    "fractions as objects": pd.Series([0.5, None, 7.25], dtype=object),
    "text and missing": pd.Series(["x", None, "z"], dtype="str"),
    "objects and None": pd.Series(["x", None, "z"], dtype=object),
    "category and missing": pd.Categorical(["x", None, "z"]),
    "categories of days": pd.Categorical(DAYS),
    "days": DAYS,
    "days and missing": pd.Series(DAYS).mask([False, True, False]),
    "seconds": (DAYS + pd.Timedelta("1s")).as_unit("s"),
    "days in Berlin": DAYS.tz_localize("Europe/Berlin"),
    "hours in Berlin": (DAYS + pd.Timedelta("3h")).tz_localize("Europe/Berlin"),
    "dates as objects": pd.Series([day.date() for day in DAYS], dtype=object),
    "times as objects": pd.Series([DAYS[0].to_pydatetime(), None, DAYS[2].to_pydatetime()], dtype=object),
    "durations": DAYS - DAYS[0],
    "durations as objects": pd.Series([timedelta(1), timedelta(2), timedelta(7)], dtype=object),
    "months": pd.period_range("2024-03", periods=3, freq="M"),
    "decimals": pd.Series([Decimal("1.25"), None, Decimal("2.50")], dtype=object),
}


def both_ways(table):
    form = TableForm.fit(table, None)
    N = form.numbers(table)[[2, 0, 1, 1]]
    pd.testing.assert_frame_equal(form.frame(N), form.plain_frame(N))
    pd.testing.assert_frame_equal(form.frame(N), table.iloc[[2, 0, 1, 1]].reset_index(drop=True))
    return form


@pytest.mark.parametrize("left_out", [(), tuple(COLUMNS)[:7], tuple(COLUMNS)[7:], tuple(COLUMNS)[1::2]], ids=len)
def test_frames_of_blocks_are_those_made_column_by_column(left_out):
    form = both_ways(pd.DataFrame(COLUMNS).drop(columns=list(left_out)))
    assert form._blocks is not None


@pytest.mark.parametrize("name", CAREFUL)
def test_dtypes_that_need_care_are_columns_of_their_own_among_the_blocks(name):
    form = both_ways(pd.DataFrame({**COLUMNS, name: CAREFUL[name]}))
    assert form._blocks is not None


def test_frames_of_numbers_of_one_dtype_do_not_share_their_memory():
    form = TableForm.fit(pd.DataFrame({"a": [0.5, 1.5], "b": [2.5, 3.5]}), None)
    N = np.array([[0.5, 2.5], [1.5, 3.5]])
    frame = form.frame(N)
    frame.iloc[:, :] = 0.0
    assert N.tolist() == [[0.5, 2.5], [1.5, 3.5]]


@pytest.mark.parametrize("name", CAREFUL)
def test_a_frame_that_is_written_into_leaves_the_next_one_as_it_was(name):
    form = TableForm.fit(pd.DataFrame({**COLUMNS, name: CAREFUL[name]}), None)
    N = form.numbers(pd.DataFrame({**COLUMNS, name: CAREFUL[name]}))
    written, expected = form.frame(N), form.plain_frame(N)
    for column in written.columns:
        written.loc[1, column] = written.loc[2, column]
    written.columns.name = "spoilt"
    pd.testing.assert_frame_equal(form.frame(N), expected)


@pytest.mark.parametrize("columns", [COLUMNS, *({name: CAREFUL[name]} for name in CAREFUL)], ids=["all", *CAREFUL])
@pytest.mark.parametrize("others", [{}, {"float64": COLUMNS["float64"]}], ids=["alone", "mixed"])
def test_a_row_of_numbers_is_that_row_of_their_frame(columns, others):
    table = pd.DataFrame({**columns, **others})
    form = TableForm.fit(table, None)
    N = form.numbers(table)
    for line in range(len(N)):
        made, expected = form.row(N[line], "own"), row_of(form.frame(N), line).rename("own")
        pd.testing.assert_series_equal(made, expected)
        assert [type(value) for value in made] == [type(value) for value in expected]


def test_a_form_that_has_made_frames_is_sent_and_makes_the_same():
    form = both_ways(pd.DataFrame(COLUMNS))
    N = form.numbers(pd.DataFrame(COLUMNS))
    sent = pickle.loads(pickle.dumps(form))
    pd.testing.assert_frame_equal(sent.frame(N), form.frame(N))


def test_a_pandas_that_makes_another_frame_of_blocks_is_given_columns(monkeypatch):
    def other(blocks, columns, index):
        return pd.DataFrame(0.0, index=index, columns=columns)

    monkeypatch.setattr("onbmacf._columns.blocks._framed", other)
    assert both_ways(pd.DataFrame(COLUMNS))._blocks is None
    monkeypatch.setattr("onbmacf._columns.blocks.BlockPlacement", None)
    assert both_ways(pd.DataFrame(COLUMNS))._blocks is None


ROW = {"float64": 0.5, "int8": 2, "bool": True, "str": "x", "numpy": np.float64(1.5), "lacks": np.nan, "object": "a"}
ODD = {
    "none": None,
    "text of half a character": "\ud800",
    "a large number": 2**70,
    "a time": pd.Timestamp("2024-03-30"),
    "a list": [1, 2],
    "float32": np.float32(0.1),
}


@pytest.mark.parametrize("odd", [{}, *({name: value} for name, value in ODD.items())], ids=["plain", *ODD])
def test_a_row_of_any_values_is_the_frame_that_pandas_makes_of_a_record(odd):
    cells = {**ROW, **odd}
    names, columns = tuple(cells), pd.DataFrame([cells], dtype=object).columns
    expected = frame_of_cells([cells])
    own = ["exact"] * 2
    for record in (cells, dict(reversed(cells.items()))):
        made = rows_frame(record, names, columns)[list(names)]
        pd.testing.assert_frame_equal(made, expected, "equiv", *own)
    for label in (None, 7, "seven", ("s", 7)):
        made = rows_frame(pd.Series(cells, name=label, dtype=object), names, columns)
        pd.testing.assert_frame_equal(made, expected.set_axis([label]), "equiv", *own)


def test_a_model_that_writes_into_its_rows_spoils_nothing():
    table = pd.DataFrame({"a": np.arange(40) / 8, "c": ["x", "y"] * 20, "k": pd.Categorical(["u", "v", "w", "u"] * 10)})

    def writing(rows):
        labels = (rows["a"] + (rows["c"] == "x") > 3).to_numpy().astype(int)
        rows.loc[:, "c"], rows.loc[:, "a"], rows.loc[:, "k"], rows.columns.name = "y", 0.0, "w", "spoilt"
        return labels

    reading = lambda rows: (rows["a"] + (rows["c"] == "x") > 3).to_numpy().astype(int)  # noqa: E731
    expected = ONBMACF().fit(table, reading).explain(table.iloc[:9]).to_frame()
    pd.testing.assert_frame_equal(ONBMACF().fit(table, writing).explain(table.iloc[:9]).to_frame(), expected)


@pytest.mark.parametrize(
    "labels",
    [np.array(["no", "yes", "no"]), np.array(["no", "yes", "no"], dtype=object), np.array([0, 1, 0], dtype=np.uint8)],
    ids=["text", "objects", "numbers"],
)
def test_known_labels_are_looked_up_and_unseen_ones_get_codes_of_their_own(labels):
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    box, codes = BlackBox(lambda rows: np.resize(labels, len(rows)), TableForm.fit(table, None)).learn_classes(
        table.to_numpy()
    )
    assert codes.tolist() == [0, 1, 0]
    other = np.array([labels[1], "other", 7, labels[0]], dtype=object)
    assert box.codes(other).tolist() == [1, 2, 3, 0]
