"""The questions of a walk through the map, within the caller's limits.

    points, the factual of each  ->  Questions  ->  labels, UNASKED where max_model_rows or max_model_calls ran out

A factual's own label is the first row and the first call. What only describes an answer (its semifactual, margin and
probability) gets what the search has left over. After the deadline of a call nothing more is asked.
"""

from collections.abc import Callable

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._base.limits import NEVER, is_over
from onbmacf._search.options import Options
from onbmacf._table.model import FAILED

LabelOf = Callable[[Matrix, Rows], Rows]  # points, the factual of each -> labels
UNASKED = -2  # the label of a point that was not asked
ENDLESS = 1 << 62  # rows where there is no limit


class Questions:
    """Asks about points, counts rows and calls per factual, and refuses what the limits do not allow."""

    def __init__(
        self,
        n_factuals: int,
        options: Options,
        label_of: LabelOf,  # what the model says within the rules
        plain_label_of: LabelOf,  # what it says, whatever the rules and the probability
        cost: int = 1,  # rows, and calls, that one question takes: two where the probability is asked, too
        reserve: int = 0,  # questions per factual that `ask_once` leaves for `ask`
        deadline: float = NEVER,  # the time of day after which nothing more is asked
    ) -> None:
        self._options, self._label_of, self._plain_label_of = options, label_of, plain_label_of
        self._cost, self._reserve, self._deadline = cost, reserve, deadline
        self._known: dict[bytes, int] = {}
        self._rows, self._calls = np.ones(n_factuals, dtype=np.intp), np.ones(n_factuals, dtype=np.intp)
        self.ran_out: Mask = np.zeros(n_factuals, dtype=bool)
        self.failed: Rows = np.zeros(n_factuals, dtype=np.intp)  # questions on which the model raised

    def ask_once(self, points: Matrix, factual: Rows) -> Rows:
        """Return labels, and ask about no point of a factual twice."""
        bits = np.column_stack([factual, points + 0.0])  # no -0.0: bytes are compared
        keys: list[bytes] = bits.view(f"V{bits.shape[1] * bits.itemsize}").ravel().tolist()
        new = {key: line for line, key in enumerate(keys) if key not in self._known}
        if new:
            lines = np.fromiter(new.values(), dtype=np.intp)
            labels = self._counted(self._label_of, points[lines], factual[lines], self._reserve)
            self._known.update(zip(new, labels.tolist(), strict=True))
        return np.array([*map(self._known.__getitem__, keys)], dtype=np.intp)

    def ask(self, points: Matrix, factual: Rows) -> Rows:
        """Return labels, also with what is set aside."""
        return self._counted(self._label_of, points, factual)

    def ask_again(self, points: Matrix, factual: Rows) -> Rows:
        """Return labels whatever the rules and, without limits, the time: what was found in time is confirmed."""
        if self._options.limits:
            return self._counted(self._plain_label_of, points, factual)
        return self._noted(self._plain_label_of(points, factual), factual)

    def afford(self, wanted: Rows, cost: int) -> Rows:
        """Return how many of the wanted each factual can have at this price, one always; note where not all can."""
        if self._options.max_model_rows is None:
            return wanted
        most = np.maximum(1, -(-self.left // cost))  # a fitted row is an answer that costs no question
        self.ran_out |= most < wanted
        return np.minimum(most, wanted)

    @property
    def left(self) -> Rows:
        """How many more questions each factual may ask in one go."""
        options, most = self._options, np.full(len(self._rows), 0 if is_over(self._deadline) else ENDLESS)
        if options.max_model_rows is not None:
            most = np.minimum(most, (options.max_model_rows - self._rows) // self._cost)
        if options.max_model_calls is not None:
            most = np.minimum(most, (options.max_model_calls - self._calls) // self._cost * options.predict_chunk)
        return np.maximum(0, most)

    @property
    def asked(self) -> Rows:
        """How many questions were asked about each factual."""
        return self._rows - 1

    def _counted(self, label_of: LabelOf, points: Matrix, factual: Rows, reserve: int = 0) -> Rows:
        is_asked = turns(factual) < (self.left - reserve)[factual]
        self.ran_out[factual[~is_asked]] = True
        labels = np.full(len(points), UNASKED, dtype=np.intp)
        if is_asked.any():
            labels[is_asked] = self._noted(label_of(points[is_asked], factual[is_asked]), factual[is_asked])
        return labels

    def _noted(self, labels: Rows, factual: Rows) -> Rows:
        n_rows = np.bincount(factual, minlength=len(self._rows))
        self._rows += self._cost * n_rows
        self._calls += self._cost * -(-n_rows // self._options.predict_chunk)
        self.failed += np.bincount(factual[labels == FAILED], minlength=len(self.failed))
        return labels


def turns(owner: Rows) -> Rows:
    """Return how many lines of the same owner come before each.

    >>> turns(np.array([1, 0, 1, 1, 0])).tolist()
    [0, 0, 1, 2, 1]
    """
    order = np.argsort(owner, kind="stable")
    turn = np.empty(len(owner), dtype=np.intp)
    turn[order] = np.arange(len(owner)) - np.searchsorted(owner[order], owner[order])
    return turn
