"""The problems, and the answers that are compared with their optima.

    name, kind       ->  problem_of  ->  Problem (task, model, factuals, what each feature may become)
    problem, method  ->  explained   ->  Answers (per factual: distance, changes, or why there is none)

Problems: four tables, five models trained on each, the first rows that a model labels 0. Methods: this package at some
settings, and the benchmark's others. Answers are brought into the set that the optimum is taken over: a fractional
value of a whole number is rounded to the nearest whole number or, where the label is lost, away from the factual. What
still has another label, leaves a range or changes a fixed feature is no answer to this question, and counted as such.
"""

import hashlib
import pickle
import time
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

SEED = 0
OURS = {
    "dial 0": {"plausibility": 0},
    "default": {},
    "dial 0 by labels": {"plausibility": 0},
    "default by labels": {},
    "paper": {"strategy": "paper"},
}
CHANGED = 1e-9
SLIGHT = 1e-6  # how far a value may be outside its range by floating point alone
# Two features per table that a person cannot change, or that others decide.
FIXED = {
    "saheart": ("age", "famhist"),
    "heloc": ("ExternalRiskEstimate", "MSinceOldestTradeOpen"),
    "titanic": ("gender", "age"),
    "adult": ("age", "sex"),
}
KINDS = ("logistic", "tree", "forest", "boosting", "network")


@dataclass(frozen=True, eq=False)
class Feature:
    """What the optimum may do with a feature."""

    block: slice  # its columns of the encoded table
    is_group: bool  # a category: one column per level
    is_whole: bool  # whole numbers, ranks and binaries
    is_fixed: bool
    span: float
    grid: np.ndarray | None  # encoded values of a whole number


def models():
    """Return the five models, untrained, by name."""
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.tree import DecisionTreeClassifier

    return {
        "logistic": LogisticRegression(max_iter=1000),
        "tree": DecisionTreeClassifier(max_depth=6, random_state=SEED),
        "forest": RandomForestClassifier(10, max_depth=5, random_state=SEED),
        "boosting": GradientBoostingClassifier(n_estimators=30, max_depth=3, random_state=SEED),
        "network": MLPClassifier((8, 4), max_iter=300, random_state=SEED),
    }


@dataclass(frozen=True, eq=False)
class Problem:
    """One model on one table, with or without fixed features."""

    table: str
    kind: str
    is_fixed: bool
    task: Any
    estimator: Any
    rows: np.ndarray
    features: tuple

    @property
    def name(self):
        """The name of its files."""
        return f"{self.table}-{self.kind}-{'fixed' if self.is_fixed else 'free'}"

    def label_of(self, Z):
        """Return the model's labels, as the benchmark asks for them."""
        return (self.estimator.predict_proba(Z)[:, 1] > 0.5).astype(np.intp)

    def key(self, row):
        """Return a hash of all that an optimum depends on but the solver."""
        digest = hashlib.sha256(f"{self.kind} {self.table}".encode())
        for array in parameters_of(self.estimator):
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(self.task.Z[row].tobytes())
        digest.update(repr([(f.block, f.is_fixed, f.is_whole, f.span) for f in self.features]).encode())
        return digest.hexdigest()[:20]


def parameters_of(estimator):
    """Return the arrays that decide a model's labels."""
    if hasattr(estimator, "coefs_"):
        return [*estimator.coefs_, *estimator.intercepts_]
    if hasattr(estimator, "coef_"):
        return [estimator.coef_, estimator.intercept_]
    parts = np.ravel(getattr(estimator, "estimators_", [estimator]))
    return [array for part in parts for array in (part.tree_.feature, part.tree_.threshold, part.tree_.value)]


def load_table(name, is_fixed, data_dir=None):
    """Return a table of the paper's size as a Task whose only immutable features are the two above, or none."""
    from onbmacf.bench.datasets import load_task

    return with_fixed(load_task(name, data_dir, paper_sizes=True), FIXED[name] if is_fixed else ())


def with_fixed(task, names):
    """Return a Task with these immutable features and no others."""
    features = tuple(replace(feature, immutable=feature.name in names) for feature in task.schema.features)
    schema = replace(task.schema, features=features)
    space = replace(task.space, form=replace(task.space.form, schema=schema))
    return replace(task, schema=schema, space=space)


def features_of(task):
    """Return what each feature of a table may become."""
    space = task.space
    found = []
    for place, feature in enumerate(task.schema.features):
        is_group, is_whole = feature.kind == "categorical", feature.kind not in ("categorical", "continuous")
        span = float(space.span[place])
        grid = np.arange(round(span) + 1) / span if is_whole else None
        found.append(Feature(space.blocks[place], is_group, is_whole, feature.immutable, span, grid))
    return tuple(found)


def problem_of(task, kind, is_fixed, n_factuals, folder):
    """Return a problem; its model is read from the folder, or trained and written there."""
    path = folder / f"model-{task.name}-{kind}.pkl"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(models()[kind].fit(task.Z, task.y)))
    return problem_with(task, kind, is_fixed, n_factuals, pickle.loads(path.read_bytes()))


def problem_with(task, kind, is_fixed, n_factuals, estimator):
    """Return the problem of a trained model: the first rows, in file order, without the target label."""
    problem = Problem(task.name, kind, is_fixed, task, estimator, np.empty(0, dtype=int), features_of(task))
    rows = np.flatnonzero(problem.label_of(task.Z) != task.target)[:n_factuals]
    return replace(problem, rows=rows)


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


def explained(problem, method):
    """Return a method's answers, or the reason why it does not run on this model."""
    if method in OURS:
        return _ours(problem, OURS[method], Labels if method.endswith("by labels") else RowModel)
    return _other(problem, method)


def _ours(problem, options, model_of):
    from onbmacf import ONBMACF

    task = problem.task
    explainer = ONBMACF(**options).fit(task.table, model_of(problem), schema=task.schema)
    started = time.process_time()
    answers = explainer.explain(task.table.iloc[problem.rows], target=task.target, min_probability=0)
    seconds = time.process_time() - started
    points: list[Any] = [None] * len(problem.rows)
    for line, encoded in zip(answers.batch.factual, task.space.encode(answers.batch.values), strict=True):
        points[line] = encoded
    return _judged(problem, points, answers.n_questions / len(problem.rows), seconds)


def _other(problem, method):
    from onbmacf.bench.methods import create
    from onbmacf.bench.protocol import EstimatorModel

    found = create(method)
    if found.needs_gradient and problem.kind != "network":
        return "needs gradients"
    estimator = problem.estimator
    model = CountingModel(_torch_network(estimator) if found.needs_gradient else EstimatorModel(estimator))
    found.fit(problem.task, model, SEED)
    model.asked = 0
    started = time.process_time()
    points = found.explain(problem.task.Z[problem.rows])
    seconds = time.process_time() - started
    points = [None if point is None else np.atleast_2d(point)[0] for point in points]
    return _judged(problem, points, model.asked / len(problem.rows), seconds)


def _torch_network(estimator):
    """Return the benchmark's network with the weights of a scikit-learn one: its scores are 0 and the logit."""
    import torch

    from onbmacf.bench.network import Network, forward_net

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
    for is_away in (False, True):
        tried = _whole(problem, z, point, is_away)
        if problem.label_of(tried[np.newaxis])[0] == problem.task.target:
            return tried
    return None


def _whole(problem, z, point, is_away):
    """Return the point with whole numbers at the nearest, or at the next one on the far side from the factual's own."""
    rounded = np.clip(point, 0.0, 1.0)
    for feature in problem.features:
        column = feature.block.start
        if feature.is_whole and abs(point[column] - z[column]) > CHANGED:
            value, own = rounded[column] * feature.span, z[column] * feature.span
            outwards = np.ceil(value - SLIGHT) if value > own else np.floor(value + SLIGHT)
            step = int(outwards if is_away else np.round(value))
            rounded[column] = feature.grid[min(max(step, 0), len(feature.grid) - 1)]
    return rounded
