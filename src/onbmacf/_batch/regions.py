"""How far values may move and the answer stay: regions around a counterfactual in which every point asked holds.

    regions (one part per free feature), ask  ->  settle  ->  smaller regions, and how many points were asked in each

A part is an interval of positions on a feature's grid, or the set of its levels that are left. In each turn points
inside a region are asked: its ends or corners, the feature's marks (fitted values and what lies between them), and
points drawn at random. A point that fails cuts the region so that it lies outside; a region is settled when a whole
turn of fresh points holds (docs/decisions/0051-ranges.md). Position 1 is one readable step; whole positions are
readable values, and the ends of an interval are such, or the answer itself. What is drawn depends on the region's own
seed and on nothing else.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from onbmacf._base.arrays import Mask, Matrix

MOST_TURNS = 60
PATIENCE = 12  # turns after which a point that fails takes half of the rest with it
NEAR = 12  # points from the end on, each half as far from the answer as the one before, on each side
BETWEEN = 16  # points between the last that holds and the end, on each side
MOST_CORNERS = 64
LIGHTER = 8  # a light turn draws a whole turn's points divided by this

Generator = np.random.Generator
AT_LEAST = 4 * (NEAR + BETWEEN)  # positions asked about a feature in each turn whatever n, readable ones included
Ask = Callable[[list[int], list[Matrix]], list[Mask]]  # numbers of regions, points of each -> which of them hold


@dataclass(frozen=True, eq=False)
class Interval:
    """The positions from `low` to `high` on the grid of a number; the answer lies between."""

    answer: float
    low: float
    high: float
    is_whole: bool  # whether only whole positions are values at all: integers, and values in steps
    marks: Matrix  # positions at which a model may change its mind, sorted
    sure_low: float  # what was asked and holds, nearest to either end
    sure_high: float

    @classmethod
    def within(cls, answer: float, low: float, high: float, is_whole: bool, marks: Matrix) -> "Interval":
        """Return all readable positions between two bounds, of which nothing is known but the answer."""
        low, high = min(np.ceil(low), answer), max(np.floor(high), answer)
        return cls(answer, low, high, is_whole, marks, answer, answer)

    def contains(self, at: Matrix) -> Mask:
        """Say which positions lie inside."""
        return np.asarray((at >= self.low) & (at <= self.high))

    def without(self, at: float, in_a_hurry: bool = False) -> "Interval":
        """Return the part on the answer's side of a position that fails."""
        at = (at + self.answer) / 2 if in_a_hurry else at
        if at > self.answer:
            return replace(self, high=max(np.ceil(at) - 1, self.answer))
        return replace(self, low=min(np.floor(at) + 1, self.answer))

    def left_by(self, at: Matrix) -> Matrix:
        """Return the share of the interval that is left when it is cut at a position; -1 for the answer's own."""
        width = max(self.high - self.low, 1.0)
        share = np.where(at > self.answer, at - self.low, self.high - at) / width
        return np.where(at == self.answer, -1.0, share)

    def depth(self, at: Matrix) -> Matrix:
        """Return how far out positions lie, from 0 at the answer to 1 at an end."""
        way = np.where(at > self.answer, self.high - self.answer, self.answer - self.low)
        return np.abs(at - self.answer) / np.maximum(way, 1e-300)

    def informed(self, asked: Matrix) -> "Interval":
        """Return the same, knowing what was asked: all of it that lies inside holds."""
        held = np.append(asked[self.contains(asked)], self.answer)
        return replace(self, sure_low=held.min(), sure_high=held.max())

    def ends(self) -> Matrix:
        """Return the ends."""
        return np.array([self.low, self.high])

    def draw(self, n: int, random: Generator) -> Matrix:
        """Return positions spread evenly over the interval, each drawn from its own n-th: half of them readable."""
        at = self.low + (np.arange(n) + random.random(n)) * (self.high - self.low) / n
        readable = np.clip(np.round(at), self.low, self.high)
        return np.where(self.is_whole | (np.arange(n) % 2 == 0), readable, np.clip(at, self.low, self.high))

    def questions(self, n: int, random: Generator) -> Matrix:
        """Return the positions to ask next about a feature alone, about 2 n of them."""
        inside = self.marks[self.contains(self.marks)]
        if len(inside) > n:
            inside = random.permutation(inside)[:n]
        nearer = 2.0 ** -np.arange(NEAR)
        near = [self.answer + (end - self.answer) * nearer for end in (self.low, self.high)]
        gaps = [np.linspace(a, b, BETWEEN) for a, b in ((self.low, self.sure_low), (self.sure_high, self.high))]
        at = np.concatenate([*near, *gaps, inside])
        at = np.concatenate([np.round(at) if self.is_whole else at, np.round(at), self._spread(n, random)])
        return np.unique(at[self.contains(at)])

    def _spread(self, n: int, random: Generator) -> Matrix:
        """Return positions over the whole interval; every readable one where they are few."""
        first, last = np.ceil(self.low), np.floor(self.high)
        if last - first >= n:
            return self.draw(n, random)
        every = np.arange(first, last + 1)
        return every if self.is_whole else np.concatenate([every, self.draw(n, random)])


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of a feature that are left."""

    answer: float
    kept: Matrix

    def contains(self, at: Matrix) -> Mask:
        """Say which are left."""
        return np.isin(at, self.kept)

    def without(self, at: float, in_a_hurry: bool = False) -> "Levels":
        """Return the others."""
        return Levels(self.answer, self.kept[self.kept != at])

    def left_by(self, at: Matrix) -> Matrix:
        """Return the share of the levels that is left without one; -1 for the answer's own."""
        return np.where(at == self.answer, -1.0, 1 - 1 / len(self.kept))

    def depth(self, at: Matrix) -> Matrix:
        """Return 0 for the answer's level and 1 for any other."""
        return (at != self.answer).astype(np.float64)

    def informed(self, asked: Matrix) -> "Levels":
        """Return the same: what is left is known."""
        return self

    def ends(self) -> Matrix:
        """Return every level."""
        return self.kept

    def draw(self, n: int, random: Generator) -> Matrix:
        """Return levels drawn at random."""
        return random.choice(self.kept, n)

    def questions(self, n: int, random: Generator) -> Matrix:
        """Return every level."""
        return self.kept


Part = Interval | Levels
Region = tuple[Part, ...]


class Settled(NamedTuple):
    """A region in which every point asked holds, and how many these are, the answer included."""

    region: Region
    n_asked: int


def settle(regions: Sequence[Region], seeds: Sequence[int], first: Sequence[Matrix], ask: Ask, n: int) -> list[Settled]:
    """Cut regions until no point asked inside them fails; `first` are points to ask of each in the first turn.

    The answer itself is known to hold and is not asked. Turns are light until one holds: the next is a whole one, which
    settles the region if it holds, too. What is not settled after MOST_TURNS is the answer alone.
    """
    now, seen, still = list(regions), [own[:0] for own in first], list(range(len(regions)))
    is_whole = np.zeros(len(regions), dtype=bool)
    for turn in range(MOST_TURNS):
        points = []
        for at in still:
            random, few = np.random.default_rng([seeds[at], turn]), -(-n // LIGHTER)
            drawn = _questions(now[at], n if is_whole[at] else few, random)
            points.append(_inside(now[at], drawn if turn else np.concatenate([drawn, first[at]])))
        for at, own, held in zip(list(still), points, ask(still, points), strict=True):
            seen[at] = np.concatenate([seen[at], own])
            now[at] = _informed(_cut(now[at], own[~held], turn >= PATIENCE), seen[at])
            if held.all() and is_whole[at]:
                still.remove(at)
            is_whole[at] = held.all()
        if not still:
            break
    for at in still:
        now[at] = tuple(_alone(part) for part in now[at])
    return [Settled(own, _count(own, points)) for own, points in zip(now, seen, strict=True)]


def contains(region: Region, points: Matrix) -> Mask:
    """Say which points lie inside a region."""
    return np.all([part.contains(points[:, at]) for at, part in enumerate(region)], axis=0)


def _questions(region: Region, n: int, random: Generator) -> Matrix:
    """Return the points to ask next: for a feature alone its own; else corners, points at the faces, points inside."""
    if len(region) == 1:
        return region[0].questions(n, random)[:, np.newaxis]
    inside = np.column_stack([random.permutation(part.draw(n, random)) for part in region])
    faces = np.column_stack([random.permutation(part.draw(n, random)) for part in region])
    for at, part in enumerate(region):
        is_end = random.random(n) < 2 / 3
        faces[is_end, at] = random.choice(part.ends(), int(is_end.sum()))
    return np.concatenate([_corners(region, random), faces, inside])


def _corners(region: Region, random: Generator) -> Matrix:
    """Return every corner where they are few, else some."""
    ends = [part.ends() for part in region]
    if np.prod([float(len(own)) for own in ends]) <= MOST_CORNERS:
        return np.array(list(product(*ends)), dtype=np.float64)
    return np.column_stack([random.choice(own, MOST_CORNERS) for own in ends])


def _inside(region: Region, points: Matrix) -> Matrix:
    """Return the points that lie inside, the answer left out."""
    is_answer = (points == [part.answer for part in region]).all(axis=1)
    return points[contains(region, points) & ~is_answer]


def _cut(region: Region, failed: Matrix, in_a_hurry: bool) -> Region:
    """Cut a region for each point that fails, the innermost first, where most of the region is left."""
    depth = np.max([part.depth(failed[:, at]) for at, part in enumerate(region)], axis=0)
    for place in np.argsort(depth, kind="stable"):
        point = failed[place]
        if contains(region, point[np.newaxis])[0]:
            left = [float(part.left_by(point[at : at + 1])[0]) for at, part in enumerate(region)]
            at = int(np.argmax(left))
            region = (*region[:at], region[at].without(point[at], in_a_hurry), *region[at + 1 :])
    return region


def _informed(region: Region, asked: Matrix) -> Region:
    """Return a region that knows what was asked; of use for a feature alone."""
    return (region[0].informed(asked[:, 0]),) if len(region) == 1 else region


def _alone(part: Part) -> Part:
    """Return the answer alone."""
    if isinstance(part, Levels):
        return Levels(part.answer, np.array([part.answer]))
    return replace(part, low=part.answer, high=part.answer)


def _count(region: Region, points: Matrix) -> int:
    """Return how many different points were asked inside a region, the answer included."""
    return 1 + len(np.unique(points[contains(region, points)], axis=0))
