"""What a model sums over its columns, laid out for the kernels: trees by node or by leaf, or layers of units.

Structure, recipes  ->  sums_of  ->  the recipes of the columns that are summed over, and Sums
columns             ->  of       ->  sums per class; of two classes maybe one: the second's against the first
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._prove.columns import Recipe, Stage
from onbmacf._prove.kernels.evaluate import add_leaves, add_products, add_trees
from onbmacf._prove.structures import ACTIVATIONS, Network, Structure, Tree, Trees

TOGETHER = 64  # points that go down a tree together
MOST_LEAVES = 32  # of a tree whose leaves are bits
MOST_MASKS = 1 << 21  # entries: 8 MB; with more, the masks are farther away than the nodes
LOWEST = np.zeros(32, dtype=np.intp)  # the place of a single bit, by the highest bits of its product with a number
LOWEST[[((1 << bit) * 125613361 & 0xFFFFFFFF) >> 27 for bit in range(32)]] = range(32)
LARGEST = np.finfo(np.float64).max  # not below any number; below what stands for a missing value that goes right


class TreeSums(NamedTuple):
    """Trees, one after the other; nodes as `add_trees` takes them."""

    threshold: Matrix
    link: NDArray[np.longlong]
    shift: int
    roots: Rows
    place: Rows
    values: Matrix
    offset: Matrix
    n_averaged: int

    def of(self, columns: Matrix) -> Matrix:
        """Return the sums of what the trees add."""
        sums = np.empty((len(columns), len(self.offset)))
        sums[:] = self.offset
        at = np.empty(TOGETHER, dtype=np.intp)
        add_trees(columns, self.threshold, self.link, self.shift, self.roots, self.place, self.values, at, sums)
        return sums / self.n_averaged if self.n_averaged > 1 else sums


class LeafSums(NamedTuple):
    """The same for trees of few leaves, as `add_leaves` takes them."""

    threshold: Matrix  # those of each column, sorted
    start: Rows
    masks: NDArray[np.uint32]  # per column one line more than it has thresholds, an entry per tree
    first: Rows
    place: Rows
    values: Matrix  # of the leaves, tree by tree, from left to right
    offset: Matrix
    n_averaged: int

    def of(self, columns: Matrix) -> Matrix:
        """Return the sums of what the trees add."""
        sums = np.empty((len(columns), len(self.offset)))
        sums[:] = self.offset
        at, left = np.empty(len(self.start) - 1, dtype=np.intp), np.empty(len(self.place), dtype=np.uint32)
        given = columns, self.threshold, self.start, self.masks, LOWEST, self.first, self.place, self.values
        add_leaves(*given, at, left, sums)
        return sums / self.n_averaged if self.n_averaged > 1 else sums


class LayerSums(NamedTuple):
    """Layers of units; a linear model is the last one alone."""

    weights: list[Matrix]
    bias: list[Matrix]
    activation: str

    def of(self, columns: Matrix) -> Matrix:
        """Return the sums of the last layer."""
        for place, (weights, bias) in enumerate(zip(self.weights, self.bias, strict=True)):
            columns = ACTIVATIONS[self.activation](columns) if place else columns
            sums = np.empty((len(columns), len(bias)))
            sums[:] = bias
            add_products(columns, weights, sums)
            columns = sums
        return columns


Sums = TreeSums | LeafSums | LayerSums


def sums_of(structure: Structure, recipes: list[Recipe], lacks: Mask) -> tuple[list[Recipe], Sums]:
    """Lay a structure out; `lacks` says which columns may be missing."""
    if isinstance(structure, Trees):
        return _tree_sums(structure, recipes, lacks)
    if isinstance(structure, Network):
        return recipes, _layer_sums(structure.weights, structure.bias, structure.activation)
    return recipes, _layer_sums([structure.weights], [structure.offset], "identity")


def _layer_sums(weights: list[Matrix], bias: list[Matrix], activation: str) -> LayerSums:
    if weights[-1].shape[1] == 2 and not weights[-1][:, 0].any() and bias[-1][0] == 0:
        weights, bias = [*weights[:-1], weights[-1][:, 1:]], [*bias[:-1], bias[-1][1:]]
    weights, bias = ([np.ascontiguousarray(layer, dtype=np.float64) for layer in every] for every in (weights, bias))
    return LayerSums(weights, bias, activation)


def _tree_sums(structure: Trees, recipes: list[Recipe], lacks: Mask) -> tuple[list[Recipe], Sums]:
    """Lay trees out, and return the recipes of the columns that they split at.

    A column that may be missing is there twice, as the highest number and as the lowest: a node compares the one with
    which a missing value goes to its side, so that the kernel need not know of any.
    """
    offset = structure.offset
    values, n_averaged = _added(structure)
    is_one = n_averaged == 0 and len(offset) == 2
    slots = [_slots(tree, lacks) for tree in structure.trees]
    used = np.unique(np.concatenate(slots))
    shift = len(used).bit_length()
    roots, place, threshold, link, added = [0], [], [], [], []
    for tree, slot, added_by in zip(structure.trees, slots, values, strict=True):
        # A boosted tree adds to the scores of one class, a tree of a forest to all.
        first, width = (0, len(offset)) if n_averaged else (int(np.abs(added_by).max(axis=0).argmax()), 1)
        nodes, left = _by_level(tree)
        place.append(0 if is_one else first)
        threshold.append(np.where(tree.left < 0, np.inf, np.minimum(tree.threshold, LARGEST))[nodes])
        link.append((left + roots[-1] << shift) | np.searchsorted(used, slot)[nodes])
        added.append(added_by[nodes, 1:] if is_one else added_by[nodes, first : first + width])
        roots.append(roots[-1] + len(nodes))
    chosen = []
    for slot in used:
        lacking = Stage(fill=-np.inf if slot >= len(recipes) else np.inf, is_single=float(structure.is_single))
        chosen.append(recipes[slot % len(recipes)].then(lacking))
    trees = TreeSums(
        np.concatenate(threshold),
        np.concatenate(link).astype(np.longlong),
        shift,
        np.array(roots[:-1], dtype=np.intp),
        np.array(place, dtype=np.intp),
        np.ascontiguousarray(np.concatenate(added)),
        np.ascontiguousarray(offset[1:] - offset[0] if is_one else offset),
        n_averaged,
    )
    return chosen, _as_leaves(trees, len(used)) or trees


def _as_leaves(trees: TreeSums, n_columns: int) -> LeafSums | None:
    """Lay trees out by their leaves; None where one of them has too many, or the masks would be too large."""
    left, column = trees.link >> trees.shift, trees.link & ((1 << trees.shift) - 1)
    is_inner, n_trees = left != np.arange(len(left)), len(trees.roots)
    order = np.flatnonzero(is_inner)
    order = order[np.lexsort((trees.threshold[order], column[order]))]
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (trees.threshold[order[1:]] != trees.threshold[order[:-1]]) | (np.diff(column[order]) != 0)
    n_leaves, leaf = _leaves(left, is_inner, trees.roots)
    n_lines = int(is_new.sum()) + n_columns
    if n_leaves[trees.roots].max() > MOST_LEAVES or n_lines * n_trees > MOST_MASKS:
        return None
    # Who goes right at a node cannot reach the leaves on its left.
    gone = ((np.uint64(1) << n_leaves[left[order]]) - np.uint64(1)) << leaf[left[order]]
    tree_of = np.searchsorted(trees.roots, np.arange(len(left)), side="right") - 1
    masks = np.full((n_lines, n_trees), np.uint32(0xFFFFFFFF))
    np.bitwise_and.at(masks, (np.cumsum(is_new) + column[order], tree_of[order]), ~gone.astype(np.uint32))
    start = np.searchsorted(column[order[is_new]], np.arange(n_columns + 1)).astype(np.intp)
    for at in range(n_columns):
        lines = masks[start[at] + at : start[at + 1] + at + 1]
        np.bitwise_and.accumulate(lines, axis=0, out=lines)
    ends = np.flatnonzero(~is_inner)
    ends = ends[np.lexsort((leaf[ends], tree_of[ends]))]
    of_trees = n_leaves[trees.roots].astype(np.intp)
    parts = trees.threshold[order[is_new]], start, masks, np.cumsum(of_trees) - of_trees, trees.place
    return LeafSums(*parts, np.ascontiguousarray(trees.values[ends]), trees.offset, trees.n_averaged)


def _leaves(left: Rows, is_inner: Mask, roots: Rows) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return how many leaves lie below each node, and which of its tree's is the first of them."""
    levels = [roots]
    while len(inner := levels[-1][is_inner[levels[-1]]]):
        levels.append(np.concatenate([left[inner], left[inner] + 1]))
    n_leaves, leaf = np.ones(len(left), dtype=np.uint64), np.zeros(len(left), dtype=np.uint64)
    for level in reversed(levels):
        inner = level[is_inner[level]]
        n_leaves[inner] = n_leaves[left[inner]] + n_leaves[left[inner] + 1]
    for level in levels:
        inner = level[is_inner[level]]
        leaf[left[inner]], leaf[left[inner] + 1] = leaf[inner], leaf[inner] + n_leaves[left[inner]]
    return n_leaves, leaf


def _added(structure: Trees) -> tuple[list[Matrix], int]:
    """Return what the nodes of each tree add, and over how many trees it is averaged.

    0 where each tree adds to the scores of one class alone, as boosted ones do.
    """
    if structure.undivided is not None:
        return structure.undivided, len(structure.trees)
    values = [tree.values for tree in structure.trees]
    return values, int(any((np.abs(own).max(axis=0, initial=0.0) > 0).sum() > 1 for own in values))


def _slots(tree: Tree, lacks: Mask) -> Rows:
    """Return what each node compares: its column, or the same in a second set where a missing value goes left."""
    column = np.where(tree.left >= 0, tree.column, 0).astype(np.intp)
    return column if tree.lacking is None else column + len(lacks) * (tree.lacking & lacks[column])


def _by_level(tree: Tree) -> tuple[Rows, Rows]:
    """Return the nodes of a tree level by level, siblings side by side, and the place of each one's left child.

    A leaf is its own child.
    """
    nodes, left, n_placed = [np.zeros(1, dtype=np.intp)], [], 1
    while len(level := nodes[-1]):
        is_inner = tree.left[level] >= 0
        here = n_placed - len(level) + np.arange(len(level))
        left.append(np.where(is_inner, n_placed + 2 * (np.cumsum(is_inner) - 1), here))
        inner = level[is_inner]
        nodes.append(np.stack([tree.left[inner], tree.right[inner]], axis=1).ravel().astype(np.intp))
        n_placed += len(nodes[-1])
    return np.concatenate(nodes), np.concatenate(left)
