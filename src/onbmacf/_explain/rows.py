"""The rows of one explain call as numbers, points and labels, and how points near them are asked about.

    frame  ->  Factuals.of  ->  Factuals        points, the factual of each  ->  Asker.label_of  ->  label codes

A row that cannot be asked has its status before the search.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._base.enums import Status
from onbmacf._base.limits import is_over
from onbmacf._explain.request import Request
from onbmacf._search.budget import UNASKED
from onbmacf._table.calls import ENDLESS, SOME, Notes, raised_words
from onbmacf._table.gate import Admitted, admit, as_given
from onbmacf._table.model import FAILED, BlackBox
from onbmacf._text.wording import as_sentence
from onbmacf.errors import ParameterError

UNREACHED = -3  # the code of a row about which the model was not asked before the time was up
NOT_REACHED = "Not reached within max_seconds: raise it, or give fewer rows."
FORBIDDEN = UNASKED  # a point that breaks a rule: never asked, never accepted


class Factuals(NamedTuple):
    """The rows of a call, one line each; what cannot be searched has a status already."""

    N: Matrix
    z: Matrix
    labels: NDArray[Any]  # the caller's own
    codes: Rows
    wanted: Mask  # rows x classes
    statuses: NDArray[Any]
    reasons: NDArray[Any]

    @classmethod
    def of(cls, frame: pd.DataFrame, request: Request, box: BlackBox) -> "Factuals":
        """Turn rows into points, ask the model for their labels, and settle what cannot be searched."""
        return cls.asked_about(admit(request.fitted.space, frame), request, box)

    @classmethod
    def asked_about(cls, rows: Admitted, request: Request, box: BlackBox) -> "Factuals":
        """Ask the model for the labels of rows, and settle what cannot be searched."""
        good = np.array([row not in rows.faults for row in range(len(rows.N))], dtype=bool)
        return cls.labelled(rows, request, *_labelled(box, rows.N, np.flatnonzero(good), request.deadline))

    @classmethod
    def labelled(cls, rows: Admitted, request: Request, labels: NDArray[Any], codes: Rows) -> "Factuals":
        """Settle which rows cannot be searched; a label is what the model said, or the error that it raised."""
        every = np.arange(len(request.fitted.black_box.classes))
        is_target = np.full(len(every), request.targets is None)
        is_target[request.targets if request.targets is not None else []] = True
        wanted = is_target & (every != codes[:, np.newaxis])  # never the row's own label
        statuses, reasons = _settled(rows.faults, labels, codes, request.targets)
        labels[codes == FAILED] = None
        return cls(rows.N, rows.z, labels, codes, wanted, statuses, reasons)

    def open_lines(self) -> Rows:
        """Return the positions of the rows that are still to be searched."""
        return np.flatnonzero(self.statuses == Status.FOUND)


@dataclass(frozen=True, eq=False)
class Asker:
    """Asks the model about encoded points near the factuals, within the rules."""

    request: Request
    box: BlackBox
    factuals: Factuals
    notes: Notes = field(default_factory=Notes)  # what the model did beside saying a known label

    def label_of(self, points: Matrix, factual: Rows) -> Rows:
        """Return the model's label codes of encoded points; FORBIDDEN, unasked, where a rule is broken."""
        N, constraints = self.numbers(points, factual), self.request.constraints
        codes = np.full(len(N), FORBIDDEN, dtype=np.intp)
        good = constraints.allowed(N, self.factuals.N[factual]) if constraints else np.ones(len(N), dtype=bool)
        codes[good] = self._ask(N[good], factual[good])
        self._forbid(N, codes, factual)
        return codes

    def plain_label_of(self, points: Matrix, factual: Rows) -> Rows:
        """Return the model's label codes of encoded points, whatever the rules, the probability and the committee."""
        return self._ask(self.numbers(points, factual), factual, ENDLESS)

    def is_allowed(self, points: Matrix, factual: Rows) -> Mask:
        """Say which points keep every rule."""
        return self.request.constraints.allowed(self.numbers(points, factual), self.factuals.N[factual])

    def snap(self, points: Matrix, z: Matrix, goal: Matrix) -> Matrix:
        """Round discrete features, then put values where they may be returned."""
        return self.request.place(self.request.fitted.space.snap(points, z, goal), z)

    def numbers(self, points: Matrix, factual: Rows) -> Matrix:
        """Return encoded points as the numbers that the model gets, near their factuals, with all that follows."""
        space, near = self.request.fitted.space, (self.factuals.z[factual], self.factuals.N[factual])
        N = as_given(space.form, space.decode_numbers(points, near=near))
        return N if space.effects is None else space.effects.whole(N, near[1])

    def _ask(self, N: Matrix, factual: Rows, retries: int = SOME) -> Rows:
        """Ask the model, and note where it raises or says a label that no fitted row has."""
        labels = self.box.ask_labels(N, retries)
        codes = self.box.codes(labels)
        self.notes.take(labels, codes, factual, len(self.box.classes))
        return codes

    def _forbid(self, N: Matrix, codes: Rows, factual: Rows) -> None:
        """Forbid points whose label is one to be reached but on which too little agrees.

        It is not probable enough, or too few neighbours have it, or too few members of the committee say it.
        """
        request = self.request
        if request.min_neighbours > 0:
            reached = self.reached(codes, factual)
            codes[reached[~request.has_neighbours(N[reached], codes[reached])]] = FORBIDDEN
        if request.min_probability > 0:
            reached = self.reached(codes, factual)
            sure = self._probability(N[reached], codes[reached], factual[reached])
            codes[reached[~(sure >= self.request.min_probability)]] = FORBIDDEN  # NaN is not sure
        if request.committee is not None and request.needs_agreement:
            reached = self.reached(codes, factual)
            agree = request.committee.agree(N[reached], codes[reached], self.box.counts)
            codes[reached[~agree]] = FORBIDDEN

    def reached(self, codes: Rows, factual: Rows) -> Rows:
        """Return the points whose label is one to be reached."""
        wanted = self.factuals.wanted
        is_known = (codes >= 0) & (codes < wanted.shape[1])
        return np.flatnonzero(is_known & wanted[factual, np.where(is_known, codes, 0)])

    def _probability(self, N: Matrix, codes: Rows, factual: Rows) -> Matrix:
        """Return the probability of each point's label, and note where the model raises."""
        sure = self.box.probability(N, codes, lambda lines, error: self.notes.raise_on(factual[lines], error))
        if sure is None:
            why = self.box.no_probability or "this one has no predict_proba with classes_"
            raise ParameterError(f"min_probability needs a model that gives probabilities: {why}.")
        return sure


def _labelled(box: BlackBox, N: Matrix, good: Rows, deadline: float) -> tuple[NDArray[Any], Rows]:
    """Ask the model about the rows that can be asked; return labels (or the error it raised) and codes."""
    labels, codes = np.full(len(N), None, dtype=object), np.full(len(N), FAILED, dtype=np.intp)
    codes[good] = UNREACHED
    for start in range(0, len(good), box.largest):
        lines = good[start : start + box.largest]
        if is_over(deadline):
            break
        answers = box.ask_labels(N[lines], ENDLESS)
        codes[lines] = box.codes(answers)
        labels[lines] = answers.tolist()
    return labels, codes


def _settled(
    faults: dict[int, str], labels: NDArray[Any], codes: Rows, targets: Rows | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return status and reason of every row as known before the search; `found` stands for an open one."""
    statuses = np.full(len(codes), Status.FOUND, dtype=object)
    reasons = np.full(len(codes), "", dtype=object)
    for row in np.flatnonzero(codes == FAILED):
        statuses[row] = Status.INVALID_ROW if row in faults else Status.MODEL_ERROR
        reasons[row] = faults.get(int(row)) or as_sentence(raised_words(labels[row]))
    for row in np.flatnonzero(codes == UNREACHED):
        statuses[row], reasons[row] = Status.NONE_FOUND, NOT_REACHED
    if targets is not None:
        for row in np.flatnonzero((codes[:, np.newaxis] == targets).any(axis=1)):
            statuses[row] = Status.ALREADY
            reasons[row] = f"The model says {labels[row]!r} already."
    return statuses, reasons
