"""Stands in for the module `cython` where that is not installed: kernels then run as the Python that they are."""

import builtins
from collections.abc import Callable
from typing import Any

compiled = False


def cfunc(function: Any) -> Any:
    """Return the function as it is; so do the other decorators."""
    return function


cclass = final = ccall = inline = cfunc


def exceptval(*values: Any, check: bool = True) -> Callable[[Any], Any]:
    """Return a decorator that does nothing."""
    return cfunc


class _NoLock:
    """What stands for `nogil`, as a decorator and in a `with` statement."""

    def __call__(self, function: Any) -> Any:
        return function

    def __enter__(self) -> None: ...

    def __exit__(self, *error: Any) -> None: ...


nogil = _NoLock()


class _Kind:
    """A type that is named in annotations and in casts; with a number in brackets, an array of that length."""

    def __init__(self, convert: Callable[[Any], Any] | None = None, length: Any = None) -> None:
        self.convert, self.length = convert, length

    def __getitem__(self, length: Any) -> "_Kind":
        return _Kind(self.convert, length)

    def __call__(self, value: Any = 0) -> Any:
        return value if self.convert is None else self.convert(value)


def cast(kind: _Kind, value: Any) -> Any:
    """Return the value, a number with a fraction as a whole one where the kind is one of integers."""
    return kind(value)


def declare(kind: Any = None, value: Any = None, **kinds: _Kind) -> Any:
    """Return the value as it is; for an array without one, room for its numbers."""
    return [0] * kind.length if isinstance(kind, _Kind) and kind.length is not None and value is None else value


bint = _Kind(builtins.bool)
short = long = longlong = Py_ssize_t = char = uchar = ulonglong = uint = int = _Kind(builtins.int)
double = const = void = float = _Kind()
