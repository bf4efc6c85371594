"""Code shared by the gradient methods: the best row so far per factual, and the training of small auto-encoders."""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from onbmacf.bench.metrics import feature_differences, l1
from onbmacf.bench.network import nn, torch
from onbmacf.bench.protocol import Found, Matrix, Model, Task
from onbmacf.errors import ParameterError

Lines = NDArray[np.intp]


def torch_module(model: Model) -> nn.Module:
    """Return the torch module of a network, from rows to two scores."""
    module = getattr(model, "module", None)
    if module is None:
        raise ParameterError(f"this method uses gradients and needs a torch network, got {type(model).__name__}.")
    return module


class BestRows:
    """Per factual, the cheapest valid row with the target label that a search has visited."""

    def __init__(self, task: Task, model: Model, Z: Matrix) -> None:
        self.task, self.model, self.Z = task, model, Z
        self.rows = Z.copy()
        self.costs = np.full(len(Z), np.inf)

    def offer(self, points: torch.Tensor, lines: Lines, costs: Matrix | None = None) -> NDArray[np.bool_]:
        """Round the points to rows and keep those that flip at a lower cost; return which flipped.

        The cost is the Manhattan distance unless given.
        """
        rows = self.task.to_rows(points.detach().numpy())
        flips = self.model.label_of(rows) == self.task.target
        if costs is None:
            costs = l1(feature_differences(self.Z[lines], rows, self.task.blocks))
        better = flips & (costs < self.costs[lines])
        self.rows[lines[better]], self.costs[lines[better]] = rows[better], costs[better]
        return flips

    def is_open(self) -> Lines:
        """Return the factuals without a counterfactual."""
        return np.flatnonzero(np.isinf(self.costs))

    def found(self) -> list[Found]:
        """Return the rows, or None where no row flipped."""
        return [None if np.isinf(cost) else row for row, cost in zip(self.rows, self.costs, strict=True)]


def minimise(
    parameters: Iterable[nn.Parameter],
    loss_of: Callable[[torch.Tensor], torch.Tensor],
    rows: int,
    *,
    steps: int,
    batch: int = 128,
    learning_rate: float = 1e-3,
) -> None:
    """Run Adam on a loss over randomly drawn row numbers. Call it within `seeded`."""
    optimizer = torch.optim.Adam(parameters, lr=learning_rate, fused=True)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(torch.randint(rows, (batch,))).backward()
        optimizer.step()


def kl_to_normal(
    mean: torch.Tensor,
    log_variance: torch.Tensor,
    center: float | torch.Tensor = 0.0,
    scale: float | torch.Tensor = 1.0,
) -> torch.Tensor:
    """Return the KL divergence of each Gaussian from N(center, scale squared), line by line."""
    scale = torch.as_tensor(scale, dtype=mean.dtype)
    terms = (log_variance.exp() + (mean - center) ** 2) / scale**2 - 1.0 - log_variance + 2 * scale.log()
    return 0.5 * terms.sum(dim=1)


def sampled(mean: torch.Tensor, log_variance: torch.Tensor) -> torch.Tensor:
    """Draw from Gaussians so that gradients pass to their parameters."""
    return mean + (0.5 * log_variance).exp() * torch.randn_like(mean)
