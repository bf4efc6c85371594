"""Missing values are values: rows that lack some are fitted, explained and answered, in the caller's own form."""

import json
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import onbmacf.audit
from onbmacf import ONBMACF, Feature, Rule, Rules, Schema, committee
from onbmacf.errors import ParameterError
from onbmacf.io import read_table

N_ROWS = 160


def applicants(lacking=np.nan):
    """A table of every kind of feature in which one cell in eight is missing."""
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": random.integers(18, 80, N_ROWS).astype(float),
            "income": random.normal(30, 10, N_ROWS).round(1),
            "city": random.choice(["A", "B", "C"], N_ROWS),
            "owner": random.choice(["no", "yes"], N_ROWS),
            "size": pd.Categorical(random.choice(["S", "M", "L"], N_ROWS), ["S", "M", "L"], ordered=True),
        }
    ).astype({"city": object, "owner": object})
    lacks = random.random(table.shape) < 0.125
    for place, name in enumerate(table.columns):
        own = lacking if table[name].dtype == object else np.nan
        table[name] = table[name].where(~lacks[:, place], own)
    return table


def as_numbers(rows):
    """Return rows as a tree takes them: NaN where a value is missing."""
    city = rows["city"].map({"A": 0.0, "B": 1.0, "C": 2.0})
    sizes = rows["size"].astype(object).map({"S": 0.0, "M": 1.0, "L": 2.0})
    owner = rows["owner"].map({"no": 0.0, "yes": 1.0})
    return np.column_stack([rows["age"], rows["income"], city, owner, sizes]).astype(float)


class Tree:
    """A tree that takes missing values, and notes what it was given."""

    classes_ = np.array(["no", "yes"])

    def __init__(self, table):
        score = np.nan_to_num(as_numbers(table), nan=1.0) @ [0.02, 0.1, 0.5, 1.0, 0.5]
        self.tree = DecisionTreeClassifier(max_depth=7, random_state=0).fit(as_numbers(table), score > np.median(score))
        self.given = []

    def predict(self, rows):
        self.given.append(rows)
        return np.where(self.tree.predict(as_numbers(rows)), "yes", "no")

    def predict_proba(self, rows):
        return self.tree.predict_proba(as_numbers(rows))


@pytest.fixture(scope="module")
def table():
    return applicants()


@pytest.fixture(scope="module")
def tree(table):
    return Tree(table)


def filled(answers):
    """Return lines x features: what a counterfactual has that its factual lacks; nothing may be removed."""
    before = answers.rows.iloc[answers.batch.factual].isna().to_numpy()
    after = answers.batch.values.isna().to_numpy()
    assert not (after & ~before).any(), "a value was removed"
    return before & ~after


def assert_holds(answers, model, fillable=()):
    assert set(answers.statuses) <= {"found", "none_found", "infeasible"}
    assert (answers.statuses == "found").mean() > 0.6  # a proof says of the others that there is none
    assert (model.predict(answers.batch.values) == answers.batch.label).all()
    names = answers.rows.columns[filled(answers).any(axis=0)]
    assert set(names) <= set(fillable)


@pytest.mark.parametrize(
    "options",
    [{}, {"strategy": "paper"}, {"max_model_rows": 200}, {"plausibility": 1.0}, {"metric": "euclidean"}],
    ids=str,
)
@pytest.mark.parametrize("fillable", [(), ("income", "city", "size")], ids=["held", "fillable"])
def test_every_row_is_answered_and_only_what_is_fillable_is_filled_in(table, tree, fillable, options):
    rows = table[table.isna().any(axis=1)].head(25)
    explainer = ONBMACF(2, **options).fit(table, tree, schema=Schema.infer(table, fillable=fillable))
    answers = explainer.explain(rows)
    assert_holds(answers, tree, fillable)
    if fillable and not options.get("max_model_rows"):
        assert filled(answers).any(), "nothing was filled in: the test shows nothing"


def test_the_answers_are_the_same_for_any_batch_and_order(table, tree):
    explainer = ONBMACF(2).fit(table, tree, schema=Schema.infer(table, fillable=["income", "city"]))
    rows = table.tail(24)
    whole = explainer.explain(rows)
    turned = explainer.explain(rows.iloc[::-1])
    for place in (0, 3, 11, 23):
        alone = explainer.explain(rows.iloc[[place]])
        assert alone[0].to_dict() == whole[place].to_dict() == turned[len(rows) - 1 - place].to_dict()


def test_the_model_is_given_what_stands_for_a_missing_value_in_the_callers_column():
    table = applicants(lacking=None)
    table["owner"] = table["owner"].where(table["owner"].notna(), np.nan)
    tree = Tree(table)
    answers = ONBMACF(1).fit(table, tree).explain(table.head(6))
    for rows in [*tree.given, answers.batch.values]:
        assert rows.dtypes.to_dict() == table.dtypes.to_dict()
        assert all(value is None or isinstance(value, str) for value in rows["city"])
        assert all(isinstance(value, str) or value != value for value in rows["owner"])


def with_missing(values, dtype):
    return pd.Series([values[place % len(values)] for place in range(40)], dtype=dtype)


COLUMNS = {
    "float64": (with_missing([1.5, 2.25, np.nan, 4.0], "float64"), "continuous"),
    "float32": (with_missing([1.5, 2.25, np.nan, 4.0], "float32"), "continuous"),
    "whole numbers in float64": (with_missing([1.0, 2.0, np.nan, 7.0], "float64"), "integer"),
    "Int64": (with_missing([1, 2, pd.NA, 7], "Int64"), "integer"),
    "Float64": (with_missing([1.5, 2.5, pd.NA, 7.0], "Float64"), "continuous"),
    "objects, whole numbers and None": (with_missing([1, 2, None, 7], object), "integer"),
    "objects, numbers and NaN": (with_missing([1.5, 2.0, np.nan, 7.0], object), "continuous"),
    "boolean": (with_missing([True, False, pd.NA, True], "boolean"), "binary"),
    "objects, bools and None": (with_missing([True, False, None, True], object), "binary"),
    "text and None": (with_missing(["a", "b", None, "c"], object), "categorical"),
    "string": (with_missing(["a", "b", pd.NA, "c"], "string"), "categorical"),
    "str": (with_missing(["a", "b", None, "c"], "str"), "categorical"),
    "category": (with_missing(["a", "b", None, "c"], "category"), "categorical"),
    "ordered category": (
        with_missing(["a", "b", None, "c"], pd.CategoricalDtype(["c", "b", "a"], ordered=True)),
        "ordinal",
    ),
    "dates": (with_missing([*pd.to_datetime(["2020-01-01", "2020-02-03"]), pd.NaT], "datetime64[us]"), "integer"),
    "objects, dates and None": (with_missing([date(2020, 1, 1), date(2020, 2, 3), None], object), "integer"),
    "objects, decimals and None": (with_missing([Decimal("1.25"), Decimal("2.50"), None], object), "continuous"),
    "pyarrow": (with_missing([1, 2, None, 7], "int64[pyarrow]"), "integer"),
}


@pytest.mark.parametrize("column, kind", COLUMNS.values(), ids=COLUMNS)
def test_every_kind_of_column_comes_back_as_it_was(column, kind):
    table = pd.DataFrame({"x": np.linspace(0, 1, 40).round(2), "c": column})
    given = []

    def model(rows):
        given.append(rows)
        return np.where((rows["x"] > 0.5) ^ rows["c"].isna().to_numpy(), "yes", "no")

    explainer = ONBMACF(1).fit(table, model)
    assert explainer.schema_.kinds["c"] == kind
    answers = explainer.explain(table)
    assert set(answers.statuses) == {"found"}
    missing = table["c"].iloc[2]
    for rows in [*given, answers.batch.values]:
        assert rows["c"].dtype == column.dtype
        assert all(value is missing or value != value for value in rows["c"][rows["c"].isna()])
    same = answers.batch.values["c"].isna().to_numpy() == table["c"].isna().to_numpy()[answers.batch.factual]
    assert same.all()
    pd.testing.assert_frame_equal(explainer.fitted_.space.decode(explainer.fitted_.Z), table)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, object])
def test_arrays_come_back_as_they_were(dtype):
    random = np.random.default_rng(0)
    values = random.random((50, 3)).round(2).astype(dtype)
    values[random.random(values.shape) < 0.2] = np.nan if dtype is not object else None
    given = []

    def model(rows):
        given.append(rows)
        return np.nan_to_num(rows.astype(float), nan=0.4)[:, :2].sum(axis=1) > 1

    answers = ONBMACF(1).fit(values, model).explain(values[:10])
    assert set(answers.statuses) == {"found"}
    assert all(rows.dtype == values.dtype for rows in given)
    lacking = {type(value) for rows in given for value in rows.ravel().tolist() if value is None or value != value}
    assert lacking == {type(None) if dtype is object else float}


def test_a_missing_value_is_as_far_from_every_value_as_the_weight_of_its_feature(table, tree):
    rules = Rules({"income": Rule(weight=3.0)})
    schema = Schema.infer(table, fillable=["income", "city", "owner"], rules=rules)
    answers = ONBMACF(4).fit(table, tree, schema=schema).explain(table[table[["income", "city"]].isna().any(axis=1)])
    alone = filled(answers) & (answers.batch.changed.sum(axis=1) == 1)[:, np.newaxis]
    assert alone[:, 1].any()
    assert alone[:, 2].any()
    np.testing.assert_allclose(answers.batch.distance[alone[:, 1]], 3.0)
    np.testing.assert_allclose(answers.batch.distance[alone[:, 2]], 1.0)


def test_a_missing_value_reads_as_unknown(table):
    rows = table.assign(age=40.0, city="A", owner="no", size=table["size"].fillna("M"))
    model = lambda rows: np.where(rows["income"] > 25, "yes", "no")  # noqa: E731
    schema = Schema.infer(rows, fillable=["income"])
    explainer = ONBMACF(1).fit(rows, model, schema=schema)
    answer = explainer.explain(rows[rows["income"].isna()].head(1))[0]
    value = answer.counterfactuals[0].values["income"]
    text = answer.sentences()[0]
    assert text.startswith(f"If income were known to be {value:g}, the model would say 'yes' instead of 'no'.")
    assert f"income: unknown \N{RIGHTWARDS ARROW} {value:g}" in answer._repr_html_()
    record = json.loads(json.dumps(answer.to_dict(), allow_nan=False))
    assert record["factual"]["income"] is None
    assert record["counterfactuals"][0]["changes"] == [{"feature": "income", "before": None, "after": value}]


def test_a_row_may_lack_only_what_fitted_rows_lack_or_the_schema_says():
    table = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "y": [1, 2, 3, 4], "t": ["a", "b", "c", "b"]})
    model = lambda rows: (np.nan_to_num(rows["x"], nan=9.0) > 1.5).astype(int)  # noqa: E731
    rows = [{"x": None, "y": 1, "t": "a"}, {"x": 1.0, "y": None, "t": "a"}, {"x": 1.0, "y": 2, "t": None}]
    answers = ONBMACF().fit(table, model).explain(rows)
    assert set(answers.statuses) == {"invalid_row"}
    assert "'x': the value is missing, and no fitted row lacks it" in answers[0].reason
    assert "'y': the value is missing, and the fitted dtype int64 has no missing value" in answers[1].reason
    declared = [Feature("x", "continuous", missing=True, fillable=True), Feature("y", "integer", missing=True)]
    schema = Schema((*declared, Feature("t", "categorical", missing=True)))
    answers = ONBMACF().fit(table, model, schema=schema).explain(rows)
    assert list(answers.statuses) == ["found", "invalid_row", "found"]
    assert answers[0].counterfactuals[0].values["x"] < 1.5
    assert answers[2].counterfactuals[0].values["t"] != answers[2].counterfactuals[0].values["t"]


def test_fillable_is_checked_and_implies_missing(table):
    with pytest.raises(ParameterError, match=r"fillable names 'incme', which is not a column\. Did you mean 'income'"):
        Schema.infer(table, fillable=["incme"])
    schema = Schema.infer(table, fillable="income")
    assert schema.fillable == ("income",)
    assert Feature("x", "continuous", fillable=True).missing


def test_an_immutable_feature_is_not_filled_in(table, tree):
    schema = Schema.infer(table, immutable=["income"], fillable=["income"])
    answers = ONBMACF(2).fit(table, tree, schema=schema).explain(table[table["income"].isna()])
    assert not filled(answers).any()


def test_rules_hold_for_what_is_filled_in_and_say_nothing_of_what_is_missing(table, tree):
    rules = Rules({"income": Rule(direction="up", low=20, high=32, step=0.5)}, at_most=[("income", "age")])
    schema = Schema.infer(table, fillable=["income"], rules=rules)
    answers = ONBMACF(2).fit(table, tree, schema=schema).explain(table[table["income"].isna()])
    values = answers.batch.values.loc[filled(answers)[:, 1], "income"]
    assert len(values)
    assert values.between(20, 32).all()
    assert (values * 2 == (values * 2).round()).all()
    ages = answers.batch.values.loc[values.index, "age"]
    assert (ages.isna() | (values <= ages)).all()
    assert not any("breaks the rule" in answer.reason for answer in answers)


def test_ranges_of_what_was_filled_in_hold(table, tree):
    explainer = ONBMACF(1).fit(table, tree, schema=Schema.infer(table, fillable=["income", "city"]))
    answers = explainer.explain(table[table["income"].isna()].head(12), ranges=True)
    n_filled = 0
    for answer in answers:
        found = answer.counterfactuals[0]
        for name, own in found.ranges.items():
            ends = own.levels if own.levels is not None else (own.low, own.high)
            n_filled += name == "income" and pd.isna(answer.factual[name])
            for end in ends:
                row = pd.DataFrame([found.values]).astype(answers.batch.values.dtypes.to_dict())
                row[name] = pd.Series([end], index=row.index).astype(row[name].dtype)
                assert tree.predict(row)[0] == found.label
    assert n_filled


def test_a_proof_says_where_it_cannot_treat_missing_values():
    random = np.random.default_rng(0)
    table = pd.DataFrame(random.random((120, 3)).round(3), columns=list("abc"))
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(table, table["a"] + table["b"] > 1)
    table.iloc[::5, 0] = np.nan
    answers = ONBMACF(1).fit(table, model).explain(table.head(10), prove=True)
    lacks = table.head(10).isna().any(axis=1).to_numpy()
    for answer, is_lacking in zip(answers, lacks, strict=True):
        assert (str(answer.certificate.kind) in ("unproven", "none_found")) == is_lacking
        assert ("the row has missing values" in answer.certificate.sentence()) == is_lacking


def test_a_proof_by_asking_knows_what_may_be_filled_in():
    random = np.random.default_rng(0)
    table = pd.DataFrame({"t": random.choice(["a", "b", "c"], 60), "k": random.integers(0, 3, 60).astype(float)})
    table.loc[::4, "t"] = None
    table.loc[1::4, "k"] = np.nan
    model = lambda rows: ((rows["t"] == "a") & (rows["k"] > 0)).astype(int)  # noqa: E731
    rows = table[table["t"].isna() & (table["k"] > 0)].head(1)
    held = ONBMACF(1).fit(table, model).explain(rows, prove=True)
    assert list(held.statuses) == ["infeasible"]
    schema = Schema.infer(table, fillable=["t"])
    free = ONBMACF(1).fit(table, model, schema=schema).explain(rows, prove=True)
    assert free[0].counterfactuals[0].values["t"] == "a"
    assert free[0].counterfactuals[0].distance == 1.0
    assert str(free[0].certificate.kind) == "nearest"


def test_a_committee_is_asked_about_missing_values_as_they_are(table, tree):
    numbers = pd.DataFrame(as_numbers(table), columns=table.columns)
    labels = tree.predict(table)
    model = DecisionTreeClassifier(max_depth=5, random_state=0)
    members = committee(model, numbers, labels, k=3)
    explainer = ONBMACF(1, committee=members, agreement=1.0).fit(numbers, model.fit(numbers, labels))
    answers = explainer.explain(numbers.head(12))
    assert (answers.batch.stability == 1.0).all()
    for member in members:
        assert (member.predict(answers.batch.values) == answers.batch.label).all()


def test_private_maps_are_made_of_them(table, tree):
    explainer = ONBMACF(private=3).fit(table, tree)
    statuses = list(explainer.explain(table.head(20)).statuses)
    assert "found" in statuses
    assert "model_error" not in statuses


def test_a_saved_map_answers_the_same(table, tree, tmp_path):
    table = applicants(lacking=None)
    schema = Schema.infer(table, fillable=["income", "city"])
    explainer = ONBMACF(2).fit(table, tree, schema=schema)
    explainer.save(tmp_path / "map.onb")
    loaded = ONBMACF.load(tmp_path / "map.onb", tree)
    assert loaded.schema_ == explainer.schema_
    rows = table.head(10)
    pd.testing.assert_frame_equal(loaded.explain(rows).to_frame(), explainer.explain(rows).to_frame())
    assert loaded.fitted_.space.form.lacking[2] is None


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_keep_what_is_missing(table, tree, tmp_path, kind):
    path = tmp_path / f"table.{kind}"
    plain = table.assign(size=table["size"].astype(object))
    plain.to_csv(path, index=False) if kind == "csv" else plain.to_parquet(path)
    read = read_table(path)
    np.testing.assert_array_equal(read.isna(), table.isna())
    model = Tree(read)
    answers = ONBMACF(1).fit(read, model).explain(read.head(8))
    assert_holds(answers, model)
    out = tmp_path / f"out.{kind}"
    answers.batch.values.to_csv(out, index=False) if kind == "csv" else answers.batch.values.to_parquet(out)
    np.testing.assert_array_equal(read_table(out).isna(), answers.batch.values.isna())


def test_frames_plots_and_audit_take_them(table, tree):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib.pyplot import close

    from onbmacf import plots

    explainer = ONBMACF(2).fit(table, tree, schema=Schema.infer(table, fillable=["income", "city"]))
    answers = explainer.explain(table)
    assert answers.changes()["before"].isna().any()
    assert "unknown" in answers._repr_html_()
    assert any("known to be" in sentence for sentence in answers.sentences())
    for one in onbmacf.audit.TABLES:
        assert isinstance(one.make(answers, explainer.schema_), pd.DataFrame)
    lines = np.flatnonzero(filled(answers)[:, 1])
    answer = answers[int(answers.batch.factual[lines[0]])]
    plots.before_after(answer)
    ax = plots.cover(explainer, "age", "income")
    assert -20 < ax.get_ylim()[0] < ax.get_ylim()[1] < 90
    plots.walk(answer, "age", "income", ax=ax)
    ax.figure.canvas.draw()
    close("all")
