"""Shrink every change of an accepted point until no smaller one is accepted.

    start (the factual), Segment (to an accepted point)  ->  shrink_segment  ->  the same, nearer
    start, point  ->  shrink_features  ->  a point no farther in any feature

Every step moves features towards the factual and keeps what is accepted (the model gives the label to be reached, no
rule is broken and, where it is asked for, the neighbourhood is plausible), so L0, L1, L2 and Linf never grow. All lines
move together.
"""

from typing import NamedTuple

import numpy as np

from onbmacf._base.arrays import Matrix, Rows, take
from onbmacf._base.missing import between, gaps
from onbmacf._search.halving import NOT_ASKED, Bracket, halved
from onbmacf._search.pairs import places
from onbmacf._search.problem import Asking, Features, Snap
from onbmacf._search.reduce import FEW
from onbmacf._search.undo import changed_in_order, undone_alone

HALVINGS = 5  # of a change or a way: one part in 32 is as fine as it gets
FIRST_HALVINGS = 3  # of the way of every point in a pool: only then it shows which to tighten
SMALLEST = 3  # changes of a point that are taken back one by one
TURNS = 2  # changes of a point that are taken back in the end


class Segment(NamedTuple):
    """The way from the factual to a point of each line, and how far it has been halved: a bracket of parts of it."""

    goal: Matrix
    n_parts: Rows
    at: Bracket

    @classmethod
    def of(cls, point: Matrix, n_parts: int) -> "Segment":
        """Return the way to accepted points, not yet halved."""
        size = np.full(len(point), n_parts)
        return cls(point, size, Bracket(np.zeros_like(size), size, point))

    def gone_on(self, lines: Rows, point: Matrix, n_parts: int) -> "Segment":
        """Return the way of some lines, each part cut into so many; a way of its own where the point has moved off."""
        low, high, best = (column[lines] for column in self.at)
        fresh = Segment.of(point, n_parts)
        stays = (point == best).all(axis=1)
        return Segment(
            np.where(stays[:, np.newaxis], self.goal[lines], point),
            np.where(stays, self.n_parts[lines] * n_parts, fresh.n_parts),
            Bracket(np.where(stays, low * n_parts, 0), np.where(stays, high * n_parts, n_parts), point),
        )


def shrink_segment(start: Matrix, segment: Segment, asking: Asking, snap: Snap) -> Segment:
    """Halve the way from start to goal towards the nearest accepted point."""

    def part_of_the_way(lines: Rows, part: Rows) -> Matrix:
        return _on_the_way(start[lines], segment.goal[lines], part / segment.n_parts[lines], snap)

    return segment._replace(at=halved(start, segment.at, part_of_the_way, asking.holds, asking.places))


class Change(NamedTuple):
    """One line per change of a point: its line, its feature, and how far it could be taken back."""

    line: Rows
    feature: Rows
    part: Rows  # the lowest part of the change that was accepted: all of it, to begin with


def shrink_features(start: Matrix, point: Matrix, features: Features, asking: Asking, snap: Snap) -> Matrix:
    """Take single changes back: whole if that is accepted, else by halving; always the one that saves most.

    The changes of a point are halved side by side, each with the others as they are. One that gave nothing is not
    tried again when others have been taken back. The only change of a point is left alone: it is its segment. Of many
    changes, the smallest are looked at.
    """
    point = point.copy()
    order, n_changed = changed_in_order(start, point, features)
    order, n_changed = order[:, :SMALLEST], np.where(n_changed > 1, np.minimum(n_changed, SMALLEST), 0)
    line, rank = np.nonzero(np.arange(order.shape[1]) < n_changed[:, np.newaxis])
    open_changes = Change(line, order[line, rank], np.full(len(line), 2**HALVINGS))
    for _ in range(TURNS):
        part, shrunk = _shrink_each(start, point, open_changes, features, asking, snap)
        gain = gaps(point[open_changes.line], start[open_changes.line]).sum(axis=1)
        gain -= gaps(shrunk, start[open_changes.line]).sum(axis=1)
        best = np.flatnonzero((places(open_changes.line, -gain) == 0) & (part < 2**HALVINGS))
        point[open_changes.line[best]] = shrunk[best]
        stays = np.isin(open_changes.line, open_changes.line[best]) & (part < 2**HALVINGS)
        stays[best] = False
        open_changes = take(open_changes._replace(part=part), np.flatnonzero(stays))
    return point


def _shrink_each(
    start: Matrix, point: Matrix, changes: Change, features: Features, asking: Asking, snap: Snap
) -> tuple[Rows, Matrix]:
    """Take each change back alone, no further than it could be before; return the part left, and the points."""
    here, there = start[changes.line], point[changes.line]
    is_feature = features.of_column == changes.feature[:, np.newaxis]

    def part_of_the_change(lines: Rows, part: Rows) -> Matrix:
        moved = np.where(is_feature[lines], between(here[lines], there[lines], part / 2**HALVINGS), there[lines])
        return np.where(is_feature[lines], snap(moved, here[lines], there[lines]), there[lines])

    n_parts = np.full(len(there), 2**HALVINGS)
    refused = np.where(changes.part == n_parts, NOT_ASKED, changes.part - 1)  # -1 is NOT_ASKED, too
    asked = asking.among(changes.line)
    at = halved(here, Bracket(refused, n_parts, there), part_of_the_change, asked.holds, asked.places)
    return at.high, at.best


def ask_ahead(start: Matrix, point: Matrix, features: Features, asking: Asking, snap: Snap, halvings: int) -> None:
    """Ask about all places on the way, and each of them and the end with single changes undone.

    Undoing, shrinking, and undoing again asks about some of these.
    """
    if len(point) * (2**halvings - 1) > asking.places:
        return
    line = np.repeat(np.arange(len(point)), 2**halvings - 1)
    part = np.tile(np.arange(1, 2**halvings), len(point))
    stops = _on_the_way(start[line], point[line], part / 2**halvings, snap)
    after, stop = undone_alone(start[line], stops, features, FEW)
    before, own = undone_alone(start, point, features, FEW)
    asking.ahead(np.concatenate([stops, before, after]), np.concatenate([line, own, line[stop]]))


def _on_the_way(start: Matrix, point: Matrix, share: Matrix, snap: Snap) -> Matrix:
    return snap(between(start, point, share), start, point)
