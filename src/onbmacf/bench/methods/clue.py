"""CLUE (Antoran et al., 2021): a nearby row, made by a VAE, that the network is more certain about.

Minimise the entropy of the network's prediction + 4 / columns * Manhattan distance over the latent code of a
variational auto-encoder, starting at the factual's own code. CLUE looks for certainty, not for another label: as in
CARLA, the nearest visited row that happens to flip is returned. A low success rate is therefore expected.

The parameters are CARLA's: VAE width 10, depth 3, 12 latent dimensions; Adam with step 0.5. All 400 steps are taken,
and the VAE is trained for a fixed number of steps instead of one epoch (too little training for a small table).

Immutables: not part of the method's paper; ignored. Only the VAE's training is random.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from onbmacf.bench.methods._gradient import BestRows, kl_to_normal, minimise, sampled, torch_module
from onbmacf.bench.network import forward_net, nn, seeded, torch
from onbmacf.bench.protocol import Found, Matrix, Model, Task

WIDTH, DEPTH, LATENT = 10, 3, 12
TRAINING_STEPS = 4000
ITERATIONS, LEARNING_RATE = 400, 0.5
DISTANCE_WEIGHT = 4.0  # divided by the number of columns


@dataclass
class CLUE:
    """Gradient search in a VAE's latent space, all factuals at once."""

    needs_gradient: ClassVar[bool] = True
    task_: Task = field(init=False)
    model_: Model = field(init=False)
    vae_: "VAE" = field(init=False)

    def fit(self, task: Task, model: Model, seed: int) -> "CLUE":
        """Train the VAE on all rows."""
        torch_module(model)
        self.task_, self.model_ = task, model
        self.vae_ = _trained_vae(task.Z, seed)
        return self

    def explain(self, Z: Matrix, n: int = 1) -> list[Found]:
        """Return the nearest flipping row that the search has visited."""
        module, lines = torch_module(self.model_), np.arange(len(Z))
        best, start = BestRows(self.task_, self.model_, Z), torch.tensor(Z)
        code = self.vae_.encode(start)[0].detach().requires_grad_()
        optimizer = torch.optim.Adam([code], lr=LEARNING_RATE)
        for _ in range(ITERATIONS):
            optimizer.zero_grad()
            points = self.vae_.decode(code)
            best.offer(points, lines)
            distance = (points - start).abs().sum() * DISTANCE_WEIGHT / Z.shape[1]
            (_entropy(module(points)).sum() + distance).backward()
            optimizer.step()
        return best.found()


class VAE:
    """A variational auto-encoder with Gaussian codes and outputs within 0..1."""

    def __init__(self, columns: int) -> None:
        hidden = [WIDTH] * DEPTH
        self.encoder = forward_net([columns, *hidden, 2 * LATENT])
        self.decoder = nn.Sequential(forward_net([LATENT, *hidden, columns]), nn.Sigmoid())

    def encode(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return mean and log variance of each row's code."""
        mean, log_variance = self.encoder(rows).chunk(2, dim=1)
        return mean, log_variance.clamp(-10.0, 10.0)

    def decode(self, code: torch.Tensor) -> torch.Tensor:
        """Return the rows that the codes decode to."""
        return self.decoder(code)

    def loss(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the negative evidence bound: Bernoulli reconstruction and divergence from N(0, 1)."""
        mean, log_variance = self.encode(rows)
        output = self.decode(sampled(mean, log_variance))
        reconstruction = nn.functional.binary_cross_entropy(output, rows, reduction="none").sum(dim=1)
        return (reconstruction + kl_to_normal(mean, log_variance)).mean()


def _trained_vae(Z: Matrix, seed: int) -> VAE:
    rows = torch.tensor(Z)
    with seeded(seed):
        vae = VAE(Z.shape[1])
        parameters = [*vae.encoder.parameters(), *vae.decoder.parameters()]
        minimise(parameters, lambda lines: vae.loss(rows[lines]), len(Z), steps=TRAINING_STEPS)
    vae.encoder.requires_grad_(False)
    vae.decoder.requires_grad_(False)
    return vae


def _entropy(scores: torch.Tensor) -> torch.Tensor:
    log_probabilities = nn.functional.log_softmax(scores, dim=1)
    return -(log_probabilities.exp() * log_probabilities).sum(dim=1)
