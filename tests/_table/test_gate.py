"""The border of rows: each cell is what the model gets, or its row, and only its row, says why not. One table each."""

import ast
import json
import re
import warnings
from collections import namedtuple
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF, Feature, Rule, Rules, Schema
from onbmacf.errors import OnbmacfWarning, RowsError, TableError

Point = namedtuple("Point", "r x")


def above(rows):
    return (np.asarray(rows["x"], dtype=float) > 2).astype(int)


def fit(schema=None, **columns):
    """A map of four rows in which x decides; other columns as given."""
    table = pd.DataFrame({"x": [0.0, 1.0, 3.0, 4.5], **columns})
    return ONBMACF().fit(table, above, schema=schema(table) if schema else None)


class Odd:
    """A value that cannot be written, compared or, unless told of what, hashed."""

    def __init__(self, hash_of="x"):
        self._hash_of = hash_of

    def __repr__(self):
        raise RuntimeError("no words")

    def __eq__(self, other):
        raise RuntimeError("no comparison")

    def __hash__(self):
        return hash(self._hash_of)


REALS, BYTES = {"r": [0.1, 0.2, 0.3, 0.4]}, {"r": np.array([1, 2, 3, 4], dtype=np.int8)}
LONGS, WORDS = {"r": [1, 2, 3, 4]}, {"r": ["a", "b", "a", "b"]}
FLOATS = {"r": np.array([0.1, 0.2, 0.3, 0.4], dtype=np.float32)}
NULLABLE = {"r": pd.array([1, 2, 3, 4], dtype="Int8")}
OBJECTS = {"r": pd.Series([1, 2, 3, 4], dtype=object)}

BAD_CELLS = {
    "too far to encode": (REALS, 1e308, r"'r': 1e\+308 lies too far"),
    "too far to square": (REALS, -1e200, r"'r': -1e\+200 lies too far"),
    "beyond float64": (REALS, 10**400, "'r': a whole number of 401 digits is not a finite number"),
    "too long to write": (REALS, 10**5000, "'r': a whole number of 5001 digits is not a finite number"),
    "a date as a number": (
        REALS,
        pd.Timestamp("2020-01-01"),
        r"'r': Timestamp\('2020-01-01 00",
    ),
    "a period": (REALS, pd.Period("2020"), "'r': Period"),
    "a duration": (REALS, pd.Timedelta(1, "D"), "'r': Timedelta"),
    "complex": (REALS, 1 + 2j, r"'r': \(1\+2j\) is not a finite number"),
    "a list": (REALS, [1.0], r"'r': \[1.0\] is not a finite number"),
    "without words": (REALS, Odd(), "'r': a value of type Odd is not a finite number"),
    "text": (REALS, "0.2", "'r': '0.2' is not a finite number"),
    "infinite": (REALS, -np.inf, "'r': -inf is not a finite number"),
    "missing": (REALS, None, "'r': the value is missing"),
    "beyond int8": (BYTES, 300, "'r': 300 is not a whole number that fits its column's dtype int8"),
    "below int8": (BYTES, -129, "'r': -129 is not a whole number that fits"),
    "half in int8": (BYTES, 5.5, "'r': 5.5 is not a whole number that fits"),
    "half in int64": (LONGS, 5.5, "'r': 5.5 is not a whole number that fits its column's dtype int64"),
    "beyond int64": (LONGS, 10**30, "'r': 1000000000000000000000000000000 is not a whole number"),
    "not told apart from its neighbours": (LONGS, 2**53, "'r': 9007199254740992 is not a whole number"),
    "beyond a nullable int8": (NULLABLE, 300, "'r': 300 is not a whole number that fits its column's dtype int8"),
    "half in whole objects": (OBJECTS, 5.5, "'r': 5.5 is not a whole number"),
    "beyond float32": (FLOATS, 1e300, r"'r': 1e\+300 is not a number that fits its column's dtype float32"),
    "nothing in float32": (FLOATS, 1e-60, "'r': 1e-60 is not a number that fits"),
    "unseen level": (WORDS, "c", "'r': unseen level 'c'. Known: 'a', 'b'"),
    "a level that cannot be hashed": (WORDS, ["a"], r"'r': unseen level \['a'\]"),
    "a level of another type": (WORDS, 1, "'r': unseen level 1"),
    "half a character": (WORDS, "\ud800", r"'r': unseen level '\\ud800'. Known: 'a', 'b'"),
    "a level that cannot be compared": (WORDS, Odd(hash_of="a"), "'r': unseen level a value of type Odd"),
    "a level whose hash raises": (WORDS, Odd(hash_of=[]), "'r': unseen level a value of type Odd"),
    "a decimal that signals": (REALS, Decimal("sNaN"), "'r': the value is missing"),
    "a signal among levels": (WORDS, Decimal("sNaN"), "'r': the value is missing"),
    "lines": (REALS, pd.Series([1, 2]), "'r': 0    1 1    2 dtype: int64 is not a finite number"),
}


@pytest.mark.parametrize("columns, value, pattern", BAD_CELLS.values(), ids=BAD_CELLS)
def test_a_cell_that_does_not_fit_costs_its_own_row_only(columns, value, pattern):
    explainer, good = fit(**columns), columns["r"][0]
    rows = pd.DataFrame({"x": [0.5, 0.5, 0.5], "r": pd.Series([good, value, good], dtype=object)})
    answers = explainer.explain(rows)
    assert list(answers.statuses) == ["found", "invalid_row", "found"]
    assert re.search(pattern, answers[1].reason), answers[1].reason
    assert answers.to_frame()["r"].tolist() == [good, good]
    alone = explainer.explain({"x": 0.5, "r": value})
    assert (alone[0].status, alone[0].reason) == ("invalid_row", answers[1].reason)


@pytest.mark.parametrize("as_rows", [list, np.array, tuple], ids=lambda of: of.__name__)
@pytest.mark.parametrize("columns", [REALS, LONGS, WORDS], ids=["reals", "longs", "words"])
def test_a_number_beyond_float64_costs_its_own_row_only_in_every_container(columns, as_rows):
    """pandas 2 raised where it infers what the cells of dicts, lists and arrays are."""
    explainer, good = fit(**columns), columns["r"][0]
    cells = [[0.5, good], [0.5, 10**400], [0.5, good]]
    named = [dict(zip("xr", row, strict=True)) for row in cells]
    given = as_rows(cells, dtype=object) if as_rows is np.array else as_rows(cells)
    for rows in (given, named, pd.DataFrame(cells, columns=list("xr"), dtype=object)):
        answers = explainer.explain(rows)
        assert list(answers.statuses) == ["found", "invalid_row", "found"]
        assert re.match("column 'r': .*401 digits", answers[1].reason)
    for row in (named[1], cells[1], pd.Series(named[1], dtype=object)):
        assert "401 digits" in explainer.explain(row)[0].reason


@pytest.mark.parametrize("value", [1e308, -1e308, 1e200])
def test_a_value_too_far_in_the_column_that_decides_ends_at_once(value):
    """Its point overflowed, and undoing changes went on for ever, with the good row beside it."""
    table = pd.DataFrame({"x": [0.1, 0.2, 0.3, 0.4], "r": [0.0, 1.0, 3.0, 4.5]})
    explainer = ONBMACF().fit(table, lambda rows: (rows["x"] > 0.25).astype(int))
    answers = explainer.explain(pd.DataFrame({"x": [value, 0.1], "r": [1.0, 1.0]}))
    assert list(answers.statuses) == ["invalid_row", "found"]
    assert explainer.explain({"x": value, "r": 1.0})[0].reason == answers[0].reason


TIMES = {
    "time": pd.date_range("2020-01-01", periods=4),
    "duration": pd.to_timedelta([1, 2, 3, 4], unit="D"),
    "period": pd.period_range("2020", periods=4, freq="M"),
    "date": [date(2020, 1, day) for day in (1, 2, 3, 4)],
}


@pytest.mark.parametrize("what, values", TIMES.items(), ids=TIMES)
def test_a_number_is_no_time(what, values):
    """pandas takes it for nanoseconds since 1970."""
    explainer = fit(r=values)
    rows = pd.DataFrame({"x": 0.5, "r": pd.Series([values[1], 5, 2.5, True, "none", "\ud800"], dtype=object)})
    answers = explainer.explain(rows)
    assert list(answers.statuses) == ["found"] + ["invalid_row"] * 5
    assert str(explainer.explain({"x": 0.5, "r": "\ud800"})[0].status) == "invalid_row"
    assert answers[1].reason.startswith("column 'r': 5 is not a ")
    assert what in answers[1].reason
    assert list(explainer.explain(rows[1:3].astype({"r": float})).statuses) == ["invalid_row"] * 2


def test_a_row_that_is_not_finite_is_written_with_the_others():
    answers = fit(**REALS).explain([{"x": 0.5, "r": np.inf}, {"x": 0.5, "r": 0.2}, {"x": -np.inf, "r": 0.2}])
    written = json.loads(answers.to_json(), parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))["answers"]
    assert [answer["status"] for answer in written] == ["invalid_row", "found", "invalid_row"]
    assert (written[0]["factual"]["r"], written[2]["factual"]["x"]) == ("inf", "-inf")


def test_many_rows_lose_only_those_with_a_level_that_cannot_be_hashed():
    rows = pd.DataFrame({"x": 0.5, "r": pd.Series(["a", ["a"], {}] * 40, dtype=object)})
    answers = fit(**WORDS).explain(rows)
    assert list(answers.statuses) == ["found", "invalid_row", "invalid_row"] * 40


BAD_COLUMNS = {
    "categories of text": (REALS, pd.Categorical(["low", "low"]), "'low' is not a finite number"),
    "dates": (REALS, pd.to_datetime(["2020-01-01", "2020-01-02"]), "is not a finite number"),
    "durations": (REALS, pd.to_timedelta([1, 2], unit="D"), "is not a finite number"),
    "periods": (REALS, pd.period_range("2020", periods=2, freq="D"), "is not a finite number"),
    "intervals": (REALS, pd.interval_range(0, 2), "is not a finite number"),
    "bytes": (WORDS, [b"a", b"b"], "unseen level b'a'"),
}


@pytest.mark.parametrize("columns, values, pattern", BAD_COLUMNS.values(), ids=BAD_COLUMNS)
def test_a_column_of_another_kind_is_no_error_but_a_reason_in_each_row(columns, values, pattern):
    answers = fit(**columns).explain(pd.DataFrame({"x": [0.5, 0.5], "r": values}))
    assert list(answers.statuses) == ["invalid_row"] * 2
    assert pattern in answers[0].reason


GOOD_CELLS = {
    "a float that is whole": (BYTES, 3.0, 3),
    "a truth value": (BYTES, True, 1),
    "a decimal": (REALS, Decimal("0.25"), 0.25),
    "a fraction": (REALS, Fraction(1, 4), 0.25),
    "a small numpy float": (REALS, np.float16(0.25), 0.25),
    "a float64 of a float32 column": (FLOATS, 0.1, np.float32(0.1)),
    "outside the fitted range": (REALS, -7.5, -7.5),
    "the ends of int8": (BYTES, -128, -128),
    "real though complex": (REALS, 0.25 + 0j, 0.25),
}


@pytest.mark.parametrize("columns, value, held", GOOD_CELLS.values(), ids=GOOD_CELLS)
def test_a_cell_that_survives_its_dtype_is_kept_in_it(columns, value, held):
    explainer = fit(**columns)
    answers = explainer.explain(pd.DataFrame({"x": [0.5], "r": pd.Series([value], dtype=object)}))
    found = answers.to_frame()
    assert (answers[0].status, found["r"].tolist(), found["n_changes"].tolist()) == ("found", [held], [1])


def polars_rows(**columns):
    return pytest.importorskip("polars").DataFrame(columns)


def arrow_rows(**columns):
    return pytest.importorskip("pyarrow").table(columns)


class Stream:
    """A table that can only be read as a stream of Arrow."""

    def __init__(self, **columns):
        self._table = arrow_rows(**columns)

    def __arrow_c_stream__(self, schema=None):
        return self._table.__arrow_c_stream__(schema)


SWAPPED = {
    "polars": lambda: polars_rows(r=[0.2], x=[0.5]),
    "pyarrow": lambda: arrow_rows(r=[0.2], x=[0.5]),
    "arrow stream": lambda: Stream(r=[0.2], x=[0.5]),
    "structured array": lambda: np.array([(0.2, 0.5)], dtype=[("r", float), ("x", float)]),
    "list of dicts": lambda: [{"r": 0.2, "x": 0.5}],
    "named tuple": lambda: Point(0.2, 0.5),
    "list of named tuples": lambda: [Point(0.2, 0.5)],
}


@pytest.mark.parametrize("make", SWAPPED.values(), ids=SWAPPED)
def test_names_decide_never_positions(make):
    explainer = fit(**REALS)
    expected = explainer.explain({"x": 0.5, "r": 0.2}).to_frame()
    pd.testing.assert_frame_equal(explainer.explain(make()).to_frame(), expected)


NO_ROWS = {
    "ragged": ([[0.5, 0.2], [0.5]], r"different forms or lengths \(1, 2\)"),
    "a number": (5, "of type int"),
    "text": ("0.5, 0.2", "of type str"),
    "nothing": (None, "of type NoneType"),
    "a set": ({0.5, 0.2}, "of type set"),
    "a generator": ((value for value in (0.5, 0.2)), "of type generator"),
    "a dict among lists": ([{"x": 0.5, "r": 0.2}, [0.5, 0.2]], "different forms"),
    "three dimensions": (np.zeros((1, 2, 2)), r"shape \(1, 2, 2\)"),
    "too wide": ([[0.5, 0.2, 0.1]], "width 3; fit saw 2 columns: 'x', 'r'"),
    "names with levels": (
        pd.DataFrame([[0.5, 0.2]], columns=pd.MultiIndex.from_tuples([("x", 1), ("r", 1)])),
        "lack 2 of the 2 expected columns: 'x', 'r'. The names of its columns have levels: make them one",
    ),
    "names with empty levels": (
        pd.DataFrame([[0.5, 0.2]], columns=pd.MultiIndex.from_tuples([("x", ""), ("r", "")])),
        "The names of its columns have levels",
    ),
    "fields that are arrays": (
        np.array([((0.5, 0.6), 0.2)], dtype=[("x", float, 2), ("r", float)]),
        "structured array cannot be read as rows and columns",
    ),
    "something with fields": (ast.parse("x"), "of type Module"),
}


@pytest.mark.parametrize("rows, pattern", NO_ROWS.values(), ids=NO_ROWS)
def test_what_is_no_rows_is_refused(rows, pattern):
    with pytest.raises(RowsError, match=pattern):
        fit(**REALS).explain(rows)


def test_a_column_of_another_library_is_not_taken_for_a_row():
    with pytest.raises(RowsError, match="polars Series is one column"):
        fit(**REALS).explain(pytest.importorskip("polars").Series([0.5, 0.2]))
    with pytest.raises(RowsError, match="LazyFrame"):
        fit(**REALS).explain(polars_rows(x=[0.5], r=[0.2]).lazy())


def test_masked_values_are_missing():
    rows = np.ma.MaskedArray([[0.5, 0.2], [0.5, 0.2]], mask=[[False, True], [False, False]])
    answers = fit(**REALS).explain(rows)
    assert list(answers.statuses) == ["invalid_row", "found"]


def test_a_list_keeps_numbers_beside_text():
    assert list(fit(**WORDS).explain([[0.5, "a"], [0.5, "\ud800"]]).statuses) == ["found", "invalid_row"]


NUMBERS_AS_TEXT = {
    "decimal comma": (["12,5", "3,25", "7", "8"], "'r' holds numbers stored as text, e.g. '12,5'"),
    "thousands": (["4,000", "900", "1,250,000", "3"], "'r' holds numbers stored as text, e.g. '4,000'"),
    "one mark": (
        ["1.5", "?", "2.5", "3"],
        r"3 of 4 values look like numbers, e.g. '1.5', and others .* '\?'",
    ),
    "words for missing": (["1", "unknown", "2", "3"], "e.g. 'unknown'"),
    "money": (["$3", "$4.50", "$1", "$9"], "e.g. '\\$3'"),
    "per cent": (["3%", "4%", "5%", "1%"], "e.g. '3%'"),
}


@pytest.mark.parametrize("texts, pattern", NUMBERS_AS_TEXT.values(), ids=NUMBERS_AS_TEXT)
def test_numbers_as_text_never_become_categories_unsaid(texts, pattern):
    with pytest.raises(TableError, match=pattern) as caught:
        fit(r=texts)
    assert "kinds={'r': 'categorical'}" in str(caught.value)
    told = fit(lambda table: Schema.infer(table, kinds={"r": "categorical"}), r=texts)
    assert told.schema_.kinds["r"] == "categorical"


NAMES = {
    "groups": ["0", "1", "2", "3+"],
    "ranges": ["1-10", "11-20", "1-10", "21-30"],
    "mostly words": ["1", "few", "many", "none"],
    "codes": ["A11", "A12", "A13", "A11"],
    "dates": ["2020-01-01", "2020-02-01", "2020-03-01", "2020-04-01"],
}


@pytest.mark.parametrize("texts", NAMES.values(), ids=NAMES)
def test_names_with_digits_stay_categories(texts):
    assert fit(r=texts).schema_.kinds["r"] in ("categorical", "binary")


BAD_TABLES = {
    "ragged": ([[0.5, 0.2], [0.5]], "cannot be read as rows and columns"),
    "polars, lazy": (lambda: polars_rows(x=[0.0, 3.0]).lazy(), "the table is a polars LazyFrame"),
    "half a character": (pd.DataFrame({"x": ["\ud800", "b"]}, dtype=object), "'x' holds what cannot be read: Unicode"),
    "half a character in an array": (np.array([["\ud800"], ["b"]], dtype=object), "'x0' holds what cannot be read"),
    "a decimal that signals": (pd.DataFrame({"x": [Decimal("sNaN"), Decimal(1)]}), "'x' holds what cannot be read"),
    "times with and without a zone": (
        pd.DataFrame({"x": [pd.Timestamp("2020"), pd.Timestamp("2020", tz="UTC")]}, dtype=object),
        "column 'x' cannot be read: ValueError: .*[Tt]z",
    ),
    "pyarrow, a column": (lambda: arrow_rows(x=[0.0, 3.0])["x"], "the table is a pyarrow ChunkedArray"),
    "intervals told to be numbers": (pd.DataFrame({"x": pd.interval_range(0, 2)}), "'x': 2 rows"),
}
if int(pd.__version__.split(".")[0]) < 3:  # there it is text like any other
    BAD_TABLES = {name: case for name, case in BAD_TABLES.items() if not name.startswith("half a character")}


@pytest.mark.parametrize("table, pattern", BAD_TABLES.values(), ids=BAD_TABLES)
def test_a_table_that_would_be_misread_is_refused(table, pattern):
    table = table() if callable(table) else table
    schema = Schema((Feature("x", "continuous"),)) if isinstance(table, pd.DataFrame) else None
    with pytest.raises(TableError, match=pattern):
        ONBMACF().fit(table, above, schema=schema)


def test_categories_of_dates_are_levels():
    days = pd.Categorical(pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-01", "2020-01-02"]))
    explainer = fit(r=days)
    answers = explainer.explain(pd.DataFrame({"x": [0.0, 1.0, 3.0, 4.5], "r": days}))
    assert list(answers.statuses) == ["found"] * 4


# Ends that a narrow dtype does not hold, and that it would round to the outside.
ENDS = {
    "float32, high": ("float32", Rule(high=0.1)),
    "float32, low": ("float32", Rule(low=0.7)),
    "float16, high": ("float16", Rule(high=0.3)),
    "float16, low": ("float16", Rule(low=0.2)),
}


@pytest.mark.parametrize("dtype, rule", ENDS.values(), ids=ENDS)
def test_a_rule_holds_for_the_value_as_the_model_gets_it(dtype, rule):
    table = pd.DataFrame({"x": np.array([0.01, 0.05, 0.07, 0.15, 0.4, 0.6, 0.85, 0.9], dtype=dtype)})
    is_high = rule.high < 1
    near = rule.high - 0.0005 if is_high else rule.low + 0.0005  # nothing but the end is beyond it
    model = lambda rows: ((rows["x"].astype(float) > near) == is_high).astype(int)  # noqa: E731
    explainer = ONBMACF().fit(table, model, schema=Schema.infer(table, rules=Rules({"x": rule})))
    found = explainer.explain({"x": 0.01 if is_high else 0.95}).to_frame()
    assert len(found)
    assert all(rule.low <= float(value) <= rule.high for value in found["x"])


def test_steps_are_found_in_a_narrow_dtype():
    table = pd.DataFrame({"x": np.array([0.0, 1.3, 2.7, 4.1], dtype=np.float32)})
    explainer = ONBMACF().fit(table, above, schema=Schema.infer(table, rules=Rules({"x": Rule(step=0.1)})))
    found = explainer.explain({"x": 0.5}).to_frame()["x"].to_numpy()
    assert found.tolist() == [np.float32(2.1)]


def test_a_rule_does_not_lead_out_of_the_dtype():
    table = pd.DataFrame({"x": [0.0, 1, 3, 4], "r": np.array([0, 1, 200, 255], dtype=np.uint8)})
    schema = Schema.infer(table, rules=Rules({"r": Rule(low=-20, high=300, step=7)}), immutable=["x"])
    model = lambda rows: (rows["r"] > 252).astype(int)  # noqa: E731
    answers = ONBMACF().fit(table, model, schema=schema).explain(table)
    found = answers.to_frame()
    assert ((found["r"].astype(int) + 20) % 7 == 0).all()


def test_an_invalid_row_is_not_said_to_break_a_rule():
    explainer = fit(lambda table: Schema.infer(table, rules=Rules({"x": Rule(high=9)})), **REALS)
    assert "rule" not in explainer.explain({"x": None, "r": 0.1})[0].reason


def test_no_row_makes_numpy_complain():
    explainer = fit(**REALS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", OnbmacfWarning)
        explainer.explain([{"x": 0.5, "r": value} for value in (1e308, -1e308, 1e150, 10**400, np.inf, None, "?")])


@pytest.mark.parametrize("strategy", ["refined", "paper"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8])
def test_a_rule_that_the_row_itself_breaks_moves_no_immutable_value(strategy, dtype):
    """A kept value is the row's own in the precision of its column, not a change that the rule would move."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"x": (rng.normal(size=40) * 5).round(2).astype(dtype), "r": rng.integers(-9, 9, 40)})
    rules = Rules({"x": Rule(high=float(np.median(table["x"])))})
    schema = Schema.infer(table, immutable=["x"], rules=rules)
    explainer = ONBMACF(strategy=strategy, release="nothing").fit(table, lambda own: own["r"] > 0, schema=schema)
    found = [one for answer in explainer.explain(table) for one in answer.counterfactuals]
    assert len(found) >= 30
    assert {one.changed for one in found} == {("r",)}
