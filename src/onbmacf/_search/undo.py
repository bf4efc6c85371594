"""Undo whole changes of an accepted point while it stays accepted.

    start (the factual), point (accepted)  ->  undo_changes  ->  a point of which no single change can be undone

One change after the other is put back to the factual's value, smallest first, and stays there if the point is still
accepted; around again, until all that are left have been refused since the last one was accepted. With few lines, the
questions that probably follow are asked together (docs/decisions/0047-asking-ahead.md); the answers are the same.
"""

from bisect import bisect_left
from itertools import count
from typing import NamedTuple

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows, take
from onbmacf._base.missing import gaps
from onbmacf._search.problem import Asking, Features

LARGEST = float(np.finfo(np.float64).max)  # a change is never sorted among those that are none, however far it is


class Undoing(NamedTuple):
    """Where each line stands. Columns are its changed features, in the order in which they are tried."""

    is_kept: Mask
    is_refused: Mask  # since a change was last undone
    at: Rows  # where to go on

    def next(self) -> tuple[Rows, Mask]:
        """Return the change that each line tries to undo next, and whether there is one to try."""
        n_ranks = self.is_kept.shape[1]
        is_due = self.is_kept & ~self.is_refused
        turn = np.where(is_due, (np.arange(n_ranks) - self.at[:, np.newaxis]) % n_ranks, n_ranks)
        return turn.argmin(axis=1), is_due.any(axis=1) & (self.is_kept.sum(axis=1) > 1)

    def after(self, rank: Rows, is_asked: Mask, is_hit: Mask) -> "Undoing":
        """Return where each line stands after it was told whether the change may go."""
        here = (np.arange(self.is_kept.shape[1]) == rank[:, np.newaxis]) & is_asked[:, np.newaxis]
        goes = (is_hit & is_asked)[:, np.newaxis]
        return Undoing(self.is_kept & ~(here & goes), (self.is_refused | here) & ~goes, rank + is_asked)


def undo_changes(start: Matrix, point: Matrix, features: Features, asking: Asking) -> Matrix:
    """Undo whole changes until undoing any single one is refused."""
    order, n_changed = changed_in_order(start, point, features)
    if n_changed.max(initial=0) < 2:
        return point
    is_likely = _likely(start, point, order, n_changed, features, asking)
    is_kept = np.arange(order.shape[1]) < n_changed[:, np.newaxis]
    state = Undoing(is_kept, np.zeros_like(is_kept), np.zeros(len(point), dtype=np.intp))
    for n_asked in count():
        if not len(lines := np.flatnonzero(state.next()[1])):
            break
        if asking.spare or (n_asked and asking.places):  # then some answers were not the likely ones
            some = lines if n_asked else lines[is_likely[lines].any(axis=1) & (n_changed[lines] > 2)]
            asking.ahead(*_sets(start, point, order, features, some, state.is_kept[some], asking.places))
        path = Path.of(take(state, lines), is_likely[lines], max(1, asking.places // len(lines)))
        turn, own = np.nonzero(path.rank.T >= 0)
        trial = path.is_kept[own, turn]
        trial[np.arange(len(own)), path.rank[own, turn]] = False
        is_hit = np.zeros(path.rank.shape, dtype=bool)
        is_hit[own, turn] = asking.holds(keeping(start, point, order, features, lines[own], trial), lines[own])
        for column, new in zip(state, path.walked(is_hit), strict=True):
            column[lines] = new
    return keeping(start, point, order, features, np.arange(len(point)), state.is_kept)


class Path(NamedTuple):
    """The next questions of each line if each answer is the likely one."""

    start: Undoing
    rank: Rows  # lines x turns: the change that each asks to undo; -1 where it asks nothing more
    is_likely: Mask  # lines x turns: the answer on which the rest of the path depends
    is_kept: Mask  # lines x turns x ranks: the changes that are left before the question

    @classmethod
    def of(cls, start: Undoing, is_likely: Mask, length: int) -> "Path":
        """Return the path of each line, up to so many questions; at least one."""
        find = ranks_of_lines if length > len(start.at) else ranks_in_turn
        rank = find(start, is_likely, length)
        goes = is_likely[np.arange(len(rank))[:, np.newaxis], rank] & (rank >= 0)
        is_gone = np.zeros((*rank.shape, is_likely.shape[1]), dtype=bool)
        line, turn = np.nonzero(goes[:, :-1])
        is_gone[line, turn + 1, rank[line, turn]] = True
        is_kept = start.is_kept[:, np.newaxis] & ~np.logical_or.accumulate(is_gone, axis=1)
        return cls(start, rank, goes, is_kept)

    def walked(self, is_hit: Mask) -> Undoing:
        """Follow each line to the first answer that is not the likely one, or to the end of its path."""
        lines, turns = np.arange(len(self.rank)), np.arange(self.rank.shape[1])
        differs = (self.rank >= 0) & (is_hit != self.is_likely)
        last = np.where(differs.any(axis=1), differs.argmax(axis=1), (self.rank >= 0).sum(axis=1) - 1)
        before = turns < last[:, np.newaxis]
        latest_hit = np.where(before & self.is_likely, turns, -1).max(axis=1)
        is_refused = self.start.is_refused & (latest_hit < 0)[:, np.newaxis]
        line, turn = np.nonzero(before & (turns > latest_hit[:, np.newaxis]))
        is_refused[line, self.rank[line, turn]] = True
        end = self.rank[lines, last]
        here = Undoing(self.is_kept[lines, last], is_refused, end)
        return here.after(end, np.ones(len(lines), dtype=bool), is_hit[lines, last])


def ranks_in_turn(state: Undoing, is_likely: Mask, length: int) -> Rows:
    """Return which changes each line asks to undo, all lines together, one turn after the other: for many lines."""
    ranks: list[Rows] = []
    lines = np.arange(len(state.at))
    while len(ranks) < length:
        rank, is_asked = state.next()
        if not is_asked.any():
            break
        ranks.append(np.where(is_asked, rank, -1))
        state = state.after(rank, is_asked, is_likely[lines, rank])
    return np.array(ranks).T


def ranks_of_lines(state: Undoing, is_likely: Mask, length: int) -> Rows:
    """Return the same line by line: for few lines with long paths."""
    kept = [np.flatnonzero(own).tolist() for own in state.is_kept]
    every = zip(kept, state.is_refused.tolist(), state.at.tolist(), is_likely.tolist(), strict=True)
    ranks = [_ranks(*own, length) for own in every]
    table = np.full((len(ranks), max(map(len, ranks))), -1)
    for line, own in enumerate(ranks):
        table[line, : len(own)] = own
    return table


def _ranks(kept: list[int], is_refused: list[bool], at: int, is_likely: list[bool], length: int) -> list[int]:
    """Return which changes one line asks to undo, from rank `at` on and around."""
    ranks: list[int] = []
    while len(ranks) < length and len(kept) > 1:
        first = bisect_left(kept, at)
        for rank in kept[first:] + kept[:first]:
            if is_refused[rank]:
                continue
            ranks.append(rank)
            is_refused[rank] = True
            if is_likely[rank]:
                kept.remove(rank)
                is_refused, at = [False] * len(is_refused), rank + 1
                break
        else:
            break
    return ranks[:length]


def _likely(start: Matrix, point: Matrix, order: Rows, n_changed: Rows, features: Features, asking: Asking) -> Mask:
    """Say which changes can probably be undone: those that can be undone alone. Not asked if there is no room."""
    is_likely = np.zeros(order.shape, dtype=bool)
    points, line, rank = _alone(start, point, order, n_changed, features)
    if not 0 < len(points) <= asking.places:
        return is_likely
    is_likely[line, rank] = asking.holds(points, line)
    return is_likely


def _sets(
    start: Matrix, point: Matrix, order: Rows, features: Features, lines: Rows, is_kept: Mask, places: int
) -> tuple[Matrix, Rows]:
    """Return lines with every set of the changes that are left, if there is room for all, and the line of each."""
    sizes = 2 ** np.minimum(is_kept.sum(axis=1), 30)
    if sizes.sum() > places:
        return start[:0], lines[:0]
    own, number = _numbered(sizes)
    rank = np.maximum(np.cumsum(is_kept, axis=1) - 1, 0)[own]  # the bit of each change that is left
    chosen = is_kept[own] & ((number[:, np.newaxis] >> rank) & 1 == 1)
    some = np.flatnonzero(chosen.any(axis=1))
    return keeping(start, point, order, features, lines[own[some]], chosen[some]), lines[own[some]]


def undone_alone(start: Matrix, point: Matrix, features: Features, most: int) -> tuple[Matrix, Rows]:
    """Return each point of at most so many changes with single ones undone, and the line of each."""
    order, n_changed = changed_in_order(start, point, features)
    return _alone(start, point, order, np.where(n_changed > most, 0, n_changed), features)[:2]


def undone_together(start: Matrix, point: Matrix, features: Features, most: int) -> tuple[Matrix, Rows]:
    """Return each point of three to so many changes with every set of them undone, and the line of each."""
    order, n_changed = changed_in_order(start, point, features)
    lines = np.flatnonzero((n_changed > 2) & (n_changed <= most))
    is_kept = np.arange(order.shape[1]) < n_changed[lines, np.newaxis]
    return _sets(start, point, order, features, lines, is_kept, len(lines) << most)


def changed_in_order(
    start: Matrix, point: Matrix, features: Features, largest_first: Mask | None = None
) -> tuple[Rows, Rows]:
    """Return per line its changed features by the size of their change, and how many there are.

    The table is as wide as the line with the most changes; ties go by column order.
    """
    difference = np.add.reduceat(gaps(point, start), features.starts, axis=1)
    is_changed = np.logical_or.reduceat(point != start, features.starts, axis=1)
    key = difference if largest_first is None else np.where(largest_first[:, np.newaxis], -difference, difference)
    n_changed = is_changed.sum(axis=1)
    order = np.argsort(np.where(is_changed, np.minimum(key, LARGEST), np.inf), axis=1, kind="stable")
    return order[:, : n_changed.max(initial=0)], n_changed


def keeping(start: Matrix, point: Matrix, order: Rows, features: Features, line: Rows, is_kept: Mask) -> Matrix:
    """Return lines with only some of their changes kept."""
    keeps = np.zeros((len(line), len(features.starts)), dtype=bool)
    first = len(features.starts) * np.arange(len(line))  # one number per place is used sooner than two
    keeps.reshape(-1)[first[:, np.newaxis] + order[line]] = is_kept
    is_spread = len(features.of_column) > len(features.starts)  # one column per feature is the usual case
    return np.where(keeps[:, features.of_column] if is_spread else keeps, point[line], start[line])


def _alone(start: Matrix, point: Matrix, order: Rows, n_changed: Rows, features: Features) -> tuple[Matrix, Rows, Rows]:
    line, rank = _numbered(np.where(n_changed > 1, n_changed, 0))
    is_kept = rank[:, np.newaxis] != np.arange(order.shape[1])
    return keeping(start, point, order, features, line, is_kept), line, rank


def _numbered(sizes: Rows) -> tuple[Rows, Rows]:
    """Return each line as often as its size says, and the numbers 0, 1, ... beside each."""
    line = np.repeat(np.arange(len(sizes)), sizes)
    return line, np.arange(len(line)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
