"""The paper's strategy, Algorithm 3: the n nearest boundaries, and a walk from each until the label changes.

    pairs  ->  projected, viable  ->  reduce_changes  ->  crossing  ->  the n nearest: Candidates  ->  walk  ->  Found

Symbols: docs/glossary.md. "Line n" is line n of Algorithm 3. Departures: docs/decisions/0007 to 0010, 0014, 0024.
"""

import numpy as np

from onbmacf._balls.distance import paired
from onbmacf._balls.geometry import crossing
from onbmacf._base.arrays import Matrix, Rows, stack, take
from onbmacf._base.enums import Relaxation
from onbmacf._search.opposing import by_bound
from onbmacf._search.options import Options
from onbmacf._search.problem import Found, Outcome, Pairs, Problem, Strategy
from onbmacf._search.reduce import few_enough, keeper, passes, projected, reduce_changes, stays_inside, viable
from onbmacf._search.walk import Candidates, between, look_back, walk


def find(problem: Problem) -> Outcome:
    """Lines 2-33: shortlist the nearest boundaries and walk from each."""
    candidates = shortlist(problem)
    labels = problem.balls.labels[candidates.ball]
    options = problem.options
    shares = (options.step_ratio, options.max_steps)
    walked = walk(problem.z, problem.codes, candidates, labels, problem.ask, problem.snap, *shares)
    back = look_back(problem, candidates.factual, walked.counterfactual, labels)
    found = Found(candidates.factual, candidates.ball, labels, candidates.relaxation, *walked, back.again, back.margin)
    return Outcome(found, np.zeros(len(problem.z), dtype=bool))


def shortlist(problem: Problem) -> Candidates:
    """Lines 2-14: per factual the n candidates with the nearest boundary point, relaxing where there is none."""
    found: list[Candidates] = []
    pairs = problem.pairs.every()
    for step, relaxation in enumerate(passes(problem.features)):
        if not len(pairs.factual):
            break
        near = _one_pass(problem, pairs, relaxation)
        found.append(near._replace(relaxation=np.full(len(near.factual), step, dtype=np.intp)))
        pairs = take(pairs, ~np.isin(pairs.factual, near.factual))  # lines 11, 13
    return _joined(found, problem.z.shape[1])


def _one_pass(problem: Problem, pairs: Pairs, relaxation: Relaxation) -> Candidates:
    """Lines 4-10 in rounds: a factual leaves when its n-th candidate is nearer than the next ball's bound."""
    z = problem.z
    if relaxation is Relaxation.NONE:
        pairs = take(pairs, stays_inside(z, pairs, problem.balls, problem.features, problem.options.metric))
    pairs, place = by_bound(pairs)
    tried = 0
    found: list[Candidates] = []
    for last in problem.rounds:
        due = (place >= tried) & (place < last)
        per_ball = 1 + len(problem.features.starts)  # the projection, then each feature put back once
        size = problem.meter.afford(np.bincount(pairs.factual[due], minlength=len(z)), per_ball, 1)
        now = due & (place < tried + size[pairs.factual])
        found.append(_tried(problem, take(pairs, now), relaxation))
        near, worst = nearest(problem, _joined(found, z.shape[1]))  # lines 8, 9
        found, tried = [near], int(last)
        open_pairs = (place >= tried) & (pairs.bound < worst[pairs.factual])
        open_factuals = np.unique(pairs.factual[open_pairs])
        stays = np.isin(pairs.factual, open_factuals)
        pairs, place = take(pairs, stays), place[stays]
        if not len(open_factuals):
            break
    return found[0]


def _tried(problem: Problem, pairs: Pairs, relaxation: Relaxation) -> Candidates:
    """Lines 4-7 for some pairs: project, reduce the changes, and find the boundary on the way."""
    z, balls, features = problem.z, problem.balls, problem.features
    kept, goal = viable(problem, projected(problem, pairs, relaxation))
    goal = reduce_changes(z[kept.factual], goal, features, keeper(kept, balls, problem.label_of))  # line 6
    few = few_enough(z[kept.factual], goal, features)
    kept, goal = take(kept, few), goal[few]
    home, ball = take(balls, problem.home[kept.factual]), take(balls, kept.ball)
    share = crossing(z[kept.factual], goal, home, ball, problem.options.metric, problem.options.boundary)  # line 7
    return Candidates(kept.factual, kept.ball, goal, share, np.zeros(len(share), dtype=np.intp))


def nearest(problem: Problem, found: Candidates) -> tuple[Candidates, Matrix]:
    """Lines 8, 9: the n candidates per factual whose boundary point is nearest, ties by ball order.

    Also the distance of the n-th per factual; infinite where there are fewer.
    """
    start = problem.z[found.factual]
    distance = paired(start, between(start, found.goal, found.share), problem.options.metric)
    order = np.lexsort((found.ball, distance, found.factual))
    factual = found.factual[order]
    rank = np.arange(len(order)) - np.searchsorted(factual, factual)
    worst = np.full(len(problem.z), np.inf)
    worst[factual[rank == problem.n - 1]] = distance[order[rank == problem.n - 1]]
    return take(found, order[rank < problem.n]), worst


def _joined(found: list[Candidates], width: int) -> Candidates:
    """Put candidates together, those of one factual next to each other and otherwise in their order."""
    if not found:
        empty: Rows = np.empty(0, dtype=np.intp)
        return Candidates(empty, empty, np.empty((0, width)), np.empty(0), empty)
    every = stack(found)
    return take(every, np.argsort(every.factual, kind="stable"))


def _questions_of_a_walk(options: Options) -> int:
    return options.max_steps + 2  # the boundary, the steps, the goal


PAPER = Strategy(
    find,
    _questions_of_a_walk,
    release="immutable",
    ignores=("plausibility", "effort"),
    is_readable=False,
    is_distinct=False,
)
