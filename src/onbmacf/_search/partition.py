"""The blocks of features that change together, as a search sees them.

features -> any_of -> blocks        factual, point -> on_the_way -> the blocks that are still there, the dearest last
"""

from typing import NamedTuple

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._base.missing import differs
from onbmacf._search.table import SearchTable

EDGE = 1e-9  # of a way: what lies so near a place is there


class Partition(NamedTuple):
    """Which block each feature is in."""

    of_feature: Rows
    shrinks: bool  # whether numbers may move part of the way back

    @property
    def _order(self) -> Rows:
        return np.argsort(self.of_feature, kind="stable")

    @property
    def _starts(self) -> Rows:
        return np.searchsorted(self.of_feature[self._order], np.arange(self.of_feature.max() + 1))

    def any_of(self, mask: Mask) -> Mask:
        """Return lines x blocks: whether any feature of a block is marked."""
        return np.logical_or.reduceat(mask[:, self._order], self._starts, axis=1)

    def sums(self, cost: Matrix) -> Matrix:
        """Return lines x blocks: what the features of a block cost together."""
        return np.add.reduceat(cost[:, self._order], self._starts, axis=1)

    def on_the_way(self, table: SearchTable, start: Matrix, goal: Matrix, share: Matrix) -> Matrix:
        """Return the places at these shares of the way: the dearest blocks of the goal that are no farther.

        Half a block is nobody's address, so the way back leads from block to block.
        """
        cost = self.sums(costs(table, goal, start))
        order = np.argsort(-cost, axis=1, kind="stable")
        so_far = np.cumsum(np.take_along_axis(cost, order, axis=1), axis=1)
        kept = np.zeros(cost.shape, dtype=bool)
        np.put_along_axis(kept, order, so_far <= (share * so_far[:, -1] + EDGE)[:, np.newaxis], axis=1)
        return np.where(kept[:, self.of_feature], goal, start)


def costs(table: SearchTable, points: Matrix, start: Matrix) -> Matrix:
    """Return per feature what it costs to change it."""
    with np.errstate(invalid="ignore"):
        cost = np.where(table.is_level, 1.0, np.abs(points - start)) * table.scale
    return np.where(differs(points, start), np.where(np.isnan(cost), table.absent, cost), 0.0)
