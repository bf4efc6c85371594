"""Stands in for the module `cython` where that is not installed: kernels then run as the Python that they are."""

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


def cast(kind: Any, value: Any) -> Any:
    """Return the value as it is."""
    return value


def declare(kind: Any = None, value: Any = None) -> Any:
    """Return the value as it is."""
    return value


class _NoLock:
    """What stands for `nogil`, as a decorator and in a `with` statement."""

    def __call__(self, function: Any) -> Any:
        return function

    def __enter__(self) -> None: ...

    def __exit__(self, *error: Any) -> None: ...


nogil = _NoLock()


class _Kind:
    """A type that is named in annotations and does nothing."""

    def __getitem__(self, dimensions: Any) -> "_Kind":
        return self

    def __call__(self, value: Any = 0) -> Any:
        return value


double = short = int = long = longlong = Py_ssize_t = bint = char = uchar = float = ulonglong = uint = _Kind()
