"""Imports torch, or raises an error that says how to install it; seeds it without touching the global state."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

try:
    import torch
    from torch import nn
except ImportError as error:
    raise ImportError("the benchmark's network needs torch: pip install 'onbmacf[bench]'.") from error

__all__ = ["forward_net", "nn", "seeded", "torch"]


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
