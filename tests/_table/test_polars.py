"""Frames of polars: the model gets frames in the caller's dtypes, and answers come back in them."""

import datetime
import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from onbmacf import ONBMACF, Feature, Schema
from onbmacf._columns.interop import PolarsTypes, pandas_frame
from onbmacf.errors import StoreError, TableError

pl = pytest.importorskip("polars")

N = 60
X = np.random.default_rng(0).integers(0, 100, N)
Z = np.random.default_rng(1).normal(size=N).round(2)
START = datetime.datetime(2024, 1, 1)
LETTERS = [str(letter) for letter in np.array(list("abcd"))[X % 4]]
HOURS = [START + datetime.timedelta(hours=int(x)) for x in X]
DAYS = [START + datetime.timedelta(days=int(x)) for x in X]

COLUMNS = {
    "int8": (X.tolist(), pl.Int8()),
    "uint16": (X.tolist(), pl.UInt16()),
    "int64": (X.tolist(), pl.Int64()),
    "float32": ((X / 8).tolist(), pl.Float32()),
    "float64": ((X / 8).tolist(), pl.Float64()),
    "bool": ((X > 50).tolist(), pl.Boolean()),
    "text": (LETTERS, pl.String()),
    "categorical": (LETTERS, pl.Categorical()),
    "enum": (LETTERS, pl.Enum(["d", "c", "b", "a", "never"])),
    "date": ([day.date() for day in DAYS], pl.Date()),
    "days": (DAYS, pl.Datetime("ns")),
    "times": (HOURS, pl.Datetime("ms")),
    "times of a time zone": (HOURS, pl.Datetime("us", "Europe/Berlin")),
    "durations": ([datetime.timedelta(minutes=int(x)) for x in X], pl.Duration("us")),
    "decimals": ([Decimal(int(x)) / 4 for x in X], pl.Decimal(10, 2)),
}


def table_of(name, lacks=False):
    values, dtype = COLUMNS[name]
    values = [None if lacks and place % 9 == 4 else value for place, value in enumerate(values)]
    return pl.DataFrame({"c": pl.Series(values, dtype=dtype, strict=False), "z": Z})


def rule(table):
    """A model in expressions of polars, which checks that it gets the caller's dtypes."""
    middle = table["c"].drop_nulls().sort()[N // 2 - 10]

    def model(rows):
        assert isinstance(rows, pl.DataFrame)
        assert rows.schema == table.schema
        other = pl.col("c") if table["c"].dtype == pl.Boolean else pl.col("c") > pl.lit(middle, dtype=table["c"].dtype)
        return rows.select(other.fill_null(True))["c"]

    return model


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_comes_back_as_it_was(name):
    for table in (table_of(name), table_of(name, lacks=True), table_of(name).head(0)):
        types = PolarsTypes.of(table, table.columns)
        assert types.frame(pandas_frame(table)).equals(table)
        assert types.frame(pandas_frame(table)).schema == table.schema
        assert pickle.loads(pickle.dumps(types)) == types


@pytest.mark.parametrize("lacks", [False, True], ids=["complete", "with nulls"])
@pytest.mark.parametrize("name", COLUMNS)
def test_model_and_answers_get_the_dtypes_of_the_table(name, lacks, tmp_path):
    table = table_of(name, lacks)
    model, schema = rule(table), Schema.infer(table, fillable=["c"] if lacks else [])
    explainer = ONBMACF(2).fit(table, model, schema=schema)
    answers = explainer.explain(table.head(6), vary=["c"])
    assert set(answers.statuses) == {"found"}
    found = answers.to_polars()
    assert found.select("c", "z").schema == table.schema
    assert (model(found.select("c", "z")) == found["to"]).all()
    assert found["row"].to_list() == answers.batch.factual.tolist()
    assert (found["distance"].to_numpy() == answers.to_frame()["distance"].to_numpy()).all()
    for place in range(3):
        alone = explainer.explain(table[place], vary=["c"])
        assert alone.to_dicts() == [{**answers.to_dicts()[place], "row": 0}]
        assert alone.to_polars().drop("row").equals(answers[place : place + 1].to_polars().drop("row"))
    explainer.save(tmp_path / "m.onb")
    again = ONBMACF.load(tmp_path / "m.onb", model).explain(table.head(6), vary=["c"])
    assert again.to_json() == answers.to_json()
    assert again.to_polars().equals(found)


def test_names_decide_never_positions_and_other_rows_are_read_too():
    table = table_of("enum")
    explainer = ONBMACF().fit(table, rule(table))
    expected = explainer.explain(table.head(3)).to_json()
    assert explainer.explain(table.head(3).select("z", "c")).to_json() == expected
    assert explainer.explain(table.head(3).cast({"c": pl.String})).to_json() == expected
    assert explainer.explain(pd.DataFrame({"z": Z[:3], "c": LETTERS[:3]})).to_json() == expected
    assert explainer.explain(table.head(3).to_dicts()).to_json() == expected


def test_a_pipeline_of_scikit_learn_is_explained_on_polars():
    table = pl.DataFrame({"age": X, "score": Z, "job": pl.Series(LETTERS, dtype=pl.Categorical)})
    encoder = ColumnTransformer([("job", OneHotEncoder(), ["job"])], remainder="passthrough")
    try:
        model = make_pipeline(encoder, LogisticRegression()).fit(table, (X > 50) | (Z > 1))
    except AttributeError:
        pytest.skip("this release of scikit-learn does not take frames of polars here")
    explainer = ONBMACF().fit(table, model)
    answers = explainer.explain(table, immutable=["job"], prove=True)
    assert set(answers.statuses) == {"found"}
    found = answers.to_polars()
    assert (model.predict(found.select(table.columns)) == found["to"].to_numpy()).all()
    assert set(answers.status_frame()["certificate"]) == {"nearest"}


def test_answers_are_those_of_the_same_table_in_pandas():
    table = pl.DataFrame({"age": X, "score": Z, "job": LETTERS, "since": [day.date() for day in DAYS]})
    late = datetime.datetime(2024, 2, 1)
    explainer = ONBMACF().fit(table, lambda rows: rows.select((pl.col("age") > 40) & (pl.col("since") > late))["age"])
    same = ONBMACF().fit(pandas_frame(table), lambda rows: (rows["age"] > 40) & (rows["since"] > late))
    assert explainer.explain(table).to_json() == same.explain(pandas_frame(table)).to_json()
    np.testing.assert_array_equal(explainer.Z_, same.Z_)


@pytest.mark.parametrize("lack", [None, float("nan")], ids=["null", "NaN"])
def test_a_missing_float_is_what_it_was(lack):
    table = pl.DataFrame({"c": [lack, 1.5, 2.5, lack, 4.5, 5.5], "z": [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]}, strict=False)
    seen = []

    def model(rows):
        seen.append((rows["c"].null_count(), rows["c"].is_nan().sum()))
        return rows["z"] > 3

    ONBMACF().fit(table, model).explain(table)
    nulls, nans = (sum(column) for column in zip(*seen, strict=True))
    assert (nulls > 0, nans > 0) == (lack is None, lack is not None)


def test_null_in_a_whole_column_that_fit_saw_complete_is_allowed_where_the_schema_says_so():
    table = pl.DataFrame({"c": X.astype(np.int32), "z": Z})
    schema = Schema((Feature("c", "integer", missing=True), Feature("z", "continuous")))
    explainer = ONBMACF().fit(table, lambda rows: rows.select(pl.col("z") > 0)["z"], schema=schema)
    rows = table.head(2).with_columns(c=pl.Series([None, 3], dtype=pl.Int32))
    answers = explainer.explain(rows)
    assert list(answers.statuses) == ["found", "found"]
    assert answers.to_polars()["c"].to_list() == [None, 3]
    assert answers.to_polars()["c"].dtype == pl.Int32


def test_values_per_row_may_be_columns_of_polars():
    table = table_of("int64")
    explainer = ONBMACF().fit(table, rule(table))
    rows = table.head(3).with_columns(wanted=pl.Series([1, 2, 3]))
    counts = np.bincount(explainer.explain(rows, n="wanted").batch.factual)
    assert counts.tolist() == [1, 2, 3]


def test_an_enum_has_an_order_unless_told_otherwise():
    table = table_of("enum")
    assert Schema.infer(table).kinds["c"] == "ordinal"
    assert Schema.infer(table).features[0].levels == ("d", "c", "b", "a", "never")
    assert Schema.infer(table, kinds={"c": "categorical"}).kinds["c"] == "categorical"
    assert Schema.infer(table_of("categorical")).kinds["c"] == "categorical"


def test_answers_of_a_pandas_table_can_be_had_in_polars():
    table = pd.DataFrame({"c": X, "row": LETTERS, "day": pd.to_datetime(DAYS)}, index=np.arange(N) * 2)
    answers = ONBMACF().fit(table, lambda rows: rows["c"] > 40).explain(table.head(4))
    found = answers.to_polars()
    assert found.columns[0] == "row_"
    assert found["row"].to_list() == answers.to_frame()["row"].tolist()
    assert found["day"].dtype == pl.Datetime("us")
    assert len(answers[:0].to_polars()) == 0


REFUSED = {
    "a list per cell": (lambda: pl.DataFrame({"x": [[1], [2]]}), "column 'x' has dtype object"),
    "times of day": (lambda: pl.DataFrame({"x": [datetime.time(1), datetime.time(2)]}), "column 'x' has dtype object"),
    "nothing but null": (
        lambda: pl.DataFrame({"x": [None, None], "y": [1, 2]}),
        "every value of column 'x' is missing",
    ),
    "lazy": (lambda: pl.DataFrame({"x": [1, 2]}).lazy(), r"polars LazyFrame.*\.collect\(\)"),
    "a column": (lambda: pl.Series([1, 2]), "the table is a polars Series"),
}


@pytest.mark.parametrize("make, pattern", REFUSED.values(), ids=REFUSED)
def test_what_has_no_distance_is_refused(make, pattern):
    with pytest.raises(TableError, match=pattern):
        ONBMACF().fit(make(), lambda rows: rows["x"])


def test_a_dtype_that_cannot_be_saved_is_named(tmp_path):
    table = pl.DataFrame({"c": pl.Series(X, dtype=pl.Int128), "z": Z})
    explainer = ONBMACF().fit(table, lambda rows: rows["z"] > 0)
    with pytest.raises(StoreError, match="polars' dtype Int128 cannot be saved"):
        explainer.save(tmp_path / "m.onb")
