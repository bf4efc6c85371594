"""Undo whole changes of an accepted point while it stays accepted.

    start (the factual), point (accepted)  ->  undo_changes  ->  a point of which no single change can be undone

One change after the other is put back to the factual's value, smallest first, and stays there if the point is still
accepted; around again, until all that are left have been refused since the last one was accepted. With few lines, the
questions that probably follow are asked together (docs/decisions/0047-asking-ahead.md); the answers are the same.
"""

from typing import NamedTuple

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows, take
from onbmacf._search.problem import Asking, Features


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
    while len(lines := np.flatnonzero(state.next()[1])):
        length = max(1, asking.places // len(lines))
        steps = _path(take(state, lines), is_likely[lines], length)
        is_hit = np.zeros((len(steps), len(lines)), dtype=bool)
        turn, own = np.nonzero([step.is_asked for step in steps])
        trial = np.array([step.trial for step in steps])[turn, own]
        is_hit[turn, own] = asking.holds(keeping(start, point, order, features, lines[own], trial), lines[own])
        for column, new in zip(state, _walked(steps, is_hit), strict=True):
            column[lines] = new
    return keeping(start, point, order, features, np.arange(len(point)), state.is_kept)


class Step(NamedTuple):
    """One question of each line on the path that it probably takes."""

    before: Undoing
    rank: Rows
    is_asked: Mask
    is_likely: Mask  # the answer on which the rest of the path depends

    @property
    def trial(self) -> Mask:
        """The changes that are kept in the question."""
        return self.before.is_kept & (np.arange(self.before.is_kept.shape[1]) != self.rank[:, np.newaxis])


def _path(state: Undoing, is_likely: Mask, length: int) -> list[Step]:
    """Return the next questions of each line if each answer is the likely one; at least one."""
    steps: list[Step] = []
    lines = np.arange(len(state.at))
    while len(steps) < length:
        rank, is_asked = state.next()
        if not is_asked.any():
            break
        steps.append(Step(state, rank, is_asked, is_likely[lines, rank]))
        state = state.after(rank, is_asked, is_likely[lines, rank])
    return steps


def _walked(steps: list[Step], is_hit: Mask) -> Undoing:
    """Follow each line's path to the first answer that is not the likely one, or to its end."""
    differs = np.array([step.is_asked & (hit != step.is_likely) for step, hit in zip(steps, is_hit, strict=True)])
    last = np.where(differs.any(axis=0), differs.argmax(axis=0), len(steps) - 1)
    ends = [step.before.after(step.rank, step.is_asked, hit) for step, hit in zip(steps, is_hit, strict=True)]
    lines = np.arange(len(last))
    return Undoing(*(np.array(column)[last, lines] for column in zip(*ends, strict=True)))


def _likely(start: Matrix, point: Matrix, order: Rows, n_changed: Rows, features: Features, asking: Asking) -> Mask:
    """Say which changes can probably be undone: those that can be undone alone. Not asked if there is no room."""
    is_likely = np.zeros(order.shape, dtype=bool)
    points, line, rank = _alone(start, point, order, n_changed, features)
    if not 0 < len(points) <= asking.places:
        return is_likely
    is_likely[line, rank] = asking.holds(points, line)
    return is_likely


def undone(start: Matrix, point: Matrix, features: Features) -> tuple[Matrix, Rows]:
    """Return each point, of few changes, with every set of its changes undone but all; also the line of each."""
    order, n_changed = changed_in_order(start, point, features)
    line, at = _numbered(np.maximum(0, 2**n_changed - 2))
    is_kept = ((at + 1)[:, np.newaxis] >> np.arange(order.shape[1])) & 1 == 1
    return keeping(start, point, order, features, line, is_kept), line


def undone_alone(start: Matrix, point: Matrix, features: Features, most: int) -> tuple[Matrix, Rows]:
    """Return each point of at most so many changes with single ones undone, and the line of each."""
    order, n_changed = changed_in_order(start, point, features)
    return _alone(start, point, order, np.where(n_changed > most, 0, n_changed), features)[:2]


def changed_in_order(
    start: Matrix, point: Matrix, features: Features, largest_first: Mask | None = None
) -> tuple[Rows, Rows]:
    """Return per line its changed features by the size of their change, and how many there are.

    The table is as wide as the line with the most changes; ties go by column order.
    """
    difference = np.add.reduceat(np.abs(point - start), features.starts, axis=1)
    is_changed = np.logical_or.reduceat(point != start, features.starts, axis=1)
    key = difference if largest_first is None else np.where(largest_first[:, np.newaxis], -difference, difference)
    n_changed = is_changed.sum(axis=1)
    order = np.argsort(np.where(is_changed, key, np.inf), axis=1, kind="stable")
    return order[:, : n_changed.max(initial=0)], n_changed


def keeping(start: Matrix, point: Matrix, order: Rows, features: Features, line: Rows, is_kept: Mask) -> Matrix:
    """Return lines with only some of their changes kept."""
    keeps = np.zeros((len(line), len(features.starts)), dtype=bool)
    keeps[np.arange(len(line))[:, np.newaxis], order[line]] = is_kept
    return np.where(keeps[:, features.of_column], point[line], start[line])


def _alone(start: Matrix, point: Matrix, order: Rows, n_changed: Rows, features: Features) -> tuple[Matrix, Rows, Rows]:
    line, rank = _numbered(np.where(n_changed > 1, n_changed, 0))
    is_kept = rank[:, np.newaxis] != np.arange(order.shape[1])
    return keeping(start, point, order, features, line, is_kept), line, rank


def _numbered(sizes: Rows) -> tuple[Rows, Rows]:
    """Return each line as often as its size says, and the numbers 0, 1, ... beside each."""
    line = np.repeat(np.arange(len(sizes)), sizes)
    return line, np.arange(len(line)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
