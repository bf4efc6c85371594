"""How far values may move and the answer stay: each changed feature alone, and all of them together as a box.

    regions (one part per free feature), ask  ->  settle  ->  smaller regions, and how many points were asked in each

A part is an interval of positions on a feature's grid, or the set of its levels that are left. In each turn points
inside a region are asked: its ends or corners, the feature's marks (fitted values and what lies between them), and
points drawn at random. A point that fails cuts the region so that it lies outside; a region is settled when a whole
turn of fresh points holds (docs/decisions/0051-ranges.md). Position 1 is one readable step; whole positions are
readable values, and the ends of an interval are such, or the answer itself. What is drawn depends on the region's own
seed and on nothing else.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows, objects
from onbmacf._explain.request import Request
from onbmacf._explain.rows import Factuals
from onbmacf._table.constraints import Constraints
from onbmacf._table.model import BlackBox
from onbmacf._table.values import Grid
from onbmacf._text.wording import Range
from onbmacf.explanations import Explanations
from onbmacf.rules import Rules

MOST_TURNS = 60
PATIENCE = 12  # turns after which a point that fails takes half of the rest with it
NEAR = 12  # points from the end on, each half as far from the answer as the one before, on each side
BETWEEN = 16  # points between the last that holds and the end, on each side
AT_LEAST = 4 * (NEAR + BETWEEN)  # positions asked about a feature in each turn whatever n, readable ones included
MOST_CORNERS = 64
N_POINTS = 256  # drawn in each turn, and as many marks
LIGHTER = 8  # a light turn draws a whole turn's points divided by this
FEWEST = 16  # with a limit: fewer points than these say nothing
USUAL_TURNS = 4  # by which a limit is divided: most regions are settled within so many
TOGETHER = 256  # counterfactuals whose ranges are asked about together

Generator = np.random.Generator
WhichHold = Callable[[list[int], list[Matrix]], list[Mask]]  # numbers of regions, points of each -> which of them hold


# --- regions ----------------------------------------------------------------------------------------------------------


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


Extent = Interval | Levels  # of a region, along one feature
Region = tuple[Extent, ...]


class Settled(NamedTuple):
    """A region in which every point asked holds, and how many these are, the answer included."""

    region: Region
    n_asked: int


def settle(
    regions: Sequence[Region], seeds: Sequence[int], first: Sequence[Matrix], ask: WhichHold, n: int
) -> list[Settled]:
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
            now[at] = _cut(now[at], own[~held], turn >= PATIENCE)
            if len(now[at]) == 1:  # a feature alone: the next turn asks between what holds and the ends
                now[at] = (now[at][0].informed(seen[at][:, 0]),)
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
    if np.prod([float(len(values)) for values in ends]) <= MOST_CORNERS:
        return np.array(list(product(*ends)), dtype=np.float64)
    return np.column_stack([random.choice(values, MOST_CORNERS) for values in ends])


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


def _alone(part: Extent) -> Extent:
    """Return the answer alone."""
    if isinstance(part, Levels):
        return Levels(part.answer, np.array([part.answer]))
    return replace(part, low=part.answer, high=part.answer)


def _count(region: Region, points: Matrix) -> int:
    """Return how many different points were asked inside a region, the answer included."""
    return 1 + len(np.unique(points[contains(region, points)], axis=0))


# --- the ranges of a call ---------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """Some changed features of one counterfactual."""

    line: int
    features: tuple[int, ...]


class SpentError(Exception):
    """What is left does not pay for the next question."""


def with_ranges(request: Request, factuals: Factuals, answers: Explanations, left: Rows, box: BlackBox) -> Explanations:
    """Return the answers with ranges and boxes; `left` is how much each row may still ask, where there is a limit."""
    around = Around.of(request, factuals, answers, box)
    ranges: list[Any] = [None] * len(around.N)
    boxes: list[Any] = [None] * len(around.N)
    for lines, purse in _portions(request, answers, left, box):
        try:
            for line, alone, together in _found(replace(around, purse=purse), lines):
                ranges[line], boxes[line] = alone, together
        except SpentError:
            continue
    return replace(answers, batch=answers.batch._replace(ranges=objects(ranges), box=objects(boxes)))


class Purse:
    """What may still be spent on one row; None is no limit."""

    def __init__(self, rows: int | None = None, calls: int | None = None, chunk: int = 1) -> None:
        self._rows, self._calls, self._chunk = rows, calls, chunk

    def points(self, n_regions: int) -> int:
        """Return how many points each region may draw in a turn."""
        if self._rows is None:
            return N_POINTS
        n = min(N_POINTS, (self._rows // (USUAL_TURNS * n_regions) - AT_LEAST) // 4)
        if n < FEWEST:
            raise SpentError
        return n

    def pay(self, n: int) -> None:
        """Take the price of asking about n points, or raise."""
        n_calls = -(-n // self._chunk)
        if (self._rows is not None and n > self._rows) or (self._calls is not None and n_calls > self._calls):
            raise SpentError
        self._rows = None if self._rows is None else self._rows - n
        self._calls = None if self._calls is None else self._calls - n_calls


def _portions(request: Request, answers: Explanations, left: Rows, box: BlackBox) -> Iterator[tuple[Rows, Purse]]:
    """Yield the counterfactuals that are asked about together: many, or with a limit those of one row."""
    batch = answers.batch
    if not request.options.limits:
        for start in range(0, len(batch.factual), TOGETHER):
            yield np.arange(start, min(start + TOGETHER, len(batch.factual))), Purse()
        return
    for row in np.unique(batch.factual):
        lines = np.flatnonzero(batch.factual == row)
        n_probabilities = 0 if batch.probability is None else len(lines)
        calls = None if request.options.max_model_calls is None else -(-int(left[row]) // box.largest)
        calls = None if calls is None else calls - bool(n_probabilities)
        yield lines, Purse(max(0, int(left[row]) - n_probabilities), calls, box.largest)


def _found(around: "Around", lines: Rows) -> Iterator[tuple[int, Any, Any]]:
    """Yield each counterfactual's ranges and its box; the box is None where only that could not be paid for."""
    places = [Place(int(line), (int(at),)) for line in lines for at in np.flatnonzero(around.changed[line])]
    alone = around.settled(places, [(around.part(place.line, place.features[0]),) for place in places])
    parts: dict[int, list[Settled]] = {int(line): [] for line in lines}
    for place, settled in zip(places, alone, strict=True):
        parts[place.line].append(settled)
    several = [Place(line, around.features(line)) for line, own in parts.items() if len(own) > 1]
    try:
        regions = [tuple(own.region[0] for own in parts[place.line]) for place in several]
        boxes = dict(zip([place.line for place in several], around.settled(several, regions), strict=True))
    except SpentError:
        boxes = {}
    for line, own in parts.items():
        ranges = around.named(line, [(s.region[0], s.n_asked) for s in own])
        if len(own) == 1:
            yield line, ranges, ranges
        else:
            whole = boxes.get(line)
            yield line, ranges, whole and around.named(line, [(part, whole.n_asked) for part in whole.region])


@dataclass(frozen=True, eq=False)
class Around:
    """The counterfactuals of a call as numbers, and how points around them are asked about."""

    request: Request
    box: BlackBox
    N: Matrix  # the counterfactuals
    factuals: Matrix  # of each
    less: Matrix  # its semifactual, or the factual again
    changed: Mask
    codes: Rows
    purse: Purse

    @classmethod
    def of(cls, request: Request, factuals: Factuals, answers: Explanations, box: BlackBox) -> "Around":
        """Return what was found as numbers."""
        batch, numbers = answers.batch, request.fitted.space.form.numbers
        own, codes = factuals.N[batch.factual], box.codes(batch.label)
        N, less = numbers(batch.values), numbers(batch.semifactual_values)
        if request.fitted.space.effects is not None:  # what followed follows again
            N, less = np.where(batch.changed, N, own), np.where(batch.semifactual_changed, less, own)
        return cls(request, box, N, own, less, batch.changed, codes, Purse())

    def features(self, line: int) -> tuple[int, ...]:
        """Return the changed features of a counterfactual."""
        return tuple(np.flatnonzero(self.changed[line]).tolist())

    def part(self, line: int, at: int) -> Extent:
        """Return every fitted value of a changed feature and all between them: what the rules forbid will not hold."""
        grid, after = self._grid(line, at), float(self.N[line, at])
        if grid.n_levels:
            return Levels(after, np.arange(grid.n_levels, dtype=np.float64))
        answer, low, high = grid.positions(np.array([after, grid.seen[0], grid.seen[-1]])).tolist()
        return Interval.within(answer, low, high, grid.is_whole, grid.marks)

    def settled(self, places: Sequence[Place], regions: Sequence[Region]) -> list[Settled]:
        """Settle the region at each place."""
        if not places:
            return []
        seeds = [crc32((self.N[line] + 0.0).tobytes() + bytes(str(features), "ascii")) for line, features in places]
        first = [self._known(place) for place in places]
        n = self.purse.points(len(places))
        return settle(regions, seeds, first, lambda own, points: self._hold([places[at] for at in own], points), n)

    def named(self, line: int, parts: Sequence[tuple[Extent, int]]) -> dict[Any, Range]:
        """Return the ranges of a counterfactual by feature, in the caller's dtypes."""
        features = self.features(line)
        return {
            self.request.fitted.space.schema.names[at]: self._range(line, at, part, n)
            for at, (part, n) in zip(features, parts, strict=True)
        }

    def _range(self, line: int, at: int, part: Extent, n_asked: int) -> Range:
        space, grid = self.request.fitted.space, self._grid(line, at)
        name, levels = space.schema.names[at], space.schema.features[at].levels or ()
        if isinstance(part, Levels):
            return Range(name, None, None, tuple(levels[int(code)] for code in part.kept), n_asked)
        ends = np.repeat(self.N[[line]], 2, axis=0)
        ends[:, at] = self._values(line, at, part.ends())
        column = space.form.frame(ends).iloc[:, at]
        first, last = grid.positions(grid.seen[[0, -1]])
        reaches = (bool(part.low <= np.ceil(first)), bool(part.high >= np.floor(last)))
        return Range(name, column.iloc[0], column.iloc[1], None, n_asked, *reaches)

    def _values(self, line: int, at: int, positions: Matrix) -> Matrix:
        """Return the values at positions: the answered one to the bit."""
        grid, after = self._grid(line, at), self.N[line, at]
        return np.where(positions == grid.positions(np.array([after])), after, grid.values(positions))

    def _grid(self, line: int, at: int) -> Grid:
        """Return the grid of a feature under its rule, or without it where the counterfactual breaks it."""
        space, rules = self.request.fitted.space, self.request.constraints.in_steps
        key = (at, bool(self._keeps_own[line, at]))
        if key not in self._grids:
            rule = rules.features.get(space.schema.names[at]) if key[1] else None
            self._grids[key] = Grid.of(space, at, self.request.fitted.seen_values[at], rule)
        return self._grids[key]

    @cached_property
    def _grids(self) -> dict[tuple[int, bool], Grid]:
        return {}

    @cached_property
    def _keeps_own(self) -> Mask:
        return self.request.constraints.kept(self.N, self.factuals)

    @cached_property
    def _rules(self) -> list[tuple[Constraints, Mask]]:
        """Each rule by itself, and which counterfactuals keep it: what was given up does not bound a range either."""
        space, rules = self.request.fitted.space, self.request.constraints.in_steps
        singly = [Rules({name: rule}) for name, rule in rules.features.items() if rule.kinds]
        singly += [Rules(at_most=(pair,)) for pair in rules.at_most] + [
            Rules(relations=(one,)) for one in rules.relations
        ]
        bound = [Constraints(space, rule) for rule in singly]
        return [(one, one.allowed(self.N, self.factuals)) for one in bound]

    def _known(self, place: Place) -> Matrix:
        """Return what the answer itself tells of: the factual's values and the semifactual's."""
        line, features = place
        rows = [[float(self._grid(line, at).positions(of[line, [at]])[0]) for at in features] for of in self._before]
        return np.array(rows, dtype=np.float64)

    @cached_property
    def _before(self) -> tuple[Matrix, Matrix]:
        """The values before the change; where there was none, that of the answer."""
        return np.where(np.isnan(self.factuals), self.N, self.factuals), np.where(
            np.isnan(self.less), self.N, self.less
        )

    def _hold(self, places: list[Place], points: list[Matrix]) -> list[Mask]:
        """Say which points keep the rules and the counterfactual's label, as sure and with neighbours as asked."""
        N = np.concatenate([self._rows(place, some) for place, some in zip(places, points, strict=True)])
        sizes = [len(some) for some in points]
        line = np.repeat([place.line for place in places], sizes)
        good = np.ones(len(N), dtype=bool)
        for rule, is_kept in self._rules:
            good &= rule.allowed(N, self.factuals[line]) | ~is_kept[line]
        effects = self.request.fitted.space.effects
        N = N if effects is None else effects.whole(N, self.factuals[line])
        if self.request.is_over:  # what is not asked does not hold: the ranges end where they are
            return np.split(np.zeros(len(N), dtype=bool), np.cumsum(sizes)[:-1])
        if self.request.min_neighbours > 0:
            good[good] = self.request.has_neighbours(N[good], self.codes[line[good]])
        asked = np.flatnonzero(good)
        least = self.request.required
        self.purse.pay(len(asked) * (2 if least > 0 else 1))
        good[asked] = self.box.ask(N[asked]) == self.codes[line[asked]]
        if least > 0:
            sure = self.box.probability(N[good], self.codes[line[good]])
            good[good] = sure >= least if sure is not None else False
        return np.split(good, np.cumsum(sizes)[:-1])

    def _rows(self, place: Place, points: Matrix) -> Matrix:
        N = np.repeat(self.N[[place.line]], len(points), axis=0)
        for column, at in enumerate(place.features):
            N[:, at] = self._values(place.line, at, points[:, column])
        return N
