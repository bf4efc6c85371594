"""Any predict function as a black box: rows in, integer labels out.

    N (numbers)  ->  the caller's own form  ->  predict, in chunks of fixed sizes  ->  label codes

Matrix products differ in their last bits with the shape of the batch. So that no answer depends on which other rows are
in the call, a chunk is padded to one size with copies of its first row, or, where `learn_sizes` has seen that the
model's answers do not depend on the size, to the next of a few sizes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.arrays import Matrix, objects
from onbmacf._base.arrays import Rows as Codes
from onbmacf._base.checks import check_choice
from onbmacf._rows.form import TableForm
from onbmacf._rows.readings import PLAIN, Reading, adapted
from onbmacf.errors import ModelError

FAILED = -1  # the code of a row on which the model raised an error
OUTPUTS = ("auto", "label", "probability")
SMALLEST = 16  # rows of the smallest call of a model whose answers do not depend on the size of the call
MOST_RETRIES = 64  # calls per failing chunk to find the rows on which the model raises


@dataclass
class Counts:
    """How often the model was asked so far."""

    n_calls: int = 0  # calls of the model
    n_questions: int = 0  # points that it was asked about
    n_model_rows: int = 0  # rows that it was given, padding included
    n_member_questions: int = 0  # points that members of a committee were asked about, each member's counted
    error: str = ""  # what it raised last

    def add(self, other: "Counts") -> None:
        """Add the counts of another part of the work."""
        self.n_calls += other.n_calls
        self.n_questions += other.n_questions
        self.n_model_rows += other.n_model_rows
        self.n_member_questions += other.n_member_questions
        self.error = other.error or self.error


@dataclass(frozen=True, eq=False)
class BlackBox:
    """A model, how to call it, and how often it was called."""

    model: Any
    form: TableForm
    chunk: int = 512
    output: str = "auto"
    classes: NDArray[Any] = field(default_factory=lambda: np.empty(0, dtype=object))
    counts: Counts = field(default_factory=Counts)
    unseen: list[Any] = field(default_factory=list)  # labels seen after fit that no fitted row has
    sizes: tuple[int, ...] = ()  # rows that a call may have, smaller ones first; none: `chunk` alone
    reading: Reading = PLAIN  # what the caller says about the model's answers

    def __post_init__(self) -> None:
        check_choice("output", self.output, OUTPUTS)
        if not callable(getattr(self.model, "predict", None)) and not callable(self.model):
            raise ModelError(
                f"the model must have predict or be callable, got {type(self.model).__name__}. "
                "Wrap it: model=lambda rows: ..."
            )

    @cached_property
    def asked(self) -> Any:
        """What is called: the model itself, or what reads its answers as the caller says."""
        return adapted(self.model, self.reading)

    def counting(self) -> "BlackBox":
        """Return the same black box with counts of its own, from 0; the labels seen so far keep their codes."""
        other = replace(self, counts=Counts(), unseen=list(self.unseen))
        other.__dict__["asked"] = self.asked
        return other

    def learn_classes(self, N: Matrix) -> "tuple[BlackBox, Codes]":
        """Label the fitted rows; return the black box with their labels in sorted order, and the rows' codes."""
        labels = self.ask_labels(N)
        failed = np.flatnonzero(_is_error(labels))
        if len(failed):
            error = labels[failed[0]]
            raise ModelError(f"the model raised on row {failed[0]} of the table: {error}") from error
        classes = objects(_sorted_labels(labels))
        if len(classes) < 2:
            raise ModelError(
                f"the model predicts only {classes[0]!r} on these {len(N):,} rows: a cover needs two "
                "labels. Check that predict returns labels, not scores."
            )
        known = replace(self, classes=classes)
        return known, known.codes(labels)

    def learn_sizes(self, N: Matrix) -> "BlackBox":
        """Ask about the same rows in calls of several sizes; return the black box with the sizes that may be used.

        All powers of two from 16 up to the chunk where labels and probabilities are the same to the bit, whatever the
        size and the place of a row in it; the chunk alone otherwise.
        """
        sizes = [SMALLEST << k for k in range(20) if SMALLEST << k < self.chunk]
        trials = [replace(self, sizes=(size,), counts=Counts()) for size in (*sizes, self.chunk)]
        if not sizes:
            return self
        try:
            asked = [_at_once(trial, np.roll(N, turn, axis=0), -turn) for turn, trial in enumerate(trials)]
        except Exception:  # a predict_proba that fails is reported where it is needed
            return self
        is_same = all(np.array_equal(one, asked[-1][at]) for own in asked for at, one in enumerate(own))
        return replace(self, sizes=(*sizes, self.chunk) if is_same else ())

    def ask(self, N: Matrix) -> Codes:
        """Return label codes: from len(classes) on for labels that no fitted row has, FAILED where the model raised."""
        return self.codes(self.ask_labels(N))

    def ask_labels(self, N: Matrix) -> NDArray[Any]:
        """Return the model's own labels, with the caught exception in place of a label where it raised."""
        return np.concatenate(list(self._answers(N))) if len(N) else np.empty(0, dtype=object)

    def codes(self, labels: NDArray[Any]) -> Codes:
        """Return the position of each label among the classes followed by the unseen labels, or FAILED."""
        known = self._known_codes(labels)
        if known is not None:
            return known
        is_error = _is_error(labels)
        if is_error.any():
            error = labels[is_error][-1]
            self.counts.error = f"{type(error).__name__}: {error}"
            return np.array([FAILED if isinstance(label, Exception) else self._code(label) for label in labels])
        found, values = pd.factorize(labels)
        return np.array([self._code(value) for value in values.tolist()], dtype=np.intp)[found]

    def _known_codes(self, labels: NDArray[Any]) -> Codes | None:
        """Return the codes where all labels are classes; None where one is not, or it is not quick to say."""
        if labels.dtype.kind in "iu" and self._whole is not None:
            place = np.searchsorted(self._whole, labels).clip(max=len(self._whole) - 1)
            return place if (self._whole[place] == labels).all() else None
        try:
            places = [*map(self._places.get, labels.tolist())]
        except TypeError:  # labels such as lists
            return None
        return None if None in places else np.array(places, dtype=np.intp)

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {label: code for code, label in enumerate(self.classes.tolist())}

    @cached_property
    def _whole(self) -> Codes | None:
        """The classes as sorted whole numbers, where they are such."""
        if not len(self.classes) or not all(isinstance(label, int) for label in self.classes):
            return None
        return np.array(self.classes, dtype=np.int64)

    def named(self, codes: Codes) -> NDArray[Any]:
        """Return the labels with these codes, as the model gives them."""
        known = [*self.classes, *self.unseen]
        return objects([known[code] for code in codes])

    def probability(self, N: Matrix, codes: Codes) -> Matrix | None:
        """Return the model's probability of one label per row; None if the model has no probabilities."""
        predict = getattr(self.asked, "predict_proba", None)
        names = getattr(self.asked, "classes_", None)
        if predict is None or names is None:
            return None
        known = list(np.asarray(names).tolist())
        column = np.array([known.index(self.classes[code]) for code in codes], dtype=np.intp)
        parts = [np.empty((0, len(known)))]
        for part in self._parts(len(N)):
            rows = self._rows(N[part])
            self._count(1, len(N[part]), len(rows))
            parts.append(np.asarray(predict(rows))[: len(N[part])])
        return np.concatenate(parts)[np.arange(len(N)), column]

    def _code(self, label: Any) -> int:
        known = [*self.classes, *self.unseen]
        if label not in known:
            self.unseen.append(label)
            return len(known)
        return known.index(label)

    def _parts(self, n_rows: int) -> list[slice]:
        return [slice(start, min(start + self.largest, n_rows)) for start in range(0, n_rows, self.largest)]

    @property
    def largest(self) -> int:
        """The largest number of rows in one call."""
        return self.sizes[-1] if self.sizes else self.chunk

    def _rows(self, N: Matrix) -> Any:
        """Return one chunk in the caller's form, padded with copies of its first row."""
        size = next(size for size in self.sizes or (self.chunk,) if size >= len(N))
        return self.form.rows_for_model(np.concatenate([N, np.repeat(N[:1], size - len(N), axis=0)]))

    def _answers(self, N: Matrix) -> Iterator[NDArray[Any]]:
        for part in self._parts(len(N)):
            own = N[part]
            try:
                yield self._predict(self._rows(own), len(own))
            except ModelError:
                raise
            except Exception as error:
                labels = np.empty(len(own), dtype=object)
                self._isolate(own, labels, np.arange(len(own)), [MOST_RETRIES], error)
                yield labels

    def _isolate(self, N: Any, labels: Any, lines: Any, left: list[int], error: Exception) -> None:
        """Halve a failing chunk until each row that raises is alone, or no retries are left."""
        if len(lines) == 1 or left[0] <= 0:
            for line in lines:
                labels[line] = error
            return
        for half in np.array_split(lines, 2):
            left[0] -= 1
            try:
                answer = self._predict(self._rows(N[half]), len(half))
                labels[half] = answer.tolist()
            except ModelError:
                raise
            except Exception as raised:
                self._isolate(N, labels, half, left, raised)

    def _predict(self, rows: Any, n_real: int) -> NDArray[Any]:
        """Call the model with one chunk of the fixed size and return one label per real row."""
        predict: Callable[[Any], Any] = getattr(self.asked, "predict", self.asked)
        self._count(1, n_real, len(rows))
        return self._labels(predict(rows), len(rows))[:n_real]

    def _count(self, n_calls: int, n_questions: int, n_rows: int) -> None:
        self.counts.n_calls += n_calls
        self.counts.n_questions += n_questions
        self.counts.n_model_rows += n_rows

    def _labels(self, answer: Any, n_rows: int) -> NDArray[Any]:
        """Return labels, scores or class probabilities, in any container, as a vector of labels."""
        if hasattr(answer, "detach"):  # a torch tensor
            answer = answer.detach().cpu().numpy()
        answer = _as_vector_or_matrix(np.asarray(answer), n_rows)
        _check_no_nan(answer)
        if answer.ndim == 2:
            return self._named(answer.argmax(axis=1), answer.shape[1])
        if self.output == "probability":
            return self._named((answer.astype(np.float64) > 0.5).astype(np.intp), 2)
        if self.output == "auto" and answer.dtype.kind == "f":
            _check_labels_not_scores(answer)
        return answer

    def _named(self, positions: Codes, n_classes: int) -> NDArray[Any]:
        names = getattr(self.asked, "classes_", None)
        if names is None or len(names) != n_classes:
            names = np.arange(n_classes)
        return np.asarray(np.asarray(names)[positions])


def _at_once(box: BlackBox, N: Matrix, turn: int) -> tuple[NDArray[Any], ...]:
    """Return labels and, where there are any, probabilities of rows, turned back into their order."""
    labels, predict = box.ask_labels(N), getattr(box.asked, "predict_proba", None)
    if predict is None:
        return (np.roll(labels, turn),)
    parts = [np.asarray(predict(box._rows(N[part])))[: len(N[part])] for part in box._parts(len(N))]
    return np.roll(labels, turn), np.roll(np.concatenate(parts), turn, axis=0)


def _as_vector_or_matrix(answer: NDArray[Any], n_asked: int) -> NDArray[Any]:
    if answer.ndim == 0 or len(answer) != n_asked:
        raise ModelError(
            f"predict was given {n_asked} rows and returned {len(answer) if answer.ndim else 'a single value'}."
        )
    if answer.ndim > 2:
        raise ModelError(f"predict returned an array of shape {answer.shape}; allowed: (n,), (n, 1) or (n, C).")
    return answer[:, 0] if answer.ndim == 2 and answer.shape[1] == 1 else answer


def _is_error(labels: NDArray[Any]) -> NDArray[np.bool_]:
    if labels.dtype != object:
        return np.zeros(len(labels), dtype=bool)
    return np.array([isinstance(label, Exception) for label in labels], dtype=bool)


def _sorted_labels(labels: NDArray[Any]) -> list[Any]:
    found = pd.unique(labels).tolist()
    try:
        return sorted(found)
    except TypeError:
        return sorted(found, key=lambda label: (type(label).__name__, str(label)))


def _check_no_nan(answer: NDArray[Any]) -> None:
    if answer.dtype.kind in "iub":
        return
    missing = pd.isna(answer)
    bad = np.flatnonzero(missing.any(axis=1) if missing.ndim == 2 else missing)
    if len(bad):
        raise ModelError(f"the model returned NaN for row {bad[0]} of a batch ({len(bad)} rows in all).")


def _check_labels_not_scores(answer: NDArray[Any]) -> None:
    odd = answer[answer != np.trunc(answer)]
    if len(odd):
        inside = "could be a score or a label" if 0 <= odd[0] <= 1 else "looks like a score, not a label"
        raise ModelError(
            f"predict returned {odd[0]:.6g}, which {inside}. Pass output='probability' (labels 0 and 1, "
            "threshold 0.5), threshold=... with classes=..., target=Between(low, high) for a regressor, or "
            "output='label' to fit, or return labels."
        )
