"""Any predict function as a black box: rows in, integer labels out.

    N (numbers)  ->  the caller's own form  ->  predict, in chunks of fixed sizes  ->  label codes

Matrix products differ in their last bits with the shape of the batch. So that no answer depends on which other rows are
in the call, a chunk is padded to one size with copies of its first row, or, where `learn_sizes` has seen that the
model's answers do not depend on the size, to the next of a few sizes.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.arrays import Matrix, objects
from onbmacf._base.arrays import Rows as Codes
from onbmacf._base.checks import check_choice, error_words, message_of
from onbmacf._base.limits import check_awaited
from onbmacf._table.calls import ENDLESS, SOME, Counts, in_calls
from onbmacf._table.form import TableForm
from onbmacf._table.readings import PLAIN, Reading, adapted
from onbmacf._table.replies import (
    SLACK,
    BadAnswerError,
    NaNAnswerError,
    NaNProbabilityError,
    Scorer,
    as_columns,
    check_classes,
    check_probabilities,
    check_written,
    labels_of,
    method_of,
    probabilities_of,
    scorer_of,
)
from onbmacf.errors import ModelError

FAILED = -1  # the code of a row on which the model raised an error
OUTPUTS = ("auto", "label", "probability")
LARGER = 8  # chunks in one call, where many rows are searched at once
PRINTED = 12  # digits of a probability: the last bits change with the rows in the call, and what is printed must not
TRIED = (16, 100)  # sizes of calls by which it is seen whether the size matters, beside the chunk


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
    no_probability: str = ""  # why there are no probabilities though the model has predict_proba
    n_contradicted: int = 0  # fitted rows asked of which predict_proba gives another label the highest probability
    reading: Reading = PLAIN  # what the caller says about the model's answers
    notices: list[str] = field(default_factory=list)  # what a caller should know of how a call asked it
    scorer: Scorer | None = None  # how scores are asked for; None: the model gives labels alone
    steps: Any = None  # a copy of a pipeline's steps, by which its last estimator is asked for scores without a frame

    def __post_init__(self) -> None:
        check_choice("output", self.output, OUTPUTS)
        if method_of(self.model, "predict") is None and not callable(self.model):
            raise ModelError(
                f"the model must have predict or be callable, got {type(self.model).__name__}. "
                "Wrap it: model=lambda rows: ..."
            )

    @cached_property
    def asked(self) -> Any:
        """What is called: the model itself, or what reads its answers as the caller says."""
        return adapted(self.model, self.reading)

    def counting(self) -> "BlackBox":
        """Return the same black box with counts and notices of its own; the labels seen so far keep their codes."""
        return replace(self, counts=Counts(), unseen=list(self.unseen), notices=[])

    def learn_classes(self, N: Matrix) -> "tuple[BlackBox, Codes]":
        """Label the fitted rows; return the black box with their labels in sorted order, and the rows' codes."""
        labels = self.ask_labels(N, ENDLESS)
        failed = np.flatnonzero(is_error(labels))
        if len(failed):
            row, error = int(failed[0]), labels[failed[0]]
            if isinstance(error, NaNAnswerError):
                raise ModelError(
                    f"the model returned NaN for row {row} of the table ({len(failed):,} rows in all)."
                ) from error
            raise ModelError(f"the model raised on row {row} of the table: {message_of(error)}") from error
        known = self.with_classes(labels, len(N))
        return known, known.codes(labels)

    def with_classes(self, labels: NDArray[Any], n_rows: int) -> "BlackBox":
        """Return the black box with the labels that it has given so many rows, sorted."""
        classes = objects(_sorted_labels(labels))
        if len(classes) < 2:
            raise ModelError(
                f"the model predicts only {classes[0]!r} on these {n_rows:,} rows: a cover needs two "
                "labels. Check that predict returns labels, not scores."
            )
        return replace(self, classes=classes)

    def learn_sizes(self, N: Matrix) -> "BlackBox":
        """Ask about the same rows in calls of several sizes; return the black box with the sizes that may be used.

        Calls of any size up to the chunk where labels and probabilities are the same whatever the size and the place of
        a row in it; the chunk alone otherwise.
        """
        sizes = (*(size for size in TRIED if size < self.chunk), self.chunk)
        is_free = len(sizes) > 1 and _says_the_same(replace(self, counts=Counts()), sizes, N)
        return replace(self, sizes=sizes if is_free else ())

    def in_large_calls(self, N: Matrix) -> "BlackBox":
        """Return the black box for many rows: with calls of up to eight times the chunk, where that changes no answer.

        Asked about are the rows by which sizes were learned; a model whose answers depend on the size stays as it is.
        """
        large = LARGER * self.chunk
        if not self.sizes or not _says_the_same(self, (self.chunk, large), N):
            return self
        return replace(self, sizes=(*self.sizes, large))

    def ask(self, N: Matrix) -> Codes:
        """Return label codes: from len(classes) on for labels that no fitted row has, FAILED where the model raised."""
        return self.codes(self.ask_labels(N))

    def ask_labels(self, N: Matrix, retries: int = SOME) -> NDArray[Any]:
        """Return the model's own labels, with the caught exception in place of a label where it raised."""
        is_fit = not len(self.classes)  # when all that is known of the model is what it returns
        pieces = in_calls(self._predict, N, self.largest, self._retries(retries), is_strict=is_fit)
        if any(isinstance(answer, Exception) for _, answer in pieces):
            lists = [
                [answer] * len(lines) if isinstance(answer, Exception) else answer.tolist() for lines, answer in pieces
            ]
            return objects(label for answer in lists for label in answer)
        return np.concatenate([answer for _, answer in pieces]) if pieces else np.empty(0, dtype=object)

    def codes(self, labels: NDArray[Any]) -> Codes:
        """Return the position of each label among the classes followed by the unseen labels, or FAILED."""
        known = self._known_codes(labels)
        if known is not None:
            return known
        if is_error(labels).any():
            return np.array([FAILED if isinstance(label, Exception) else self._code(label) for label in labels])
        found, values = told_apart(labels)
        return np.array([self._code(value) for value in values.tolist()], dtype=np.intp)[found]

    def _known_codes(self, labels: NDArray[Any]) -> Codes | None:
        """Return the codes where all labels are classes; None where one is not, or it is not quick to say."""
        if labels.dtype.kind in "iu" and self._whole is not None:
            place = np.minimum(self._whole.searchsorted(labels), len(self._whole) - 1)
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
        if not len(self.classes) or not all(isinstance(label, int) and abs(label) < 2**63 for label in self.classes):
            return None
        return np.array(self.classes, dtype=np.int64)

    def named(self, codes: Codes) -> NDArray[Any]:
        """Return the labels with these codes, as the model gives them."""
        known = [*self.classes, *self.unseen]
        return objects([known[code] for code in codes])

    def probability(
        self, N: Matrix, codes: Codes, noted: Callable[[Codes, Exception], None] | None = None, retries: int = SOME
    ) -> Matrix | None:
        """Return the model's probability of one label per row; None if it has no probabilities.

        NaN where it raised or returned NaN; `noted` is told of these rows and errors. `retries` is that of `in_calls`.
        """
        if self.names is None or self.no_probability:
            return None
        check_classes(self.names, [self.classes[code] for code in np.unique(codes)])
        column = np.array([self.names.index(self.classes[code]) for code in codes], dtype=np.intp)
        known = np.full((len(N), len(self.names)), np.nan)
        for lines, answer in in_calls(self._predict_proba, N, self.largest, self._retries(retries)):
            if not isinstance(answer, Exception):
                known[lines] = answer
            if noted is not None and isinstance(answer, Exception):
                noted(lines, answer)
            elif noted is not None and np.isnan(answer).any():
                noted(lines[np.isnan(answer).any(axis=1)], NaNProbabilityError())
        return np.round(known[np.arange(len(N)), column], PRINTED)

    def predicted(self, N: Matrix) -> Matrix | None:
        """Return the number that a regressor predicts of each row, NaN where it raised; None of a classifier."""
        if self.reading.between is None:
            return None
        known = np.full(len(N), np.nan)
        for lines, answer in in_calls(self._predicted, N, self.largest, self._retries(SOME)):
            known[lines] = np.nan if isinstance(answer, Exception) else answer
        return known

    def _predicted(self, N: Matrix) -> NDArray[Any]:
        rows = self._rows(N)
        self.counts.count(len(N), len(rows))
        return self.asked.predicted(rows)[: len(N)]

    def learn_probability(self, N: Matrix, rows: Codes, codes: Codes) -> "BlackBox":
        """Ask for the probabilities of some fitted rows; return the black box that knows why it has none, if so.

        It also knows how many of them contradict the labels, as those of a threshold that the caller chose may. The
        model's `classes_`, where it has any, must name the labels, also of a model without probabilities.
        """
        if self.all_names is not None:
            check_classes(self.all_names, self.classes.tolist())
        if self.names is None:
            return self
        pieces = in_calls(self._predict_proba, N, self.largest, is_strict=True)
        errors = [answer for _, answer in pieces if isinstance(answer, Exception)]
        if len(errors) == len(pieces):
            return replace(self, no_probability=f"predict_proba raised {error_words(errors[0])}")
        for lines, answer in pieces:
            bad = [] if isinstance(answer, Exception) else rows[lines[np.isnan(answer).any(axis=1)]].tolist()
            if bad:
                raise ModelError(f"predict_proba returned NaN for row {bad[0]} of the table ({len(bad)} rows so far).")
            if not isinstance(answer, Exception):
                check_probabilities(answer, rows[lines])
        if self.reading.threshold is not None:
            return self
        columns = np.array([self.names.index(self.classes[code]) for code in codes], dtype=np.intp)
        answers = [(lines, answer) for lines, answer in pieces if not isinstance(answer, Exception)]
        leads = [answer[np.arange(len(lines)), columns[lines]] - answer.max(axis=1) for lines, answer in answers]
        return replace(self, n_contradicted=sum(int((lead < -SLACK).sum()) for lead in leads))

    def learn_scores(self, N: Matrix, codes: Codes) -> "BlackBox":
        """Return the black box that knows how to ask for scores, from fitted rows and what the model said of them."""
        apart = replace(self, counts=Counts())
        names = ("predict_proba", "decision_function", "class_scores")
        known = [name for name in names if method_of(self.asked, name) is not None]
        if self.no_probability and "predict_proba" in known:
            known.remove("predict_proba")
        methods = {name: partial(apart._all_scores, name, N) for name in known}
        return replace(self, scorer=scorer_of(methods, self.all_names, self.classes, codes))

    def _all_scores(self, method: str, N: Matrix) -> Matrix:
        return np.concatenate(
            [self._scored(method, N[at : at + self.largest]) for at in range(0, len(N), self.largest)]
        )

    def _scored(self, method: str, N: Matrix) -> Matrix:
        """Call a method that gives scores with one chunk."""
        rows = self._rows(N) if self.steps is None else self.steps.columns(self._padded(N))
        n_rows = rows.shape[0] if hasattr(rows, "shape") else len(rows)
        self.counts.count(len(N), n_rows)
        given = getattr(self.asked if self.steps is None else self.steps.estimator, method)(rows)
        if method == "predict_proba":
            return probabilities_of(given, n_rows, len(self.names or ()))[: len(N)]
        answer = as_columns(given)
        if len(answer) != n_rows:
            raise BadAnswerError(f"{method} returned {len(answer)} lines for {n_rows} rows.")
        return answer[: len(N)]

    def ask_scores(self, N: Matrix, retries: int = SOME) -> tuple[Matrix, list[tuple[Codes, Exception]]]:
        """Return what the scoring method says, a line per row, NaN where it raised; and the rows that raised."""
        assert self.scorer is not None, "only a model with scores is asked for them"
        known = np.full((len(N), len(self.all_names or ())), np.nan)
        errors: list[tuple[Codes, Exception]] = []
        ask = partial(self._scored, self.scorer.method)
        for lines, answer in in_calls(ask, N, self.largest, self._retries(retries)):
            if isinstance(answer, Exception):
                errors.append((lines, answer))
                continue
            known[lines] = answer
            bad = lines[~np.isfinite(answer).all(axis=1)]
            if len(bad):
                known[bad] = np.nan
                errors.append((bad, NaNProbabilityError()))
        return known, errors

    @cached_property
    def names(self) -> list[Any] | None:
        """The labels to which the columns of `predict_proba` belong; None without probabilities."""
        return None if method_of(self.asked, "predict_proba") is None else self.all_names

    @cached_property
    def all_names(self) -> list[Any] | None:
        """The labels that the model says it may give, its `classes_`; None where it says none that can be read."""
        names: Any = getattr(self.asked, "classes_", None)
        if not isinstance(names, Collection) or isinstance(names, str) or getattr(names, "shape", None) == ():
            return None
        plain = (
            names.tolist()
            if isinstance(names, np.ndarray)
            else [name.item() if isinstance(name, np.generic) else name for name in names]
        )
        return plain if all(pd.api.types.is_scalar(name) for name in plain) else None

    def _code(self, label: Any) -> int:
        known = [*self.classes, *self.unseen]
        if label not in known:
            self.unseen.append(label)
            return len(known)
        return known.index(label)

    @property
    def largest(self) -> int:
        """The largest number of rows in one call."""
        return self.sizes[-1] if self.sizes else self.chunk

    def _retries(self, of_a_chunk: int) -> int:
        """Return the retries of the largest call, as many per row as there are in calls of a chunk."""
        return of_a_chunk * max(1, self.largest // self.chunk)

    def _rows(self, N: Matrix) -> Any:
        """Return one chunk in the caller's form, padded where the size of a call matters."""
        return self.form.rows_for_model(self._padded(N))

    def _padded(self, N: Matrix) -> Matrix:
        return N if self.sizes else np.concatenate([N, np.repeat(N[:1], self.chunk - len(N), axis=0)])

    def _predict(self, N: Matrix) -> NDArray[Any]:
        """Call the model with one chunk of a fixed size and return one label per real row."""
        predict: Callable[[Any], Any] = getattr(self.asked, "predict", self.asked)
        rows = self._rows(N)
        self.counts.count(len(N), len(rows))
        return labels_of(predict(rows), len(rows), self.output, self.all_names)[: len(N)]

    def _predict_proba(self, N: Matrix) -> NDArray[Any]:
        rows = self._rows(N)
        self.counts.count(len(N), len(rows))
        return probabilities_of(self.asked.predict_proba(rows), len(rows), len(self.names or ()))[: len(N)]


def _says_the_same(box: BlackBox, sizes: tuple[int, ...], N: Matrix) -> bool:
    """Say whether rows get the same labels and probabilities in calls of these sizes, at different places in them."""
    try:
        asked = [_at_once(box, np.roll(N, turn, axis=0), -turn, size) for turn, size in enumerate(sizes)]
    except Exception:  # a predict_proba that fails is reported where it is needed
        return False
    return all(_is_same(one, asked[-1][at]) for replies in asked for at, one in enumerate(replies))


def _is_same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Say whether labels are equal, and probabilities in the digits in which scores are compared."""
    if one.dtype.kind == "f" and other.dtype.kind == "f":
        return one.shape == other.shape and bool(np.all(np.abs(one - other) <= 1e-12))
    return np.array_equal(one, other)


def _at_once(box: BlackBox, N: Matrix, turn: int, size: int) -> tuple[NDArray[Any], ...]:
    """Return labels and, where there are any, probabilities of rows asked in calls of one size, back in their order."""
    whole = np.resize(N, (-(-len(N) // size) * size, N.shape[1]))  # filled up with the first rows again
    alone = replace(box, sizes=(size,))
    labels, predict = alone.ask_labels(whole)[: len(N)], getattr(box.asked, "predict_proba", None)
    if predict is None:
        return (np.roll(labels, turn),)
    parts = []
    for start in range(0, len(whole), size):
        rows = alone._rows(whole[start : start + size])
        alone.counts.count(len(rows), len(rows))
        check_awaited()
        parts.append(np.asarray(predict(rows)))
    return np.roll(labels, turn), np.roll(np.concatenate(parts)[: len(N)], turn, axis=0)


def is_error(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Say where there is an exception in place of a label."""
    if labels.dtype != object:
        return np.zeros(len(labels), dtype=bool)
    return np.array([isinstance(label, Exception) for label in labels], dtype=bool)


def told_apart(labels: NDArray[Any]) -> tuple[Codes, NDArray[Any]]:
    """Return the different labels, and which of them each is."""
    try:
        return pd.factorize(labels, use_na_sentinel=False)
    except TypeError as error:
        raise ModelError(f"the model returned {labels[0]!r}: labels must be numbers, text or truth values.") from error


def _sorted_labels(labels: NDArray[Any]) -> list[Any]:
    found = told_apart(labels)[1].tolist()
    check_written(found)
    try:
        return sorted(found)
    except TypeError:
        return sorted(found, key=lambda label: (type(label).__name__, str(label)))
