"""onbmacf.committee: clones of an estimator, each fitted on other rows from another random state."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from onbmacf import ONBMACF, committee
from onbmacf._table.committee import sample
from onbmacf.errors import ParameterError

RANDOM = np.random.default_rng(0)
X = pd.DataFrame(RANDOM.random((120, 3)), columns=list("abc"))
Y = pd.Series(np.where(X.sum(axis=1) + 0.3 * RANDOM.normal(size=120) > 1.5, "yes", "no"))


class Rows:
    """An estimator that keeps what it was fitted on."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def get_params(self, deep=True):
        return {"random_state": self.random_state}

    def set_params(self, **params):
        self.random_state = params["random_state"]
        return self

    def fit(self, X, y):
        self.X_, self.y_ = X, y
        return self


def test_a_member_is_fitted_on_nine_tenths_of_each_label_and_no_row_twice():
    (member,) = committee(Rows(), X, Y, k=1)
    assert member.X_.index.equals(member.y_.index)
    assert member.X_.index.is_unique
    assert member.X_.index.is_monotonic_increasing
    assert member.y_.value_counts().to_dict() == {label: round(0.9 * n) for label, n in Y.value_counts().items()}
    pd.testing.assert_frame_equal(member.X_, X.loc[member.X_.index])


def test_a_bootstrap_draws_rows_more_than_once():
    (member,) = committee(Rows(), X, Y, k=1, share=1.0, replace=True)
    assert len(member.X_) == len(X)
    assert member.X_.index.nunique() < 0.8 * len(X)


def test_members_differ_in_rows_and_random_state_and_are_the_same_again():
    first, again = committee(Rows(7), X, Y, k=3), committee(Rows(7), X, Y, k=5)
    assert len({member.random_state for member in first}) == 3
    assert not first[0].X_.equals(first[1].X_)
    for one, same in zip(first, again, strict=False):
        assert one.random_state == same.random_state
        assert one.X_.equals(same.X_)
    other = committee(Rows(7), X, Y, k=3, seed=1)
    assert not {member.random_state for member in first} & {member.random_state for member in other}


def test_the_estimator_and_the_global_random_numbers_are_left_alone():
    estimator, before = Rows(7), np.random.get_state()[1].tolist()  # noqa: NPY002
    committee(estimator, X, Y, k=2)
    assert estimator.random_state == 7
    assert not hasattr(estimator, "X_")
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


@pytest.mark.parametrize("rows", [X, X.to_numpy(), X.to_numpy().tolist()], ids=["frame", "array", "list"])
def test_rows_may_be_a_frame_an_array_or_a_list(rows):
    (member,) = committee(DecisionTreeClassifier(max_depth=2), rows, Y.tolist(), k=1)
    assert set(member.predict(rows)) == {"no", "yes"}


def test_the_steps_of_a_pipeline_get_random_states_of_their_own():
    pipeline = make_pipeline(StandardScaler(), SGDClassifier(random_state=1))
    states = {member[-1].random_state for member in committee(pipeline, X, Y, k=3)}
    assert len(states) == 3
    assert 1 not in states


@pytest.mark.parametrize("library, name", [("xgboost", "XGBClassifier"), ("lightgbm", "LGBMClassifier")])
def test_boosted_trees_make_a_committee_that_explains(library, name):
    pytest.importorskip(library)
    estimator = getattr(__import__(library), name)(n_estimators=5, max_depth=2, n_jobs=1)
    codes = (Y == "yes").astype(int)
    agreed = ONBMACF(committee=committee(estimator, X, codes, k=3), agreement=1.0)
    answers = agreed.fit(X, estimator.fit(X, codes)).explain(X.head(5))
    assert set(answers.statuses) == {"found"}
    assert (answers.batch.stability == 1).all()


def test_a_rare_label_is_in_every_sample():
    labels = np.array([0] * 50 + [1])
    assert all(50 in sample(labels, np.random.default_rng(seed), 0.1, True) for seed in range(20))


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((lambda rows: rows, X, Y), "scikit-learn can clone, got function. Train the members yourself"),
        ((Rows(), X, Y[:50]), "X and y must have as many rows as each other, got 120 and 50"),
        ((Rows(), X, Y, 0), "k must be a whole number of at least 1, got 0"),
        ((Rows(), X, Y, 3, -1), "seed must be a whole number of at least 0, got -1"),
    ],
)
def test_faults_are_named(arguments, words):
    with pytest.raises(ParameterError, match=words):
        committee(*arguments)
    with pytest.raises(ParameterError, match="share must be in"):
        committee(Rows(), X, Y, share=0)
