"""Wachter, Mittelstadt and Russell (2017): the nearest point to which the network gives the target label.

Minimise cross-entropy to the target + weight * Manhattan distance by Adam, first with a large weight and, for
the factuals that did not flip, with smaller and smaller ones: the paper's "find the largest weight on distance that
still flips". The step and the 1,000 iterations per weight are CARLA's; its weight goes negative and its
clamp to the data's range has no effect: neither is copied. As there, categories are rounded before the network is
called; the gradient passes straight through the rounding.

Immutables: not part of the method's paper; ignored, or with `hold` kept out of the gradient. Nothing is random.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from onbmacf.bench.methods._gradient import BestRows, Lines, torch_module
from onbmacf.bench.network import nn, torch
from onbmacf.bench.protocol import Found, Matrix, Model, Task

WEIGHTS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
ITERATIONS = 1000
LEARNING_RATE = 0.01


@dataclass
class Wachter:
    """Gradient search in the encoded space, all factuals at once."""

    hold: bool = False
    needs_gradient: ClassVar[bool] = True
    task_: Task = field(init=False)
    model_: Model = field(init=False)

    def fit(self, task: Task, model: Model, seed: int) -> "Wachter":
        """Nothing to learn."""
        torch_module(model)
        self.task_, self.model_ = task, model
        return self

    def explain(self, Z: Matrix, n: int = 1) -> list[Found]:
        """Return the nearest flipping row visited at the largest weight that flips."""
        best = BestRows(self.task_, self.model_, Z)
        for weight in WEIGHTS:
            open_ = best.is_open()
            if len(open_):
                self._search(best, open_, weight)
        return best.found()

    def _search(self, best: BestRows, lines: Lines, weight: float) -> None:
        module = torch_module(self.model_)
        start = torch.tensor(best.Z[lines])
        goal = torch.full((len(lines),), self.task_.target)
        points = start.clone().requires_grad_()
        optimizer = torch.optim.Adam([points], lr=LEARNING_RATE, amsgrad=True)
        for _ in range(ITERATIONS):
            optimizer.zero_grad()
            distance = (points - start).abs().sum()
            rows = points + (torch.tensor(self.task_.to_rows(points.detach().numpy())) - points).detach()
            loss = nn.functional.cross_entropy(module(rows), goal, reduction="sum") + weight * distance
            loss.backward()
            if self.hold and points.grad is not None:
                points.grad[:, self.task_.immutable_columns] = 0.0
            optimizer.step()
            with torch.no_grad():
                points.clamp_(0.0, 1.0)
            best.offer(points, lines)
