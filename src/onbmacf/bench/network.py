"""The classifier that every method explains: two hidden ReLU layers of 32 and 16 units, trained once per dataset.

    Task  ->  trained_network  ->  Network (a Model with gradients), cached as a safetensors file

Training is seeded and single-threaded on a share of the rows, so the same task gives the same network. The name of
the file holds a digest of everything it depends on.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from onbmacf._base.files import write_atomically
from onbmacf.bench.protocol import Labels, Matrix, Task

try:
    import torch
    from torch import nn
except ImportError as error:
    raise ImportError("the benchmark's network needs torch: pip install 'onbmacf[bench]'.") from error

__all__ = [
    "Network",
    "accuracy",
    "forward_net",
    "nn",
    "retrained_networks",
    "seeded",
    "torch",
    "train",
    "trained_network",
]

HIDDEN = (32, 16)
LEARNING_RATE = 0.002
BATCH = 128
MOST_STEPS = 6000
MOST_EPOCHS = 200  # for small tables, where more epochs only memorise the rows
TRAINING_SHARE = 0.75
RETRAININGS = 1000  # seeds between a network and its first retraining: nobody counts so far


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Run with a seeded torch generator and one thread, then restore both: the same result everywhere."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)


def forward_net(widths: Sequence[int]) -> nn.Sequential:
    """Return fully connected layers of these widths in float64, with ReLU between them."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs, dtype=torch.float64), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


@dataclass(frozen=True, eq=False)
class Network:
    """A torch module from encoded rows to two scores, as a Model."""

    module: nn.Sequential

    def label_of(self, Z: Matrix) -> Labels:
        """Return 1 where its score is higher; a tie gives 0."""
        scores = self.scores(Z)
        return (scores[:, 1] > scores[:, 0]).astype(np.intp)

    def probability_of(self, Z: Matrix) -> Matrix:
        """Return the probability of label 1 of each row."""
        scores = self.scores(Z)
        return 1.0 / (1.0 + np.exp(np.clip(scores[:, 0] - scores[:, 1], -700, 700)))

    def scores(self, Z: Matrix) -> Matrix:
        """Return the two scores of each row."""
        with torch.no_grad():
            return np.asarray(self.module(torch.tensor(Z, dtype=torch.float64)).numpy())


def trained_network(task: Task, seed: int, folder: Path | None = None, share: float = TRAINING_SHARE) -> Network:
    """Return the network of a task: read from the folder if it is there, otherwise trained and saved there."""
    network = Network(forward_net([task.Z.shape[1], *HIDDEN, 2]))
    path = None if folder is None else folder / f"{task.name}-{_fingerprint(task, seed, share)}.safetensors"
    if path is not None and path.exists():
        from safetensors.torch import load

        network.module.load_state_dict(load(path.read_bytes()))
        network.module.requires_grad_(False).eval()
        return network
    network = train(task, seed, share)
    if path is not None:
        from safetensors.torch import save

        write_atomically(path, save(network.module.state_dict()))
    return network


def retrained_networks(task: Task, seed: int, count: int, folder: Path | None = None) -> list[Network]:
    """Return the network trained again: on other 75 % of the rows, from other weights; kept in the folder, too."""
    return [trained_network(task, RETRAININGS * (seed + 1) + place, folder) for place in range(count)]


def train(task: Task, seed: int, share: float = TRAINING_SHARE) -> Network:
    """Train on the training rows with Adam and cross-entropy for a fixed number of steps."""
    rows = training_rows(len(task.y), seed, share)
    steps = min(MOST_STEPS, MOST_EPOCHS * -(-len(rows) // BATCH))
    Z, y = torch.tensor(task.Z[rows]), torch.tensor(task.y[rows].astype(np.int64))
    with seeded(seed):
        module = forward_net([Z.shape[1], *HIDDEN, 2])
        optimizer = torch.optim.Adam(module.parameters(), lr=LEARNING_RATE, fused=True)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        for _ in range(steps):
            batch = torch.randint(len(Z), (min(BATCH, len(Z)),))
            optimizer.zero_grad()
            nn.functional.cross_entropy(module(Z[batch]), y[batch]).backward()
            optimizer.step()
            schedule.step()
    return Network(module.requires_grad_(False).eval())


def training_rows(count: int, seed: int, share: float = TRAINING_SHARE) -> NDArray[np.intp]:
    """Return the rows that the network is trained on, in file order."""
    shuffled = np.random.default_rng(seed).permutation(count)
    return np.sort(shuffled[: int(share * count)])


def accuracy(network: Network, task: Task, seed: int) -> tuple[float, float]:
    """Return the share of correct labels on the training rows and on the other rows."""
    right = network.label_of(task.Z) == task.y
    trained = np.zeros(len(right), dtype=bool)
    trained[training_rows(len(right), seed)] = True
    return float(right[trained].mean()), float(right[~trained].mean())


def _fingerprint(task: Task, seed: int, share: float) -> str:
    inputs = [task.digest, len(task.y), task.Z.shape[1], seed, HIDDEN, LEARNING_RATE, BATCH]
    inputs += [MOST_STEPS, MOST_EPOCHS, share, torch.__version__]
    rows = hashlib.sha256(task.Z.tobytes() + task.y.astype(np.int8).tobytes()).hexdigest()
    return hashlib.sha256(json.dumps([*inputs, rows]).encode()).hexdigest()[:16]
