"""The refined strategy: many balls, two ways to reduce, the best points tightened, the best and most different kept.

    opposing balls -> propose -> pool (different sets of changed features first) -> tighten -> choose -> Outcome

The same map and the same order of stages as the paper's Algorithm 3; what differs is what happens after the reduction
(docs/decisions/0025-refined-strategy.md). All factuals of a chunk move together.
"""

from dataclasses import replace

import numpy as np

from onbmacf._balls.distance import paired
from onbmacf._base.arrays import Mask, Matrix, Rows, stack, take
from onbmacf._base.enums import Relaxation
from onbmacf._search.asking import asking_about, has_label
from onbmacf._search.cut import cut_changes, first_cuts
from onbmacf._search.cut_plans import FEW, PASSES
from onbmacf._search.joint import all_joint, seen_values
from onbmacf._search.nearer import nearest
from onbmacf._search.pairs import Opposing, places
from onbmacf._search.plausible import most_plausible, plausible_rows
from onbmacf._search.problem import Features, Found, Outcome, Pairs, Problem, Strategy
from onbmacf._search.ranking import Points, choose, promising, unique
from onbmacf._search.reduce import Projected, few_enough, n_changed, projected, viable
from onbmacf._search.tighten import FIRST_HALVINGS, ask_ahead
from onbmacf._search.undo import undo_changes
from onbmacf._search.walk import look_back

FEW_JOINT = 512  # combinations of values that are asked about at once, instead of a search
MOST_JOINT = 1 << 14  # combinations that are asked about when a search finds nothing
REDUCED = 30  # projected centres per factual, the nearest, that are reduced; all of them at plausibility=1
SPARE = 6  # more centres that are asked about with the nearest: some have another label
POOL = 20  # reduced points per factual that are looked at again
OTHER = 12  # of the nearest projected centres that are also reduced in the other order
PROJECTIONS = 3  # one part in so many of what a budget has left is for projected centres
REDUCTIONS = 2  # and of what is then left, for reducing them
ENOUGH = 4  # points of a factual, at least, before those with many changes are left out


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
    holds = has_label(problem, free)(free.point, np.arange(len(free.factual)))
    holds &= few_enough(problem.z[free.factual], free.point, problem.features)
    best = choose(loose, free, np.zeros(len(problem.z), dtype=bool))
    keeps = few_enough(problem.z[best.factual], best.point, problem.features)
    keeps[keeps] = has_label(problem, take(best, keeps))(best.point[keeps], np.arange(keeps.sum()))
    rest = ~np.isin(np.arange(len(problem.z)), best.factual[keeps])
    ruled = _from_balls(replace(problem, pairs=problem.pairs.only(rest)))
    return stack([take(free, np.flatnonzero(holds)), ruled])


def _from_balls(problem: Problem) -> Points:
    """Return the points that the opposing balls lead to.

    All points of a lower plausibility compete at a higher one, so a row's answer never gets less plausible.
    """
    pool = _pool(problem, propose(problem, problem.features.max_changes is not None))
    parts = [*nearest(problem, pool), pool]
    if problem.options.plausibility == 1.0:
        pool = _pool(problem, propose(problem, every_center=True), keeps_many=True)
        parts += [*most_plausible(problem, pool), *plausible_rows(problem), pool]
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
    if every_center or nearest is not None:
        _ask_about(problem, centers, every_center)
        near = viable(problem, centers)
    else:
        near = _nearest_viable(problem, centers)
    points, largest_first = _lines(problem, *near, every_center)
    start, asking = problem.z[points.factual], asking_about(problem, points)
    return points._replace(point=cut_changes(start, points.whole, problem.features, asking, largest_first))


def _nearest_viable(problem: Problem, centers: Projected) -> tuple[Pairs, Matrix]:
    """Return the projected centres that have the ball's label, as many of the nearest as are reduced, and some more.

    Farther ones are asked about only where nearer ones have another label.
    """
    factual = centers.pairs.factual
    place = places(factual, paired(problem.z[factual], centers.points, problem.options.metric))
    first = REDUCED + (REDUCED if problem.places else SPARE)
    is_asked, most = np.zeros(len(factual), dtype=bool), np.full(len(problem.z), first)
    found = []
    while len(now := np.flatnonzero(~is_asked & (place < most[factual]))):
        some = Projected(take(centers.pairs, now), centers.points[now], centers.is_known[now])
        _ask_about(problem, some, every_center=False)
        found.append(viable(problem, some))
        is_asked[now] = True
        n_found = sum(np.bincount(pairs.factual, minlength=len(most)) for pairs, _ in found)
        most[n_found < REDUCED] *= 2
    if not found:
        return take(centers.pairs, is_asked), centers.points[is_asked]
    pairs, points = stack([pairs for pairs, _ in found]), np.concatenate([own for _, own in found])
    order = np.argsort(pairs.factual, kind="stable")
    return take(pairs, order), points[order]


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
    start, asking = problem.z[pool.factual], asking_about(problem, pool)
    ask_ahead(start, pool.point, features, asking, problem.snap, FIRST_HALVINGS)
    return pool._replace(point=undo_changes(start, pool.point, features, asking))


REFINED = Strategy(
    find,
    reserve=lambda options: 0,
    release="nothing",
    ignores=("step_ratio", "max_steps"),
    is_readable=True,
    is_distinct=True,
)
