"""The balls whose surfaces are nearest to new points, without looking at all balls: the order is that of a full list.

    Balls  ->  NearestBalls  ->  the k balls of wanted labels with the smallest bounds, per point

A ball's bound is `share * (distance - radius - base)`. Balls lie in leaves of one label each, with a box around their
centres and the largest of their radii. Sums, roots and differences are rounded in one direction only, so the bound of
a box is never above the bound of a ball in it, to the last bit, and no leaf is skipped that holds one of the k.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.geometry import Balls
from onbmacf._balls.kernels.compiled import surface_loops
from onbmacf._balls.kernels.grid import code_of, to_grid
from onbmacf._balls.kernels.leaves import LEAF, kd_order
from onbmacf._base.missing import has_missing
from onbmacf._base.threads import map_chunks

CHUNK = 16  # points per task, and more where there are few balls
CELLS = 1 << 22  # of points x balls x columns that are worth a task


class BallLeaves(NamedTuple):
    """Leaves of balls as parallel arrays."""

    balls: NDArray[np.intp]  # (leaves, LEAF): positions in the cover, -1 in empty places
    points: NDArray[np.float64]  # (leaves, columns, LEAF): centres
    radii: NDArray[np.float64]  # (leaves, LEAF): minus infinity in empty places
    widest: NDArray[np.float64]  # per leaf: its largest radius
    labels: NDArray[np.intp]  # per leaf
    low: NDArray[np.float64]  # (columns, leaves): the box around the centres
    high: NDArray[np.float64]
    metric: int  # see code_of


class Query(NamedTuple):
    """Points and what is asked about them, one line each."""

    z: NDArray[np.float64]
    wanted: NDArray[np.bool_]  # points x labels
    base: NDArray[np.float64]
    share: float
    lacks: bool  # whether a value of theirs, or of a ball, is missing


class NearestBalls:
    """An index of a cover's balls."""

    def __init__(self, balls: Balls, metric: str) -> None:
        order = _leaf_order(balls)
        count = len(order) // LEAF
        filled = np.maximum.accumulate(np.where(order < 0, -1, np.arange(len(order))))
        points = np.ascontiguousarray(balls.points[order[filled]].reshape(count, LEAF, -1).transpose(0, 2, 1))
        radii = np.where(order < 0, -np.inf, balls.radii[order[filled]]).reshape(count, LEAF)
        self._n_labels, self._lacks = int(balls.labels.max()) + 1, has_missing(balls.points)
        self._leaves = BallLeaves(
            balls=order.reshape(count, LEAF),
            points=points,
            radii=radii,
            widest=radii.max(axis=1),
            labels=balls.labels[order[::LEAF]].astype(np.intp),
            low=np.ascontiguousarray(points.min(axis=2).T),
            high=np.ascontiguousarray(points.max(axis=2).T),
            metric=code_of(metric),
        )

    def home(self, z: NDArray[np.float64], threads: int | None = None) -> NDArray[np.intp]:
        """Return the ball with the nearest surface of each point, ties to the ball chosen first."""
        every = np.ones((len(z), self._n_labels), dtype=bool)
        return self._smallest(self._query(z, every, np.zeros(len(z)), 1.0), 1, threads)[0][:, 0]

    def nearest(
        self,
        z: NDArray[np.float64],
        wanted: NDArray[np.bool_],
        base: NDArray[np.float64],
        k: int,
        threads: int | None = None,
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return k balls of wanted labels per point, those of the smallest bounds, and the bounds, in no order.

        The bound is half of what the surface distance exceeds `base` by; ties go to the ball chosen first. Where
        there are fewer balls, -1 and infinity stand for the others.
        """
        allowed = np.zeros((len(z), max(self._n_labels, wanted.shape[1])), dtype=bool)
        allowed[:, : wanted.shape[1]] = wanted  # a row taken into the map may have a label unseen in fit
        return self._smallest(self._query(z, allowed, base, 0.5), k, threads)

    def _query(
        self, z: NDArray[np.float64], wanted: NDArray[np.bool_], base: NDArray[np.float64], share: float
    ) -> Query:
        return Query(np.ascontiguousarray(z), wanted, base, share, self._lacks or has_missing(z))

    def _smallest(self, query: Query, k: int, threads: int | None) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        found, bounds = np.full((len(query.z), k), -1, dtype=np.intp), np.full((len(query.z), k), np.inf)

        def work(start: int, stop: int) -> None:
            surfaces, near = (
                surface_loops.Surfaces(self._leaves, query),
                np.empty((stop - start, len(self._leaves.labels))),
            )
            surface_loops.bound_leaves(surfaces, start, stop, near)
            order = np.argsort(near, axis=1, kind="stable")
            surface_loops.scan_leaves(surfaces, start, stop, near, order, found, bounds)

        map_chunks(work, len(query.z), max(CHUNK, CELLS // self._leaves.points.size), threads)
        return found, bounds


def _leaf_order(balls: Balls) -> NDArray[np.intp]:
    """Return the balls so that each run of LEAF places is a leaf of one label; -1 in places that stay empty.

    A leaf holds balls that are near to each other and of similar radius: the radius is one more side of its box.
    """
    grid = to_grid(np.column_stack([balls.points, balls.radii]), "manhattan")
    parts = []
    for label in np.unique(balls.labels):
        rows = kd_order(grid.points, np.flatnonzero(balls.labels == label))
        parts += [rows, np.full(-len(rows) % LEAF, -1, np.intp)]
    return np.concatenate(parts)
