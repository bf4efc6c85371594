"""The interfaces of the benchmark: a dataset (Task), a Model and a Method.

    Task: rows and the label to reach     Model: encoded rows -> labels     Method: fit, then explain

A method sees encoded rows (numbers scaled to 0..1, one column per level of a categorical feature, 1.0 where it
is active) and returns encoded rows, or None where it found nothing. Methods contain no metric code.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._table.space import FeatureSpace
from onbmacf.schema import Schema

Matrix = NDArray[np.float64]
Labels = NDArray[np.intp]
Found = Matrix | None  # one factual's counterfactuals, best first: (columns,) or (several, columns)


@dataclass(frozen=True, eq=False)
class Task:
    """One dataset, and the label `target` that counterfactuals must reach.

    Labels are 1 for the desired class and 0 for the other, whatever the file calls them.
    """

    name: str
    table: pd.DataFrame  # features only, in raw units
    schema: Schema
    space: FeatureSpace
    Z: Matrix  # the table, encoded
    y: Labels  # the true labels
    target: int = 1
    class_names: tuple[str, str] = ("0", "1")
    digest: str = ""  # SHA-256 of the file the rows came from

    @property
    def blocks(self) -> tuple[slice, ...]:
        """Encoded columns of each feature."""
        return self.space.blocks

    @cached_property
    def is_immutable(self) -> NDArray[np.bool_]:
        """Per feature: whether it must keep its value."""
        return np.array([feature.immutable for feature in self.schema.features])

    @cached_property
    def immutable_columns(self) -> NDArray[np.bool_]:
        """Per encoded column: whether it must keep its value."""
        return np.repeat(self.is_immutable, [block.stop - block.start for block in self.blocks])

    @cached_property
    def has_levels(self) -> NDArray[np.bool_]:
        """Per feature: whether it is a category (binary or categorical) rather than a number."""
        return np.array([feature.kind in ("binary", "categorical") for feature in self.schema.features])

    def to_rows(self, Z: Matrix) -> Matrix:
        """Return points as valid rows: numbers within the range of the data, one level per category.

        Integers and ordinals are not rounded: the compared methods know only numbers and categories.
        """
        rows = np.clip(Z, 0.0, 1.0)
        for block, levelled in zip(self.blocks, self.has_levels, strict=True):
            if levelled:
                rows[:, block] = _one_level(Z[:, block])
        return rows


@runtime_checkable
class Model(Protocol):
    """A classifier of encoded rows with the labels 0 and 1."""

    def label_of(self, Z: Matrix) -> Labels:
        """Return the label of each row."""
        ...

    def probability_of(self, Z: Matrix) -> Matrix:
        """Return the probability of label 1 of each row."""
        ...


class Method(Protocol):
    """A counterfactual method: two calls, encoded units both ways."""

    needs_gradient: ClassVar[bool]

    def fit(self, task: Task, model: Model, seed: int) -> Any:
        """Prepare for the task; this is not part of the time per explanation."""
        ...

    def explain(self, Z: Matrix, n: int = 1) -> Sequence[Found]:
        """Return up to n counterfactuals per factual, or None. The same call returns the same result."""
        ...


@dataclass(frozen=True, eq=False)
class EstimatorModel:
    """A scikit-learn classifier fitted on encoded rows and labels 0 and 1, as a Model without gradients."""

    estimator: Any

    def label_of(self, Z: Matrix) -> Labels:
        """Return 1 where its probability is above one half."""
        return (self.probability_of(Z) > 0.5).astype(np.intp)

    def probability_of(self, Z: Matrix) -> Matrix:
        """Return the probability of label 1 of each row."""
        probabilities: Matrix = np.asarray(self.estimator.predict_proba(Z), dtype=np.float64)[:, 1]
        return probabilities


def factual_rows(task: Task, model: Model, most: int = 200) -> NDArray[np.intp]:
    """Return the first rows, in file order, that the model does not give the target label."""
    return np.flatnonzero(model.label_of(task.Z) != task.target)[:most]


def _one_level(columns: Matrix) -> Matrix:
    if columns.shape[1] == 1:
        return (columns > 0.5).astype(np.float64)
    active = np.zeros_like(columns)
    active[np.arange(len(columns)), columns.argmax(axis=1)] = 1.0
    return active
