"""Algorithm 3 lines 2-14: which balls to walk to, and how far their boundaries are.

    factuals, opposing balls  ->  project  ->  reduce_changes  ->  crossing  ->  the n nearest: Candidates

All pairs of a factual and a ball move together: one question to the model per stage, one per feature for the
reduction. `label_of(points, factual)` answers for encoded points, given the line of the factual each belongs to.
Symbols: docs/glossary.md. "Line n" is line n of Algorithm 3. Departures: docs/decisions/0008 to 0010, 0014, 0024.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.distance import Matrix, Metric, paired
from onbmacf._balls.geometry import Balls, crossing
from onbmacf.explanation import Relaxation

Rows = NDArray[np.intp]
LabelOf = Callable[[Matrix, Rows], Rows]
Keeps = Callable[[Matrix, Rows], NDArray[np.bool_]]


class Pairs(NamedTuple):
    """Factuals and balls to be tried together, sorted by factual, then by ball.

    The bound is half the gap of the surface distances: no unreduced boundary point of the pair is nearer than this.
    The reduction of changes comes before the ranking and may undercut it, so the bound orders balls but does not prove
    that a farther ball is worse (docs/decisions/0024-search.md).
    """

    factual: Rows
    ball: Rows
    bound: Matrix


class Features(NamedTuple):
    """Which columns belong to which feature, and which features must stay."""

    starts: Rows  # first column of each feature
    of_column: Rows  # feature of each column
    is_immutable: NDArray[np.bool_]
    constrain: Callable[[Matrix, Matrix], Matrix] | None = None  # points, z -> points that keep the user's rules
    max_changes: int | None = None
    may_release: bool = True  # whether immutable features may change as a last resort


class Candidates(NamedTuple):
    """One line per shortlisted pair, the nearest of each factual first."""

    factual: Rows
    ball: Rows
    goal: Matrix  # the projected centre after reducing changes
    share: Matrix  # where the boundary cuts the way from the factual to the goal
    relaxation: Rows  # position in Relaxation


class Search(NamedTuple):
    """How far to look: which balls, in what order, at what cost."""

    n: int  # candidates per factual
    metric: Metric
    boundary: str
    rounds: Rows  # balls per factual to have tried after each round, nearest bound first; the last has no end
    afford: Callable[[Rows], Rows]  # per factual: how many of so many balls its budget allows


def shortlist(
    z: Matrix, home: Rows, pairs: Pairs, balls: Balls, features: Features, label_of: LabelOf, search: Search
) -> Candidates:
    """Lines 2-14: per factual the n candidates with the nearest boundary point, relaxing where there is none."""
    found: list[Candidates] = []
    for step, relaxation in enumerate(passes(features)):
        if not len(pairs.factual):
            break
        near = _one_pass(z, home, pairs, balls, features, label_of, relaxation, search)
        found.append(near._replace(relaxation=np.full(len(near.factual), step, dtype=np.intp)))
        pairs = only(pairs, ~np.isin(pairs.factual, near.factual))  # lines 11, 13
    return _joined(found, z.shape[1])


def passes(features: Features) -> list[Relaxation]:
    """Return what may be given up, in order (lines 11-14)."""
    last = [Relaxation.IMMUTABILITY] if features.may_release else []
    return [Relaxation.NONE, Relaxation.PROJECTION, *last]


def _one_pass(
    z: Matrix,
    home: Rows,
    pairs: Pairs,
    balls: Balls,
    features: Features,
    label_of: LabelOf,
    relaxation: Relaxation,
    search: Search,
) -> Candidates:
    """Lines 4-10 in rounds: a factual leaves when its n-th candidate is nearer than the next ball's bound."""
    if relaxation is Relaxation.NONE:
        pairs = only(pairs, stays_inside(z, pairs, balls, features, search.metric))
    pairs, place = by_bound(pairs)
    tried = 0
    found: list[Candidates] = []
    for last in search.rounds:
        due = (place >= tried) & (place < last)
        size = search.afford(np.bincount(pairs.factual[due], minlength=len(z)))
        now = due & (place < tried + size[pairs.factual])
        kept, goal = project(z, only(pairs, now), balls, features, label_of, relaxation)
        goal = reduce_changes(z[kept.factual], goal, features, keeper(kept, balls, label_of))  # line 6
        few = few_enough(z[kept.factual], goal, features)
        kept, goal = only(kept, few), goal[few]
        home_balls, ball = balls.at(home[kept.factual]), balls.at(kept.ball)
        share = crossing(z[kept.factual], goal, home_balls, ball, search.metric, search.boundary)  # line 7
        found.append(Candidates(kept.factual, kept.ball, goal, share, np.zeros(len(share), dtype=np.intp)))
        near, worst = nearest(z, _joined(found, z.shape[1]), search)  # lines 8, 9
        found, tried = [near], int(last)
        open_pairs = (place >= tried) & (pairs.bound < worst[pairs.factual])
        open_factuals = np.unique(pairs.factual[open_pairs])
        stays = np.isin(pairs.factual, open_factuals)
        pairs, place = only(pairs, stays), place[stays]
        if not len(open_factuals):
            break
    return found[0]


def stays_inside(z: Matrix, pairs: Pairs, balls: Balls, features: Features, metric: Metric) -> NDArray[np.bool_]:
    """Line 5, first condition: the projected centre lies in its ball. Only immutable columns move: no model needed."""
    centers = balls.points[pairs.ball]
    moved = paired(_locked(z, centers, pairs, features), centers, metric)
    return (moved < balls.radii[pairs.ball]) | (moved == 0)


def project(
    z: Matrix, pairs: Pairs, balls: Balls, features: Features, label_of: LabelOf, relaxation: Relaxation
) -> tuple[Pairs, Matrix]:
    """Lines 4, 5: centres with the factual's immutable values, of those pairs in which they keep the ball's label.

    The relaxations first drop that the projected centre must be inside its ball, then the immutability itself.
    """
    projected = balls.points[pairs.ball]
    if relaxation is not Relaxation.IMMUTABILITY:
        projected = _locked(z, projected, pairs, features)
    elif features.constrain is None:
        return pairs, projected  # a centre is a fitted row: inside its ball and of its label
    if features.constrain is not None:
        projected = features.constrain(projected, z[pairs.factual])
    viable = label_of(projected, pairs.factual) == balls.labels[pairs.ball]
    return only(pairs, viable), projected[viable]


def few_enough(start: Matrix, points: Matrix, features: Features) -> NDArray[np.bool_]:
    """Say which points change no more features than the rules allow."""
    if features.max_changes is None:
        return np.ones(len(points), dtype=bool)
    changed = np.logical_or.reduceat(points != start, features.starts, axis=1)
    return changed.sum(axis=1) <= features.max_changes


def keeper(pairs: Pairs, balls: Balls, label_of: LabelOf) -> Keeps:
    """Return the test whether points of some pairs have the label of their ball."""
    return lambda points, lines: label_of(points, pairs.factual[lines]) == balls.labels[pairs.ball[lines]]


def _locked(z: Matrix, centers: Matrix, pairs: Pairs, features: Features) -> Matrix:
    return np.where(features.is_immutable[features.of_column], z[pairs.factual], centers)


def reduce_changes(
    start: Matrix, goal: Matrix, features: Features, keeps: Keeps, largest_first: bool = False
) -> Matrix:
    """Line 6: put features back to the factual's value, smallest difference first, while the label stays.

    start has the factual of each goal; keeps(points, lines) says which trial points keep the label. One-hot columns
    of a category are one feature; ties in the difference go by column order (decision 0009).
    """
    goal = goal.copy()
    difference = np.add.reduceat(np.abs(goal - start), features.starts, axis=1)
    order = np.argsort(-difference if largest_first else difference, axis=1, kind="stable")
    n_changes = (difference > 0).sum(axis=1)
    for rank in range(len(features.starts)):
        feature = order[:, rank]
        differs = difference[np.arange(len(goal)), feature] > 0
        lines = np.flatnonzero(differs & (n_changes > 1))  # with one change left, undoing it gives the factual
        if not len(lines):
            continue
        is_feature = features.of_column == feature[lines, np.newaxis]
        trial = np.where(is_feature, start[lines], goal[lines])
        stays = keeps(trial, lines)
        goal[lines[stays]] = trial[stays]
        n_changes[lines[stays]] -= 1
    return goal


def cut_changes(start: Matrix, goal: Matrix, features: Features, keeps: Keeps, largest_first: bool = False) -> Matrix:
    """Put back all but a few features at once, then the few one by one: as `reduce_changes`, in fewer questions.

    How many of the largest differences (or smallest) must stay is found by halving.
    """
    goal = goal.copy()
    difference = np.add.reduceat(np.abs(goal - start), features.starts, axis=1)
    first = np.where(difference > 0, difference, np.inf) if largest_first else -difference  # these stay
    rank = np.argsort(np.argsort(first, axis=1, kind="stable"), axis=1, kind="stable")
    enough = (difference > 0).sum(axis=1)  # kept features with which the label stays
    too_few = np.zeros(len(goal), dtype=np.intp)  # and with which it does not
    while len(lines := np.flatnonzero(enough - too_few > 1)):
        middle = (too_few[lines] + enough[lines]) // 2
        goes_back = (rank[lines] >= middle[:, np.newaxis])[:, features.of_column]
        trial = np.where(goes_back, start[lines], goal[lines])
        stays = keeps(trial, lines)
        goal[lines[stays]] = trial[stays]
        enough[lines[stays]], too_few[lines[~stays]] = middle[stays], middle[~stays]
    return reduce_changes(start, goal, features, keeps, largest_first)


def nearest(z: Matrix, found: Candidates, search: Search) -> tuple[Candidates, Matrix]:
    """Lines 8, 9: the n candidates per factual whose boundary point is nearest, ties by ball order.

    Also the distance of the n-th per factual; infinite where there are fewer.
    """
    start = z[found.factual]
    distance = paired(start, between(start, found.goal, found.share), search.metric)
    order = np.lexsort((found.ball, distance, found.factual))
    factual = found.factual[order]
    rank = np.arange(len(order)) - np.searchsorted(factual, factual)
    worst = np.full(len(z), np.inf)
    worst[factual[rank == search.n - 1]] = distance[order[rank == search.n - 1]]
    return _at(found, order[rank < search.n]), worst


def places(factual: Rows, score: Matrix) -> Rows:
    """Return per line how many of the same factual come before it, by score and then as they stand."""
    order = np.lexsort((score, factual))
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order)) - np.searchsorted(factual[order], factual[order])
    return place


def between(start: Matrix, goal: Matrix, share: Matrix) -> Matrix:
    """Return the points at these shares of the way; at 1 the goal itself, to the bit."""
    points = start + share[:, np.newaxis] * (goal - start)
    return np.where(share[:, np.newaxis] == 1.0, goal, points)


def only(pairs: Pairs, lines: NDArray[np.bool_] | Rows) -> Pairs:
    """Return some of the pairs."""
    return Pairs(pairs.factual[lines], pairs.ball[lines], pairs.bound[lines])


def by_bound(pairs: Pairs, most: int | None = None) -> tuple[Pairs, Rows]:
    """Return the pairs of each factual by their bound, ties by ball, and the place of each; only the first `most`."""
    if most is not None:
        pairs = only(pairs, pairs.bound <= _nth_bounds(pairs, most)[pairs.factual])  # sorting takes longer than this
    pairs = only(pairs, np.lexsort((pairs.bound, pairs.factual)))
    place = np.arange(len(pairs.factual)) - np.searchsorted(pairs.factual, pairs.factual)
    if most is None:
        return pairs, place
    return only(pairs, place < most), place[place < most]


def _nth_bounds(pairs: Pairs, n: int) -> Matrix:
    """Return the n-th smallest bound of each factual; infinite where there are fewer."""
    sizes = np.bincount(pairs.factual)
    stops, nth = np.cumsum(sizes), np.full(len(sizes), np.inf)
    for factual in np.flatnonzero(sizes > n):
        bounds = pairs.bound[stops[factual] - sizes[factual] : stops[factual]]
        nth[factual] = np.partition(bounds, n - 1)[n - 1]
    return nth


def _at(found: Candidates, lines: Rows) -> Candidates:
    return Candidates(
        found.factual[lines], found.ball[lines], found.goal[lines], found.share[lines], found.relaxation[lines]
    )


def _joined(found: list[Candidates], width: int) -> Candidates:
    """Put candidates together, those of one factual next to each other and otherwise in their order."""
    if not found:
        empty = np.empty(0, dtype=np.intp)
        return Candidates(empty, empty, np.empty((0, width)), np.empty(0), empty)
    factual, ball, goal, share, relaxation = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return _at(Candidates(factual, ball, goal, share, relaxation), np.argsort(factual, kind="stable"))
