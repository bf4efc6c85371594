"""The problems: four tables, five models trained on each, the first rows that a model labels 0.

name, kind  ->  problem_of  ->  Problem (task, model, factuals, what each feature may become)
"""

import hashlib
import pickle
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

SEED = 0


@dataclass(frozen=True, eq=False)
class Feature:
    """What the optimum may do with a feature."""

    block: slice  # its columns of the encoded table
    is_group: bool  # a category: one column per level
    is_whole: bool  # whole numbers, ranks and binaries
    is_fixed: bool
    span: float
    grid: np.ndarray | None  # encoded values of a whole number


# Two features per table that a person cannot change, or that others decide.
FIXED = {
    "saheart": ("age", "famhist"),
    "heloc": ("ExternalRiskEstimate", "MSinceOldestTradeOpen"),
    "titanic": ("gender", "age"),
    "adult": ("age", "sex"),
}
TABLES = tuple(FIXED)


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


KINDS = ("logistic", "tree", "forest", "boosting", "network")


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
