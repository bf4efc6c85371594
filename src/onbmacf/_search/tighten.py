"""Shrink every change of an accepted point until no smaller one is accepted.

    start (the factual), Segment (to an accepted point)  ->  shrink_segment  ->  the same, nearer
    start, Segment  ->  shrink_changes  ->  a point no farther in any feature

Every step moves features towards the factual and keeps what is accepted (the model gives the label to be reached, no
rule is broken and, where it is asked for, the neighbourhood is plausible), so L0, L1, L2 and Linf never grow. All lines
move together.
"""

from typing import NamedTuple

import numpy as np

from onbmacf._base.arrays import Matrix, Rows, take
from onbmacf._base.missing import between, gaps
from onbmacf._search.cut_plans import FEW
from onbmacf._search.halving import NOT_ASKED, Also, Bracket, Trial, halved, questions
from onbmacf._search.pairs import places
from onbmacf._search.problem import Asking, Features, Snap
from onbmacf._search.undo import changed_in_order, undone_alone, undone_together

HALVINGS = 5  # of a change or a way: one part in 32 is as fine as it gets
FIRST_HALVINGS = 3  # of the way of every point in a pool: only then it shows which to tighten
SMALLEST = 3  # changes of a point that are taken back one by one
ONLY = -1  # in place of a feature: the only change of a point
TURNS = 2  # changes of a point that are taken back in the end


class Segment(NamedTuple):
    """The way from the factual to a point of each line, and how far it has been halved: a bracket of parts of it."""

    goal: Matrix
    n_parts: Rows
    at: Bracket

    @classmethod
    def of(cls, point: Matrix, n_parts: int | Rows) -> "Segment":
        """Return the way to accepted points, not yet halved."""
        size = np.full(len(point), n_parts)
        return cls(point, size, Bracket(np.zeros_like(size), size, point))

    def gone_on(self, lines: Rows, point: Matrix, n_parts: int | Rows) -> "Segment":
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


def rest_of_the_way(start: Matrix, way: Segment, snap: Snap, places: int) -> Also:
    """Return the places that halving a way may still ask about, as many as fit, and the line of each."""
    line, part = questions(way.at.low, way.at.high, places)
    return _on_the_way(start[line], way.goal[line], part / way.n_parts[line], snap), line


class Change(NamedTuple):
    """One line per change of a point: its line, its feature, and a bracket of parts of it to be halved."""

    line: Rows
    feature: Rows  # ONLY for the only change of a point: then parts are those of its way
    n_parts: Rows
    low: Rows  # refused
    high: Rows  # accepted: where the point stands


def shrink_changes(start: Matrix, way: Segment, features: Features, asking: Asking, snap: Snap) -> Matrix:
    """Take single changes back: whole if that is accepted, else by halving; always the one that saves most.

    The changes of a point are halved side by side, each with the others as they are. One that gave nothing is not
    tried again when others have been taken back. The only change of a point goes on where its way was halved last
    (docs/decisions/0054-fewer-rounds.md); several ones on such a way go on together first. Of many changes, the
    smallest are looked at.
    """
    way = _gone_on_together(start, way, features, asking, snap)
    point, changes = way.at.best.copy(), _first_changes(start, way, features)
    for _ in range(TURNS):
        part, shrunk = _shrink_each(start, point, way.goal, changes, features, asking, snap)
        gain = gaps(point[changes.line], start[changes.line]).sum(axis=1)
        gain -= gaps(shrunk, start[changes.line]).sum(axis=1)
        is_shrunk = part < changes.high
        best = np.flatnonzero((places(changes.line, -gain) == 0) & is_shrunk)
        point[changes.line[best]] = shrunk[best]
        stays = np.isin(changes.line, changes.line[best]) & is_shrunk
        stays[best] = False
        changes = take(changes._replace(low=part - 1), np.flatnonzero(stays))  # 0 - 1 is NOT_ASKED
    return point


def _gone_on_together(start: Matrix, way: Segment, features: Features, asking: Asking, snap: Snap) -> Segment:
    """Halve the ways further on which a point of several changes still stands."""
    is_several = changed_in_order(start, way.at.best, features)[1] > 1
    lines = np.flatnonzero(is_several & (way.n_parts > 2**HALVINGS))
    some = Segment(way.goal[lines], way.n_parts[lines], take(way.at, lines))
    some = shrink_segment(start[lines], some, asking.among(lines), snap)
    at = take(way.at, np.arange(len(start)))
    at.low[lines], at.high[lines], at.best[lines] = some.at
    return way._replace(at=at)


def _first_changes(start: Matrix, way: Segment, features: Features) -> Change:
    """Return the changes that are taken back, smallest first, none of them asked about yet."""
    order, n_changed = changed_in_order(start, way.at.best, features)
    line, rank = np.nonzero(np.arange(order.shape[1]) < np.minimum(n_changed, SMALLEST)[:, np.newaxis])
    is_only, n_parts = n_changed[line] == 1, 2**HALVINGS
    return Change(
        line,
        np.where(is_only, ONLY, order[line, rank]),
        np.where(is_only, way.n_parts[line], n_parts),
        np.where(is_only, way.at.low[line], NOT_ASKED),
        np.where(is_only, way.at.high[line], n_parts),
    )


def _shrink_each(
    start: Matrix, point: Matrix, goal: Matrix, changes: Change, features: Features, asking: Asking, snap: Snap
) -> tuple[Rows, Matrix]:
    """Take each change back alone, no further than it could be before; return the part left, and the points."""
    here, best, asked = start[changes.line], point[changes.line], asking.among(changes.line)
    trial = _part_of_each(here, best, goal[changes.line], changes, features, snap)
    at = halved(here, Bracket(changes.low, changes.high, best), trial, asked.holds, asked.places)
    return at.high, at.best


def _part_of_each(here: Matrix, best: Matrix, goal: Matrix, changes: Change, features: Features, snap: Snap) -> Trial:
    """Return the function that takes changes back to some part of them."""
    is_only = (changes.feature == ONLY)[:, np.newaxis]
    there = np.where(is_only, goal, best)
    is_moved = is_only | (features.of_column == changes.feature[:, np.newaxis])

    def part_of_the_change(lines: Rows, part: Rows) -> Matrix:
        moved = between(here[lines], there[lines], part / changes.n_parts[lines])
        moved = np.where(is_moved[lines], moved, there[lines])
        return np.where(is_moved[lines], snap(moved, here[lines], there[lines]), there[lines])

    return part_of_the_change


def first_shrinks(start: Matrix, way: Segment, features: Features, snap: Snap, places: int) -> Also:
    """Return the points that `shrink_changes` asks about first where no way goes on, and the line of each."""
    changes = _first_changes(start, way, features)
    trial = _part_of_each(
        start[changes.line], way.at.best[changes.line], way.goal[changes.line], changes, features, snap
    )
    line, part = questions(changes.low, changes.high, places)
    return trial(line, part), changes.line[line]


def ask_ahead(start: Matrix, point: Matrix, features: Features, asking: Asking, snap: Snap, halvings: int) -> None:
    """Ask about all places on the way, and each of them and the end with single changes undone.

    Undoing, shrinking, and undoing again asks about some of these. Without room for all, the first are asked about.
    """
    if len(point) * (2**halvings - 1) > asking.places:
        return
    line = np.repeat(np.arange(len(point)), 2**halvings - 1)
    part = np.tile(np.arange(1, 2**halvings), len(point))
    stops = _on_the_way(start[line], point[line], part / 2**halvings, snap)
    after, stop = undone_alone(start[line], stops, features, FEW)
    before, own = undone_alone(start, point, features, point.shape[1])
    sets, whose = undone_together(start, point, features, FEW if asking.spare else 0)
    asked, lines = np.concatenate([stops, before, sets, after]), np.concatenate([line, own, whose, line[stop]])
    if not asking.ahead(asked, lines):
        asking.ahead(asked[: asking.spare], lines[: asking.spare])


def _on_the_way(start: Matrix, point: Matrix, share: Matrix, snap: Snap) -> Matrix:
    return snap(between(start, point, share), start, point)
