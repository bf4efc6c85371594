"""The budget of questions: counts what is asked for each factual, and refuses what the caller's limits do not allow.

    max_model_rows, max_model_calls  ->  Budget  ->  Meter.counted(label_of)  ->  labels, UNASKED where it ran out

A factual's own label is the first row and the first call. What only describes an answer (its semifactual, margin and
probability) gets what the search has left over. After the deadline of a call nothing more is asked.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._base.deadline import NEVER, is_over
from onbmacf._rows.model import FAILED
from onbmacf._search.options import Options

if TYPE_CHECKING:
    from onbmacf._search.problem import Asked

LabelOf = Callable[[Matrix, Rows], Rows]  # points, the factual of each -> labels
UNASKED = -2  # the label of a point that was not asked
ENDLESS = 1 << 62  # rows where there is no limit


class Budget(NamedTuple):
    """What may be spent on one factual."""

    rows: int | None
    calls: int | None
    chunk: int  # rows in one call
    cost: int  # rows, and calls, that one question takes: two where the probability is asked, too
    deadline: float = NEVER  # the time of day after which nothing more is asked

    @property
    def is_limited(self) -> bool:
        """Whether there is any limit."""
        return self.rows is not None or self.calls is not None


class Meter:
    """Counts rows and calls per factual, and tells what a budget still allows."""

    def __init__(self, n_factuals: int, budget: Budget) -> None:
        self._budget = budget
        self._rows, self._calls = np.ones(n_factuals, dtype=np.intp), np.ones(n_factuals, dtype=np.intp)
        self.ran_out: Mask = np.zeros(n_factuals, dtype=bool)
        self.failed: Rows = np.zeros(n_factuals, dtype=np.intp)  # questions on which the model raised

    @classmethod
    def of(cls, options: Options, asked: "Asked") -> "Meter":
        """Read the limits off the options, and what questions cost off how they are asked."""
        limits = options.max_model_rows, options.max_model_calls, options.predict_chunk
        return cls(len(asked.z), Budget(*limits, asked.cost, asked.deadline))

    @property
    def is_limited(self) -> bool:
        """Whether there is any limit."""
        return self._budget.is_limited

    def counted(self, label_of: LabelOf, n_reserved: int = 0) -> LabelOf:
        """Return the same function within the budget, less some questions that are set aside."""

        def ask(points: Matrix, factual: Rows) -> Rows:
            if is_over(self._budget.deadline):
                return self._too_late(factual)
            if not self._budget.is_limited:
                return self._noted(label_of(points, factual), factual)
            most = np.maximum(0, self.left - n_reserved)
            asked = np.flatnonzero(turns(factual) < most[factual])
            self.ran_out[np.delete(factual, asked)] = True
            labels = np.full(len(points), UNASKED, dtype=np.intp)
            if len(asked):
                labels[asked] = self._noted(label_of(points[asked], factual[asked]), factual[asked])
            return labels

        return ask

    def noting(self, label_of: LabelOf) -> LabelOf:
        """Return the same function, counted, whatever the time: what was found in time is asked again after it."""
        return lambda points, factual: self._noted(label_of(points, factual), factual)

    @property
    def left(self) -> Rows:
        """How many more questions each factual may ask in one go."""
        budget, most = self._budget, np.full(len(self._rows), 0 if is_over(self._budget.deadline) else ENDLESS)
        if budget.rows is not None:
            most = np.minimum(most, (budget.rows - self._rows) // budget.cost)
        if budget.calls is not None:
            most = np.minimum(most, (budget.calls - self._calls) // budget.cost * budget.chunk)
        return np.maximum(0, most)

    @property
    def asked(self) -> Rows:
        """How many questions the search has asked for each factual."""
        return self._rows - 1

    def afford(self, wanted: Rows, cost: int, share: int) -> Rows:
        """Return per factual how many of the wanted can be had for one part in `share` of what is left; one always.

        Also note where not all can.
        """
        if self._budget.rows is None:
            return wanted
        most = np.maximum(1, -(-self.left // (cost * share)))  # a fitted row is an answer that costs no question
        self.ran_out |= most < wanted
        return np.minimum(most, wanted)

    def _too_late(self, factual: Rows) -> Rows:
        self.ran_out[factual] = True
        return np.full(len(factual), UNASKED, dtype=np.intp)

    def _noted(self, labels: Rows, factual: Rows) -> Rows:
        n_rows = np.bincount(factual, minlength=len(self._rows))
        self._rows += self._budget.cost * n_rows
        self._calls += self._budget.cost * -(-n_rows // self._budget.chunk)
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


def remembered(label_of: LabelOf) -> LabelOf:
    """Return the same function, which asks about no point of a factual twice."""
    known: dict[bytes, int] = {}

    def ask(points: Matrix, factual: Rows) -> Rows:
        bits = np.column_stack([factual, points + 0.0])  # no -0.0: bytes are compared
        keys: list[bytes] = bits.view(f"V{bits.shape[1] * bits.itemsize}").ravel().tolist()
        new = {key: line for line, key in enumerate(keys) if key not in known}
        if new:
            lines = np.fromiter(new.values(), dtype=np.intp)
            known.update(zip(new, label_of(points[lines], factual[lines]).tolist(), strict=True))
        return np.array([*map(known.__getitem__, keys)], dtype=np.intp)

    return ask
