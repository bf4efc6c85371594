"""Which balls each factual is tried with, and in what order: Algorithm 3 lines 2, 3 and 15 to 20.

    Map, factuals and their labels  ->  opposing_pairs  ->  home balls, all balls, Pairs: the nearest of each first

A factual whose home ball has another label is cut out of that ball for its own search (docs/decisions/0011).
"""

import numpy as np

from onbmacf._balls.associate import home_balls
from onbmacf._balls.distance import distances, paired
from onbmacf._balls.geometry import Balls
from onbmacf._balls.recover import reach_of, recover
from onbmacf._base.arrays import Mask, Matrix, Rows, stack, take
from onbmacf._search.options import Options
from onbmacf._search.problem import Map, Pairs


def opposing_pairs(fitted: Map, options: Options, z: Matrix, codes: Rows, wanted: Mask) -> tuple[Rows, Balls, Pairs]:
    """Return each factual's home ball, all balls with those of re-covered homes behind, and the opposing balls.

    `codes` are the labels of the factuals, `wanted` says per factual and label whether it is one to reach.
    """
    balls, metric = fitted.balls, options.metric
    away = distances(z, balls.points, metric)
    home = home_balls(away, balls.radii, options.association, options.boundary)  # Algorithm 2
    gap = paired(z, balls.points[home], metric) - balls.radii[home]
    is_opposing = wanted[:, balls.labels]
    outside = np.flatnonzero(balls.labels[home] != codes)  # line 15
    is_opposing[outside, home[outside]] = False  # line 17
    recovered = [_recovered(fitted, options, z[line], int(home[line])) for line in outside]
    if len(outside):
        reach = reach_of(z[outside], codes[outside], fitted.Z, fitted.labels, metric)
        home[outside] = len(balls.radii) + np.arange(len(outside))  # line 19: a = i
        gap[outside] = -reach
        balls = stack([balls, Balls(z[outside], reach, codes[outside]), *recovered])  # line 18
    factual, ball = np.nonzero(is_opposing)
    away -= fitted.balls.radii
    pairs = Pairs(factual, ball, (away[is_opposing] - gap[factual]) / 2)
    factual = np.repeat(outside, np.array([len(own.radii) for own in recovered], dtype=np.intp))
    ball = np.arange(len(balls.radii) - len(factual), len(balls.radii))
    bound = (paired(z[factual], balls.points[ball], metric) - balls.radii[ball] - gap[factual]) / 2
    pairs = stack([pairs, take(Pairs(factual, ball, bound), wanted[factual, balls.labels[ball]])])
    return home, balls, take(pairs, np.lexsort((pairs.bound, pairs.factual)))  # ties stay in the order of balls


def _recovered(fitted: Map, options: Options, z: Matrix, home: int) -> Balls:
    """Line 16: the balls that replace the home ball of one factual."""
    rows = fitted.cover.members(home)
    chosen, radii = recover(z, fitted.Z[rows], fitted.cover.reach[rows], options.metric, options.competitors)
    return Balls(fitted.Z[rows[chosen]], radii, np.full(len(chosen), fitted.cover.labels[home]))
