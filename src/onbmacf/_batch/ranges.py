"""Ranges around the counterfactuals of a call: each changed feature alone, and all of them together as a box.

    Explanations  ->  with_ranges  ->  the same, each counterfactual with its ranges and its box

`regions.py` settles regions in positions on the grids of the features; here positions become values, rules and
probability are looked at, the model is asked, and ends become values in the caller's dtypes. With a limit, a row's
ranges get what its search has left: each row by itself, and no ranges where that is not enough.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows, objects
from onbmacf._batch.call import Call
from onbmacf._batch.factuals import Factuals
from onbmacf._batch.regions import AT_LEAST, Interval, Levels, Part, Region, Settled, settle
from onbmacf._rows.constraints import Constraints
from onbmacf._rows.grid import Grid
from onbmacf._rows.model import BlackBox
from onbmacf._text.wording import Range
from onbmacf.explanations import Explanations
from onbmacf.rules import Rules

N_POINTS = 256  # drawn in each turn, and as many marks
FEWEST = 16  # with a limit: fewer points than these say nothing
USUAL_TURNS = 4
TOGETHER = 256  # counterfactuals whose ranges are asked about together


class Place(NamedTuple):
    """Some changed features of one counterfactual."""

    line: int
    features: tuple[int, ...]


class SpentError(Exception):
    """What is left does not pay for the next question."""


def with_ranges(call: Call, factuals: Factuals, answers: Explanations, left: Rows, box: BlackBox) -> Explanations:
    """Return the answers with ranges and boxes; `left` is how much each row may still ask, where there is a limit."""
    around = Around.of(call, factuals, answers, box)
    ranges: list[Any] = [None] * len(around.N)
    boxes: list[Any] = [None] * len(around.N)
    for lines, purse in _portions(call, answers, left, box):
        try:
            for line, own, together in _found(replace(around, purse=purse), lines):
                ranges[line], boxes[line] = own, together
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


def _portions(call: Call, answers: Explanations, left: Rows, box: BlackBox) -> Iterator[tuple[Rows, Purse]]:
    """Yield the counterfactuals that are asked about together: many, or with a limit those of one row."""
    batch = answers.batch
    if not call.options.limits:
        for start in range(0, len(batch.factual), TOGETHER):
            yield np.arange(start, min(start + TOGETHER, len(batch.factual))), Purse()
        return
    for row in np.unique(batch.factual):
        lines = np.flatnonzero(batch.factual == row)
        n_probabilities = 0 if batch.probability is None else len(lines)
        calls = None if call.options.max_model_calls is None else -(-int(left[row]) // box.largest)
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

    call: Call
    box: BlackBox
    N: Matrix  # the counterfactuals
    own: Matrix  # the factual of each
    less: Matrix  # its semifactual, or the factual again
    changed: Mask
    codes: Rows
    purse: Purse

    @classmethod
    def of(cls, call: Call, factuals: Factuals, answers: Explanations, box: BlackBox) -> "Around":
        """Return what was found as numbers."""
        batch, numbers = answers.batch, call.fitted.space.form.numbers
        own, codes = factuals.N[batch.factual], box.codes(batch.label)
        less = numbers(batch.semifactual_values)
        return cls(call, box, numbers(batch.values), own, less, batch.changed, codes, Purse())

    def features(self, line: int) -> tuple[int, ...]:
        """Return the changed features of a counterfactual."""
        return tuple(np.flatnonzero(self.changed[line]).tolist())

    def part(self, line: int, at: int) -> Part:
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

    def named(self, line: int, parts: Sequence[tuple[Part, int]]) -> dict[Any, Range]:
        """Return the ranges of a counterfactual by feature, in the caller's dtypes."""
        features = self.features(line)
        return {
            self.call.fitted.space.schema.names[at]: self._range(line, at, part, n)
            for at, (part, n) in zip(features, parts, strict=True)
        }

    def _range(self, line: int, at: int, part: Part, n_asked: int) -> Range:
        space, grid = self.call.fitted.space, self._grid(line, at)
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
        space, rules = self.call.fitted.space, self.call.constraints.rules
        key = (at, bool(self._keeps_own[line, at]))
        if key not in self._grids:
            rule = rules.features.get(space.schema.names[at]) if key[1] else None
            self._grids[key] = Grid.of(space, at, self.call.fitted.seen_values[at], rule)
        return self._grids[key]

    @cached_property
    def _grids(self) -> dict[tuple[int, bool], Grid]:
        return {}

    @cached_property
    def _keeps_own(self) -> Mask:
        return self.call.constraints.kept(self.N, self.own)

    @cached_property
    def _rules(self) -> list[tuple[Constraints, Mask]]:
        """Each rule by itself, and which counterfactuals keep it: what was given up does not bound a range either."""
        space, rules = self.call.fitted.space, self.call.constraints.rules
        singly = [Rules({name: rule}) for name, rule in rules.features.items() if rule.kinds]
        singly += [Rules(at_most=(pair,)) for pair in rules.at_most]
        bound = [Constraints(space, rule) for rule in singly]
        return [(one, one.allowed(self.N, self.own)) for one in bound]

    def _known(self, place: Place) -> Matrix:
        """Return what the answer itself tells of: the factual's values and the semifactual's."""
        line, features = place
        rows = [[float(self._grid(line, at).positions(of[line, [at]])[0]) for at in features] for of in self._before]
        return np.array(rows, dtype=np.float64)

    @cached_property
    def _before(self) -> tuple[Matrix, Matrix]:
        """The values before the change; where there was none, that of the answer."""
        return np.where(np.isnan(self.own), self.N, self.own), np.where(np.isnan(self.less), self.N, self.less)

    def _hold(self, places: list[Place], points: list[Matrix]) -> list[Mask]:
        """Say which points keep the rules and have the counterfactual's label, with the probability asked for."""
        N = np.concatenate([self._rows(place, own) for place, own in zip(places, points, strict=True)])
        sizes = [len(own) for own in points]
        line = np.repeat([place.line for place in places], sizes)
        good = np.ones(len(N), dtype=bool)
        for rule, is_kept in self._rules:
            good &= rule.allowed(N, self.own[line]) | ~is_kept[line]
        if self.call.is_over:  # what is not asked does not hold: the ranges end where they are
            return np.split(np.zeros(len(N), dtype=bool), np.cumsum(sizes)[:-1])
        asked = np.flatnonzero(good)
        least = self.call.query.min_probability
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
