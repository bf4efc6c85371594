"""Growing Spheres (Laugel et al., 2018): the nearest enemy among points drawn in growing shells.

Draw points uniformly in a ball around the factual; while some are enemies (labelled as the target), halve the
ball. Then draw in shells of that width, outwards, until an enemy appears; take the nearest. Finally, the paper's
feature selection: revert the smallest remaining difference as long as the label stays the target.

The paper covers only numbers. Here another category is a difference of 1: a point of radius r may hold at most
r * r of them, and its numbers share the rest of the radius. CARLA instead flips categories at random at any
radius and omits the feature selection; its shell width of 0.2 and 1,000 points per shell are kept.

Immutables: kept, as in CARLA. Points are clipped to the data's range.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from onbmacf.bench.metrics import feature_differences
from onbmacf.bench.protocol import Found, Matrix, Model, Task

POINTS = 1000
WIDTH = 0.2
MOST_HALVINGS = 20


@dataclass
class GrowingSpheres:
    """Growing Spheres, one factual at a time, each with its own random stream."""

    needs_gradient: ClassVar[bool] = False
    task_: Task = field(init=False)
    model_: Model = field(init=False)
    seed_: int = field(init=False)

    def fit(self, task: Task, model: Model, seed: int) -> "GrowingSpheres":
        """Nothing to learn."""
        self.task_, self.model_, self.seed_ = task, model, seed
        return self

    def explain(self, Z: Matrix, n: int = 1) -> list[Found]:
        """Return one counterfactual per factual, or None when the shells have gone beyond every corner."""
        return [self._explain_one(z, np.random.default_rng([self.seed_, row])) for row, z in enumerate(Z)]

    def _explain_one(self, z: Matrix, random: np.random.Generator) -> Found:
        enemies = self._enemies(z, 0.0, WIDTH, random)
        width = WIDTH
        for _ in range(MOST_HALVINGS):
            if not len(enemies):
                break
            inner = self._enemies(z, 0.0, width / 2, random)
            if not len(inner):
                return self._sparse(z, self._nearest(z, enemies))
            enemies, width = inner, width / 2
        outer, farthest = width, np.sqrt(len(self.task_.blocks))
        while not len(enemies) and outer < farthest + width:
            enemies = self._enemies(z, outer, outer + width, random)
            outer += width
        return self._sparse(z, self._nearest(z, enemies)) if len(enemies) else None

    def _enemies(self, z: Matrix, inner: float, outer: float, random: np.random.Generator) -> Matrix:
        points = _draw(self.task_, z, inner, outer, random)
        enemies: Matrix = points[self.model_.label_of(points) == self.task_.target]
        return enemies

    def _nearest(self, z: Matrix, enemies: Matrix) -> Matrix:
        differences = feature_differences(z[np.newaxis], enemies, self.task_.blocks)
        nearest: Matrix = enemies[(differences**2).sum(axis=1).argmin()]
        return nearest

    def _sparse(self, z: Matrix, enemy: Matrix) -> Matrix:
        """Revert features, smallest difference first, until that would lose the label."""
        blocks = self.task_.blocks
        differences = feature_differences(z[np.newaxis], enemy[np.newaxis], blocks)[0]
        for position in np.argsort(differences, kind="stable"):
            block = blocks[position]
            tried = enemy.copy()
            tried[block] = z[block]
            if self.model_.label_of(tried[np.newaxis])[0] != self.task_.target:
                break
            enemy = tried
        return enemy


def _draw(task: Task, z: Matrix, inner: float, outer: float, random: np.random.Generator) -> Matrix:
    """Return points whose distance from z is between inner and outer, uniformly by volume."""
    movable = ~task.is_immutable
    numbers = [b.start for b, levels in zip(task.blocks, task.has_levels, strict=True) if not levels]
    numbers = [column for column in numbers if not task.immutable_columns[column]]
    dimensions = max(len(numbers), 1)
    radius = random.uniform(inner**dimensions, outer**dimensions, POINTS) ** (1 / dimensions)
    points = np.repeat(z[np.newaxis], POINTS, axis=0)
    flips = _switch_levels(task, points, movable & task.has_levels, radius, random)
    direction = random.standard_normal((POINTS, len(numbers)))
    direction /= np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-300)
    points[:, numbers] += direction * np.sqrt(np.maximum(radius**2 - flips, 0.0))[:, np.newaxis]
    return np.clip(points, 0.0, 1.0)


def _switch_levels(
    task: Task, points: Matrix, levelled: NDArray[np.bool_], radius: Matrix, random: np.random.Generator
) -> Matrix:
    """Give some categories another level, at most radius squared of them per point; return how many."""
    positions = np.flatnonzero(levelled)
    if not len(positions):
        return np.zeros(len(points))
    order = random.random((len(points), len(positions))).argsort(axis=1).argsort(axis=1)
    allowed = np.minimum(np.floor(radius**2), len(positions)).astype(np.intp)
    count = random.integers(0, allowed + 1)
    switched = order < count[:, np.newaxis]
    for place, position in enumerate(positions):
        _switch(points, np.flatnonzero(switched[:, place]), task.blocks[position], random)
    return count.astype(np.float64)


def _switch(points: Matrix, lines: NDArray[np.intp], block: slice, random: np.random.Generator) -> None:
    width = block.stop - block.start
    if width == 1:
        points[lines, block.start] = 1.0 - points[lines, block.start]
        return
    level = points[lines, block].argmax(axis=1)
    other = (level + random.integers(1, width, size=len(lines))) % width
    points[lines, block] = 0.0
    points[lines, block.start + other] = 1.0
