"""Asking about many rows in calls of limited size; rows on which the model raises are found, and the rest is kept.

    ask (some rows -> a line per row), rows  ->  in_calls  ->  lines, and the error of each row that raised

A call that raises is halved until each row that raises is alone. For the rows of a caller there is no limit to this:
none is lost for the sake of another. Of the many points of a search, a model that raises on most would be asked one by
one for minutes: after some retries the rest of a failing call counts as raised
(docs/decisions/0057-one-gateway-to-the-model.md).
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onbmacf._base.arrays import Matrix, Rows
from onbmacf.errors import ModelError

Ask = Callable[[Matrix], NDArray[Any]]  # rows as numbers -> a label or a line of probabilities for each
SOME = 64  # retries per failing call of a search
ENDLESS = 1 << 62  # retries for the rows of a caller


def in_calls(ask: Ask, N: Matrix, largest: int, retries: int = SOME) -> list[tuple[Rows, Any]]:
    """Return what the model says, in pieces: the rows of each, and their lines or the error that they raised."""
    pieces: list[tuple[Rows, Any]] = []
    for start in range(0, len(N), largest):
        own = np.arange(start, min(start + largest, len(N)))
        pieces += _kept(ask, N, own, [retries])
    return pieces


def _kept(ask: Ask, N: Matrix, lines: Rows, left: list[int]) -> Iterator[tuple[Rows, Any]]:
    """Yield the lines of a call; where it raises, those of its halves while retries are left."""
    try:
        answer: Any = ask(N[lines])
    except ModelError:
        raise
    except Exception as error:
        answer = error
    if not isinstance(answer, Exception) or len(lines) == 1 or left[0] < 2:
        yield lines, answer
        return
    left[0] -= 2
    for half in np.array_split(lines, 2):
        yield from _kept(ask, N, half, left)
