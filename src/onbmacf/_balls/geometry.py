"""Where the boundary of two balls cuts a segment, and which side a point is on.

A point's place relative to a ball is its signed surface distance d(x, centre) - r: negative inside. The
boundary of two balls is where theirs are equal: the midpoint between the surfaces on the centre line. It
needs no formula of the metric and works for r = 0 (decision 0005). Option "ratio" compares d / r instead.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from onbmacf._balls.distance import paired
from onbmacf._balls.metrics import Metric
from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._base.missing import between


class Balls(NamedTuple):
    """Balls as places: one line each per ball, or per pair of a factual and a ball."""

    points: Matrix  # centres, encoded
    radii: Matrix
    labels: Rows


BOUNDARIES = ("surface", "ratio")
HALVINGS = 50  # of a segment: to within 1e-15 of its length
SLACK = 1e-12  # rounding error forgiven to a point that lies on the boundary


def surface_distance(distance: Matrix, radius: Matrix, boundary: str) -> Matrix:
    """Return how far outside (positive) or inside (negative) a ball points lie; for "ratio", d / r."""
    if boundary == "surface":
        return distance - radius
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = distance / radius
    return np.where(distance == 0, 0.0, ratio)


def crossing(z: Matrix, goal: Matrix, home: Balls, ball: Balls, metric: Metric, boundary: str) -> Matrix:
    """Return per line the share of the way from z to goal at which the boundary is met.

    All arguments have one line per pair. 0 if z is beyond the boundary already, 1 if even the goal is not
    (decision 0010). Under Manhattan and "surface" the difference is monotone along the segment, since every
    coordinate of the goal is either z's or the centre's; otherwise one crossing is found.
    """

    def beyond(lines: Rows, share: Matrix) -> Mask:
        points = between(z[lines], goal[lines], share)
        from_home = surface_distance(paired(points, home.points[lines], metric), home.radii[lines], boundary)
        from_ball = surface_distance(paired(points, ball.points[lines], metric), ball.radii[lines], boundary)
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(from_home - from_ball, nan=0.0) >= -SLACK

    every = np.arange(len(z))
    starts, ends = beyond(every, np.zeros(len(z))), beyond(every, np.ones(len(z)))
    share = np.where(starts, 0.0, 1.0)
    inside = np.flatnonzero(~starts & ends)
    share[inside] = _first_beyond(len(inside), lambda middle: beyond(inside, middle))
    return share


def _first_beyond(n: int, is_beyond: Callable[[Matrix], Mask]) -> Matrix:
    """Halve n intervals [0, 1] towards the first share that is beyond."""
    low, high = np.zeros(n), np.ones(n)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        hit = is_beyond(middle)
        high, low = np.where(hit, middle, high), np.where(hit, low, middle)
    return high
