"""Which balls each factual is tried with, and in what order: Algorithm 3 lines 2, 3 and 15 to 20.

    z, codes, wanted  ->  opposing_pairs  ->  home balls, all balls, Pairs  ->  by_bound  ->  the nearest first

A factual whose home ball has another label is cut out of that ball for its own search (docs/decisions/0011).
"""

import numpy as np

from onbmacf._balls.associate import home_balls
from onbmacf._balls.distance import distances, paired
from onbmacf._balls.geometry import Balls
from onbmacf._balls.recover import reach_of, recover
from onbmacf._base.arrays import Mask, Matrix, Rows, stack, take
from onbmacf._search.options import Options
from onbmacf._search.problem import Asked, Map, Pairs

FIRST_ROUND = 128  # balls per factual in the first round of a best-first search
MOST_PAIRS = 1 << 17  # factual-ball pairs that are tried together
MOST_LISTED = 1 << 19  # factual-ball pairs that are put in order together


def opposing_pairs(fitted: Map, options: Options, asked: Asked) -> tuple[Rows, Balls, Pairs]:
    """Return each factual's home ball, all balls with those of re-covered homes behind, and the opposing pairs."""
    balls, z, codes = fitted.balls, asked.z, asked.codes
    away = distances(z, balls.points, options.metric)
    home = home_balls(away, balls.radii, options.association, options.boundary)
    is_known = balls.labels < asked.wanted.shape[1]  # a row taken into the map may have a label unseen in fit
    opposing = asked.wanted[:, np.where(is_known, balls.labels, 0)] & is_known
    outside = np.flatnonzero(balls.labels[home] != codes)  # line 15
    opposing[outside, home[outside]] = False  # line 17
    extra = [_overlay(fitted, options, z[line], int(home[line])) for line in outside]
    reach = reach_of(z[outside], codes[outside], fitted.Z, fitted.labels, options.metric)
    own = Balls(z[outside], reach, codes[outside])  # line 19: a = i
    away -= balls.radii
    at_home = away[np.arange(len(z)), home]
    at_home[outside] = -reach
    factual, ball = np.nonzero(opposing)
    pairs = Pairs(factual, ball, (away[opposing] - at_home[factual]) / 2)
    home, balls, added = _with_overlays(home, balls, outside, own, extra, asked.wanted)
    gaps = paired(z[added.factual], balls.points[added.ball], options.metric) - balls.radii[added.ball]
    added = added._replace(bound=(gaps - at_home[added.factual]) / 2)
    return home, balls, _merged(pairs, added)


def _overlay(fitted: Map, options: Options, z: Matrix, home: int) -> Balls:
    """Line 16: the balls that replace the home ball of one factual."""
    rows = fitted.cover.members(home)
    chosen, radii = recover(z, fitted.Z[rows], fitted.cover.reach[rows], options.metric, options.competitors)
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


def places(factual: Rows, score: Matrix) -> Rows:
    """Return per line how many of the same factual come before it, by score and then as they stand."""
    order = np.lexsort((score, factual))
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order)) - np.searchsorted(factual[order], factual[order])
    return place


def rounds_of(search: str, pairs: Pairs) -> Rows:
    """Return how many balls per factual have been tried after each round: all at once, or 128, 384, 896, ..."""
    most = int(np.bincount(pairs.factual).max(initial=1))
    if search == "exhaustive":
        return np.array([most])
    n_rounds = 1 + max(0, int(np.ceil(np.log2(most / FIRST_ROUND + 1))))
    return FIRST_ROUND * (2 ** np.arange(1, n_rounds + 1) - 1)


def chunks(n_factuals: int, n_balls: int, n_jobs: int = 1, search: str = "exhaustive") -> list[slice]:
    """Cut factuals into slices whose pairs fit in memory together, and at least one per job.

    A best-first search seldom goes beyond its first two rounds, so it may take more factuals at once.
    """
    n_tried = n_balls if search == "exhaustive" else min(n_balls, 4 * FIRST_ROUND)
    most = min(MOST_PAIRS // max(1, n_tried), MOST_LISTED // max(1, n_balls))
    step = max(1, min(most, -(-n_factuals // n_jobs)))
    return [slice(start, min(start + step, n_factuals)) for start in range(0, n_factuals, step)]
