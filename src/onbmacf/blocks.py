"""Which features change together: an address, a part of a picture, a stretch of a series.

Blocks(groups)  ->  fit(..., blocks=...)        Blocks.grid, Blocks.segments: of arrays, whose columns are positions
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

import numpy as np

from onbmacf._base.checks import check_count, did_you_mean, listed, names_of, shortened
from onbmacf.errors import ParameterError


@dataclass(frozen=True)
class Blocks:
    """Which features of a table change together, to the values of one fitted row: the donor.

    A feature in no block is a block of its own.

    Parameters
    ----------
    groups : mapping of name to columns
        By the name of a block, the columns in it. Each column may be in one block.
    shrink : bool, default False
        Whether numbers may then move part of the way back towards the row's own. By default every block that changes
        has the donor's very values.
    shape : tuple of int, optional
        Of a picture or a series, whose columns are positions: what `grid` and `segments` say.

    Examples
    --------
    >>> Blocks({"address": ["street", "city", "zip"]})
    Blocks({'address': ('street', 'city', 'zip')})
    >>> Blocks.grid((8, 8), 2)
    <Blocks of 8 x 8 columns: 16, such as '[0:2, 0:2]'>

    """

    groups: Mapping[Hashable, Sequence[Hashable]]
    shrink: bool = False
    shape: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.groups, Mapping) or not self.groups:
            raise ParameterError(f"blocks must map names to columns, got {shortened(self.groups)}.")
        if not isinstance(self.shrink, bool):
            raise ParameterError(f"shrink must be True or False, got {shortened(self.shrink)}.")
        groups: dict[Hashable, tuple[Hashable, ...]] = {}
        seen: dict[Hashable, Hashable] = {}
        for name, columns in self.groups.items():
            groups[name] = tuple(names_of(f"block {shortened(name)}", columns))
            if not groups[name]:
                raise ParameterError(f"block {shortened(name)} is empty: name its columns.")
            for column in groups[name]:
                if column in seen:
                    both = f"{shortened(seen[column])} and {shortened(name)}"
                    raise ParameterError(f"column {shortened(column)} is in the blocks {both}: it may be in one.")
                seen[column] = name
        object.__setattr__(self, "groups", groups)

    @classmethod
    def grid(cls, shape: Sequence[int], size: int | Sequence[int], *, shrink: bool = False) -> "Blocks":
        """Return the blocks of a picture whose pixels are the columns, row by row.

        Parameters
        ----------
        shape : tuple of int
            Rows and columns of the picture, and channels where it has several, which change together.
        size : int or tuple of int
            Rows and columns of a block; the last ones are smaller where they do not fit.
        shrink : bool, default False
            As for `Blocks`.

        Returns
        -------
        Blocks
            Named as numpy's slices: ``"[0:2, 4:6]"``.

        """
        shape, sizes = _sizes("shape", shape), _sizes("size", [size, size] if isinstance(size, int) else size)
        if len(shape) not in (2, 3) or len(sizes) != 2:
            raise ParameterError(f"a grid has rows and columns, got shape={shape} and size={size!r}.")
        return cls(_cut(shape, sizes), shrink, shape)

    @classmethod
    def segments(cls, length: int, size: int, *, shrink: bool = False) -> "Blocks":
        """Return the blocks of a series whose values are the columns, one after the other.

        Parameters
        ----------
        length : int
            Values of a series.
        size : int
            Values of a segment; the last one is shorter where it does not fit.
        shrink : bool, default False
            As for `Blocks`.

        Returns
        -------
        Blocks
            Named as slices: ``"[10:20]"``.

        """
        shape, sizes = _sizes("length", [length]), _sizes("size", [size])
        return cls(_cut(shape, sizes), shrink, shape)

    @classmethod
    def of(cls, given: Any, names: Sequence[Hashable]) -> "Blocks":
        """Return blocks for the columns of a table, as `fit` takes them: each column is in one of them."""
        blocks = given if isinstance(given, Blocks) else cls(given)
        if blocks.shape is not None and prod(blocks.shape) != len(names):
            said = f"{' x '.join(map(str, blocks.shape))} = {prod(blocks.shape)}"
            raise ParameterError(f"blocks are of {said} columns, the table has {len(names)}.")
        if blocks.shape is not None and all(type(one) is int for columns in blocks.groups.values() for one in columns):
            by_name = {block: [names[at] for at in places] for block, places in blocks.groups.items()}  # type: ignore
            blocks = replace(blocks, groups=by_name)
        for block, columns in blocks.groups.items():
            for column in columns:
                if column not in names:
                    meant = did_you_mean(column, names)
                    there = f"there is no column {shortened(column)}"
                    raise ParameterError(f"block {shortened(block)}: {there}.{meant} Columns: {listed(names)}.")
        inside = {column for columns in blocks.groups.values() for column in columns}
        for name in names:
            if name not in inside and name in blocks.groups:
                raise ParameterError(f"{shortened(name)} names a block and a column in none: rename the block.")
        return replace(blocks, groups={**blocks.groups, **{name: (name,) for name in names if name not in inside}})

    def named(self, name: Callable[[Any], Hashable]) -> "Blocks":
        """Return the same blocks of columns that are called otherwise."""
        groups = {block: tuple(map(name, columns)) for block, columns in self.groups.items()}
        return replace(self, groups={name(b) if c == (b,) else b: groups[b] for b, c in self.groups.items()})

    def of_columns(self, columns: Iterable[Hashable]) -> tuple[Hashable, ...]:
        """Return the names of the blocks that hold any of some columns, in their order."""
        some = set(columns)
        return tuple(name for name, held in self.groups.items() if some & set(held))

    def __repr__(self) -> str:
        if self.shape is None:
            return f"Blocks({self.groups!r}{', shrink=True' * self.shrink})"
        said = f"{' x '.join(map(str, self.shape))} columns: {len(self.groups)}, such as {next(iter(self.groups))!r}"
        return f"<Blocks of {said}{'; numbers may shrink' * self.shrink}>"


def _sizes(name: str, given: Any) -> tuple[int, ...]:
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise ParameterError(f"{name} must be whole numbers, one per axis, got {shortened(given)}.")
    return tuple(check_count(name, one) for one in given)


def _cut(shape: tuple[int, ...], sizes: tuple[int, ...]) -> dict[Hashable, list[int]]:
    """Return the positions in each part of an array, by the slices that cut it out."""
    places = np.arange(prod(shape)).reshape(shape)
    groups: dict[Hashable, list[int]] = {}
    steps = [range(0, length, size) for length, size in zip(shape, sizes, strict=False)]
    for starts in product(*steps):
        ends = [(low, min(low + size, length)) for low, size, length in zip(starts, sizes, shape, strict=False)]
        part = places[tuple(slice(*both) for both in ends)]
        groups["[" + ", ".join(f"{low}:{high}" for low, high in ends) + "]"] = part.ravel().tolist()
    return groups
