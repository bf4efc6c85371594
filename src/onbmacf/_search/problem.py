"""The values that pass between the stages of a search.

    Map, factuals  ->  opposing_pairs  ->  Problem  ->  Strategy.find  ->  Found, and the Effort it took

The refined strategy has a problem of its own (`search.Search`) and asks through an oracle.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from onbmacf._balls.cover import BallCover
from onbmacf._balls.geometry import Balls
from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._search.budget import Questions
from onbmacf._search.options import Options
from onbmacf._search.table import SearchTable

Snap = Callable[[Matrix, Matrix, Matrix], Matrix]  # points, their factuals, their goals -> points with allowed values


class Map(NamedTuple):
    """A fitted map as a search sees it."""

    Z: Matrix
    labels: Rows
    cover: BallCover
    share: Callable[[Matrix, Rows], Matrix]  # points, labels -> share of the neighbours of each that have the label
    balls: Balls  # of the cover, as places
    table: SearchTable


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
    is_derived: Mask | None = None  # which features are computed from others, and never chosen

    def with_held(self, start: Matrix, points: Matrix, frees: bool = False) -> Matrix:
        """Return points with the values that their factuals keep: immutable ones unless freed, and what is missing.

        A value is never removed, and filled in only where that is allowed (decision 0062).
        """
        is_held = self.is_immutable & (not frees)
        is_held = is_held if self.is_derived is None else is_held | self.is_derived
        if self.lacks is None or self.is_fillable is None:
            return np.where(is_held[self.of_column], start, points)
        is_held = is_held | self.lacks(points) | (self.lacks(start) & ~self.is_fillable)
        return np.where(is_held[:, self.of_column], start, points)


class Pairs(NamedTuple):
    """Factuals and balls to be tried together, sorted by factual, then by bound, ties by ball.

    The bound is half the gap of the surface distances: no unreduced boundary point of the pair is nearer than this.
    The reduction of changes comes before the ranking and may undercut it, so the bound orders balls but does not prove
    that a farther ball is worse (docs/decisions/0024-search.md).
    """

    factual: Rows
    ball: Rows
    bound: Matrix


@dataclass(frozen=True, eq=False)
class Problem:
    """Some factuals to be explained together, and all that a walk through the map needs."""

    z: Matrix
    codes: Rows  # the label of each factual
    home: Rows  # the ball of each factual
    balls: Balls  # all, those of re-covered homes behind
    pairs: Pairs
    features: Features
    options: Options
    n: int  # counterfactuals per factual
    questions: Questions
    snap: Snap
    knows_centers: bool  # whether a fitted row is known to be acceptable if its label is


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
    donor: Rows | None = None  # in blocks: the fitted row whose values it has


class Effort(NamedTuple):
    """How hard a search looked, per factual."""

    asked: Rows  # questions
    ran_out: Mask  # whether the budget ended it
    is_proven: Mask  # whether every allowed combination of values was asked about
    failed: Rows  # questions on which the model raised
    left: Rows  # questions that the budget still allows
    raised: Any  # what the model did instead of answering, in words
    unseen: Any  # labels that it said and that no fitted row has, in words


@dataclass(frozen=True)
class Strategy:
    """A way to solve a problem, and what it costs."""

    find: Callable[[Any], Any]  # from a Problem to Found
    reserve: Callable[[Options], int]  # questions per counterfactual that are set aside for the end of `find`
    release: str  # what may be given up where the caller does not say
    ignores: tuple[str, ...]  # options that do nothing here
    is_readable: bool  # whether values are put on their readable grid before the model is asked
    is_distinct: bool  # whether counterfactuals of a row with the same values are repeats
    finds_labels: bool = False  # whether it asks for the labels of the factuals itself, through an oracle
    needs_all: bool = False  # whether the cover must be that of all rows, not of a sample
