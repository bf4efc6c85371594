"""All that was asked about the factuals of a search, as arrays: the memo, the pool and the data of every later round.

    Record.of(factuals)  ->  Record.add(points)  ->  the new ones among them, to be asked about

Line r of each array belongs to factual r, column s to the s-th point asked; the first is the factual itself.
"""

from dataclasses import dataclass

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._search.kernels import rounds


@dataclass(frozen=True, eq=False)
class Record:
    """Parallel arrays, factuals x points; the kernels work on the same memory."""

    own: Matrix
    points: Matrix  # factuals x points x features
    margin: Matrix  # above 0: accepted; NaN: not asked
    base: Matrix  # distance, and a little for each change
    key: Matrix  # tells sets of changed features apart
    n_changed: Rows
    size: Rows  # points per factual
    code: Rows  # the label of each point
    probability: Matrix  # of that label; NaN where it is not known
    share: Matrix  # of neighbours with that label; NaN where it was not looked at
    trace: rounds.Trace
    features: rounds.Features

    @classmethod
    def of(cls, own: Matrix, free: Mask, features: rounds.Features, capacity: int) -> "Record":
        """Return an empty record with room for so many points per factual."""
        own, shape = np.ascontiguousarray(own), (len(own), capacity)
        points, key = np.empty((*shape, own.shape[1])), np.zeros(shape)
        margin, base = np.full(shape, np.nan), np.full(shape, np.inf)
        n_changed, only, size = (np.zeros(of, dtype=np.intp) for of in (shape, shape, len(own)))
        flags = np.ascontiguousarray(free.astype(np.int8))
        trace = rounds.Trace(own, flags, points, margin, base, key, n_changed, only, size)
        code, unknown = np.full(shape, -1, dtype=np.intp), np.full(shape, np.nan)
        return cls(own, points, margin, base, key, n_changed, size, code, unknown, unknown.copy(), trace, features)

    def add(self, points: Matrix, owner: Rows, allowed: Mask, room: Rows) -> tuple[Rows, Rows]:
        """Add points that are new and allowed, as far as each factual has room; return where they are."""
        row, slot = np.empty((2, len(points)), dtype=np.intp)
        given = np.ascontiguousarray(points), np.ascontiguousarray(owner), allowed.astype(np.int8), room.copy()
        n = rounds.append(self.trace, self.features, *given, row, slot)
        return row[:n], slot[:n]

    def accepted(self) -> Mask:
        """Say which points are answers."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.margin > 0)
