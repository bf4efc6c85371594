"""A cover of a sample that holds for all rows: Algorithm 1 with the sample as U, and every row as V (decision 0138).

    Z, labels  ->  sample_of  ->  some rows, chosen by what is in them
    sample, Z, labels  ->  enemies_among  ->  line 9: reach of the sample among all rows, or the rows of a part
    sample, reach  ->  cover_of_sample (lines 6-18)  ->  balls  ->  first_balls  ->  owner of each row; -1: in no ball

A table in parts gives the same: reach is the minimum over them, a row's owner depends on no other row.
"""

import numpy as np

from onbmacf._balls.cover import BallCover, is_worth_kernels, lines_6_to_18, of_all_labels
from onbmacf._balls.distance import blocks, distances
from onbmacf._balls.geometry import Balls
from onbmacf._balls.groups import Groups
from onbmacf._balls.kernels import enemies_among_fast, first_balls_fast
from onbmacf._balls.metrics import Metric, has_kernel
from onbmacf._base.arrays import Matrix, Rows, hashed, lines_of
from onbmacf._base.executor import map_chunks

LEAST_OF_LABEL = 100  # rows of each label in a sample, where it has so many
AT_ONCE = 1 << 17  # rows that one thread looks at


def sampled_cover(
    Z: Matrix,
    labels: Rows,
    sample: Rows,
    metric: Metric = "manhattan",
    competitors: str = "uncovered",
    *,
    threads: int | None = None,
    groups: Groups | None = None,
) -> BallCover:
    """Cover a sample of the rows by balls without an enemy among all rows; a row in none of them has the owner -1.

    The reach of rows outside the sample is not measured: NaN.
    """
    points, codes, reach = lines_of(Z, sample), labels[sample], np.full(len(Z), np.nan)
    reach[sample] = enemies_among(points, codes, Z, labels, metric, threads=threads, groups=groups)
    cover = cover_of_sample(points, codes, reach[sample], metric, competitors, threads, groups)
    balls = Balls(points[cover.centers], cover.radii, cover.labels)
    owner = first_balls(balls, Z, labels, metric, threads, groups)
    return BallCover(sample[cover.centers], cover.radii, cover.labels, owner, reach)


def sample_of(Z: Matrix, labels: Rows, most: int) -> Rows:
    """Return the `most` rows with the lowest hashes, and `LEAST_OF_LABEL` of each label, in the order of these.

    Equal rows have one hash, and the first of them stands for all: neither the order of the rows nor copies of them
    change what is in the sample.
    """
    first = np.unique(hashed(Z, labels), return_index=True)[1]
    is_in = np.arange(len(first)) < most
    for label in np.unique(labels):
        is_in[np.flatnonzero(labels[first] == label)[:LEAST_OF_LABEL]] = True
    return first[is_in]


def enemies_among(
    points: Matrix,
    codes: Rows,
    Z: Matrix,
    labels: Rows,
    metric: Metric,
    known: Matrix | None = None,
    *,
    threads: int | None = None,
    groups: Groups | None = None,
) -> Matrix:
    """Line 9 for points among other rows: the distance to the nearest of another label, or what is known, if less."""
    if has_kernel(metric) and is_worth_kernels(len(Z)):
        return enemies_among_fast(points, codes, Z, labels, metric, threads, groups, known)
    reach = np.full(len(points), np.inf) if known is None else known.copy()
    for part in blocks(len(points), len(Z)):
        is_enemy = labels != codes[part, np.newaxis]
        apart = np.where(is_enemy, distances(points[part], Z, metric), np.inf)
        reach[part] = np.minimum(reach[part], apart.min(axis=1, initial=np.inf))
    return reach


def cover_of_sample(
    points: Matrix,
    codes: Rows,
    reach: Matrix,
    metric: Metric,
    competitors: str,
    threads: int | None = None,
    groups: Groups | None = None,
) -> BallCover:
    """Lines 6-18 for a sample whose reach among all rows is known."""

    def cover_of(rows: Rows) -> tuple[Rows, Rows]:
        fast = is_worth_kernels(len(rows))
        own = lines_of(points, rows), reach[rows]
        return lines_6_to_18(*own, metric, competitors, fast, threads, groups=groups)

    return of_all_labels(codes, reach, cover_of)


def first_balls(
    balls: Balls, Z: Matrix, labels: Rows, metric: Metric, threads: int | None = None, groups: Groups | None = None
) -> Rows:
    """Return, per row, the first ball of its label that covers it; -1 where none does."""
    owner = np.full(len(Z), -1, dtype=np.intp)
    parts = [
        (np.flatnonzero(balls.labels == label), rows[start : start + AT_ONCE])
        for label in np.unique(labels)
        for rows in [np.flatnonzero(labels == label)]
        for start in range(0, len(rows), AT_ONCE)
    ]

    def work(start: int, stop: int) -> None:
        for own, rows in parts[start:stop]:
            found = _first_balls(balls.points[own], balls.radii[own], lines_of(Z, rows), metric, groups)
            owner[rows] = np.append(own, -1)[found]

    map_chunks(work, len(parts), 1, threads)
    return owner


def _first_balls(centers: Matrix, radii: Matrix, Z: Matrix, metric: Metric, groups: Groups | None) -> Rows:
    if has_kernel(metric) and is_worth_kernels(len(Z)):
        return first_balls_fast(centers, radii, Z, metric, groups)
    owner = np.full(len(Z), -1, dtype=np.intp)
    for part in blocks(len(Z), len(centers)):
        apart = distances(Z[part], centers, metric)
        within = (apart < radii) | (apart == 0)  # decision 0003
        owner[part] = np.where(within.any(axis=1), within.argmax(axis=1), -1) if len(centers) else -1
    return owner
