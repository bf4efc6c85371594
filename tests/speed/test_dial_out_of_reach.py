"""The nearest answer that keeps the immutable features, against trying every point there is."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

pytest.importorskip("torch")
KINDS = ("integer", "continuous", "categorical", "integer")  # the last one is immutable
BLOCKS = (slice(0, 1), slice(1, 2), slice(2, 5), slice(5, 6))
SPAN, LOW = np.array([4.0, 2.5, 1.0, 3.0]), np.array([0.0, 0.25, 0.0, 0.0])
VALUES = (
    [[step / 4] for step in range(5)],
    [[(step / 10 - 0.25) / 2.5] for step in range(3, 28)],
    np.eye(3).tolist(),
)


@pytest.fixture
def task():
    features = [SimpleNamespace(kind=kind, immutable=at == 3) for at, kind in enumerate(KINDS)]
    space = SimpleNamespace(span=SPAN, low=LOW, readable=(None, 1, None, None))
    return SimpleNamespace(blocks=BLOCKS, schema=SimpleNamespace(features=features), space=space, target=1)


def model_of(name):
    rng = np.random.default_rng(4)
    Z = np.column_stack([rng.random((400, 2)), np.eye(3)[rng.integers(0, 3, 400)], rng.random(400)])
    y = (Z @ np.array([1.0, 1.5, 0.4, 0.0, 0.3, 0.5]) > 1.7).astype(int)
    if name == "plane":
        return SimpleNamespace(label_of=lambda Z: (Z @ np.array([1.0, 1.5, 0.4, 0.0, 0.3, 0.5]) > 1.7).astype(int))
    forest = RandomForestClassifier(4, max_depth=3, random_state=0)  # few splits: values between them are alike
    makers = {"forest": forest, "boosting": HistGradientBoostingClassifier(max_bins=6)}
    estimator = makers[name].fit(Z, y)
    return SimpleNamespace(estimator=estimator, label_of=estimator.predict)


@pytest.mark.parametrize("name", ["plane", "forest", "boosting"])
def test_the_nearest_is_that_of_all_points(task, name):
    from dial_out_of_reach import nearest

    model = model_of(name)
    for number in range(6):
        rng = np.random.default_rng(number)
        place = [rng.integers(0, len(values)) for values in VALUES]
        z = np.concatenate([np.array(values[at]) for values, at in zip(VALUES, place, strict=True)] + [[1 / 3]])
        every = np.array([np.concatenate([*(np.array(part) for part in parts), [1 / 3]]) for parts in product(*VALUES)])
        apart = sum(np.abs(every[:, block] - z[block]).max(axis=1) for block in BLOCKS)
        least = apart[(model.label_of(every) == 1) & (apart > 0)].min()
        if model.label_of(z[np.newaxis])[0] == 1:
            continue
        assert nearest(task, model, z, least + 0.3)[0] == pytest.approx(least)
        assert nearest(task, model, z, least)[0] == pytest.approx(least)
