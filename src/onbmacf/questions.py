"""The rows of one explain call: from what was asked to what is answered.

    rows  ->  Questions.of  ->  (pipeline.search)  ->  answer  ->  Explanations

A row that cannot be asked has its status before the search; a counterfactual that does not hold when the model is
asked again, about the very values returned, is dropped and said.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf.distance import Matrix, Metric, paired
from onbmacf.explanation import Batch, Explanations, Relaxation, Status
from onbmacf.model import FAILED, BlackBox
from onbmacf.pipeline import Found, chunks
from onbmacf.space import FeatureSpace

Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Questions:
    """The rows of one explain call, as numbers, points and labels; what cannot be asked has a status already."""

    frame: pd.DataFrame
    space: FeatureSpace
    black_box: BlackBox
    N: Matrix
    z: Matrix
    labels: NDArray[Any]  # the caller's own
    codes: Rows
    wanted: NDArray[np.bool_]  # rows x classes
    statuses: NDArray[Any]
    reasons: NDArray[Any]

    @classmethod
    def of(cls, frame: pd.DataFrame, space: FeatureSpace, black_box: BlackBox, targets: Rows | None) -> "Questions":
        """Turn rows into points, ask the model for their labels, and settle what cannot be searched."""
        N = space.form.numbers(frame)
        faults = space.form.faults(frame, N)
        good = np.array([row not in faults for row in range(len(frame))], dtype=bool)
        z = np.zeros((len(frame), space.width))
        z[good] = space.encode_numbers(N[good])
        labels, codes = np.full(len(frame), None, dtype=object), np.full(len(frame), FAILED, dtype=np.intp)
        said = black_box.ask_labels(N[good])
        codes[good] = black_box.codes(said)
        labels[good] = said.tolist()
        wanted = _wanted(codes, targets, len(black_box.classes))
        statuses, reasons = _settled(faults, labels, codes, targets)
        labels[codes == FAILED] = None
        return cls(frame, space, black_box, N, z, labels, codes, wanted, statuses, reasons)

    def chunks(self, n_balls: int, recover: str) -> list[Rows]:
        """Return the open rows in groups that are explained together; one by one where each changes the map."""
        lines = np.flatnonzero(self.statuses == Status.FOUND)
        if recover == "persist":
            return [lines[i : i + 1] for i in range(len(lines))]
        return [lines[part] for part in chunks(len(lines), n_balls)]

    def ask(self, points: Matrix, factual: Rows) -> Rows:
        """Return the model's label codes of encoded points; features left alone keep the factual's own values."""
        return self.black_box.ask(self.numbers(points, factual))

    def numbers(self, points: Matrix, factual: Rows) -> Matrix:
        """Return encoded points as numbers, near their factuals."""
        return self.space.decode_numbers(points, near=(self.z[factual], self.N[factual]))


def _wanted(codes: Rows, targets: Rows | None, n_classes: int) -> NDArray[np.bool_]:
    """Return per row which labels are to be reached: the targets, never the row's own."""
    every = np.arange(n_classes)
    allowed = np.ones(n_classes, dtype=bool) if targets is None else np.isin(every, targets)
    return allowed & (every != codes[:, np.newaxis])


def _settled(
    faults: dict[int, str], labels: NDArray[Any], codes: Rows, targets: Rows | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return status and reason of every row as known before the search; `found` stands for an open one."""
    statuses = np.full(len(codes), Status.FOUND, dtype=object)
    reasons = np.full(len(codes), "", dtype=object)
    for row in np.flatnonzero(codes == FAILED):
        statuses[row] = Status.INVALID_ROW if row in faults else Status.MODEL_ERROR
        reasons[row] = faults.get(int(row)) or f"the model raised {type(labels[row]).__name__}: {labels[row]}"
    if targets is not None:
        for row in np.flatnonzero(np.isin(codes, targets)):
            statuses[row] = Status.ALREADY
            reasons[row] = f"the model says {labels[row]!r} already."
    return statuses, reasons


def joined(found: list[Found], width: int) -> Found:
    """Put what was found chunk by chunk into one."""
    if not found:
        none, points = np.empty(0, dtype=np.intp), np.empty((0, width))
        return Found(none, none, none, none, points, points, np.empty(0, dtype=bool))
    return Found(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def answer(questions: Questions, found: Found, metric: Metric, n: int) -> Explanations:
    """Decode what was found, ask the model again about the very rows returned, and keep what holds."""
    N = questions.numbers(found.counterfactual, found.factual)
    labels = questions.black_box.ask_labels(N)
    holds = questions.black_box.codes(labels) == found.label
    found, N, labels = Found(*(part[holds] for part in found)), N[holds], labels[holds]
    batch = _batch(questions, found, N, labels, metric)
    statuses, reasons = questions.statuses.copy(), questions.reasons.copy()
    counts = np.bincount(found.factual, minlength=len(statuses)) if len(statuses) else np.empty(0, dtype=int)
    for row in np.flatnonzero(statuses == Status.FOUND):
        if counts[row] == 0:
            statuses[row] = Status.MODEL_ERROR
            reasons[row] = "the model gave another label when it was asked again: it is not deterministic."
        elif counts[row] < n:
            reasons[row] = f"{counts[row]} of {n} counterfactuals exist: no more balls have a viable centre."
    return Explanations(questions.frame, questions.labels, statuses, reasons, batch)


def _batch(questions: Questions, found: Found, N: Matrix, labels: NDArray[Any], metric: Metric) -> Batch:
    space, z = questions.space, questions.z[found.factual]
    semifactual_N = questions.numbers(found.semifactual, found.factual)
    distance = paired(z, found.semifactual, metric)
    return Batch(
        factual=found.factual,
        values=space.form.frame(N),
        label=np.array([*labels.tolist(), None], dtype=object)[:-1],
        distance=paired(z, found.counterfactual, metric),
        changed=space.changed(z, found.counterfactual),
        relaxation=np.array([*Relaxation], dtype=object)[found.relaxation],
        ball=found.ball,
        semifactual_values=space.form.frame(semifactual_N),
        semifactual_distance=np.where(found.has_semifactual, distance, np.nan),
        semifactual_changed=space.changed(z, found.semifactual),
    )
