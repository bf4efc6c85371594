"""Frames made of whole blocks: one step per dtype instead of one per column.

    names, dtypes, levels  ->  BlockForm.of  ->  BlockForm        N  ->  BlockForm.frame  ->  DataFrame
    plain values of one row  ->  frame_of_row  ->  DataFrame

A search makes a frame for each call of the model, and pandas takes longer to check the columns of a small one than most
models take to label it. What comes out is what `TableForm.plain_frame` makes column by column. The only module that
knows what pandas holds a frame in.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from onbmacf._base.arrays import Matrix, Rows

try:
    from pandas.api.internals import create_dataframe_from_blocks as _frame_of_blocks
except ImportError:  # pandas 2 has no such function, but all that it takes

    def _frame_of_blocks(blocks: Any, index: Any, columns: Any) -> pd.DataFrame:
        from pandas.core.internals.api import make_block
        from pandas.core.internals.blocks import ensure_block_shape
        from pandas.core.internals.managers import BlockManager

        made = tuple(make_block(ensure_block_shape(values, ndim=2), places) for values, places in blocks)
        manager = BlockManager(made, [columns, index])
        return pd.DataFrame._from_mgr(manager, manager.axes)


CAST = "fiub"  # kinds of numpy dtypes to which numbers are cast as they are
PLAIN: dict[type, type] = {  # types of single values, and what a column of one such value is
    **dict.fromkeys((float, np.float64), float),
    **dict.fromkeys((int, np.int64), np.int64),
    **dict.fromkeys((bool, np.bool_), bool),
    str: str,
}


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
        return _each_alone(self.array.take(lines.ravel()), self.places)


class Single(NamedTuple):
    """A column of a dtype that numbers are not simply cast to: dates, nullable numbers, numbers as objects."""

    place: Rows
    array_of: Callable[[Matrix], Any]

    def blocks(self, N: Matrix) -> list[tuple[Any, Rows]]:
        """Return the column, and where it belongs."""
        array = self.array_of(N[:, self.place[0]])
        return [(array[np.newaxis] if isinstance(array, np.ndarray) else array, self.place)]


@dataclass(frozen=True, eq=False)
class BlockForm:
    """The columns of a table by dtype."""

    columns: Any  # the names, as an Index
    numbers: tuple[tuple[Any, Rows], ...]  # dtype, columns
    others: tuple[Levels | Single, ...]

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
        numbers = tuple((dtypes[own[0]], own) for own in _by_dtype(dtypes, numeric))
        joined = (_joined(levels, own, missing) for own in _by_dtype(dtypes, levels))
        single = (Single(np.array([place]), array_of) for place, array_of in arrays_of.items())
        return cls(columns, numbers, (*joined, *single))

    def frame(self, N: Matrix) -> pd.DataFrame:
        """Return numbers as rows with these columns and dtypes."""
        # The lines picked are a copy already: a model that writes into its rows writes into no numbers of ours.
        blocks = [(N.T[places].astype(dtype, order="C", copy=False), places) for dtype, places in self.numbers]
        for columns in self.others:
            blocks += columns.blocks(N)
        return _frame_of_blocks(blocks, index=pd.RangeIndex(len(N)), columns=self.columns.view())


def frame_of_row(values: Sequence[Any], columns: Any, index: Any) -> pd.DataFrame | None:
    """Return plain values as a frame of one row in the dtypes that pandas infers; None where it has to look at them."""
    places: dict[Any, list[int]] = {}
    for place, value in enumerate(values):
        places.setdefault(PLAIN.get(type(value)), []).append(place)
    if None in places or not values:
        return None
    blocks: list[tuple[Any, Rows]] = []
    try:
        for kind, own in places.items():
            cells, at = [values[place] for place in own], np.array(own)
            array = _plain(pd.Series(cells).array) if kind is str else np.array(cells, dtype=kind)
            blocks += [(array[:, np.newaxis], at)] if isinstance(array, np.ndarray) else _each_alone(array, at)
        return _frame_of_blocks(blocks, index=index, columns=columns.view())
    except Exception:  # a number too large, half a character, a pandas without blocks: as slowly as ever
        return None


def _each_alone(array: Any, places: Rows) -> list[tuple[Any, Rows]]:
    """Return each column of an array that has them one after the other as a block of its own."""
    n = len(array) // len(places)
    return [(array[at * n : (at + 1) * n], places[at : at + 1]) for at in range(len(places))]


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
    columns = [pd.Series(array, dtype=array.dtype) for array in arrays]
    joined = arrays[0] if len(arrays) == 1 else pd.concat(columns, ignore_index=True).array
    last = np.array([len(array) - 1.0 for array in arrays])[:, np.newaxis] if missing.intersection(places) else None
    return Levels(_plain(joined), places, starts, last)


def _plain(array: Any) -> Any:
    """Return an array of numpy's own where pandas has wrapped one; its text is of a class derived from that."""
    return array.to_numpy(copy=True) if type(array) is pd.arrays.NumpyExtensionArray else array
