"""What a strategy gets and returns: the values that pass between the stages of a search.

Problem  ->  Strategy.find  ->  Found
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onbmacf._balls.cover import BallCover
from onbmacf._balls.geometry import Balls
from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._base.deadline import NEVER
from onbmacf._search.options import Options

if TYPE_CHECKING:
    from onbmacf._balls.kernels import NearestBalls
    from onbmacf._search.pairs import Opposing

UNASKED = -2  # the label of a point that was not asked
UNKNOWN = -4  # in place of a label: nobody has asked yet
RAISED = -1  # the label of a point on which the model raised

LabelOf = Callable[[Matrix, Rows], Rows]  # points, the factual of each -> labels
Snap = Callable[[Matrix, Matrix, Matrix], Matrix]  # points, their factuals, their goals -> points with allowed values
Reach = Callable[[int, int], Matrix | None]  # factual, most -> every point it may become; None if there are more
Share = Callable[[Matrix, Rows], Matrix]  # points, labels -> share of the neighbours of each that have the label


class Map(NamedTuple):
    """A fitted map as a search sees it."""

    Z: Matrix
    labels: Rows
    cover: BallCover
    share: Share
    balls: Balls  # of the cover, as places
    ends: tuple[Matrix, Matrix]  # the lowest and the highest value of each column
    seen: Callable[[int], Matrix]  # the fitted values of a feature, encoded
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

    def may_change(self, z: Matrix) -> Mask:
        """Say which features of one factual may change."""
        if self.lacks is None or self.is_fillable is None:
            return ~self.is_immutable
        return ~self.is_immutable & (self.is_fillable | ~self.lacks(z[np.newaxis])[0])


class Pairs(NamedTuple):
    """Factuals and balls to be tried together, sorted by factual, then by ball.

    The bound is half the gap of the surface distances: no unreduced boundary point of the pair is nearer than this.
    The reduction of changes comes before the ranking and may undercut it, so the bound orders balls but does not prove
    that a farther ball is worse (docs/decisions/0024-search.md).
    """

    factual: Rows
    ball: Rows
    bound: Matrix


class Asking(NamedTuple):
    """How a stage asks about trial points of its lines."""

    holds: Callable[[Matrix, Rows], Mask]  # points, lines -> which are accepted
    ahead: Callable[..., Any]  # the same points may be asked about soon; whether there was room for all
    places: int  # points that may be asked together at the price of one question
    is_late: Callable[[], bool] = lambda: False  # whether the time of the call is up
    spare: int = 0  # the same places where nothing that is asked is counted: also for what is less likely
    known: Callable[[Matrix, Rows], Rows] = lambda points, lines: np.full(len(points), -1)  # 1, 0, or -1: not known

    def among(self, lines: Rows) -> "Asking":
        """Return the same for some of the lines."""
        holds, ahead, known = self.holds, self.ahead, self.known
        return self._replace(
            holds=lambda p, own: holds(p, lines[own]),
            known=lambda p, own: known(p, lines[own]),
            ahead=lambda p, own, n_again=0: ahead(p, lines[own], n_again),
        )


class Asked(NamedTuple):
    """The factuals of a search, and how points are asked about."""

    z: Matrix
    codes: Rows  # the label of each factual
    wanted: Mask  # factuals x classes: which labels to reach
    label_of: LabelOf
    plain_label_of: LabelOf  # what the model says, whatever the rules and the probability
    is_allowed: Callable[[Matrix, Rows], Mask]  # whether points keep the rules
    snap: Snap
    free_label_of: LabelOf | None  # the same without the rules; None where there are none
    free_snap: Snap
    free_place: Callable[[Matrix, Matrix], Matrix]
    reach: Reach
    knows_centers: bool  # whether a fitted row is known to be acceptable if its label is
    cost: int  # rows, and calls, that one question takes
    deadline: float = NEVER  # the time of day after which nothing more is asked
    n_taken: int = 0  # places in a call that the factuals themselves take, whose labels are asked with the first points
    room: int = 0  # rows in the largest call, where it may have more than the option says


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything a strategy needs to explain some factuals together."""

    z: Matrix
    codes: Rows
    wanted: Mask  # factuals x classes: which labels to reach
    home: Rows  # the ball of each factual
    pairs: "Opposing"  # the balls that each factual is tried with
    balls: Balls
    features: Features
    options: Options
    n: int  # counterfactuals per factual
    rounds: Rows  # balls per factual to have tried after each round, nearest bound first; the last has no end
    label_of: LabelOf  # counted: what the budget does not allow has no label
    known: LabelOf  # what is remembered of points: UNKNOWN where nothing is
    ahead: Callable[..., bool]  # points that may be asked about soon, the factual of each, and how many are asked again
    places: int  # points that may be asked together at the price of one question
    afford: Callable[[Rows, int, int], Rows]  # how many per factual, what one costs, 1 part in so many -> how many
    ask: LabelOf  # the same with what the budget has set aside for the end
    ask_again: LabelOf  # counted, never from memory, whatever the rules
    is_allowed: Callable[[Matrix, Rows], Mask]
    knows_centers: bool
    nearest_members: Callable[[Pairs], Matrix] | None  # with a budget: the nearest row of each pair's ball
    plausible: Callable[[], tuple[Pairs, Matrix]]  # fitted rows all of whose neighbours have their label, the nearest
    snap: Snap
    share: Share
    ends: tuple[Matrix, Matrix]  # the lowest and the highest fitted value of each column
    seen: Callable[[int], Matrix]  # the fitted values of a feature, encoded
    reach: Reach
    spare: int = 0  # as `places` where there is no limit: also for what is less likely to be asked
    is_late: Callable[[], bool] = lambda: False  # whether the time of the call is up: nothing more is tried
    free: "Problem | None" = None  # the same problem without rules, where there are any


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


class Outcome(NamedTuple):
    """What a strategy found, and for which factuals it asked about every point that they may become."""

    found: Found
    is_proven: Mask


@dataclass(frozen=True)
class Strategy:
    """A way to solve a problem, and what it costs."""

    find: Callable[[Problem], "Outcome"]
    reserve: Callable[[Options], int]  # questions per counterfactual that are set aside for the end of `find`
    release: str  # what may be given up where the caller does not say
    ignores: tuple[str, ...]  # options that do nothing here
    is_readable: bool  # whether values are put on their readable grid before the model is asked
    is_distinct: bool  # whether counterfactuals of a row with the same values are repeats
