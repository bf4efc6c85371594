"""The interfaces of the benchmark: a dataset (Task), a Model and a Method.

    Task: rows and the label to reach     Model: encoded rows -> labels     Method: fit, then explain

A method sees encoded rows (numbers scaled to 0..1, one column per level of a categorical feature, 1.0 where it
is active) and returns encoded rows, or None where it found nothing. Methods contain no metric code.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._table.space import FeatureSpace
from onbmacf.schema import Schema

Matrix = NDArray[np.float64]
Labels = NDArray[np.intp]
Found = Matrix | None  # one factual's counterfactuals, best first: (columns,) or (several, columns)

MOST_OPEN = 8  # values that are rounded up and down: 256 ways
SAME = 1e-9  # a value this close to a whole one is whole


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
    def is_whole(self) -> NDArray[np.bool_]:
        """Per feature: whether its values are whole numbers or ranks."""
        return np.array([feature.kind in ("integer", "ordinal") for feature in self.schema.features])

    @cached_property
    def has_levels(self) -> NDArray[np.bool_]:
        """Per feature: whether it is a category (binary or categorical) rather than a number."""
        return np.array([feature.kind in ("binary", "categorical") for feature in self.schema.features])

    def to_rows(self, Z: Matrix) -> Matrix:
        """Return points as valid rows: numbers within the range of the data, one level per category.

        Integers and ordinals are not rounded, because the compared methods know only numbers and categories: see
        `whole`.
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


def whole(task: Task, model: Model, points: Matrix) -> Matrix:
    """Return points with whole numbers and ranks where the task has such, keeping the target label if rounding can.

    Each value goes to the nearest whole one. Where that loses the target label, all ways to round up or down are tried,
    the nearest to the point first; of more than eight values, those that are farthest from a whole one. A point that
    has the label in no way stays rounded to the nearest. Values that are whole stay as they are.
    """
    rounded = _to_whole(task, points, np.rint)
    kept = model.label_of(rounded) == task.target if len(points) else np.zeros(0, dtype=bool)
    for line in np.flatnonzero(~kept):
        ways = _roundings(task, points[line], rounded[line])
        reached = np.flatnonzero(model.label_of(ways) == task.target)
        if len(reached):
            rounded[line] = ways[reached[0]]
    return rounded


def with_noise(task: Task, Z: Matrix, share: float, seed: int) -> Matrix:
    """Return rows as they might be measured again: Gaussian noise of a share of the range on each number.

    Immutables, categories and ranks stay; whole numbers stay whole, and nothing leaves the range of the data.
    """
    noise = np.random.default_rng(seed).normal(0.0, share, size=Z.shape)
    is_number = [feature.is_numeric and not feature.immutable for feature in task.schema.features]
    columns = [block.start for block, varies in zip(task.blocks, is_number, strict=True) if varies]
    noisy = Z.copy()
    noisy[:, columns] = np.clip(Z[:, columns] + noise[:, columns], 0.0, 1.0)
    return _to_whole(task, noisy, np.rint)


def _to_whole(task: Task, points: Matrix, rounding: Callable[[Matrix], Matrix]) -> Matrix:
    """Round in the unit of each feature, so that a whole number is encoded as its row in the table is."""
    features = np.flatnonzero(task.is_whole)
    columns = [task.blocks[feature].start for feature in features]
    low, span = task.space.low[features], task.space.span[features]
    rounded = points.copy()
    rounded[:, columns] = (rounding(low + points[:, columns] * span) - low) / span
    return rounded


def _roundings(task: Task, point: Matrix, nearest: Matrix) -> Matrix:
    """Return the ways to round a point, the nearest to it first."""
    up_or_down = (lambda values: np.floor(values + SAME), lambda values: np.ceil(values - SAME))
    ends = np.stack([_to_whole(task, point[np.newaxis], rounding)[0] for rounding in up_or_down])
    open_ = np.argsort(-np.abs(point - nearest), kind="stable")
    open_ = open_[ends[0, open_] != ends[1, open_]][:MOST_OPEN]
    choices = np.array(list(product((0, 1), repeat=len(open_))), dtype=np.intp)
    ways = np.repeat(nearest[np.newaxis], len(choices), axis=0)
    ways[:, open_] = ends[choices, open_]
    order: Matrix = ways[np.argsort(np.abs(ways - point).sum(axis=1), kind="stable")]
    return order


def _one_level(columns: Matrix) -> Matrix:
    if columns.shape[1] == 1:
        return (columns > 0.5).astype(np.float64)
    active = np.zeros_like(columns)
    active[np.arange(len(columns)), columns.argmax(axis=1)] = 1.0
    return active
