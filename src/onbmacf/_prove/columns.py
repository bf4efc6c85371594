"""From the caller's rows to the columns that an estimator sees, where each column comes from one feature alone.

    model  ->  unwrapped  ->  the estimator at the end, and the function from rows to its columns

Steps before the estimator are run, not inverted: a value's columns are what the step itself makes of it, to the bit.
Only steps that treat each column by itself are known here.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from onbmacf._base.arrays import Matrix

ToColumns = Callable[[Any], Matrix]

# Transformers of scikit-learn whose output columns depend on one input column each.
COLUMNWISE = {
    "Binarizer",
    "KBinsDiscretizer",
    "MaxAbsScaler",
    "MinMaxScaler",
    "OneHotEncoder",
    "OrdinalEncoder",
    "PowerTransformer",
    "QuantileTransformer",
    "RobustScaler",
    "SimpleImputer",
    "SplineTransformer",
    "StandardScaler",
    "TargetEncoder",
}


class NotKnownError(Exception):
    """Says why a model cannot be read, or nothing be proven."""


def parted(model: Any) -> tuple[list[Any], Any]:
    """Return the steps before the estimator at the end of a model, each of which is column-wise, and that estimator."""
    if is_kind(model, "onbmacf", "OneThread"):
        model = model.model
    if is_kind(model, "sklearn", "GridSearchCV", "RandomizedSearchCV"):
        model = model.best_estimator_
    if not is_kind(model, "sklearn", "Pipeline"):
        return [], model
    steps = [step for _, step in model.steps[:-1]]
    for step in steps:
        _check_columnwise(step)
    return steps, model.steps[-1][1]


def unwrapped(model: Any) -> tuple[Any, ToColumns]:
    """Return the estimator at the end of a model, and how rows become its columns."""
    steps, estimator = parted(model)
    return estimator, lambda rows: dense(through(steps, rows))


def through(steps: list[Any], rows: Any) -> Any:
    """Return rows as steps, one after the other, transform them."""
    for step in steps:
        rows = rows if is_passed(step) else step.transform(rows)
    return rows


def is_passed(step: Any) -> bool:
    """Say whether a step of a pipeline leaves rows as they are."""
    return step is None or (isinstance(step, str) and step == "passthrough")


def is_of(model: Any, package: str, *names: str) -> bool:
    """Say whether a class of a package, as it is, has one of these names or derives from one that has."""
    is_own = type(model).__module__.split(".")[0] == package
    return is_own and any(_is_class(kind, package, names) for kind in type(model).__mro__)


def is_kind(model: Any, package: str, *names: str) -> bool:
    """Say whether a class of a package has one of these names itself."""
    return _is_class(type(model), package, names)


def _is_class(kind: type, package: str, names: tuple[str, ...]) -> bool:
    return kind.__name__ in names and kind.__module__.split(".")[0] == package


def _check_columnwise(step: Any) -> None:
    """Raise NotKnownError for a step that may mix columns."""
    if step is None or (isinstance(step, str) and step in ("passthrough", "drop")):
        return
    if is_kind(step, "sklearn", "Pipeline"):
        parts = [part for _, part in step.steps]
    elif is_kind(step, "sklearn", "ColumnTransformer"):
        parts = [part for _, part, _ in step.transformers_]
    elif is_kind(step, "sklearn", "FeatureUnion"):
        parts = [part for _, part in step.transformer_list]
    elif is_kind(step, "sklearn", *COLUMNWISE) or (
        is_kind(step, "sklearn", "FunctionTransformer") and step.func is None
    ):
        return
    else:
        raise NotKnownError(f"the step {type(step).__name__} before the model is not known")
    for part in parts:
        _check_columnwise(part)


def dense(columns: Any) -> Matrix:
    """Return what steps give an estimator as a matrix of numbers."""
    if hasattr(columns, "toarray"):
        columns = columns.toarray()
    try:
        return np.asarray(columns).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise NotKnownError("the model takes columns that are not numbers") from error
