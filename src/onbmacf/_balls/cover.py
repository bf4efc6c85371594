"""Algorithm 1: cover the labelled rows with class-pure open balls.

    Z, labels  ->  nearest_enemy  ->  reach  ->  greedy_cover (per class)  ->  BallCover

Where most rows are copies of others, each different row is compared once and counts as often as it occurs.
Symbols: docs/glossary.md. "Line n" is line n of Algorithm 1. Departures: docs/decisions/0001 to 0004.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from onbmacf._balls.distance import blocks, distances
from onbmacf._balls.groups import Groups
from onbmacf._balls.kernels import greedy_cover_fast, nearest_enemy_fast
from onbmacf._balls.kernels.compiled import are_compiled
from onbmacf._balls.metrics import Metric, check_metric, has_kernel
from onbmacf._base.arrays import Mask, Matrix, Rows, hashed, in_steps, lines_of
from onbmacf._base.checks import check_choice
from onbmacf._base.limits import check_memory
from onbmacf.errors import ParameterError

FEW = 300  # rows up to which the plain functions are as fast as the compiled ones
BYTES_PER_CELL, BYTES_PER_ROW = 24, 100  # of the encoded table: what the compiled cover was measured to take
MANY_ROWS, BYTES_PER_LIST = 65_536, 130  # of so many rows each may have a list of the rows in its ball (decision 0048)
MATRIX_PER_ROW = 64  # bytes: a matrix of who lies in whose ball may take so many per row of the table
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
        Per fitted row: the ball that covered it first; -1 where none does, which only happens beside a covered sample.
    reach : array of float
        Per fitted row: the radius of a ball centred on it, in encoded units; NaN beside a covered sample.

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
        share = f", {100 * self.share:.3g} % of the rows in one" if self.is_sampled else ""
        return f"<BallCover of {len(self.owner):,} rows: {len(self):,} balls{spread}{share}>"

    def members(self, ball: int) -> Rows:
        """Return G(l): the rows this ball was chosen to cover."""
        return np.flatnonzero(self.owner == ball)

    @property
    def is_sampled(self) -> bool:
        """Whether a sample of the rows was covered, by balls that hold no enemy among all rows (decision 0138)."""
        return bool(np.isnan(self.reach).any())

    @property
    def share(self) -> float:
        """The share of the fitted rows that lie in a ball of their label."""
        return float((self.owner >= 0).mean())

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
    if fast is None and has_kernel(metric) and len(Z) > FEW and (copies := copies_of(Z, labels)) is not None:
        return _cover_of_copies(Z, labels, copies, metric, competitors, threads, client, groups)
    if fast is None:
        fast = has_kernel(metric) and is_worth_kernels(len(Z))
    check_cover_memory(len(Z), Z.shape[1], 0 if fast and has_kernel(metric) else np.bincount(labels).max())
    reach = line_9(Z, labels, metric, fast, threads, client, groups)

    def cover_of(rows: Rows) -> tuple[Rows, Rows]:
        return lines_6_to_18(lines_of(Z, rows), reach[rows], metric, competitors, fast, threads, client, groups)

    return of_all_labels(labels, reach, cover_of)


def of_all_labels(labels: Rows, reach: Matrix, cover_of: Callable[[Rows], tuple[Rows, Rows]]) -> BallCover:
    """Put the covers of all labels together; `cover_of` gives that of some rows: its centres, and each row's ball."""
    owner = np.empty(len(labels), dtype=np.intp)
    centers: list[Rows] = []
    n_balls = 0
    for label in np.unique(labels):  # line 3
        rows = np.flatnonzero(labels == label)  # line 4
        chosen, owned = cover_of(rows)
        centers.append(rows[chosen])
        owner[rows] = owned + n_balls
        n_balls += len(chosen)
    center = np.concatenate(centers)
    return BallCover(center, reach[center], labels[center].astype(np.intp), owner, reach)


class Copies(NamedTuple):
    """Rows of which most are copies: what is different, in the order in which it first occurs."""

    first: Rows  # per different row: the first row that is so
    of_row: Rows  # per row: which of the different ones it is


def copies_of(Z: Matrix, labels: Rows) -> Copies | None:
    """Return which rows are equal, with equal labels; None unless at least half of them are copies of others."""
    bits, found = np.ascontiguousarray(Z).view(np.uint64), hashed(Z, labels)
    first, of_row = np.unique(found, return_index=True, return_inverse=True)[1:]
    if len(first) > len(Z) // 2:
        return None
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    copies = Copies(first[order], place[of_row])
    alike = copies.first[copies.of_row]
    same = (np.array_equal(bits[some], bits[alike[some]]) for some in in_steps(*Z.shape))
    return copies if np.array_equal(labels, labels[alike]) and all(same) else None


def _cover_of_copies(
    Z: Matrix,
    labels: Rows,
    copies: Copies,
    metric: Metric,
    competitors: str,
    threads: int | None,
    client: Any,
    groups: Groups | None,
) -> BallCover:
    """Return the cover of rows of which most are copies: the same, to the bit, as if each were compared.

    Copies have one reach and one gain, and the first of them wins among them, so that the first of each kind stand for
    all. Where these are still so many that a matrix of them is larger than the table, all rows are covered one by one.
    """
    Z_first, first_labels = lines_of(Z, copies.first), labels[copies.first]
    fast = is_worth_kernels(len(Z_first))
    reach = line_9(Z_first, first_labels, metric, fast, threads, client, groups)[copies.of_row]

    def cover_of(rows: Rows) -> tuple[Rows, Rows]:
        kinds, of_row, counts = np.unique(copies.of_row[rows], return_inverse=True, return_counts=True)
        if len(kinds) ** 2 > MATRIX_PER_ROW * len(rows):
            is_many = is_worth_kernels(len(rows))
            of_rows = (lines_of(Z, rows), reach[rows])
            return lines_6_to_18(*of_rows, metric, competitors, is_many, threads, client, groups)
        firsts = copies.first[kinds]
        chosen, owned = greedy_cover(Z_first[kinds], reach[firsts], metric, competitors, counts)
        return np.searchsorted(rows, firsts[chosen]), owned[of_row]

    return of_all_labels(labels, reach, cover_of)


def check_cover_memory(n_rows: int, n_columns: int, n_matrix: int = 0, widest: str = "") -> None:
    """Raise an error if a cover will not fit into memory; n_matrix is the rows of the plain functions' matrix.

    `widest` says which of the caller's columns takes the most.
    """
    needed = bytes_of_cover(n_rows, n_columns) + 2.0 * n_matrix**2
    what = "rows, or with metric='manhattan' and compiled kernels" if n_matrix else "rows or columns"
    check_memory(needed, f"a cover of {n_rows:,} rows x {n_columns:,} encoded columns", f"Fit fewer {what}.{widest}")


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


def greedy_cover(
    Z: Matrix, reach: Matrix, metric: Metric, competitors: str = "uncovered", counts: Rows | None = None
) -> tuple[Rows, Rows]:
    """Lines 6-18 for the rows of one label: centres in the order chosen, and the owner of each row.

    `counts` says how often each row occurs: once by default.
    """
    counts = np.ones(len(Z), dtype=np.intp) if counts is None else counts
    gains = np.empty(len(Z), dtype=np.intp)
    within = np.empty((len(Z), len(Z)), dtype=bool)  # line 10: who lies in whose ball
    for part in blocks(len(Z), len(Z)):
        apart = distances(Z[part], Z, metric)
        within[part] = (apart < reach[part, np.newaxis]) | (apart == 0)  # decision 0003
        gains[part] = within[part] @ counts
    owner = np.full(len(Z), -1, dtype=np.intp)
    centers: list[int] = []
    while (uncovered := owner < 0).any():  # line 6
        allowed = uncovered if competitors == "uncovered" else np.ones_like(uncovered)  # line 8
        center = int(np.argmax(np.where(allowed, gains, -1)))  # lines 11-14; argmax takes the lowest row
        gained = within[center] & uncovered
        owner[gained] = len(centers)  # lines 16, 17
        centers.append(center)
        for part in blocks(len(Z), int(np.count_nonzero(gained))):
            gains[part] -= within[part, gained] @ counts[gained]
    return np.array(centers, dtype=np.intp), owner
