"""Fitted rows in the midst of their label, for `plausibility=1`: all of their neighbours have it, too.

A row with the factual's immutable values can be returned as it is, so where there is one, full plausibility is always
reached; others are tried with the factual's values put in (docs/decisions/0121-five-rounds.md).
"""

import numpy as np

from onbmacf._balls.distance import distances
from onbmacf._balls.metrics import Metric
from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._search.problem import Features, Map

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
