"""Plausibility: which share of a point's nearest fitted rows has the label it claims.

    Z, labels  ->  Neighbours  ->  share of the y nearest rows with a label, per point

Neighbours are Euclidean over columns of 0 to 1 (an active level counts 1), as the field's yNN metric has them,
whatever metric the cover uses. The model is never asked: the rows' labels are known from fit.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Rows = NDArray[np.intp]


class Neighbours:
    """An index of the fitted rows."""

    def __init__(self, Z: Matrix, labels: Rows, scale: Matrix, y: int) -> None:
        from scipy.spatial import cKDTree

        self._scale = scale
        self._labels = labels
        self._y = min(y, len(Z))
        self._tree: Any = cKDTree(np.asarray(Z) * scale)

    def share(self, points: Matrix, labels: Rows) -> Matrix:
        """Return per point the share of its y nearest rows that have the label on the same line."""
        if not len(points):
            return np.empty(0)
        _, rows = self._tree.query(points * self._scale, k=np.arange(1, self._y + 1))
        return (self._labels[rows] == labels[:, np.newaxis]).mean(axis=1)
