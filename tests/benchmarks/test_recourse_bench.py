"""The method for RecourseBench, against a small stand-in for what it documents: nothing of it is installed here."""

import importlib
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest

HELD, UP = "none", "same-or-increase"


class MethodObject:
    """What a method is derived from: fit, get_counterfactuals, and a predict that checks rows and columns."""

    def predict(self, factuals):
        assert self._is_trained
        found = self.get_counterfactuals(factuals)
        assert found.shape[0] == factuals.shape[0]
        assert set(found.columns) == set(factuals.columns)
        return found.reindex(index=factuals.index, columns=factuals.columns)


class Dataset:
    """A frozen dataset: features by `get`, metadata by `attr`."""

    def __init__(self, frame, **attrs):
        self._frame, self._attrs = frame, attrs

    def get(self, target=False):
        return self._frame.copy()

    def attr(self, flag):
        if flag not in self._attrs:
            raise AttributeError(f"Unknown dataset attribute: {flag}")
        return self._attrs[flag]


class Tensor:
    """What a model returns: a tensor, as far as it is used here."""

    def __init__(self, values):
        self.values = values

    def detach(self):
        return self

    cpu = detach

    def numpy(self):
        return self.values


class Model:
    """Two classes of a line through encoded columns, which must come in the order of the training rows."""

    def __init__(self, names, labels=("no", "yes")):
        self.names, self.labels = list(names), labels

    def get_class_to_index(self):
        return {label: at for at, label in enumerate(self.labels)}

    def get_prediction(self, X, proba=True):
        assert list(X.columns) == self.names
        assert proba
        one_hot = X[["job_cat_a", "job_cat_b", "job_cat_c"]]
        assert np.isin(one_hot, [0, 1]).all()
        assert (one_hot.sum(axis=1) == 1).all()
        school = X[["school_therm_0", "school_therm_1", "school_therm_2"]].to_numpy()
        assert (np.diff(school, axis=1) <= 0).all()
        score = 3 * X["age"] + X["job_cat_b"] + 0.5 * school.sum(axis=1) + 2 * X["home"] - 3.5
        yes = 1 / (1 + np.exp(-4 * score.to_numpy(dtype=float)))
        return Tensor(np.column_stack([1 - yes, yes]))


@pytest.fixture
def module(monkeypatch):
    registered = {}

    def register(name):
        return lambda made: registered.setdefault(name, made)

    stand_in = ModuleType("recourse_bench")
    stand_in.MethodObject, stand_in.register = MethodObject, register
    monkeypatch.setitem(sys.modules, "recourse_bench", stand_in)
    monkeypatch.delitem(sys.modules, "recourse_bench_method", raising=False)
    made = importlib.import_module("recourse_bench_method")
    yield SimpleNamespace(module=made, registered=registered)
    sys.modules.pop("recourse_bench_method")


@pytest.fixture(scope="module")
def train_set():
    random, n = np.random.default_rng(0), 300
    job, school = random.integers(0, 3, n), random.integers(1, 4, n)
    frame = pd.DataFrame({"age": random.random(n)})
    for at, level in enumerate("abc"):
        frame[f"job_cat_{level}"] = (job == at).astype(float)
    for at in range(3):
        frame[f"school_therm_{at}"] = (school > at).astype(float)
    frame["home"] = random.integers(0, 2, n).astype(float)
    frame = frame[["job_cat_c", *(name for name in frame if name != "job_cat_c")]]  # the columns of a group are apart
    frame.index = np.arange(n) + 1000
    actions = {"age": UP, "home": HELD}
    return Dataset(
        frame,
        encoding={
            "job": [f"job_cat_{level}" for level in "abc"],
            "school": [f"school_therm_{at}" for at in range(3)],
        },
        encoded_feature_type={name: "numerical" if name == "age" else "binary" for name in frame},
        encoded_feature_mutability=dict.fromkeys(frame, True),
        encoded_feature_actionability={name: actions.get(name, UP if "therm" in name else "any") for name in frame},
    )


def labels(model, frame):
    return model.get_prediction(frame).values.argmax(axis=1)


@pytest.mark.parametrize("desired", ["yes", None])
def test_counterfactuals_have_the_class_and_keep_what_the_metadata_say(module, train_set, desired):
    frame = train_set.get()
    model = Model(frame.columns)
    method = module.registered["onbmacf"](
        target_model=model, seed=1, device="cpu", desired_class=desired, plausibility=0
    )
    method.fit(train_set)
    assert method._need_grad is False
    rows = frame.iloc[:60]
    found, before = method.predict(rows), labels(model, rows)
    is_found = found.notna().all(axis=1)
    assert (found.isna().all(axis=1) | is_found).all()
    if desired:
        assert not is_found[before == 1].any()
        assert is_found[before == 0].mean() > 0.5
    else:
        assert is_found[before == 1].any()
    assert (labels(model, found[is_found]) == 1 - before[is_found]).all()
    assert (found["age"][is_found] >= rows["age"][is_found] - 1e-12).all()
    assert (found["home"][is_found] == rows["home"][is_found]).all()
    school = [f"school_therm_{at}" for at in range(3)]
    assert (found[school][is_found].sum(axis=1) >= rows[school][is_found].sum(axis=1)).all()


def test_a_feature_that_is_not_mutable_stays(module, train_set):
    attrs = dict(train_set._attrs, encoded_feature_mutability={name: name == "age" for name in train_set.get()})
    held = Dataset(train_set.get(), **attrs)
    model = Model(held.get().columns)
    method = module.registered["onbmacf"](model, desired_class="yes")
    method.fit(held)
    rows = held.get().iloc[:60]
    found = method.predict(rows)
    is_found = found.notna().all(axis=1)
    assert is_found.any()
    others = [name for name in rows if name != "age"]
    assert (found.loc[is_found, others] == rows.loc[is_found, others]).all(axis=None)


def test_rows_without_an_answer_are_missing_and_repeated_labels_of_rows_are_no_trouble(module, train_set):
    model = Model(train_set.get().columns)
    method = module.registered["onbmacf"](model, desired_class="yes")
    method.fit(train_set)
    rows = train_set.get().iloc[:8]
    rows.index = [5, 5, 6, 6, 7, 7, 8, 8]
    found = method.get_counterfactuals(rows)
    assert list(found.index) == list(rows.index)
    assert list(found.columns) == list(rows.columns)
    alone = method.get_counterfactuals(rows.iloc[[3]])
    np.testing.assert_array_equal(alone.to_numpy(), found.iloc[[3]].to_numpy())


def test_raw_rows_of_one_column_each_are_taken_as_they_are(module):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"a": random.random(80), "b": random.random(80)})
    raw = Dataset(
        frame, raw_feature_type=dict.fromkeys("ab", "numerical"), raw_feature_mutability={"a": True, "b": False}
    )

    class Line(Model):
        def get_prediction(self, X, proba=True):
            yes = (X["a"] + X["b"] > 1).to_numpy(dtype=float)
            return Tensor(np.column_stack([1 - yes, yes]))

    method = module.registered["onbmacf"](Line(frame.columns), desired_class="yes")
    method.fit(raw)
    found = method.predict(frame.iloc[:20])
    is_found = found.notna().all(axis=1)
    assert is_found.any()
    assert (found["b"][is_found] == frame["b"].iloc[:20][is_found]).all()


def test_no_class_is_the_other_of_three(module, train_set):
    model = Model(train_set.get().columns, ("a", "b", "c"))
    with pytest.raises(ValueError, match="desired_class is needed with 3 classes"):
        module.registered["onbmacf"](model).fit(train_set)
