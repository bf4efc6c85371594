"""How what a model returns is read: scores with a threshold, names of classes, a range of numbers; and raw models.

    model, Reading  ->  adapted  ->  the model itself, or something with predict (and predict_proba) that gives labels

Raw models are those that neither have scikit-learn's `predict` nor take the caller's rows: boosters of xgboost and
lightgbm, and torch modules (`raw_models.py`). docs/decisions/0067-readings.md
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onbmacf._base.checks import listed
from onbmacf._rows.raw_models import raw_of
from onbmacf.errors import ModelError, ParameterError

BELOW, INSIDE, ABOVE = "below", "inside", "above"


@dataclass(frozen=True)
class Between:
    """A range of numbers that a regressor should reach; its labels are "below", "inside" and "above".

    Parameters
    ----------
    low, high : float
        The ends, both inside. Leave one out for a range that is open to that side.

    Examples
    --------
    >>> Between(200, 300).labels([150.0, 200.0, 300.5]).tolist()
    ['below', 'inside', 'above']

    """

    low: float = -inf
    high: float = inf

    def __post_init__(self) -> None:
        if not self.low <= self.high or not (isfinite(self.low) or isfinite(self.high)):
            raise ParameterError(f"Between needs low <= high and one of them finite, got {self.low} and {self.high}.")

    def labels(self, numbers: Any) -> NDArray[Any]:
        """Return "below", "inside" or "above" for each number."""
        values = np.asarray(numbers, dtype=np.float64)
        names = np.array([BELOW, INSIDE, ABOVE], dtype=object)
        return names[1 - (values < self.low).astype(np.intp) + (values > self.high)]


@dataclass(frozen=True)
class Reading:
    """What the caller says about the model's answers; nothing by default."""

    threshold: float | None = None
    classes: tuple[Any, ...] | None = None
    between: Between | None = None

    @classmethod
    def of(cls, threshold: Any = None, classes: Any = None, between: Any = None) -> "Reading":
        """Check what the caller says."""
        if between is not None and not isinstance(between, Between):
            raise ParameterError(f"target must be a Between(low, high) in fit, got {between!r}; labels go to explain.")
        if between is not None and (threshold is not None or classes is not None):
            raise ParameterError("target=Between(...) names its own labels: leave threshold and classes out.")
        if threshold is not None and (isinstance(threshold, bool) or not isfinite(threshold)):
            raise ParameterError(f"threshold must be a number, got {threshold!r}.")
        classes = None if classes is None else _distinct(classes)
        if threshold is not None and classes is not None and len(classes) != 2:
            raise ParameterError(f"a threshold tells two classes apart, got {len(classes)}: {listed(classes)}.")
        return cls(None if threshold is None else float(threshold), classes, between)

    @property
    def is_plain(self) -> bool:
        """Whether the model's answers are read as they are."""
        return self == Reading()

    @property
    def wanted(self) -> str | None:
        """The label to reach where the caller names none; None: any but the row's own."""
        return None if self.between is None else INSIDE


PLAIN = Reading()


def adapted(model: Any, reading: Reading) -> Any:
    """Return a model that gives labels or class probabilities; the model itself where nothing is to be read."""
    raw = raw_of(model)
    if raw is None and reading.is_plain:
        return model
    if reading.between is not None:
        return InRange(raw.scores if raw else getattr(model, "predict", model), reading.between)
    if raw is not None:
        threshold = raw.threshold if reading.threshold is None else reading.threshold
        names = range(raw.n_classes) if reading.classes is None and raw.n_classes else reading.classes
        return Read(raw.scores, threshold, _names(names), raw.scores, raw.is_probability)
    names = reading.classes if reading.classes is not None else getattr(model, "classes_", None)
    return Read(_scores_of(model, reading), reading.threshold, _names(names), getattr(model, "predict_proba", None))


@dataclass(frozen=True, eq=False)
class InRange:
    """A regressor whose numbers are labels: below, inside or above a range."""

    numbers: Callable[[Any], Any]
    between: Between

    def predict(self, rows: Any) -> NDArray[Any]:
        """Return the label of each row."""
        numbers = _vector(self.numbers(rows))
        if numbers.ndim != 1 or numbers.dtype.kind not in "fiub":
            raise ModelError(f"a range needs one number per row, the model returned shape {numbers.shape}.")
        if np.isnan(numbers).any():
            raise ModelError(f"the model returned NaN for row {np.flatnonzero(np.isnan(numbers))[0]} of a batch.")
        return self.between.labels(numbers)


@dataclass(frozen=True, eq=False)
class Read:
    """A model whose scores are compared with a threshold, or whose classes have names of the caller's."""

    scores: Callable[[Any], Any]
    threshold: float | None
    classes: tuple[Any, ...] | None
    shares: Callable[[Any], Any] | None  # the probabilities, or scores that become such; None: there are none
    is_probability: bool = True  # whether single numbers among them are probabilities

    def predict(self, rows: Any) -> NDArray[Any]:
        """Return the label of each row."""
        scores = _vector(self.scores(rows))
        if self.threshold is not None:
            return self._named((_second(scores) >= self.threshold).astype(np.intp), 2)
        if scores.ndim == 2:
            return self._named(scores.argmax(axis=1), scores.shape[1])
        if scores.dtype.kind not in "fiub":
            raise ModelError(f"classes names columns or numbers 0, 1, ...; the model returned {scores[0]!r} already.")
        positions = scores.astype(np.intp)
        if (positions != scores).any():
            raise ModelError(_one_number(float(scores[0])))
        return self._named(positions, len(self.classes or ()) or int(positions.max(initial=0)) + 1)

    def _named(self, positions: NDArray[Any], n_classes: int) -> NDArray[Any]:
        if self.classes is None:
            return positions
        if len(self.classes) != n_classes or (len(positions) and positions.max() >= n_classes) or (positions < 0).any():
            found = max(n_classes, int(positions.max(initial=0)) + 1)
            raise ModelError(f"the model tells {found} classes apart, {len(self.classes)} are named.")
        return np.array([*self.classes, None], dtype=object)[:-1][positions]

    @property
    def classes_(self) -> list[Any] | None:
        """The labels, in the order of the probabilities; None where they are not known."""
        names = (0, 1) if self.classes is None and self.threshold is not None else self.classes
        return None if names is None else list(names)

    @property
    def predict_proba(self) -> Callable[[Any], NDArray[Any]]:
        """The function from rows to the probability of each class, where the model has any."""
        if self.shares is None or (self.threshold is not None and not self.is_probability):
            raise AttributeError("this model has no probabilities")
        return lambda rows: _as_shares(_vector(self.shares(rows)))  # type: ignore[misc]


def _as_shares(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Return probabilities as they are, one column per class; other scores as softmax makes them."""
    scores = scores.astype(np.float64)
    if scores.ndim == 1:
        return np.column_stack([1 - scores, scores])
    is_share = bool((scores >= 0).all()) and np.allclose(scores.sum(axis=1), 1.0, atol=1e-4)
    return scores if is_share else _softmax(scores)


def _names(classes: Any) -> tuple[Any, ...] | None:
    return None if classes is None else tuple(np.asarray(classes).tolist())


def _scores_of(model: Any, reading: Reading) -> Callable[[Any], Any]:
    """Return what is compared with a threshold: probabilities where the model has them."""
    if reading.threshold is not None and callable(getattr(model, "predict_proba", None)):
        return model.predict_proba
    return getattr(model, "predict", model)


def _vector(answer: Any) -> NDArray[Any]:
    """Return an answer in any container as an array, a single column as a vector."""
    if hasattr(answer, "detach"):
        answer = answer.detach().cpu().numpy()
    found = np.asarray(answer)
    return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found


def _second(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Return the score of the second class."""
    if scores.ndim == 2 and scores.shape[1] != 2:
        raise ModelError(f"a threshold tells two classes apart, the model returned {scores.shape[1]} columns.")
    found = scores[:, 1] if scores.ndim == 2 else scores
    if found.dtype.kind not in "fiub":
        raise ModelError(f"a threshold needs scores, the model returned {found[0]!r}.")
    return found.astype(np.float64)


def _one_number(score: float) -> str:
    return (
        f"the model returned {score:.6g}, one number per row: pass threshold=0.5 to fit if these are "
        "probabilities, threshold=0 if they are logits or margins, and classes=(...) to name the two sides; "
        "for a regressor pass target=Between(low, high)."
    )


def _softmax(scores: NDArray[Any]) -> NDArray[np.float64]:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    found: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
    return found


def _distinct(classes: Sequence[Any]) -> tuple[Any, ...]:
    names = tuple(np.asarray(classes, dtype=object).tolist()) if not isinstance(classes, str) else ()
    if len(names) < 2 or len(set(names)) != len(names):
        raise ParameterError(f"classes must be two or more different labels, got {classes!r}.")
    return names
