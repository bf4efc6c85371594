"""Models that do not take the caller's rows or do not return labels: boosters and torch modules. One line each in RAW.

    model  ->  raw_of  ->  Raw: how it is asked, and what its numbers are; None for any other model

Nothing is imported to recognise them: they are known by the names of their classes.
"""

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from onbmacf._base.checks import did_you_mean, listed
from onbmacf._columns.polars_frames import pandas_frame
from onbmacf.errors import ModelError


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

    def scores(rows: Any) -> Any:
        rows = pandas_frame(rows)
        own = _underscored(rows, names) if isinstance(rows, pd.DataFrame) else names
        return booster.predict(_in_order(rows, None if _is_nameless(names) else own))

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
    own = {str(name).replace(" ", "_"): name for name in rows.columns}
    return [name if name in rows.columns else own.get(name, name) for name in names]


def _is_nameless(names: list[str]) -> bool:
    """Say whether a lightgbm model was trained on an array: its columns are numbered."""
    return all(name == f"Column_{place}" for place, name in enumerate(names))
