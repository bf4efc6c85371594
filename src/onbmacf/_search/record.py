"""All that was asked about the factuals of a search, as arrays: the memo, the pool and the data of every later round.

    Record.of(factuals)  ->  Record.add(points)  ->  the new ones among them, to be asked about

Line r of each array belongs to factual r, column s to the s-th point asked; the first is the factual itself.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._search.kernels import rounds


@dataclass(frozen=True, eq=False)
class Record:
    """Parallel arrays, factuals x points; the kernels work on the same memory."""

    factuals: Matrix
    points: Matrix  # factuals x points x features
    margin: Matrix  # above 0: accepted; NaN: not asked
    base: Matrix  # distance, and a little for each change
    share: Matrix  # of neighbours with the point's label; NaN where it was not looked at
    code: Rows  # the label of each point
    key: NDArray[np.uint64]  # tells sets of changed features apart
    n_changed: Rows
    size: Rows  # points per factual
    probability: Matrix  # of the label; NaN where it is not known
    needless: NDArray[np.int8]  # points that are known to change more than they must
    looked: Rows  # points per factual that were compared for it
    lowest: Matrix  # per factual: the lowest score, and the least cost of an accepted point
    trace: rounds.Trace
    features: rounds.Features
    raw: Matrix  # room for proposals, per factual as much
    complete: Callable[[Matrix, Matrix], Matrix] | None = None  # actions, factuals -> with what follows
    donor: Rows | None = None  # of a search in blocks: the fitted row whose values each point has

    @classmethod
    def of(
        cls,
        factuals: Matrix,
        free: Mask,
        features: rounds.Features,
        capacity: int,
        proposals: int,
        complete: Any = None,
    ) -> "Record":
        """Return an empty record with room for so many points and proposals per factual."""
        factuals, shape = np.ascontiguousarray(factuals), (len(factuals), capacity)
        points, flags = np.empty((*shape, factuals.shape[1])), np.ascontiguousarray(free.astype(np.int8))
        margin, base, share, probability = (np.full(shape, value) for value in (np.nan, np.inf, np.nan, np.nan))
        code, n_changed, only = (np.zeros(shape, dtype=np.intp) for _ in range(3))
        hashes, key = np.zeros(shape, dtype=np.uint64), np.zeros(shape, dtype=np.uint64)
        size, places = (
            np.zeros(len(factuals), dtype=np.intp),
            np.zeros((len(factuals), 2 * capacity + 1), dtype=np.intc),
        )
        known = factuals, flags, points, margin, base, share, code, hashes, key, n_changed, only, size, places
        needless, raw = np.zeros(shape, dtype=np.int8), np.empty((len(factuals) * proposals, factuals.shape[1]))
        looked, lowest = np.zeros(len(factuals), dtype=np.intp), np.full((2, len(factuals)), np.inf)
        parts = factuals, points, margin, base, share, code, key, n_changed, size, probability, needless, looked
        return cls(*parts, lowest, rounds.Trace(*known), features, raw, complete)

    def add(
        self,
        points: Matrix,
        owner: Rows,
        allowed: Mask,
        room: Rows,
        part: NDArray[np.int8] | None = None,
        of: float = 1,
    ) -> tuple[Rows, Rows, Rows]:
        """Add points that are new and allowed, as far as each factual has room; return where they are, and which.

        Points of part 0 get this share of the room before those of part 1, and what these leave.
        """
        row, slot, line = np.empty((3, len(points)), dtype=np.intp)
        part = np.zeros(len(points), dtype=np.int8) if part is None else part
        points, first = np.ascontiguousarray(points), np.ceil(of * room).astype(np.intp)
        given = points, points.view(np.uint64), np.ascontiguousarray(owner), part, allowed.astype(np.int8)
        n = rounds.append(self.trace, self.features, *given, first, room.copy(), row, slot, line)
        return row[:n], slot[:n], line[:n]

    def measured(self, points: Matrix, owner: Rows) -> tuple[Matrix, Rows]:
        """Return how far points are from their factuals, and how many features they change."""
        apart, n_changed = np.empty(len(points)), np.empty(len(points), dtype=np.intp)
        given = np.ascontiguousarray(points), np.ascontiguousarray(owner)
        rounds.measure(self.trace, self.features, *given, apart, n_changed)
        return apart, n_changed

    def refused(self, points: Matrix, owner: Rows) -> Mask:
        """Say of which points one that changes the same features, and costs as much, was refused."""
        found = np.zeros(len(points), dtype=np.int8)
        given = np.ascontiguousarray(points), np.ascontiguousarray(owner)
        rounds.find_refused(self.trace, self.features, *given, found)
        return found.astype(bool)

    def find_needless(self) -> None:
        """Mark the accepted points one of whose changes can be undone."""
        rounds.find_needless(self.trace, self.features, self.needless, self.looked)

    def accepted(self) -> Mask:
        """Say which points are answers."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.margin > 0)
