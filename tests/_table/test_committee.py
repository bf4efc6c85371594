"""Answers that retrained models agree on: what members are asked, what is accepted, and how it is told."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from onbmacf import ONBMACF, Rule, Rules, Schema, audit
from onbmacf._table import committee as committee_module
from onbmacf._table.committee import Committee
from onbmacf._table.form import TableForm
from onbmacf._table.model import BlackBox, Counts
from onbmacf.errors import ModelError, ParameterError


class Limit:
    """Says "yes" above a limit of a + b; picklable, and it remembers what it was asked."""

    def __init__(self, limit, yes="yes", no="no"):
        self.limit, self.names, self.asked = limit, np.array([no, yes], dtype=object), []

    def predict(self, rows):
        self.asked.append(rows.copy())
        return self.names[(rows["a"] + rows["b"] > self.limit).to_numpy().astype(int)]


LIMITS = (0.9, 0.95, 1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.6)
TABLE = pd.DataFrame(np.random.default_rng(0).random((300, 3)).round(3), columns=list("abc"))
NO = TABLE[TABLE["a"] + TABLE["b"] <= 1].head(12)


def members():
    return [Limit(limit) for limit in LIMITS]


@pytest.fixture(scope="module")
def explainer():
    return ONBMACF().fit(TABLE, Limit(1.0))


def plain_share(values, labels, models=None):
    """The plain twin: ask every member about every row, one label after the other."""
    answers = [model.predict(values) for model in models or members()]
    return [sum(own[line] == label for own in answers) / len(answers) for line, label in enumerate(labels)]


def test_stability_is_the_share_of_members_that_agree(explainer):
    answers = explainer.with_options(committee=members()).explain(NO)
    assert answers.batch.stability.tolist() == plain_share(answers.batch.values, answers.batch.label)
    assert len(set(answers.batch.stability)) > 1
    assert answers[0].counterfactuals[0].stability == answers.batch.stability[0]


def test_without_agreement_the_answers_and_counts_are_those_without_a_committee(explainer):
    alone, watched = explainer.explain(NO), explainer.with_options(committee=members()).explain(NO)
    pd.testing.assert_frame_equal(alone.to_frame(), watched.to_frame().drop(columns="stability"))
    assert (alone.n_calls, alone.n_questions) == (watched.n_calls, watched.n_questions)
    assert alone[0].counterfactuals[0].stability is None
    assert (alone.n_members, alone.n_member_questions) == (0, 0)
    assert watched.n_member_questions == len(LIMITS) * len(watched.batch.factual)


@pytest.mark.parametrize("agreement", [0.1, 0.7, 0.8, 1.0])
def test_every_answer_has_the_agreement_asked_for_and_not_much_more(explainer, agreement):
    answers = explainer.with_options(committee=members(), agreement=agreement, plausibility=0).explain(NO)
    limit = max(1.0, sorted(LIMITS)[round(10 * agreement) - 1])  # the model's own limit counts, too
    sums = answers.batch.values[["a", "b"]].sum(axis=1)
    assert set(answers.statuses) == {"found"}
    assert (answers.batch.stability >= agreement).all()
    assert ((sums > limit) & (sums < limit + 0.01)).all()


@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "paper"},
        {"n_counterfactuals": 3},
        {"max_model_rows": 300},
        {"strategy": "paper", "search": "exhaustive"},
    ],
    ids=str,
)
def test_agreement_holds_with_other_options(explainer, options):
    answers = explainer.with_options(committee=members(), agreement=0.9, **options).explain(NO)
    assert set(answers.statuses) == {"found"}
    assert (answers.batch.stability >= 0.9).all()


def test_agreement_holds_under_rules_and_on_the_front():
    schema = Schema.infer(TABLE, rules=Rules({"a": Rule(direction="up"), "b": Rule(step=0.05)}))
    ruled = ONBMACF(committee=members(), agreement=0.9).fit(TABLE, Limit(1.0), schema=schema)
    for answers in (ruled.explain(NO), ruled.explain(NO, front=True)):
        assert (answers.batch.stability >= 0.9).all()
        assert set(answers.batch.factual) == set(range(len(NO)))


def test_a_rule_that_binds_nothing_makes_no_second_search():
    free = ONBMACF(committee=members(), agreement=0.9).fit(TABLE, Limit(1.0)).explain(NO)
    schema = Schema.infer(TABLE, rules=Rules({"a": Rule(low=-9, high=9)}))
    ruled = ONBMACF(committee=members(), agreement=0.9).fit(TABLE, Limit(1.0), schema=schema).explain(NO)
    assert ruled.batch.distance.tolist() == free.batch.distance.tolist()
    assert ruled.n_questions < 1.5 * free.n_questions


def test_members_are_asked_only_about_what_the_model_accepts():
    asked = members()
    ruled = ONBMACF(committee=asked, agreement=0.8).fit(TABLE, Limit(1.0))
    ruled.fitted_.committee(ruled._options())  # the members' first words are about fitted rows
    for member in asked:
        member.asked.clear()
    answers = ruled.explain(NO)
    for member in asked:
        rows = pd.concat(member.asked)
        assert (rows["a"] + rows["b"] > 1.0).all()
    assert answers.n_member_questions < len(LIMITS) * answers.n_questions


class Said:
    """A member that says what is written in a column."""

    def __init__(self, column):
        self.column = column

    def predict(self, rows):
        return rows.iloc[:, self.column].astype(int)


@pytest.mark.parametrize("agreement", [0.01, 0.3, 0.5, 0.7, 0.8, 1.0])
@pytest.mark.parametrize("k", [1, 3, 7, 10])
def test_asking_only_what_is_undecided_agrees_with_asking_everything(agreement, k):
    said = np.random.default_rng(k).integers(0, 3, (200, k))
    form = TableForm.fit(pd.DataFrame(said.astype(float)), None)
    boxes = tuple(BlackBox(Said(at), form, 16, classes=np.array([0, 1, 2], dtype=object)) for at in range(k))
    committee, counts = Committee(boxes, agreement), Counts()
    codes = np.random.default_rng(9).integers(0, 3, 200)
    expected = [(line == code).sum() / k >= agreement for line, code in zip(said, codes, strict=True)]
    assert committee.agree(said.astype(float), codes, counts).tolist() == expected
    assert k == 1 or counts.n_member_questions < 200 * k
    assert (committee.share(said.astype(float), codes, counts) >= agreement).tolist() == expected


@pytest.mark.parametrize("most", [0, 50, 10_000])
def test_nothing_is_asked_twice_as_long_as_it_is_remembered(monkeypatch, most):
    monkeypatch.setattr(committee_module, "MOST_DECIDED", most)
    said = np.random.default_rng(1).integers(0, 2, (300, 4)).astype(float)
    form = TableForm.fit(pd.DataFrame(said), None)
    boxes = tuple(BlackBox(Said(at), form, 16, classes=np.array([0, 1], dtype=object)) for at in range(4))
    committee, counts, codes = Committee(boxes, 1.0), Counts(), np.tile([0, 1], 150)
    expected = [(line == code).all() for line, code in zip(said, codes, strict=True)]
    for start in (0, 0, 100, 0):  # 16 rows and 2 labels are all there is
        assert committee.agree(said[start:], codes[start:], counts).tolist() == expected[start:]
    assert counts.n_member_questions <= (32 * 4 if most > 300 else 4 * 32 * 4)
    committee.agree(said[:1], codes[:1], counts)
    assert most or len(committee.decided) == 1  # what there is no room for is forgotten
    nothing, before = np.zeros((1, 4)), counts.n_member_questions
    assert committee.agree(nothing, codes[:1], counts).all()
    assert committee.agree(-nothing, codes[:1], counts).all()
    assert counts.n_member_questions - before <= (8 if most < 50 else 0)  # -0.0 is 0.0


def test_where_too_few_agree_the_row_says_so_and_is_not_called_infeasible():
    table = pd.DataFrame({"a": [0, 1, 0, 1] * 5, "b": [0, 0, 1, 1] * 5})
    stubborn = [Limit(0.5), *[Limit(9)] * 3]
    alone = ONBMACF().fit(table, Limit(1.5))
    answer = alone.with_options(committee=stubborn, agreement=0.5).explain(table.head(1))[0]
    assert (answer.status, answer.counterfactuals) == ("none_found", ())
    assert answer.reason.startswith("None was found on which 2 of 4 retrained models agree, with ")
    assert alone.with_options(committee=stubborn, agreement=0.25).explain(table.head(1))[0].status == "found"


class Backwards(Limit):
    """The same labels; its classes are in another order, and it answers with scores."""

    @property
    def classes_(self):
        return ["yes", "no"]

    def predict(self, rows):
        is_yes = (rows["a"] + rows["b"] > self.limit).to_numpy()
        return np.column_stack([is_yes, ~is_yes]).astype(float)


def test_labels_are_compared_by_name(explainer):
    same, other = [Limit(limit) for limit in LIMITS], [Backwards(limit) for limit in LIMITS]
    first = explainer.with_options(committee=same, agreement=0.9).explain(NO)
    second = explainer.with_options(committee=other, agreement=0.9).explain(NO)
    pd.testing.assert_frame_equal(first.to_frame(), second.to_frame())


def failing(rows):
    raise ValueError("out of order")


@pytest.mark.parametrize(
    "member, words",
    [
        (Limit(1, "good", "bad"), r"member 2 of the committee says 'bad', 'good', the model 'no', 'yes': no label in"),
        (failing, "member 2 of the committee raised on every fitted row it was asked about: out of order"),
        (LogisticRegression(), "member 2 of the committee raised on every fitted row .* not fitted yet"),
        ("a name", "the model must have predict or be callable, got str"),
    ],
    ids=["other labels", "raises", "not fitted", "no model"],
)
def test_a_member_that_cannot_serve_is_named(explainer, member, words):
    with pytest.raises(ModelError, match=words):
        explainer.with_options(committee=[Limit(1), member]).explain(NO)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"agreement": 0.8}, r"agreement=0.8 needs a committee"),
        ({"committee": [], "agreement": 0.8}, r"committee must be a list or tuple of fitted models, got \[\]"),
        ({"committee": Limit(1)}, "committee must be a list or tuple"),
        ({"committee": [Limit(1)], "agreement": 1.2}, r"agreement must be in \[0, 1\], got 1.2"),
    ],
)
def test_options_that_are_not_allowed_are_named(options, words):
    with pytest.raises(ParameterError, match=words):
        ONBMACF(**options).fit(TABLE, Limit(1.0))


class Fragile(Limit):
    def predict(self, rows):
        if (rows["a"] > 0.8).any():
            raise ValueError("too high")
        return super().predict(rows)


def test_a_member_that_raises_on_a_point_does_not_agree_on_it(explainer):
    answers = explainer.with_options(committee=[Fragile(0.5)], agreement=1).explain(NO)
    assert set(answers.statuses) == {"found"}
    assert (answers.batch.values["a"] <= 0.8).all()
    assert explainer.with_options(committee=[Limit(0.5)]).explain(NO).batch.values["a"].max() > 0.8


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.xdist_group("processes"))])
def test_answers_do_not_depend_on_batches_and_processes(explainer, n_jobs):
    agreed = explainer.with_options(committee=members(), agreement=0.8)
    alone = pd.concat([agreed.explain(NO.iloc[[place]]).to_frame() for place in range(len(NO))])
    together = agreed.with_options(n_jobs=n_jobs).explain(NO)
    pd.testing.assert_frame_equal(together.to_frame(), alone)
    assert together.n_member_questions > 0


def test_members_travel_with_a_dask_frame(explainer):
    dd = pytest.importorskip("dask.dataframe")
    agreed = explainer.with_options(committee=members(), agreement=0.8)
    parts = agreed.explain(dd.from_pandas(NO, npartitions=2, sort=False)).compute(scheduler="synchronous")
    here = agreed.explain(NO).to_frame()
    pd.testing.assert_frame_equal(parts[here.columns], here, check_dtype=False)
    assert "stability" in here.columns


def test_every_view_tells_it_and_none_without_a_committee(explainer):
    answers = explainer.with_options(committee=members(), agreement=0.8).explain(NO.head(2))
    share = answers.batch.stability[0]
    assert answers.sentences()[0].endswith(f" {round(10 * share)} of 10 retrained models agree.")
    assert answers.to_frame()["stability"].iloc[0] == share
    assert json.loads(answers.to_json())["answers"][0]["counterfactuals"][0]["stability"] == share
    assert answers[1:][0].counterfactuals[0].n_members == 10
    alone = explainer.explain(NO.head(2))
    assert "retrained" not in alone.sentences()[0]
    assert "stability" not in alone.to_frame()
    assert "stability" not in alone.to_json()


def test_the_audit_reports_what_holds_after_retraining(explainer):
    answers = explainer.with_options(committee=members(), n_counterfactuals=2).explain(NO)
    first = answers.batch.stability[::2]
    assert audit.overview(answers)["stability"] == pytest.approx(first.mean())
    found = audit.findings(answers, explainer.schema_)[-1]
    assert found == (
        f"After retraining, {100 * first.mean():.0f} % of the counterfactuals hold: the mean share of 10 retrained "
        f"models that agree. All of them agree on {(first == 1).sum()} of {len(first)}."
    )
    assert "stability" not in audit.overview(explainer.explain(NO))
    assert "retraining" not in " ".join(audit.findings(explainer.explain(NO), explainer.schema_))


def test_a_committee_is_an_option_like_the_others(explainer):
    models = members()
    agreed = explainer.with_options(committee=models, agreement=0.8)
    assert repr(agreed).startswith("<ONBMACF(committee=<10 models>, agreement=0.8) fitted on ")
    assert agreed.get_params()["committee"] is models
    assert clone(agreed).committee is models  # scikit-learn would hand out members that are not fitted
    assert not hasattr(clone(agreed), "fitted_")


def test_a_map_is_saved_without_the_committee_and_says_so_when_it_is_missing(explainer, tmp_path):
    path, agreed = tmp_path / "map.onb", explainer.with_options(committee=members(), agreement=0.8)
    agreed.save(path)
    with pytest.raises(ParameterError, match=r"agreement=0\.8 needs a committee"):
        ONBMACF.load(path, Limit(1.0)).explain(NO)
    again = ONBMACF.load(path, Limit(1.0), committee=members()).explain(NO)
    pd.testing.assert_frame_equal(again.to_frame(), agreed.explain(NO).to_frame())


def test_members_introduce_themselves_once_per_map(explainer):
    models = members()
    agreed = explainer.with_options(committee=models, agreement=0.8)
    agreed.explain(NO.head(1))
    n_calls = len(models[0].asked)
    agreed.explain(NO.head(1))
    assert len(models[0].asked) < 2 * n_calls
    other = explainer.with_options(committee=[Limit(9), *models[1:]], agreement=1)
    assert set(other.explain(NO.head(1)).statuses) == {"none_found"}


def test_a_proof_is_about_the_model_alone(explainer):
    with pytest.raises(ParameterError, match="leave agreement out"):
        explainer.with_options(committee=members(), agreement=0.5).explain(NO, prove=True)
