"""Checks of what callers give to audit, plots and report: a wrong type is an error of one sentence, before any work.

Where a function takes answers, one explanation will do: `as_answers` makes a batch of it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import wraps
from inspect import Parameter, signature
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, ParamSpec, TypeVar, get_args, get_origin

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.arrays import objects
from onbmacf._base.checks import listed, shortened
from onbmacf._table.lazy_rows import LazyRows
from onbmacf.errors import ParameterError
from onbmacf.explainer import ONBMACF
from onbmacf.explanation import Explanation
from onbmacf.explanations import Batch, Explanations

P = ParamSpec("P")
R = TypeVar("R")
FREE = (Parameter.empty, Any)  # annotations of what is checked elsewhere, by its value
NUMBERS: dict[Any, Any] = {int: Integral, float: Real, bool: (bool, np.bool_)}  # numpy's numbers are numbers, too
NO_COLUMN = (Explanations, Explanation, pd.DataFrame, Mapping, Set, str, bytes)  # has a length, and is no column


# --- one explanation as answers ---------------------------------------------------------------------------------------


def as_answers(given: Any) -> Explanations:
    """Return answers as they are, and one explanation as the answers for one row; anything else is an error."""
    if isinstance(given, Explanations):
        return given
    if not isinstance(given, Explanation):
        raise ParameterError(f"give what explain returned, or one of its explanations; got {type(given).__name__}.")
    status, reason = objects([str(given.status)]), objects([given.reason])
    certificates = None if given.certificate is None else objects([given.certificate])
    rows = pd.DataFrame([given.factual]).infer_objects()
    needs, labels = objects([given.would_need]), objects([given.label])
    found = Explanations(rows, labels, status, reason, needs, _batch(given), certificates=certificates)
    return replace(found, days=given.days, words=given.words, origin=given.origin)


def answers_in_words(given: Any) -> Explanations:
    """Return answers, or one explanation, with columns and levels as people call them."""
    found = as_answers(given)
    said: Explanations = found.words.answers(found)
    return said


def _batch(given: Explanation) -> Batch:
    found, names = given.counterfactuals, list(given.factual.index)
    kept = [one.semifactual for one in found]
    probabilities = [one.probability for one in found]
    return Batch(
        factual=np.zeros(len(found), dtype=np.intp),
        rows=_lines([one.values for one in found], given.factual),
        label=objects([one.label for one in found]),
        distance=np.array([one.distance for one in found], dtype=float),
        changed=_mask([one.changed for one in found], names),
        released=_mask([one.released for one in found], names),
        relaxation=objects([str(one.relaxation) for one in found]),
        ball=np.array([-1 if one.ball is None else one.ball for one in found], dtype=np.intp),
        plausibility=np.array([one.plausibility for one in found], dtype=float),
        margin=np.array([one.margin for one in found], dtype=float),
        probability=np.array(probabilities, dtype=float) if found and probabilities[0] is not None else None,
        semifactual_rows=_lines([given.factual if one is None else one.values for one in kept], given.factual),
        semifactual_distance=np.array([np.nan if one is None else one.distance for one in kept], dtype=float),
        semifactual_changed=_mask([() if one is None else one.changed for one in kept], names),
    )


def _mask(changed: list[Any], names: list[Any]) -> Any:
    return np.array([[name in one for name in names] for one in changed], dtype=bool).reshape(-1, len(names))


def _lines(rows: list[Any], factual: Any) -> LazyRows:
    """Return rows as numbered lines with a dtype per column, those of the factual where there are none."""
    lines = pd.DataFrame(rows or [factual]).infer_objects().reset_index(drop=True)
    return LazyRows.of_frame(lines if rows else lines.iloc[:0])


# --- arguments --------------------------------------------------------------------------------------------------------


def typed(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function refuse what is not of the classes in its annotations, and explainers that are not fitted."""
    form = signature(function)

    @wraps(function)
    def checked(*given: P.args, **named: P.kwargs) -> R:
        try:
            bound = form.bind(*given, **named)
        except TypeError as error:  # what bind says names no function
            raise TypeError(f"{function.__name__}({', '.join(form.parameters)}): {error}.") from None
        for name, value in bound.arguments.items():
            check_type(name, value, form.parameters[name].annotation)
        return function(*given, **named)

    return checked


def check_type(name: str, value: Any, annotation: Any) -> None:
    """Raise unless a value, and what is in it, is of the classes of an annotation.

    >>> check_type("batches", {"a": 3}, Mapping[str, Explanations])
    Traceback (most recent call last):
    onbmacf.errors.ParameterError: batches['a'] must be Explanations, got int.
    """
    parts = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    if any(part in FREE for part in parts):
        return
    fitting = [part for part in parts if isinstance(value, NUMBERS.get(part, get_origin(part) or part))]
    if not fitting:
        allowed = " or ".join((get_origin(part) or part).__name__ for part in parts if part is not NoneType)
        raise ParameterError(f"{name} must be {allowed}, got {_kind(value)}.")
    if isinstance(value, ONBMACF):
        value.schema_  # noqa: B018 - says that it is not fitted
    for inner, entry, expected in _inside(name, value, fitting[0]):
        check_type(inner, entry, expected)


def _inside(name: str, value: Any, annotation: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield what a mapping, tuple or sequence holds, with its name and annotation."""
    kind, expected = get_origin(annotation), get_args(annotation)
    if kind is Mapping:
        yield from ((f"{name}[{key!r}]", entry, expected[1]) for key, entry in value.items())
    elif kind is tuple:
        if len(value) != len(expected):
            raise ParameterError(f"{name} must have {len(expected)} parts, got {len(value)}.")
        yield from ((f"{name}[{at}]", *entry) for at, entry in enumerate(zip(value, expected, strict=True)))
    elif kind is Sequence:
        yield from ((f"{name}[{at}]", entry, expected[0]) for at, entry in enumerate(value))


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__


def numbers(name: str, values: Any, n_dimensions: int = 1) -> NDArray[np.float64]:
    """Return numbers of a caller: one per row, or rows x columns."""
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{name} must be numbers, got {shortened(values)}.") from error
    if found.ndim != n_dimensions:
        form = "one number per row" if n_dimensions == 1 else "rows x columns of numbers"
        raise ParameterError(f"{name} must be {form}, got {_kind(values)} of shape {found.shape}.")
    return found


def per_row(name: str, values: Any, n_rows: int | None = None) -> "pd.Series[Any]":
    """Return one value per row; of so many rows, where that is known. A Series stays as it is."""
    check_per_row(name, values, n_rows)
    return pd.Series(values)


def check_per_row(name: str, values: Any, n_rows: int | None = None) -> None:
    """Raise unless there is one value per row."""
    if isinstance(values, NO_COLUMN) or not hasattr(values, "__len__") or getattr(values, "ndim", 1) != 1:
        raise ParameterError(f"{name} must be one value per row, got {_kind(values)}.")
    if n_rows is not None and len(values) != n_rows:
        raise ParameterError(f"{name} has {len(values):,} values for {n_rows:,} rows.")


def with_columns(name: str, frame: pd.DataFrame, columns: Iterable[str], source: str) -> pd.DataFrame:
    """Return a frame that has these columns; `source` says what makes such a frame."""
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise ParameterError(f"{name} must have the columns of {source}; missing: {listed(missing)}.")
    return frame
