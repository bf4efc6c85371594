"""The methods that are compared with the optimum: this package at three settings, and the benchmark's others.

    problem, method  ->  explained  ->  Answers (per factual: distance, changes, or why there is none)

Answers are brought into the set that the optimum is taken over: a fractional value of a whole number is rounded to the
nearest whole number or, where the label is lost, away from the factual. What still has another label, leaves a range
or changes a fixed feature is no answer to this question, and is counted as such.
"""

import time
from typing import Any, NamedTuple

import numpy as np

OURS = {
    "dial 0": {"plausibility": 0},
    "default": {},
    "dial 0 by labels": {"plausibility": 0},
    "default by labels": {},
    "paper": {"strategy": "paper"},
}
CHANGED = 1e-9
SLIGHT = 1e-6  # how far a value may be outside its range, or an optimum above an answer, by floating point alone


class Answers(NamedTuple):
    """One entry per factual."""

    distance: np.ndarray  # NaN where there is no answer
    n_changes: np.ndarray
    is_outside: np.ndarray  # an answer was given, but not to this question
    asked: float  # points asked of the model per factual
    seconds: float  # of CPU time for all factuals, without fit


class Labels:
    """A model of encoded rows, asked with the table's own rows, that tells no more than labels."""

    def __init__(self, problem):
        self.problem = problem

    def predict(self, rows):
        """Return the labels."""
        return self.problem.label_of(self.problem.task.space.encode(rows))


class RowModel(Labels):
    """The same with probabilities, as models have them."""

    classes_ = np.array([0, 1])

    def predict_proba(self, rows):
        """Return the probabilities of both labels."""
        return self.problem.estimator.predict_proba(self.problem.task.space.encode(rows))


class CountingModel:
    """A benchmark's Model that counts the rows it is asked about."""

    def __init__(self, model):
        self.model, self.asked = model, 0

    def label_of(self, Z):
        """Return the labels."""
        self.asked += len(Z)
        return self.model.label_of(Z)

    def probability_of(self, Z):
        """Return the probability of label 1."""
        self.asked += len(Z)
        return self.model.probability_of(Z)

    def __getattr__(self, name):
        return getattr(self.model, name)


def explained(problem, method, seed=0):
    """Return a method's answers, or the reason why it does not run on this model."""
    if method not in OURS:
        return _other(problem, method, seed)
    return _ours(problem, OURS[method], Labels if method.endswith("by labels") else RowModel)


def _ours(problem, options, model_of):
    from onbmacf import ONBMACF

    task = problem.task
    explainer = ONBMACF(**options).fit(task.table, model_of(problem), schema=task.schema)
    started = time.process_time()
    answers = explainer.explain(task.table.iloc[problem.rows], target=task.target)
    seconds = time.process_time() - started
    batch = answers.batch
    points: list[Any] = [None] * len(problem.rows)
    for line, encoded in zip(batch.factual, task.space.encode(batch.values), strict=True):
        points[line] = encoded
    return _judged(problem, points, answers.n_questions / len(problem.rows), seconds)


def _other(problem, method, seed):
    from onbmacf.bench.methods import create

    found = create(method)
    if found.needs_gradient and problem.kind != "network":
        return "needs gradients"
    model = CountingModel(_bench_model(problem, found.needs_gradient))
    found.fit(problem.task, model, seed)
    model.asked = 0
    started = time.process_time()
    points = found.explain(problem.task.Z[problem.rows])
    seconds = time.process_time() - started
    points = [None if point is None else np.atleast_2d(point)[0] for point in points]
    return _judged(problem, points, model.asked / len(problem.rows), seconds)


def _bench_model(problem, with_gradient):
    from onbmacf.bench.protocol import EstimatorModel

    return _torch_network(problem.estimator) if with_gradient else EstimatorModel(problem.estimator)


def _torch_network(estimator):
    """Return the benchmark's network with the weights of a scikit-learn one: its scores are 0 and the logit."""
    import torch

    from onbmacf.bench._torch import forward_net
    from onbmacf.bench.network import Network

    sizes = [estimator.coefs_[0].shape[0], *(len(offsets) for offsets in estimator.intercepts_[:-1]), 2]
    module = forward_net(sizes)
    layers = [layer for layer in module if hasattr(layer, "weight")]
    with torch.no_grad():
        for place, layer in enumerate(layers):
            weights, offsets = estimator.coefs_[place].T, estimator.intercepts_[place]
            if place == len(layers) - 1:
                weights, offsets = np.vstack([0 * weights, weights]), np.append(0.0, offsets)
            layer.weight.copy_(torch.tensor(weights))
            layer.bias.copy_(torch.tensor(offsets))
    return Network(module.requires_grad_(False).eval())


def _judged(problem, points, asked, seconds):
    """Return what the answers cost, those outside the question's set left out."""
    count = len(problem.rows)
    distance, n_changes, is_outside = np.full(count, np.nan), np.full(count, np.nan), np.zeros(count, dtype=bool)
    for place, (row, point) in enumerate(zip(problem.rows, points, strict=True)):
        if point is None:
            continue
        z = problem.task.Z[row]
        kept = within(problem, z, np.asarray(point, dtype=float))
        is_outside[place] = kept is None
        if kept is not None:
            moved = np.array([np.abs(kept[f.block] - z[f.block]).max() for f in problem.features])
            distance[place], n_changes[place] = moved.sum(), (moved > CHANGED).sum()
    return Answers(distance, n_changes, is_outside, asked, seconds)


def within(problem, z, point):
    """Return an answer with whole numbers whole, or None where it is none to this question."""
    if (point < -SLIGHT).any() or (point > 1 + SLIGHT).any():
        return None
    for feature in problem.features:
        if feature.is_fixed and np.abs(point[feature.block] - z[feature.block]).max() > CHANGED:
            return None
    for whole in (lambda value, own: np.round(value), _away):
        tried = _whole(problem, z, point, whole)
        if problem.label_of(tried[np.newaxis])[0] == problem.task.target:
            return tried
    return None


def _away(value, own):
    """Return the whole number next to a value, on the far side from the factual's own."""
    return np.ceil(value - SLIGHT) if value > own else np.floor(value + SLIGHT)


def _whole(problem, z, point, whole):
    rounded = np.clip(point, 0.0, 1.0)
    for feature in problem.features:
        column = feature.block.start
        if feature.is_whole and abs(point[column] - z[column]) > CHANGED:
            step = int(whole(rounded[column] * feature.span, z[column] * feature.span))
            rounded[column] = feature.grid[min(max(step, 0), len(feature.grid) - 1)]
    return rounded
