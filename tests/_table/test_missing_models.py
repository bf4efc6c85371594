"""Models that take missing values as they are: no row is dropped, and every answer holds when it is asked again."""

from hashlib import sha256

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF, Schema

LACKING, OTHERS = 12, 3  # rows that are explained, of those that lack a value and of the others


def gradient_boosting():
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=10, random_state=0, categorical_features="from_dtype")


def xgboost():
    return pytest.importorskip("xgboost").XGBClassifier(n_estimators=20, n_jobs=1, enable_categorical=True)


def lightgbm():
    return pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=20, n_jobs=1, verbose=-1)


def catboost():
    made = pytest.importorskip("catboost").CatBoostClassifier(iterations=20, thread_count=1, random_seed=0)
    return made.set_params(verbose=False, allow_writing_files=False)


MODELS = [gradient_boosting, xgboost, lightgbm, catboost]


@pytest.fixture(autouse=True)
def one_thread():
    """Threads of small models wait for each other on a busy machine."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def titanic(data_dir):
    """The raw table: 108 of its 2,207 rows lack a value."""
    table = pd.read_csv(data_dir / "titanic.csv")
    y = (table.pop("survived") == "yes").astype(int)
    return table, y


@pytest.fixture(scope="module")
def saheart(data_dir):
    """A table of KEEL with one cell in ten made missing."""
    table = pd.read_csv(data_dir / "saheart.csv")
    y = table.pop(table.columns[-1])
    y = (y == y.iloc[0]).astype(int)
    table = table.where(np.random.default_rng(0).random(table.shape) >= 0.1)
    return table, y


def fitted_model(make, table, y):
    """Return a model fitted on a table with missing values, and the table in the form that it takes."""
    text = [name for name in table.columns if not pd.api.types.is_numeric_dtype(table[name])]
    if make is catboost:  # its categories are text: what is missing is a word there, and NaN among numbers
        table = table.astype(dict.fromkeys(text, object)).fillna(dict.fromkeys(text, "unknown"))
        return make().fit(table, y, cat_features=text), table
    table = table.astype(dict.fromkeys(text, "category"))
    return make().fit(table, y), table


def digest(answers):
    """Return one number for what was answered, row by row in the order of their names."""
    records = sorted((str(answer.factual.name), str(answer.to_dict())) for answer in answers)
    return sha256(str(records).encode()).hexdigest()


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("name", ["titanic", "saheart"])
def test_no_row_is_dropped_and_every_answer_holds(name, make, request):
    table, y = request.getfixturevalue(name)
    model, table = fitted_model(make, table, y)
    explainer = ONBMACF(1).fit(table, model)
    assert len(explainer.fitted_.Z) == len(table)
    lacks = table.isna().any(axis=1)
    assert lacks.any()
    rows = pd.concat([table[lacks].iloc[:: lacks.sum() // LACKING], table[~lacks].head(OTHERS)])
    answers = explainer.explain(rows)
    assert set(answers.statuses) <= {"found", "none_found", "infeasible"}
    assert (answers.statuses == "found").mean() > 0.9
    assert (np.ravel(model.predict(answers.batch.values)) == answers.batch.label).all()
    before = answers.rows.iloc[answers.batch.factual].isna().to_numpy()
    assert (answers.batch.values.isna().to_numpy() == before).all()
    parts = [
        explainer.explain(rows.iloc[::-1].iloc[:-5]),
        explainer.explain(rows.iloc[:1]),
        explainer.explain(rows.iloc[1:5]),
    ]
    assert digest([answer for part in parts for answer in part]) == digest(answers)


@pytest.mark.parametrize("make", [xgboost, lightgbm], ids=lambda make: make.__name__)
def test_what_is_fillable_is_filled_in_and_holds(saheart, make):
    model, table = fitted_model(make, *saheart)
    names = ["tobacco", "ldl", "famhist"] if "ldl" in table else list(table.columns[:3])
    explainer = ONBMACF(2).fit(table, model, schema=Schema.infer(table, fillable=names))
    answers = explainer.explain(table[table[names].isna().any(axis=1)].head(15), vary=names)
    after, before = answers.batch.values.isna(), answers.rows.iloc[answers.batch.factual].isna().reset_index(drop=True)
    assert (before & ~after)[names].to_numpy().any()
    assert not (before & ~after).drop(columns=names).to_numpy().any()
    assert not (after & ~before).to_numpy().any()
    assert (np.ravel(model.predict(answers.batch.values)) == answers.batch.label).all()
