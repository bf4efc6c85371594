"""Algorithm 3 lines 15-20: when the home ball has another label than the instance, cut the instance out of it.

    z, the rows of the home ball and their reach  ->  recover  ->  smaller balls that leave z outside

The paper re-runs Algorithm 1 on G(a) and the instance alone, which knows no enemy but the instance and could
return impure balls. Here every row keeps its own reach as an upper bound, and nothing outside this instance's
answer changes (decision 0011).
"""

import numpy as np

from onbmacf._balls.associate import home_balls
from onbmacf._balls.cover import BallCover, is_worth_kernels, lines_6_to_18
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


def let_in(
    cover: BallCover,
    Z: Matrix,
    labels: Rows,
    z: Matrix,
    code: int,
    metric: Metric,
    competitors: str,
    association: str,
    boundary: str,
) -> tuple[BallCover, Matrix, Rows] | None:
    """Return the map with a point in it whose home ball has another label; None where it has the point's own."""
    apart = distances(z[np.newaxis], Z[cover.centers], metric)
    home = int(home_balls(apart, cover.radii, association, boundary)[0])
    if cover.labels[home] == code:
        return None
    return absorb(cover, Z, labels, z, code, home, metric, competitors)


def absorb(
    cover: BallCover,
    Z: Matrix,
    labels: Rows,
    z: Matrix,
    code: int,
    home: int,
    metric: Metric,
    competitors: str,
) -> tuple[BallCover, Matrix, Rows]:
    """Lines 16-18 taken at their word: the instance joins the table and its home ball is replaced for good.

    The option recover="persist". Answers then depend on the order of the questions.
    """
    rows = cover.members(home)
    chosen, radii = recover(z, Z[rows], cover.reach[rows], metric, competitors)
    own = reach_of(z[np.newaxis], np.array([code]), Z, labels, metric)
    kept = np.arange(len(cover)) != home
    reach = np.append(cover.reach, own)
    reach[rows] = np.minimum(reach[rows], distances(z[np.newaxis], Z[rows], metric)[0])
    centers = np.concatenate([cover.centers[kept], rows[chosen], [len(Z)]])
    owner = np.append(cover.owner - (cover.owner > home), len(centers) - 1)
    owner[rows] = kept.sum() + _owners(Z[rows], chosen, radii, metric)
    new_labels = np.append(labels, code)
    grown = BallCover(centers, np.concatenate([cover.radii[kept], radii, own]), new_labels[centers], owner, reach)
    return grown, np.vstack([Z, z]), new_labels


def _owners(Z: Matrix, centers: Rows, radii: Matrix, metric: Metric) -> Rows:
    """Return the first of the balls that covers each row."""
    apart = distances(Z, Z[centers], metric)
    return ((apart < radii) | (apart == 0)).argmax(axis=1)
