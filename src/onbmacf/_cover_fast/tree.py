"""A kd tree over the rows of one class, as a few arrays: boxes to skip or to take whole, leaves to scan.

    Z (rows of one class)  ->  build_tree  ->  Tree

The rows of a node are `rows[start : start + live]`, and `columns[:, start : start + live]` are their coordinates, one
contiguous run per column, so that a leaf is scanned column by column. The greedy cover takes rows out of a leaf by
shrinking `live`; a box is then wider than it need be, never too narrow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LEAF = 128  # rows in a leaf, at most


class Tree(NamedTuple):
    """Nodes as parallel arrays; node 0 is the root, the children of a node are `child` and `child + 1`."""

    rows: NDArray[np.int64]  # row of Z at each position
    columns: NDArray[np.float64]  # coordinates at each position: (features, rows)
    start: NDArray[np.int64]  # per node: its first position
    live: NDArray[np.int64]  # per node: how many of its rows are left
    child: NDArray[np.int64]  # per node: its first child, 0 for a leaf
    parent: NDArray[np.int64]  # per node: its parent, -1 for the root
    low: NDArray[np.float64]  # per node: the box around its rows
    high: NDArray[np.float64]


def build_tree(Z: NDArray[np.float64], rows: NDArray[np.int64]) -> Tree:
    """Build the tree over `Z[rows]`, splitting each box across its widest side."""
    rows = rows.copy()
    start, stop, child, parent = [0], [len(rows)], [0], [-1]
    low, high = [], []
    node = 0
    while node < len(start):
        here = rows[start[node] : stop[node]]
        points = Z[here]
        low.append(points.min(axis=0))
        high.append(points.max(axis=0))
        if len(here) > LEAF and (low[-1] < high[-1]).any():
            middle = start[node] + _split(here, points[:, np.argmax(high[-1] - low[-1])])
            child[node] = len(start)
            start += [start[node], middle]
            stop += [middle, stop[node]]
            child += [0, 0]
            parent += [node, node]
        node += 1
    live = np.array(stop) - np.array(start)
    columns = np.ascontiguousarray(Z[rows].T)
    links = (np.array(each, dtype=np.int64) for each in (start, live, child, parent))
    return Tree(rows, columns, *links, np.array(low), np.array(high))


def _split(here: NDArray[np.int64], values: NDArray[np.float64]) -> int:
    """Reorder the rows `here` around a value that splits them best; return how many lie below it.

    Equal values stay together where they can, so that a binary column splits into its two values.
    """
    median = np.partition(values, len(values) // 2)[len(values) // 2]
    below, above = values < median, values > median
    upper = ~below if abs(2 * below.sum() - len(values)) <= abs(2 * above.sum() - len(values)) else above
    here[:] = np.concatenate([here[~upper], here[upper]])
    return len(here) - int(upper.sum())
