"""What a model returned, in any container -> labels, or one score per class: checked, one line per row.

answer  ->  labels, probabilities        probabilities, decision values  ->  Scorer.read  ->  numbers that compare
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.arrays import Matrix, Rows, objects
from onbmacf._base.checks import error_words, listed
from onbmacf.errors import ModelError

SLACK = 1e-6  # beyond 0 and 1: what is left of rounding in a sum of probabilities
LEAST_SHARE = 1e-9  # a probability below this counts as this much in `margins_of`: shares of votes are coarse
LEAST = 1e-12  # and this much in a `Scorer`
DIGITS = 9  # in which scores are compared: their last bits change with the rows in the call
VOTES = 0.02  # share of probabilities that are 0 from which on they are shares of votes, which add up as they are


# --- replies ----------------------------------------------------------------------------------------------------------


class BadAnswerError(ModelError):
    """What a call returned cannot be read as an answer to its rows; once a model is fitted, they are asked again."""


class NaNAnswerError(BadAnswerError):
    """The model returned NaN for a row."""

    def __init__(self) -> None:
        super().__init__("the model returned NaN")


class NaNProbabilityError(NaNAnswerError):
    """`predict_proba` returned NaN for a row."""

    def __init__(self) -> None:
        ModelError.__init__(self, "predict_proba returned NaN")


def labels_of(answer: Any, n_rows: int, output: str, names: Any) -> NDArray[Any]:
    """Return labels, scores or class probabilities as a vector of labels; `names` are the model's `classes_`."""
    answer = _as_array(answer, "predict")
    if answer.ndim == 0 or len(answer) != n_rows:
        found = len(answer) if answer.ndim else "a single value"
        raise BadAnswerError(f"predict was given {n_rows} rows and returned {found}.")
    if answer.ndim > 2 or (answer.ndim == 2 and answer.shape[1] == 0):
        raise BadAnswerError(f"predict returned an array of shape {answer.shape}; allowed: (n,), (n, 1) or (n, C).")
    answer = answer[:, 0] if answer.ndim == 2 and answer.shape[1] == 1 else answer
    is_nan = _is_nan(answer)
    if answer.ndim == 2:
        _check_one_label(answer[~is_nan])
        answer = _named(answer.argmax(axis=1), answer.shape[1], names)
    elif output == "probability":
        answer = _named((_as_float(answer) > 0.5).astype(np.intp), 2, names)
    elif output == "auto" and answer.dtype.kind == "f":
        _check_labels_not_scores(answer[~is_nan])
    if is_nan.any():
        answer = objects(answer.tolist())
        answer[is_nan] = objects([NaNAnswerError()] * int(is_nan.sum()))
    return answer


def probabilities_of(answer: Any, n_rows: int, n_classes: int) -> Matrix:
    """Return what predict_proba returned as a matrix: a column per class; NaN stays NaN."""
    answer = _as_float(_as_array(answer, "predict_proba"))
    if answer.shape != (n_rows, n_classes):
        raise BadAnswerError(
            f"predict_proba returned an array of shape {answer.shape} for {n_rows} rows and {n_classes} classes_; "
            f"allowed: ({n_rows}, {n_classes})."
        )
    return answer


def check_classes(names: list[Any], labels: list[Any]) -> None:
    """Raise an error if predict says labels that are not among `classes_`: one of them is another model's."""
    if any(label not in names for label in labels):
        raise ModelError(
            f"predict returns {listed(labels)}, but classes_ holds {listed(names)}: it cannot be told which class a "
            "label, or a column of predict_proba, belongs to. Let both name the same labels, or give model.predict in "
            "place of the model."
        )


def check_written(labels: list[Any]) -> None:
    """Raise an error if a label is text that no file and no frame can hold."""
    for label in labels:
        if isinstance(label, str):
            try:
                label.encode()
            except UnicodeEncodeError as error:
                raise ModelError(f"the model returned {label!r}, which cannot be written: {error.reason}.") from error


def check_probabilities(answer: Matrix, rows: Rows) -> None:
    """Raise an error if predict_proba returned something else for fitted rows: scores, per cent."""
    lines, _ = np.nonzero((answer < -SLACK) | (answer > 1 + SLACK))
    if len(lines):
        odd = answer[lines[0]][np.argmax(np.abs(answer[lines[0]]))]
        raise ModelError(
            f"predict_proba returned {odd:.6g} for row {rows[lines[0]]} of the table, which is no probability: it must "
            "be in [0, 1]. Turn scores into probabilities, or give model.predict in place of the model."
        )


def method_of(model: Any, name: str) -> Any:
    """Return a method of a model, or None; an error that says which where looking for it raises one."""
    try:
        found = getattr(model, name, None)
    except Exception as error:
        raise ModelError(f"the model's {name} cannot be read: it raised {error_words(error)}") from error
    return found if callable(found) else None


def _as_array(answer: Any, what: str) -> NDArray[Any]:
    if hasattr(answer, "detach"):  # a torch tensor
        answer = answer.detach().cpu().numpy()
    try:
        return np.asarray(answer)
    except ValueError as error:
        raise BadAnswerError(f"{what} returned something that is no array: {error}") from error


def _as_float(answer: NDArray[Any]) -> Matrix:
    try:
        return answer.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise BadAnswerError(f"the model returned {answer.tolist()[0]!r}, which is no probability.") from error


def _named(positions: Rows, n_classes: int, names: Any) -> NDArray[Any]:
    if names is None or len(names) != n_classes:
        names = np.arange(n_classes)
    return np.asarray(np.asarray(names)[positions])


def _is_nan(answer: NDArray[Any]) -> NDArray[np.bool_]:
    if answer.dtype.kind in "iub":
        return np.zeros(len(answer), dtype=bool)
    missing = pd.isna(answer)
    return np.asarray(missing.any(axis=1) if missing.ndim == 2 else missing)


def _check_one_label(answer: NDArray[Any]) -> None:
    """Raise an error if a matrix holds labels, as of a model with several outputs, not a number per class."""
    if answer.dtype.kind == "f" or not len(answer):
        return
    shares = _as_float(answer)
    if (shares < 0).any() or (np.abs(shares.sum(axis=1) - 1) > SLACK).any():
        raise BadAnswerError(
            f"predict returned {answer.shape[1]} values per row, e.g. {listed(answer[0].tolist())}: neither one label "
            "nor probabilities. Of a model with several outputs, explain one: lambda rows: model.predict(rows)[:, 0]."
        )


def _check_labels_not_scores(answer: NDArray[Any]) -> None:
    odd = answer[answer != np.trunc(answer)]
    if len(odd):
        inside = "could be a score or a label" if 0 <= odd[0] <= 1 else "looks like a score, not a label"
        raise BadAnswerError(
            f"predict returned {odd[0]:.6g}, which {inside}. Pass output='probability' (labels 0 and 1, "
            "threshold 0.5), threshold=... with classes=..., target=Between(low, high) for a regressor, or "
            "output='label' to fit, or return labels."
        )


def margins_of(probabilities: Matrix) -> Matrix:
    """Return the logarithms of probabilities, of which differences are log odds; none is below that of 1e-9.

    >>> margins_of(np.array([[1.0, 0.0]])).round(4).tolist()
    [[0.0, -20.7233]]
    """
    return np.log(np.maximum(probabilities, LEAST_SHARE))


# --- scores -----------------------------------------------------------------------------------------------------------


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
        scores = np.round(self.of_classes(answer), DIGITS)
        if answer.shape[1] == len(self.columns):
            return scores
        others = np.delete(answer, self.columns, axis=1).max(axis=1)
        return np.column_stack([scores, np.round(others, DIGITS)])

    def of_classes(self, answer: Matrix) -> Matrix:
        """Return the columns that belong to the classes of the fitted rows."""
        is_whole = self.columns == tuple(range(answer.shape[1]))
        return answer if is_whole else answer[:, self.columns]

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
