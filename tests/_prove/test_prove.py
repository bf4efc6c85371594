"""Certificates: what becomes of an answer, what is said where nothing can be proven, and how models are read."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from onbmacf import ONBMACF, CertificateKind, Explanations, Schema
from onbmacf._prove.readers import read
from onbmacf.errors import ParameterError

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(4)
    return pd.DataFrame(np.round(random.uniform(0, 10, (300, 5)), 2), columns=list("abcde"))


@pytest.fixture(scope="module")
def forest(table):
    y = (table["a"] * table["b"] + 5 * table["c"] > 45).to_numpy() ^ (table["d"] > 7).to_numpy()
    return RandomForestClassifier(20, max_depth=6, random_state=0).fit(table, y)


@pytest.fixture(scope="module")
def proven(table, forest):
    explainer = ONBMACF(n_counterfactuals=2).fit(table, forest)
    return explainer, explainer.explain(table.head(6), prove=True, prove_seconds=600)


def corner():
    """Return a tree that says 1 in one small corner, and a table that has no row near it."""
    grid = np.stack(np.meshgrid(*[np.arange(0, 1001, 25)] * 2, indexing="ij"), axis=-1).reshape(-1, 2)
    extra = np.array([[x, y] for x in range(491, 510) for y in range(491, 510)])
    rows = pd.DataFrame(np.vstack([grid, extra]), columns=["x", "y"])
    is_small = rows["x"].between(498, 502) & rows["y"].between(498, 502)
    held = pd.concat([rows.assign(kept=0), rows.assign(kept=1)], ignore_index=True)
    y = np.concatenate([is_small, rows["x"] > 300])
    tree = DecisionTreeClassifier(random_state=0).fit(held, y.astype(int))
    return tree, held[~held["x"].between(480, 520)].reset_index(drop=True)


def test_an_answer_that_the_search_missed_is_found_by_the_proof():
    tree, rows = corner()
    schema = Schema.infer(rows, immutable=["kept"], kinds=dict.fromkeys(["x", "y"], "integer"))
    schema = Schema(tuple(replace(feature, step=None) for feature in schema.features))  # all whole numbers
    explainer = ONBMACF().fit(rows, tree, schema=schema)
    row = pd.DataFrame({"x": [130], "y": [870], "kept": [0]})
    called = ONBMACF(read_model=False).fit(rows, tree, schema=schema)
    assert called.explain(row, 1)[0].status == "none_found"
    answer = explainer.explain(row, 1)[0]  # the model is read, so a proof looks for what the search does not find
    assert (answer.status, answer.certificate) == ("found", None)
    assert tree.predict(answer.counterfactuals[0].values.to_frame().T)[0] == 1
    answer = called.explain(row, 1, prove=True, prove_seconds=600)[0]
    assert (answer.status, answer.certificate.kind) == ("found", "nearest")
    found = answer.counterfactuals[0].values
    assert tree.predict(found.to_frame().T)[0] == 1
    every = pd.DataFrame([[x, y, 0] for x in range(400, 600) for y in range(400, 600)], columns=rows.columns)
    nearest = np.abs(every[tree.predict(every) == 1] - row.iloc[0]).sum(axis=1).min()
    assert answer.counterfactuals[0].distance == pytest.approx(nearest / 1000)


def test_the_nearest_comes_first_and_nothing_gets_farther(table, proven):
    explainer, answers = proven
    plain = explainer.explain(table.head(6))
    for answer, before in zip(answers, plain, strict=True):
        first = answer.counterfactuals[0]
        assert answer.certificate.kind == "nearest"
        assert answer.certificate.bound == first.distance <= min(c.distance for c in before.counterfactuals)
        assert len(answer.counterfactuals) == 2
        assert not answer.counterfactuals[0].values.equals(answer.counterfactuals[1].values)
    assert sum(a[0].distance < b[0].distance for a, b in zip(*map(counterfactuals, (answers, plain)), strict=True)) > 0


def test_the_second_answer_is_not_the_first_one_a_step_farther():
    table, y = load_breast_cancer(return_X_y=True, as_frame=True)
    table = table[["mean radius", "mean smoothness", "mean concavity", "worst radius", "worst concave points"]]
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000)).fit(table, y)
    explainer, rows = ONBMACF(n_counterfactuals=2).fit(table, model), table[model.predict(table) == 0].head(30)
    spans = np.ptp(table.to_numpy(), axis=0)
    for answer, before in zip(explainer.explain(rows, 1, prove=True), explainer.explain(rows, 1), strict=True):
        for first, second in (before.counterfactuals, answer.counterfactuals):
            apart = (np.abs(first.values - second.values) / spans).sum()
            assert first.changed != second.changed or apart > 0.01


def test_what_is_not_there_or_not_nearer_is_said_of_sure_labels_alone():
    random = np.random.default_rng(0)
    rows = pd.DataFrame(random.integers(0, 12, (300, 2)), columns=["x", "y"])
    y = np.where((rows["x"] > 6) & (random.random(300) < 0.2 + 0.05 * rows["y"]), "yes", "no")
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(rows, y)
    explainer, row = ONBMACF().fit(rows, model), rows[rows["x"] < 3].head(1)
    sure = model.predict_proba(rows)[:, 1].max()
    assert 0.5 < sure < 0.9
    assert explainer.explain(row, "yes")[0].status == "found"
    none = explainer.explain(row, "yes", min_probability=0.9)[0]
    assert none.reason.startswith("None exists with a probability of at least 0.9: every combination of allowed")
    wide = explainer.with_options(max_model_rows=40, read_model=False).explain(row, "yes", min_probability=0.9)[0]
    assert wide.reason.startswith("None was found with a probability of at least 0.9, with ")
    proven = explainer.explain(row, "yes", min_probability=0.9, prove=True)[0].certificate
    told = "proven for this tree, for labels with a probability of at least 0.9."
    assert proven.sentence() == f"None exists among the allowed changes: {told}"
    nearest = explainer.explain(row, "yes", min_probability=float(sure), prove=True)[0].certificate
    assert nearest.sentence().startswith("Proven for this tree, for labels with a probability of at least 0.")
    plain = explainer.explain(row, "yes", prove=True)[0].certificate
    assert plain.sentence().startswith("Proven for this tree: no allowed change is nearer than ")


def counterfactuals(answers):
    return [answer.counterfactuals for answer in answers]


def test_a_certificate_does_not_depend_on_the_other_rows(table, proven):
    explainer, answers = proven
    for place in (0, 3):
        alone = explainer.explain(table.iloc[[place]], prove=True, prove_seconds=600)
        assert alone[0].certificate.bound == answers[place].certificate.bound
        assert alone.to_json() == answers[place : place + 1].to_json()


def test_out_of_time_gives_a_bound_that_holds(table):
    y = np.sin(table.to_numpy() * 2).sum(axis=1) > 0
    model = RandomForestClassifier(60, max_depth=8, random_state=0).fit(table, y)
    explainer = ONBMACF().fit(table, model)
    whole = explainer.explain(table.head(8), prove=True, prove_seconds=600)
    hasty = explainer.explain(table.head(8), prove=True, prove_seconds=0)
    kinds = [answer.certificate.kind for answer in hasty]
    assert CertificateKind.WITHIN in kinds
    for answer, sure in zip(hasty, whole, strict=True):
        certificate, distance = answer.certificate, answer.counterfactuals[0].distance
        assert certificate.bound <= sure.certificate.bound * (1 + 1e-9)
        assert distance <= certificate.bound * (1 + certificate.gap) * (1 + 1e-9)
        if certificate.kind == "within":
            assert certificate.reason == "time ran out"
            assert "time ran out" in certificate.sentence()


def test_an_unknown_model_is_said_and_a_declared_one_is_used(table, forest):
    explainer = ONBMACF().fit(table, lambda rows: forest.predict(rows))
    row = table.iloc[[0]]
    unknown = explainer.explain(row, prove=True)[0]
    assert (unknown.certificate.kind, unknown.certificate.bound) == ("unproven", 0)
    assert (
        unknown.certificate.sentence() == "Not proven (a function cannot be read: give the model in it, prove=model)."
    )
    unread = explainer.explain(row, prove=KNeighborsClassifier().fit(table, forest.predict(table)))[0]
    assert unread.certificate.reason == "this kind of model is not known"
    declared = explainer.explain(row, prove=forest, prove_seconds=600)[0]
    assert declared.certificate.kind == "nearest"
    other = RandomForestClassifier(20, max_depth=6, random_state=1).fit(table, ~forest.predict(table))
    assert "not those of its structure" in explainer.explain(row, prove=other)[0].certificate.reason


def test_steps_that_mix_columns_are_not_known(table, forest):
    model = make_pipeline(PCA(3), LogisticRegression()).fit(table, forest.predict(table))
    certificate = ONBMACF().fit(table, model).explain(table.iloc[[0]], prove=True)[0].certificate
    assert certificate.reason == "the step PCA before the model is not known"


def test_few_combinations_are_asked_where_the_model_is_not_known():
    rows = pd.DataFrame([[x, y] for x in range(12) for y in range(12)], columns=["x", "y"])
    model = GaussianNB().fit(rows, (rows["x"] * 2 + rows["y"] > 20).astype(int))
    schema = Schema.infer(rows, kinds=dict.fromkeys("xy", "integer"))
    explainer = ONBMACF().fit(rows, model, schema=schema)
    answer = explainer.explain(rows.iloc[[40]], prove=True, prove_seconds=600)[0]
    other = rows[model.predict(rows) != answer.label]
    nearest = (np.abs(other - rows.iloc[40]).sum(axis=1) / 11).min()
    assert answer.certificate.kind == "nearest"
    assert answer.certificate.how == "by asking about all 143 allowed changes"
    assert answer.certificate.bound == answer.counterfactuals[0].distance == pytest.approx(nearest)


def test_a_least_probability_is_part_of_the_question():
    rows = pd.DataFrame([[x, y] for x in range(15) for y in range(15)], columns=["x", "y"])
    y = ((rows["x"] + rows["y"] > 14) ^ (np.random.default_rng(0).random(len(rows)) < 0.1)).astype(int)
    schema = Schema.infer(rows, kinds=dict.fromkeys("xy", "integer"))
    for model in (RandomForestClassifier(9, max_depth=3, random_state=0), LogisticRegression()):
        explainer = ONBMACF().fit(rows, model.fit(rows, y), schema=schema)
        for least in (0.6, 0.8):
            factual = rows.iloc[[33]]
            answer = explainer.explain(factual, 1, min_probability=least, prove=True, prove_seconds=600)[0]
            sure = rows[model.predict_proba(rows)[:, 1] >= least]
            nearest = (np.abs(sure - factual.to_numpy()).sum(axis=1) / 14).min()
            assert answer.certificate.kind == "nearest"
            assert answer.counterfactuals[0].distance == pytest.approx(nearest)


def test_values_are_compared_in_the_precision_of_the_trees():
    """Whole numbers above 2**24 are one and the same to scikit-learn's trees in pairs."""
    rows = pd.DataFrame({"x": 2**24 + np.arange(40), "y": np.arange(40) % 7})
    tree = DecisionTreeClassifier(random_state=0).fit(rows, (np.arange(40) >= 21).astype(int))
    schema = Schema.infer(rows, kinds=dict.fromkeys("xy", "integer"), immutable=["y"])
    explainer = ONBMACF().fit(rows, tree, schema=schema)
    for place, answer in enumerate(explainer.explain(rows.iloc[:6], 1, prove=True, prove_seconds=600)):
        every = rows.assign(y=rows["y"].iloc[place])
        nearest = (every["x"][tree.predict(every) == 1] - rows["x"].iloc[place]).abs().min() / 39
        assert answer.certificate.bound == answer.counterfactuals[0].distance == pytest.approx(nearest)


def test_every_view_shows_the_certificate(table, proven):
    explainer, answers = proven
    answer = answers[0]
    sentence = answer.certificate.sentence()
    assert sentence.startswith("Proven for this forest: no allowed change is nearer than ")
    assert answer.sentences()[0].endswith(sentence)
    assert repr(answer.certificate) == f"<Certificate nearest: {sentence}>"
    assert sentence not in answer.sentences()[1]
    assert "(nearest)" in answer._repr_html_()
    record = json.loads(answers.to_json())["answers"][0]["certificate"]
    assert record == {"kind": "nearest", "bound": answer.certificate.bound, "gap": 0.0, "sentence": sentence}
    assert list(answers.to_frame()["certificate"][:2]) == ["nearest", ""]
    assert answers.to_frame()["bound"][:2].isna().tolist() == [False, True]
    assert list(answers.status_frame()["certificate"]) == ["nearest"] * 6
    assert [one.certificate.bound for one in answers[2:4]] == [one.bound for one in answers.certificates[2:4]]
    joined = Explanations.concat([answers[:2], answers[2:]])
    assert [one.bound for one in joined.certificates] == [one.bound for one in answers.certificates]
    plain = explainer.explain(table.head(2))
    assert plain.certificates is None
    assert plain[0].certificate is None
    assert "certificate" not in plain.to_dicts()[0]


def test_a_proof_of_none_is_the_reason(table, forest):
    schema = Schema.infer(table, immutable=list("acd"))
    answers = ONBMACF().fit(table, forest, schema=schema).explain(table.head(20), prove=True, prove_seconds=600)
    none = [answer for answer in answers if answer.certificate.kind == "none_exists"]
    assert none
    for answer in none:
        assert answer.status == "infeasible"
        assert answer.reason.startswith("None exists: proven for this forest.")
        assert answer.certificate.bound == np.inf
        assert answer.sentences()[0].count("None exists") == 1
        random = np.random.default_rng(0)
        rows = pd.DataFrame([answer.factual.astype(float)] * 2000).assign(b=random.uniform(0, 10, 2000))
        rows = rows.assign(e=random.uniform(0, 10, 2000))
        assert set(forest.predict(rows)) == {answer.label}


@pytest.mark.parametrize("options", [{"strategy": "paper"}, {"max_model_rows": 500}])
def test_a_proof_beside_what_it_cannot_keep_is_an_error(table, forest, options):
    with pytest.raises(ParameterError, match="prove"):
        ONBMACF(**options).fit(table, forest).explain(table.iloc[[0]], prove=True)


def test_seconds_below_zero_are_an_error(table, forest):
    with pytest.raises(ParameterError, match="prove_seconds must be at least 0, got -1"):
        ONBMACF().fit(table, forest).explain(table.iloc[[0]], prove=True, prove_seconds=-1)


KNOWN = {
    "logistic": LogisticRegression(),
    "svc": LinearSVC(),
    "sgd": SGDClassifier(random_state=0),
    "ridge": RidgeClassifier(),
    "lda": LinearDiscriminantAnalysis(),
    "tree": DecisionTreeClassifier(max_depth=5, random_state=0),
    "forest": RandomForestClassifier(7, max_depth=5, random_state=0),
    "extra": ExtraTreesClassifier(7, max_depth=5, random_state=0),
    "gradient": GradientBoostingClassifier(n_estimators=5, random_state=0),
    "histogram": HistGradientBoostingClassifier(max_iter=5, random_state=0),
    "xgboost": XGBClassifier(n_estimators=5, max_depth=3, n_jobs=1),
    "lightgbm": LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1),
}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", KNOWN)
def test_a_model_is_read_as_it_answers(table, name, n_classes):
    scores = table["a"] * table["b"] - 3 * table["c"]
    y = np.digitize(scores, np.quantile(scores, np.arange(1, n_classes) / n_classes))
    columns = np.round(table.to_numpy())  # whole numbers lie on the thresholds of some
    model = KNOWN[name].fit(columns, y)
    structure = read(model, columns[:200], np.abs(columns).max(axis=0))
    assert structure.error < 1e-4
    assert np.abs(structure.scores(columns) - structure.own_scores(columns)).max() <= structure.error
    assert (np.asarray(structure.classes)[structure.scores(columns).argmax(axis=1)] == model.predict(columns)).all()


@pytest.mark.parametrize("name", ["logistic", "xgboost", "lightgbm", "histogram"])
def test_three_classes_behind_a_scaler_are_proven(table, name):
    y = np.digitize(table["a"] + np.cos(table["b"]) * 3, [3.5, 6.5])
    model = make_pipeline(MinMaxScaler(), KNOWN[name]).fit(table, y)
    answers = ONBMACF().fit(table, model).explain(table.head(4), prove=True, prove_seconds=600)
    assert [answer.certificate.kind for answer in answers] == ["nearest"] * 4


def test_why_a_function_cannot_be_read_is_said_whatever_its_columns_hold():
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["age", "size"])
    table = table.assign(job=["cook", "clerk", "nurse", "cook"] * 10)
    answer = ONBMACF().fit(table, lambda rows: rows["size"] > 0).explain(table.iloc[[0]], prove=True)[0]
    assert answer.certificate.reason == "a function cannot be read: give the model in it, prove=model"


@pytest.mark.parametrize("model", [LogisticRegression(), RandomForestClassifier(5, random_state=0)])
def test_a_model_that_knows_the_names_of_its_columns_is_read_without_a_warning(model):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    explainer = ONBMACF().fit(table, model.fit(table, table["a"] + table["b"] > 0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = explainer.explain(table.iloc[[0]], prove=True, prove_seconds=60)[0]
    assert answer.certificate.kind == "nearest"
