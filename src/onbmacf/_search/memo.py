"""What the model has said about points of few factuals: nothing is asked twice, and some things before they are needed.

    points, the factual of each  ->  Memo.label_of  ->  labels, asked only where they are not known
    points that may be asked soon  ->  Memo.ahead  ->  asked now, if they fit into one call
    points that are returned  ->  Memo.again  ->  what the model says when it is asked once more

A stage of a search asks one question after the other; for few factuals each is far smaller than one call of the model
may be. `ahead` fills that call with what may come next. The answers of a search are the same with and without it.
"""

import numpy as np

from onbmacf._base.arrays import Matrix, Rows
from onbmacf._search.budget import Budget
from onbmacf._search.problem import UNKNOWN, LabelOf

LINES = 32  # points of one factual that a stage moves together: with fewer places than these, nothing is remembered


class Memo:
    """Labels by factual and point, for a search of factuals that are few enough to leave places in a call.

    `ask_again` is how a point to be returned is asked about a second time; None if that is not the same question.
    `n_taken` places of a call are for others.
    """

    def __init__(
        self,
        label_of: LabelOf,
        n_factuals: int,
        budget: Budget,
        ask_again: LabelOf | None = None,
        n_taken: int = 0,
    ) -> None:
        self._ask, self._ask_again = label_of, ask_again
        self._labels: dict[bytes, int] = {}
        self._again: dict[bytes, int] = {}
        self._keeps = is_few(n_factuals, budget.chunk) or budget.is_limited
        self._repeats = ask_again is not None and not budget.is_limited
        self.places = budget.places - n_taken if self._keeps else 0  # points that may be asked ahead in one call

    def label_of(self, points: Matrix, factual: Rows) -> Rows:
        """Return the labels of points, asking about each only once."""
        if not self._keeps or not len(points):
            return self._ask(points, factual)
        keys = _keys(points, factual)
        self._learn(keys, points, factual)
        return np.array([*map(self._labels.__getitem__, keys)], dtype=np.intp)

    def known(self, points: Matrix, factual: Rows) -> Rows:
        """Return the labels of points that were asked about before, UNKNOWN for the others; nothing is asked."""
        if not self._labels:
            return np.full(len(points), UNKNOWN)
        return np.array([self._labels.get(key, UNKNOWN) for key in _keys(points, factual)], dtype=np.intp)

    def ahead(self, points: Matrix, factual: Rows, n_again: int = 0) -> bool:
        """Ask about points now that a search may ask about soon, if those not known fit into one call; say whether.

        The last `n_again` are points that may be returned, and places on their way back: asked in any case.
        """
        if not self.places:
            return False
        if not self._repeats:
            points, factual, n_again = points[: len(points) - n_again], factual[: len(points) - n_again], 0
        return self._learn(_keys(points, factual), points, factual, self.places, n_again)

    def again(self, points: Matrix, factual: Rows) -> Rows:
        """Return what the model says when it is asked about points once more: not what it said first."""
        assert self._ask_again is not None
        keys = _keys(points, factual) if self._again else []
        if not keys or any(key not in self._again for key in keys):
            return self._ask_again(points, factual)
        return np.array([*map(self._again.__getitem__, keys)], dtype=np.intp)

    def _learn(
        self, keys: list[bytes], points: Matrix, factual: Rows, most: int | None = None, n_again: int = 0
    ) -> bool:
        unknown = {key: line for line, key in enumerate(keys) if key not in self._labels}
        repeated = {key: line for line, key in enumerate(keys[len(keys) - n_again :], len(keys) - n_again)}
        asked = unknown | repeated
        if most is not None and len(asked) > most:
            return False
        if asked:
            lines = np.fromiter(asked.values(), dtype=np.intp)
            said = dict(zip(asked, self._ask(points[lines], factual[lines]).tolist(), strict=True))
            self._labels.update((key, said[key]) for key in unknown)
            self._again.update((key, said[key]) for key in repeated if said[key] >= 0)  # else: when it is needed
        return True


def is_few(n_factuals: int, chunk: int) -> bool:
    """Say whether there are so few factuals that a call has places left over."""
    return n_factuals * LINES <= chunk


def _keys(points: Matrix, factual: Rows) -> list[bytes]:
    """Return what tells a factual and a point from others: their bits, side by side."""
    bits = np.empty((len(points), points.shape[1] + 1))
    bits[:, 0] = factual
    np.add(points, 0.0, out=bits[:, 1:])  # no -0.0: bytes are compared
    keys: list[bytes] = bits.view(f"V{bits.shape[1] * bits.itemsize}").ravel().tolist()
    return keys
