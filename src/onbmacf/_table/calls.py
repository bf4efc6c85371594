"""Calls of a model: cut into sizes that suit it, and counted; rows on which it raises are found by halving."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onbmacf._base.arrays import Matrix, Rows, objects
from onbmacf._base.checks import error_words, listed
from onbmacf._base.limits import check_awaited
from onbmacf._table.replies import BadAnswerError
from onbmacf.errors import ModelError

Call = Callable[[Matrix], NDArray[Any]]  # rows as numbers -> a label or a line of probabilities for each
SOME = 64  # retries per failing call of a search
ENDLESS = 1 << 62  # retries for the rows of a caller
MOST_LABELS = 3  # unseen labels that are named in a reason


# --- counts -----------------------------------------------------------------------------------------------------------


@dataclass
class Counts:
    """How often the model was asked so far; every call of `predict` and of `predict_proba` counts, retries too."""

    n_calls: int = 0  # calls of the model
    n_questions: int = 0  # points that it was asked about
    n_model_rows: int = 0  # rows that it was given, padding included
    n_member_questions: int = 0  # points that members of a committee were asked about, each member's counted
    n_copy_questions: int = 0  # points that a copy of the model was asked about in its place

    def add(self, other: "Counts") -> None:
        """Add the counts of another part of the work."""
        self.n_calls += other.n_calls
        self.n_questions += other.n_questions
        self.n_model_rows += other.n_model_rows
        self.n_member_questions += other.n_member_questions
        self.n_copy_questions += other.n_copy_questions

    def count(self, n_questions: int, n_rows: int) -> None:
        """Count one call."""
        self.n_calls += 1
        self.n_questions += n_questions
        self.n_model_rows += n_rows


# --- sizes, and rows that raise ---------------------------------------------------------------------------------------


def in_calls(
    call: Call, N: Matrix, largest: int, retries: int = SOME, is_strict: bool = False
) -> list[tuple[Rows, Any]]:
    """Return what the model says, in pieces: the rows of each, and their lines or the error that they raised.

    An answer that cannot be read is like an error that was raised or, where this is strict, ends the work.
    """
    pieces: list[tuple[Rows, Any]] = []
    for start in range(0, len(N), largest):
        lines = np.arange(start, min(start + largest, len(N)))
        pieces += _kept(call, N, lines, [retries], is_strict)
    return pieces


def _kept(call: Call, N: Matrix, lines: Rows, left: list[int], is_strict: bool) -> Iterator[tuple[Rows, Any]]:
    """Yield the lines of a call; where it raises, those of its halves while retries are left."""
    check_awaited()
    try:
        answer: Any = call(N[lines])
    except BadAnswerError as error:
        if is_strict:
            raise ModelError(str(error)) from error.__cause__
        answer = error
    except ModelError:
        raise
    except Exception as error:
        answer = error
    if not isinstance(answer, Exception) or len(lines) == 1 or left[0] < 2:
        yield lines, answer
        return
    left[0] -= 2
    for half in np.array_split(lines, 2):
        yield from _kept(call, N, half, left, is_strict)


# --- what it did on the way -------------------------------------------------------------------------------------------


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
            row, label = int(factual[line]), labels[line]
            if isinstance(label, Exception):
                self.raise_on(np.array([row]), label)
                continue
            known, plain = self._unseen.setdefault(row, []), label.item() if isinstance(label, np.generic) else label
            if len(known) < MOST_LABELS and plain not in known:
                known.append(plain)

    def raise_on(self, factual: Rows, error: Exception) -> None:
        """Note an error on points of some factuals."""
        for row in factual.tolist():
            self._raised.setdefault(row, raised_words(error))
            self._errors.setdefault(row, error)

    def forget(self, factual: Rows) -> None:
        """Forget the errors on points of some factuals, which are asked about again."""
        for row in factual.tolist():
            self._raised.pop(row, None)
            self._errors.pop(row, None)

    def error(self, factual: int) -> Exception | None:
        """Return the first error on points of a factual."""
        return self._errors.get(factual)

    def unseen_on(self, factual: Rows, labels: list[Any]) -> None:
        """Note that some points have a label that no fitted row has: one of those given."""
        for row in np.unique(factual).tolist():
            self._unseen.setdefault(row, []).extend(label for label in labels if label not in self._unseen[row])

    def raised(self, n_factuals: int) -> NDArray[Any]:
        """Return per factual what the model did instead of answering, in words; empty where it always answered."""
        return objects(self._raised.get(factual, "") for factual in range(n_factuals))

    def has_unseen(self, factual: int) -> bool:
        """Say whether a point of a factual had a label that no fitted row has."""
        return bool(self._unseen.get(factual))

    def unseen(self, n_factuals: int) -> NDArray[Any]:
        """Return per factual the labels that no fitted row has, in words; empty where there were none."""
        return objects(listed(self._unseen.get(factual, ())) for factual in range(n_factuals))


def raised_words(error: Exception) -> str:
    """Return what the model did, in words.

    >>> raised_words(KeyError("dose"))
    "the model raised KeyError: 'dose'"
    """
    is_answer = isinstance(error, BadAnswerError)
    return str(error).removesuffix(".") if is_answer else f"the model raised {error_words(error)}"
