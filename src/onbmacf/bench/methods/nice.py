"""NICE (Brughmans, Leyman, Martens, 2023): nearest instance counterfactual explanations, for sparsity.

Take the nearest row (HEOM: numbers by range, categories 0 or 1) to which the model gives the target label and
whose true label it is. From the factual, copy that row's features one at a time, each time the one that
raises the target's probability most, until the label flips. Ties go to the lower row and the earlier feature.

Immutables: not part of the method's paper; ignored. Nothing is random.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from onbmacf.bench.metrics import feature_differences
from onbmacf.bench.protocol import Found, Matrix, Model, Task


@dataclass
class NICE:
    """NICE with the sparsity reward, over all factuals at once: one model call per copied feature."""

    needs_gradient: ClassVar[bool] = False
    task_: Task = field(init=False)
    model_: Model = field(init=False)
    candidates_: Matrix = field(init=False)

    def fit(self, task: Task, model: Model, seed: int) -> "NICE":
        """Keep the rows of the target class that the model gets right."""
        self.task_, self.model_ = task, model
        right = (model.label_of(task.Z) == task.target) & (task.y == task.target)
        self.candidates_ = task.Z[right]
        return self

    def explain(self, Z: Matrix, n: int = 1) -> list[Found]:
        """Return one counterfactual per factual."""
        if not len(self.candidates_):
            return [None] * len(Z)
        goals = np.stack([self._nearest(z) for z in Z]) if len(Z) else Z
        current, open_ = Z.copy(), np.arange(len(Z))
        while len(open_):
            current[open_] = self._copy_best_feature(current[open_], goals[open_])
            open_ = open_[self.model_.label_of(current[open_]) != self.task_.target]
        return list(current)

    def _nearest(self, z: Matrix) -> Matrix:
        differences = feature_differences(z[np.newaxis], self.candidates_, self.task_.blocks)
        nearest: Matrix = self.candidates_[differences.sum(axis=1).argmin()]
        return nearest

    def _copy_best_feature(self, current: Matrix, goals: Matrix) -> Matrix:
        """Return each row with the one feature of its goal that raises the probability most."""
        blocks = self.task_.blocks
        tried = np.repeat(current[:, np.newaxis], len(blocks), axis=1)  # rows x features x columns
        for position, block in enumerate(blocks):
            tried[:, position, block] = goals[:, block]
        scores = self.model_.probability_of(tried.reshape(-1, current.shape[1])).reshape(len(current), -1)
        scores = scores if self.task_.target == 1 else 1.0 - scores
        is_same = (tried == current[:, np.newaxis]).all(axis=2)
        best = np.where(is_same, -np.inf, scores).argmax(axis=1)
        chosen: Matrix = tried[np.arange(len(current)), best]
        return chosen
