"""Rules for dates, times, durations and periods say what people write, and read back as they were written."""

import copy
import datetime
import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from _table.test_kinds_of_columns import DAYS, START, TIMES, X, Z, made
from onbmacf import ONBMACF, Rule, Rules, Schema
from onbmacf._columns.converters import converter_of
from onbmacf._columns.moments import Amount, bound, end_in, written
from onbmacf.errors import OnbmacfWarning, ParameterError, TableError
from onbmacf.io import read_table

LATE = START + pd.Timedelta(40, "D")


def fitted(column, **options):
    """An explainer whose model says whether the column's value is above the median, in the caller's own dtype."""
    middle = sorted(column.tolist())[len(column) // 2]
    table = pd.DataFrame({"c": column, "z": Z})
    model = lambda rows: np.array([bool(value > middle) for value in rows["c"].tolist()])  # noqa: E731
    return table, ONBMACF().fit(table, model, **options)


SAME_DAY = {
    "text": "2024-02-03",
    "text with a time": "2024-02-03T00:00",
    "date": datetime.date(2024, 2, 3),
    "datetime": datetime.datetime(2024, 2, 3),
    "Timestamp": pd.Timestamp("2024-02-03"),
    "datetime64": np.datetime64("2024-02-03"),
}


@pytest.mark.parametrize("kind", ["days in ns", "times", "days of a time zone", "date objects", "pyarrow date"])
@pytest.mark.parametrize("how", SAME_DAY)
def test_a_date_may_be_written_in_any_way(kind, how):
    converter = converter_of(made(kind))
    low = Rule(low=SAME_DAY[how]).measured("c", converter).low
    (found,) = converter.values(np.array([float(low)]))
    assert pd.Timestamp(found).tz_localize(None) == pd.Timestamp("2024-02-03")
    assert str(low).startswith("2024-02-03")


BOUNDS = {  # kind of column: low, high, step, and the step as the difference of two values
    "days in ns": ("2024-01-10", "2024-04-01", "7D", pd.Timedelta(days=7)),
    "times": ("2024-01-01 06:00", "2024-01-05", pd.Timedelta(hours=1), pd.Timedelta(hours=1)),
    "times of a time zone": ("2024-01-01 06:00", "2024-01-05", "90min", pd.Timedelta(minutes=90)),
    "date objects": (datetime.date(2024, 1, 10), "2024-04-01", datetime.timedelta(3), datetime.timedelta(3)),
    "durations": ("5 minutes", pd.Timedelta(hours=3), "5min", pd.Timedelta(minutes=5)),
    "duration objects": ("2h", "4 days", "PT2H", datetime.timedelta(hours=2)),
    "months": ("2020-03", pd.Period("2028-01"), 3, None),
    "pyarrow timestamp": ("2024-01-10", "2024-04-01", "7 days", datetime.timedelta(7)),
    "pyarrow duration": ("5s", "200s", np.timedelta64(5, "s"), datetime.timedelta(seconds=5)),
}


@pytest.mark.parametrize("kind", BOUNDS)
def test_answers_keep_ranges_and_steps(kind):
    low, high, step, size = BOUNDS[kind]
    column = made(kind)
    table, explainer = fitted(column)
    rules = Rules({"c": Rule(low=low, high=high, step=step)})
    converter = converter_of(column)
    ends = [float(end_in("end", bound("end", end), converter)) for end in (low, high)]
    first, last = converter.values(np.array(ends))
    answers = explainer.explain(table.head(12), rules=rules, vary=["c"])
    found = [one.values["c"] for answer in answers for one in answer.counterfactuals]
    assert len(found) >= 6
    assert all(first <= value <= last for value in found)
    if size is not None:
        assert all((value - first) / size == round((value - first) / size) for value in found)
    else:
        assert all((value - first).n % step == 0 for value in found)


def test_a_rule_is_the_same_from_python_dicts_and_toml(tmp_path):
    (tmp_path / "rules.toml").write_text('[features.c]\nlow = 2024-02-03\nhigh = "2024-03-01"\nstep = "7D"\n', "utf-8")
    given = Rules({"c": Rule(low=datetime.date(2024, 2, 3), high="2024-03-01", step="7D")})
    assert Rules.from_toml(tmp_path / "rules.toml") == given
    assert Rules.from_dict({"features": {"c": {"low": "2024-02-03", "high": "2024-03-01", "step": "7D"}}}) == given
    table, explainer = fitted(DAYS)
    plain = {"features": {"c": {"low": pd.Timestamp("2024-02-03"), "high": "2024-03-01", "step": "7D"}}}
    row = table[DAYS > "2024-03-05"].head(1)
    assert explainer.explain(row, rules=plain).to_json() == explainer.explain(row, rules=given).to_json()
    schema = Schema.infer(table, rules=plain)
    again = ONBMACF().fit(table, explainer.fitted_.black_box.model, schema=schema)
    assert again.explain(row).to_json() == explainer.explain(row, rules=given).to_json()


def test_a_saved_map_keeps_dates_in_rules(tmp_path):
    table, explainer = fitted(DAYS, schema=Schema.infer(pd.DataFrame({"c": DAYS, "z": Z}), rules=WEEKS))
    explainer.save(tmp_path / "m.onb")
    again = ONBMACF.load(tmp_path / "m.onb", explainer.fitted_.black_box.model)
    assert again.schema_.rules == explainer.schema_.rules == Rules.from_dict(WEEKS)
    assert again.explain(table.head(5)).to_json() == explainer.explain(table.head(5)).to_json()


WEEKS = {"features": {"c": {"low": "2024-01-03", "step": "7 days"}}}


def test_bounds_are_shown_as_dates_everywhere():
    table = pd.DataFrame({"c": DAYS, "z": Z})
    schema = Schema.infer(table, rules={"features": {"c": {"low": LATE + pd.Timedelta(1, "D"), "step": "7D"}}})
    said = "no earlier than 2024-02-11, in steps of 7D"
    assert said in repr(schema)
    assert said in schema._repr_html_()
    assert repr(schema.rules) == f"Rules\n  c: {said}"
    assert repr(schema.rules.features["c"]) == "Rule(low='2024-02-11', step='7D')"
    explainer = ONBMACF().fit(table, lambda rows: rows["c"] > LATE, schema=schema)
    answers = explainer.explain(table[DAYS > LATE].head(1), vary=["c"])
    assert f"without the rule for 'c' ({said})" in answers.reasons[0]
    assert answers[0].would_need == (f"the rule for 'c' ({said})",)
    early = explainer.explain(table[DAYS <= LATE].head(1), vary=["c"])
    assert "The row itself breaks the rule for 'c'" in early.reasons[0]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Rule(high=pd.Timestamp("2024-02-03 12:30")), "no later than 2024-02-03 12:30:00"),
        (Rule(low=datetime.date(2024, 2, 3)), "no earlier than 2024-02-03"),
        (Rule(low=pd.Period("2024Q2")), "no earlier than 2024Q2"),
        (Rule(low="2024-02-03", high="2024-03-01"), "from 2024-02-03 to 2024-03-01"),
        (Rule(high="7 days"), "at most 7 days"),
        (Rule(low=2024), "at least 2024"),
    ],
)
def test_points_in_time_are_early_or_late_and_amounts_are_small_or_large(rule, words):
    assert Rules({"c": rule}).in_words() == [f"c: {words}"]


def test_a_report_and_a_notice_say_which_of_two_dates_is_later():
    pytest.importorskip("jinja2")
    from onbmacf.report import notice
    from onbmacf.report.content import rules_in_words

    table = pd.DataFrame({"c": DAYS, "d": DAYS + pd.Timedelta(9, "D"), "y": Z, "z": Z + 1.0})
    schema = Schema.infer(table, rules=Rules(at_most=[("c", "d"), ("y", "z")]))
    explainer = ONBMACF().fit(table, lambda rows: rows["c"] > LATE, schema=schema)
    assert rules_in_words(explainer) == ["c no later than d", "y at most z"]
    months = table.assign(c=DAYS.dt.to_period("M"))[["c", "z"]]
    later = ONBMACF().fit(months, lambda rows: rows["c"] > pd.Period("2024-02"))
    page = notice(later, months[months["c"] <= pd.Period("2024-02")].head(1), date="2026-05-04").markdown()
    assert "no earlier than 2024" in page
    assert "at least 2024" not in page


@pytest.mark.parametrize(
    ("kind", "rule", "words"),
    [
        ("days in ns", {"low": 19_756}, "rule for 'c': low must be a date or a time such as '2024-05-31'"),
        ("days in ns", {"high": "7D"}, "high must be a date or a time .*, without a time zone, got '7D'"),
        ("days in ns", {"low": "2024-01-01T00:00+01:00"}, "without a time zone, got '2024-01-01T00:00"),
        ("days in ns", {"step": 7}, "rule for 'c': step must be a duration such as '7 days'.* got 7"),
        ("days in ns", {"low": "2024-02-03", "high": "2024-02-01"}, "the range 2024-02-03 to 2024-02-01 is reversed"),
        (
            "days in ns",
            {"low": "2024-02-03 06:00", "high": "2024-02-03 18:00"},
            "no value of the column lies in 2024-02",
        ),
        (
            "days in ns",
            {"low": "2024-02-03", "high": "2024-02-05", "step": "7D"},
            "a step of 7D does not fit the range",
        ),
        ("days in ns", {"step": "-7D"}, "step must be above 0, got '-7D'"),
        ("date objects", {"low": 1.5}, "low must be a date such as '2024-05-31', without a time zone, got 1.5"),
        ("durations", {"low": "2024-01-01"}, "low must be a duration such as '7 days'"),
        ("durations", {"low": 7}, "low must be a duration"),
        ("months", {"low": 600}, "low must be a period such as '2024-05'"),
        ("months", {"high": "2024"}, "high must be a period .*, not longer than those of the column, got '2024'"),
        ("months", {"step": "7D"}, "step must be a whole number of periods, got '7D'"),
        ("int64", {"low": "2024-01-01"}, "low must be a number, as the column's values are, got '2024-01-01'"),
        ("float64", {"step": "7D"}, "step must be a number"),
        ("decimals", {"high": datetime.date(2024, 1, 1)}, "high must be a number"),
        ("category", {"low": "2024-01-01"}, "a range or step needs numbers, it is categorical"),
    ],
)
def test_what_does_not_fit_the_column_is_an_error_that_says_what_does(kind, rule, words):
    table, explainer = fitted(made(kind))
    with pytest.raises(ParameterError, match=words):
        explainer.explain(table.head(1), rules=Rules({"c": Rule(**rule)}))


@pytest.mark.parametrize(
    "value", ["soon", "5", "", True, None, [1], "31.12.2024", float("nan"), pd.NaT, datetime.time(1)]
)
def test_what_nobody_can_measure_is_no_bound(value):
    with pytest.raises(ParameterError, match="low must be a number, a date, a time, a duration or a period, got"):
        Rule(low=value)


def test_a_decimal_bounds_a_column_of_decimals():
    table, explainer = fitted(made("decimals"))
    rules = Rules({"c": Rule(low=Decimal("10.5"), high=Decimal(20))})
    assert rules.in_words() == ["c: from 10.5 to 20"]
    found = explainer.explain(table.head(10), rules=rules, vary=["c"]).to_frame()["c"]
    assert len(found)
    assert found.between(Decimal("10.5"), Decimal(20)).all()


def test_what_is_written_is_read_as_the_same():
    values = [START, TIMES[0], pd.Timedelta(90, "s"), pd.Timedelta(-3.25, "h"), pd.Period("2024Q2"), pd.Timedelta(0)]
    for value in values:
        converter = converter_of(pd.Series([value]))
        number = end_in("end", written(value), converter)
        assert converter.values(np.array([float(number)])).tolist() == [value]


def test_an_amount_is_a_number_that_reads_as_text():
    one = Amount(19_756, "2024-02-03")
    assert (one + 1, np.array([one]).dtype, f"{one:g}", repr(one)) == (19_757, np.float64, "2024-02-03", "'2024-02-03'")
    for same in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
        assert (same, str(same), type(same)) == (19_756, "2024-02-03", Amount)


def test_columns_are_compared_in_one_unit_only():
    table = pd.DataFrame({"c": DAYS, "t": TIMES, "later": DAYS + pd.Timedelta(9, "D"), "z": Z})
    explainer = ONBMACF().fit(table, lambda rows: rows["c"] > LATE)
    found = explainer.explain(table[DAYS <= LATE].head(5), rules={"at_most": [["c", "later"]]}).to_frame()
    assert len(found) == 5
    assert (found["c"] <= found["later"]).all()
    with pytest.raises(ParameterError, match="'c' is in days since 1970, 't' in seconds since 1970"):
        explainer.explain(table.head(1), rules={"at_most": [["c", "t"]]})
    with pytest.raises(ParameterError, match="'c' is in days since 1970, 'z' in numbers"):
        explainer.explain(table.head(1), rules={"at_most": [["c", "z"]]})


def test_polars_frames_have_rules_for_dates():
    pl = pytest.importorskip("polars")
    table = pl.DataFrame({"c": pl.Series([day.date() for day in DAYS]), "z": Z})
    explainer = ONBMACF().fit(table, lambda rows: (rows["c"] > LATE.date()).to_numpy())
    row = table.filter(pl.col("c") > LATE.date())[:1]
    answers = explainer.explain(row, rules={"features": {"c": {"high": "2024-01-20", "step": "7D"}}}, vary=["c"])
    (found,) = answers.to_polars()["c"].to_list()
    assert found <= datetime.date(2024, 1, 20)
    assert (found - datetime.date(1970, 1, 1)).days % 7 == 0


def test_a_number_in_a_column_of_dates_is_a_fault_of_its_row():
    table, explainer = fitted(DAYS)
    rows = table.head(3).astype({"c": object})
    rows.iloc[1, 0] = 0
    answers = explainer.explain(rows)
    assert answers.statuses[1] == "invalid_row"
    assert "0 is not a date or a time such as" in answers.reasons[1]
    assert explainer.explain({"c": 19_756, "z": 0.5}).statuses[0] == "invalid_row"


def test_dates_in_a_csv_file_are_read_on_request(tmp_path):
    path = tmp_path / "t.csv"
    pd.DataFrame({"c": DAYS.dt.strftime("%Y-%m-%d"), "z": Z}).to_csv(path, index=False)
    assert (read_table(path, dates=["c"])["c"] == DAYS).all()
    text = read_table(path)
    with pytest.warns(OnbmacfWarning, match=r"column 'c' holds dates as text.*--dates c"):
        ONBMACF().fit(text, lambda rows: rows["z"] > 0)
    with pytest.raises(TableError, match="dates names 'd', which is not a column"):
        read_table(path, dates=["d"])
    with pytest.raises(TableError, match=r"column 'z' must hold dates written as 2024-05-31"):
        read_table(path, dates=["z"])
    assert len(set(X)) > 2


def test_one_change_is_not_called_changes():
    table, explainer = fitted(DAYS)
    answers = explainer.explain(table.head(1), rules=Rules({"c": Rule(low="2030-01-01")}, max_changes=1))
    assert "1 changes" not in answers.reasons[0]
    assert [words for words, _ in Rules(max_changes=1).singly_without()] == ["the rule of at most 1 change"]
