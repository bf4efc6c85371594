"""A small auto-encoder of a task's rows: how well it reproduces a row says how much the row is like the others."""

from onbmacf.bench.methods._gradient import minimise
from onbmacf.bench.network import forward_net, nn, seeded, torch
from onbmacf.bench.protocol import Matrix, Task

STEPS = 3000


def trained_autoencoder(task: Task, seed: int) -> nn.Module:
    """Train CARLA's plain auto-encoder (20, 10, 7, 20, 10) on all rows."""
    Z, width = torch.tensor(task.Z), task.Z.shape[1]
    with seeded(seed):
        net = nn.Sequential(forward_net([width, 20, 10, 7]), nn.ReLU(), forward_net([7, 20, 10, width]), nn.Sigmoid())
        minimise(net.parameters(), lambda lines: ((net(Z[lines]) - Z[lines]) ** 2).mean(), len(Z), steps=STEPS)
    return net.requires_grad_(False)


def reconstruction_errors(autoencoder: nn.Module, Z: Matrix) -> Matrix:
    """Return the mean squared error of each row's reproduction."""
    rows = torch.tensor(Z)
    errors: Matrix = ((autoencoder(rows) - rows) ** 2).mean(dim=1).numpy()
    return errors
