"""The paper's strategy, Algorithm 3: the n nearest boundaries, and a walk from each until the label changes.

    Pairs  ->  viable  ->  reduce_changes  ->  crossing  ->  the n nearest: Candidates  ->  walk  ->  Found

All pairs of a factual and a ball move together: one question to the model for line 5, one per feature for line 6.
Symbols: docs/glossary.md. "Line n" is line n of Algorithm 3. Departures: docs/decisions/0007 to 0010, 0014, 0024.
"""

import numpy as np

from onbmacf._balls.associate import home_balls
from onbmacf._balls.distance import distances, paired
from onbmacf._balls.geometry import Balls, crossing
from onbmacf._balls.recover import reach_of, recover
from onbmacf._base.arrays import Mask, Matrix, Rows, stack, take
from onbmacf._base.enums import Relaxation
from onbmacf._base.missing import gaps
from onbmacf._search.budget import turns
from onbmacf._search.options import Options
from onbmacf._search.problem import Found, Map, Pairs, Problem, Strategy
from onbmacf._search.walk import Candidates, between, confirm, walk

FIRST_ROUND = 128  # balls per factual in the first round of a best-first search; each round has twice as many
RELAXATIONS = (Relaxation.NONE, Relaxation.PROJECTION, Relaxation.IMMUTABILITY)  # lines 11-14: given up in this order


# --- which balls, in what order ---------------------------------------------------------------------------------------


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
    factual = np.repeat(outside, np.array([len(part.radii) for part in recovered], dtype=np.intp))
    ball = np.arange(len(balls.radii) - len(factual), len(balls.radii))
    bound = (paired(z[factual], balls.points[ball], metric) - balls.radii[ball] - gap[factual]) / 2
    pairs = stack([pairs, take(Pairs(factual, ball, bound), wanted[factual, balls.labels[ball]])])
    return home, balls, take(pairs, np.lexsort((pairs.bound, pairs.factual)))  # ties stay in the order of balls


def _recovered(fitted: Map, options: Options, z: Matrix, home: int) -> Balls:
    """Line 16: the balls that replace the home ball of one factual."""
    rows = fitted.cover.members(home)
    chosen, radii = recover(z, fitted.Z[rows], fitted.cover.reach[rows], options.metric, options.competitors)
    return Balls(fitted.Z[rows[chosen]], radii, np.full(len(chosen), fitted.cover.labels[home]))


# --- the strategy -----------------------------------------------------------------------------------------------------


def find(problem: Problem) -> Found:
    """Lines 2-33: shortlist the nearest boundaries and walk from each."""
    candidates = shortlist(problem)
    label = problem.balls.labels[candidates.ball]
    walked = walk(problem, candidates, label)
    confirmed = confirm(problem, candidates.factual, walked[0], label)
    return Found(candidates.factual, candidates.ball, label, candidates.relaxation, *walked, *confirmed)


def shortlist(problem: Problem) -> Candidates:
    """Lines 2-14: per factual the n candidates with the nearest boundary point, relaxing where there is none."""
    none: Rows = np.empty(0, dtype=np.intp)
    found = [Candidates(none, none, np.empty((0, problem.z.shape[1])), np.empty(0), none)]
    pairs = problem.pairs
    for relaxation in RELAXATIONS if problem.features.may_release else RELAXATIONS[:2]:
        if len(pairs.factual):
            found.append(_one_pass(problem, pairs, relaxation))
            pairs = take(pairs, ~np.isin(pairs.factual, found[-1].factual))  # lines 11, 13
    every = stack(found)
    return take(every, np.argsort(every.factual, kind="stable"))


def _one_pass(problem: Problem, pairs: Pairs, relaxation: Relaxation) -> Candidates:
    """Lines 4-10 in rounds: a factual leaves when its n-th candidate is nearer than the next ball's bound."""
    if relaxation is Relaxation.NONE:
        pairs = take(pairs, _stays_inside(problem, pairs))
    size = len(pairs.factual) if problem.options.search == "exhaustive" else FIRST_ROUND
    price = 1 + len(problem.features.starts)  # of a ball: the projection, then each feature put back once
    found: list[Candidates] = []
    while True:
        place = turns(pairs.factual)
        n_due = np.bincount(pairs.factual[place < size], minlength=len(problem.z))
        now = place < problem.questions.afford(n_due, price)[pairs.factual]
        near, worst = _nearest(problem, stack([*found, _tried(problem, take(pairs, now), relaxation)]))
        later = take(pairs, place >= size)
        is_open = np.isin(later.factual, later.factual[later.bound < worst[later.factual]])
        pairs, size, found = take(later, is_open), 2 * size, [near]
        if not len(pairs.factual):
            return near


def _stays_inside(problem: Problem, pairs: Pairs) -> Mask:
    """Line 5, first condition: the projected centre lies in its ball. Only immutable columns move: no model needed."""
    centers = problem.balls.points[pairs.ball]
    held = problem.features.with_held(problem.z[pairs.factual], centers)
    moved = paired(held, centers, problem.options.metric)
    return (moved < problem.balls.radii[pairs.ball]) | (moved == 0)


def _tried(problem: Problem, pairs: Pairs, relaxation: Relaxation) -> Candidates:
    """Lines 4-7 for some pairs: project, reduce the changes, and find the boundary on the way."""
    z, features, options = problem.z, problem.features, problem.options
    pairs, goal = viable(problem, pairs, relaxation)
    goal = reduce_changes(problem, pairs, goal)
    if features.max_changes is not None:
        is_changed = np.logical_or.reduceat(goal != z[pairs.factual], features.starts, axis=1)
        few = is_changed.sum(axis=1) <= features.max_changes
        pairs, goal = take(pairs, few), goal[few]
    home, ball = take(problem.balls, problem.home[pairs.factual]), take(problem.balls, pairs.ball)
    share = crossing(z[pairs.factual], goal, home, ball, options.metric, options.boundary)  # line 7
    return Candidates(pairs.factual, pairs.ball, goal, share, np.full(len(share), RELAXATIONS.index(relaxation)))


def viable(problem: Problem, pairs: Pairs, relaxation: Relaxation) -> tuple[Pairs, Matrix]:
    """Lines 4, 5: the pairs whose projected centre has the ball's label, and these centres.

    They have the factual's immutable values, unless these are given up. A centre that is not moved is a fitted row,
    whose label is known.
    """
    features, start, centers = problem.features, problem.z[pairs.factual], problem.balls.points[pairs.ball]
    points = features.with_held(start, centers, frees=relaxation is Relaxation.IMMUTABILITY)  # line 4
    if features.constrain is not None:
        points = features.constrain(points, start)
    is_viable = (points == centers).all(axis=1) & problem.knows_centers
    rest = np.flatnonzero(~is_viable)
    said = problem.questions.ask_once(points[rest], pairs.factual[rest])
    is_viable[rest] = said == problem.balls.labels[pairs.ball[rest]]  # line 5
    return take(pairs, is_viable), points[is_viable]


def reduce_changes(problem: Problem, pairs: Pairs, goal: Matrix) -> Matrix:
    """Line 6: put features back to the factual's value, smallest difference first, while the label stays.

    One-hot columns of a category are one feature; ties in the difference go by column order (decision 0009).
    """
    features, start, label = problem.features, problem.z[pairs.factual], problem.balls.labels[pairs.ball]
    difference = np.add.reduceat(gaps(goal, start), features.starts, axis=1)
    order = np.argsort(difference, axis=1, kind="stable")
    n_changes = (difference > 0).sum(axis=1)
    for feature in order.T:
        differs = difference[np.arange(len(goal)), feature] > 0
        lines = np.flatnonzero(differs & (n_changes > 1))  # with one change left, undoing it gives the factual
        if len(lines):
            is_feature = features.of_column == feature[lines, np.newaxis]
            trial = np.where(is_feature, start[lines], goal[lines])
            stays = problem.questions.ask_once(trial, pairs.factual[lines]) == label[lines]
            goal[lines[stays]] = trial[stays]
            n_changes[lines[stays]] -= 1
    return goal


def _nearest(problem: Problem, found: Candidates) -> tuple[Candidates, Matrix]:
    """Lines 8, 9: the n candidates per factual whose boundary point is nearest, ties by ball order.

    Also the distance of the n-th per factual; infinite where there are fewer.
    """
    start = problem.z[found.factual]
    distance = paired(start, between(start, found.goal, found.share), problem.options.metric)
    order = np.lexsort((found.ball, distance, found.factual))
    rank = turns(found.factual[order])
    nth, worst = order[rank == problem.n - 1], np.full(len(problem.z), np.inf)
    worst[found.factual[nth]] = distance[nth]
    return take(found, order[rank < problem.n]), worst


PAPER = Strategy(
    find,
    reserve=lambda options: options.max_steps + 2,  # of a walk: the boundary, the steps, the goal
    release="immutable",
    ignores=("plausibility", "effort"),
    is_readable=False,
    is_distinct=False,
    needs_all=True,
)
