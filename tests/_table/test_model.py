"""Any classifier as a black box: real models of five families, every shape of answer, fixed questions."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from onbmacf import ONBMACF, Feature, Schema
from onbmacf._table.form import TableForm
from onbmacf._table.model import FAILED, BlackBox, Counts

TABLE = pd.DataFrame({"x": np.linspace(0, 1, 40), "y": np.arange(40) % 7})
LABELS = (TABLE["x"] > 0.5).astype(int)


def box(model, table=TABLE, **options):
    form = TableForm.fit(table, None)
    black_box = BlackBox(model, form, **options)
    return black_box.learn_classes(form.numbers(table))


ANSWERS = {
    "ints": lambda x: (x > 0.5).astype(int),
    "whole floats": lambda x: (x > 0.5).astype(float),
    "bools": lambda x: x > 0.5,
    "column": lambda x: (x > 0.5).astype(int)[:, None],
    "list": lambda x: (x > 0.5).astype(int).tolist(),
    "series": lambda x: pd.Series((x > 0.5).astype(int), index=range(7, 7 + len(x))),
    "frame of probabilities": lambda x: pd.DataFrame({"no": 1 - x, "yes": x}),
    "probabilities": lambda x: np.column_stack([1 - x, x]),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_every_shape_of_answer_becomes_the_same_codes(answer):
    _, codes = box(lambda rows: answer(rows["x"].to_numpy()))
    assert codes.tolist() == LABELS.tolist()


def test_scores_are_labels_only_when_told():
    black_box, codes = box(lambda rows: rows["x"].to_numpy(), output="probability")
    assert codes.tolist() == LABELS.tolist()
    assert black_box.classes.tolist() == [0, 1]
    _, codes = box(lambda rows: rows["x"].to_numpy().round(1) / 2, output="label")
    assert codes.max() == 10


def test_labels_stay_the_callers_own():
    black_box, _ = box(lambda rows: np.where(rows["x"] > 0.5, "über", "unter"))
    assert black_box.classes.tolist() == ["unter", "über"]
    black_box, _ = box(lambda rows: rows["x"] > 0.5)
    assert [type(label) for label in black_box.classes] == [bool, bool]


def test_every_question_has_the_same_shape_and_is_counted():
    shapes = []

    def model(rows):
        shapes.append(rows.shape)
        return (rows["x"] > 0.5).astype(int)

    black_box, _ = box(model, chunk=16)
    assert shapes == [(16, 2)] * 3
    assert black_box.counts == Counts(n_calls=3, n_questions=40, n_model_rows=48)


def test_the_model_gets_the_form_of_fit_columns_order_and_dtypes(mixed):
    seen = []

    def model(rows):
        seen.append(rows)
        return (rows["dose"] > 1).astype(int)

    explainer = ONBMACF().fit(mixed, model)
    explainer.explain(mixed[mixed.columns[::-1]].astype({"age": float}))
    for rows in seen:
        pd.testing.assert_series_equal(rows.dtypes, mixed.dtypes)


def test_an_array_goes_to_the_model_as_an_array_of_its_dtype():
    seen = []
    table = TABLE.to_numpy().astype(np.float32)

    def model(rows):
        seen.append((type(rows), rows.dtype))
        return (rows[:, 0] > 0.5).astype(int)

    ONBMACF().fit(table, model).explain(table[:3])
    assert set(seen) == {(np.ndarray, np.dtype(np.float32))}


def test_unseen_labels_and_failures_have_codes_of_their_own():
    black_box, _ = box(lambda rows: (rows["x"] > 0.5).astype(int))

    def odd(rows):
        if (rows["y"] == 5).any():
            raise ValueError("five")
        return (rows["x"] > 0.5).astype(int) + 3 * (rows["y"] == 6) + 7 * (rows["y"] == 4)

    black_box = replace(black_box, model=odd)
    N = np.array([[0.9, 1.0], [0.9, 5.0], [0.9, 6.0], [0.1, 0.0], [0.9, 4.0], [0.8, 6.0]])
    assert black_box.ask(N).tolist() == [1, FAILED, 2, 0, 3, 2]
    assert black_box.unseen == [4, 8]


def families():
    from catboost import CatBoostClassifier
    from lightgbm import LGBMClassifier
    from xgboost import XGBClassifier

    yield "forest", RandomForestClassifier(20, random_state=0)
    yield "logistic", LogisticRegression()
    yield "xgboost", XGBClassifier(n_estimators=20)
    yield "lightgbm", LGBMClassifier(n_estimators=20, min_child_samples=2, verbose=-1)
    yield "catboost", CatBoostClassifier(iterations=20, verbose=False, allow_writing_files=False)


@pytest.mark.parametrize("name", ["forest", "logistic", "xgboost", "lightgbm", "catboost"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_real_models_of_every_family(name, n_classes):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(150, 4)).round(2), columns=list("abcd"))
    y = pd.qcut(table["a"] + table["b"], n_classes, labels=False)
    model = dict(families())[name].fit(table, y)
    answers = ONBMACF(2).fit(table, model).explain(table.head(20))
    assert list(answers.statuses) == ["found"] * 20
    found = answers.to_frame()
    assert (np.ravel(model.predict(found[list("abcd")])) == found["to"].to_numpy()).all()
    assert (found["to"] != found["from"]).all()


def test_a_pipeline_on_raw_text_columns(mixed):
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["city", "smokes", "size", "insured"]), remainder="passthrough"
    )
    y = np.where(mixed["dose"] > 1, "risk", "fine")
    model = make_pipeline(encode, RandomForestClassifier(15, random_state=0)).fit(mixed, y)
    found = ONBMACF().fit(mixed, model).explain(mixed).to_frame()
    assert (model.predict(found[mixed.columns]) == found["to"]).all()
    pd.testing.assert_series_equal(found[mixed.columns].dtypes, mixed.dtypes)


def test_a_torch_module_wrapped_in_a_function():
    torch = pytest.importorskip("torch")
    network = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(2, 2, bias=False))
    network[1].weight.data = torch.tensor([[0.5, 0.1], [0.9, 0.05]])

    def model(rows):
        return network(torch.tensor(rows.to_numpy(), dtype=torch.float32))

    explainer = ONBMACF().fit(TABLE, model)
    found = explainer.explain(TABLE.head(5)).to_frame()
    assert (model(found[["x", "y"]]).argmax(1).numpy() == found["to"].to_numpy()).all()


def test_an_array_with_levels_comes_to_the_model_with_its_own_values():
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.random(60).round(2), rng.choice([2, 5, 9], 60), rng.choice([-1, 4], 60)])
    asked = []

    def model(rows):
        asked.append(rows)
        return ((rows[:, 0] > 0.5) & (rows[:, 1] != 5)).astype(int)

    schema = Schema(
        (
            Feature("x0", "continuous"),
            Feature("x1", "categorical", levels=(2, 5, 9)),
            Feature("x2", "binary", levels=(-1, 4)),
        )
    )
    ONBMACF().fit(table, model, schema=schema).explain(table[:20])
    rows = np.vstack(asked)
    assert rows.dtype == table.dtype
    assert set(rows[:, 1]) == {2, 5, 9}
    assert set(rows[:, 2]) == {-1, 4}
