"""The nearest points of a search: the pool pulled towards the factuals, the best tightened, then exchanged for nearer.

pool  ->  nearest  ->  what exchanges lead to, the tightened points, and what lies between them and the pool
"""

import numpy as np

from onbmacf._balls.distance import paired
from onbmacf._base.arrays import Matrix, Rows, take
from onbmacf._base.missing import between
from onbmacf._search.asking import asking_about, has_label
from onbmacf._search.exchange import exchanged, first_questions
from onbmacf._search.problem import Asking, Problem
from onbmacf._search.ranking import Points, promising
from onbmacf._search.tighten import FIRST_HALVINGS, HALVINGS, Segment, first_shrinks, shrink_changes, shrink_segment
from onbmacf._search.undo import undo_changes, undone_alone
from onbmacf._search.walk import way_back

TIGHT = 5  # points that are tightened
SEEDS = 1  # of these, the best, whose changes are exchanged
ROUNDS = 2  # exchanges, one after the other
SHARES = (0.25, 0.5, 0.75)  # places between a tightened point and where it came from that are looked at, too


def nearest(problem: Problem, pool: Points) -> list[Points]:
    """Pull the pool towards the factuals, tighten the best, look at places on the way there, and exchange changes.

    Only the model is asked. What the neighbours say is seen when all places are compared: farther along the same
    way more of them have the label, so the front from nearest to most plausible needs no search of its own.
    """
    start, features, asking, snap = problem.z[pool.factual], problem.features, asking_about(problem, pool), problem.snap
    way = shrink_segment(start, Segment.of(pool.point, 2**FIRST_HALVINGS), asking, snap)
    closer = pool._replace(point=undo_changes(start, way.at.best, features, asking))
    picked = promising(problem, closer, TIGHT)
    near, far = take(closer, picked), take(pool, picked)
    tight = tightened(problem, near, asking_about(problem, near), way.gone_on(picked, near.point, 2**HALVINGS), far)
    return [_exchanged(problem, tight), tight, closer, _between(problem, tight, far)]


def _exchanged(problem: Problem, points: Points) -> Points:
    """Exchange changes of the best points for others that cost less, while that brings them nearer."""
    points = take(points, promising(problem, points, SEEDS))
    features, snap, metric = problem.features, problem.snap, problem.options.metric
    start, lines = problem.z[points.factual], np.arange(len(points.factual))
    asking, point = asking_about(problem, points), points.point.copy()
    for turn in range(ROUNDS):
        is_next = turn > 0 and asking.spare > 0
        also = _ends(problem, points.factual[lines], point[lines], asking.spare) if is_next else None
        new = exchanged(start[lines], point[lines], problem.ends, features, asking.among(lines), snap, also)
        is_nearer = paired(start[lines], new, metric) < paired(start[lines], point[lines], metric)
        lines = lines[is_nearer]
        point[lines] = new[is_nearer]
    if asking.spare and len(lines):
        asking.among(lines).ahead(*_ends(problem, points.factual[lines], point[lines], asking.spare))
    moved = np.flatnonzero((point != points.point).any(axis=1))
    way = Segment.of(point[moved], 2**HALVINGS)
    point[moved] = shrink_changes(start[moved], way, features, asking.among(moved), snap)
    return points._replace(point=point)


def _ends(problem: Problem, factual: Rows, point: Matrix, places: int) -> tuple[Matrix, Rows, int]:
    """Return what is asked about points that are exchanged no more: smaller changes, and once more what is returned."""
    way = Segment.of(point, 2**HALVINGS)
    shrunk, line = first_shrinks(problem.z[factual], way, problem.features, problem.snap, places)
    back, own = way_back(problem, factual, point)
    return np.concatenate([shrunk, back]), np.concatenate([line, own]), len(back)


def tightened(problem: Problem, points: Points, asking: Asking, way: Segment, far: Points | None = None) -> Points:
    """Shrink every change, then undo whole ones again; with `far`, what lies between is asked about on the way."""
    start, features, snap = problem.z[points.factual], problem.features, problem.snap
    point = shrink_changes(start, way, features, asking, snap)
    if far is not None and asking.places and not asking.is_late():
        _ask_ahead(problem, points._replace(point=point), far, asking)
    return points._replace(point=undo_changes(start, point, features, asking))


def _ask_ahead(problem: Problem, points: Points, far: Points, asking: Asking) -> None:
    """Ask about what comes next: single changes undone, places on the way to `far`, exchanges of the best points.

    Where there is room, also once more about the points themselves and their way back: one of them is often returned.
    """
    start, features = problem.z[points.factual], problem.features
    single, line = undone_alone(start, points.point, features, points.point.shape[1])
    stop, place = _stops(problem, points, far)
    best, room = promising(problem, points, SEEDS), asking.places - len(single) - len(place)
    trade, own = first_questions(start[best], points.point[best], problem.ends, features, problem.snap, room)
    back, behind = way_back(problem, points.factual, points.point)
    back, behind = back[: max(0, room - len(trade))], behind[: max(0, room - len(trade))]
    lines = np.concatenate([line, stop, best[own], behind])
    problem.ahead(np.concatenate([single, place, trade, back]), points.factual[lines], len(back))


def _between(problem: Problem, near: Points, far: Points) -> Points:
    """Return the points at some shares of the way from near to far that hold."""
    line, point = _stops(problem, near, far)
    points = take(near, line)._replace(point=point)
    return take(points, np.flatnonzero(has_label(problem, near)(point, line)))


def _stops(problem: Problem, near: Points, far: Points) -> tuple[Rows, Matrix]:
    """Return places on the way from near to far, and the line of each."""
    line, share = np.tile(np.arange(len(near.factual)), len(SHARES)), np.repeat(SHARES, len(near.factual))
    place = between(near.point[line], far.point[line], share)
    return line, problem.snap(place, problem.z[near.factual[line]], far.point[line])
