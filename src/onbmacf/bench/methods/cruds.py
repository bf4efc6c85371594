"""CRUDS (Downs et al., 2020): move only the part of a row's latent code that determines the label.

A conditional-subspace VAE (Klys et al., 2018) splits a row's code into z, from which an adversary cannot predict
the label, and w, whose prior depends on it. The search moves w alone, by gradient, until the decoded row has the
target label: cross-entropy + 0.001 * Manhattan distance. The cheapest flipping row visited is returned.

The parameters are CARLA's: layers 16 and 8, w of size 2, loss weights 40 (reconstruction), 0.2 and 1 (divergence of z
and w), 110 (entropy) and 100 (adversary); RMSprop, step 0.008, 2,000 iterations. Differences: trained for a fixed
number of steps rather than 5 epochs, on the model's labels (the model is what is explained) rather than the true ones.

Immutables: kept. The VAE is trained on the mutable columns only; the factual's immutable columns are added to its
output. Only the VAE's training is random.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from onbmacf.bench.methods._gradient import BestRows, kl_to_normal, sampled, torch_module
from onbmacf.bench.network import forward_net, nn, seeded, torch
from onbmacf.bench.protocol import Found, Matrix, Model, Task

HIDDEN, LATENT, SUBSPACE = 16, 8, 2
CENTERS, SCALES = (0.0, 3.0), (0.1, 1.0)  # the prior of w for label 0 and label 1
RECONSTRUCTION, Z_DIVERGENCE, W_DIVERGENCE, ENTROPY, ADVERSARY = 40.0, 0.2, 1.0, 110.0, 100.0
TRAINING_STEPS, BATCH, TRAINING_RATE = 3000, 128, 1e-3
ITERATIONS, LEARNING_RATE, DISTANCE_WEIGHT = 2000, 0.008, 0.001


@dataclass
class CRUDS:
    """Gradient search in the label's subspace of a CSVAE, all factuals at once."""

    needs_gradient: ClassVar[bool] = True
    task_: Task = field(init=False)
    model_: Model = field(init=False)
    mutable_: torch.Tensor = field(init=False)
    vae_: "CSVAE" = field(init=False)

    def fit(self, task: Task, model: Model, seed: int) -> "CRUDS":
        """Train the CSVAE on the mutable columns of all rows."""
        torch_module(model)
        self.task_, self.model_ = task, model
        self.mutable_ = torch.tensor(np.flatnonzero(~task.immutable_columns))
        with seeded(seed):
            self.vae_ = CSVAE(len(self.mutable_))
            self.vae_.train(torch.tensor(task.Z)[:, self.mutable_], torch.tensor(model.label_of(task.Z)))
        return self

    def explain(self, Z: Matrix, n: int = 1) -> list[Found]:
        """Return the cheapest flipping row that the search has visited."""
        best, start = BestRows(self.task_, self.model_, Z), torch.tensor(Z)
        labels = torch.full((len(Z),), 1 - self.task_.target)
        (code, _), (subspace, _) = self.vae_.encode(start[:, self.mutable_], labels)
        moved = subspace.detach().requires_grad_()
        optimizer = torch.optim.RMSprop([moved], lr=LEARNING_RATE)
        for _ in range(ITERATIONS):
            optimizer.zero_grad()
            points = start.index_copy(1, self.mutable_, self.vae_.decode(code, moved))
            losses = self._losses(points, start)
            best.offer(points, np.arange(len(Z)), losses.detach().numpy())
            losses.sum().backward()
            optimizer.step()
        return best.found()

    def _losses(self, points: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
        goal = torch.full((len(points),), self.task_.target)
        miss = nn.functional.cross_entropy(torch_module(self.model_)(points), goal, reduction="none")
        return miss + DISTANCE_WEIGHT * (points - start).abs().sum(dim=1)


class CSVAE:
    """A conditional-subspace VAE with one binary label."""

    def __init__(self, columns: int) -> None:
        self.z_encoder = forward_net([columns, HIDDEN, 2 * LATENT])
        self.w_encoder = forward_net([columns + 1, HIDDEN, 2 * SUBSPACE])
        self.decoder = nn.Sequential(forward_net([LATENT + SUBSPACE, HIDDEN, columns]), nn.Sigmoid())
        self.adversary = forward_net([LATENT, HIDDEN, 2])

    def encode(self, rows: torch.Tensor, labels: torch.Tensor) -> tuple[tuple[torch.Tensor, ...], ...]:
        """Return mean and log variance of z, and of w."""
        labelled = torch.cat([rows, labels[:, None].to(rows.dtype)], dim=1)
        return tuple(
            (mean, log_variance.clamp(-10.0, 10.0))
            for mean, log_variance in (
                self.z_encoder(rows).chunk(2, dim=1),
                self.w_encoder(labelled).chunk(2, dim=1),
            )
        )

    def decode(self, code: torch.Tensor, subspace: torch.Tensor) -> torch.Tensor:
        """Return the rows that the codes decode to."""
        return self.decoder(torch.cat([code, subspace], dim=1))

    def train(self, rows: torch.Tensor, labels: torch.Tensor) -> None:
        """Train the VAE and its adversary in turn. Call it within `seeded`."""
        modules = (self.z_encoder, self.w_encoder, self.decoder)
        parameters = [parameter for module in modules for parameter in module.parameters()]
        optimizer = torch.optim.Adam(parameters, lr=TRAINING_RATE, fused=True)
        adversary = torch.optim.Adam(self.adversary.parameters(), lr=TRAINING_RATE, fused=True)
        for _ in range(TRAINING_STEPS):
            batch = torch.randint(len(rows), (BATCH,))
            loss, code = self._loss(rows[batch], labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            adversary.zero_grad()
            guess = self.adversary(code.detach())
            (ADVERSARY * nn.functional.cross_entropy(guess, labels[batch])).backward()
            adversary.step()
        for module in modules:
            module.requires_grad_(False)

    def _loss(self, rows: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        (z_mean, z_spread), (w_mean, w_spread) = self.encode(rows, labels)
        code = sampled(z_mean, z_spread)
        output = self.decode(code, sampled(w_mean, w_spread))
        center, scale = torch.tensor(CENTERS)[labels, None], torch.tensor(SCALES)[labels, None]
        guess = nn.functional.log_softmax(self.adversary(code), dim=1)
        loss = (
            RECONSTRUCTION * ((output - rows) ** 2).sum(dim=1)
            + Z_DIVERGENCE * kl_to_normal(z_mean, z_spread)
            + W_DIVERGENCE * kl_to_normal(w_mean, w_spread, center, scale)
            + ENTROPY * (guess.exp() * guess).sum(dim=1)
        )
        return loss.mean(), code
