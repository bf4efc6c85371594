"""Halving many lines together, some halvings ahead: the answers are those of one question after the other.

    low (refused), high (accepted), trial(line, step)  ->  halved  ->  per line the point of the lowest step accepted

Where a line stands after k halvings depends on k answers, and there are only 2**k - 1 questions it could have asked on
its way. A call of a model costs about the same for one row as for some hundred, so for few lines all of them are asked
at once; for many lines, one halving at a time.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows

Accepts = Callable[[Matrix, Rows], Mask]  # points, lines -> which of them hold
Trial = Callable[[Rows, Rows], Matrix]  # lines, steps -> points
Also = tuple[Matrix, Rows]  # points and their lines
NOT_ASKED = -1  # as the low end: step 0 itself is the first question


class Level(NamedTuple):
    """The intervals that each line may stand at after some halvings: one row per line, one column per interval."""

    low: Rows
    high: Rows

    @property
    def middle(self) -> Rows:
        """The step each interval asks about next."""
        return np.where(self.low == NOT_ASKED, 0, (self.low + self.high) // 2)

    @property
    def is_open(self) -> Mask:
        """Which intervals have a step between their ends."""
        return self.high - self.low > 1

    def next(self) -> "Level":
        """Return the intervals after one more answer: those after a yes first, then those after a no."""
        middle = np.where(self.is_open, self.middle, self.high)
        return Level(np.hstack([self.low, middle]), np.hstack([middle, self.high]))


class Bracket(NamedTuple):
    """Where each line stands: a refused step, an accepted one, and the point of the accepted one."""

    low: Rows
    high: Rows
    best: Matrix


def halved(start: Matrix, at: Bracket, trial: Trial, accepts: Accepts, places: int) -> Bracket:
    """Return where each line stands when there is nothing left to halve."""
    at = Bracket(at.low.copy(), at.high.copy(), at.best.copy())
    while len(lines := np.flatnonzero(at.high - at.low > 1)):
        narrow(at, lines, start, trial, accepts, places)
    return at


def narrow(
    at: Bracket, lines: Rows, start: Matrix, trial: Trial, accepts: Accepts, places: int, also: Also | None = None
) -> None:
    """Ask once for these lines, and write down where they stand then; `also` is asked in the same breath.

    A trial equal to the accepted point holds and one equal to the start does not: neither is asked about.
    """
    levels, nodes, line, step = _questions(at.low[lines], at.high[lines], places)
    line = lines[line]
    points = trial(line, step)
    hit = _held(points, at.best[line], start[line], line, accepts, also)
    at.low[lines], at.high[lines], taken = _walked(levels, nodes, hit)
    moved = taken >= 0
    at.best[lines[moved]] = points[taken[moved]]


def questions(low: Rows, high: Rows, places: int) -> tuple[Rows, Rows]:
    """Return the lines and steps that the next halvings may ask about, as many as there is room for."""
    return _questions(low, high, places)[2:]


def _questions(low: Rows, high: Rows, places: int) -> tuple[list[Level], list[tuple[Rows, ...]], Rows, Rows]:
    levels = _levels(Level(low[:, np.newaxis], high[:, np.newaxis]), places)
    nodes = [np.nonzero(level.is_open) for level in levels]
    line = np.concatenate([node[0] for node in nodes])
    return levels, nodes, line, np.concatenate([level.middle[node] for level, node in zip(levels, nodes, strict=True)])


def _levels(first: Level, places: int) -> list[Level]:
    """Return the next halvings, as many as have room for all their questions, and at least one."""
    levels, n_questions = [first], len(first.low)
    while True:
        level = levels[-1].next()
        n_open = int(level.is_open.sum())
        n_questions += n_open
        if not n_open or n_questions > places:
            return levels
        levels.append(level)


def _walked(levels: list[Level], nodes: list[tuple[Rows, ...]], hit: Mask) -> tuple[Rows, Rows, Rows]:
    """Follow the answers down the levels: the interval where each line ends, and its last accepted question or -1."""
    lines = np.arange(len(levels[0].low))
    at, taken, asked = np.zeros(len(lines), dtype=np.intp), np.full(len(lines), -1), 0
    for level, node in zip(levels, nodes, strict=True):
        question = np.full(level.low.shape, -1)
        question[node] = asked + np.arange(len(node[0]))
        asked += len(node[0])
        own = question[lines, at]
        is_yes = (own < 0) | hit[own]  # an interval that is closed stays as it is
        taken = np.where((own >= 0) & is_yes, own, taken)
        at = np.where(is_yes, at, at + level.low.shape[1])
    last = levels[-1].next()
    return last.low[lines, at], last.high[lines, at], taken


def _held(points: Matrix, best: Matrix, start: Matrix, line: Rows, accepts: Accepts, also: Also | None) -> Mask:
    hit = (points == best).all(axis=1)
    is_new = ~hit & (points != start).any(axis=1)
    n_new, asked, lines = int(is_new.sum()), points[is_new], line[is_new]
    if also is not None:
        asked, lines = np.concatenate([asked, also[0]]), np.concatenate([lines, also[1]])
    hit[is_new] = accepts(asked, lines)[:n_new]
    return hit
