"""Scikit-learn pipelines on raw tables, trained once and kept as files, and the rows that they are asked to explain.

    table name, model name  ->  Case: the table, the pipeline, the rows without the desired label

Text columns are one-hot encoded and numbers standardised, as a caller would do it; a table without text has only the
scaler before the model. Everything has one thread.
"""

import hashlib
import os
import pickle
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

TABLES = {"saheart": "heart", "titanic": "titanic", "adult": "adult", "heloc": "heloc"}
MODELS = {
    "logistic": "logistic regression",
    "forest": "random forest of 100",
    "boosting": "HistGradientBoosting",
    "xgboost": "xgboost 100 x 4",
    "network": "32-16 network",
}
TARGET = 1  # the label to reach
SEED = 0
MANY_ROWS = 5000  # from here on a network may stop early; a tenth of a small table says too little about when
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
ONE_THREAD = dict.fromkeys(THREADS, "1")


class Counted:
    """A pipeline that counts its calls and the rows in them; all else is the pipeline's own."""

    def __init__(self, pipeline):
        self.pipeline = pipeline
        self.classes_ = pipeline.classes_
        self.reset()

    def reset(self):
        """Count from 0."""
        self.n_calls = self.n_rows = 0

    def predict(self, rows):
        """Return the label of each row."""
        return self._counted(self.pipeline.predict, rows)

    def predict_proba(self, rows):
        """Return the probabilities of the labels of each row."""
        return self._counted(self.pipeline.predict_proba, rows)

    def _counted(self, ask, rows):
        self.n_calls += 1
        self.n_rows += len(rows)
        return ask(rows)


@dataclass(frozen=True, eq=False)
class Case:
    """One table and one pipeline, for all methods."""

    task: object  # onbmacf.bench's Task
    pipeline: object

    @cached_property
    def labels(self):
        """The pipeline's label of each row."""
        return np.asarray(self.pipeline.predict(self.task.table))

    @property
    def digest(self):
        """What tells apart pipelines that label the table differently."""
        return hashlib.sha256(self.labels.astype(np.int8).tobytes()).hexdigest()[:16]

    def factuals(self, most):
        """Return the first rows, in file order, that do not have the desired label."""
        return np.flatnonzero(self.labels != TARGET)[:most]

    def neighbour_shares(self, points):
        """Return the share of the desired label among the 5 rows nearest to each encoded point."""
        from onbmacf.bench.metrics import ynn

        return ynn(points, self._index, self.labels, TARGET)

    @cached_property
    def _index(self):
        from sklearn.neighbors import NearestNeighbors

        return NearestNeighbors().fit(self.task.Z)


def load_case(table, model, cache):
    """Return a case; its pipeline is read from the cache, or trained and kept there."""
    from onbmacf.bench.datasets import load_task

    task = load_task(table)
    path = Path(cache) / "pipelines" / f"{table}-{model}-{stamp()}.pickle"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(pickle.dumps(pipeline_of(task.table, model).fit(task.table, task.y)))
        part.replace(path)
    return Case(task, pickle.loads(path.read_bytes()))


def stamp():
    """Return the versions that a pickled pipeline depends on."""
    return "-".join(version(name) for name in ("scikit-learn", "xgboost", "numpy"))


def pipeline_of(table, model):
    """Return a pipeline that is not trained yet."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    text, numbers = by_type(table)
    spread = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    mixed = ColumnTransformer([("text", spread, text), ("numbers", StandardScaler(), numbers)])
    return make_pipeline(mixed if text else StandardScaler(), estimator(model, len(table)))


def by_type(table):
    """Return the names of the text columns and of the numeric ones."""
    numbers = [name for name in table.columns if pd.api.types.is_numeric_dtype(table[name])]
    return [name for name in table.columns if name not in numbers], numbers


def estimator(model, n_rows):
    """Return a classifier with one thread and a fixed seed."""
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from xgboost import XGBClassifier

    makers = {
        "logistic": lambda: LogisticRegression(max_iter=1000),
        "forest": lambda: RandomForestClassifier(100, random_state=SEED, n_jobs=1),
        "boosting": lambda: HistGradientBoostingClassifier(random_state=SEED),
        "xgboost": lambda: XGBClassifier(n_estimators=100, max_depth=4, random_state=SEED, n_jobs=1),
        "network": lambda: MLPClassifier((32, 16), early_stopping=n_rows > MANY_ROWS, random_state=SEED),
    }
    return makers[model]()
