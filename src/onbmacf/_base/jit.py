"""The only module that imports numba: how kernels are compiled.

Kernels are compiled on first use, by one process at a time, and cached on disk. They release the interpreter lock and
never reorder floating-point sums (no `fastmath`). None uses numba's parallel mode: threads come from `map_chunks`, so
kernels can be called from any thread, any number of times at once. None makes an array: the caller keeps all arrays
alive and gives room to work in, so references need not be counted, and the code that counts them is not compiled.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial, update_wrapper
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np

from onbmacf._base.cache_digests import discard_damaged, record, times
from onbmacf._base.cache_folder import cache_folder, one_process_at_a_time

_config: Any = numba.config
_njit: Any = partial(numba.njit, nogil=True, no_cfunc_wrapper=True, _nrt=False)  # _nrt: references are not counted
Function = TypeVar("Function", bound=Callable[..., Any])
_switching = threading.Lock()  # held while numba is told where to keep its files


class Kernel:
    """A function that is compiled when it is first called, for the types of arguments it is called with."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._compiled: Any = _njit(function)
        self._folder: Path | None = None
        self._entries: dict[Any, Callable[..., Any]] = {}  # machine code, by what its arguments look like
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        looks = _look(arguments)
        entry = self._entries.get(looks)
        if entry is None:
            entry = self._entries[looks] = self._compile(arguments)
        return entry(*arguments)

    def _compile(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        """Load the machine code from the cache, or compile it while other processes wait for it."""
        types = tuple(self._compiled.typeof_pyval(argument) for argument in arguments)
        folder = self._folder = self._folder or cache_folder(Path(self._compiled.py_func.__code__.co_filename).parent)
        if folder is not None and not self._entries:
            _keep_in(folder, self._compiled)
        with one_process_at_a_time(folder), _checked(folder):
            try:
                self._compiled.compile(types)
            except Exception:  # a damaged cache, or one that cannot be written: an error of the source comes again
                self._compiled = _compiled_alone(self._compiled, types)
        entry: Callable[..., Any] = self._compiled.get_overload(types)
        return entry


@contextmanager
def _checked(folder: Path | None) -> Iterator[None]:
    """Leave damaged files out of a cache before it is used, and note the digests of those written meanwhile."""
    if folder is None:
        yield
        return
    discard_damaged(folder)
    before = times(folder)
    yield
    record(folder, before)


def _compiled_alone(compiled: Any, types: tuple[Any, ...]) -> Any:
    """Return a function compiled again, without a cache; what is damaged in the cache is removed."""
    with suppress(Exception):
        compiled._cache.flush()
    again = _njit(compiled.py_func)
    again.compile(types)
    return again


def _look(argument: Any) -> Any:
    """Return what decides which machine code an argument needs; numba takes longer to say so than some kernels run."""
    if isinstance(argument, np.ndarray):
        return argument.dtype, argument.ndim, argument.flags.num
    return (type(argument), *map(_look, argument)) if isinstance(argument, tuple) else type(argument)


def _keep_in(folder: Path, compiled: Any) -> None:
    """Let numba cache a function in a folder, and everybody else's functions where they were cached before."""
    with _switching:
        usual = _config.CACHE_DIR
        _config.CACHE_DIR = str(folder)
        try:
            with suppress(RuntimeError):  # no source file to tell the state of: an archive, a frozen program
                compiled.enable_caching()
        finally:
            _config.CACHE_DIR = usual


def kernel(function: Function) -> Function:
    """Compile `function` on first use."""
    compiled: Any = Kernel(function)
    return compiled


def part(function: Function) -> Function:
    """Compile `function` for the kernels that call it: it cannot be called from elsewhere, which saves a wrapper."""
    return _inner(function, inline=False)


def inlined(function: Function) -> Function:
    """Compile `function` into the kernels that call it: for innermost loops, where a call would cost too much."""
    return _inner(function, inline=True)


def _inner(function: Function, inline: bool) -> Function:
    compiled: Any = _njit(function, forceinline=inline, no_cpython_wrapper=True)
    return compiled
