"""Points in the midst of their label, for `plausibility=1`: the pool's own, and fitted rows that are known to be.

    pool  ->  most_plausible  ->  points tightened while all their neighbours have the label
    Map, factuals  ->  nearest_plausible  ->  fitted rows of that kind, the nearest  ->  plausible_rows  ->  the same

A fitted row with the factual's immutable values can be returned as it is, so where there is one, full plausibility is
always reached; others are tried with the factual's values put in (docs/decisions/0053-nearer-still.md).
"""

import numpy as np

from onbmacf._balls.distance import distances
from onbmacf._balls.metrics import Metric
from onbmacf._base.arrays import Mask, Matrix, Rows, take
from onbmacf._base.enums import Relaxation
from onbmacf._search.asking import asking_for, is_plausible
from onbmacf._search.cut import cut_changes
from onbmacf._search.nearer import tightened
from onbmacf._search.problem import Features, Map, Pairs, Problem
from onbmacf._search.ranking import Points, promising
from onbmacf._search.reduce import projected, viable
from onbmacf._search.tighten import HALVINGS, Segment

PLAUSIBLE = 12  # points that are tightened at plausibility=1, where few can be made plausible enough
SAME = 4  # fitted rows with the factual's immutable values
OTHERS = 8  # fitted rows with other immutable values
LOOKED_AT = 256  # of those with other values, the nearest that are looked at


def most_plausible(problem: Problem, pool: Points) -> list[Points]:
    """Tighten the best points while all their neighbours have the label, or as many as at the start."""
    never = problem.share(pool.point, pool.label) < 1.0
    never[never] = problem.share(pool.whole[never], pool.label[never]) < 1.0  # neither as they are nor unreduced
    best = take(pool, promising(problem, pool, PLAUSIBLE, never))
    goals = more_plausible(problem, best, 1.0)
    own = np.minimum(problem.share(goals.point, goals.label), 1.0)
    asking = asking_for(problem, goals, is_plausible(problem, goals, own))
    return [tightened(problem, goals, asking, Segment.of(goals.point, 2**HALVINGS)), goals]


def plausible_rows(problem: Problem) -> list[Points]:
    """Reduce and tighten fitted rows, all of whose neighbours have their label, while that stays so."""
    pairs, rows = problem.plausible()
    is_open = problem.pairs.sizes[pairs.factual] > 0
    centers = projected(problem, take(pairs, is_open), Relaxation.PROJECTION, rows[is_open])
    pairs, whole = viable(problem, centers)
    nothing = np.zeros(len(whole), dtype=np.intp)
    points = Points(pairs.factual, pairs.ball, problem.balls.labels[pairs.ball], whole, whole, nothing)
    points = take(points, np.flatnonzero(problem.share(whole, points.label) == 1.0))
    asking = asking_for(problem, points, is_plausible(problem, points, np.ones(len(points.factual))))
    goals = points._replace(point=cut_changes(problem.z[points.factual], points.whole, problem.features, asking))
    return [tightened(problem, goals, asking, Segment.of(goals.point, 2**HALVINGS)), goals, points]


def more_plausible(problem: Problem, pool: Points, least: float) -> Points:
    """Replace points that are not plausible enough by less reduced ones that are.

    A factual none of whose points can be made plausible enough keeps them all: plausibility gives way before
    anything else does.
    """
    poor = np.flatnonzero(problem.share(pool.point, pool.label) < least)
    fixed = poor[problem.share(pool.whole[poor], pool.label[poor]) >= least]
    part = take(pool, fixed)
    keeps = asking_for(problem, part, is_plausible(problem, part, np.full(len(fixed), least)))
    point = pool.point.copy()
    point[fixed] = cut_changes(problem.z[part.factual], part.whole, problem.features, keeps)
    is_good = np.ones(len(pool.factual), dtype=bool)
    is_good[np.setdiff1d(poor, fixed)] = False
    has_none = ~np.isin(pool.factual, pool.factual[is_good])
    return take(pool._replace(point=point), np.flatnonzero(is_good | has_none))


def nearest_plausible(fitted: Map, features: Features, metric: Metric, z: Matrix, wanted: Mask) -> tuple[Pairs, Matrix]:
    """Return the nearest plausible rows of wanted labels per factual, in the features that may change."""
    found = [_of_factual(fitted, features, metric, own, labels) for own, labels in zip(z, wanted, strict=True)]
    rows = np.concatenate([np.empty(0, dtype=np.intp), *found])
    factual = np.repeat(np.arange(len(z)), [len(own) for own in found])
    return Pairs(factual, fitted.cover.owner[rows], np.zeros(len(rows))), fitted.Z[rows]


def _of_factual(fitted: Map, features: Features, metric: Metric, z: Matrix, wanted: Mask) -> Rows:
    """Return the nearest plausible rows of one factual: with its immutable values, and with others."""
    is_wanted = np.zeros(max(len(wanted), int(fitted.labels.max()) + 1), dtype=bool)
    is_wanted[: len(wanted)] = wanted
    rows = np.flatnonzero(is_wanted[fitted.labels])
    Z = features.with_held(np.broadcast_to(z, (len(rows), len(z))), fitted.Z[rows])
    order = np.argsort(distances(z[np.newaxis], Z, metric)[0], kind="stable")
    rows = rows[order]
    is_same = (Z[order] == fitted.Z[rows]).all(axis=1)
    same, others = _first(fitted, rows[is_same], SAME), _first(fitted, rows[~is_same][:LOOKED_AT], OTHERS)
    return np.sort(np.concatenate([same, others]))


def _first(fitted: Map, rows: Rows, most: int) -> Rows:
    """Return the first plausible ones among some rows."""
    found, tried, size = rows[:0], 0, 4 * most
    while tried < len(rows) and len(found) < most:
        some = rows[tried : tried + size]
        is_plausible = fitted.share(fitted.Z[some], fitted.labels[some]) == 1.0
        found, tried, size = np.concatenate([found, some[is_plausible]]), tried + size, 2 * size
    return found[:most]
