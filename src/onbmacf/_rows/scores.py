"""How sure a model is of each label, as numbers that can be compared: log odds, shares of votes, decision values.

    black box, fitted rows, their labels  ->  scorer_of  ->  Scorer, or None where the model gives labels alone
    what the model returned               ->  Scorer.read  ->  a score per class; the label is that of the highest

Scores are rounded to nine digits before they are compared: the last bits of a product change with the rows beside it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onbmacf._base.arrays import Matrix, Rows

DIGITS = 9
LEAST = 1e-12  # a probability below this counts as this much
VOTES = 0.02  # share of probabilities that are 0 from which on they are shares of votes, which add up as they are


@dataclass(frozen=True)
class Scorer:
    """Which method of a model tells its scores, and what they are."""

    method: str  # "predict_proba", "decision_function" or "class_scores"
    columns: tuple[int, ...]  # per class of the fitted rows: the column of the method's answer
    is_votes: bool = False

    @property
    def has_probabilities(self) -> bool:
        """Whether the answers are probabilities."""
        return self.method == "predict_proba"

    def read(self, answer: Matrix) -> Matrix:
        """Return one score per class of the fitted rows, and the best of all other classes where there are any."""
        if self.has_probabilities and not self.is_votes:
            answer = np.log(np.maximum(answer, LEAST))
        scores = np.round(answer[:, self.columns], DIGITS)
        if answer.shape[1] == len(self.columns):
            return scores
        others = np.delete(answer, self.columns, axis=1).max(axis=1)
        return np.column_stack([scores, np.round(others, DIGITS)])

    def margin(self, probability: Matrix, least: float) -> Matrix:
        """Return how far probabilities lie above the least one that is asked for, in the units of the scores."""
        if self.is_votes:
            return np.round(probability - least, DIGITS)
        with np.errstate(divide="ignore"):
            odds = np.log(np.maximum(probability, LEAST)) - np.log(np.maximum(1.0 - probability, LEAST))
            return np.round(odds - (np.log(least) - np.log1p(-least)), DIGITS)


def as_columns(answer: Any) -> Matrix:
    """Return decision values with one column per class; a single one is that of the second class against the first."""
    values = np.asarray(answer, dtype=np.float64)
    values = values.reshape(len(values), -1)
    return np.column_stack([np.zeros(len(values)), values]) if values.shape[1] == 1 else values


def scorer_of(
    methods: Mapping[str, Callable[[], Matrix]], names: list[Any] | None, classes: NDArray[Any], codes: Rows
) -> Scorer | None:
    """Return the first of some methods whose highest score is the label that the model says of every fitted row asked.

    `methods` are functions to the scores of these rows, by name; `codes` are their labels.
    """
    if names is None or any(label not in names for label in classes.tolist()):
        return None
    columns = tuple(names.index(label) for label in classes.tolist())
    for name, ask in methods.items():
        try:
            answer = ask()
        except Exception:  # what it fails with is reported where it is needed
            continue
        if answer.ndim != 2 or answer.shape[1] != len(names) or not np.isfinite(answer).all():
            continue
        is_votes = name == "predict_proba" and float((answer == 0.0).mean()) >= VOTES
        scorer = Scorer(name, columns, is_votes)
        scores = scorer.read(answer)
        lead = scores[np.arange(len(codes)), codes] - scores.max(axis=1)
        if (lead == 0.0).all():
            return scorer
    return None
