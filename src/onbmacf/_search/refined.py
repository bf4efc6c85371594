"""The refined strategy: many balls, two ways to reduce, the best points tightened, the best and most different kept.

    opposing balls -> propose -> pool (different sets of changed features first) -> tighten -> choose -> Lines

Same map, same order of stages as the paper's Algorithm 3; what differs is what happens after the reduction
(docs/decisions/0025-refined-strategy.md). All factuals of a chunk move together.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.distance import Matrix, Metric, paired
from onbmacf._balls.geometry import Balls
from onbmacf._search.pairs import (
    Features,
    LabelOf,
    Pairs,
    by_bound,
    cut_changes,
    few_enough,
    keeper,
    only,
    passes,
    places,
    project,
)
from onbmacf._search.tighten import Snap, shrink_segment, tighten, undo_all
from onbmacf.explanation import Relaxation

Rows = NDArray[np.intp]
Plausible = Callable[[Matrix, Rows], Matrix]  # points, labels -> share of their neighbours with that label

REDUCED = 32  # projected centres per factual, the nearest, that are reduced; all of them at the end of the dial
POOL = 16  # reduced points per factual that are looked at again
OTHER = 4  # of these, points that are also reduced in the other order
TIGHT = 4  # points that are tightened
PLAUSIBLE = 12  # points that are tightened at the end of the dial, where few can be made plausible enough
FIRST_HALVINGS = 3  # along the segment, of every point in the pool: which to tighten shows only then
SPARSITY = 0.03  # what one more changed feature costs in the ranking, in units of distance
PRICE = 0.3  # distance that full plausibility is worth at half the dial
SHARES = (0.25, 0.5, 0.75)  # places between a tightened point and where it came from that are looked at, too
SAME = 12  # decimals in which two points that are one for the caller agree
OVERLAP = 1.0  # what it costs to change the same features as a counterfactual chosen before


class Lines(NamedTuple):
    """Accepted points: whose they are, which ball they come from, and what was given up."""

    factual: Rows
    ball: Rows
    label: Rows
    point: Matrix
    whole: Matrix  # the projected centre the point was reduced from
    relaxation: Rows


@dataclass(frozen=True, eq=False)
class Wish:
    """What a counterfactual should be like."""

    n: int
    metric: Metric
    plausibility: float
    rounds: Rows
    afford: Callable[[Rows], Rows]


def better_points(
    z: Matrix,
    pairs: Pairs,
    balls: Balls,
    features: Features,
    label_of: LabelOf,
    snap: Snap,
    plausible: Plausible,
    wish: Wish,
) -> Lines:
    """Return up to n counterfactuals per factual, the best first."""
    pool = _pool(z, propose(z, pairs, balls, features, label_of, wish), features, label_of, wish.metric)
    if wish.plausibility == 1.0:
        found = _most_plausible(z, pool, features, label_of, snap, plausible, wish.metric)
    else:
        found = _nearest(z, pool, features, label_of, snap, wish)
    return choose(z, _unique(_stack(*found, pool)), features, plausible, wish)


def _pool(z: Matrix, proposed: Lines, features: Features, label_of: LabelOf, metric: Metric) -> Lines:
    """Keep the best points, reduce some in the other order, too, and leave no change that can be undone."""
    too_many = ~few_enough(z[proposed.factual], proposed.point, features)
    best = _at(proposed, pool_of(z, proposed, features, metric, POOL, too_many))
    few = _at(best, pool_of(z, best, features, metric, OTHER))
    other = cut_changes(z[few.factual], few.whole, features, _has_label(few, label_of), largest_first=True)
    pool = _unique(_stack(best, few._replace(point=other)))
    return pool._replace(point=undo_all(z[pool.factual], pool.point, features, _has_label(pool, label_of)))


def _nearest(z: Matrix, pool: Lines, features: Features, label_of: LabelOf, snap: Snap, wish: Wish) -> list[Lines]:
    """Pull the pool towards the factuals, tighten the best, and look at places on the way there.

    Only the model is asked. What the neighbours say is seen when all places are compared: farther along the same
    way more of them have the label, so the front from nearest to most plausible needs no search of its own.
    """
    start, holds = z[pool.factual], _has_label(pool, label_of)
    point = shrink_segment(start, pool.point, holds, snap, FIRST_HALVINGS)
    closer = pool._replace(point=undo_all(start, point, features, holds))
    picked = pool_of(z, closer, features, wish.metric, TIGHT)
    near, far = _at(closer, picked), _at(pool, picked)
    tight = near._replace(point=tighten(z[near.factual], near.point, features, _has_label(near, label_of), snap))
    on_the_way = [_between(z, tight, far, share, label_of, snap) for share in SHARES] if wish.plausibility > 0 else []
    return [tight, closer, *on_the_way]


def _between(z: Matrix, near: Lines, far: Lines, share: float, label_of: LabelOf, snap: Snap) -> Lines:
    """Return the points at a share of the way from near to far that hold."""
    point = snap(near.point + share * (far.point - near.point), z[near.factual], far.point)
    holds = _has_label(near, label_of)(point, np.arange(len(point)))
    return _at(near._replace(point=point), np.flatnonzero(holds))


def _most_plausible(
    z: Matrix, pool: Lines, features: Features, label_of: LabelOf, snap: Snap, plausible: Plausible, metric: Metric
) -> list[Lines]:
    """Tighten the best points while all their neighbours have the label."""
    behind = _hopeless(pool, plausible, 1.0)
    best = _at(pool, pool_of(z, pool, features, metric, PLAUSIBLE, behind))
    goals = more_plausible(z, best, features, label_of, plausible, 1.0)
    return [_tightened(z, goals, features, label_of, snap, plausible, 1.0), goals]


def propose(z: Matrix, pairs: Pairs, balls: Balls, features: Features, label_of: LabelOf, wish: Wish) -> Lines:
    """Project and reduce the nearest balls; more of them, then released immutables, for a factual without a point."""
    found: list[Lines] = []
    for step, relaxation in enumerate(passes(features)):
        if relaxation is Relaxation.PROJECTION:
            continue  # balls say where to go; whether a projected centre stays inside its ball is not asked here
        is_open, tried = np.ones(len(z), dtype=bool), 0
        for last in wish.rounds:
            near, place = by_bound(only(pairs, is_open[pairs.factual]), int(last))
            near, place = only(near, place >= tried), place[place >= tried]
            size = wish.afford(np.bincount(near.factual, minlength=len(z)))
            now = only(near, place < tried + size[near.factual])
            kept, whole = project(z, now, balls, features, label_of, relaxation)
            if wish.plausibility < 1.0 and features.max_changes is None:
                is_near = places(kept.factual, paired(z[kept.factual], whole, wish.metric)) < REDUCED
                kept, whole = only(kept, is_near), whole[is_near]
            goal = cut_changes(z[kept.factual], whole, features, keeper(kept, balls, label_of))
            relaxed = np.full(len(goal), step, dtype=np.intp)
            found.append(Lines(kept.factual, kept.ball, balls.labels[kept.ball], goal, whole, relaxed))
            is_open[kept.factual[few_enough(z[kept.factual], goal, features)]], tried = False, int(last)
            if not is_open[pairs.factual].any():
                break
        pairs = only(pairs, is_open[pairs.factual])
    lines = _stack(*found)
    return _at(lines, np.argsort(lines.factual, kind="stable"))


def _hopeless(lines: Lines, plausible: Plausible, least: float) -> NDArray[np.bool_]:
    """Say which lines are plausible enough neither as they are nor unreduced."""
    hopeless = plausible(lines.point, lines.label) < least
    hopeless[hopeless] = plausible(lines.whole[hopeless], lines.label[hopeless]) < least
    return hopeless


def pool_of(
    z: Matrix,
    lines: Lines,
    features: Features,
    metric: Metric,
    most: int,
    last: NDArray[np.bool_] | None = None,
) -> Rows:
    """Return the most promising lines of each factual: the best of each set of changed features first; `last` last."""
    score = _scores(z, lines, features, metric)
    changed = _changed(z, lines, features)
    key = changed @ (2.0 ** np.arange(changed.shape[1])) if changed.shape[1] < 53 else _set_numbers(changed)
    by_set = np.lexsort((lines.ball, score, key, lines.factual))
    turn = np.empty(len(by_set), dtype=np.intp)  # how many lines of the same factual and set are better
    first = np.r_[True, (np.diff(lines.factual[by_set]) != 0) | (np.diff(key[by_set]) != 0)][: len(by_set)]
    group = np.maximum.accumulate(np.where(first, np.arange(len(by_set)), 0))
    turn[by_set] = np.arange(len(by_set)) - group
    behind = np.zeros(len(turn), dtype=bool) if last is None else last
    order = np.lexsort((lines.ball, score, turn, behind, lines.factual))
    rank = np.arange(len(order)) - np.searchsorted(lines.factual[order], lines.factual[order])
    return order[rank < most]


def more_plausible(
    z: Matrix, pool: Lines, features: Features, label_of: LabelOf, plausible: Plausible, least: float
) -> Lines:
    """Replace points that are not plausible enough by less reduced ones that are.

    A factual none of whose points can be made plausible enough keeps them all: plausibility gives way before
    anything else does.
    """
    poor = np.flatnonzero(plausible(pool.point, pool.label) < least)
    mended = poor[plausible(pool.whole[poor], pool.label[poor]) >= least]
    part = _at(pool, mended)
    keeps = _accepts(part, label_of, plausible, least)
    point = pool.point.copy()
    point[mended] = cut_changes(z[part.factual], part.whole, features, keeps)
    is_good = np.ones(len(pool.factual), dtype=bool)
    is_good[np.setdiff1d(poor, mended)] = False
    hopeless = ~np.isin(pool.factual, pool.factual[is_good])
    return _at(pool._replace(point=point), np.flatnonzero(is_good | hopeless))


def _tightened(
    z: Matrix, lines: Lines, features: Features, label_of: LabelOf, snap: Snap, plausible: Plausible, least: float
) -> Lines:
    """Tighten lines at a level of plausibility, or at their own where they do not reach it."""
    own = np.minimum(plausible(lines.point, lines.label), least)
    return lines._replace(
        point=tighten(z[lines.factual], lines.point, features, _accepts(lines, label_of, plausible, own), snap)
    )


def choose(z: Matrix, lines: Lines, features: Features, plausible: Plausible, wish: Wish) -> Lines:
    """Pick n per factual: the lowest score first, each later one penalised for changing what earlier ones change.

    The k-th choice does not depend on n: the first k of n + 1 are the first k of n.
    """
    lines = _at(lines, np.flatnonzero(few_enough(z[lines.factual], lines.point, features)))
    changed, score = _changed(z, lines, features), _scores(z, lines, features, wish.metric)
    if wish.plausibility > 0:
        score = _priced(lines, score, plausible, wish)
    picked: list[Rows] = []
    penalty, free = np.zeros(len(score)), np.ones(len(score), dtype=bool)
    for _ in range(wish.n):
        best = _best_per_factual(lines.factual, np.where(free, score + penalty, np.inf))
        if not len(best):
            break
        picked.append(best)
        free[best] = False
        taken = np.zeros((len(z), changed.shape[1]), dtype=bool)
        taken[lines.factual[best]] = changed[best]
        both = (changed & taken[lines.factual]).sum(axis=1)
        either = np.maximum(1, (changed | taken[lines.factual]).sum(axis=1))
        penalty = np.maximum(penalty, OVERLAP * both / either)
    rows = np.concatenate(picked) if picked else np.empty(0, dtype=np.intp)
    order = np.argsort(lines.factual[rows], kind="stable")
    return _at(lines, rows[order])


def _priced(lines: Lines, score: Matrix, plausible: Plausible, wish: Wish) -> Matrix:
    """Add to the scores what the neighbours cost, the lowest scores first; infinite for lines out of the running.

    Out of the running is a line that, with all neighbours in its favour, is still behind n lines that were looked at:
    it cannot be chosen, so its neighbours need no look.
    """
    price, slack = price_of(wish.plausibility), OVERLAP if wish.n > 1 else 0.0
    place = places(lines.factual, score)
    total, limit = np.full(len(score), np.inf), np.full(lines.factual.max(initial=-1) + 1, np.inf)
    tried, size = 0, 8 + wish.n
    while tried <= place.max(initial=-1):
        now = np.flatnonzero((place >= tried) & (place < tried + size) & (score <= limit[lines.factual]))
        total[now] = score[now] + price * (1.0 - plausible(lines.point[now], lines.label[now]))
        nth = np.flatnonzero(places(lines.factual, total) == wish.n - 1)
        limit[lines.factual[nth]] = total[nth] + slack
        tried, size = tried + size, 2 * size
    return total


def price_of(dial: float) -> float:
    """Return what a point may be farther for the sake of all its neighbours: nothing at 0, anything at 1."""
    return 1e6 if dial == 1.0 else PRICE * dial / (1.0 - dial)


def _best_per_factual(factual: Rows, score: Matrix) -> Rows:
    return np.flatnonzero((places(factual, score) == 0) & np.isfinite(score))


def _scores(z: Matrix, lines: Lines, features: Features, metric: Metric) -> Matrix:
    return paired(z[lines.factual], lines.point, metric) + SPARSITY * _changed(z, lines, features).sum(axis=1)


def _changed(z: Matrix, lines: Lines, features: Features) -> NDArray[np.bool_]:
    return np.logical_or.reduceat(lines.point != z[lines.factual], features.starts, axis=1)


def _set_numbers(changed: NDArray[np.bool_]) -> Matrix:
    return np.unique(changed, axis=0, return_inverse=True)[1].reshape(-1).astype(np.float64)


def _has_label(lines: Lines, label_of: LabelOf) -> Callable[[Matrix, Rows], NDArray[np.bool_]]:
    return lambda points, some: label_of(points, lines.factual[some]) == lines.label[some]


def _accepts(
    lines: Lines, label_of: LabelOf, plausible: Plausible, least: float | Matrix
) -> Callable[[Matrix, Rows], NDArray[np.bool_]]:
    """Return the test: the model says the label, and enough neighbours do. Neighbours are asked only of the rest."""
    level = np.broadcast_to(np.asarray(least, dtype=np.float64), len(lines.factual))

    def test(points: Matrix, some: Rows) -> NDArray[np.bool_]:
        holds = label_of(points, lines.factual[some]) == lines.label[some]
        holds[holds] = plausible(points[holds], lines.label[some[holds]]) >= level[some[holds]]
        return holds

    return test


def _at(lines: Lines, rows: Rows) -> Lines:
    return Lines(
        lines.factual[rows],
        lines.ball[rows],
        lines.label[rows],
        lines.point[rows],
        lines.whole[rows],
        lines.relaxation[rows],
    )


def _stack(*parts: Lines) -> Lines:
    factual, ball, label, point, whole, relaxation = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Lines(factual, ball, label, point, whole, relaxation)


def _unique(lines: Lines) -> Lines:
    """Drop points of a factual that repeat one before, and keep the factuals together."""
    table = np.column_stack([lines.factual, np.round(lines.point, SAME)]) + 0.0  # no negative zeros: bytes are compared
    _, first = np.unique(table.view(f"V{table.shape[1] * table.itemsize}").ravel(), return_index=True)
    rows = np.sort(first)
    return _at(lines, rows[np.argsort(lines.factual[rows], kind="stable")])
