"""Plausibility: which share of a point's nearest fitted rows has the label it claims.

    Z, labels  ->  Neighbours  ->  share of the y nearest rows with a label, per point

Neighbours are Euclidean over columns of 0 to 1 (an active level counts 1), as the field's yNN metric has them,
whatever metric the cover uses. The model is never asked: the rows' labels are known from fit.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.groups import Groups
from onbmacf._balls.kernels import NearestRows
from onbmacf._balls.kernels.compiled import are_compiled
from onbmacf._base.arrays import Mask, Matrix, Rows, in_steps
from onbmacf._base.missing import as_costs, may_lack

AT_ONCE = 1 << 17  # distances that are worked on together


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


def is_near(apart: Matrix, y: int) -> Mask:
    """Mark the y nearest rows of each point, ties to the lower row: as `nearest_rows`, without sorting them."""
    near = apart <= np.partition(apart, y - 1, axis=1)[:, y - 1 : y]
    for line in np.flatnonzero(near.sum(axis=1) > y):  # a tie for the last place
        near[line] = False
        near[line, np.argsort(apart[line], kind="stable")[:y]] = True
    return near


class Scales(NamedTuple):
    """How a feature's numbers become columns of 0 to 1, one entry per feature; a category is its level's position."""

    low: Matrix
    span: Matrix
    unit: Matrix  # what a number is multiplied by once its range is its weight
    is_level: NDArray[np.int8]
    absent: Matrix  # what stands for a missing value


class Neighbours:
    """An index of the fitted rows."""

    def __init__(
        self,
        Z: Matrix,
        labels: Rows,
        scale: Matrix,
        y: int,
        groups: Groups | None = None,
        scales: Scales | None = None,
    ) -> None:
        self._scale, self._labels, self._scales = scale, labels, scales
        self.y = min(y, len(Z))  # neighbours that are counted
        self._Z = np.empty(Z.shape)
        for lines in in_steps(*Z.shape):
            np.multiply(Z[lines], scale, out=self._Z[lines])
        self._index: NearestRows | None = None
        if are_compiled():
            self._index = NearestRows(self._Z, None if groups is None else groups.scaled(scale))
        else:
            self._Z = np.asfortranarray(self._Z)  # columns are compared one after the other

    def share(self, points: Matrix, labels: Rows) -> Matrix:
        """Return per point the share of its y nearest rows that have the label on the same line."""
        if not len(points):
            return np.empty(0)
        points = points * self._scale
        if self._index is not None:
            return (self._labels[self._index.rows(points, self.y)] == labels[:, np.newaxis]).mean(axis=1)
        same = self._labels == labels[:, np.newaxis]
        step = max(1, AT_ONCE // len(self._Z))
        parts = [slice(start, start + step) for start in range(0, len(points), step)]
        counts = [(is_near(squares(points[part], self._Z), self.y) & same[part]).sum(axis=1) for part in parts]
        return np.concatenate(counts) / self.y

    def share_of_numbers(self, N: Matrix, labels: Rows) -> Matrix | None:
        """Return the same for points in the caller's units; None where they cannot be looked up."""
        if self._index is None or self._scales is None:
            return None
        return self._index.share_of_numbers(N, self._scales, self.y, self._labels, labels)
