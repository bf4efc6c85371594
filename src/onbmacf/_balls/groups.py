"""Categories as one column each: two rows differ in a category or they do not, however many levels it has.

    Z (one column per level)  ->  compacted  ->  one column per feature: the number, or the position of the active level

Where two rows differ in a category of height h, one column per level adds h to their sum twice, and nothing in between
is added but zeros: so do the kernels on the compact form, in the same place, and every sum is the same to the bit
(docs/decisions/0048-large-maps.md).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onbmacf._base.arrays import Matrix, Rows, in_steps

MOST_LEVELS = 32767  # of a category: positions are 16-bit integers


class Groups(NamedTuple):
    """Which columns belong together, one entry per feature."""

    starts: Rows  # its first column
    sizes: Rows  # how many columns it has
    heights: Matrix  # of the active level's column; 0 for a number

    def scaled(self, scale: Matrix) -> Groups:
        """Return the groups of columns that are multiplied by these factors."""
        return self._replace(heights=self.heights * scale[self.starts])


def compacted(Z: Matrix, groups: Groups | None) -> Matrix | None:
    """Return rows with one column per feature; None where there is no category, or a row has no single active level."""
    if groups is None or not groups.heights.any() or groups.sizes.max() > MOST_LEVELS:
        return None
    compact = Z.take(groups.starts, axis=1)  # row after row in memory, which an index in brackets would not give
    is_single = (_compact(Z[lines], compact[lines], groups) for lines in in_steps(*Z.shape))
    return compact if all(is_single) else None


def _compact(Z: Matrix, compact: Matrix, groups: Groups) -> bool:
    """Write the active levels of rows; return whether each row has one in every category."""
    rows = np.arange(len(Z))
    for feature in np.flatnonzero(groups.heights):
        start, size, height = groups.starts[feature], groups.sizes[feature], groups.heights[feature]
        columns = Z[:, start : start + size]
        active = columns.argmax(axis=1)
        if (columns[rows, active] != height).any() or np.count_nonzero(columns) > len(Z):
            return False
        compact[:, feature] = active
    return True
