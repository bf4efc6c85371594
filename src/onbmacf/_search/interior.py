"""The dial at 1, or a bound on neighbours: answers inside the region of their label, where all neighbours have it.

    factual  ->  plausible_rows  ->  into_the_interior  ->  the rows, cut back while all neighbours have the label

A row with the factual's immutable values can be returned as it is, so where there is one, full plausibility is always
reached; others are tried with the factual's values put in (docs/decisions/0100-price-of-neighbours.md).
"""

import numpy as np

from onbmacf._balls.distance import distances
from onbmacf._balls.metrics import Metric
from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._base.missing import differs
from onbmacf._search import choose
from onbmacf._search.problem import Features, Map
from onbmacf._search.record import Record
from onbmacf._search.rounds import REFINED_AGAIN, projected, propose
from onbmacf._search.search import CAPS, Proposed, Search, ask, room_of

SAME = 4  # fitted rows with the factual's immutable values
OTHERS = 8  # fitted rows with other immutable values
LOOKED_AT = 256  # of those with other values, the nearest that are looked at


def plausible_rows(fitted: Map, features: Features, metric: Metric, z: Matrix, wanted: Mask) -> Rows:
    """Return the nearest such rows of one factual: with its immutable values, and with others."""
    rows = np.flatnonzero(wanted[fitted.labels])
    Z = features.with_held(np.broadcast_to(z, (len(rows), len(z))), fitted.Z[rows])
    order = np.argsort(distances(z[np.newaxis], Z, metric)[0], kind="stable")
    rows = rows[order]
    is_same = (Z[order] == fitted.Z[rows]).all(axis=1)
    same, others = _first(fitted, rows[is_same], SAME), _first(fitted, rows[~is_same][:LOOKED_AT], OTHERS)
    return np.concatenate([same, others])


def _first(fitted: Map, rows: Rows, most: int) -> Rows:
    """Return the first plausible ones among some rows."""
    found, tried, size = rows[:0], 0, 4 * most
    while tried < len(rows) and len(found) < most:
        some = rows[tried : tried + size]
        is_plausible = fitted.share(fitted.Z[some], fitted.labels[some]) == 1.0
        found, tried, size = np.concatenate([found, some[is_plausible]]), tried + size, 2 * size
    return found[:most]


def into_the_interior(search: Search, record: Record, wanted: Mask, active: Mask, price: Matrix) -> None:
    """Ask about fitted rows in the interior of their label, and refine what has all its neighbours."""
    rows = np.flatnonzero(active)
    Z = search.encode(search.factuals[rows])
    inner = [search.plausible(z, some) for z, some in zip(Z, wanted[rows], strict=True)]
    owner = np.repeat(rows, [len(some) for some in inner])
    given = np.concatenate([np.empty(0, dtype=np.intp), *inner])
    points, label = projected(search, given, owner), search.table.labels[given]
    cut = _cut(search, points, owner, label)
    raw = np.concatenate([points, *cut])
    ask(search, record, wanted, Proposed.of(raw, np.tile(owner, 1 + len(cut))), search.oracle.room(search.reserve))
    for _ in range(REFINED_AGAIN):
        score = choose.worth(record, price, 1, search.neighbours)
        proposed = propose(record, active, score, len(CAPS))
        ask(search, record, wanted, proposed, np.where(active, room_of(search, len(CAPS)), 0))


def _cut(search: Search, points: Matrix, owner: Rows, label: Rows) -> list[Matrix]:
    """Put changes back, the dearest first, and halve those that are left, while all neighbours have the label.

    Only the fitted rows are looked at: the model is asked about the points at the end, without and with halving.
    """
    start, points = search.factuals[owner], search.values.placed(points, search.factuals[owner])
    lines = np.arange(len(points))
    with np.errstate(invalid="ignore"):
        cost = np.where(search.table.is_level, points != start, np.abs(points - start)) * search.table.scale
    cost = np.where(np.isnan(cost), search.table.absent, cost)
    order, stages = np.argsort(-cost, axis=1, kind="stable"), []
    for parts in ((0.0,), (0.5, 0.75, 0.9)):
        for place in range(order.shape[1]):
            at = order[:, place]
            for part in parts:
                trial = points.copy()
                back = start[lines, at] + part * (points[lines, at] - start[lines, at])
                is_number = ~search.table.is_level[at] & ~np.isnan(start[lines, at])
                trial[lines, at] = np.where(
                    is_number | (part == 0.0), back if part else start[lines, at], points[lines, at]
                )
                trial = search.values.placed(trial, start)
                moved = np.flatnonzero(differs(trial, points).any(axis=1) & differs(trial, start).any(axis=1))
                if len(moved):
                    good = moved[search.share(trial[moved], owner[moved], label[moved]) == 1.0]
                    points[good] = trial[good]
        stages.append(points.copy())
    return stages
