"""The models that speed is measured with, and the rows that they are asked to explain.

    table name, model name  ->  load_case  ->  Case: the table with its text, and a scikit-learn pipeline
    table name, kind        ->  load_numbers  ->  Numbers: the table as numbers, and a model that costs next to nothing

Pipelines encode text one-hot and standardise numbers, as a caller would do it; a table without text has only the scaler
before the model. Models of numbers are a network of three numpy products and a forest in onnxruntime. Both are trained
once and kept in the cache. Everything has one thread.
"""

import hashlib
import os
import pickle
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from common import SEED, TARGET

TABLES = {"saheart": "heart", "titanic": "titanic", "adult": "adult", "heloc": "heloc"}
MODELS = {
    "logistic": "logistic regression",
    "forest": "random forest of 100",
    "boosting": "HistGradientBoosting",
    "xgboost": "xgboost 100 x 4",
    "network": "32-16 network",
}
MANY_ROWS = 5000  # from here on a network may stop early; a tenth of a small table says too little about when


class Counted:
    """A model that counts its calls and the rows in them."""

    def __init__(self, model):
        self.model = model
        self.classes_ = model.classes_
        self.reset()

    def reset(self):
        """Count from 0."""
        self.n_calls = self.n_rows = 0

    def predict(self, rows):
        """Return the label of each row."""
        return self._counted(self.model.predict, rows)

    def predict_proba(self, rows):
        """Return the probabilities of the labels of each row."""
        return self._counted(self.model.predict_proba, rows)

    def _counted(self, ask, rows):
        self.n_calls += 1
        self.n_rows += len(rows)
        return ask(rows)


@dataclass(frozen=True, eq=False)
class Case:
    """One table and one pipeline, for all methods."""

    task: object  # onbmacf.bench's Task
    model: object
    schema = None

    @property
    def table(self):
        """The rows as the model takes them."""
        return self.task.table

    @property
    def y(self):
        """The true labels."""
        return self.task.y

    @cached_property
    def labels(self):
        """The model's label of each row."""
        return np.asarray(self.model.predict(self.table))

    @property
    def digest(self):
        """What tells apart models that label the table differently."""
        return hashlib.sha256(self.labels.astype(np.int8).tobytes()).hexdigest()[:16]

    def factuals(self, most):
        """Return the first rows, in file order, that do not have the desired label."""
        return np.flatnonzero(self.labels != TARGET)[:most]

    def take(self, rows):
        """Return some rows of the table."""
        return self.table.iloc[rows]

    def coded(self):
        """Return the table as numbers, text as codes, which columns are codes, and the cheapest function back."""
        text = set(by_type(self.table)[0])
        numbers = np.empty(self.table.shape)
        levels = {}
        for place, name in enumerate(self.table.columns):
            if name in text:
                numbers[:, place], found = pd.factorize(self.table[name])
                levels[place] = np.array(found, dtype=object)
            else:
                numbers[:, place] = self.table[name]

        def frame(rows):
            if not levels:
                return pd.DataFrame(rows, columns=self.table.columns, copy=False)
            values = rows.astype(object)
            for place, own in levels.items():
                values[:, place] = own[rows[:, place].astype(np.intp)]
            return pd.DataFrame(values, columns=self.table.columns, dtype=object)

        return numbers, list(levels), frame

    @cached_property
    def index(self):
        """The nearest rows of the encoded table."""
        from sklearn.neighbors import NearestNeighbors

        return NearestNeighbors().fit(self.task.Z)


def load_case(table, model, cache):
    """Return a case; its pipeline is read from the cache, or trained and kept there."""
    from onbmacf.bench.datasets import load_task

    task = load_task(table)
    versions = "-".join(version(name) for name in ("scikit-learn", "xgboost", "numpy"))
    path = Path(cache) / "pipelines" / f"{table}-{model}-{versions}.pickle"
    return Case(task, kept(path, lambda: pipeline_of(task.table, model).fit(task.table, task.y)))


def kept(path, make):
    """Return what a file holds; made and written there if it does not exist."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(pickle.dumps(make()))
        part.replace(path)
    return pickle.loads(path.read_bytes())


def pipeline_of(table, model):
    """Return a pipeline that is not trained yet."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    text, numbers = by_type(table)
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    mixed = ColumnTransformer([("text", one_hot, text), ("numbers", StandardScaler(), numbers)])
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


class Plain(NamedTuple):
    """A table as arrays, categories as codes, and what was trained on it: all that a process needs."""

    table: np.ndarray
    y: np.ndarray
    kinds: list  # per feature
    n_levels: np.ndarray  # 0 for numbers
    low: np.ndarray
    span: np.ndarray
    weights: object  # layers, or the bytes of an ONNX model


class Numbers(Case):
    """A table of numbers, as `Plain` in place of a task, and a model of them."""

    @cached_property
    def schema(self):
        """The columns of the array, named by their places."""
        from onbmacf import Feature, Schema

        levels = [tuple(range(n)) if n else None for n in self.task.n_levels.tolist()]
        each = enumerate(zip(self.task.kinds, levels, strict=True))
        return Schema(tuple(Feature(f"x{at}", kind, levels=own) for at, (kind, own) in each))

    def take(self, rows):
        """Return some rows of the table."""
        return self.table[rows]

    def coded(self):
        """Return the table, the columns that are codes, and nothing to be done to its rows."""
        return self.table, np.flatnonzero(self.task.n_levels).tolist(), lambda rows: rows


def load_numbers(table, kind, cache):
    """Return the case of a network or a forest; what is trained is read from the cache, or kept there."""
    plain = kept(Path(cache) / "numbers" / f"{table}-{kind}.pickle", lambda: trained(table, kind))
    return Numbers(plain, NumbersModel(plain, {"network": Network, "forest": Forest}[kind](plain.weights)))


def trained(table, kind):
    """Return a table with the weights of a model that is trained on it."""
    from onbmacf.bench.datasets import load_task

    task = load_task(table)
    kinds = [feature.kind for feature in task.schema.features]
    levels = [feature.levels if feature.kind in ("categorical", "binary") else () for feature in task.schema.features]
    numbers, n_levels = task.space.form.numbers(task.table), np.array([len(own) for own in levels])
    weights = {"network": trained_layers, "forest": trained_onnx}[kind](task)
    return Plain(numbers, task.y, kinds, n_levels, task.space.low, task.space.span, weights)


class NumbersModel:
    """Numbers (categories as codes)  ->  scaled and one-hot  ->  two probabilities."""

    classes_ = np.array([0, 1])

    def __init__(self, plain, scores):
        is_one_hot = np.array(plain.kinds) == "categorical"
        widths = np.where(is_one_hot, plain.n_levels, 1)
        self.starts, self.width = np.cumsum(widths) - widths, int(widths.sum())
        self.scaled, self.one_hot = np.flatnonzero(~is_one_hot), np.flatnonzero(is_one_hot)
        self.low, self.span, self.scores = plain.low[self.scaled], plain.span[self.scaled], scores

    def encode(self, numbers):
        """Scale the numbers, and give each level of a category a column."""
        Z = np.zeros((len(numbers), self.width))
        Z[:, self.starts[self.scaled]] = (numbers[:, self.scaled] - self.low) / self.span
        lines = np.arange(len(numbers))
        for feature in self.one_hot:
            Z[lines, self.starts[feature] + numbers[:, feature].astype(np.intp)] = 1.0
        return Z

    def predict_proba(self, numbers):
        """Return the probabilities of label 0 and label 1 of each row."""
        return self.scores(self.encode(np.asarray(numbers, dtype=np.float64)))

    def predict(self, numbers):
        """Return the label of each row."""
        return self.predict_proba(numbers).argmax(axis=1)


def trained_layers(task):
    """Return the weights and offsets of the benchmark's network."""
    from onbmacf.bench.network import trained_network

    layers = [layer for layer in trained_network(task, SEED).module if hasattr(layer, "weight")]
    return [(layer.weight.numpy().T, layer.bias.numpy()) for layer in layers]


class Network:
    """Layers with ReLU between them, and a softmax over two scores."""

    def __init__(self, layers):
        self.layers = layers

    def __call__(self, Z):
        """Return two probabilities per row."""
        for weights, bias in self.layers[:-1]:
            Z = np.maximum(Z @ weights + bias, 0.0)
        weights, bias = self.layers[-1]
        scores = Z @ weights + bias
        one = 1.0 / (1.0 + np.exp(np.clip(scores[:, 0] - scores[:, 1], -700, 700)))
        return np.column_stack([1.0 - one, one])


def trained_onnx(task):
    """Return a forest of 100 trees as the bytes of an ONNX model."""
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(100, min_samples_leaf=5, random_state=SEED, n_jobs=-1).fit(task.Z, task.y)
    return onnx_of(forest, task.Z.shape[1])


class Forest:
    """A tree ensemble in onnxruntime, on one thread."""

    def __init__(self, onnx):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(onnx, options, ["CPUExecutionProvider"])

    def __call__(self, Z):
        """Return two probabilities per row."""
        return self.session.run(["probabilities"], {"Z": Z.astype(np.float32)})[0].astype(np.float64)


def onnx_of(forest, width):
    """Return a forest as the bytes of an ONNX model with the input Z and the output probabilities."""
    from onnx import TensorProto, helper

    node = helper.make_node(
        "TreeEnsembleClassifier",
        ["Z"],
        ["label", "probabilities"],
        domain="ai.onnx.ml",
        post_transform="NONE",
        classlabels_int64s=[0, 1],
        **tree_arrays([estimator.tree_ for estimator in forest.estimators_]),
    )
    outputs = [
        helper.make_tensor_value_info("label", TensorProto.INT64, [None]),
        helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [None, 2]),
    ]
    inputs = [helper.make_tensor_value_info("Z", TensorProto.FLOAT, [None, width])]
    graph = helper.make_graph([node], "forest", inputs, outputs)
    opsets = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def tree_arrays(trees):
    """Return scikit-learn's trees as the lists that ONNX needs: one entry per node, leaves with their votes."""
    counts = [tree.node_count for tree in trees]
    ids = np.repeat(np.arange(len(trees)), counts)
    nodes = np.concatenate([np.arange(count) for count in counts])
    left, right = (np.concatenate([getattr(t, side) for t in trees]) for side in ("children_left", "children_right"))
    values = np.concatenate([tree.value[:, 0] / tree.value[:, 0].sum(axis=1, keepdims=True) for tree in trees])
    thresholds = np.concatenate([tree.threshold for tree in trees])
    # The largest float32 not above each threshold: `x <= t` then gives the same result for every float32 x.
    near = thresholds.astype(np.float32)
    near = np.where(near > thresholds, np.nextafter(near, np.float32(-np.inf)), near)
    leaf = left < 0
    return {
        "nodes_treeids": ids.tolist(),
        "nodes_nodeids": nodes.tolist(),
        "nodes_modes": np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_featureids": np.where(leaf, 0, np.concatenate([t.feature for t in trees])).tolist(),
        "nodes_values": near.tolist(),
        "nodes_truenodeids": np.where(leaf, 0, left).tolist(),
        "nodes_falsenodeids": np.where(leaf, 0, right).tolist(),
        "class_treeids": np.repeat(ids[leaf], 2).tolist(),
        "class_nodeids": np.repeat(nodes[leaf], 2).tolist(),
        "class_ids": np.tile([0, 1], leaf.sum()).tolist(),
        "class_weights": (values[leaf] / len(trees)).ravel().tolist(),
    }
