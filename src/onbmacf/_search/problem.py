"""What a strategy gets and returns: the values that pass between the stages of a search.

Problem  ->  Strategy.find  ->  Outcome
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onbmacf._balls.cover import BallCover
from onbmacf._balls.geometry import Balls
from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._base.deadline import NEVER
from onbmacf._search.budget import LabelOf, Meter, remembered
from onbmacf._search.options import Options
from onbmacf._search.table import SearchTable

if TYPE_CHECKING:
    from onbmacf._balls.kernels import NearestBalls
    from onbmacf._search.opposing import Opposing

Snap = Callable[[Matrix, Matrix, Matrix], Matrix]  # points, their factuals, their goals -> points with allowed values
Share = Callable[[Matrix, Rows], Matrix]  # points, labels -> share of the neighbours of each that have the label


class Map(NamedTuple):
    """A fitted map as a search sees it."""

    Z: Matrix
    labels: Rows
    cover: BallCover
    share: Share
    balls: Balls  # of the cover, as places
    table: SearchTable
    ball_index: "NearestBalls | None" = None  # of the balls, where they are many


class Features(NamedTuple):
    """Which columns belong to which feature, and what the rules say of them."""

    starts: Rows  # first column of each feature
    of_column: Rows  # feature of each column
    is_immutable: Mask
    constrain: Callable[[Matrix, Matrix], Matrix] | None = None  # points, z -> points that keep the user's rules
    max_changes: int | None = None
    may_release: bool = True  # whether immutable features may change as a last resort
    lacks: Callable[[Matrix], Mask] | None = None  # points -> lines x features: what is missing; None where nothing is
    is_fillable: Mask | None = None  # which features may be filled in where a factual lacks them

    def with_held(self, own: Matrix, points: Matrix, frees: bool = False) -> Matrix:
        """Return points with the values that their factuals keep: immutable ones unless freed, and what is missing.

        A value is never removed, and filled in only where that is allowed (decision 0063).
        """
        is_held = self.is_immutable & (not frees)
        if self.lacks is None or self.is_fillable is None:
            return np.where(is_held[self.of_column], own, points)
        is_held = is_held | self.lacks(points) | (self.lacks(own) & ~self.is_fillable)
        return np.where(is_held[:, self.of_column], own, points)


class Pairs(NamedTuple):
    """Factuals and balls to be tried together, sorted by factual, then by ball.

    The bound is half the gap of the surface distances: no unreduced boundary point of the pair is nearer than this.
    The reduction of changes comes before the ranking and may undercut it, so the bound orders balls but does not prove
    that a farther ball is worse (docs/decisions/0024-search.md).
    """

    factual: Rows
    ball: Rows
    bound: Matrix


class Asked(NamedTuple):
    """The factuals of a search, and how encoded points are asked about."""

    z: Matrix
    codes: Rows  # the label of each factual
    wanted: Mask  # factuals x classes: which labels to reach
    label_of: LabelOf
    plain_label_of: LabelOf  # what the model says, whatever the rules and the probability
    is_allowed: Callable[[Matrix, Rows], Mask]  # whether points keep the rules
    snap: Snap
    knows_centers: bool  # whether a fitted row is known to be acceptable if its label is
    cost: int  # rows, and calls, that one question takes
    deadline: float = NEVER  # the time of day after which nothing more is asked


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything a strategy needs to explain some factuals together; what only some need is made when it is used."""

    fitted: Map
    features: Features
    options: Options
    asked: Asked
    n: int  # counterfactuals per factual
    reserve: int = 0  # questions per factual that are set aside for the end

    @property
    def z(self) -> Matrix:
        """The factuals, encoded."""
        return self.asked.z

    @property
    def codes(self) -> Rows:
        """The label of each factual."""
        return self.asked.codes

    @property
    def snap(self) -> Snap:
        """Rounds points to values that may be returned."""
        return self.asked.snap

    @property
    def is_allowed(self) -> Callable[[Matrix, Rows], Mask]:
        """Says which points keep the rules."""
        return self.asked.is_allowed

    @cached_property
    def meter(self) -> Meter:
        """Counts what is asked about each factual."""
        return Meter.of(self.options, self.asked)

    @cached_property
    def label_of(self) -> LabelOf:
        """Labels, counted, less what is set aside: what the budget does not allow has none."""
        return remembered(self.meter.counted(self.asked.label_of, self.reserve))

    @cached_property
    def ask(self) -> LabelOf:
        """Labels, counted, with what is set aside."""
        return self.meter.counted(self.asked.label_of)

    @cached_property
    def ask_again(self) -> LabelOf:
        """Labels whatever the rules, of points to be returned and the way back from them."""
        count = self.meter.counted if self.meter.is_limited else self.meter.noting
        return count(self.asked.plain_label_of)

    @cached_property
    def _opposing(self) -> "tuple[Rows, Balls, Opposing]":
        from onbmacf._search.opposing import opposing_pairs

        return opposing_pairs(self.fitted, self.options, self.asked)

    @property
    def home(self) -> Rows:
        """The ball of each factual."""
        return self._opposing[0]

    @property
    def balls(self) -> Balls:
        """All balls, those of re-covered homes behind."""
        return self._opposing[1]

    @cached_property
    def rounds(self) -> Rows:
        """Balls per factual to have tried after each round, nearest bound first; the last has no end."""
        from onbmacf._search.opposing import rounds_of

        return rounds_of(self.options.search, self.pairs.sizes)

    @property
    def pairs(self) -> "Opposing":
        """The balls that each factual is tried with."""
        return self._opposing[2]


class Found(NamedTuple):
    """One line per counterfactual; those of one factual follow each other, the best first."""

    factual: Rows
    ball: Rows  # position in the cover; -1 for a ball that re-covering made
    label: Rows
    relaxation: Rows  # position in Relaxation
    counterfactual: Matrix
    semifactual: Matrix  # the factual itself where there is none
    has_semifactual: Mask
    again: Rows  # the label when the model was asked again, whatever the rules
    margin: Matrix  # share of the way back to the factual on which the label holds; NaN where it was not asked
    numbers: Matrix | None = None  # the counterfactual in the caller's units; None: as it decodes
    semifactual_numbers: Matrix | None = None
    probability: Matrix | None = None  # of the label, as asked before; NaN where it was not


class Outcome(NamedTuple):
    """What a strategy found, and for which factuals it asked about every point that they may become."""

    found: Found
    is_proven: Mask


@dataclass(frozen=True)
class Strategy:
    """A way to solve a problem, and what it costs."""

    find: Callable[[Any], Any]  # from a Problem to an Outcome
    reserve: Callable[[Options], int]  # questions per counterfactual that are set aside for the end of `find`
    release: str  # what may be given up where the caller does not say
    ignores: tuple[str, ...]  # options that do nothing here
    is_readable: bool  # whether values are put on their readable grid before the model is asked
    is_distinct: bool  # whether counterfactuals of a row with the same values are repeats
    finds_labels: bool = False  # whether it asks for the labels of the factuals itself, through an oracle
