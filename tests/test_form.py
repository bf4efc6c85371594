"""Frames for the model: made of blocks or column by column, the same to the dtype, the category and the bit."""

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF
from onbmacf._rows.form import TableForm
from onbmacf._rows.model import BlackBox

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
CAREFUL = {
    "Int64": pd.array([1, 2, 3], dtype="Int64"),
    "boolean": pd.array([True, False, True], dtype="boolean"),
    "numbers as objects": pd.Series([1, 2, 7], dtype=object),
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
    is_new = pd.__version__ >= "3"
    assert (form._blocks is not None) == is_new


@pytest.mark.parametrize("name", CAREFUL)
def test_dtypes_that_need_care_are_made_column_by_column(name):
    form = both_ways(pd.DataFrame({**COLUMNS, name: CAREFUL[name]}))
    assert form._blocks is None


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
