"""Small networks as arithmetic, and as one row sees them.

MLPClassifier  ->  read_network  ->  Network, the same scores as the estimator's own
Network, a row's choices  ->  Network.layers  ->  Layers, for the search over boxes
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from onbmacf._base.arrays import Matrix, Rows
from onbmacf._prove.values import NotKnownError

OPERATIONS = 16  # with whose rounding a unit is charged beside its own sum
NEAR = 1e-9  # two ways to the same probability
ACTIVATIONS: dict[str, Callable[[Matrix], Matrix]] = {
    "identity": lambda sums: sums,
    "logistic": expit,
    "relu": lambda sums: np.maximum(sums, 0.0),
    "tanh": np.tanh,
}


class Layers(NamedTuple):
    """A network as one row sees it: what each choice adds to the first layer's sums, and the layers after it."""

    given: Matrix  # choices x units of the first layer
    fixed: Matrix  # what the units of the first layer get whatever is chosen
    is_line: Rows  # per feature: 1 where its choices lie on one line, in order
    line: Matrix  # features x units of the first layer: the direction of such a line
    along: Matrix  # per choice of such a feature: how far along it lies
    sizes: Rows  # units per layer, the first one first; the last are the conditions
    start: Rows  # where each layer's units begin among all units
    weights: Matrix  # of the layers after the first, one after the other: units of the layer before x units
    at: Rows  # where the weights of each layer begin; of the first, nothing
    bias: Matrix  # of all units; of the first layer, nothing


@dataclass(frozen=True, eq=False)
class Network:
    """Layers of units, the last one without: its sums are the scores."""

    words: str
    classes: Any
    weights: list[Matrix]  # per layer: columns or units of the layer before x units
    bias: list[Matrix]
    own_scores: Callable[[Matrix], Matrix]  # the model's own, from columns
    size: Matrix  # the largest number in each column
    unit: float  # rounding error of one operation
    link: str = "softmax"
    activation: str = "relu"  # of the units before the last layer, in scikit-learn's words

    @property
    def offset(self) -> Matrix:
        """What is added to the scores: nothing, the last layer does."""
        return np.zeros(len(self.bias[-1]))

    @property
    def error(self) -> float:
        """The largest difference that rounding makes to a score, and to a bound of one."""
        largest, n_summed = self.size, 0
        for weights, bias in zip(self.weights, self.bias, strict=True):
            largest, n_summed = largest @ np.abs(weights) + np.abs(bias), n_summed + len(weights) + OPERATIONS
        return 4.0 * self.unit * n_summed * float(largest.max())

    def scores(self, columns: Matrix) -> Matrix:
        """Return the scores of rows of columns."""
        found = columns @ self.weights[0] + self.bias[0]
        for weights, bias in zip(self.weights[1:], self.bias[1:], strict=True):
            found = ACTIVATIONS[self.activation](found) @ weights + bias
        return found

    def layers(self, given: Matrix, fixed: Matrix, lines: tuple[Rows, Matrix, Matrix], conditions: Matrix) -> Layers:
        """Return the layers that lead from what choices add to the first one's sums to the sums of the conditions."""
        if self.activation != "relu":
            raise NotKnownError(f"a network of {self.activation!r} units is not known")
        weights = [*self.weights[1:-1], self.weights[-1] @ conditions]
        bias = [np.zeros(len(fixed)), *self.bias[1:-1], self.bias[-1] @ conditions]
        sizes = np.array([len(own) for own in bias])
        at = np.cumsum([0, 0, *(own.size for own in weights)])[: len(sizes)]
        flat = np.concatenate([np.ascontiguousarray(own).ravel() for own in weights])
        start = np.cumsum([0, *sizes])[: len(sizes)]
        return Layers(given, fixed, *lines, sizes, start, flat, at, np.concatenate(bias))


def read_network(model: Any, columns: Matrix, size: Matrix) -> Network:
    """Read scikit-learn's network."""
    if model.out_activation_ not in ("logistic", "softmax") or getattr(model, "_label_binarizer", None) is None:
        raise NotKnownError("this kind of network is not known")
    if model._label_binarizer.y_type_.startswith("multilabel"):
        raise NotKnownError("the model has several outputs")
    weights, bias = ([own.astype(np.float64) for own in every] for every in (model.coefs_, model.intercepts_))
    if len(weights) < 2:
        raise NotKnownError("a network without hidden layers is not known")
    if model.n_outputs_ == 1:  # the sum of the second class against the first
        weights[-1], bias[-1] = np.pad(weights[-1], ((0, 0), (1, 0))), np.pad(bias[-1], (1, 0))
    unit = float(np.finfo(model.coefs_[0].dtype).eps)

    def own_scores(rows: Matrix) -> Matrix:
        """Return the scores behind the model's own probabilities: those of the structure where they agree."""
        scores = network.scores(rows)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        is_same = np.abs(shares - model.predict_proba(rows)).max(axis=1) <= max(NEAR, 64 * unit)
        return np.where(is_same[:, np.newaxis], scores, np.inf)

    network = Network("network", model.classes_, weights, bias, own_scores, size, unit, activation=model.activation)
    return network
