"""Arrays: their types, tables of columns held as named tuples, and fields that are made on first use.

named tuple of columns  ->  take (some lines), stack (several tables)
matrix  ->  lines_of (some lines), hashed (a number per line that says what is in it)
shared, deferring       ->  fields of a frozen dataclass that are made on first use
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]  # also one number per line
Rows = NDArray[np.intp]  # positions, labels as codes
Mask = NDArray[np.bool_]

Columns = TypeVar("Columns", bound=tuple[Any, ...])  # a named tuple of columns of equal length
Class = TypeVar("Class", bound=type)
Value = TypeVar("Value")

MOST_NUMBERS = 1 << 23  # in one step over a matrix: a signal such as Ctrl-C is heard between steps


# --- types and tables -------------------------------------------------------------------------------------------------


def in_steps(n_lines: int, width: int) -> Iterator[slice]:
    """Yield the lines of a matrix in slices of at most so many numbers; all at once where they are few.

    >>> list(in_steps(5, 10)), list(in_steps(3, MOST_NUMBERS // 2))
    ([slice(0, 5, None)], [slice(0, 2, None), slice(2, 3, None)])
    """
    step = max(1, MOST_NUMBERS // max(1, width))
    for start in range(0, n_lines, step):
        yield slice(start, min(start + step, n_lines))


def lines_of(matrix: Matrix, lines: Rows) -> Matrix:
    """Return the lines of a matrix, as ``matrix[lines]``, in steps."""
    picked = np.empty((len(lines), matrix.shape[1]))
    for some in in_steps(*picked.shape):
        picked[some] = matrix[lines[some]]
    return picked


def hashed(matrix: Matrix, start: Rows) -> NDArray[np.uint64]:
    """Return a hash of the bits of each line, beginning with a number per line: equal lines have equal ones.

    Others have equal ones by chance: among 20 million lines, once in 100,000 tables.
    """
    found = start.astype(np.uint64)
    for some in in_steps(*matrix.shape):
        hashes = found[some]
        for column in np.ascontiguousarray(np.ascontiguousarray(matrix[some]).view(np.uint64).T):
            hashes = (hashes ^ column) * np.uint64(0x9E3779B97F4A7C15)
            hashes ^= hashes >> np.uint64(32)
        hashes *= np.uint64(0xD6E8FEB86659FD93)
        found[some] = hashes ^ (hashes >> np.uint64(32))
    return found


def take(columns: Columns, lines: Rows | Mask) -> Columns:
    """Return the lines of a named tuple of columns, in the order given.

    >>> from typing import NamedTuple
    >>> Points = NamedTuple("Points", [("x", Any), ("y", Any)])
    >>> take(Points(np.array([1, 2, 3]), None), np.array([2, 0]))
    Points(x=array([3, 1]), y=None)
    """
    taken: Iterator[Any] = (None if column is None else column[lines] for column in columns)
    return type(columns)(*taken)


def stack(parts: Sequence[Columns]) -> Columns:
    """Return several tables of the same columns as one, in the order given; at least one is needed."""
    joined: list[Any] = []
    for columns in zip(*parts, strict=True):
        if columns[0] is None:
            joined.append(None)
        else:  # rows that are no array yet know themselves how they are joined
            join = getattr(columns[0], "stacked", np.concatenate)
            joined.append(join(columns))
    return type(parts[0])(*joined)


def arrays_of(frame: Any) -> list[Any]:
    """Return the columns of a DataFrame as arrays, in a tenth of the time in which pandas makes a Series of each."""
    try:
        return list(frame._iter_column_arrays())
    except (AttributeError, TypeError):  # its own method, which it may change
        return [column.array for _, column in frame.items()]


def objects(values: Any) -> NDArray[Any]:
    """Return values as an array of objects, each as it is: numpy would make a matrix of equally long lists."""
    return np.array([*values, None], dtype=object)[:-1]


# --- fields made on first use -----------------------------------------------------------------------------------------


def shared(compute: Callable[[Any], Value]) -> "cached_property[Value]":
    """Make a cached property that all views of one object have in common: `origin` is the object, None in itself."""

    @wraps(compute)
    def found(self: Any) -> Value:
        return compute(self) if self.origin is None else getattr(self.origin, compute.__name__)

    return cached_property(found)


class Deferred:
    """A field that holds a value, or a function that makes it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        value = instance.__dict__[self.name]
        if callable(value):
            value = instance.__dict__[self.name] = value()
        return value

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self.name] = value


def _state(self: Any) -> dict[str, Any]:
    """Return the fields, those made that were not looked at yet."""
    return {name: getattr(self, name) for name in self.__dict__}


def deferring(*names: str) -> Callable[[Class], Class]:
    """Let these fields of a dataclass be given as functions that make them.

    >>> from dataclasses import dataclass
    >>> @deferring("square")
    ... @dataclass(frozen=True)
    ... class Result:
    ...     square: int
    >>> Result(lambda: 3 * 3), Result(9).square
    (Result(square=9), 9)
    """

    def changed(made: Class) -> Class:
        for name, held in {**{name: Deferred(name) for name in names}, "__getstate__": _state}.items():
            setattr(made, name, held)
        return made

    return changed
