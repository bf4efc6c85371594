"""Arguments that got another name: for one minor release the old one works, and a warning says the new one."""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from onbmacf.errors import ParameterError

Function = TypeVar("Function", bound=Callable[..., Any])


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
