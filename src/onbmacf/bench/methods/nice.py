"""NICE (Brughmans, Leyman, Martens, 2023): nearest instance counterfactual explanations, with its four rewards.

Take the nearest row (HEOM: numbers by range, categories 0 or 1) to which the model gives the target label and
whose true label it is. From the factual, copy that row's features one at a time until the label flips, each time the
one with the highest reward:

    sparsity      the gain in the target's probability
    proximity     that gain, per distance that the copy adds
    plausibility  that gain, times the drop in an auto-encoder's reconstruction error (which is CARLA's here)
    none          nothing is copied one at a time: the row itself is the answer

Ties go to the lower row and the earlier feature.

Immutables: not part of the method's paper; ignored. With `hold`, every row gets the factual's immutables first, and
the nearest of those that keep the target label is taken; where none does, there is no answer. Only the auto-encoder's
training is random.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from onbmacf.bench.metrics import feature_differences
from onbmacf.bench.protocol import Found, Matrix, Model, Task

LEAST_DISTANCE = 1e-11  # added to a distance that a gain is divided by, as in the authors' package
PART = 256  # rows asked at a time while looking for one that keeps the label


@dataclass
class NICE:
    """NICE over all factuals at once: one model call per copied feature."""

    reward: Literal["sparsity", "proximity", "plausibility", "none"] = "sparsity"
    hold: bool = False
    needs_gradient: ClassVar[bool] = False
    task_: Task = field(init=False)
    model_: Model = field(init=False)
    candidates_: Matrix = field(init=False)
    autoencoder_: Any = field(init=False)

    def fit(self, task: Task, model: Model, seed: int) -> "NICE":
        """Keep the rows of the target class that the model gets right."""
        self.task_, self.model_ = task, model
        right = (model.label_of(task.Z) == task.target) & (task.y == task.target)
        self.candidates_ = task.Z[right]
        if self.reward == "plausibility":
            from onbmacf.bench.methods._autoencoder import trained_autoencoder

            self.autoencoder_ = trained_autoencoder(task, seed)
        return self

    def explain(self, Z: Matrix, n: int = 1) -> list[Found]:
        """Return one counterfactual per factual."""
        found: list[Found] = [self._goal(z) for z in Z]
        lines = [line for line, goal in enumerate(found) if goal is not None]
        if self.reward == "none" or not lines:
            return found
        goals = np.stack([goal for goal in found if goal is not None])
        for line, row in zip(lines, self._copied(Z[lines], goals), strict=True):
            found[line] = row
        return found

    def _goal(self, z: Matrix) -> Found:
        """Return the nearest row; with `hold`, the nearest that has the target label with z's immutables."""
        rows = self.candidates_
        if not len(rows):
            return None
        if self.hold:
            rows = np.where(self.task_.immutable_columns, z, rows)
        distances = feature_differences(z[np.newaxis], rows, self.task_.blocks).sum(axis=1)
        if not self.hold:
            nearest: Matrix = rows[distances.argmin()]
            return nearest
        order = np.argsort(distances, kind="stable")
        for start in range(0, len(order), PART):
            part = rows[order[start : start + PART]]
            kept = np.flatnonzero(self.model_.label_of(part) == self.task_.target)
            if len(kept):
                return part[kept[0]]
        return None

    def _copied(self, factuals: Matrix, goals: Matrix) -> Matrix:
        """Copy features until the label flips, at the latest when all are copied."""
        current, open_ = factuals.copy(), np.arange(len(factuals))
        for _ in self.task_.blocks:
            current[open_] = self._copy_best_feature(factuals[open_], current[open_], goals[open_])
            open_ = open_[self.model_.label_of(current[open_]) != self.task_.target]
            if not len(open_):
                break
        return current

    def _copy_best_feature(self, factuals: Matrix, current: Matrix, goals: Matrix) -> Matrix:
        """Return each row with the one feature of its goal that has the highest reward."""
        blocks = self.task_.blocks
        tried = np.repeat(current[:, np.newaxis], len(blocks), axis=1)  # rows x features x columns
        for position, block in enumerate(blocks):
            tried[:, position, block] = goals[:, block]
        is_same = (tried == current[:, np.newaxis]).all(axis=2)
        best = np.where(is_same, -np.inf, self._rewards(factuals, current, tried)).argmax(axis=1)
        chosen: Matrix = tried[np.arange(len(current)), best]
        return chosen

    def _rewards(self, factuals: Matrix, current: Matrix, tried: Matrix) -> Matrix:
        """Return the reward of each tried row, one line per factual."""
        shape, flat = tried.shape[:2], tried.reshape(-1, tried.shape[2])
        scores = self._scores(flat).reshape(shape)
        if self.reward == "sparsity":
            return scores  # of one factual, the highest score is the highest gain
        gains = scores - self._scores(current)[:, np.newaxis]
        if self.reward == "proximity":
            repeated = np.repeat(factuals, shape[1], axis=0)
            added = self._distances(repeated, flat).reshape(shape) - self._distances(factuals, current)[:, np.newaxis]
            return gains / (added + LEAST_DISTANCE)
        return gains * (self._errors(current)[:, np.newaxis] - self._errors(flat).reshape(shape))

    def _scores(self, Z: Matrix) -> Matrix:
        probability = self.model_.probability_of(Z)
        return probability if self.task_.target == 1 else 1.0 - probability

    def _distances(self, first: Matrix, second: Matrix) -> Matrix:
        distances: Matrix = feature_differences(first, second, self.task_.blocks).sum(axis=1)
        return distances

    def _errors(self, Z: Matrix) -> Matrix:
        from onbmacf.bench.methods._autoencoder import reconstruction_errors

        return reconstruction_errors(self.autoencoder_, Z)
