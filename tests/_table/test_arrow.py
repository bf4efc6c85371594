"""Tables of pyarrow: fitted, answered and kept in maps in their own dtypes; polars in several processes."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF, Status

pa = pytest.importorskip("pyarrow")
DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(days=9 * row) for row in range(60)]
COLUMNS = {
    "int8": pa.array([row % 50 for row in range(60)], pa.int8()),
    "float": pa.array([row / 4 for row in range(60)], pa.float32()),
    "bool": pa.array([row % 2 == 0 for row in range(60)]),
    "text": pa.array(["a", "b", "c"] * 20),
    "levels": pa.array(["a", "b", "c"] * 20).dictionary_encode(),
    "date": pa.array(DAYS, pa.date32()),
    "time": pa.array([datetime.datetime(2020, 1, 1, row % 24, row) for row in range(60)], pa.timestamp("us")),
    "decimal": pa.array([Decimal(row) / 4 for row in range(60)], pa.decimal128(10, 2)),
}


def model(rows):
    assert isinstance(rows, pd.DataFrame)
    return np.where(rows["x"] > 30, "yes", "no")


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_a_table_of_pyarrow_is_answered_in_its_own_dtypes_also_from_a_map(column, tmp_path):
    table = pa.table({"x": list(range(60)), "c": column})
    explainer = ONBMACF(2).fit(table, model)
    answers = explainer.explain(table.slice(3, 4))
    assert set(answers.statuses) == {"found"}
    frame = answers.to_frame()
    given = table.to_pandas(types_mapper=lambda kind: None if pa.types.is_dictionary(kind) else pd.ArrowDtype(kind))
    assert frame["c"].dtype == given["c"].dtype
    assert frame["x"].dtype == pd.ArrowDtype(pa.int64())
    explainer.save(tmp_path / "arrow.onb")
    again = ONBMACF.load(tmp_path / "arrow.onb", model).explain(table.slice(3, 4))
    pd.testing.assert_frame_equal(again.to_frame(), frame)
    same = explainer.explain(given.iloc[3:7]).to_frame().reset_index(drop=True)
    pd.testing.assert_frame_equal(same, frame.reset_index(drop=True))


@pytest.mark.parametrize("dtype", ["datetime64[us]", "date32[day][pyarrow]", object])
def test_a_time_of_day_in_a_column_of_days_is_refused_with_its_value(dtype):
    days = pd.Series(pd.to_datetime(DAYS).as_unit("us"))
    table = pd.DataFrame({"x": range(60), "day": days.dt.date if dtype is object else days.astype(dtype)})
    explainer = ONBMACF().fit(table, model)
    rows = pd.DataFrame({"x": [3, 3], "day": [pd.Timestamp("2020-02-03 15:30"), pd.Timestamp("2020-02-03")]})
    answers = explainer.explain(rows)
    assert answers.statuses.tolist() == [Status.INVALID_ROW, Status.FOUND]
    assert "15" in answers.reasons[0]
    assert "whole number of days" in answers.reasons[0]


@pytest.mark.xdist_group("processes")  # one pool for all of them
def test_polars_in_several_processes_gives_the_same():
    pl = pytest.importorskip("polars")
    table = pl.DataFrame({"x": [*range(60)], "c": ["a", "b", "c"] * 20})

    one = ONBMACF(2).fit(table, polars_model).explain(table[:12])
    two = ONBMACF(2, n_jobs=2).fit(table, polars_model).explain(table[:12])
    assert two.to_polars().equals(one.to_polars())
    assert two.to_json() == one.to_json()


def polars_model(rows):
    assert type(rows).__module__.startswith("polars")
    return np.where(rows["x"].to_numpy() > 30, "yes", "no")
