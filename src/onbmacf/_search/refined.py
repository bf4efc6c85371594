"""The refined strategy: many balls, two ways to reduce, the best points tightened, the best and most different kept.

    opposing balls -> propose -> pool (different sets of changed features first) -> tighten -> choose -> Outcome

The same map and the same order of stages as the paper's Algorithm 3; what differs is what happens after the reduction
(docs/decisions/0025-refined-strategy.md). All factuals of a chunk move together.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from onbmacf._balls.distance import paired
from onbmacf._base.arrays import Mask, Matrix, Rows, stack, take
from onbmacf._base.enums import Relaxation
from onbmacf._search.joint import all_joint, seen_values
from onbmacf._search.pairs import Opposing, places
from onbmacf._search.problem import Asking, Features, Found, Outcome, Pairs, Problem, Strategy
from onbmacf._search.ranking import Points, choose, promising, unique
from onbmacf._search.reduce import (
    FEW,
    PASSES,
    Projected,
    cut_changes,
    few_enough,
    first_cuts,
    n_changed,
    projected,
    viable,
)
from onbmacf._search.tighten import HALVINGS, Segment, ask_ahead, shrink_features, shrink_segment
from onbmacf._search.undo import undo_changes, undone_alone
from onbmacf._search.walk import look_back

FEW_JOINT = 512  # combinations of values that are asked about at once, instead of a search
MOST_JOINT = 1 << 14  # combinations that are asked about when a search finds nothing
REDUCED = 30  # projected centres per factual, the nearest, that are reduced; all of them at plausibility=1
POOL = 20  # reduced points per factual that are looked at again
OTHER = 12  # of the nearest projected centres that are also reduced in the other order
TIGHT = 5  # points that are tightened
PROJECTIONS = 3  # one part in so many of what a budget has left is for projected centres
REDUCTIONS = 2  # and of what is then left, for reducing them
PLAUSIBLE = 12  # points that are tightened at plausibility=1, where few can be made plausible enough
ENOUGH = 8  # points of a factual, at least, before those with many changes are left out
FIRST_HALVINGS = 3  # along the segment, of every point in the pool: only then it shows which to tighten
Holds = Callable[[Matrix, Rows], Mask]  # points, lines -> which are accepted
SHARES = (0.25, 0.5, 0.75)  # places between a tightened point and where it came from that are looked at, too


def find(problem: Problem) -> Outcome:
    """Return up to n counterfactuals per factual, the best first.

    Factuals with few allowed combinations of values are asked about all of them. Those for which the balls lead
    nowhere get more: larger numbers of combinations, then values seen in the table.
    """
    every = np.arange(len(problem.z))
    points, is_proven = all_joint(problem, every, FEW_JOINT)
    points.append(candidates(replace(problem, pairs=problem.pairs.only(~is_proven))))
    more, is_late = all_joint(problem, _open(problem, points, is_proven), MOST_JOINT)
    is_proven |= is_late
    points += more
    points += seen_values(problem, _open(problem, points, is_proven))
    by_distance = is_proven & (problem.options.plausibility == 0)
    chosen = choose(problem, unique(stack(points)), by_distance)
    back = look_back(problem, chosen.factual, chosen.point, chosen.label)
    found = Found(chosen.factual, chosen.ball, chosen.label, chosen.relaxation, chosen.point, *back)
    return Outcome(found, is_proven)


def _open(problem: Problem, points: list[Points], is_proven: Mask) -> Rows:
    """Return the factuals that have neither an allowed point nor a proof that there is none."""
    every = stack(points)
    allowed = few_enough(problem.z[every.factual], every.point, problem.features)
    return np.setdiff1d(np.flatnonzero(~is_proven), every.factual[allowed])


def candidates(problem: Problem) -> Points:
    """Return the points that compete.

    The same question without its rules is asked first. A factual whose best answer there keeps the rules gets that
    answer, so a rule never makes an answer farther than it must be; the others are searched again with the rules.
    """
    if problem.free is None:
        return _from_balls(problem)
    loose = replace(problem.free, pairs=problem.pairs, n=1)
    free = _from_balls(loose)
    holds = _has_label(problem, free)(free.point, np.arange(len(free.factual)))
    holds &= few_enough(problem.z[free.factual], free.point, problem.features)
    best = choose(loose, free, np.zeros(len(problem.z), dtype=bool))
    keeps = few_enough(problem.z[best.factual], best.point, problem.features)
    keeps[keeps] = _has_label(problem, take(best, keeps))(best.point[keeps], np.arange(keeps.sum()))
    rest = ~np.isin(np.arange(len(problem.z)), best.factual[keeps])
    ruled = _from_balls(replace(problem, pairs=problem.pairs.only(rest)))
    return stack([take(free, np.flatnonzero(holds)), ruled])


def _from_balls(problem: Problem) -> Points:
    """Return the points that the opposing balls lead to.

    All points of a lower plausibility compete at a higher one, so a row's answer never gets less plausible.
    """
    pool = _pool(problem, propose(problem, problem.features.max_changes is not None))
    parts = [*_nearest(problem, pool), pool]
    if problem.options.plausibility == 1.0:
        pool = _pool(problem, propose(problem, every_center=True), keeps_many=True)
        parts += [*_most_plausible(problem, pool), pool]
    return unique(stack(parts))


def propose(problem: Problem, every_center: bool = False) -> Points:
    """Project and reduce the nearest balls; more of them for a factual without a point."""
    z, pairs = problem.z, problem.pairs
    found, is_open, tried = [], np.ones(len(z), dtype=bool), 0
    for last in problem.rounds:
        now = _due(problem, pairs, tried, int(last))
        points = _reduced(problem, now, every_center)
        found.append(points)
        enough = few_enough(z[points.factual], points.point, problem.features)
        is_open[points.factual[enough]], tried = False, int(last)
        pairs = pairs.only(is_open)
        if not pairs.sizes.any():
            break
    every = stack(found)
    return take(every, np.argsort(every.factual, kind="stable"))


def _due(problem: Problem, pairs: Opposing, tried: int, last: int) -> Pairs:
    """Return the pairs of this round: by their bound, from place `tried` to `last`, as far as the budget allows."""
    near, place = pairs.first(last)
    near, place = take(near, place >= tried), place[place >= tried]
    size = problem.afford(np.bincount(near.factual, minlength=len(problem.z)), 1, PROJECTIONS)
    return take(near, place < tried + size[near.factual])


def _reduced(problem: Problem, pairs: Pairs, every_center: bool) -> Points:
    """Project some pairs, and undo the changes that are not needed: of all centres, or of the nearest ones.

    With a budget, the nearest row of each ball takes the place of its centre: it is a shorter way to go.

    The largest changes are undone first, which leaves near points; from the very nearest centres also the smallest.
    """
    nearest = None if problem.nearest_members is None else problem.nearest_members(pairs)
    centers = projected(problem, pairs, Relaxation.PROJECTION, nearest)
    _ask_about(problem, centers, every_center)
    points, largest_first = _lines(problem, *viable(problem, centers), every_center)
    start, asking = problem.z[points.factual], _asking(problem, points)
    return points._replace(point=cut_changes(start, points.whole, problem.features, asking, largest_first))


def _lines(problem: Problem, pairs: Pairs, whole: Matrix, every_center: bool) -> tuple[Points, Mask]:
    """Return the projected centres to be reduced, and which of them lose their largest changes first."""
    place = places(pairs.factual, paired(problem.z[pairs.factual], whole, problem.options.metric))
    wanted = np.bincount(pairs.factual[place < (np.inf if every_center else REDUCED)], minlength=len(problem.z))
    most = problem.afford(wanted, _per_line(problem.features), REDUCTIONS)
    near = np.flatnonzero(place < most[pairs.factual])
    n_other = np.where(most < wanted, 0, OTHER)
    lines = np.concatenate([near, np.flatnonzero(place < n_other[pairs.factual])])
    pairs, whole = take(pairs, lines), whole[lines]
    nothing = np.zeros(len(lines), dtype=np.intp)  # immutables are held here: Relaxation.NONE
    points = Points(pairs.factual, pairs.ball, problem.balls.labels[pairs.ball], whole, whole, nothing)
    return points, np.arange(len(lines)) < len(near)


def _per_line(features: Features) -> int:
    """Return about how many questions a projected centre takes: halving the number of changes, a few times."""
    return PASSES * int(np.ceil(np.log2(len(features.starts) + 1)))


def _ask_about(problem: Problem, centers: Projected, every_center: bool) -> None:
    """Ask about projected centres together with what is asked next if all of them are viable."""
    rest = np.flatnonzero(~centers.is_known)
    if not len(rest) or len(rest) >= problem.places:
        return
    points, largest_first = _lines(problem, centers.pairs, centers.points, every_center)
    room = problem.places - len(rest)
    cuts, line = first_cuts(problem.z[points.factual], points.whole, problem.features, room, largest_first)
    asked = np.concatenate([centers.points[rest], cuts])
    problem.ahead(asked, np.concatenate([centers.pairs.factual[rest], points.factual[line]]))


def _pool(problem: Problem, proposed: Points, keeps_many: bool = False) -> Points:
    """Keep the best points, and leave no change that can be undone.

    Unless `keeps_many`, a point with many changes is kept only where a factual has not enough others: undoing one by
    one takes many questions, and such a point seldom wins.
    """
    features, start = problem.features, problem.z[proposed.factual]
    is_many = (n_changed(start, proposed.point, features) > FEW) & (not keeps_many)
    too_many = ~few_enough(start, proposed.point, features)
    best = promising(problem, proposed, POOL, too_many | is_many)
    place = np.arange(len(best)) - np.searchsorted(proposed.factual[best], proposed.factual[best])
    pool = unique(take(proposed, best[~is_many[best] | (place < ENOUGH)]))
    start, asking = problem.z[pool.factual], _asking(problem, pool)
    ask_ahead(start, pool.point, features, asking, problem.snap, FIRST_HALVINGS)
    return pool._replace(point=undo_changes(start, pool.point, features, asking))


def _nearest(problem: Problem, pool: Points) -> list[Points]:
    """Pull the pool towards the factuals, tighten the best, and look at places on the way there.

    Only the model is asked. What the neighbours say is seen when all places are compared: farther along the same
    way more of them have the label, so the front from nearest to most plausible needs no search of its own.
    """
    start, features, asking, snap = problem.z[pool.factual], problem.features, _asking(problem, pool), problem.snap
    way = shrink_segment(start, Segment.of(pool.point, 2**FIRST_HALVINGS), asking, snap)
    closer = pool._replace(point=undo_changes(start, way.at.best, features, asking))
    picked = promising(problem, closer, TIGHT)
    near, far = take(closer, picked), take(pool, picked)
    tight = _tightened(problem, near, _asking(problem, near), way.gone_on(picked, near.point, 2**HALVINGS), far)
    return [tight, closer, _between(problem, tight, far)]


def _between(problem: Problem, near: Points, far: Points) -> Points:
    """Return the points at some shares of the way from near to far that hold."""
    line, point = _stops(problem, near, far)
    points = take(near, line)._replace(point=point)
    return take(points, np.flatnonzero(_has_label(problem, near)(point, line)))


def _stops(problem: Problem, near: Points, far: Points) -> tuple[Rows, Matrix]:
    """Return places on the way from near to far, and the line of each."""
    line, share = np.tile(np.arange(len(near.factual)), len(SHARES)), np.repeat(SHARES, len(near.factual))
    place = near.point[line] + share[:, np.newaxis] * (far.point - near.point)[line]
    return line, problem.snap(place, problem.z[near.factual[line]], far.point[line])


def _most_plausible(problem: Problem, pool: Points) -> list[Points]:
    """Tighten the best points while all their neighbours have the label, or as many as at the start."""
    never = problem.share(pool.point, pool.label) < 1.0
    never[never] = problem.share(pool.whole[never], pool.label[never]) < 1.0  # neither as they are nor unreduced
    best = take(pool, promising(problem, pool, PLAUSIBLE, never))
    goals = more_plausible(problem, best, 1.0)
    own = np.minimum(problem.share(goals.point, goals.label), 1.0)
    asking = _asking_for(problem, goals, _is_plausible(problem, goals, own))
    return [_tightened(problem, goals, asking, Segment.of(goals.point, 2**HALVINGS)), goals]


def more_plausible(problem: Problem, pool: Points, least: float) -> Points:
    """Replace points that are not plausible enough by less reduced ones that are.

    A factual none of whose points can be made plausible enough keeps them all: plausibility gives way before
    anything else does.
    """
    poor = np.flatnonzero(problem.share(pool.point, pool.label) < least)
    fixed = poor[problem.share(pool.whole[poor], pool.label[poor]) >= least]
    part = take(pool, fixed)
    keeps = _asking_for(problem, part, _is_plausible(problem, part, np.full(len(fixed), least)))
    point = pool.point.copy()
    point[fixed] = cut_changes(problem.z[part.factual], part.whole, problem.features, keeps)
    is_good = np.ones(len(pool.factual), dtype=bool)
    is_good[np.setdiff1d(poor, fixed)] = False
    has_none = ~np.isin(pool.factual, pool.factual[is_good])
    return take(pool._replace(point=point), np.flatnonzero(is_good | has_none))


def _tightened(problem: Problem, points: Points, asking: Asking, way: Segment, far: Points | None = None) -> Points:
    """Shrink every change, then undo whole ones again; with `far`, what lies between is asked about on the way."""
    start, features, snap = problem.z[points.factual], problem.features, problem.snap
    point = shrink_segment(start, way, asking, snap).at.best
    point = shrink_features(start, point, features, asking, snap)
    if far is not None and asking.places:
        single, line = undone_alone(start, point, features, point.shape[1])
        stop, place = _stops(problem, points._replace(point=point), far)
        asking.ahead(np.concatenate([single, place]), np.concatenate([line, stop]))
    return points._replace(point=undo_changes(start, point, features, asking))


def _asking(problem: Problem, points: Points) -> Asking:
    """Return how these points ask about trial points: the model must say their label."""
    return _asking_for(problem, points, _has_label(problem, points))


def _asking_for(problem: Problem, points: Points, holds: Holds) -> Asking:
    return Asking(holds, lambda trial, lines: problem.ahead(trial, points.factual[lines]), problem.places)


def _has_label(problem: Problem, points: Points) -> Holds:
    return lambda trial, lines: problem.label_of(trial, points.factual[lines]) == points.label[lines]


def _is_plausible(problem: Problem, points: Points, least: Matrix) -> Holds:
    """Return the test: the model says the label, and enough neighbours do. Only then are the neighbours looked at."""
    has_label = _has_label(problem, points)

    def test(trial: Matrix, lines: Rows) -> Mask:
        holds = has_label(trial, lines)
        holds[holds] = problem.share(trial[holds], points.label[lines[holds]]) >= least[lines[holds]]
        return holds

    return test


REFINED = Strategy(
    find,
    reserve=lambda options: 0,
    release="nothing",
    ignores=("step_ratio", "max_steps"),
    is_readable=True,
    is_distinct=True,
)
