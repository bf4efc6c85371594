"""What is known of a model as arithmetic: a sum of trees, a sum of one term per column, or a small network.

    reader  ->  Structure  ->  proofs (`prove.py`), copies (`sums.py`)

A score per class; the label is the class with the highest.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._prove.columns import NotKnownError

OPERATIONS = 16  # with whose rounding a unit is charged beside its own sum
NEAR = 1e-9  # two ways to the same probability
DOUBLE, SINGLE = 2.0**-52, 2.0**-23  # rounding error of one operation
ACTIVATIONS: dict[str, Callable[[Matrix], Matrix]] = {
    "identity": lambda sums: sums,
    "logistic": expit,
    "relu": lambda sums: np.maximum(sums, 0.0),
    "tanh": np.tanh,
}


# --- networks ---------------------------------------------------------------------------------------------------------


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
        return 4.0 * self.unit * n_summed * max(float(largest.max()), 1.0)  # at 0, a probability rounds to a half

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
        sizes = np.array([len(layer) for layer in bias])
        at = np.cumsum([0, 0, *(layer.size for layer in weights)])[: len(sizes)]
        flat = np.concatenate([np.ascontiguousarray(layer).ravel() for layer in weights])
        start = np.cumsum([0, *sizes])[: len(sizes)]
        return Layers(given, fixed, *lines, sizes, start, flat, at, np.concatenate(bias))


# --- trees and terms --------------------------------------------------------------------------------------------------


class Condition(NamedTuple):
    """A column lies above `low` and is at most `high`."""

    column: int
    low: float = -np.inf
    high: float = np.inf


class Tree(NamedTuple):
    """One tree, an entry per node, the root first. A row goes left where its column is at most the threshold."""

    left: Rows  # -1 for a leaf
    right: Rows
    column: Rows
    threshold: Matrix
    values: Matrix  # nodes x classes: what a leaf adds to the scores
    lacking: Mask | None = None  # whether a missing value goes left; None: it goes right

    def goes_left(self, nodes: Rows, columns: Matrix) -> Mask:
        """Say of each row, rounded as the trees round it, whether it goes left at the node given with it."""
        seen = columns[np.arange(len(columns)), self.column[nodes]]
        goes_left = np.asarray(seen <= self.threshold[nodes])
        return goes_left if self.lacking is None else goes_left | (np.isnan(seen) & self.lacking[nodes])


@dataclass(frozen=True, eq=False)
class Trees:
    """A sum of trees."""

    words: str
    classes: Any
    trees: list[Tree]
    offset: Matrix  # per class
    is_single: bool  # whether columns are rounded to single precision before they are compared
    link: str  # how scores become probabilities: "share", "softmax" or nothing known
    own_scores: Callable[[Matrix], Matrix]  # the model's own, from columns
    unit: float = DOUBLE  # rounding error of the model's sums
    undivided: list[Matrix] | None = None  # what the nodes of each tree add, where the model adds up, then divides
    is_double: bool = False  # whether columns of single precision would be compared with other thresholds
    rules: list[tuple[Condition, ...]] | None = None  # of a rule model, in its own order: a set has a tree for each

    @property
    def error(self) -> float:
        """The largest difference that rounding makes to a score."""
        highest = sum(float(np.abs(tree.values).max(initial=0.0)) for tree in self.trees)
        return self.unit * (len(self.trees) + 8) * (highest + float(np.abs(self.offset).max()) + 1.0)

    def rounded(self, columns: Matrix) -> Matrix:
        """Return columns as the trees compare them."""
        with np.errstate(over="ignore"):
            return columns.astype(np.float32).astype(np.float64) if self.is_single else columns

    def scores(self, columns: Matrix) -> Matrix:
        """Return the scores of rows of columns."""
        columns = self.rounded(columns)
        total = np.tile(self.offset, (len(columns), 1))
        for tree in self.trees:
            total += tree.values[leaves(tree, columns)]
        return total


@dataclass(frozen=True, eq=False)
class Additive:
    """A sum of one term per column."""

    words: str
    classes: Any
    weights: Matrix  # columns x classes
    offset: Matrix
    link: str
    own_scores: Callable[[Matrix], Matrix]
    size: float  # the largest number of any column
    unit: float = DOUBLE

    @property
    def error(self) -> float:
        """The largest difference that rounding makes to a score."""
        highest = float(np.abs(self.weights).sum(axis=0).max()) * self.size + float(np.abs(self.offset).max())
        return self.unit * (len(self.weights) + 8) * (highest + 1e-300)

    def scores(self, columns: Matrix) -> Matrix:
        """Return the scores of rows of columns."""
        return columns @ self.weights + self.offset


Structure = Trees | Additive | Network


def leaves(tree: Tree, columns: Matrix, start: Rows | None = None) -> Rows:
    """Return the leaf that each row ends at, from the root or from the node at which it starts."""
    node = np.zeros(len(columns), dtype=np.intp) if start is None else start.copy()
    for _ in range(len(tree.left)):
        inner = np.flatnonzero(tree.left[node] >= 0)
        if not len(inner):
            break
        at = node[inner]
        node[inner] = np.where(tree.goes_left(at, columns[inner]), tree.left[at], tree.right[at])
    return node


class Branch(NamedTuple):
    """A node of a tree that is being built; a leaf is the scores that it adds."""

    column: int
    threshold: float
    left: "Branch | Matrix"  # where the column is at most the threshold
    right: "Branch | Matrix"
    lacking: bool = False  # whether a missing value goes left


def grown(root: Branch | Matrix) -> Tree:
    """Return a tree, given its root."""
    lines: list[list[Any]] = []
    _write_down(root, lines)
    left, right, column, threshold, values, lacking = (np.array(part) for part in zip(*lines, strict=True))
    return Tree(left, right, column, threshold.astype(np.float64), values, lacking)


def _write_down(node: Branch | Matrix, lines: list[list[Any]]) -> int:
    """Append a node and all below; return its position."""
    here = len(lines)
    if not isinstance(node, Branch):
        lines.append([-1, -1, 0, 0.0, np.asarray(node, dtype=np.float64), False])
        return here
    lines.append([-1, -1, node.column, node.threshold, 0.0, node.lacking])
    lines[here][0] = _write_down(node.left, lines)
    lines[here][1] = _write_down(node.right, lines)
    lines[here][4] = np.zeros_like(lines[-1][4])
    return here


# --- of what a structure is made --------------------------------------------------------------------------------------


def two(margins: Any) -> Matrix:
    """Return scores per class; a single margin is that of the second class against the first."""
    margins = np.asarray(margins, dtype=np.float64)
    margins = margins.reshape(len(margins), -1)
    return np.column_stack([np.zeros(len(margins)), margins]) if margins.shape[1] == 1 else margins


def behind(scores: Matrix, shares: Any, unit: float = DOUBLE) -> Matrix:
    """Return scores where softmax makes of them the probabilities that a model says; infinite ones elsewhere."""
    is_same = np.abs(softmax(scores, axis=1) - np.asarray(shares)).max(axis=1) <= max(NEAR, 64 * unit)
    return np.where(is_same[:, np.newaxis], scores, np.inf)


def combined(structure: Structure, mixing: Matrix, plus: Matrix, **more: Any) -> Structure:
    """Return the structure whose scores are `scores @ mixing + plus`, those of the model's own included."""
    own = structure.own_scores
    more = {"own_scores": lambda columns: own(columns) @ mixing + plus, **more}
    if isinstance(structure, Trees):
        trees = [tree._replace(values=tree.values @ mixing) for tree in structure.trees]
        return replace(structure, trees=trees, offset=structure.offset @ mixing + plus, undivided=None, **more)
    if isinstance(structure, Additive):
        return replace(structure, weights=structure.weights @ mixing, offset=structure.offset @ mixing + plus, **more)
    weights, bias = [*structure.weights], [*structure.bias]
    weights[-1], bias[-1] = weights[-1] @ mixing, bias[-1] @ mixing + plus
    return replace(structure, weights=weights, bias=bias, **more)
