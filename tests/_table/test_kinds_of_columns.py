"""Columns people have: each kind is fitted, asked and answered in the caller's own dtype."""

import datetime
import re
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF, Rules, Schema
from onbmacf._columns.converters import converter_of
from onbmacf.errors import ParameterError, TableError

N = 60
X = np.random.default_rng(0).integers(0, 100, N)
Z = np.random.default_rng(1).normal(size=N).round(2)
START = pd.Timestamp("2024-01-01")
DAYS = pd.Series(START + pd.to_timedelta(X, "D"))
TIMES = pd.Series(START + pd.to_timedelta(X * 3601, "s"))
LETTERS = np.array(list("abcd"))[X % 4]


def objects(values):
    return pd.Series(list(values), dtype=object)


OTHER_STORAGE = "python" if pd.StringDtype().storage == "pyarrow" else "pyarrow"
COLUMNS = {
    "int8": lambda: pd.Series(X, dtype="int8"),
    "uint8": lambda: pd.Series(X, dtype="uint8"),
    "int64": lambda: pd.Series(X),
    "float32": lambda: pd.Series(X / 8, dtype="float32"),
    "float64": lambda: pd.Series(X / 8),
    "bool": lambda: pd.Series(X > 50),
    "Int64": lambda: pd.Series(X, dtype="Int64"),
    "Float64": lambda: pd.Series(X / 4, dtype="Float64"),
    "boolean": lambda: pd.Series(X > 50, dtype="boolean"),
    "category": lambda: pd.Series(LETTERS).astype("category"),
    "ordered category": lambda: pd.Series(pd.Categorical(LETTERS, ordered=True)),
    "str": lambda: pd.Series(LETTERS),
    "object text": lambda: objects(LETTERS.tolist()),
    "days in ns": lambda: DAYS.astype("datetime64[ns]"),
    "days in s": lambda: DAYS.astype("datetime64[s]"),
    "times": lambda: TIMES,
    "times with parts of a second": lambda: pd.Series(START + pd.to_timedelta(X * 1.5, "ms")),
    "days of a time zone": lambda: DAYS.dt.tz_localize("Europe/Berlin"),
    "times of a time zone": lambda: TIMES.dt.tz_localize("America/New_York"),
    "date objects": lambda: objects(day.date() for day in DAYS),
    "datetime objects": lambda: objects(time.to_pydatetime() for time in TIMES),
    "durations": lambda: pd.Series(pd.to_timedelta(X, "min")),
    "duration objects": lambda: objects(datetime.timedelta(hours=int(hours)) for hours in X),
    "months": lambda: pd.Series(pd.period_range("2020-01", periods=100, freq="M")[X]),
    "decimals": lambda: objects(Decimal(int(value)) / 4 for value in X),
    "pyarrow int64": lambda: pd.Series(X, dtype="int64[pyarrow]"),
    "pyarrow double": lambda: pd.Series(X / 4, dtype="double[pyarrow]"),
    "pyarrow string": lambda: pd.Series(LETTERS, dtype="string[pyarrow]"),
    "text of the other storage": lambda: pd.Series(LETTERS, dtype=pd.StringDtype(OTHER_STORAGE)),
    "pyarrow bool": lambda: pd.Series(X > 50, dtype="bool[pyarrow]"),
    "pyarrow timestamp": lambda: DAYS.astype("timestamp[us][pyarrow]"),
    "pyarrow date": lambda: objects(day.date() for day in DAYS).astype("date32[pyarrow]"),
    "pyarrow duration": lambda: pd.Series(pd.to_timedelta(X, "s")).astype("duration[us][pyarrow]"),
}


def made(name):
    if "pyarrow" in name or "storage" in name:
        pytest.importorskip("pyarrow")
    return COLUMNS[name]()


def rule(column):
    """A model that compares the column's values with one of them, and checks that it gets the caller's dtype."""
    middle = sorted(column.tolist())[N // 2 - 10]

    def model(rows):
        assert rows["c"].dtype == column.dtype
        return np.array([bool(value > middle) for value in rows["c"].tolist()])

    return model


@pytest.mark.parametrize("name", COLUMNS)
def test_every_kind_of_column_is_explained_in_its_own_dtype(name, tmp_path):
    column = made(name)
    table, model = pd.DataFrame({"c": column, "z": Z}), rule(column)
    explainer = ONBMACF(2).fit(table, model)
    answers = explainer.explain(table.head(5), vary=["c"])
    assert set(answers.statuses) == {"found"}
    found = answers.to_frame()
    assert found["c"].dtype == column.dtype == answers.rows["c"].dtype
    assert {type(value) for value in found["c"].tolist()} == {type(value) for value in column.tolist()}
    assert (model(found) == found["to"]).all()
    assert (found["c"].array != column.loc[found.index].array).all()
    assert explainer.explain(table.iloc[[2]], vary=["c"]).to_dicts() == answers.to_dicts()[2:3]
    assert all(str(value) for value in answers.sentences())
    answers.to_json()
    explainer.save(tmp_path / "m.onb")
    again = ONBMACF.load(tmp_path / "m.onb", model).explain(table.head(5), vary=["c"])
    assert again.to_json() == answers.to_json()
    one = {"c": column.iloc[0], "z": Z[0]}
    alone = explainer.explain(one, vary=["c"]).batch.values
    pd.testing.assert_frame_equal(alone, answers[:1].batch.values)


@pytest.mark.parametrize("name", [name for name in COLUMNS if converter_of(COLUMNS[name]()) is not None])
def test_values_come_back_exactly_and_missing_ones_stay_missing(name):
    column = made(name)
    own = converter_of(column)
    back = own.values(own.numbers(column))
    assert back.dtype == column.dtype
    assert back.tolist() == column.tolist()
    lacking = column.copy()
    lacking.iloc[1] = None
    numbers = own.numbers(lacking)
    assert np.flatnonzero(np.isnan(numbers)).tolist() == [1]
    assert np.flatnonzero(own.values(numbers).isna()).tolist() == [1]


def test_units_are_as_coarse_as_the_values_allow():
    units = {
        name: converter_of(made(name)).unit for name in ("days in ns", "times", "days of a time zone", "durations")
    }
    assert units == {"days in ns": "D", "times": "s", "days of a time zone": "D", "durations": "s"}
    assert converter_of(made("times with parts of a second")).unit == "us"


def test_a_step_and_a_direction_hold_for_dates():
    table = pd.DataFrame({"c": DAYS, "z": Z})
    rules = {"features": {"c": {"direction": "down", "step": "7D"}}}
    late = START + pd.Timedelta(40, "D")
    explainer = ONBMACF().fit(table, lambda rows: rows["c"] > late, schema=Schema.infer(table, rules=rules))
    found = explainer.explain(table[late < DAYS].head(5), vary=["c"]).to_frame()
    weeks = (found["c"] - pd.Timestamp("1970-01-01")).dt.days / 7
    assert len(found) == 5
    assert (weeks == weeks.round()).all()


def test_a_cell_of_another_kind_is_a_fault_of_its_row():
    table = pd.DataFrame({"c": DAYS, "z": Z})
    explainer = ONBMACF().fit(table, lambda rows: rows["c"] > DAYS.median())
    rows = table.head(3).astype({"c": object})
    rows.iloc[1, 0] = "soon"
    answers = explainer.explain(rows)
    assert answers.statuses.tolist() == ["found", "invalid_row", "found"]
    assert "'soon'" in answers.reasons[1]


def test_two_thousand_levels():
    table = pd.DataFrame({"c": [f"level {place % 2000}" for place in range(4000)], "z": np.arange(4000) % 7 / 2})
    answers = ONBMACF().fit(table, lambda rows: rows["z"] > 1.2).explain(table.head(3))
    assert set(answers.statuses) == {"found"}
    assert set(answers.changes()["feature"]) == {"z"}


def test_rules_may_name_immutable_features_and_be_plain_dicts(tmp_path):
    table = pd.DataFrame({"c": X, "z": Z})
    (tmp_path / "rules.toml").write_text('immutable = ["z"]\nmax_changes = 1\n', encoding="utf-8")
    schema = Schema.infer(table, rules={"immutable": ["z"], "max_changes": 1})
    assert schema == Schema.infer(table, rules=Rules.from_toml(tmp_path / "rules.toml"))
    assert schema == Schema.infer(table).with_rules({"immutable": ["z"], "max_changes": 1})
    assert schema.immutable == ("z",)
    assert schema.with_immutable([]).immutable == ()
    with pytest.raises(ParameterError, match="rule for 'y': there is no such feature"):
        Schema.infer(table, rules={"immutable": ["y"]})


SECONDS = pd.date_range("2020-01-01", periods=4, freq="s")
BERLIN = pd.date_range("2020-01-01", periods=4, freq="h", tz="Europe/Berlin")
QUARTERS = [Decimal("0.25") * number for number in range(4)]
IS_LONG = np.dtype(np.longdouble).itemsize > 8
LOST_AT_FIT = {
    "nanoseconds": (pd.DatetimeIndex([*SECONDS[:3], "2020-01-01 00:00:09.000000001"]), "00:00:09.000000001"),
    "a nanosecond's duration": (pd.to_timedelta([1, 2, 3, 4], unit="ns"), "Timedelta"),
    "decimals of 18 digits": ([Decimal("0.123456789012345678") + number for number in range(4)], "0.1234567890"),
    "a decimal of 28 digits": ([Decimal(1), Decimal(2), Decimal(3), Decimal(1) / 3], "at position 0"),
    "long decimals": ([Decimal(10) ** 20 + number for number in range(4)], "100000000000000000001"),
    **({"long double": (np.arange(4, dtype=np.longdouble) / 3, "longdouble.* at position 1")} if IS_LONG else {}),
    "objects with a time zone": (pd.Series(BERLIN.to_pydatetime(), dtype=object), "datetime.datetime"),
    "fractions": (pd.Series([Fraction(number, 3) for number in range(4)], dtype=object), "Fraction"),
    "whole numbers": (np.array([1, 2, 3, 2**53 + 1]), "9007199254740993"),
}


@pytest.mark.parametrize("values, pattern", LOST_AT_FIT.values(), ids=LOST_AT_FIT)
def test_a_column_whose_cells_do_not_come_back_as_they_are_is_refused(values, pattern):
    table = pd.DataFrame({"x": [0.0, 1.0, 3.0, 4.0], "v": values})
    kinds = {"v": "continuous"} if table["v"].dtype in (object, np.int64) and not isinstance(values, list) else None
    with pytest.raises(TableError, match=rf"column 'v' holds .*{pattern}.*not kept"):
        ONBMACF().fit(table, lambda rows: rows["x"] > 2, schema=Schema.infer(table, kinds=kinds))


LOST_IN_A_ROW = {
    "nanoseconds": (SECONDS, pd.Timestamp("2020-01-01 00:00:00.000000001"), "kept in seconds"),
    "places": (QUARTERS, Decimal("0.125"), "2 places at most"),
    "a time zone": (SECONDS, pd.Timestamp("2020-01-01 02:00", tz="UTC"), "without a time zone"),
    "a time zone in text": (SECONDS, "2020-01-01T02:00Z", "without a time zone"),
    "no time zone": (BERLIN, pd.Timestamp("2020-01-01 02:00"), "in Europe/Berlin"),
    "no time zone in days": (BERLIN.floor("D") + pd.to_timedelta(range(4), unit="D"), date(2020, 1, 2), "in Europe"),
}


@pytest.mark.parametrize("values, cell, pattern", LOST_IN_A_ROW.values(), ids=LOST_IN_A_ROW)
def test_a_cell_that_does_not_come_back_as_it_is_costs_its_row(values, cell, pattern):
    """It came back as another value that was not among the changes."""
    table = pd.DataFrame({"x": [0.0, 1.0, 3.0, 4.0], "v": values})
    explainer = ONBMACF().fit(table, lambda rows: rows["x"] > 2)
    good = table["v"].iloc[1]
    answers = explainer.explain(pd.DataFrame({"x": 0.5, "v": pd.Series([good, cell, good], dtype=object)}))
    assert list(answers.statuses) == ["found", "invalid_row", "found"]
    assert re.search(f"column 'v': .* is not kept .*{pattern}", answers[1].reason)
    assert explainer.explain({"x": 0.5, "v": cell})[0].reason == answers[1].reason
    whole = pd.DataFrame({"x": [0.5], "v": [cell]})  # pandas infers a dtype of its own
    assert explainer.explain(whole)[0].status == "invalid_row"


@pytest.mark.parametrize("cell", [0.25, Decimal("0.250"), 0, np.float32(0.5)], ids=str)
def test_a_number_is_a_decimal_of_the_column(cell):
    table = pd.DataFrame({"x": [0.0, 1.0, 3.0, 4.0], "v": QUARTERS})
    answer = ONBMACF().fit(table, lambda rows: rows["x"] > 2).explain({"x": 0.5, "v": cell})[0]
    assert answer.counterfactuals[0].values["v"] == cell


LEVELS = {
    "times": SECONDS,
    "times in a zone": BERLIN,
    "dates": [date(2020, 1, day) for day in (1, 2, 3, 4)],
    "durations": pd.to_timedelta([1, 2, 3, 4], unit="D"),
    "periods": pd.period_range("2020", periods=4, freq="M"),
    "decimals": QUARTERS,
}


@pytest.mark.parametrize("values", LEVELS.values(), ids=LEVELS)
def test_what_is_measured_may_be_a_category(values):
    """pandas 2 has no levels of times but their numbers: every fitted row was invalid."""
    table = pd.DataFrame({"x": np.arange(80) % 8, "v": [values[at % 4] for at in range(80)]})
    schema = Schema.infer(table, kinds={"v": "categorical"})
    explainer = ONBMACF().fit(table, lambda rows: rows["x"] > 3, schema=schema)
    for rows in (table, table.head(2)):
        answers = explainer.explain(rows)
        assert set(answers.statuses) == {"found"}
        kept = [one for answer in answers for one in answer.counterfactuals if one.changed == ("x",)]
        assert kept
        assert all(one.values["v"] == one.factual["v"] for one in kept)


@pytest.mark.skipif(not IS_LONG, reason="long double is float64 here")
def test_a_level_that_is_not_found_again_is_refused():
    table = pd.DataFrame({"x": np.arange(80) % 8, "v": (np.arange(80) % 4) / np.longdouble(3)})
    schema = Schema.infer(table, kinds={"v": "categorical"})
    with pytest.raises(TableError, match=r"column 'v' holds np.longdouble.* as a level it is not found again"):
        ONBMACF().fit(table, lambda rows: rows["x"] > 3, schema=schema)
