"""Models people have: each kind is explained as it is, and every answer holds when the model itself is asked again."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from onbmacf import ONBMACF, Between
from onbmacf.errors import ModelError, ParameterError
from onbmacf.io import load_model


def people():
    random = np.random.default_rng(3)
    return pd.DataFrame({"age": random.integers(20, 70, 120), "pay": random.normal(50, 15, 120).round(1)})


TABLE = people()
MARGIN = TABLE["pay"] - 0.5 * TABLE["age"] - 28
TWO, THREE = (MARGIN > 0).astype(int), np.digitize(TABLE["pay"], [40, 60])
NAMES = ["no", "yes"]


def xgb(params, y, rows=TABLE):
    xgboost = pytest.importorskip("xgboost")
    return xgboost.train({"max_depth": 3, "nthread": 1, **params}, xgboost.DMatrix(rows, y), 10)


def lgb(params, y, rows=TABLE):
    lightgbm = pytest.importorskip("lightgbm")
    return lightgbm.train({"verbose": -1, "num_threads": 1, **params}, lightgbm.Dataset(rows, y), 10)


def linear(weights, *after):
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(2, len(weights))
    layer.weight.data = torch.tensor([row[:2] for row in weights])
    layer.bias.data = torch.tensor([row[2] for row in weights])
    return torch.nn.Sequential(layer, *(getattr(torch.nn, name)() for name in after))


def torch_scores(module):
    import torch

    with torch.no_grad():
        return lambda rows: module(torch.tensor(rows.to_numpy(), dtype=torch.float32)).detach().numpy()


def xgb_predict(model):
    import xgboost

    return lambda rows: model.predict(xgboost.DMatrix(rows))


def named(positions, names=NAMES):
    return np.array(names, dtype=object)[np.asarray(positions, dtype=int)]


ONE = [(-0.5, 1.0, -28.0)]
FIRST_OF_THREE = [(-0.5, 1.0, -28.0), (0.0, 0.0, 0.0), (0.0, 0.3, -20.0)]


def cases():
    """Yield the name of a kind of model, a function that makes it, what fit is told, and its labels in our words."""
    yield (
        "xgboost Booster",
        lambda: xgb({"objective": "binary:logistic"}, TWO),
        {},
        lambda m: lambda r: (xgb_predict(m)(r) >= 0.5).astype(int),
    )
    yield (
        "xgboost Booster, margins",
        lambda: xgb({"objective": "binary:logitraw"}, TWO),
        {"classes": NAMES},
        (lambda m: lambda r: named(xgb_predict(m)(r) >= 0)),
    )
    yield (
        "xgboost Booster, classes",
        lambda: xgb({"objective": "multi:softmax", "num_class": 3}, THREE),
        {},
        (lambda m: lambda r: xgb_predict(m)(r).astype(int)),
    )
    yield (
        "xgboost Booster, shares",
        lambda: xgb({"objective": "multi:softprob", "num_class": 3}, THREE),
        {},
        (lambda m: lambda r: xgb_predict(m)(r).argmax(axis=1)),
    )
    yield (
        "xgboost Booster, a range",
        lambda: xgb({"objective": "reg:squarederror"}, TABLE["pay"]),
        ({"target": Between(45, 55)}),
        lambda m: lambda r: Between(45, 55).labels(xgb_predict(m)(r)),
    )
    yield (
        "lightgbm Booster, other order",
        lambda: lgb({"objective": "binary"}, TWO, TABLE[["pay", "age"]]),
        {},
        (lambda m: lambda r: (m.predict(r[["pay", "age"]]) >= 0.5).astype(int)),
    )
    yield (
        "lightgbm Booster, three",
        lambda: lgb({"objective": "multiclass", "num_class": 3}, THREE),
        ({"classes": ["low", "middle", "high"]}),
        lambda m: lambda r: named(m.predict(r).argmax(axis=1), ["low", "middle", "high"]),
    )
    yield (
        "torch module, logits of classes",
        lambda: linear(FIRST_OF_THREE),
        {"classes": list("abc")},
        (lambda m: lambda r: named(torch_scores(m)(r).argmax(axis=1), list("abc"))),
    )
    yield (
        "torch module, shares",
        lambda: linear(FIRST_OF_THREE, "Softmax"),
        {},
        (lambda m: lambda r: torch_scores(m)(r).argmax(axis=1)),
    )
    yield (
        "torch module, one logit",
        lambda: linear(ONE),
        {"threshold": 0, "classes": NAMES},
        (lambda m: lambda r: named(torch_scores(m)(r)[:, 0] >= 0)),
    )
    yield (
        "torch module, one probability",
        lambda: linear(ONE, "Sigmoid"),
        {},
        (lambda m: lambda r: (torch_scores(m)(r)[:, 0] >= 0.5).astype(int)),
    )
    yield (
        "classifier with a threshold",
        lambda: LogisticRegression(max_iter=1000).fit(TABLE, named(TWO)),
        ({"threshold": 0.3}),
        lambda m: lambda r: named(m.predict_proba(r)[:, 1] >= 0.3),
    )
    yield (
        "classifier with other names",
        lambda: HistGradientBoostingClassifier(max_iter=10).fit(TABLE, TWO),
        ({"classes": NAMES}),
        lambda m: lambda r: named(m.predict(r)),
    )
    yield (
        "pipeline",
        lambda: make_pipeline(StandardScaler(), LogisticRegression()).fit(TABLE, named(TWO)),
        {},
        (lambda m: m.predict),
    )
    yield (
        "calibrated classifier",
        lambda: CalibratedClassifierCV(LinearSVC(), cv=3).fit(TABLE, TWO),
        ({"threshold": 0.6}),
        lambda m: lambda r: (m.predict_proba(r)[:, 1] >= 0.6).astype(int),
    )
    yield (
        "function of scores",
        lambda: lambda rows: rows["pay"] - 0.5 * rows["age"],
        ({"threshold": 28, "classes": NAMES}),
        lambda m: lambda r: named(m(r) >= 28),
    )
    yield (
        "regressor, a range",
        lambda: LinearRegression().fit(TABLE, 2 * TABLE["pay"] + TABLE["age"]),
        ({"target": Between(low=150)}),
        lambda m: lambda r: Between(low=150).labels(m.predict(r)),
    )
    yield (
        "function of a range",
        lambda: lambda rows: (rows["pay"] * 2).tolist(),
        {"target": Between(90, 120)},
        (lambda m: lambda r: Between(90, 120).labels(m(r))),
    )


@pytest.mark.parametrize("name, make, told, labels_of", list(cases()), ids=[case[0] for case in cases()])
def test_every_kind_of_model_is_explained(name, make, told, labels_of):
    model = make()
    says = labels_of(model)
    explainer = ONBMACF(2).fit(TABLE, model, **told)
    assert (explainer.classes_[explainer.labels_] == says(TABLE)).all()
    answers = explainer.explain(TABLE.head(8))
    assert set(answers.statuses) <= {"found", "already"}
    found = answers.to_frame()
    assert len(found) > 3
    assert found[["age", "pay"]].dtypes.tolist() == TABLE.dtypes.tolist()
    assert (says(found[["age", "pay"]]) == found["to"]).all()
    assert (found["to"] != found["from"]).all()
    if "target" in told:
        assert set(found["to"]) == {"inside"}
    one_by_one = [explainer.explain(TABLE.iloc[[row]]).to_dicts()[0] for row in range(3)]
    assert one_by_one == answers.to_dicts()[:3]


@pytest.mark.parametrize("case", ["classifier with a threshold", "torch module, one logit", "regressor, a range"])
def test_a_saved_map_reads_answers_as_fit_was_told(tmp_path, case):
    _, make, told, _ = next(one for one in cases() if one[0] == case)
    model = make()
    explainer = ONBMACF().fit(TABLE, model, **told)
    explainer.save(tmp_path / "m.onb")
    again = ONBMACF.load(tmp_path / "m.onb", model)
    assert again.explain(TABLE.head(5)).to_json() == explainer.explain(TABLE.head(5)).to_json()


def test_a_probability_is_that_of_the_model(tmp_path):
    model = LogisticRegression(max_iter=1000).fit(TABLE, named(TWO))
    answers = ONBMACF().fit(TABLE, model, threshold=0.3).explain(TABLE.head(10), min_probability=0.4)
    found = answers.to_frame()
    own = model.predict_proba(found[["age", "pay"]])
    assert np.allclose(found["probability"], np.where(found["to"] == "yes", own[:, 1], own[:, 0]))
    assert (found["probability"] >= 0.4).all()


def test_a_module_stays_in_the_mode_it_was_in():
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(linear(FIRST_OF_THREE), torch.nn.Dropout(0.5)).train()
    answers = ONBMACF().fit(TABLE, net).explain(TABLE.head(3))
    assert set(answers.statuses) == {"found"}
    assert net.training


SAID = {
    "one number": (lambda: linear(ONE), {}, ModelError, "one number per row: pass threshold=0.5"),
    "three columns": (lambda: linear(FIRST_OF_THREE), {"threshold": 0}, ModelError, "the model returned 3 columns"),
    "names": (lambda: linear(FIRST_OF_THREE), {"classes": NAMES}, ModelError, "tells 3 classes apart, 2 are named"),
    "labels": (lambda: lambda r: named(r["pay"] > 50), {"classes": NAMES}, ModelError, "returned 'yes' already"),
    "text": (lambda: lambda r: named(r["pay"] > 50), {"threshold": 1}, ModelError, "a threshold needs scores"),
    "label range": (lambda: lambda r: r, {"target": "yes"}, ParameterError, r"target must be a Between\(low, high\)"),
    "three names": (
        lambda: lambda r: r,
        {"threshold": 1, "classes": ["a", "b", "d"]},
        ParameterError,
        "got 3",
    ),
    "both": (lambda: lambda r: r, {"threshold": 1, "target": Between(1, 2)}, ParameterError, "leave threshold and"),
    "infinite": (lambda: lambda r: r, {"threshold": np.inf}, ParameterError, "threshold must be a number, got inf"),
    "same names": (lambda: lambda r: r, {"classes": ["a", "a"]}, ParameterError, "two or more different labels"),
    "regressor": (lambda: LinearRegression().fit(TABLE, TABLE["pay"] + 0.1), {}, ModelError, "target=Between"),
}


@pytest.mark.parametrize("case", SAID)
def test_what_cannot_be_read_says_what_to_pass(case):
    make, told, kind, message = SAID[case]
    with pytest.raises(kind, match=message):
        ONBMACF().fit(TABLE, make(), **told)


def test_a_range_has_ends():
    with pytest.raises(ParameterError, match="Between needs low <= high and one of them finite, got 3 and 2"):
        Between(3, 2)
    with pytest.raises(ParameterError, match="one of them finite"):
        Between()
    for odd in (10**400, 10**5000, Decimal("sNaN"), "1"):
        with pytest.raises(ParameterError, match="one of them finite, got "):
            Between(odd)
        with pytest.raises(ParameterError, match="threshold must be a number, got "):
            ONBMACF().fit(TABLE, lambda rows: rows["pay"] / 99, threshold=odd)
    explainer = ONBMACF().fit(TABLE, lambda rows: rows["pay"] * 1.5, target=Between(60, 90))
    with pytest.raises(ParameterError, match=r"target is Between\(low=1, high=2\), fit was given Between\(low=60"):
        explainer.explain(TABLE.head(1), Between(1, 2))
    rows = TABLE.head(6)
    assert explainer.explain(rows, Between(60, 90)).to_json() == explainer.explain(rows).to_json()
    assert set(explainer.explain(rows, "above").to_frame()["to"]) == {"above"}


def test_proofs_read_through_a_threshold_but_not_through_a_range():
    model = LogisticRegression(max_iter=1000).fit(TABLE, TWO)
    explainer = ONBMACF().fit(TABLE, model, threshold=0.3, classes=("no", "yes"))
    assert explainer.explain(TABLE.head(1), prove=True)[0].certificate.kind == "nearest"
    explainer = ONBMACF().fit(TABLE, lambda rows: rows["pay"] * 1.5, target=Between(60, 90))
    answers = explainer.explain(TABLE, prove=model)
    reasons = {str(answer.certificate.reason) for answer in answers if answer.certificate}
    assert reasons == {"proofs cannot read a model behind a range"}


def test_a_regressor_from_a_file(tmp_path):
    xgb({"objective": "reg:squarederror"}, TABLE["pay"]).save_model(tmp_path / "m.ubj")
    lgb({"objective": "regression"}, TABLE["pay"]).save_model(tmp_path / "m.txt")
    for name in ("m.ubj", "m.txt"):
        explainer = ONBMACF().fit(TABLE, load_model(tmp_path / name, TABLE), target=Between(45, 55))
        assert explainer.classes_.tolist() == ["above", "below", "inside"]
    lgb({"objective": "binary"}, TWO).save_model(tmp_path / "two.txt")
    loaded = ONBMACF().fit(TABLE, load_model(tmp_path / "two.txt", TABLE), threshold=0.4, classes=NAMES)
    assert loaded.explain(TABLE.head(3), min_probability=0.5).to_frame()["probability"].min() >= 0.5


def test_lightgbm_writes_blanks_in_names_as_underscores():
    table = TABLE.rename(columns=lambda name: f"the {name}")
    booster = lgb({"objective": "binary"}, TWO, table)
    assert "the_" in booster.feature_name()[0]
    answers = ONBMACF().fit(table, booster).explain(table.head(5))
    assert set(answers.statuses) == {"found"}
    found = answers.to_frame()
    assert ((booster.predict(found[table.columns]) > 0.5) == found["to"]).all()
