"""Certificates are about the model that was asked: none is wrong where a reader knows less than an estimator does."""

import itertools
from dataclasses import replace

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.tree import DecisionTreeClassifier

from onbmacf import ONBMACF, Schema
from onbmacf._prove import prove, readers

N_VALUES, WIDTH = 7, 5  # more combinations than are asked about where a model cannot be read
VALUES = np.arange(N_VALUES)
GRID = pd.DataFrame(list(itertools.product(VALUES, repeat=WIDTH)), columns=list("abcde"))


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    rows = pd.DataFrame(rng.integers(0, N_VALUES, (160, WIDTH)), columns=list("abcde"))
    rows.iloc[0], rows.iloc[1] = 0, N_VALUES - 1
    return rows


@pytest.fixture(scope="module")
def score(table):
    rng = np.random.default_rng(6)
    return table["a"] - 1.3 * table["b"] + 0.4 * table["c"] * (table["d"] > 3) + rng.normal(0, 1, len(table))


def two(score):
    return (score > score.median()).astype(int)


def three(score):
    return pd.cut(score, [-np.inf, -2, 1.5, np.inf], labels=False)


class Above:
    """A function around a model: another threshold than its own."""

    def __init__(self, model):
        self.model = model

    def __call__(self, rows):
        return (self.model.predict_proba(rows)[:, 1] >= 0.3).astype(int)


CASES = {
    "init that is linear": (lambda: GradientBoostingClassifier(init=LogisticRegression(), n_estimators=5), two),
    "init that is a tree": (
        lambda: GradientBoostingClassifier(init=DecisionTreeClassifier(max_depth=3), n_estimators=5, random_state=0),
        two,
    ),
    "linear leaves": (
        lambda: lightgbm.LGBMClassifier(linear_tree=True, n_estimators=5, verbose=-1, min_child_samples=5),
        two,
    ),
    "0 means missing": (lambda: xgboost.XGBClassifier(missing=0, n_estimators=8, max_depth=3), two),
    "5 means missing": (lambda: xgboost.XGBClassifier(missing=5, n_estimators=8, max_depth=3), two),
    "several scores in a leaf": (
        lambda: xgboost.XGBClassifier(multi_strategy="multi_output_tree", n_estimators=5, max_depth=3),
        three,
    ),
}


class Known:
    """What a model says of every row of the grid, asked once."""

    def __init__(self, model, probability=0.0):
        self.labels = np.asarray(model(GRID) if callable(model) else model.predict(GRID)).ravel()
        self.good = np.ones(len(GRID), dtype=bool)
        if probability:
            sure = np.round(model.predict_proba(GRID), 12)
            self.good = sure[np.arange(len(GRID)), np.searchsorted(model.classes_, self.labels)] >= probability

    def nearest(self, row, is_wanted):
        """Return the distance of the nearest row with a wanted label and enough probability."""
        good = GRID[self.good & is_wanted(self.labels)]
        return (np.abs(good.to_numpy() - row.to_numpy()).sum(axis=1) / (N_VALUES - 1)).min(initial=np.inf)


def check(table, model, prove=True, probability=0.0):
    """Explain some rows, each alone; what is told must hold for every row of the grid. Return the certificates."""
    explainer, known = ONBMACF(plausibility=0).fit(table, model), Known(model, probability)
    rows = table.iloc[2:14]
    how = {"min_probability": probability} if probability else {}
    answers = [explainer.explain(rows.iloc[[at]], prove=prove, **how)[0] for at in range(len(rows))]
    for (_, row), answer in zip(rows.iterrows(), answers, strict=True):
        one = answer.certificate
        true = known.nearest(row, lambda labels, own=answer.label: labels != own)
        assert one.bound <= true * (1 + 1e-9), one.sentence()
        assert one.kind != "none_exists" or true == np.inf
    return [answer.certificate for answer in answers]


@pytest.mark.parametrize("name", CASES)
def test_a_model_that_does_what_its_reader_does_not_know_of_is_not_proven(table, score, name):
    make, labels = CASES[name]
    assert {one.kind for one in check(table, make().fit(table, labels(score)))} == {"unproven"}


@pytest.mark.parametrize("wrapped", ["function", "threshold"])
def test_the_model_that_is_asked_may_have_another_threshold_than_the_one_given(table, score, wrapped):
    forest = RandomForestClassifier(10, max_depth=4, random_state=0).fit(table, two(score))
    fixed = FixedThresholdClassifier(forest, threshold=0.3, response_method="predict_proba").fit(table, two(score))
    fixed.estimator_ = forest
    model = Above(forest) if wrapped == "function" else fixed
    assert {one.kind for one in check(table, model, prove=forest)} == {"unproven"}


@pytest.mark.parametrize("probability", [1 - 1e-10, 1 - 1e-13, 1.0])
@pytest.mark.parametrize(
    "make", [lambda: xgboost.XGBClassifier(n_estimators=400, max_depth=4), lambda: LogisticRegression(C=1e9)]
)
def test_probabilities_of_the_last_bits_are_not_proven(table, score, make, probability):
    model = make().fit(table, two(table["a"] * 30.0 - table["b"] * 40))
    found = check(table, model, probability=probability)
    assert {one.kind for one in found} <= {"unproven", "none_found"}


def test_labels_that_no_fitted_row_has_are_named_where_any_other_label_was_asked_for(table):
    y = np.where(table["a"] + table["b"] > 6, "high", "low")
    model = Perceptron(random_state=0).fit(table, y)
    model.classes_ = np.array(["high", "low", "odd"])
    model.coef_ = np.array([[1.0, 1, 0, 0, 0], [-1.0, -1, 0, 0, 0], [0.0, 0, 3, 3, 3]])
    model.intercept_ = np.array([-6.0, 6.0, -53.5])
    seen = table[(table["c"] + table["d"] + table["e"] < 15)]
    assert set(model.predict(seen)) == {"high", "low"}
    assert "odd" in model.predict(GRID)
    found, every = ONBMACF(plausibility=0).fit(seen, model).explain(seen.iloc[2:14], prove=True), Known(model)
    for (_, row), answer in zip(seen.iloc[2:14].iterrows(), found, strict=True):
        assert "among the labels of the fitted rows" in answer.certificate.sentence()
        known = every.nearest(row, lambda labels, own=answer.label: (labels != own) & (labels != "odd"))
        assert answer.certificate.bound <= known * (1 + 1e-9)


def test_sparse_coefficients_are_read(table, score):
    model = LogisticRegression().fit(table, two(score)).sparsify()
    assert {one.kind for one in check(table, model)} == {"nearest"}


def test_a_parameter_that_no_reader_knows_is_named(table, score):
    model = lightgbm.LGBMClassifier(n_estimators=3, verbose=-1, cegb_tradeoff=2.0).fit(table, two(score))
    found = check(table, model)
    assert found[0].reason == "what the parameter 'cegb_tradeoff' of LGBMClassifier does is not known"


def test_methods_that_were_replaced_are_not_those_that_were_read(table, score):
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(table, two(score))
    model.predict = lambda rows: (model.predict_proba(rows)[:, 1] >= 0.4).astype(int)
    assert {(one.kind, one.reason) for one in check(table, model)} == {
        ("unproven", "the model's own methods were replaced")
    }


def test_a_row_has_the_same_certificate_alone_and_in_a_batch(table, score):
    model = GradientBoostingClassifier(n_estimators=8, max_depth=3, random_state=0).fit(table, three(score))
    explainer = ONBMACF(plausibility=0).fit(table, model)
    together = explainer.explain(table.iloc[2:12], prove=True)
    for place, answer in enumerate(together):
        alone = explainer.explain(table.iloc[[2 + place]], prove=True)[0].certificate
        assert (alone.kind, alone.bound) == (answer.certificate.kind, answer.certificate.bound)


def test_a_proof_that_the_model_refutes_is_withdrawn_and_said(table, score, monkeypatch):
    """A reader that is wrong: it takes too little from the wanted label, and nothing compares scores."""
    model = RandomForestClassifier(3, max_depth=4, random_state=0).fit(table, two(score))
    read = readers._forest

    def wrong(estimator, size):
        return replace(read(estimator, size), offset=np.array([0.2, -0.2]))

    kinds = [kind._replace(reader=wrong) if kind.reader is read else kind for kind in readers.KINDS]
    monkeypatch.setattr(readers, "KINDS", kinds)
    monkeypatch.setattr(readers, "has_scores", lambda structure, columns, scores: np.ones(len(columns), dtype=bool))
    monkeypatch.setattr(prove, "has_scores", lambda structure, columns, scores: np.ones(len(columns), dtype=bool))
    monkeypatch.setattr(prove.Prover, "_check_labels", lambda self, columns, labels: None)
    rows = table[model.predict(table) == 0].head(30)
    answers = ONBMACF(plausibility=1, read_model=False).fit(table, model).explain(rows, target=1, prove=True)
    assert any("a proof was refuted" in message for message in answers.warnings)
    refuted = [answer for answer in answers if answer.certificate.reason == readers.OTHER]
    assert refuted
    assert {answer.certificate.kind for answer in refuted} == {"unproven"}
    for answer in answers:
        assert model.predict(answer.counterfactuals[0].values.to_frame().T.astype(int))[0] == 1


# --- wide tables, single trees ------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [33, 64, 100, pytest.param(1000, marks=pytest.mark.long)])
def test_wide_tables_of_which_little_may_change_are_answered_and_proven(width):
    rng = np.random.default_rng(width)
    wide = pd.DataFrame(rng.integers(0, 5, (120, width)), columns=[f"c{at}" for at in range(width)])
    model = DecisionTreeClassifier(max_depth=5, random_state=0).fit(wide, wide["c0"] + wide["c1"] > 4)
    fixed = Schema.infer(wide, immutable=[f"c{at}" for at in range(1, width)])
    one = ONBMACF().fit(wide, model, schema=fixed).explain(wide[:8], prove=True)
    other = ONBMACF().fit(wide, model).explain(wide[:8], vary=["c0"])
    own = model.predict(wide[:8])
    for place in range(8):
        tried = wide.iloc[[place] * 5].assign(c0=range(5))
        has_answer = (model.predict(tried) != own[place]).any()
        assert one[place].status == other[place].status == ("found" if has_answer else "infeasible")
        assert one[place].certificate.is_proven


def test_a_single_tree_is_always_proven(table, score, monkeypatch):
    """However little time there is: its leaves are a list, and no search that time may end is begun."""
    monkeypatch.setattr(prove, "solve", None)
    model = DecisionTreeClassifier(random_state=0).fit(table, three(score))
    explainer = ONBMACF(plausibility=0).fit(table, model)
    answers, known = explainer.explain(table.iloc[2:14], prove=True, prove_seconds=0), Known(model)
    for (_, row), answer in zip(table.iloc[2:14].iterrows(), answers, strict=True):
        assert answer.certificate.kind == "nearest"
        true = known.nearest(row, lambda labels, own=answer.label: labels != own)
        assert answer.certificate.bound == pytest.approx(true)
