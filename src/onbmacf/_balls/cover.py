"""Algorithm 1: cover the labelled rows with class-pure open balls.

    Z, labels  ->  nearest_enemy  ->  reach  ->  greedy_cover (per class)  ->  BallCover

Symbols: docs/glossary.md. "Line n" is line n of Algorithm 1. Departures: docs/decisions/0001 to 0004.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from onbmacf._balls.distance import blocks, distances
from onbmacf._balls.groups import Groups
from onbmacf._balls.kernels import greedy_cover_fast, nearest_enemy_fast
from onbmacf._balls.kernels.compiled import are_compiled
from onbmacf._balls.metrics import Metric, check_metric, has_kernel
from onbmacf._base.arrays import Mask, Matrix, Rows, lines_of
from onbmacf._base.checks import check_choice
from onbmacf._base.limits import check_memory
from onbmacf.errors import ParameterError

FEW = 300  # rows up to which the plain functions are as fast as the compiled ones
BYTES_PER_CELL, BYTES_PER_ROW = 24, 100  # of the encoded table: what the compiled cover was measured to take
MANY_ROWS, BYTES_PER_LIST = 65_536, 130  # of so many rows each may have a list of the rows in its ball (decision 0048)
COMPETITORS = ("uncovered", "all")


@dataclass(frozen=True, eq=False)
class BallCover:
    """A cover held as parallel arrays, one entry per ball, in the order chosen; `len` is the number of balls.

    Attributes
    ----------
    centers : array of int
        Per ball: the row of the fitted table at its centre (l in the paper).
    radii : array of float
        Per ball: the distance from its centre to the nearest row of another label, in encoded units (r(l)).
    labels : array of int
        Per ball: the code of its label, a position in ``explainer.classes_`` (c(l)).
    owner : array of int
        Per fitted row: the ball that covered it first.
    reach : array of float
        Per fitted row: the radius of a ball centred on it, in encoded units.

    Examples
    --------
    >>> from onbmacf import ONBMACF
    >>> from onbmacf.datasets import load_heart
    >>> table, chd = load_heart()
    >>> cover = ONBMACF().fit(table, lambda rows: rows["tobacco"] + rows["ldl"] > 10).cover_
    >>> len(cover), len(cover.owner), len(cover.members(0))
    (95, 462, 133)
    >>> cover
    <BallCover of 462 rows: 95 balls, radii from 0.338 to 1.64>

    """

    centers: Rows
    radii: Matrix
    labels: Rows
    owner: Rows
    reach: Matrix

    def __len__(self) -> int:
        return len(self.centers)

    def __repr__(self) -> str:
        spread = f", radii from {self.radii.min():.3g} to {self.radii.max():.3g}" if len(self) else ""
        return f"<BallCover of {len(self.owner):,} rows: {len(self):,} balls{spread}>"

    def members(self, ball: int) -> Rows:
        """Return G(l): the rows this ball was chosen to cover."""
        return np.flatnonzero(self.owner == ball)

    @property
    def is_degenerate(self) -> Mask:
        """Per ball: whether an enemy lies on its very centre, so that it covers its own point only."""
        return self.radii == 0


def build_cover(
    Z: Matrix,
    labels: Rows,
    metric: Metric = "manhattan",
    competitors: str = "uncovered",
    *,
    fast: bool | None = None,
    threads: int | None = None,
    client: Any = None,
    groups: Groups | None = None,
) -> BallCover:
    """Cover the rows of each label with open balls that hold no row of another label.

    labels are integer codes. With competitors="all" every row of the class may become a centre, also one that
    is covered already (the paper's text); by default only uncovered ones may (its line 8). `fast` picks the compiled
    twins of `nearest_enemy` and `greedy_cover`, which give the same cover; None takes what is faster.
    A Dask client shares out what can be shared out of the compiled twins; it too gives the same cover. `groups` tells
    the compiled twins which columns are the levels of one category: they then take one column in place of them.
    """
    check_metric(metric)
    check_choice("competitors", competitors, COMPETITORS)
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ParameterError("a cover needs two labels: with one there is nothing to be counter to.")
    if fast is None:
        fast = has_kernel(metric) and is_worth_kernels(len(Z))
    check_cover_memory(len(Z), Z.shape[1], 0 if fast and has_kernel(metric) else np.bincount(labels).max())
    reach = line_9(Z, labels, metric, fast, threads, client, groups)
    owner = np.empty(len(Z), dtype=np.intp)
    centers: list[Rows] = []
    n_balls = 0
    for label in classes:  # line 3
        rows = np.flatnonzero(labels == label)  # line 4
        of_label = (lines_of(Z, rows), reach[rows])
        chosen, owned = lines_6_to_18(*of_label, metric, competitors, fast, threads, client, groups)
        centers.append(rows[chosen])
        owner[rows] = owned + n_balls
        n_balls += len(chosen)
    center = np.concatenate(centers)
    return BallCover(center, reach[center], labels[center].astype(np.intp), owner, reach)


def check_cover_memory(n_rows: int, n_columns: int, n_matrix: int = 0) -> None:
    """Raise an error if a cover will not fit into memory; n_matrix is the rows of the plain functions' matrix."""
    needed = bytes_of_cover(n_rows, n_columns) + 2.0 * n_matrix**2
    what = "rows, or with metric='manhattan' and compiled kernels" if n_matrix else "rows or columns"
    check_memory(needed, f"a cover of {n_rows:,} rows x {n_columns:,} encoded columns", f"Fit fewer {what}.")


def bytes_of_cover(n_rows: int, n_columns: int) -> int:
    """Return what the compiled cover takes, with the table as numbers and encoded."""
    lists = BYTES_PER_LIST if n_rows >= MANY_ROWS else 0
    return n_rows * (BYTES_PER_CELL * n_columns + BYTES_PER_ROW + lists)


def is_worth_kernels(n_rows: int) -> bool:
    """Say whether the compiled twins are there, and faster for so many rows."""
    return n_rows > FEW and are_compiled()


def line_9(
    Z: Matrix,
    labels: Rows,
    metric: Metric,
    fast: bool,
    threads: int | None = None,
    client: Any = None,
    groups: Groups | None = None,
) -> Matrix:
    """Return the nearest enemy's distance of every row, by the plain function or its compiled twin."""
    if fast and has_kernel(metric):
        return nearest_enemy_fast(Z, labels, metric, threads, client, groups)
    return nearest_enemy(Z, labels, metric)


def lines_6_to_18(
    Z: Matrix,
    reach: Matrix,
    metric: Metric,
    competitors: str,
    fast: bool,
    threads: int | None = None,
    client: Any = None,
    groups: Groups | None = None,
) -> tuple[Rows, Rows]:
    """Return the greedy cover of one label, by the plain function or its compiled twin."""
    if fast and has_kernel(metric):
        return greedy_cover_fast(Z, reach, metric, competitors, threads, client, groups)
    return greedy_cover(Z, reach, metric, competitors)


def nearest_enemy(Z: Matrix, labels: Rows, metric: Metric) -> Matrix:
    """Line 9 for every row: the distance to the nearest row of another label."""
    reach = np.empty(len(Z))
    for label in np.unique(labels):
        rows, enemies = np.flatnonzero(labels == label), np.flatnonzero(labels != label)  # lines 4, 5
        for part in blocks(len(rows), len(enemies)):
            reach[rows[part]] = distances(Z[rows[part]], Z[enemies], metric).min(axis=1)
    return reach


def greedy_cover(Z: Matrix, reach: Matrix, metric: Metric, competitors: str = "uncovered") -> tuple[Rows, Rows]:
    """Lines 6-18 for the rows of one label: centres in the order chosen, and the owner of each row."""
    within = np.empty((len(Z), len(Z)), dtype=bool)  # line 10: who lies in whose ball
    for part in blocks(len(Z), len(Z)):
        apart = distances(Z[part], Z, metric)
        within[part] = (apart < reach[part, np.newaxis]) | (apart == 0)  # decision 0003
    gains = within.sum(axis=1)
    owner = np.full(len(Z), -1, dtype=np.intp)
    centers: list[int] = []
    while (uncovered := owner < 0).any():  # line 6
        allowed = uncovered if competitors == "uncovered" else np.ones_like(uncovered)  # line 8
        center = int(np.argmax(np.where(allowed, gains, -1)))  # lines 11-14; argmax takes the lowest row
        gained = within[center] & uncovered
        owner[gained] = len(centers)  # lines 16, 17
        centers.append(center)
        gains -= within[:, gained].sum(axis=1)
    return np.array(centers, dtype=np.intp), owner
