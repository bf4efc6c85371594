"""Fields of a frozen dataclass that are made when they are first looked at.

    @deferring("values")                  Result(values=series)
    @dataclass(frozen=True)         or    Result(values=function without arguments, which makes it)
    class Result: values: Series

A copy or a pickle holds what the functions make, never the functions and all that they know.
"""

from collections.abc import Callable
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)


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
