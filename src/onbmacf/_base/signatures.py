"""What arguments a function says it takes: those of another one, or for one minor release also their old names."""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from onbmacf.errors import ParameterError

Function = TypeVar("Function", bound=Callable[..., Any])
Parameters = ParamSpec("Parameters")


def signed_like(other: Callable[Parameters, None]) -> Callable[[Callable[..., None]], Callable[Parameters, None]]:
    """Show a method with the name, help and signature of another: to people, and to every type checker.

    What `functools.wraps` returns is no method to pyright.
    """
    return lambda method: wraps(other)(method)


def renamed(gone_in: str, **names: str) -> Callable[[Function], Function]:
    """Let a function take arguments by their old names, too, until a version: `renamed("1.2", most="limit")`.

    Signature, help and types are those of the function, so they show the new names only.
    """

    def accepting(function: Function) -> Function:
        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            for old, new in names.items():
                if old not in kwargs:
                    continue
                if new in kwargs:
                    raise ParameterError(f"{old} is now called {new}: give {new} alone, got both.")
                words = f"{old} is now called {new}. {function.__qualname__}({new}=...) says the same; "
                warnings.warn(f"{words}{old} goes in {gone_in}.", FutureWarning, stacklevel=2)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return called  # type: ignore[return-value]

    return accepting
