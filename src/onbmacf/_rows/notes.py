"""What a model did on the way beside saying a known label: raised an error, or said a label that no fitted row has.

labels and codes of points, the factual of each  ->  Notes.take  ->  Notes.words, per factual
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onbmacf._base.arrays import Rows, objects
from onbmacf._base.checks import error_words, listed
from onbmacf._rows.replies import NaNAnswerError

MOST_LABELS = 3  # unseen labels that are named in a reason


class Notes:
    """Errors and unseen labels, by factual; the first of each kind is kept in words."""

    def __init__(self) -> None:
        self._raised: dict[int, str] = {}
        self._errors: dict[int, Exception] = {}
        self._unseen: dict[int, list[Any]] = {}

    def take(self, labels: NDArray[Any], codes: Rows, factual: Rows, n_classes: int) -> None:
        """Note what is odd about the labels of some points."""
        odd = np.flatnonzero((codes < 0) | (codes >= n_classes))
        for line in odd.tolist():
            self._note(int(factual[line]), labels[line])

    def raise_on(self, factual: Rows, error: Exception) -> None:
        """Note an error on points of some factuals."""
        for own in factual.tolist():
            self._raised.setdefault(own, raised_words(error))
            self._errors.setdefault(own, error)

    def forget(self, factual: Rows) -> None:
        """Forget the errors on points of some factuals, which are asked about again."""
        for own in factual.tolist():
            self._raised.pop(own, None)
            self._errors.pop(own, None)

    def error(self, factual: int) -> Exception | None:
        """Return the first error on points of a factual."""
        return self._errors.get(factual)

    def unseen_on(self, factual: Rows, labels: list[Any]) -> None:
        """Note that some points have a label that no fitted row has: one of those given."""
        for own in np.unique(factual).tolist():
            self._unseen.setdefault(own, []).extend(label for label in labels if label not in self._unseen[own])

    def raised(self, n_factuals: int) -> NDArray[Any]:
        """Return per factual what the model did instead of answering, in words; empty where it always answered."""
        return objects(self._raised.get(factual, "") for factual in range(n_factuals))

    def unseen(self, n_factuals: int) -> NDArray[Any]:
        """Return per factual the labels that no fitted row has, in words; empty where there were none."""
        return objects(listed(self._unseen.get(factual, ())) for factual in range(n_factuals))

    def _note(self, factual: int, label: Any) -> None:
        if isinstance(label, Exception):
            self.raise_on(np.array([factual]), label)
            return
        known, plain = self._unseen.setdefault(factual, []), label.item() if isinstance(label, np.generic) else label
        if len(known) < MOST_LABELS and plain not in known:
            known.append(plain)


def raised_words(error: Exception) -> str:
    """Return what the model did, in words.

    >>> raised_words(KeyError("dose"))
    "the model raised KeyError: 'dose'"
    """
    return str(error) if isinstance(error, NaNAnswerError) else f"the model raised {error_words(error)}"
