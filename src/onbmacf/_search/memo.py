"""What the model has said about points of few factuals: nothing is asked twice, and some things before they are needed.

    points, the factual of each  ->  Memo.label_of  ->  labels, asked only where they are not known
    points that may be asked soon  ->  Memo.ahead  ->  asked now, if they fit into one call

A stage of a search asks one question after the other; for few factuals each is far smaller than one call of the model
may be. `ahead` fills that call with what may come next. The answers of a search are the same with and without it.
"""

import numpy as np

from onbmacf._base.arrays import Matrix, Rows
from onbmacf._search.budget import Budget
from onbmacf._search.problem import LabelOf

LINES = 32  # points of one factual that a stage moves together: with fewer places than these, nothing is remembered


class Memo:
    """Labels by factual and point, for a search of factuals that are few enough to leave places in a call."""

    def __init__(self, label_of: LabelOf, n_factuals: int, budget: Budget) -> None:
        self._ask = label_of
        self._labels: dict[bytes, int] = {}
        is_few = n_factuals * LINES <= budget.chunk
        self._keeps = is_few or budget.is_limited
        self.places = budget.places if self._keeps else 0  # points that may be asked ahead in one call

    def label_of(self, points: Matrix, factual: Rows) -> Rows:
        """Return the labels of points, asking about each only once."""
        if not self._keeps or not len(points):
            return self._ask(points, factual)
        keys = _keys(points, factual)
        self._learn(keys, points, factual)
        return np.array([*map(self._labels.__getitem__, keys)], dtype=np.intp)

    def ahead(self, points: Matrix, factual: Rows) -> None:
        """Ask about points now that a search may ask about soon, if those not known fit into one call."""
        if self.places:
            self._learn(_keys(points, factual), points, factual, self.places)

    def _learn(self, keys: list[bytes], points: Matrix, factual: Rows, most: int | None = None) -> None:
        unknown = {key: line for line, key in enumerate(keys) if key not in self._labels}
        if unknown and (most is None or len(unknown) <= most):
            lines = np.fromiter(unknown.values(), dtype=np.intp)
            labels = self._ask(points[lines], factual[lines])
            self._labels.update(zip(unknown, labels.tolist(), strict=True))


def _keys(points: Matrix, factual: Rows) -> list[bytes]:
    """Return what tells a factual and a point from others: their bits, side by side."""
    bits = np.empty((len(points), points.shape[1] + 1))
    bits[:, 0] = factual
    np.add(points, 0.0, out=bits[:, 1:])  # no -0.0: bytes are compared
    keys: list[bytes] = bits.view(f"V{bits.shape[1] * bits.itemsize}").ravel().tolist()
    return keys
