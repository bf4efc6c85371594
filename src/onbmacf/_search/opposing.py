"""Which balls each factual is tried with, and in what order: Algorithm 3 lines 2, 3 and 15 to 20.

    z, codes, wanted  ->  opposing_pairs  ->  home balls, all balls, Opposing  ->  first  ->  the nearest pairs

Where there are many balls, an index finds the nearest of them; the order is that of the full list. A factual whose home
ball has another label is cut out of that ball for its own search (docs/decisions/0011).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from onbmacf._balls.associate import MANY_BALLS, home_balls
from onbmacf._balls.distance import distances, paired
from onbmacf._balls.geometry import Balls
from onbmacf._balls.kernels.compiled import are_compiled
from onbmacf._balls.recover import reach_of, recover
from onbmacf._base.arrays import Mask, Matrix, Rows, stack, take
from onbmacf._search.options import Options
from onbmacf._search.problem import Asked, Map, Pairs

if TYPE_CHECKING:
    from onbmacf._balls.kernels import NearestBalls

FIRST_ROUND = 128  # balls per factual in the first round of a best-first search
MOST_PAIRS = 1 << 17  # factual-ball pairs that are tried together
MOST_NUMBERS = 1 << 22  # encoded numbers of the pairs of a first round; beyond, single steps take long and much memory
LEAST_POINTS = 32  # that a factual has in one step, however few balls there are: the way back from its answers
MOST_LISTED = 1 << 19  # factual-ball pairs that are put in order together
MOST_FOUND = 1 << 21  # factual-ball pairs of which an index finds the nearest
NO_PAIRS = Pairs(np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp), np.empty(0))


@dataclass(frozen=True, eq=False)
class Opposing:
    """The opposing balls of each factual, looked for as they are needed."""

    sizes: Rows  # how many balls each factual has; 0 for one that is left out
    near: Callable[[Rows, int], Pairs]  # factuals, k -> pairs, with the k of the smallest bounds of each among them

    def only(self, kept: Mask) -> Opposing:
        """Leave out the factuals that are not kept."""
        return replace(self, sizes=np.where(kept, self.sizes, 0))

    def first(self, most: int) -> tuple[Pairs, Rows]:
        """Return the pairs of each factual by their bound, ties by ball, and the place of each: the first `most`."""
        return by_bound(self.near(np.flatnonzero(self.sizes), most), most)

    def every(self) -> Pairs:
        """Return all pairs, by factual and ball."""
        return self.near(np.flatnonzero(self.sizes), int(self.sizes.max(initial=0)))


def opposing_pairs(fitted: Map, options: Options, asked: Asked) -> tuple[Rows, Balls, Opposing]:
    """Return each factual's home ball, all balls with those of re-covered homes behind, and the opposing balls."""
    balls, z, codes = fitted.balls, asked.z, asked.codes
    home, away = _homes(fitted, options, z)
    gap = paired(z, balls.points[home], options.metric) - balls.radii[home]
    outside = np.flatnonzero(balls.labels[home] != codes)  # line 15
    replaced, added = np.full(len(z), -1), NO_PAIRS
    if len(outside):
        extra = [_overlay(fitted, options, z[line], int(home[line])) for line in outside]
        reach = reach_of(z[outside], codes[outside], fitted.Z, fitted.labels, options.metric)
        own = Balls(z[outside], reach, codes[outside])  # line 19: a = i
        gap[outside], replaced[outside] = -reach, home[outside]  # line 17
        home, balls, added = _with_overlays(home, balls, outside, own, extra, asked.wanted)
        gaps = paired(z[added.factual], balls.points[added.ball], options.metric) - balls.radii[added.ball]
        added = added._replace(bound=(gaps - gap[added.factual]) / 2)
    return home, balls, _opposing(fitted, asked, away, gap, replaced, added)


def _homes(fitted: Map, options: Options, z: Matrix) -> tuple[Rows, Matrix | None]:
    """Algorithm 2: the home ball of each factual; also the distances to all balls where there is no index of them."""
    balls, index = fitted.balls, fitted.ball_index
    if index is not None and (options.association, options.boundary) == ("surface", "surface"):
        return index.home(z), None
    away = distances(z, balls.points, options.metric)
    return home_balls(away, balls.radii, options.association, options.boundary), away if index is None else None


def _opposing(fitted: Map, asked: Asked, away: Matrix | None, gap: Matrix, replaced: Rows, added: Pairs) -> Opposing:
    """Return the opposing balls without those replaced and with those added; `gap` is the one to the home ball."""
    balls = fitted.balls
    wanted = np.zeros((len(gap), max(asked.wanted.shape[1], balls.labels.max() + 1)), dtype=bool)
    wanted[:, : asked.wanted.shape[1]] = asked.wanted  # a row taken into the map may have a label unseen in fit
    sizes = wanted @ np.bincount(balls.labels, minlength=wanted.shape[1])
    sizes -= (replaced >= 0) & wanted[np.arange(len(gap)), balls.labels[replaced]]
    sizes += np.bincount(added.factual, minlength=len(gap))
    if away is not None:
        find = _lister(balls, away, wanted, gap)
    else:
        find = partial(_found, fitted.ball_index, asked.z, wanted, gap)

    def near(factuals: Rows, most: int) -> Pairs:
        pairs = find(factuals, most + 1)  # one more: the ball that is replaced may be among them
        pairs = take(pairs, pairs.ball != replaced[pairs.factual])
        return _merged(pairs, take(added, np.isin(added.factual, factuals)))

    return Opposing(sizes, near)


def _lister(balls: Balls, away: Matrix, wanted: Mask, gap: Matrix) -> Callable[[Rows, int], Pairs]:
    """List all balls of wanted labels once; return the function that picks those of some factuals."""
    opposing = wanted[:, balls.labels]
    factual, ball = np.nonzero(opposing)
    away -= balls.radii
    every = Pairs(factual, ball, (away[opposing] - gap[factual]) / 2)

    def of(factuals: Rows, most: int) -> Pairs:
        return every if len(factuals) == len(gap) else take(every, np.isin(every.factual, factuals))

    return of


def _found(index: NearestBalls | None, z: Matrix, wanted: Mask, gap: Matrix, factuals: Rows, most: int) -> Pairs:
    """Return the nearest balls of wanted labels, by factual and ball."""
    assert index is not None, "without an index, all balls are listed"
    ball, bound = index.nearest(z[factuals], wanted[factuals], gap[factuals], most)
    line, place = np.nonzero(ball >= 0)
    pairs = Pairs(factuals[line], ball[line, place], bound[line, place])
    return take(pairs, np.lexsort((pairs.ball, pairs.factual)))


def _overlay(fitted: Map, options: Options, z: Matrix, home: int) -> Balls:
    """Line 16: the balls that replace the home ball of one factual."""
    rows = fitted.cover.members(home)
    own = (z, fitted.Z[rows], fitted.cover.reach[rows])
    chosen, radii = recover(*own, options.metric, options.competitors)
    return Balls(fitted.Z[rows[chosen]], radii, np.full(len(chosen), fitted.cover.labels[home]))


def _with_overlays(
    home: Rows, balls: Balls, outside: Rows, own: Balls, extra: list[Balls], wanted: Mask
) -> tuple[Rows, Balls, Pairs]:
    """Line 18: append the factuals' own balls, then the balls that replace their homes; also the pairs these make."""
    home = home.copy()
    home[outside] = len(balls.radii) + np.arange(len(outside))
    all_balls = stack([balls, own, *extra])
    first = len(balls.radii) + len(outside)
    owner = np.repeat(outside, np.array([len(part.radii) for part in extra], dtype=np.intp))
    added = first + np.arange(len(owner))
    reachable = wanted[owner, all_balls.labels[added]]
    return home, all_balls, Pairs(owner[reachable], added[reachable], np.zeros(reachable.sum()))


def _merged(pairs: Pairs, added: Pairs) -> Pairs:
    """Put pairs together in their order; the added balls come after all others."""
    if not len(added.factual):
        return pairs
    both = stack([pairs, added])
    return take(both, np.argsort(both.factual, kind="stable"))


def by_bound(pairs: Pairs, most: int | None = None) -> tuple[Pairs, Rows]:
    """Return the pairs of each factual by their bound, ties by ball, and the place of each; only the first `most`."""
    if most is not None:
        pairs = take(pairs, pairs.bound <= _nth_bounds(pairs, most)[pairs.factual])  # sorting takes longer than this
    pairs = take(pairs, np.lexsort((pairs.bound, pairs.factual)))
    place = np.arange(len(pairs.factual)) - np.searchsorted(pairs.factual, pairs.factual)
    if most is None:
        return pairs, place
    return take(pairs, place < most), place[place < most]


def _nth_bounds(pairs: Pairs, n: int) -> Matrix:
    """Return the n-th smallest bound of each factual; infinite where there are fewer."""
    sizes = np.bincount(pairs.factual)
    stops, nth = np.cumsum(sizes), np.full(len(sizes), np.inf)
    for factual in np.flatnonzero(sizes > n):
        bounds = pairs.bound[stops[factual] - sizes[factual] : stops[factual]]
        nth[factual] = np.partition(bounds, n - 1)[n - 1]
    return nth


def rounds_of(search: str, sizes: Rows) -> Rows:
    """Return how many balls per factual have been tried after each round: all at once, or 128, 384, 896, ..."""
    most = int(sizes.max(initial=1))
    if search == "exhaustive":
        return np.array([most])
    n_rounds = 1 + max(0, int(np.ceil(np.log2(most / FIRST_ROUND + 1))))
    return FIRST_ROUND * (2 ** np.arange(1, n_rounds + 1) - 1)


def chunks(n_factuals: int, n_balls: int, width: int, n_jobs: int = 1, search: str = "exhaustive") -> list[slice]:
    """Cut factuals into slices whose pairs fit in memory together, and at least one per job.

    A best-first search seldom goes beyond its first two rounds, so it may take more factuals at once. Of wide tables,
    and of many levels, which are a column each, there are fewer: Ctrl-C is heard between steps, not within one.
    """
    n_tried = n_balls if search == "exhaustive" else min(n_balls, 4 * FIRST_ROUND)
    has_index = n_balls > MANY_BALLS and are_compiled()
    listed = MOST_FOUND if search != "exhaustive" and has_index else MOST_LISTED
    n_first = max(LEAST_POINTS, n_balls if search == "exhaustive" else min(n_balls, FIRST_ROUND))
    most = min(MOST_PAIRS // max(1, n_tried), listed // max(1, n_balls), MOST_NUMBERS // (n_first * width))
    step = max(1, min(most, -(-n_factuals // n_jobs)))
    return [slice(start, min(start + step, n_factuals)) for start in range(0, n_factuals, step)]
