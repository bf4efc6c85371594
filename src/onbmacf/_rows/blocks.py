"""Frames made of whole blocks: one step per dtype instead of one per column.

    names, dtypes, levels  ->  BlockForm.of  ->  BlockForm        N  ->  BlockForm.frame  ->  DataFrame

A search makes a frame for each call of the model, and pandas takes longer to check the columns of a small one than most
models take to label it. What comes out is what `TableForm.plain_frame` makes column by column.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from onbmacf._base.arrays import Matrix, Rows

try:
    from pandas.api.internals import create_dataframe_from_blocks as _frame_of_blocks
except ImportError:  # pandas 2
    _frame_of_blocks = None

CAST = "fiu"  # kinds of numpy dtypes to which numbers are cast as they are
TAKEN = "fiubO"  # kinds of numpy dtypes that levels may have
LEVELS = (pd.CategoricalDtype, pd.StringDtype)  # other dtypes that levels may have


class Levels(NamedTuple):
    """Columns of one dtype whose values are levels: those of all columns one after the other in one array."""

    array: Any
    places: Rows  # the columns
    starts: Matrix  # per column: where its levels begin in the array
    last: Matrix | None  # per column: the place of its missing value among its levels; None where no column has one

    def blocks(self, N: Matrix) -> list[tuple[Any, Rows]]:
        """Return the columns, and where they belong: numpy's as one block, others each as its own."""
        codes = N.T[self.places]
        codes = codes if self.last is None else np.where(np.isnan(codes), self.last, codes)
        lines = (codes + self.starts).astype(np.intp)
        if isinstance(self.array, np.ndarray):
            return [(self.array[lines], self.places)]
        taken, n = self.array.take(lines.ravel()), len(N)
        return [(taken[at * n : (at + 1) * n], self.places[at : at + 1]) for at in range(len(self.places))]


@dataclass(frozen=True, eq=False)
class BlockForm:
    """The columns of a table by dtype."""

    columns: Any  # the names, as an Index
    numbers: tuple[tuple[Any, Rows], ...]  # dtype, columns
    levels: tuple[Levels, ...]

    @classmethod
    def of(
        cls, names: Sequence[Hashable], dtypes: Sequence[Any], levels: dict[int, Any], missing: set[int]
    ) -> "BlockForm | None":
        """Group the columns; None where a dtype needs the care of pandas, or pandas does not take blocks.

        `missing` are the columns of which the last of the levels is the missing value.
        """
        numeric = [place for place in range(len(names)) if place not in levels]
        fits = all(_is_numpy(dtypes[p], CAST) for p in numeric) and all(_has_levels(dtypes[p]) for p in levels)
        if _frame_of_blocks is None or not fits:
            return None
        columns = pd.DataFrame({name: [] for name in names}).columns
        numbers = tuple((dtypes[own[0]], own) for own in _by_dtype(dtypes, numeric))
        return cls(columns, numbers, tuple(_joined(levels, own, missing) for own in _by_dtype(dtypes, levels)))

    def frame(self, N: Matrix) -> pd.DataFrame:
        """Return numbers as rows with these columns and dtypes."""
        blocks: list[tuple[Any, Rows]] = [(N.T[places].astype(dtype), places) for dtype, places in self.numbers]
        for levels in self.levels:
            blocks += levels.blocks(N)
        assert _frame_of_blocks is not None, "without it there is no BlockForm"
        return _frame_of_blocks(blocks, index=pd.RangeIndex(len(N)), columns=self.columns.view())


def _is_numpy(dtype: Any, kinds: str) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in kinds


def _has_levels(dtype: Any) -> bool:
    return _is_numpy(dtype, TAKEN) or isinstance(dtype, LEVELS)


def _by_dtype(dtypes: Sequence[Any], places: Iterable[int]) -> list[Rows]:
    """Group columns by their dtype; a category alone: two dtypes of it are equal whatever the order of the levels."""
    groups: dict[Any, list[int]] = {}
    for place in places:
        dtype = dtypes[place]
        groups.setdefault(place if isinstance(dtype, pd.CategoricalDtype) else dtype, []).append(place)
    return [np.array(own, dtype=np.intp) for own in groups.values()]


def _joined(levels: dict[int, Any], places: Rows, missing: set[int]) -> Levels:
    """Put the levels of columns of one dtype into one array."""
    arrays = [levels[int(place)] for place in places]
    starts = np.cumsum([0, *(len(array) for array in arrays[:-1])], dtype=np.float64)[:, np.newaxis]
    if isinstance(arrays[0].dtype, LEVELS):
        joined = arrays[0] if len(arrays) == 1 else pd.concat([*map(pd.Series, arrays)], ignore_index=True).array
    else:
        joined = np.concatenate([array.to_numpy() for array in arrays])
    last = np.array([len(array) - 1.0 for array in arrays])[:, np.newaxis] if missing.intersection(places) else None
    return Levels(joined, places, starts, last)
