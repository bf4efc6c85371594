"""CEM (Dhurandhar et al., 2018), pertinent negatives: a small, sparse change that flips the label.

Minimise c * max(other score - target score, -kappa) + beta * L1 + squared L2 (+ gamma * squared reconstruction
error of an auto-encoder: the CEM-VAE row of the paper's tables) by FISTA, with a binary search for c per
factual. Of the flipping rows visited, the one with the smallest beta * L1 + squared L2 is returned.

The parameters are CARLA's: kappa 0.1, beta 0.9, 9 values of c starting at 10, 100 iterations each, a step of 0.01 with
square-root decay. Not copied: a soft threshold of beta instead of step * beta, the all-zero answer of a failed search,
and upward changes only ("absent" means 0 in the paper's images; in a scaled table 0 is just the minimum).
Categories are rounded before the network is called.

Immutables: not part of the method's paper; ignored, or with `hold` kept out of the gradient. Only the auto-encoder's
training is random.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from onbmacf.bench.methods._autoencoder import trained_autoencoder
from onbmacf.bench.methods._gradient import BestRows, torch_module
from onbmacf.bench.metrics import feature_differences, l1, l2
from onbmacf.bench.network import nn, torch
from onbmacf.bench.protocol import Found, Matrix, Model, Task

KAPPA, BETA = 0.1, 0.9
FIRST_C, LARGEST_C = 10.0, 1e10
SEARCHES, ITERATIONS, STEP = 9, 100, 0.01


@dataclass
class CEM:
    """CEM over all factuals at once; `autoencoder_weight` is the paper's gamma."""

    autoencoder_weight: float = 0.0
    hold: bool = False
    needs_gradient: ClassVar[bool] = True
    task_: Task = field(init=False)
    model_: Model = field(init=False)
    autoencoder_: nn.Module | None = field(init=False)

    def fit(self, task: Task, model: Model, seed: int) -> "CEM":
        """Train the auto-encoder if its weight is not 0."""
        torch_module(model)
        self.task_, self.model_ = task, model
        self.autoencoder_ = trained_autoencoder(task, seed) if self.autoencoder_weight else None
        return self

    def explain(self, Z: Matrix, n: int = 1) -> list[Found]:
        """Return the cheapest flipping row of all searches."""
        best = BestRows(self.task_, self.model_, Z)
        low, high = np.zeros(len(Z)), np.full(len(Z), LARGEST_C)
        c = np.full(len(Z), FIRST_C)
        for _ in range(SEARCHES):
            flipped = self._search(best, c)
            high, low = np.where(flipped, c, high), np.where(flipped, low, c)
            c = np.where(high < LARGEST_C, (low + high) / 2, c * 10)
        return best.found()

    def _search(self, best: BestRows, c: Matrix) -> Matrix:
        """FISTA: a gradient step on the smooth part, then a soft threshold around the factual."""
        start, weights, lines = torch.tensor(best.Z), torch.tensor(c), np.arange(len(c))
        points = ahead = start.clone()
        flipped = np.zeros(len(c), dtype=bool)
        for iteration in range(ITERATIONS):
            step = STEP * (1 - iteration / ITERATIONS) ** 0.5
            moved = ahead - step * self._gradient(ahead, start, weights)
            shrunk = nn.functional.softshrink(moved - start, step * BETA)
            previous, points = points, (start + shrunk).clamp(0.0, 1.0)
            ahead = (points + iteration / (iteration + 3) * (points - previous)).clamp(0.0, 1.0)
            flipped |= best.offer(points, lines, self._costs(best, points))
        return flipped

    def _gradient(self, at: torch.Tensor, start: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        at = at.detach().requires_grad_()
        scores = torch_module(self.model_)(at)
        target = self.task_.target
        miss = (scores[:, 1 - target] - scores[:, target]).clamp(min=-KAPPA)
        loss = (weights * miss).sum() + ((at - start) ** 2).sum()
        if self.autoencoder_ is not None:
            loss = loss + self.autoencoder_weight * ((at - self.autoencoder_(at)) ** 2).sum()
        gradient = torch.autograd.grad(loss, at)[0]
        if self.hold:
            gradient[:, self.task_.immutable_columns] = 0.0
        return gradient

    def _costs(self, best: BestRows, points: torch.Tensor) -> Matrix:
        rows = self.task_.to_rows(points.numpy())
        differences = feature_differences(best.Z, rows, self.task_.blocks)
        return BETA * l1(differences) + l2(differences)
