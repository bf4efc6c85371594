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
from onbmacf._search.options import Options
from onbmacf._search.pairs import by_bound, places
from onbmacf._search.problem import Found, Outcome, Pairs, Problem, Strategy
from onbmacf._search.ranking import Points, choose, promising, unique
from onbmacf._search.reduce import cut_changes, few_enough, keeper, project
from onbmacf._search.tighten import shrink_segment, tighten, undo_all
from onbmacf._search.walk import WAY_BACK, way_back

FEW_JOINT = 512  # combinations of values that are asked about at once, instead of a search
MOST_JOINT = 1 << 14  # combinations that are asked about when a search finds nothing
REDUCED = 32  # projected centres per factual, the nearest, that are reduced; all of them at plausibility=1
POOL = 16  # reduced points per factual that are looked at again
OTHER = 4  # of these, points that are also reduced in the other order
TIGHT = 4  # points that are tightened
PLAUSIBLE = 12  # points that are tightened at plausibility=1, where few can be made plausible enough
FIRST_HALVINGS = 3  # along the segment, of every point in the pool: only then it shows which to tighten
SHARES = (0.25, 0.5, 0.75)  # places between a tightened point and where it came from that are looked at, too


def find(problem: Problem) -> Outcome:
    """Return up to n counterfactuals per factual, the best first.

    Factuals with few allowed combinations of values are asked about all of them. Those for which the balls lead
    nowhere get more: larger numbers of combinations, then values seen in the table.
    """
    every = np.arange(len(problem.z))
    points, is_proven = all_joint(problem, every, FEW_JOINT)
    pairs = take(problem.pairs, ~is_proven[problem.pairs.factual])
    points.append(candidates(replace(problem, pairs=pairs)))
    more, is_late = all_joint(problem, _open(problem, points, is_proven), MOST_JOINT)
    is_proven |= is_late
    points += more
    points += seen_values(problem, _open(problem, points, is_proven))
    by_distance = is_proven & (problem.options.plausibility == 0)
    chosen = choose(problem, unique(stack(points)), by_distance)
    walked = way_back(problem.z, problem.codes, chosen.factual, chosen.point, problem.ask, problem.snap)
    return Outcome(Found(chosen.factual, chosen.ball, chosen.label, chosen.relaxation, *walked), is_proven)


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
    rest = ~np.isin(problem.pairs.factual, best.factual[keeps])
    ruled = _from_balls(replace(problem, pairs=take(problem.pairs, rest)))
    return stack([take(free, np.flatnonzero(holds)), ruled])


def _from_balls(problem: Problem) -> Points:
    """Return the points that the opposing balls lead to.

    All points of a lower plausibility compete at a higher one, so a row's answer never gets less plausible.
    """
    pool = _pool(problem, propose(problem, problem.features.max_changes is not None))
    parts = [*_nearest(problem, pool), pool]
    if problem.options.plausibility == 1.0:
        pool = _pool(problem, propose(problem, every_center=True))
        parts += [*_most_plausible(problem, pool), pool]
    return unique(stack(parts))


def propose(problem: Problem, every_center: bool = False) -> Points:
    """Project and reduce the nearest balls; more of them for a factual without a point."""
    z, pairs = problem.z, problem.pairs
    found, is_open, tried = [], np.ones(len(z), dtype=bool), 0
    for last in problem.rounds:
        now = _due(problem, take(pairs, is_open[pairs.factual]), tried, int(last))
        points = _reduced(problem, now, every_center)
        found.append(points)
        enough = few_enough(z[points.factual], points.point, problem.features)
        is_open[points.factual[enough]], tried = False, int(last)
        if not is_open[pairs.factual].any():
            break
    every = stack(found)
    return take(every, np.argsort(every.factual, kind="stable"))


def _due(problem: Problem, pairs: Pairs, tried: int, last: int) -> Pairs:
    """Return the pairs of this round: by their bound, from place `tried` to `last`, as far as the budget allows."""
    near, place = by_bound(pairs, last)
    near, place = take(near, place >= tried), place[place >= tried]
    size = problem.afford(np.bincount(near.factual, minlength=len(problem.z)))
    return take(near, place < tried + size[near.factual])


def _reduced(problem: Problem, pairs: Pairs, every_center: bool) -> Points:
    """Project some pairs, and put back the changes that are not needed: of all centres, or of the nearest ones."""
    z, balls, features = problem.z, problem.balls, problem.features
    kept, whole = project(z, pairs, balls, features, problem.label_of, Relaxation.PROJECTION)
    if not every_center:
        is_near = places(kept.factual, paired(z[kept.factual], whole, problem.options.metric)) < REDUCED
        kept, whole = take(kept, is_near), whole[is_near]
    goal = cut_changes(z[kept.factual], whole, features, keeper(kept, balls, problem.label_of))
    nothing = np.zeros(len(goal), dtype=np.intp)  # immutables are held here: Relaxation.NONE
    return Points(kept.factual, kept.ball, balls.labels[kept.ball], goal, whole, nothing)


def _pool(problem: Problem, proposed: Points) -> Points:
    """Keep the best points, reduce some in the other order, too, and leave no change that can be undone."""
    z, features = problem.z, problem.features
    too_many = ~few_enough(z[proposed.factual], proposed.point, features)
    best = take(proposed, promising(problem, proposed, POOL, too_many))
    few = take(best, promising(problem, best, OTHER))
    other = cut_changes(z[few.factual], few.whole, features, _has_label(problem, few), largest_first=True)
    pool = unique(stack([best, few._replace(point=other)]))
    return pool._replace(point=undo_all(z[pool.factual], pool.point, features, _has_label(problem, pool)))


def _nearest(problem: Problem, pool: Points) -> list[Points]:
    """Pull the pool towards the factuals, tighten the best, and look at places on the way there.

    Only the model is asked. What the neighbours say is seen when all places are compared: farther along the same
    way more of them have the label, so the front from nearest to most plausible needs no search of its own.
    """
    start, holds = problem.z[pool.factual], _has_label(problem, pool)
    point = shrink_segment(start, pool.point, holds, problem.snap, FIRST_HALVINGS)
    closer = pool._replace(point=undo_all(start, point, problem.features, holds))
    picked = promising(problem, closer, TIGHT)
    near, far = take(closer, picked), take(pool, picked)
    tight = _tightened(problem, near, _has_label(problem, near))
    return [tight, closer, *(_between(problem, tight, far, share) for share in SHARES)]


def _between(problem: Problem, near: Points, far: Points, share: float) -> Points:
    """Return the points at a share of the way from near to far that hold."""
    point = problem.snap(near.point + share * (far.point - near.point), problem.z[near.factual], far.point)
    holds = _has_label(problem, near)(point, np.arange(len(point)))
    return take(near._replace(point=point), np.flatnonzero(holds))


def _most_plausible(problem: Problem, pool: Points) -> list[Points]:
    """Tighten the best points while all their neighbours have the label, or as many as at the start."""
    never = problem.share(pool.point, pool.label) < 1.0
    never[never] = problem.share(pool.whole[never], pool.label[never]) < 1.0  # neither as they are nor unreduced
    best = take(pool, promising(problem, pool, PLAUSIBLE, never))
    goals = more_plausible(problem, best, 1.0)
    own = np.minimum(problem.share(goals.point, goals.label), 1.0)
    return [_tightened(problem, goals, _is_plausible(problem, goals, own)), goals]


def more_plausible(problem: Problem, pool: Points, least: float) -> Points:
    """Replace points that are not plausible enough by less reduced ones that are.

    A factual none of whose points can be made plausible enough keeps them all: plausibility gives way before
    anything else does.
    """
    poor = np.flatnonzero(problem.share(pool.point, pool.label) < least)
    fixed = poor[problem.share(pool.whole[poor], pool.label[poor]) >= least]
    part = take(pool, fixed)
    keeps = _is_plausible(problem, part, np.full(len(fixed), least))
    point = pool.point.copy()
    point[fixed] = cut_changes(problem.z[part.factual], part.whole, problem.features, keeps)
    is_good = np.ones(len(pool.factual), dtype=bool)
    is_good[np.setdiff1d(poor, fixed)] = False
    has_none = ~np.isin(pool.factual, pool.factual[is_good])
    return take(pool._replace(point=point), np.flatnonzero(is_good | has_none))


def _tightened(problem: Problem, points: Points, accepts: Callable[[Matrix, Rows], Mask]) -> Points:
    start = problem.z[points.factual]
    return points._replace(point=tighten(start, points.point, problem.features, accepts, problem.snap))


def _has_label(problem: Problem, points: Points) -> Callable[[Matrix, Rows], Mask]:
    return lambda trial, lines: problem.label_of(trial, points.factual[lines]) == points.label[lines]


def _is_plausible(problem: Problem, points: Points, least: Matrix) -> Callable[[Matrix, Rows], Mask]:
    """Return the test: the model says the label, and enough neighbours do. Only then are the neighbours looked at."""
    has_label = _has_label(problem, points)

    def test(trial: Matrix, lines: Rows) -> Mask:
        holds = has_label(trial, lines)
        holds[holds] = problem.share(trial[holds], points.label[lines[holds]]) >= least[lines[holds]]
        return holds

    return test


def _questions_of_a_way_back(options: Options) -> int:
    return WAY_BACK


REFINED = Strategy(
    find,
    _questions_of_a_way_back,
    ball_share=2,
    release="nothing",
    ignores=("step_ratio", "max_steps"),
    is_readable=True,
    is_distinct=True,
)
