"""A model file that every environment can read, and the predict function that all compared methods call.

    numbers (categories as codes)  ->  scaled and one-hot  ->  network (npz) or forest (ONNX)  ->  two probabilities

Needs numpy, and onnxruntime for a forest. The network is three matrix products. A forest runs in onnxruntime, because
scikit-learn's own files do not load in other versions, and its calls take milliseconds for any number of rows.
"""

import time
from pathlib import Path

import numpy as np


class FileModel:
    """A model read from a folder; it counts its calls, rows and seconds."""

    classes_ = np.array([0, 1])

    def __init__(self, folder, kind):
        with np.load(Path(folder) / "encoding.npz") as arrays:
            self.low, self.span, self.n_levels = arrays["low"], arrays["span"], arrays["n_levels"]
        widths = np.where(self.n_levels > 0, self.n_levels, 1)
        self.starts, self.width = np.cumsum(widths) - widths, int(widths.sum())
        self.scaled, self.spread = np.flatnonzero(self.n_levels == 0), np.flatnonzero(self.n_levels > 0)
        self.scores = {"network": Network, "forest": Forest}[kind](Path(folder))
        self.n_calls = self.n_rows = 0
        self.seconds = 0.0

    def predict_proba(self, numbers):
        """Return the probabilities of label 0 and label 1 of each row."""
        start = time.perf_counter()
        answer = self.scores(self.encode(np.asarray(numbers, dtype=np.float64)))
        self.seconds += time.perf_counter() - start
        self.n_calls += 1
        self.n_rows += len(answer)
        return answer

    def predict(self, numbers):
        """Return the label of each row."""
        return self.predict_proba(numbers).argmax(axis=1)

    def encode(self, numbers):
        """Scale the numbers, and give each level of a category a column."""
        Z = np.zeros((len(numbers), self.width))
        Z[:, self.starts[self.scaled]] = (numbers[:, self.scaled] - self.low[self.scaled]) / self.span[self.scaled]
        lines = np.arange(len(numbers))
        for feature in self.spread:
            Z[lines, self.starts[feature] + numbers[:, feature].astype(np.intp)] = 1.0
        return Z


class Network:
    """Layers with ReLU between them, and a softmax over two scores."""

    def __init__(self, folder):
        with np.load(folder / "network.npz") as arrays:
            self.layers = [(arrays[f"w{k}"], arrays[f"b{k}"]) for k in range(len(arrays.files) // 2)]

    def __call__(self, Z):
        """Return two probabilities per row."""
        for weights, bias in self.layers[:-1]:
            Z = np.maximum(Z @ weights + bias, 0.0)
        weights, bias = self.layers[-1]
        scores = Z @ weights + bias
        one = 1.0 / (1.0 + np.exp(np.clip(scores[:, 0] - scores[:, 1], -700, 700)))
        return np.column_stack([1.0 - one, one])


class Forest:
    """A tree ensemble in onnxruntime, on one thread."""

    def __init__(self, folder):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(folder / "forest.onnx"), options, ["CPUExecutionProvider"])

    def __call__(self, Z):
        """Return two probabilities per row."""
        return self.session.run(["probabilities"], {"Z": Z.astype(np.float32)})[0].astype(np.float64)
