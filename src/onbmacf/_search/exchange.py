"""Give one change up, in whole or in half, and move another feature instead: nearer wherever the other costs less.

    start (the factual), point (accepted)  ->  exchanged  ->  an accepted point that is no farther, or has fewer changes

Shrinking ends where no single change can be smaller. A point that is nearer still moves other features, or the same
ones by other amounts (docs/decisions/0053-nearer-still.md). What a line gains is halved over all of its exchanges
together: as soon as one holds at some gain, those that do not are out. All lines move together. Where another change
takes the place of one, the point has fewer and may be a little farther (0099-fewer-changes.md).
"""

from typing import NamedTuple

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows, stack, take
from onbmacf._base.missing import between, gaps, is_missing
from onbmacf._search.problem import Asking, Features, Snap

PARTS = 32  # of the largest change of a point: gains are compared in such parts
FEWER = 0.04  # of its distance: by so much a point may be farther for one change less
KEPT = (0.0, 0.5)  # what stays of the change that is given up
AHEAD = ((1, 8, 16, 24), (1, 16), (1,))  # parts that are asked about first, where there is room for all exchanges
Also = tuple[Matrix, Rows, int]
Ends = tuple[Matrix, Matrix]  # the lowest and the highest fitted value of each column


class Trades(NamedTuple):
    """One line per exchange: a point with one change given up, and the column that moves instead."""

    line: Rows
    base: Matrix
    column: Rows
    way: Rows  # 1 up, -1 down
    saved: Matrix  # distance that giving up the change saves, and what a change less is worth
    room: Matrix  # how far the column may move that way


class Gains(NamedTuple):
    """Where each line stands: parts of its largest change that an exchange has gained, and parts that none can."""

    reached: Rows
    refused: Rows
    part: Rows  # the part that is asked about next

    def after(self, is_asked: Mask, is_hit: Mask) -> "Gains":
        """Return where each line stands after its question."""
        reached = np.where(is_asked & is_hit, self.part, self.reached)
        refused = np.where(is_asked & ~is_hit, self.part, self.refused)
        return Gains(reached, refused, (reached + refused) // 2)

    @property
    def is_open(self) -> Mask:
        """Which lines have something left to ask; none does whose first question was refused."""
        return (self.refused - self.reached > 1) & (self.reached > 0)


def exchanged(
    start: Matrix, point: Matrix, ends: Ends, features: Features, asking: Asking, snap: Snap, also: Also | None = None
) -> Matrix:
    """Return per line the nearest accepted point that one exchange leads to, or the point as it is.

    `also` is asked ahead with the first questions, where there is room for both: points, their lines, and how many of
    them may be returned.
    """
    if asking.is_late():  # a wide table has millions of exchanges: they are not even made
        return point
    trades, best = _trades(start, point, ends, features, snap), point.copy()
    every, none = np.arange(len(point)), np.zeros(len(point), dtype=np.intp)
    at, unit = Gains(none, none + PARTS, none + 1), _units(start, trades)
    asked, own = _first_questions(start, trades, snap, asking.places)
    if also is None or not asking.ahead(np.concatenate([asked, also[0]]), np.concatenate([own, also[1]]), also[2]):
        asking.ahead(asked, own)
    while len(trades.line) and not asking.is_late():
        _ask_rest(start, trades, at, unit, asking, snap)
        trial, due = _moved(start, trades, (at.part * unit)[trades.line], snap)
        hit = due[asking.holds(trial[due], trades.line[due])]
        own, first = np.unique(trades.line[hit], return_index=True)
        best[own] = trial[hit[first]]
        is_hit = np.isin(every, own)
        at = at.after(np.isin(every, trades.line), is_hit)
        stays = np.isin(np.arange(len(trial)), hit) | ~is_hit[trades.line]
        trades = take(trades, np.flatnonzero(stays & at.is_open[trades.line]))
    return best


def _trades(start: Matrix, point: Matrix, ends: Ends, features: Features, snap: Snap) -> Trades:
    """Return all exchanges: every change, whole and in half, for every other number that may change, up and down."""
    is_number = np.bincount(features.of_column) == 1
    is_changed = np.logical_or.reduceat(point != start, features.starts, axis=1)
    parts = []
    for kept in KEPT:
        line, feature = np.nonzero(is_changed & (is_number | (kept == 0.0)))
        is_own = features.of_column == feature[:, np.newaxis]
        z, whole = start[line], point[line]
        less = np.where(is_own, between(z, whole, np.full(len(z), kept)), whole)
        less = np.where(is_own, snap(less, z, whole), whole)
        may_move = (is_number & ~features.is_immutable)[features.of_column] & ~is_own & ~is_missing(z)
        worth = (FEWER if kept == 0.0 else 0.0) * gaps(whole, z).sum(axis=1)
        parts += [_moves(line, z, whole, less, may_move, way, ends, worth) for way in (1, -1)]
    every = stack(parts)
    return take(every, np.argsort(every.line, kind="stable"))


def _units(start: Matrix, trades: Trades) -> Matrix:
    """Return per line one part of the most that giving up a change saves."""
    unit = np.zeros(len(start))
    np.maximum.at(unit, trades.line, trades.saved / PARTS)
    return unit


def _moves(
    line: Rows, z: Matrix, whole: Matrix, less: Matrix, may_move: Mask, way: int, ends: Ends, worth: Matrix
) -> Trades:
    """Return the moves of single columns away from the factual, within the fitted range.

    `worth` is what a change less is worth, per line: that of a column which has moved already.
    """
    saved = gaps(whole, z).sum(axis=1) - gaps(less, z).sum(axis=1)
    at, column = np.nonzero(may_move & (way * (less - z) >= 0) & (saved > 0)[:, np.newaxis])
    value = less[at, column]
    room = ends[1][column] - value if way > 0 else value - ends[0][column]
    saved = saved[at] + np.where(value != z[at, column], worth[at], 0.0)
    moves = Trades(line[at], less[at], column, np.full(len(at), way), saved, room)
    return take(moves, np.flatnonzero(room > 0))


def _moved(start: Matrix, trades: Trades, gain: Matrix, snap: Snap) -> tuple[Matrix, Rows]:
    """Return the point of each exchange that gains so much, and the places of those that are points of their own."""
    by = np.clip(trades.saved - gain, 0.0, trades.room)
    trial, z = trades.base.copy(), start[trades.line]
    trial[np.arange(len(trial)), trades.column] += trades.way * by
    trial = snap(trial, z, trial)
    is_nearer = gaps(trial, z).sum(axis=1) < gaps(trades.base, z).sum(axis=1) + trades.saved
    return trial, np.flatnonzero(is_nearer & (trial != trades.base).any(axis=1))


def first_questions(
    start: Matrix, point: Matrix, ends: Ends, features: Features, snap: Snap, places: int
) -> tuple[Matrix, Rows]:
    """Return the points that `exchanged` asks about first, as many as fit, and the line of each."""
    return _first_questions(start, _trades(start, point, ends, features, snap), snap, places)


def _first_questions(start: Matrix, trades: Trades, snap: Snap, places: int) -> tuple[Matrix, Rows]:
    """Return all exchanges at the gains that come first, for as many gains as there is room."""
    parts = np.array(next((own for own in AHEAD if len(trades.line) * len(own) <= places), ()), dtype=np.intp)
    lines, part = np.tile(np.arange(len(trades.line)), len(parts)), np.repeat(parts, len(trades.line))
    every = take(trades, lines)
    trial, due = _moved(start, every, part * _units(start, trades)[every.line], snap)
    return trial[due], every.line[due]


def _ask_rest(start: Matrix, trades: Trades, at: Gains, unit: Matrix, asking: Asking, snap: Snap) -> None:
    """Ask about the exchanges that are left at all gains that are, if there is room."""
    sizes = (at.refused - at.reached - 1)[trades.line]
    if (at.reached[trades.line] == 0).any() or sizes.sum() > asking.places:
        return
    lines = np.repeat(np.arange(len(sizes)), sizes)
    part = np.arange(len(lines)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + at.reached[trades.line[lines]] + 1
    _ask(start, take(trades, lines), part * unit[trades.line[lines]], asking, snap)


def _ask(start: Matrix, trades: Trades, gain: Matrix, asking: Asking, snap: Snap) -> None:
    trial, due = _moved(start, trades, gain, snap)
    asking.ahead(trial[due], trades.line[due])
