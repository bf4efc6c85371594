"""How what a model returns is read: scores with a threshold, names of classes, a range of numbers; and raw models.

Models that do not take the caller's rows or do not return labels, boosters and torch modules, are one line each in RAW.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from math import inf, isfinite
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.checks import did_you_mean, listed, plain_number, real_number, shortened
from onbmacf._columns.interop import pandas_frame
from onbmacf._table.replies import BadAnswerError
from onbmacf.errors import ModelError, ParameterError

BELOW, INSIDE, ABOVE = "below", "inside", "above"


# --- raw models -------------------------------------------------------------------------------------------------------


class Raw(NamedTuple):
    """A raw model as it is asked."""

    scores: Callable[[Any], Any]  # rows -> one number per row, or one per class
    threshold: float | None = None  # where single numbers say the second class; None: nobody knows
    n_classes: int | None = None
    is_probability: bool = False  # whether single numbers are probabilities


def raw_of(model: Any) -> Raw | None:
    """Return how a raw model is asked; None for a model that is asked as it is."""
    names = {f"{kind.__module__.split('.')[0]}.{kind.__name__}" for kind in type(model).__mro__}
    found = next((read for name, read in RAW.items() if name in names), None)
    return None if found is None else found(model)


def _xgboost(booster: Any) -> Raw:
    learner = json.loads(booster.save_config())["learner"]
    objective, n_classes = learner["objective"]["name"], int(learner["learner_model_param"]["num_class"])
    matrix = import_module("xgboost").DMatrix
    names = booster.feature_names

    is_label = objective == "multi:softmax"  # its margins tell more

    def scores(rows: Any) -> Any:
        rows = _in_order(rows, names)
        known = {"enable_categorical": True} if isinstance(rows, pd.DataFrame) else {}
        return booster.predict(matrix(rows, **known), output_margin=is_label, validate_features=bool(known))

    if objective.startswith("multi:"):
        return Raw(scores, n_classes=n_classes)
    middle = {"binary:logistic": 0.5, "reg:logistic": 0.5, "binary:logitraw": 0.0, "binary:hinge": 0.5}.get(objective)
    return Raw(scores, middle, None if middle is None else 2, objective.endswith(":logistic"))


def _lightgbm(booster: Any) -> Raw:
    text = booster.model_to_string(num_iteration=1)
    words = next((line for line in text.splitlines() if line.startswith("objective=")), "objective=").split("=")[1]
    names = booster.feature_name()
    is_nameless = all(name == f"Column_{place}" for place, name in enumerate(names))  # it was trained on an array

    def scores(rows: Any) -> Any:
        rows = pandas_frame(rows)
        known = _underscored(rows, names) if isinstance(rows, pd.DataFrame) else names
        return booster.predict(_in_order(rows, None if is_nameless else known))

    objective = words.split(" ")[0]
    if objective.startswith("multiclass"):
        return Raw(scores, n_classes=booster.num_model_per_iteration())
    is_binary = objective in ("binary", "cross_entropy")
    return Raw(scores, 0.5 if is_binary else None, 2 if is_binary else None, is_binary)


def _torch(module: Any) -> Raw:
    torch = import_module("torch")
    parts = list(module.children()) if type(module).__name__ == "Sequential" else []
    is_sigmoid = bool(parts) and type(parts[-1]).__name__ == "Sigmoid"
    first = next(iter(module.parameters()), torch.zeros(1))

    def scores(rows: Any) -> Any:
        values = torch.as_tensor(_matrix(rows), dtype=first.dtype, device=first.device)
        was_training = module.training
        module.eval()
        try:
            with torch.no_grad():
                return module(values).detach().cpu().numpy()
        finally:
            module.train(was_training)

    return Raw(scores, 0.5 if is_sigmoid else None, 2 if is_sigmoid else None, is_sigmoid)


RAW: dict[str, Callable[[Any], Raw]] = {
    "xgboost.Booster": _xgboost,
    "lightgbm.Booster": _lightgbm,
    "torch.Module": _torch,
}


def _matrix(rows: Any) -> Any:
    """Return rows as an array of numbers; text is an error that names the columns."""
    rows = pandas_frame(rows)
    if isinstance(rows, pd.DataFrame):
        text = [name for name, dtype in rows.dtypes.items() if not pd.api.types.is_numeric_dtype(dtype)]
        if text:
            raise ModelError(
                f"a torch module takes numbers, {listed(text)} holds {rows[text[0]].dtype}: encode it in a function "
                "around the module, model=lambda rows: module(encoded(rows))."
            )
        rows = rows.to_numpy(dtype=np.float64)
    return np.array(rows, dtype=np.float64)


def _in_order(rows: Any, names: Any) -> Any:
    """Return rows with the columns a model was trained on, in its own order."""
    rows = pandas_frame(rows)
    if not isinstance(rows, pd.DataFrame) or not names:
        return rows
    missing = [name for name in names if name not in rows.columns]
    if missing:
        meant = did_you_mean(missing[0], rows.columns)
        raise ModelError(f"the model was trained on columns that the table lacks: {listed(missing)}.{meant}")
    return rows[list(names)]


def _underscored(rows: pd.DataFrame, names: list[str]) -> list[Any]:
    """Return the columns that lightgbm means: it writes the blanks of their names as underscores."""
    by_name = {str(name).replace(" ", "_"): name for name in rows.columns}
    return [name if name in rows.columns else by_name.get(name, name) for name in names]


# --- readings ---------------------------------------------------------------------------------------------------------


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
        low, high = plain_number(self.low), plain_number(self.high)
        if not low <= high or not (isfinite(low) or isfinite(high)):
            got = f"{shortened(self.low)} and {shortened(self.high)}"
            raise ParameterError(f"Between needs low <= high and one of them finite, got {got}.")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

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
        if threshold is not None and not isfinite(real_number(threshold)):
            raise ParameterError(f"threshold must be a number, got {shortened(threshold)}.")
        if classes is not None:
            names = () if isinstance(classes, str) else tuple(np.asarray(classes, dtype=object).tolist())
            if len(names) < 2 or len(set(names)) != len(names):
                raise ParameterError(f"classes must be two or more different labels, got {classes!r}.")
            classes = names
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
    shares = getattr(model, "predict_proba", None)
    # A threshold is compared with probabilities where the model has them.
    scores = shares if reading.threshold is not None and callable(shares) else getattr(model, "predict", model)
    return Read(scores, reading.threshold, _names(names), shares)


@dataclass(frozen=True, eq=False)
class InRange:
    """A regressor whose numbers are labels: below, inside or above a range."""

    numbers: Callable[[Any], Any]
    between: Between

    def predict(self, rows: Any) -> NDArray[Any]:
        """Return the label of each row."""
        return self.between.labels(self.predicted(rows))

    def predicted(self, rows: Any) -> NDArray[Any]:
        """Return the number that the model predicts of each row."""
        numbers = _vector(self.numbers(rows))
        if numbers.ndim != 1 or numbers.dtype.kind not in "fiub":
            raise BadAnswerError(f"a range needs one number per row, the model returned shape {numbers.shape}.")
        if np.isnan(numbers).any():
            raise BadAnswerError(f"the model returned NaN for row {np.flatnonzero(np.isnan(numbers))[0]} of a batch.")
        return numbers


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
            said = f"the model returned {scores[0]!r} already"
            raise BadAnswerError(f"classes names columns or numbers 0, 1, ...; {said}.")
        positions = scores.astype(np.intp)
        if (positions != scores).any():
            raise BadAnswerError(
                f"the model returned {float(scores[0]):.6g}, one number per row: pass threshold=0.5 to fit if these "
                "are probabilities, threshold=0 if they are logits or margins, and classes=(...) to name the two "
                "sides; for a regressor pass target=Between(low, high)."
            )
        return self._named(positions, len(self.classes or ()) or int(positions.max(initial=0)) + 1)

    def _named(self, positions: NDArray[Any], n_classes: int) -> NDArray[Any]:
        if self.classes is None:
            return positions
        if len(self.classes) != n_classes or (len(positions) and positions.max() >= n_classes) or (positions < 0).any():
            found = max(n_classes, int(positions.max(initial=0)) + 1)
            raise BadAnswerError(f"the model tells {found} classes apart, {len(self.classes)} are named.")
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
    if (scores >= 0).all() and np.allclose(scores.sum(axis=1), 1.0, atol=1e-4):
        return scores
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _names(classes: Any) -> tuple[Any, ...] | None:
    return None if classes is None else tuple(np.asarray(classes).tolist())


def _vector(answer: Any) -> NDArray[Any]:
    """Return an answer in any container as an array, a single column as a vector."""
    if hasattr(answer, "detach"):
        answer = answer.detach().cpu().numpy()
    found = np.asarray(answer)
    return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found


def _second(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Return the score of the second class."""
    if scores.ndim == 2 and scores.shape[1] != 2:
        raise BadAnswerError(f"a threshold tells two classes apart, the model returned {scores.shape[1]} columns.")
    found = scores[:, 1] if scores.ndim == 2 else scores
    if found.dtype.kind not in "fiub":
        raise BadAnswerError(f"a threshold needs scores, the model returned {found[0]!r}.")
    return found.astype(np.float64)
