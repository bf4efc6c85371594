"""Every registered method keeps the same promises; then each one's own."""

import logging
import random
from dataclasses import replace
from functools import cache
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier

from onbmacf.bench.datasets import Description, as_task
from onbmacf.bench.methods import HOLDING, PAPER, REGISTRY, _autoencoder, create
from onbmacf.bench.methods import cfnow as cfnow_module
from onbmacf.bench.methods import clue as clue_module
from onbmacf.bench.methods import cruds as cruds_module
from onbmacf.bench.methods import dice as dice_module
from onbmacf.bench.methods._packages import Asked, OutOfCalls, distinct
from onbmacf.bench.metrics import feature_differences
from onbmacf.bench.protocol import EstimatorModel, factual_rows
from onbmacf.errors import ParameterError

FACTUALS = 8
HELD = [f"{name}-HELD" for name in HOLDING]
KEEPING_IMMUTABLES = ["CRUDS", "FACE-EPSILON", "FACE-KNN", "GS", *HELD]
OTHERS = ["CFNOW", "DICE", "DICE-GENETIC"]  # from other packages


@pytest.fixture(autouse=True, scope="module")
def short_training():
    """Auto-encoders of the small task need few steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_autoencoder, "STEPS", 200)
        patch.setattr(clue_module, "TRAINING_STEPS", 1000)
        patch.setattr(cruds_module, "TRAINING_STEPS", 800)
        patch.setattr(cruds_module, "ITERATIONS", 600)
        yield


def of_each(names):
    """Return a test's parameter `name`: the tests of a method share a worker, and what it has fitted."""
    marked = [pytest.param(name, marks=[pytest.mark.xdist_group(f"method {name}"), *needs(name)]) for name in names]
    return pytest.mark.parametrize("name", marked)


def needs(name):
    """Return the skip of a method whose package is no part of the extra, where that is not installed."""
    missing = name.startswith("CFNOW") and find_spec("cfnow") is None
    return [pytest.mark.skip(reason="cfnow is not installed")] if missing else []


@pytest.fixture(scope="module")
def fitted(small_task, small_network):
    """Each method, fitted once."""
    return cache(lambda name: create(name).fit(small_task, small_network, 0))


@pytest.fixture(scope="module")
def answers(fitted, small_task, small_network):
    """Each method's answers, computed once."""
    return cache(lambda name: fitted(name).explain(factuals(small_task, small_network)))


def factuals(task, model):
    return task.Z[factual_rows(task, model, FACTUALS)]


def found(answers):
    return np.stack([np.atleast_2d(answer)[0] for answer in answers if answer is not None])


def same(first, second):
    pairs = zip(first, second, strict=True)
    return all((a is None and b is None) or np.array_equal(a, b) for a, b in pairs)


def state():
    numpy_state = np.random.get_state()  # noqa: NPY002
    generators = random.getstate(), numpy_state[1].tobytes(), numpy_state[2], torch.get_rng_state().numpy().tobytes()
    return *generators, list(logging.getLogger().handlers)


@of_each(REGISTRY)
def test_one_answer_per_factual_as_valid_rows(name, answers, small_task):
    assert len(answers(name)) == FACTUALS
    rows = found(answers(name))
    assert rows.shape[1] == small_task.Z.shape[1]
    assert np.allclose(small_task.to_rows(rows), rows, rtol=0, atol=1e-12)


@of_each(REGISTRY)
def test_something_is_found_and_has_the_target_label(name, answers, small_task, small_network):
    assert (small_network.label_of(found(answers(name))) == small_task.target).any()


@pytest.mark.long
@of_each(REGISTRY)
def test_the_same_call_gives_the_same_answer_and_touches_nothing(name, fitted, answers, small_task, small_network):
    first, Z = answers(name), factuals(small_task, small_network)
    given, before = Z.copy(), state()
    assert same(first, fitted(name).explain(Z))
    assert same(first, create(name).fit(small_task, small_network, 0).explain(Z))
    assert np.array_equal(Z, given)
    assert state() == before


@of_each(REGISTRY)
def test_no_factuals_no_answers(name, fitted, small_task):
    assert list(fitted(name).explain(small_task.Z[:0])) == []


@pytest.mark.long
@of_each(REGISTRY)
def test_the_other_direction_works(name, small_task, small_network):
    task = replace(small_task, target=0)
    rows = found(create(name).fit(task, small_network, 0).explain(factuals(task, small_network)))
    assert (small_network.label_of(rows) == 0).any()


@pytest.fixture(scope="module")
def forest(small_task):
    return EstimatorModel(RandomForestClassifier(20, random_state=0).fit(small_task.Z, small_task.y))


@pytest.mark.long
@of_each(REGISTRY)
def test_a_forest_is_explained_or_refused_in_words(name, forest, small_task):
    method = create(name)
    if method.needs_gradient:
        with pytest.raises(ParameterError, match="needs a torch network"):
            method.fit(small_task, forest, 0)
    else:
        rows = found(method.fit(small_task, forest, 0).explain(factuals(small_task, forest)))
        assert (forest.label_of(rows) == 1).mean() > 0.5


@of_each(KEEPING_IMMUTABLES)
def test_immutables_stay(name, answers, small_task, small_network):
    Z, fixed = factuals(small_task, small_network), small_task.immutable_columns
    for z, answer in zip(Z, answers(name), strict=True):
        assert answer is None or (np.atleast_2d(answer)[:, fixed] == z[fixed]).all()


@of_each(HELD)
def test_whoever_holds_immutables_still_finds_most(name, answers, small_task, small_network):
    kept = [answer for answer in answers(name) if answer is not None]
    assert (small_network.label_of(np.stack([np.atleast_2d(answer)[0] for answer in kept])) == 1).sum() >= FACTUALS / 2


@pytest.mark.long
@of_each([*OTHERS, "ONB-MACF"])
def test_several_counterfactuals_on_request(name, fitted, small_task, small_network):
    several = fitted(name).explain(factuals(small_task, small_network), 3)
    several = [np.atleast_2d(answer) for answer in several if answer is not None]
    assert max(map(len, several)) == 3
    for answer in several:
        assert len(np.unique(answer, axis=0)) == len(answer) <= 3
        assert (small_network.label_of(answer) == small_task.target).all()


class Moody:
    """A model that raises an error where it is asked about one row."""

    def __init__(self, model, row):
        self.model, self.row = model, row

    def label_of(self, Z):
        return self.model.label_of(Z)

    def probability_of(self, Z):
        if (np.abs(Z - self.row) < 1e-6).all(axis=1).any():  # dice-ml rounds numbers to single precision
            raise ZeroDivisionError
        return self.model.probability_of(Z)


@of_each(OTHERS)
def test_an_error_for_one_row_costs_that_row_only(name, fitted, answers, small_task, small_network, monkeypatch):
    Z, method, expected = factuals(small_task, small_network), fitted(name), answers(name)
    monkeypatch.setattr(method, "model_", Moody(small_network, Z[1]))
    found = method.explain(Z[:3])
    assert found[1] is None
    assert method.remarks_[1].endswith(("Error", "Exception"))
    assert same([found[0], found[2]], [expected[0], expected[2]])


@of_each(OTHERS)
def test_a_search_ends_after_so_many_calls_of_the_model(name, fitted, small_task, small_network, monkeypatch):
    module = cfnow_module if name.startswith("CFNOW") else dice_module
    monkeypatch.setattr(module, "CALLS", 2)
    method = fitted(name)
    found = method.explain(factuals(small_task, small_network)[:2])
    assert all("stopped" in remark or "given up" in remark for remark in method.remarks_)
    assert all(answer is None or (small_network.label_of(answer) == 1).all() for answer in found)


@of_each(["CFNOW"])
def test_a_loop_that_asks_nothing_ends_too(name):
    """Two of three binary features flip the label: cfnow soon knows all such rows, and searches on for others."""
    rows = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)] * 10)
    frame = pd.DataFrame(rows, columns=["a", "b", "c"]).assign(y=rows.sum(axis=1) // 2)
    task = as_task("three", frame, Description("y", (1,), ("no", "yes"), kinds=dict.fromkeys("abc", "binary")))

    class TwoOfThem:
        def probability_of(self, Z):
            return Z.sum(axis=1) / 3.2

        def label_of(self, Z):
            return (self.probability_of(Z) > 0.5).astype(np.intp)

    method = create(name).fit(task, TwoOfThem(), 0)
    (answer,) = method.explain(np.zeros((1, 3)))
    assert answer.sum() == 2
    assert method.remarks_ == ["stopped by force"]


def test_a_probability_of_one_half_goes_to_the_side_of_its_label(small_task):
    class Halves:
        def probability_of(self, Z):
            return np.full(len(Z), 0.5)

        def label_of(self, Z):
            return np.arange(len(Z)) % 2

    asked = Asked(Halves(), 1)
    first, second = asked.probability_of(small_task.Z[:2])
    assert first < 0.5 < second
    assert (first, second) == pytest.approx((0.5, 0.5))
    with pytest.raises(OutOfCalls):
        asked.probability_of(small_task.Z[:2])


def test_distinct_rows_keep_their_order():
    assert distinct(np.array([[2.0], [1.0], [2.0], [3.0], [1.0]])).ravel().tolist() == [2.0, 1.0, 3.0]


def test_the_papers_methods_are_registered_and_hold_what_their_papers_hold():
    assert set(PAPER) < set(REGISTRY)
    assert not any(REGISTRY[name].options.get("hold") for name in PAPER)


def test_an_unknown_method_is_named():
    with pytest.raises(ParameterError, match="got 'LIME'"):
        create("LIME")


def nice_by_the_book(task, model, z, reward="sparsity", hold=False, error=None):
    """NICE with loops, straight from its paper."""
    goal, current = nice_goal_by_the_book(task, model, z, hold), z.copy()
    if goal is None or reward == "none":
        return goal

    def score(row):
        return model.probability_of(row[np.newaxis])[0]

    def distance(row):
        return sum(feature_differences(z[np.newaxis], row[np.newaxis], task.blocks)[0])

    def value(tried):
        gain = score(tried) - score(current)
        if reward == "proximity":
            return gain / (distance(tried) - distance(current))
        return gain if reward == "sparsity" else gain * (error(current) - error(tried))

    while model.label_of(current[np.newaxis])[0] != 1:
        tries = []
        for block in task.blocks:
            if not np.array_equal(current[block], goal[block]):
                tried = current.copy()
                tried[block] = goal[block]
                tries.append(tried)
        current = tries[int(np.argmax([value(tried) for tried in tries]))]
    return current


def nice_goal_by_the_book(task, model, z, hold):
    candidates = [
        row for row, y in zip(task.Z, task.y, strict=True) if y == 1 and model.label_of(row[np.newaxis])[0] == 1
    ]
    if hold:
        candidates = [np.where(task.immutable_columns, z, row) for row in candidates]
        candidates = [row for row in candidates if model.label_of(row[np.newaxis])[0] == 1]
    heom = [sum(feature_differences(z[np.newaxis], row[np.newaxis], task.blocks)[0]) for row in candidates]
    return candidates[int(np.argmin(heom))] if candidates else None


@pytest.mark.parametrize("hold", [False, True])
@pytest.mark.parametrize("reward", ["sparsity", "proximity", "plausibility", "none"])
def test_nice_agrees_with_its_paper_step_by_step(reward, hold, fitted, answers, small_task, small_network):
    name = "NICE" + ("" if reward == "sparsity" else f"-{reward.upper()}") + ("-HELD" if hold else "")

    def error(row):
        with torch.no_grad():
            again = fitted(name).autoencoder_(torch.tensor(row)).numpy()
        return ((again - row) ** 2).mean()

    for z, answer in zip(factuals(small_task, small_network), answers(name), strict=True):
        assert np.array_equal(answer, nice_by_the_book(small_task, small_network, z, reward, hold, error))


def test_the_rewards_of_nice_differ(answers):
    names = ["NICE", "NICE-PROXIMITY", "NICE-PLAUSIBILITY", "NICE-NONE"]
    assert len({np.stack(answers(name)).tobytes() for name in names}) == 4


def test_nice_with_immutables_held_has_no_answer_where_no_row_can_have_one(small_task):
    """The label follows the immutable age alone."""

    class OfAge:
        def probability_of(self, Z):
            return Z[:, 0]

        def label_of(self, Z):
            return (Z[:, 0] > 0.5).astype(np.intp)

    young = small_task.Z[small_task.Z[:, 0] < 0.4][:3]
    assert create("NICE-HELD").fit(small_task, OfAge(), 0).explain(young) == [None] * 3


def test_face_returns_rows_of_the_table(answers, small_task):
    rows = {row.tobytes() for row in small_task.Z}
    for name in ("FACE-EPSILON", "FACE-KNN"):
        assert all(answer.tobytes() in rows for answer in answers(name) if answer is not None)


def test_growing_spheres_draws_within_the_shell(small_task):
    from onbmacf.bench.methods.growing_spheres import _draw

    z = np.full(small_task.Z.shape[1], 0.5)
    for block, levelled in zip(small_task.blocks, small_task.has_levels, strict=True):
        if levelled:
            z[block] = 0.0
            z[block.start] = 1.0
    points = _draw(small_task, z, 0.2, 0.4, np.random.default_rng(0))
    distance = np.sqrt((feature_differences(z[np.newaxis], points, small_task.blocks) ** 2).sum(axis=1))
    assert distance.min() >= 0.2
    assert distance.max() <= 0.4


def test_growing_spheres_leaves_no_smallest_change_to_put_back(answers, small_task, small_network):
    for z, answer in zip(factuals(small_task, small_network), answers("GS"), strict=True):
        differences = feature_differences(z[np.newaxis], answer[np.newaxis], small_task.blocks)[0]
        smallest = int(np.where(differences > 0, differences, np.inf).argmin())
        reverted = answer.copy()
        reverted[small_task.blocks[smallest]] = z[small_task.blocks[smallest]]
        assert small_network.label_of(reverted[np.newaxis])[0] == 0
