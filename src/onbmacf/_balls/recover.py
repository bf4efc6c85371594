"""Algorithm 3 lines 15-20: when the home ball has another label than the instance, cut the instance out of it.

    z, the rows of the home ball and their reach  ->  recover  ->  smaller balls that leave z outside

The paper re-runs Algorithm 1 on G(a) and the instance alone, which knows no enemy but the instance and could
return impure balls. Here every row keeps its own reach as an upper bound, and nothing outside this instance's
answer changes (decision 0011).
"""

import numpy as np

from onbmacf._balls.cover import is_worth_kernels, lines_6_to_18
from onbmacf._balls.distance import blocks, distances
from onbmacf._balls.kernels import reach_of_fast
from onbmacf._balls.kernels.compiled import are_compiled
from onbmacf._balls.metrics import Metric, has_kernel
from onbmacf._base.arrays import Matrix, Rows


def recover(z: Matrix, members: Matrix, reach: Matrix, metric: Metric, competitors: str) -> tuple[Rows, Matrix]:
    """Return the members chosen as centres of smaller balls, in order, and their radii."""
    radii = np.minimum(reach, distances(z[np.newaxis], members, metric)[0])
    centers, _ = lines_6_to_18(members, radii, metric, competitors, is_worth_kernels(len(members)), threads=1)
    return centers, radii[centers]


def reach_of(z: Matrix, codes: Rows, Z: Matrix, labels: Rows, metric: Metric) -> Matrix:
    """Return for each new point the distance to the nearest row with another label than its own."""
    if has_kernel(metric) and are_compiled():
        return reach_of_fast(z, codes, Z, labels, metric)
    reach = np.empty(len(z))
    for part in blocks(len(z), len(Z)):
        apart = distances(z[part], Z, metric)
        reach[part] = np.where(labels == codes[part, np.newaxis], np.inf, apart).min(axis=1)
    return reach
