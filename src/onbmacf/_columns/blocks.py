"""Frames made of whole blocks: one step per dtype instead of one per column.

    names, dtypes, levels  ->  BlockForm.of  ->  BlockForm        N  ->  BlockForm.frame  ->  DataFrame
    plain values of one row  ->  frame_of_row  ->  DataFrame

A search makes a frame for each call of the model, and pandas takes longer to check the columns of a small one than most
models take to label it. What comes out is what `TableForm.plain_frame` makes column by column, which is checked before
the first use: the parts of pandas that are put together here, the same in pandas 2 and 3, are not its public ones.
`pandas.api.internals.create_dataframe_from_blocks` is public, not in pandas 2, and takes three times as long.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from onbmacf._base.arrays import Matrix, Rows

try:
    from pandas._libs.internals import BlockPlacement
    from pandas.core.internals.blocks import ensure_block_shape, get_block_type
    from pandas.core.internals.managers import BlockManager
except ImportError:  # a pandas that keeps them elsewhere: frames are made column by column
    BlockManager = None

PLAIN: dict[type, type] = {  # types of single values, and what a column of one such value is
    **dict.fromkeys((float, np.float64), float),
    **dict.fromkeys((int, np.int64), np.int64),
    **dict.fromkeys((bool, np.bool_), bool),
    str: str,
}


class LevelColumns(NamedTuple):
    """Columns of one dtype whose values are levels: those of all columns one after the other in one array."""

    array: Any
    places: Rows  # the columns
    placed: list[Any]  # as pandas has them: of all where the array is numpy's, otherwise of each
    starts: Matrix  # per column: where its levels begin in the array
    last: Matrix | None  # per column: the place of its missing value among its levels; None where no column has one

    def blocks(self, N: Matrix) -> list[Any]:
        """Return the columns: numpy's as one block, others each as its own."""
        codes = N.T[self.places]
        codes = codes if self.last is None else np.where(np.isnan(codes), self.last, codes)
        lines = (codes + self.starts).astype(np.intp)
        taken = self.array[lines] if isinstance(self.array, np.ndarray) else self.array.take(lines.ravel())
        return _blocks(taken, self.placed)


class NumberColumns(NamedTuple):
    """Columns of one dtype of numpy to which numbers are cast."""

    dtype: Any
    places: Rows
    placed: list[Any]

    def blocks(self, N: Matrix) -> list[Any]:
        """Return the columns as one block."""
        # The lines picked are a copy already: a model that writes into its rows writes into no numbers of ours.
        return _blocks(N.T[self.places].astype(self.dtype, order="C", copy=False), self.placed)


class SingleColumn(NamedTuple):
    """A column of a dtype that numbers are not simply cast to: dates, nullable numbers, numbers as objects."""

    place: int
    placed: list[Any]
    array_of: Callable[[Matrix], Any]

    def blocks(self, N: Matrix) -> list[Any]:
        """Return the column as a block."""
        array = self.array_of(N[:, self.place])
        return _blocks(array[np.newaxis] if isinstance(array, np.ndarray) else array, self.placed)


@dataclass(frozen=True, eq=False)
class BlockForm:
    """The columns of a table by dtype."""

    columns: Any  # the names, as an Index
    groups: tuple[NumberColumns | LevelColumns | SingleColumn, ...]

    @classmethod
    def of(
        cls,
        columns: Any,
        dtypes: Sequence[Any],
        levels: dict[int, Any],
        missing: set[int],
        arrays_of: Mapping[int, Callable[[Matrix], Any]],
    ) -> "BlockForm":
        """Group the columns by dtype.

        `missing` are the columns of which the last of the levels is the missing value, and `arrays_of` makes the array
        of each column that is neither levels nor numbers of a dtype of numpy.
        """
        numeric = [place for place in range(len(dtypes)) if place not in levels and place not in arrays_of]
        numbers = (NumberColumns(dtypes[some[0]], some, [BlockPlacement(some)]) for some in _by_dtype(dtypes, numeric))
        joined = (_joined(levels, some, missing) for some in _by_dtype(dtypes, levels))
        single = (SingleColumn(place, [BlockPlacement(place)], array_of) for place, array_of in arrays_of.items())
        return cls(columns, (*numbers, *joined, *single))

    def frame(self, N: Matrix) -> pd.DataFrame:
        """Return numbers as rows with these columns and dtypes."""
        blocks = [block for group in self.groups for block in group.blocks(N)]
        return _framed(blocks, self.columns, pd.RangeIndex(len(N)))


def frame_of_row(values: Sequence[Any], columns: Any, index: Any) -> pd.DataFrame | None:
    """Return plain values as a frame of one row in the dtypes that pandas infers; None where it has to look at them."""
    return _row(values, columns, index) if _rows_are_right() else None


@cache
def _rows_are_right() -> bool:
    """Say whether this pandas makes of blocks the row that it makes of a record."""
    expected = pd.DataFrame([[0.5, 1, True, "a", "b", 2.5]], columns=list("uvwxyz"))
    made = _row([0.5, 1, True, "a", "b", 2.5], expected.columns, expected.index)
    return made is not None and made.equals(expected)


def _row(values: Sequence[Any], columns: Any, index: Any) -> pd.DataFrame | None:
    places: dict[Any, list[int]] = {}
    for place, value in enumerate(values):
        places.setdefault(PLAIN.get(type(value)), []).append(place)
    if None in places or not values:
        return None
    blocks: list[Any] = []
    try:
        for kind, same in places.items():
            cells = [values[place] for place in same]
            array = _plain(pd.Series(cells).array) if kind is str else np.array(cells, dtype=kind)
            array = array[:, np.newaxis] if isinstance(array, np.ndarray) else array
            blocks += _blocks(array, _placed(array, np.array(same)))
        return _framed(blocks, columns, index)
    except Exception:  # a number too large, half a character, a pandas without blocks: then by the public, slow way
        return None


def _framed(blocks: list[Any], columns: Any, index: Any) -> pd.DataFrame:
    manager = BlockManager(tuple(blocks), [columns.view(), index], verify_integrity=False)
    return pd.DataFrame._from_mgr(manager, manager.axes)


def _blocks(array: Any, placed: list[Any]) -> list[Any]:
    """Return an array as blocks: one, or one of each equally long part of it."""
    kind, n = get_block_type(array.dtype), len(array) // len(placed)
    parts = [array] if len(placed) == 1 else [array[at * n : (at + 1) * n] for at in range(len(placed))]
    return [kind(ensure_block_shape(part, 2), placement=at, ndim=2) for part, at in zip(parts, placed, strict=True)]


def _placed(array: Any, places: Rows) -> list[Any]:
    """Return where the columns belong: those of numpy together, others each alone."""
    return [BlockPlacement(places)] if isinstance(array, np.ndarray) else [BlockPlacement(int(at)) for at in places]


def _by_dtype(dtypes: Sequence[Any], places: Iterable[int]) -> list[Rows]:
    """Group columns by their dtype; a category alone: two dtypes of it are equal whatever the order of the levels."""
    groups: dict[Any, list[int]] = {}
    for place in places:
        dtype = dtypes[place]
        groups.setdefault(place if isinstance(dtype, pd.CategoricalDtype) else dtype, []).append(place)
    return [np.array(same, dtype=np.intp) for same in groups.values()]


def _joined(levels: dict[int, Any], places: Rows, missing: set[int]) -> LevelColumns:
    """Put the levels of columns of one dtype into one array."""
    arrays = [levels[int(place)] for place in places]
    starts = np.cumsum([0, *(len(array) for array in arrays[:-1])], dtype=np.float64)[:, np.newaxis]
    columns = [pd.Series(array, dtype=array.dtype) for array in arrays]
    joined = arrays[0] if len(arrays) == 1 else pd.concat(columns, ignore_index=True).array
    last = np.array([len(array) - 1.0 for array in arrays])[:, np.newaxis] if missing.intersection(places) else None
    array = _plain(joined)
    return LevelColumns(array, places, _placed(array, places), starts, last)


def _plain(array: Any) -> Any:
    """Return an array of numpy's own where pandas has wrapped one; its text is of a class derived from that."""
    return array.to_numpy(copy=True) if type(array) is pd.arrays.NumpyExtensionArray else array
