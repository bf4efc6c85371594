"""The one way to the model: true margins, limits that hold, rows that raise, and copies that are found out."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

from onbmacf import ONBMACF, Between
from onbmacf._prove.copies import Answering
from onbmacf._search.options import Options
from onbmacf._search.oracle import DISTRUSTED, Oracle, Terms
from onbmacf._table.replies import LEAST

COLUMNS = list("abc")
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(RNG.integers(0, 7, (240, 3)), columns=COLUMNS)
SUM = TABLE.sum(axis=1) + RNG.integers(-1, 2, 240)
THREE, TWO = np.where(SUM > 11, "high", np.where(SUM > 7, "middle", "low")), (SUM > 9).astype(int)
NEW = pd.DataFrame(RNG.integers(-1, 9, (60, 3)), columns=COLUMNS)


def fitted(kind, **how):
    """Return a model of some kind, an explainer fitted to it, and the labels that it says of rows."""
    plain = lambda rows: np.where(rows["a"] + rows["b"] * rows["c"] > 14, "yes", "no")  # noqa: E731
    kinds = {
        "probabilities": lambda: (LogisticRegression().fit(TABLE, THREE), {}),
        "votes": lambda: (RandomForestClassifier(7, random_state=0).fit(TABLE, THREE), {}),
        "decisions": lambda: (LinearSVC(random_state=0).fit(TABLE, THREE), {}),
        "one decision": lambda: (LinearSVC(random_state=0).fit(TABLE, TWO), {}),
        "threshold": lambda: (LogisticRegression().fit(TABLE, TWO), {"threshold": 0.2}),
        "range": lambda: (LinearRegression().fit(TABLE, SUM), {"target": Between(8, 11)}),
        "labels": lambda: (plain, {}),
    }
    model, said = kinds[kind]()
    explainer = ONBMACF(**how).fit(TABLE, model, **said)
    if kind == "threshold":
        return explainer, lambda rows: (model.predict_proba(rows)[:, 1] >= 0.2).astype(int)
    if kind == "range":
        return explainer, lambda rows: Between(8, 11).labels(model.predict(rows))
    return explainer, model if kind == "labels" else model.predict


KINDS = ("probabilities", "votes", "decisions", "one decision", "threshold", "range", "labels")


def oracle_of(explainer, n=4, **options):
    fitted, own, box = explainer.fitted_, np.zeros((n, 3)), explainer.fitted_.black_box.counting()
    return Oracle(box, own, Options(**options), Terms(), guess=fitted.guess)


@pytest.mark.parametrize("kind", KINDS)
def test_a_margin_is_above_0_exactly_where_the_label_is_wanted(kind):
    explainer, predict = fitted(kind)
    oracle, N = oracle_of(explainer), np.ascontiguousarray(NEW.to_numpy(dtype=float))
    factual, rng = np.arange(len(N)) % 4, np.random.default_rng(1)
    reply = oracle.ask(N, factual)
    codes = oracle.box.codes(np.asarray(predict(NEW), dtype=object))
    best = np.sort(reply.scores, axis=1)
    is_clear = best[:, -1] - best[:, -2] > 1e-9  # of equal scores either may be called the highest
    assert is_clear.mean() > 0.8
    np.testing.assert_array_equal(reply.codes[is_clear], codes[is_clear])
    n_classes = len(oracle.box.classes)
    for _ in range(6):
        wanted = rng.random((4, n_classes)) < 0.5
        margin = oracle.margins(reply, N, factual, wanted)
        np.testing.assert_array_equal(margin > 0, wanted[factual, reply.codes])
        assert np.isfinite(margin[wanted[factual].any(axis=1) & ~wanted[factual].all(axis=1)]).all()


def test_a_margin_is_what_the_best_wanted_label_has_more_log_odds_than_the_best_other():
    explainer, _ = fitted("probabilities")
    oracle, N = oracle_of(explainer), np.ascontiguousarray(NEW.to_numpy(dtype=float))
    factual, wanted = np.arange(len(N)) % 4, np.random.default_rng(2).permuted([[True, False, False]] * 4, axis=1)
    margin = oracle.margins(oracle.ask(N, factual), N, factual, wanted)
    sure = explainer.fitted_.black_box.model.predict_proba(NEW)
    logs = np.log(sure.clip(LEAST))
    is_wanted = wanted[factual]
    plain = np.where(is_wanted, logs, -np.inf).max(axis=1) - np.where(is_wanted, -np.inf, logs).max(axis=1)
    np.testing.assert_allclose(margin, plain, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dial", [0.0, 1.0])
def test_every_answer_is_what_the_model_says(kind, dial):
    explainer, predict = fitted(kind, plausibility=dial, n_counterfactuals=2)
    answers = explainer.explain(NEW.head(25))
    found = answers.to_frame()
    assert len(found) > 20
    assert found["to"].tolist() == list(predict(found[COLUMNS]))
    assert [answer.label for answer in answers] == list(predict(NEW.head(25)))


class Counting:
    """A model that counts what it is given, and raises on rows with much of `c` if it is told to."""

    def __init__(self, model, raises=False):
        self.model, self.classes_, self.sizes, self.raises = model, model.classes_, [], raises

    def predict(self, rows):
        return self._counted(rows, self.model.predict)

    def predict_proba(self, rows):
        return self._counted(rows, self.model.predict_proba)

    def _counted(self, rows, method):
        self.sizes.append(len(rows))
        if self.raises and (rows["c"] > 6).any():
            raise ValueError("too much of c")
        return method(rows)


class OnlyLabels(Counting):
    """The same without probabilities."""

    predict_proba = None


@pytest.mark.parametrize("wrapped", [Counting, OnlyLabels])
@pytest.mark.parametrize("kind", ["logistic", "forest"])
@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 9))])
def test_no_row_takes_more_rows_or_calls_than_it_may(kind, wrapped, seed):
    rng = np.random.default_rng(seed)
    own = LogisticRegression() if kind == "logistic" else RandomForestClassifier(7, random_state=0)
    model = wrapped(own.fit(TABLE, TWO))
    limits = {"max_model_rows": int(rng.integers(1, 300)), "max_model_calls": int(rng.integers(1, 9))}
    limits = limits if seed % 3 == 0 else dict([[*limits.items()][seed % 3 - 1]])
    options = {"plausibility": float(rng.choice([0.0, 0.5, 1.0])), "n_counterfactuals": int(rng.integers(1, 4))}
    explainer = ONBMACF(**options, **limits).fit(TABLE, model)
    for place in range(8):
        model.sizes.clear()
        answers = explainer.explain(NEW.iloc[[place]])
        assert sum(model.sizes) == answers.n_questions <= limits.get("max_model_rows", 1 << 40)
        assert len(model.sizes) <= limits.get("max_model_calls", 1 << 40)
        for found in answers[0].counterfactuals:
            assert own.predict(found.values.to_frame().T[COLUMNS].astype(float))[0] == found.label != answers[0].label


@pytest.mark.parametrize("wrapped", [Counting, OnlyLabels])
def test_rows_on_which_the_model_raises_are_no_answers_and_spoil_no_others(wrapped):
    own = LogisticRegression().fit(TABLE, TWO)
    plain, raising = ONBMACF().fit(TABLE, wrapped(own)), ONBMACF().fit(TABLE, wrapped(own, raises=True))
    answers, expected = raising.explain(NEW), plain.explain(NEW)
    is_bad = (NEW["c"] > 6).to_numpy()
    assert is_bad.any()
    assert (answers.statuses == np.where(is_bad, "model_error", "found")).all()
    assert all("ValueError: too much of c" in reason for reason in answers.reasons[is_bad])
    found = answers.to_frame()
    assert (found["c"] <= 6).all()
    assert (own.predict(found[COLUMNS]) == found["to"]).all()
    assert found["distance"].mean() <= 1.1 * expected.to_frame().loc[found.index.unique(), "distance"].mean()


class Contrary:
    """Says what its probabilities say of whole numbers, and often something else between them."""

    classes_ = np.array([0, 1])

    def predict_proba(self, rows):
        share = 1 / (1 + np.exp(9.3 - rows[COLUMNS].sum(axis=1).to_numpy()))
        return np.column_stack([1 - share, share])

    def predict(self, rows):
        is_between = rows["a"].to_numpy() % 1 != 0
        return (self.predict_proba(rows)[:, 1] > np.where(is_between, 0.9, 0.5)).astype(int)


@pytest.mark.parametrize("limits", [{}, {"max_model_rows": 80}, {"max_model_calls": 4}])
def test_a_model_that_contradicts_its_probabilities_gets_true_answers(limits):
    table = pd.concat([TABLE, TABLE.iloc[:2] + 0.01]).astype(float)
    explainer = ONBMACF(n_counterfactuals=2, **limits).fit(table, Contrary())
    rows = pd.concat([NEW.head(20), NEW.head(20) + 0.37])
    answers = explainer.explain(rows)
    found = answers.to_frame()
    assert (Contrary().predict(found[COLUMNS]) == found["to"]).all()
    assert (answers.statuses == "found").mean() > (0.5 if limits else 0.9)
    assert all(found.label != answer.label for answer in answers for found in answer.counterfactuals)
    labels = Contrary().predict(rows)
    assert (labels != Contrary().predict_proba(rows).argmax(axis=1)).any()
    assert limits or [answer.label for answer in answers] == labels.tolist()


@pytest.mark.parametrize("wrong", ["all", "some"])
@pytest.mark.parametrize("kind", ["probabilities", "decisions"])
def test_a_copy_that_says_something_else_is_dropped_and_the_answers_are_the_models_own(kind, wrong, monkeypatch):
    expected = fitted(kind, read_model=False)[0].explain(NEW)
    own, asked = Answering.answers, []

    def answers(self, N):
        asked.append(len(N))
        found = own(self, N)
        is_wrong = np.ones(len(N), dtype=bool) if wrong == "all" else N[:, 0] > 3.5
        return np.where(is_wrong[:, np.newaxis], found[:, ::-1], found)

    monkeypatch.setattr(Answering, "answers", answers)
    explainer = fitted(kind)[0]
    found = explainer.explain(NEW)
    assert asked
    assert found.warnings == (DISTRUSTED,)
    pd.testing.assert_frame_equal(found.to_frame(), expected.to_frame())
    assert list(found.statuses) == list(expected.statuses)
    asked.clear()
    pd.testing.assert_frame_equal(explainer.explain(NEW).to_frame(), expected.to_frame())
    assert not asked  # it is not asked again


def test_a_copy_that_is_dropped_under_other_rules_is_dropped_for_good(monkeypatch):
    own, asked = Answering.answers, []

    def answers(self, N):
        asked.append(len(N))
        return own(self, N)[:, ::-1]

    monkeypatch.setattr(Answering, "answers", answers)
    explainer = fitted("probabilities")[0]
    explainer.explain(NEW, immutable=COLUMNS[:1])
    assert asked
    asked.clear()
    explainer.explain(NEW)
    assert not asked


def test_explain_leaves_the_explainer_as_it_was():
    explainer = fitted("probabilities")[0]
    before = dict(vars(explainer))
    for how in ({}, {"immutable": COLUMNS[:1]}, {"n": 3, "front": True}, {"prove": True}):
        explainer.explain(NEW.head(3), **how)
    assert vars(explainer).keys() == before.keys()
    assert all(value is before[name] for name, value in vars(explainer).items())


class Noisy:
    """Votes with many ties, in which last bits that change with the size of a call favour one side or the other."""

    classes_ = np.array([0, 1])

    def predict_proba(self, rows):
        share = 0.5 + 0.1 * np.clip(rows[COLUMNS].sum(axis=1).to_numpy() - 9, -4, 4) + 1e-13 * (len(rows) % 3 - 1)
        return np.column_stack([1 - share, share])

    def predict(self, rows):
        return (rows[COLUMNS].sum(axis=1) > 9).astype(int)


def test_last_bits_that_change_with_the_size_of_a_call_change_no_answer():
    explainer = ONBMACF(n_counterfactuals=3).fit(TABLE, Noisy())
    assert explainer.fitted_.black_box.scorer is not None
    together = explainer.explain(NEW)
    assert [answer.label for answer in together] == Noisy().predict(NEW).tolist()
    alone = pd.concat([explainer.explain(NEW.iloc[[place]]).to_frame() for place in range(len(NEW))])
    columns = [*COLUMNS, "distance", "plausibility", "to"]
    pd.testing.assert_frame_equal(together.to_frame()[columns], alone[columns], check_exact=True)
    reply = [oracle_of(explainer).ask(np.full((n, 3), 3.0), np.zeros(n, dtype=np.intp)).codes[0] for n in range(1, 7)]
    assert reply == [0] * 6
