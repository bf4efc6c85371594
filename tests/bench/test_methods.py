"""Every registered method keeps the same promises; then each one's own."""

import random
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier

from onbmacf.bench.methods import REGISTRY, create
from onbmacf.bench.methods import cem as cem_module
from onbmacf.bench.methods import clue as clue_module
from onbmacf.bench.methods import cruds as cruds_module
from onbmacf.bench.metrics import feature_differences
from onbmacf.bench.protocol import EstimatorModel, factual_rows
from onbmacf.errors import ParameterError

FACTUALS = 8
KEEPING_IMMUTABLES = ["CRUDS", "FACE-EPSILON", "FACE-KNN", "GS"]


@pytest.fixture(autouse=True, scope="module")
def short_training():
    """Auto-encoders of the small task need few steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cem_module, "AUTOENCODER_STEPS", 200)
        patch.setattr(clue_module, "TRAINING_STEPS", 1000)
        patch.setattr(cruds_module, "TRAINING_STEPS", 800)
        patch.setattr(cruds_module, "ITERATIONS", 600)
        yield


def of_each(names):
    """Return a test's parameter `name`: the tests of a method share a worker, and what it has fitted."""
    marked = [pytest.param(name, marks=pytest.mark.xdist_group(f"method {name}")) for name in names]
    return pytest.mark.parametrize("name", marked)


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
    return random.getstate(), numpy_state[1].tobytes(), numpy_state[2], torch.get_rng_state().numpy().tobytes()


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
        assert answer is None or np.array_equal(answer[fixed], z[fixed])


@pytest.mark.long
@of_each(["DICE", "ONB-MACF"])
def test_several_counterfactuals_on_request(name, fitted, small_task, small_network):
    several = fitted(name).explain(factuals(small_task, small_network), 3)
    several = [np.atleast_2d(answer) for answer in several if answer is not None]
    assert max(map(len, several)) == 3
    for answer in several:
        assert len(np.unique(answer, axis=0)) == len(answer) <= 3
        assert (small_network.label_of(answer) == small_task.target).all()


def test_an_unknown_method_is_named():
    with pytest.raises(ParameterError, match="got 'LIME'"):
        create("LIME")


def nice_by_the_book(task, model, z):
    """NICE with loops, straight from its paper."""
    candidates = [
        row for row, y in zip(task.Z, task.y, strict=True) if y == 1 and model.label_of(row[np.newaxis])[0] == 1
    ]
    heom = [sum(feature_differences(z[np.newaxis], row[np.newaxis], task.blocks)[0]) for row in candidates]
    goal, current = candidates[int(np.argmin(heom))], z.copy()
    while model.label_of(current[np.newaxis])[0] != 1:
        tries = []
        for block in task.blocks:
            if not np.array_equal(current[block], goal[block]):
                tried = current.copy()
                tried[block] = goal[block]
                tries.append(tried)
        scores = [model.probability_of(tried[np.newaxis])[0] for tried in tries]
        current = tries[int(np.argmax(scores))]
    return current


def test_nice_agrees_with_its_paper_step_by_step(answers, small_task, small_network):
    for z, answer in zip(factuals(small_task, small_network), answers("NICE"), strict=True):
        assert np.array_equal(answer, nice_by_the_book(small_task, small_network, z))


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
