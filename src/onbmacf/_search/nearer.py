"""The nearest points of a search: the pool pulled towards the factuals, the best tightened, then exchanged for nearer.

pool  ->  nearest  ->  what exchanges lead to, the tightened points, and what lies between them and the pool
"""

import numpy as np

from onbmacf._balls.distance import paired
from onbmacf._balls.metrics import Metric
from onbmacf._base.arrays import Mask, Matrix, Rows, take
from onbmacf._base.missing import between
from onbmacf._search.asking import asking_about, has_label
from onbmacf._search.cut_plans import FEW
from onbmacf._search.exchange import FEWER, exchanged, first_questions
from onbmacf._search.problem import Asking, Features, Problem
from onbmacf._search.ranking import Points, promising
from onbmacf._search.reduce import n_changed
from onbmacf._search.tighten import (
    FIRST_HALVINGS,
    HALVINGS,
    Segment,
    first_shrinks,
    rest_of_the_way,
    shrink_changes,
    shrink_segment,
)
from onbmacf._search.undo import undo_changes, undone_alone, undone_together
from onbmacf._search.walk import way_back

TIGHT = 5  # points that are tightened
SEEDS = 1  # of these, the best, whose changes are exchanged
ROUNDS = 2  # exchanges, one after the other
BEST_HALVINGS = 7  # of the only change of the best point
SINGLE_HALVINGS = 6  # of the only change of another point
SHARES = (0.25, 0.5, 0.75)  # places between a tightened point and where it came from that are looked at, too


def nearest(problem: Problem, pool: Points) -> list[Points]:
    """Pull the pool towards the factuals, tighten the best, look at places on the way there, and exchange changes.

    Only the model is asked. What the neighbours say is seen when all places are compared: farther along the same
    way more of them have the label, so the front from nearest to most plausible needs no search of its own.
    """
    start, features, asking, snap = problem.z[pool.factual], problem.features, asking_about(problem, pool), problem.snap
    way = shrink_segment(start, Segment.of(pool.point, 2**FIRST_HALVINGS), asking, snap)
    _ask_on(problem, pool, way, asking)
    closer = pool._replace(point=undo_changes(start, way.at.best, features, asking))
    picked = promising(problem, closer, TIGHT)
    near, far = take(closer, picked), take(pool, picked)
    way = way.gone_on(picked, near.point, _parts(problem, near.factual, near.point))
    tight = tightened(problem, near, asking_about(problem, near), way, far)
    return [_exchanged(problem, tight), tight, closer, _between(problem, tight, far)]


def _ask_on(problem: Problem, pool: Points, way: Segment, asking: Asking) -> None:
    """Ask about what comes next where there are places: changes undone, and the rest of the best points' ways."""
    if not asking.spare or asking.is_late():
        return
    start, point = problem.z[pool.factual], way.at.best
    alone, line = undone_alone(start, point, problem.features, FEW)
    best = promising(problem, pool._replace(point=point), TIGHT)
    parts = _parts(problem, pool.factual[best], point[best])
    steps, own = rest_of_the_way(start[best], way.gone_on(best, point[best], parts), problem.snap, asking.spare)
    sets, whose = undone_together(start, point, problem.features, FEW)
    asked, lines = np.concatenate([alone, steps, sets]), np.concatenate([line, best[own], whose])
    if not asking.ahead(asked, lines):
        asking.ahead(asked[: asking.spare], lines[: asking.spare])


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
        is_better = _is_better(start[lines], new, point[lines], features, metric)
        lines = lines[is_better]
        point[lines] = new[is_better]
    if asking.spare and len(lines):
        asking.among(lines).ahead(*_ends(problem, points.factual[lines], point[lines], asking.spare))
    moved = np.flatnonzero((point != points.point).any(axis=1))
    way = Segment.of(point[moved], _parts(problem, points.factual[moved], point[moved]))
    point[moved] = shrink_changes(start[moved], way, features, asking.among(moved), snap)
    return points._replace(point=point)


def _is_better(start: Matrix, new: Matrix, old: Matrix, features: Features, metric: Metric) -> Mask:
    """Say which points are nearer than others, or have fewer changes and are hardly farther."""
    n_fewer = n_changed(start, old, features) - n_changed(start, new, features)
    return paired(start, new, metric) < paired(start, old, metric) * (1.0 + FEWER * n_fewer)


def _parts(problem: Problem, factual: Rows, point: Matrix) -> Rows:
    """Return into how many parts a way is cut: a single change into the most, of the best point of a factual.

    For one row alone all of these questions fit into one call: 127 + 4 x 93 of 512 (0099-fewer-changes.md).
    """
    is_first = np.r_[True, np.diff(factual) != 0][: len(factual)]
    is_single = n_changed(problem.z[factual], point, problem.features) == 1
    return 2 ** np.where(is_single, np.where(is_first, BEST_HALVINGS, SINGLE_HALVINGS), HALVINGS)


def _ends(problem: Problem, factual: Rows, point: Matrix, places: int) -> tuple[Matrix, Rows, int]:
    """Return what is asked about points that are exchanged no more: smaller changes, and once more what is returned."""
    way = Segment.of(point, _parts(problem, factual, point))
    shrunk, line = first_shrinks(problem.z[factual], way, problem.features, problem.snap, places)
    back, own = way_back(problem, factual, point)
    return np.concatenate([shrunk, back]), np.concatenate([line, own]), len(back)


def tightened(problem: Problem, points: Points, asking: Asking, way: Segment, far: Points | None = None) -> Points:
    """Shrink every change, then undo whole ones again; with `far`, what lies between is asked about on the way."""
    start, features, snap = problem.z[points.factual], problem.features, problem.snap
    point = shrink_changes(start, way, features, asking, snap)
    asks_ahead = far is not None and asking.places > 0 and not asking.is_late()
    if far is not None and asks_ahead:
        _ask_ahead(problem, points._replace(point=point), far, asking)
    less = points._replace(point=undo_changes(start, point, features, asking))
    if far is not None and asks_ahead and asking.spare and (less.point != point).any():
        _ask_ahead(problem, less, far, asking)  # other points than those asked about before
    return less


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
