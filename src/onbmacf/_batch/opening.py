"""The labels of few rows, asked with the first question of their search: a call less than one after the other.

    Call, Admitted  ->  Opening.of  ->  the codes that rows probably have  ->  Opening.ask, said  ->  whether they do

A row nearly always has the label of its home ball, and a search with that label asks what it would ask anyway. When the
model answers, the guess is checked; where it was wrong, or the model raised, nothing of the search is used, and the
rows are searched again with the labels that they have
(docs/decisions/0103-label-with-the-first-question.md).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onbmacf._base.arrays import Matrix, Rows, objects
from onbmacf._base.deadline import NEVER
from onbmacf._batch.call import Call
from onbmacf._rows.counts import Counts
from onbmacf._rows.gate import Admitted
from onbmacf._rows.isolate import ENDLESS
from onbmacf._rows.model import BlackBox, is_error
from onbmacf._search.memo import is_few
from onbmacf._search.pairs import home_labels


class WrongGuessError(Exception):
    """Some row has another label than it was taken to have, or the model raised."""


class Opening:
    """Rows, and the codes that they are taken to have until the model is first asked."""

    def __init__(self, N: Matrix, codes: Rows) -> None:
        self.N, self.codes, self.counts = N, codes, Counts()
        self.labels: NDArray[Any] | None = None  # what the model said about the rows, where it has been asked

    @classmethod
    def of(cls, call: Call, rows: Admitted) -> "Opening | None":
        """Guess the labels of rows; None where there are many, one cannot be searched, or everything is counted."""
        n_rows, query = len(rows.N), call.query
        is_free = not call.options.limits and query.deadline == NEVER
        if not (n_rows and is_free and is_few(n_rows, call.options.predict_chunk)) or rows.faults:
            return None
        codes = home_labels(call.fitted.map, call.options, rows.z)
        is_open = np.isin(codes, query.targets, invert=True) if query.targets is not None else True
        is_known = codes < len(call.fitted.black_box.classes)
        return cls(rows.N, codes) if np.all(is_open & is_known) else None

    def ask(self, box: BlackBox, N: Matrix, retries: int) -> NDArray[Any]:
        """Return the labels of points; the first time the rows themselves are asked about in the same call."""
        if self.labels is not None or not len(N):
            return box.ask_labels(N, retries)
        labels = box.ask_labels(np.concatenate([self.N, N]), retries)
        self.counts = box.counts
        self._check(box, labels)
        return labels[len(self.N) :]

    def said(self, box: BlackBox) -> NDArray[Any]:
        """Return what the model said about the rows; it is asked now where the search asked nothing."""
        if self.labels is None:
            self._check(box, box.ask_labels(self.N, ENDLESS))
        assert self.labels is not None
        return self.labels

    def _check(self, box: BlackBox, labels: NDArray[Any]) -> None:
        if is_error(labels).any():  # which rows raise is found out when they are asked about alone
            raise WrongGuessError
        self.labels = objects(labels[: len(self.N)].tolist())
        if (box.codes(self.labels) != self.codes).any():
            raise WrongGuessError
