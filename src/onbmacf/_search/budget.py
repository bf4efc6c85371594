"""The budget of questions: counts what is asked for each factual, and refuses what `max_model_rows` does not allow."""

import numpy as np

from onbmacf._base.arrays import Matrix, Rows
from onbmacf._search.pairs import places
from onbmacf._search.problem import LabelOf
from onbmacf._search.walk import WAY_BACK

UNASKED = -2  # the label of a point that was not asked
RAISED = -1  # the label of a point on which the model raised


class Meter:
    """Counts the questions asked per factual, and tells how many more balls a budget allows at worst."""

    def __init__(
        self, label_of: LabelOf, n_factuals: int, budget: int | None, reserve: int, per_ball: int, ball_share: int
    ) -> None:
        self._label_of, self._budget = label_of, budget
        self._set_aside = 1 + reserve  # its own label, and what comes after the search
        self._spent = np.full(n_factuals, self._set_aside)
        self._per_ball, self._ball_share = per_ball, ball_share
        self.ran_out = np.zeros(n_factuals, dtype=bool)
        self.failed = np.zeros(n_factuals, dtype=np.intp)  # questions on which the model raised

    def label_of(self, points: Matrix, factual: Rows) -> Rows:
        """Ask, and count the rows of each factual; what its budget does not allow is not asked and has no label."""
        if self._budget is None:
            self._spent += np.bincount(factual, minlength=len(self._spent))
            return self._noted(self._label_of(points, factual), factual)
        asked = np.flatnonzero(self._spent[factual] + places(factual, np.zeros(len(factual))) < self._budget)
        self._spent += np.bincount(factual[asked], minlength=len(self._spent))
        self.ran_out[np.delete(factual, asked)] = True
        labels = np.full(len(points), UNASKED, dtype=np.intp)
        labels[asked] = self._label_of(points[asked], factual[asked])
        return self._noted(labels, factual)

    def _noted(self, labels: Rows, factual: Rows) -> Rows:
        self.failed += np.bincount(factual[labels == RAISED], minlength=len(self.failed))
        return labels

    @property
    def asked(self) -> Rows:
        """How many questions the search has asked for each factual."""
        return self._spent - self._set_aside

    def allows(self, n_questions: int) -> bool:
        """Say whether so many questions for one factual could ever be within the budget."""
        return self._budget is None or self._set_aside + n_questions <= self._budget

    def afford(self, n_balls: Rows) -> Rows:
        """Return per factual how many of the balls can be tried within the budget, and note where not all can."""
        if self._budget is None:
            return n_balls
        left = -(-np.maximum(0, (self._budget - self._spent) // self._per_ball) // self._ball_share)  # rounded up
        self.ran_out |= left < n_balls
        return np.minimum(left, n_balls)


def last_checks(n: int) -> int:
    """Return the questions set aside for n counterfactuals: asked again, the probability, the margin."""
    return n * (2 + WAY_BACK)
