"""Plausibility: which share of a point's nearest fitted rows has the label it claims.

    Z, labels  ->  Neighbours  ->  share of the y nearest rows with a label, per point

Neighbours are Euclidean over columns of 0 to 1 (an active level counts 1), as the field's yNN metric has them,
whatever metric the cover uses. The model is never asked: the rows' labels are known from fit.
"""

from collections.abc import Iterator

import numpy as np

from onbmacf._balls.groups import Groups, compacted
from onbmacf._balls.kernels import NearestRows
from onbmacf._balls.kernels.compiled import are_compiled
from onbmacf._base.arrays import Mask, Matrix, Rows, in_steps
from onbmacf._base.missing import as_costs, may_lack

AT_ONCE = 1 << 17  # distances that are worked on together
SLACK = 1e-11  # of squared lengths: products of up to 10,000 columns are off by less
MODERATE = 1e100  # missing values are encoded far beyond
BLOCK = 1 << 18  # multiplications up to which libraries of products use one thread
POINTS = 32  # in one block


def nearest_rows(Z: Matrix, points: Matrix, y: int) -> Rows:
    """Return the y nearest rows of each point, nearest first, ties to the lower row: the plain way."""
    return np.argsort(squares(points, Z), axis=1, kind="stable")[:, :y]


def squares(points: Matrix, Z: Matrix) -> Matrix:
    """Return squared distances, columns left to right: roots would make ties of sums that differ in the last bit."""
    total, gap = np.zeros((len(points), len(Z))), np.empty((len(points), len(Z)))
    lacks = may_lack(Z) or may_lack(points)
    for column in range(Z.shape[1]):
        np.subtract(points[:, column, np.newaxis], Z[:, column], out=gap)
        if lacks:
            as_costs(np.abs(gap, out=gap))
        np.multiply(gap, gap, out=gap)
        total += gap
    return total


def squares_of_compact(points: Matrix, Z: Matrix, heights: Matrix) -> Matrix:
    """Return what `squares` does for rows with one column per feature: a category that differs adds its height twice.

    Zeros lie between the two columns in which such rows differ, so every sum is the same to the bit.
    """
    total, gap = np.zeros((len(points), len(Z))), np.empty((len(points), len(Z)))
    lacks = may_lack(Z) or may_lack(points)
    for column, height in enumerate(heights.tolist()):
        if height:
            np.multiply(points[:, column, np.newaxis] != Z[:, column], height * height, out=gap)
            total += gap
        else:
            np.subtract(points[:, column, np.newaxis], Z[:, column], out=gap)
            if lacks:
                as_costs(np.abs(gap, out=gap))
            np.multiply(gap, gap, out=gap)
        total += gap
    return total


def is_near(apart: Matrix, y: int) -> Mask:
    """Mark the y nearest rows of each point, ties to the lower row: as `nearest_rows`, without sorting them."""
    near = apart <= np.partition(apart, y - 1, axis=1)[:, y - 1 : y]
    for line in np.flatnonzero(near.sum(axis=1) > y):  # a tie for the last place
        near[line] = False
        near[line, np.argsort(apart[line], kind="stable")[:y]] = True
    return near


def near_by_products(points: Matrix, Z: Matrix, lengths: Matrix, y: int) -> Mask:
    """Mark the same rows as `is_near`: products tell which may be among the nearest, exact sums which are.

    The squared distance of a and b is a a + b b - 2 a b, and a a is the same for all rows. `lengths` holds b b.
    """
    apart = lengths - 2.0 * products(points, Z)
    error = SLACK * (lengths.max() + np.square(points).sum(axis=1))
    line, row = np.nonzero(apart <= (np.partition(apart, y - 1, axis=1)[:, y - 1] + error)[:, np.newaxis])
    exact = np.zeros(len(line))
    for column in range(Z.shape[1]):
        exact += np.square(points[line, column] - Z[row, column])
    order = np.lexsort((exact, line))  # ties stay in the order of rows
    kept = order[np.arange(len(order)) - np.searchsorted(line, line) < y]
    near = np.zeros(apart.shape, dtype=bool)
    near[line[kept], row[kept]] = True
    return near


def products(points: Matrix, Z: Matrix) -> Matrix:
    """Return ``points @ Z.T``, in blocks that are worked on by one thread.

    Several threads gain little here, and where other work keeps the cores busy they wait for each other: 16 ms of
    processor time for a product of 0.1 ms.
    """
    found = np.empty((len(points), len(Z)))
    for some, rows in blocks(len(points), *Z.shape):
        np.matmul(points[some], Z[rows].T, out=found[some, rows])
    return found


def blocks(n_points: int, n_rows: int, width: int) -> Iterator[tuple[slice, slice]]:
    """Yield slices of points and rows that together are all pairs, each of at most BLOCK multiplications.

    >>> list(blocks(9, 40, 1000))
    [(slice(0, 32, None), slice(0, 29, None)), (slice(0, 32, None), slice(29, 58, None))]
    """
    step = max(1, BLOCK // (min(POINTS, n_points) * width))
    for start in range(0, n_points, POINTS):
        for first in range(0, n_rows, step):
            yield slice(start, start + POINTS), slice(first, first + step)


class Neighbours:
    """An index of the fitted rows."""

    def __init__(self, Z: Matrix, labels: Rows, scale: Matrix, y: int, groups: Groups | None = None) -> None:
        self._scale, self._labels, self._y = scale, labels, min(y, len(Z))
        self._groups = None if groups is None else groups.scaled(scale)
        self._Z = np.empty(Z.shape)
        for lines in in_steps(*Z.shape):
            np.multiply(Z[lines], scale, out=self._Z[lines])
        self._index: NearestRows | None = None
        self._compact: Matrix | None = None
        if are_compiled():
            self._index = NearestRows(self._Z, self._groups)
            return
        self._Z = np.asfortranarray(self._Z)  # columns are compared one after the other
        with np.errstate(over="ignore"):
            self._lengths = np.square(self._Z).sum(axis=1)
        compact = compacted(self._Z, self._groups)
        self._compact = None if compact is None else np.asfortranarray(compact)

    def share(self, points: Matrix, labels: Rows) -> Matrix:
        """Return per point the share of its y nearest rows that have the label on the same line."""
        if not len(points):
            return np.empty(0)
        points = points * self._scale
        if self._index is not None:
            return (self._labels[self._index.rows(points, self._y)] == labels[:, np.newaxis]).mean(axis=1)
        same = self._labels == labels[:, np.newaxis]
        step = max(1, AT_ONCE // len(self._Z))
        parts = [slice(start, start + step) for start in range(0, len(points), step)]
        counts = [(self._near(points[part]) & same[part]).sum(axis=1) for part in parts]
        return np.concatenate(counts) / self._y

    def share_of_compact(self, points: Matrix, labels: Rows) -> Matrix | None:
        """Return the same for points with one column per feature; None where they cannot be looked up."""
        if self._index is None or not self._index.takes_compact(points):
            return None
        near = self._labels[self._index.rows_of_compact(points, self._y)]
        return (near == labels[:, np.newaxis]).sum(axis=1) / self._y

    def _near(self, points: Matrix) -> Mask:
        """Mark the nearest rows of each point: by products where all numbers are of a size that they can bear."""
        if max(self._lengths.max(), np.abs(points).max()) < MODERATE:
            return near_by_products(points, self._Z, self._lengths, self._y)
        return is_near(self._squares(points), self._y)

    def _squares(self, points: Matrix) -> Matrix:
        """Return squared distances to all rows, with one column per category where no point lies between levels."""
        compact = None if self._compact is None else compacted(points, self._groups)
        if compact is None or self._compact is None or self._groups is None:
            return squares(points, self._Z)
        return squares_of_compact(compact, self._compact, self._groups.heights)
