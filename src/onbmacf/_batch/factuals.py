"""The rows of one explain call: from what was asked to what is answered.

    rows  ->  Questions.of  ->  (pipeline.search)  ->  answer  ->  Explanations

A row that cannot be asked has its status before the search; a counterfactual that does not hold when the model is
asked again, about the very values returned, is dropped and said.
"""

import os
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._balls.distance import Matrix, Metric, paired
from onbmacf._balls.neighbours import Neighbours
from onbmacf._rows.constraints import Constraints
from onbmacf._rows.model import FAILED, BlackBox
from onbmacf._rows.space import FeatureSpace
from onbmacf._search.search import UNASKED, Found, Ground, found_at, search
from onbmacf._search.walk import margins
from onbmacf.errors import ParameterError
from onbmacf.explanation import Batch, Explanations, Relaxation, Status, on_the_front, select

Rows = NDArray[np.intp]
FORBIDDEN = UNASKED  # a point that breaks a rule: never asked, never accepted


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
    places: Rows  # positions in the caller's rows
    constraints: Constraints
    min_probability: float = 0.0

    @classmethod
    def of(
        cls,
        frame: pd.DataFrame,
        space: FeatureSpace,
        black_box: BlackBox,
        targets: Rows | None,
        constraints: Constraints,
        min_probability: float = 0.0,
    ) -> "Questions":
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
        places = np.arange(len(frame))
        return cls(
            frame,
            space,
            black_box,
            N,
            z,
            labels,
            codes,
            wanted,
            statuses,
            reasons,
            places,
            constraints,
            min_probability,
        )

    def open_lines(self) -> Rows:
        """Return the positions of the rows that are still to be searched."""
        return np.flatnonzero(self.statuses == Status.FOUND)

    def part(self, lines: Rows) -> "Questions":
        """Return some of the questions, remembering their places."""
        return replace(
            self,
            frame=self.frame.iloc[:0],  # the search needs numbers only
            N=self.N[lines],
            z=self.z[lines],
            labels=self.labels[lines],
            codes=self.codes[lines],
            wanted=self.wanted[lines],
            statuses=self.statuses[lines],
            reasons=self.reasons[lines],
            places=self.places[lines],
        )

    def ask(self, points: Matrix, factual: Rows) -> Rows:
        """Return the model's label codes of encoded points; FORBIDDEN, unasked, where a rule is broken."""
        N = self.numbers(points, factual)
        codes = np.full(len(N), FORBIDDEN, dtype=np.intp)
        good = self.constraints.allowed(N, self.N[factual]) if self.constraints else np.ones(len(N), dtype=bool)
        codes[good] = self.black_box.ask(N[good])
        if self.min_probability > 0:
            self._forbid_unsure(N, codes, factual)
        return codes

    def _forbid_unsure(self, N: Matrix, codes: Rows, factual: Rows) -> None:
        """Forbid points whose label is one to be reached but not probable enough."""
        is_known = (codes >= 0) & (codes < self.wanted.shape[1])
        reached = np.flatnonzero(is_known & self.wanted[factual, np.where(is_known, codes, 0)])
        sure = self.black_box.probability(N[reached], codes[reached])
        if sure is None:
            raise ParameterError("min_probability needs a model with predict_proba and classes_.")
        codes[reached[sure < self.min_probability]] = FORBIDDEN

    def snap(self, points: Matrix, z: Matrix, goal: Matrix) -> Matrix:
        """Round discrete features, and put values where the rules allow them."""
        return self.constraints.constrain(self.space.snap(points, z, goal), z)

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


class Part(NamedTuple):
    """What was found for a part of the questions, and at what cost, in which process."""

    found: Found
    ran_out: Rows  # places of the rows whose budget ran out
    n_calls: int
    n_rows: int
    process: int


def search_part(ground: Ground, questions: Questions, n: int) -> Part:
    """Search the answers to some questions; places in the result are those of the whole batch."""
    box = questions.black_box
    calls, asked = box.n_calls, box.n_rows
    found, ran_out = search(ground, questions.z, questions.codes, questions.wanted, questions.ask, questions.snap, n)
    found = found._replace(factual=questions.places[found.factual])
    return Part(found, questions.places[ran_out], box.n_calls - calls, box.n_rows - asked, os.getpid())


def joined(parts: list[Part], width: int) -> tuple[Found, Rows]:
    """Put what was found part by part together: all of it, and the places whose budget ran out."""
    if not parts:
        none, points = np.empty(0, dtype=np.intp), np.empty((0, width))
        return Found(none, none, none, none, points, points, np.empty(0, dtype=bool)), none
    every = Found(*(np.concatenate(column) for column in zip(*(part.found for part in parts), strict=True)))
    return every, np.concatenate([part.ran_out for part in parts])


def answer(
    questions: Questions,
    search_result: tuple[Found, Rows],
    metric: Metric,
    n: int,
    neighbours: Neighbours,
    front: bool = False,
    distinct: bool = True,
) -> Explanations:
    """Decode what was found, ask the model again about the very rows returned, and keep what holds.

    With `distinct`, a counterfactual that repeats one of the same row is dropped; the paper's come from different balls
    and may be equal.
    """
    found, ran_out = search_result
    found = found_at(found, np.argsort(found.factual, kind="stable"))
    N = questions.numbers(found.counterfactual, found.factual)
    labels = questions.black_box.ask_labels(N)
    holds = questions.black_box.codes(labels) == found.label
    if distinct:
        holds &= ~_repeats(found.factual, N)
    raised = {int(row): error for row, error in zip(found.factual, labels, strict=True) if isinstance(error, Exception)}
    n_found = np.bincount(found.factual, minlength=len(questions.places))
    found, N, labels = found_at(found, np.flatnonzero(holds)), N[holds], labels[holds]
    n_held = np.bincount(found.factual, minlength=len(questions.places))
    batch = _batch(questions, found, N, labels, metric, neighbours)
    if front:
        batch, n = select(batch, on_the_front(batch)), 0
    statuses, reasons = questions.statuses.copy(), questions.reasons.copy()
    for row in questions.open_lines():
        statuses[row], reasons[row] = _verdict(
            int(n_found[row]), int(n_held[row]), n, bool(row in ran_out), raised.get(int(row))
        )
    return Explanations(questions.frame, questions.labels, statuses, reasons, batch)


def _repeats(factual: Rows, N: Matrix) -> NDArray[np.bool_]:
    """Say which lines give a factual the values of a line before: points may differ in bits that no value shows."""
    return pd.DataFrame(np.column_stack([factual, N])).duplicated().to_numpy()


def _verdict(n_found: int, n_held: int, n: int, ran_out: bool, error: Exception | None) -> tuple[Status, str]:
    """Return status and reason of a row that was searched."""
    if n_held == 0 and error is not None:
        return Status.MODEL_ERROR, f"the model raised {type(error).__name__}: {error}"
    if n_found > n_held == 0:
        reason = "the model gave another label when it was asked again about the very values to be returned: "
        return Status.MODEL_ERROR, reason + "it is not deterministic, or tells apart rows that are equal once scaled."
    if n_held == 0 and ran_out:
        return Status.INFEASIBLE, "max_model_rows was used up before a counterfactual was found: raise it."
    if n_held == 0:
        return Status.INFEASIBLE, "no point of a label to reach keeps every rule."
    if ran_out:
        return Status.FOUND, f"max_model_rows was used up: the best {n_held} so far, others may be nearer."
    if n_held < n:
        return Status.FOUND, f"{n_held} of {n} counterfactuals exist: no more balls have a viable centre."
    return Status.FOUND, ""


def _batch(
    questions: Questions, found: Found, N: Matrix, labels: NDArray[Any], metric: Metric, neighbours: Neighbours
) -> Batch:
    space, z = questions.space, questions.z[found.factual]
    distance = paired(z, found.counterfactual, metric)
    to_semifactual = paired(z, found.semifactual, metric)
    return Batch(
        factual=found.factual,
        values=space.form.frame(N),
        label=np.array([*labels.tolist(), None], dtype=object)[:-1],
        distance=distance,
        changed=space.changed(z, found.counterfactual),
        relaxation=np.array([*Relaxation], dtype=object)[found.relaxation],
        ball=found.ball,
        plausibility=neighbours.share(found.counterfactual, found.label),
        margin=distance * _margins(questions, found, z),
        probability=questions.black_box.probability(N, found.label),
        semifactual_values=space.form.frame(questions.numbers(found.semifactual, found.factual)),
        semifactual_distance=np.where(found.has_semifactual, to_semifactual, np.nan),
        semifactual_changed=space.changed(z, found.semifactual),
    )


def _margins(questions: Questions, found: Found, z: Matrix) -> Matrix:
    def holds(points: Matrix, lines: Rows) -> NDArray[np.bool_]:
        snapped = questions.space.snap(points, z[lines], found.counterfactual[lines])
        return questions.black_box.ask(questions.numbers(snapped, found.factual[lines])) == found.label[lines]

    return margins(z, found.counterfactual, holds)
