"""From the caller's rows to the columns that an estimator sees, where each column comes from one feature alone.

    model  ->  unwrapped  ->  the estimator at the end, and the function from rows to its columns

Steps before the estimator are run, not inverted: a value's columns are what the step itself makes of it, to the bit.
Only steps that treat each column by itself are known here.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from onbmacf._base.arrays import Matrix
from onbmacf._prove.values import NotKnownError

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


def unwrapped(model: Any) -> tuple[Any, ToColumns]:
    """Return the estimator at the end of a model, and how rows become its columns."""
    if _is(model, "onbmacf", "OneThread"):
        model = model.model
    if _is(model, "sklearn", "GridSearchCV", "RandomizedSearchCV"):
        model = model.best_estimator_
    if _is(model, "sklearn", "Pipeline"):
        steps = [step for _, step in model.steps[:-1]]
        for step in steps:
            _check_columnwise(step)
        before = model[:-1]
        return model.steps[-1][1], (lambda rows: _dense(before.transform(rows))) if steps else _dense
    return model, _dense


def is_of(model: Any, package: str, *names: str) -> bool:
    """Say whether a class of a package, as it is, has one of these names or derives from one that has."""
    is_own = type(model).__module__.split(".")[0] == package
    return is_own and any(_is_class(kind, package, names) for kind in type(model).__mro__)


def _is(model: Any, package: str, *names: str) -> bool:
    return _is_class(type(model), package, names)


def _is_class(kind: type, package: str, names: tuple[str, ...]) -> bool:
    return kind.__name__ in names and kind.__module__.split(".")[0] == package


def _check_columnwise(step: Any) -> None:
    """Raise NotKnownError for a step that may mix columns."""
    if step is None or (isinstance(step, str) and step in ("passthrough", "drop")):
        return
    if _is(step, "sklearn", "Pipeline"):
        parts = [part for _, part in step.steps]
    elif _is(step, "sklearn", "ColumnTransformer"):
        parts = [part for _, part, _ in step.transformers_]
    elif _is(step, "sklearn", "FeatureUnion"):
        parts = [part for _, part in step.transformer_list]
    elif _is(step, "sklearn", *COLUMNWISE) or (_is(step, "sklearn", "FunctionTransformer") and step.func is None):
        return
    else:
        raise NotKnownError(f"the step {type(step).__name__} before the model is not known")
    for part in parts:
        _check_columnwise(part)


def _dense(columns: Any) -> Matrix:
    """Return columns as numbers."""
    if hasattr(columns, "toarray"):
        columns = columns.toarray()
    try:
        return np.asarray(columns).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise NotKnownError("the model takes columns that are not numbers") from error
