"""Columns people have: each kind is fitted, asked and answered in the caller's own dtype."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF, Rules, Schema
from onbmacf._columns.converters import converter_of
from onbmacf.errors import ParameterError

N = 60
X = np.random.default_rng(0).integers(0, 100, N)
Z = np.random.default_rng(1).normal(size=N).round(2)
START = pd.Timestamp("2024-01-01")
DAYS = pd.Series(START + pd.to_timedelta(X, "D"))
TIMES = pd.Series(START + pd.to_timedelta(X * 3601, "s"))
LETTERS = np.array(list("abcd"))[X % 4]


def objects(values):
    return pd.Series(list(values), dtype=object)


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
    "pyarrow bool": lambda: pd.Series(X > 50, dtype="bool[pyarrow]"),
    "pyarrow timestamp": lambda: DAYS.astype("timestamp[us][pyarrow]"),
    "pyarrow date": lambda: objects(day.date() for day in DAYS).astype("date32[pyarrow]"),
    "pyarrow duration": lambda: pd.Series(pd.to_timedelta(X, "s")).astype("duration[us][pyarrow]"),
}


def made(name):
    if "pyarrow" in name:
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
