"""Bad input and what it gets, as one table: the exact type, and a pattern that names the column or row."""

import pickle
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from onbmacf import ONBMACF, Feature, Schema
from onbmacf.errors import ModelError, OnbmacfWarning, ParameterError, RowsError, TableError


def above(rows):
    return (np.asarray(rows)[:, 0].astype(float) > 2).astype(int)


def swap_model(explainer, model):
    """Let another model answer for a map that is fitted."""
    fitted = explainer.fitted_
    explainer.fitted_ = replace(fitted, black_box=replace(fitted.black_box, model=model))


def frame(**columns):
    base = {"x": [0.0, 1.0, 3.0, 4.0], "y": [5, 6, 7, 8]}
    return pd.DataFrame({**base, **columns})


BAD_TABLES = {
    "empty": (frame().head(0), TableError, "the table has no rows:"),
    "no columns": (pd.DataFrame(index=[0, 1]), TableError, "no columns"),
    "one row": (frame().head(1), TableError, "the table has 1 row:"),
    "one dimension": (np.arange(4.0), TableError, r"shape \(4,\)"),
    "no number at all": (frame(x=[np.nan] * 4), TableError, "every value of column 'x' is missing. Leave it out"),
    "no text at all": (frame(t=[None] * 4), TableError, "every value of column 't' is missing"),
    "infinity": (frame(x=[0.0, 1.0, np.inf, 4]), TableError, "'x': 1 rows, the first at positions 2"),
    "repeated column": (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), TableError, "'a'"),
    "numbers as text": (frame(t=["1", "2.5", "3", "4"]), TableError, "'t' holds numbers stored as text, e.g. '1'"),
    "text and numbers": (frame(t=["a", 2, "b", 3]), TableError, "'t' mixes text .* 'a' and 2"),
    "intervals": (frame(t=pd.interval_range(0, 4)), TableError, "'t' has dtype interval"),
    "complex": (frame(t=[1j, 2, 3, 4]), TableError, "'t' has dtype complex"),
    "lists": (frame(t=[[1], [2], [3], [4]]), TableError, "'t' has dtype object"),
    "sparse": (sparse.eye(4, format="csr"), TableError, "sparse matrix, which is not supported"),
    "whole numbers beyond float64": (frame(y=[1, 2, 3, 2**60]), TableError, "'y' holds whole numbers beyond"),
    "narrower than decimals": (frame(x=[0.0, 1e-301, 3e-301, 4e-301]), TableError, "'x' spans 4e-301, less than"),
    "wider than float64": (frame(x=[-1.7e308, 0.5, 3, 1.7e308]), TableError, "'x' spans more"),
}


@pytest.mark.parametrize("table, error, pattern", BAD_TABLES.values(), ids=BAD_TABLES)
def test_a_bad_table_is_refused_before_any_work(table, error, pattern):
    asked = []
    with pytest.raises(error, match=pattern):
        ONBMACF().fit(table, lambda rows: asked.append(1))
    assert not asked


BAD_MODELS = {
    "one label": (lambda rows: np.zeros(len(rows)), "predicts only 0.0 on these 4 rows"),
    "score": (lambda rows: np.linspace(0, 1, len(rows)), "could be a score or a label"),
    "margin": (lambda rows: np.linspace(-3, 3, len(rows)), "looks like a score"),
    "wrong length": (lambda rows: np.array([1]), "was given 512 rows and returned 1"),
    "single value": (lambda rows: 1, "a single value"),
    "three dimensions": (lambda rows: np.zeros((len(rows), 2, 2)), r"shape \(512, 2, 2\)"),
    "NaN probabilities": (lambda rows: np.full((len(rows), 2), np.nan), "NaN for row 0"),
    "no predict": ("a string", "must have predict or be callable, got str"),
}


@pytest.mark.parametrize("model, pattern", BAD_MODELS.values(), ids=BAD_MODELS)
def test_a_bad_model_is_refused_at_fit(model, pattern):
    with pytest.raises(ModelError, match=pattern):
        ONBMACF().fit(frame(), model)


def test_a_model_that_raises_on_a_fitted_row_names_it_and_keeps_its_error():
    def model(rows):
        if (rows["y"] == 7).any():
            raise KeyError("seven")
        return above(rows)

    with pytest.raises(ModelError, match="row 2 of the table") as caught:
        ONBMACF().fit(frame(), model)
    assert isinstance(caught.value.__cause__, KeyError)


BAD_PARAMETERS = {
    **{f"n_counterfactuals={n!r}": ({"n_counterfactuals": n}, "n_counterfactuals") for n in (0, -1, 2.5, True, "3")},
    "step_ratio": ({"strategy": "paper", "step_ratio": 1.5}, r"step_ratio must be in \(0, 1\), got 1.5"),
    "max_steps": ({"strategy": "paper", "max_steps": 0}, "max_steps"),
    "metric": ({"metric": "cosine"}, "'manhattan', 'euclidean', 'chebyshev', got 'cosine'"),
    "competitors": ({"competitors": "some"}, "competitors"),
    "association": ({"association": "home"}, "association"),
    "boundary": ({"boundary": "fence"}, "boundary"),
    "predict_chunk": ({"predict_chunk": 0}, "predict_chunk"),
    "negative metric": ({"metric": lambda a, b: -1.0}, "at least 0, got -1.0"),
}


@pytest.mark.parametrize("parameters, pattern", BAD_PARAMETERS.values(), ids=BAD_PARAMETERS)
def test_a_bad_parameter_is_refused_at_fit(parameters, pattern):
    with pytest.raises(ParameterError, match=pattern):
        ONBMACF(**parameters).fit(frame(), above)


BAD_SCHEMAS = {
    "unknown immutable": (lambda t: Schema.infer(t, immutable=["z"]), ParameterError, "'z'"),
    "misspelt kind": (lambda t: Schema.infer(t, kinds={"x": "real"}), ParameterError, "kind of 'x'"),
    "all immutable": (lambda t: Schema.infer(t, immutable=["x", "y"]), ParameterError, "every feature is immutable"),
    "ordinal without levels": (lambda t: Schema.infer(t, kinds={"x": "ordinal"}), ParameterError, "give its levels"),
    "repeated levels": (lambda t: Feature("x", "ordinal", levels=("a", "a")), ParameterError, "levels of 'x' repeat"),
    "named twice": (lambda t: Schema((Feature("x", "integer"),) * 2), ParameterError, "'x'"),
}


@pytest.mark.parametrize("make, error, pattern", BAD_SCHEMAS.values(), ids=BAD_SCHEMAS)
def test_a_bad_schema_is_refused(make, error, pattern):
    with pytest.raises(error, match=pattern):
        make(frame())


def test_a_schema_must_describe_every_column_and_no_other():
    with pytest.raises(TableError, match="'y'"):
        ONBMACF().fit(frame(), above, schema=Schema((Feature("x", "continuous"),)))
    with pytest.raises(TableError, match="lack 1 of the 3 expected columns: 'q'"):
        ONBMACF().fit(frame(), above, schema=Schema.infer(frame(q=[1, 2, 3, 4])))
    binary = Feature("b", "binary", levels=("a", "y"))
    schema = Schema((Feature("x", "continuous"), Feature("y", "integer"), binary))
    with pytest.raises(TableError, match="'b' holds 'z'"):
        ONBMACF().fit(frame(b=["a", "a", "z", "a"]), above, schema=schema)
    with pytest.raises(TableError, match="declared binary but has 4 values"):
        ONBMACF().fit(frame(), above, schema=Schema.infer(frame(), kinds={"y": "binary"}))


@pytest.fixture
def fitted():
    table = pd.DataFrame({"x": [0.0, 1, 3, 4], "y": [5, 6, 7, 8], "t": ["red", "blue", "red", "green"]})
    return ONBMACF().fit(table, above)


BAD_ROWS = {
    "missing column": (pd.DataFrame({"x": [1.0], "y": [1]}), "lack 1 of the 3 expected columns: 't'"),
    "wrong width": (np.zeros((2, 5)), "width 5; fit saw 3 columns"),
    "repeated column": (pd.DataFrame([[1, 2, 3, "red"]], columns=["x", "x", "y", "t"]), "repeat"),
}


@pytest.mark.parametrize("rows, pattern", BAD_ROWS.values(), ids=BAD_ROWS)
def test_rows_of_another_shape_are_refused(fitted, rows, pattern):
    with pytest.raises(RowsError, match=pattern):
        fitted.explain(rows)


BAD_ROW_VALUES = {
    "missing number": ({"x": np.nan}, "invalid_row", "'x': the value is missing"),
    "infinity": ({"x": np.inf}, "invalid_row", "'x': inf is not a finite number"),
    "text in a number": ({"x": "many"}, "invalid_row", "'x': 'many' is not a finite number"),
    "missing text": ({"t": None}, "invalid_row", "'t': the value is missing"),
    "unseen level": ({"t": "gren"}, "invalid_row", r"'t': unseen level 'gren'. Did you mean 'green'\? Known: 'blue'"),
}


@pytest.mark.parametrize("value, status, pattern", BAD_ROW_VALUES.values(), ids=BAD_ROW_VALUES)
def test_a_bad_row_gets_a_status_and_the_others_are_answered(fitted, value, status, pattern):
    good = {"x": 0.5, "y": 6, "t": "red"}
    answers = fitted.explain(pd.DataFrame([good, {**good, **value}, good], index=["a", "b", "a"]))
    assert list(answers.statuses) == ["found", status, "found"]
    assert re.search(pattern, answers[1].reason)
    assert list(answers.status_frame().index) == ["a", "b", "a"]
    assert answers[1].sentences() == [f"b: {answers[1].reason}"]


def test_extra_columns_are_ignored_with_a_warning_and_order_does_not_matter(fitted):
    row = pd.DataFrame({"t": ["red"], "z": [1], "y": [6], "x": [0.5]})
    with pytest.warns(OnbmacfWarning, match="'z'"):
        answers = fitted.explain(row)
    assert any("'z'" in message for message in answers.warnings)
    expected = fitted.explain({"x": 0.5, "y": 6, "t": "red"}).to_frame()
    pd.testing.assert_frame_equal(answers.to_frame(), expected)


def test_one_row_may_be_a_series_a_dict_or_an_array(fitted):
    row = {"x": 0.5, "y": 6, "t": "red"}
    as_dict = fitted.explain(row).to_frame()
    as_series = fitted.explain(pd.Series(row, name="me", dtype=object))
    as_array = fitted.explain(np.array([0.5, 6, "red"], dtype=object)).to_frame()
    assert list(as_series.to_frame().index) == ["me"]
    pd.testing.assert_frame_equal(as_dict, as_array)
    pd.testing.assert_frame_equal(as_dict, as_series.to_frame().reset_index(drop=True))


def test_an_empty_batch_gives_an_empty_result_with_the_right_columns(fitted):
    rows = pd.DataFrame({"x": [0.5], "y": [6], "t": ["red"]})
    full, empty = fitted.explain(rows), fitted.explain(rows.head(0))
    assert len(empty) == 0
    assert list(empty.to_frame().columns) == list(full.to_frame().columns)
    assert list(empty.to_frame().dtypes[-3:]) == list(full.to_frame().dtypes[-3:])
    assert empty.sentences() == []


def test_targets(fitted):
    row = {"x": 0.5, "y": 6, "t": "red"}
    already = fitted.explain(row, target=0)[0]
    assert (already.status, already.reason) == ("already", "The model says 0 already.")
    assert fitted.explain(row, target=[0, 1])[0].status == "already"
    assert fitted.explain(row, target=1)[0].counterfactuals[0].label == 1
    for unknown in (7, "one", [0, 7], []):
        with pytest.raises(ParameterError, match="among the model's labels 0, 1"):
            fitted.explain(row, target=unknown)


def test_fewer_counterfactuals_than_asked_is_said(fitted):
    fitted.n_counterfactuals = 50
    answer = fitted.explain({"x": 0.5, "y": 6, "t": "red"})[0]
    assert 0 < len(answer.counterfactuals) < 50
    assert re.match(r"\d+ of 50 counterfactuals were found", answer.reason)


def test_values_outside_the_fitted_range_are_allowed(fitted):
    answer = fitted.explain({"x": -100.0, "y": 600, "t": "red"})[0]
    assert answer.status == "found"
    assert answer.counterfactuals[0].values["x"] > 2


def test_unfitted(fitted):
    with pytest.raises(ParameterError, match="not fitted"):
        ONBMACF().explain({"x": 1})


def test_a_model_that_raises_on_one_row_loses_only_that_row(fitted):
    def fragile(rows):
        if (rows["y"] == 99).any():
            raise OverflowError("ninety-nine")
        return above(rows)

    swap_model(fitted, fragile)
    rows = pd.DataFrame({"x": [0.5] * 5, "y": [6, 99, 6, 99, 7], "t": ["red"] * 5})
    answers = fitted.explain(rows)
    assert list(answers.statuses) == ["found", "model_error", "found", "model_error", "found"]
    assert answers[1].reason == "The model raised OverflowError: ninety-nine"
    assert answers[1].label is None


def test_a_model_that_changes_its_mind_is_warned_of_with_the_rate():
    state = {"calls": 0}

    def moody(rows):
        state["calls"] += 1
        return (above(rows) + (state["calls"] > 1)) % 2

    with pytest.warns(OnbmacfWarning, match="not deterministic: 4 of 4 rows"):
        explainer = ONBMACF().fit(frame(), moody)
    assert explainer.warnings_


def test_a_counterfactual_that_does_not_hold_when_asked_again_is_not_returned(fitted):
    row = {"x": 0.5, "y": 6, "t": "red"}
    swap_model(fitted, above)
    returned = fitted.explain(row)[0].counterfactuals[0].values
    seen = []

    def liar(rows):
        """Tell the truth about the row to be returned once, and not the second time."""
        is_returned = (rows == returned.to_numpy()).all(axis=1).to_numpy()
        seen.append(is_returned.any())
        return above(rows) ^ (is_returned & (sum(seen) > 1))

    swap_model(fitted, liar)
    (other,) = fitted.explain(row)[0].counterfactuals  # the next best takes its place
    assert sum(seen) > 1
    assert tuple(other.values) != tuple(returned)
    assert above(pd.DataFrame([other.values]))[0] == other.label


def test_where_nothing_holds_when_asked_again_nothing_is_returned(fitted):
    asked = set()

    def liar(rows):
        """Tell the truth about each row once, and never again."""
        keys = [*map(tuple, rows.to_numpy().tolist())]
        again = np.array([key in asked for key in keys])
        asked.update(keys)
        own = (rows["x"] == 0.5).to_numpy() & (rows["y"] == 6).to_numpy() & (rows["t"] == "red").to_numpy()
        return above(rows) ^ (again & ~own)

    swap_model(fitted, liar)
    answer = fitted.explain({"x": 0.5, "y": 6, "t": "red"})[0]
    assert (answer.status, answer.counterfactuals) == ("model_error", ())
    assert "asked again" in answer.reason


def test_a_model_that_mutates_its_input_has_no_effect():
    def vandal(rows):
        labels = above(rows)
        rows.iloc[:, 0] = -1.0
        return labels

    table = frame()
    vandalised = ONBMACF().fit(table, vandal).explain(table).to_frame()
    pd.testing.assert_frame_equal(table, frame())
    pd.testing.assert_frame_equal(vandalised, ONBMACF().fit(frame(), above).explain(table).to_frame())


def test_the_caller_may_change_the_table_after_fit():
    table = frame()
    explainer = ONBMACF().fit(table, above)
    before = explainer.explain(frame()).to_frame()
    table["x"] = 9.0
    pd.testing.assert_frame_equal(explainer.explain(frame()).to_frame(), before)


def test_conflicting_duplicates_are_listed_and_explained():
    labels = [0, 1, 0, 1]
    table = pd.DataFrame({"x": [1.0, 1.0, 2.0, 4.0]})
    with pytest.warns(OnbmacfWarning, match="2 rows coincide .* at positions 0, 1"):
        explainer = ONBMACF().fit(table, lambda rows: np.resize(labels, len(rows)))
    assert explainer.cover_.is_degenerate.sum() == 2


def test_an_identifier_is_warned_of():
    table = pd.DataFrame({"x": np.arange(30) / 7, "id": [f"p{i}" for i in range(30)]})
    with pytest.warns(OnbmacfWarning, match="'id'"):
        ONBMACF().fit(table, above)


def test_a_constant_column_is_kept_and_never_divides_by_zero(fitted):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explainer = ONBMACF().fit(frame(c=[7] * 4, k=["a"] * 4), above)
        answers = explainer.explain(frame(c=[7] * 4, k=["a"] * 4))
    assert (answers.to_frame()["c"] == 7).all()


def test_scales_from_1e_minus_150_to_1e150_keep_distances_finite():
    table = pd.DataFrame({"tiny": np.array([1.0, 2, 3, 4]) * 1e-150, "huge": np.array([4.0, 3, 2, 1]) * 1e150})
    explainer = ONBMACF().fit(table, lambda rows: (rows["tiny"] > 2.5e-150).astype(int))
    assert np.isfinite(explainer.cover_.reach).all()
    pd.testing.assert_frame_equal(explainer.fitted_.space.decode(explainer.Z_), table)
    assert (explainer.explain(table).to_frame()["distance"] <= 2).all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_read_only_and_fortran_arrays_work(order):
    table = np.array([[0.0, 5], [1, 6], [3, 7], [4, 8]], order=order)
    table.setflags(write=False)
    answers = ONBMACF().fit(table, above).explain(table)
    assert list(answers.statuses) == ["found"] * 4
    assert list(answers.to_frame().columns[-2:]) == ["x0", "x1"]


def test_a_model_that_fails_only_on_counterfactuals_says_what_it_raised(fitted):
    def fragile(rows):
        if (rows["x"] > 0.5).any():
            raise OverflowError("too far")
        return np.zeros(len(rows), dtype=int)

    swap_model(fitted, fragile)
    answer = fitted.explain({"x": 0.5, "y": 6, "t": "red"})[0]
    assert answer.status == "model_error"
    assert re.match(r"The model raised OverflowError: too far \(on \d+ of \d+ questions\)\.", answer.reason)


def rules_of(model, explainer=None):
    """Ask for the rules that answers of a model cross."""
    rows = frame(x=[0.0, 1.0, 3.0, 4.0])
    fitted = ONBMACF().fit(rows, model)
    return fitted.explain(rows).rules(explainer)


BAD_RULES = {
    "a function": (lambda: rules_of(above), "a function cannot be read: fit with the model in it"),
    "a linear model": (
        lambda: rules_of(LogisticRegression(C=99.0).fit(frame(), [0, 0, 1, 1])),
        "the rules of this model cannot be told: a linear model has no conditions",
    ),
    "no explainer": (lambda: rules_of(above, "map.onb"), "explainer must be a fitted ONBMACF, got str"),
    "not fitted": (lambda: rules_of(above, ONBMACF()), "explainer must be a fitted ONBMACF, got ONBMACF"),
    "sent": (
        lambda: pickle.loads(pickle.dumps(ONBMACF().fit(frame(), above).explain(frame()))).rules(),
        "answers that were saved, sent or put into words do not know their model",
    ),
    "another model": (
        lambda: rules_of(
            DecisionTreeClassifier().fit(frame(), list("aabb")),
            ONBMACF().fit(frame(), DecisionTreeClassifier().fit(frame(), [0, 0, 1, 1])),
        ),
        "these answers are of another model: this one says 0, 1, not 'a'",
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ask, pattern", BAD_RULES.values(), ids=BAD_RULES)
def test_rules_that_cannot_be_told_are_an_error_of_one_sentence(ask, pattern):
    with pytest.raises(ParameterError, match=pattern):
        ask()
