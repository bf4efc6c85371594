"""FACE (Poyiadzi et al., 2020): the nearest target row along paths through the data.

Rows are nodes; an edge joins close rows (`epsilon`: within a radius; `knn`: among the k nearest) and costs its
length. The counterfactual is the row with the target label that has the cheapest path from the factual. The radii
and ks are CARLA's, tried in turn until one reaches a target row; two wider radii follow them, because with
one-hot columns no edge shorter than 1.41 reaches another category. Dense regions are favoured because their
edges are short; the paper's additional density weight, whose form it leaves to the user, is 1.

Immutables: kept by the paper's condition on edges: only rows with the factual's immutable values are nodes. CARLA
keeps 15 % of the rows and one immutable; neither is needed. Nothing is random.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra
from sklearn.neighbors import NearestNeighbors

from onbmacf.bench.protocol import Found, Labels, Matrix, Model, Task

RADII = (0.15, 0.25, 0.35, 0.75, 1.5)
KS = (47, 50, 53)


@dataclass
class FACE:
    """FACE over an epsilon or a k-nearest-neighbour graph."""

    graph: Literal["epsilon", "knn"] = "epsilon"
    needs_gradient: ClassVar[bool] = False
    task_: Task = field(init=False)
    labels_: Labels = field(init=False)

    def fit(self, task: Task, model: Model, seed: int) -> "FACE":
        """Label the rows. Graphs are built later, one per group of equal immutables."""
        self.task_, self.labels_ = task, model.label_of(task.Z)
        return self

    def explain(self, Z: Matrix, n: int = 1) -> list[Found]:
        """Return a row of the data per factual, or None where no path reaches one."""
        found: list[Found] = [None] * len(Z)
        for lines in _groups(Z[:, self.task_.immutable_columns]):
            for line, answer in zip(lines, self._explain_group(Z[lines]), strict=True):
                found[line] = answer
        return found

    def _explain_group(self, factuals: Matrix) -> list[Found]:
        """Explain factuals that share their immutables: they are the first nodes of one graph."""
        fixed = self.task_.immutable_columns
        members = (self.task_.Z[:, fixed] == factuals[0, fixed]).all(axis=1)
        nodes = np.concatenate([factuals, self.task_.Z[members]])
        is_target = np.concatenate([np.zeros(len(factuals), bool), self.labels_[members] == self.task_.target])
        found: list[Found] = [None] * len(factuals)
        if not is_target.any():
            return found
        for setting in RADII if self.graph == "epsilon" else KS:
            open_ = [line for line, answer in enumerate(found) if answer is None]
            if not open_:
                break
            nearest = _nearest_target(self._edges(nodes, setting), is_target, open_)
            for line, node in zip(open_, nearest, strict=True):
                found[line] = None if node < 0 else nodes[node]
        return found

    def _edges(self, nodes: Matrix, setting: float) -> Any:
        index = NearestNeighbors().fit(nodes)
        if self.graph == "epsilon":
            return _no_zeros(index.radius_neighbors_graph(radius=setting, mode="distance"))
        k = min(int(setting), len(nodes) - 1)
        return _no_zeros(index.kneighbors_graph(n_neighbors=k, mode="distance"))


def _no_zeros(edges: Any) -> Any:
    """Replace the zero length of edges between duplicates, which the path search would read as no edge."""
    edges.data = np.maximum(edges.data, 1e-12)
    return edges


def _nearest_target(edges: Any, is_target: NDArray[np.bool_], sources: list[int]) -> NDArray[np.intp]:
    """Return the node of the cheapest path for each source, -1 where there is none."""
    nearest = np.full(len(sources), -1, dtype=np.intp)
    for place, source in enumerate(sources):
        costs = np.where(is_target, dijkstra(edges, directed=False, indices=source), np.inf)
        if np.isfinite(costs.min()):
            nearest[place] = costs.argmin()
    return nearest


def _groups(values: Matrix) -> list[NDArray[np.intp]]:
    """Return the groups of lines that have the same values."""
    if values.shape[1] == 0:
        return [np.arange(len(values))] if len(values) else []
    group = np.unique(values, axis=0, return_inverse=True)[1].ravel()
    return [np.flatnonzero(group == number) for number in range(group.max() + 1)] if len(values) else []
