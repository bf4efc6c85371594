"""Asking about many rows in calls of limited size; rows on which the model raises are found, and the rest is kept.

    ask (some rows -> a line per row), rows  ->  in_calls  ->  lines, and the error of each row that raised

A call that raises is halved until each row that raises is alone. There is no limit to this: which rows fail must not
depend on which others are in the call.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onbmacf._base.arrays import Matrix, Rows
from onbmacf.errors import ModelError

Ask = Callable[[Matrix], NDArray[Any]]  # rows as numbers -> a label or a line of probabilities for each


def in_calls(ask: Ask, N: Matrix, largest: int) -> list[tuple[Rows, Any]]:
    """Return what the model says, in pieces: the rows of each, and its lines or the error that its only row raised."""
    pieces: list[tuple[Rows, Any]] = []
    for start in range(0, len(N), largest):
        own = np.arange(start, min(start + largest, len(N)))
        pieces += _kept(ask, N, own)
    return pieces


def _kept(ask: Ask, N: Matrix, lines: Rows) -> Iterator[tuple[Rows, Any]]:
    """Yield the lines of a call; where it raises, those of its halves."""
    try:
        answer: Any = ask(N[lines])
    except ModelError:
        raise
    except Exception as error:
        answer = error
    if not isinstance(answer, Exception) or len(lines) == 1:
        yield lines, answer
        return
    for half in np.array_split(lines, 2):
        yield from _kept(ask, N, half)
