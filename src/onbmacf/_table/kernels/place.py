"""The rounding of searched values to readable decimals: once per point that a search proposes."""

from __future__ import annotations

try:
    import cython
except ImportError:  # the source runs as it is
    from onbmacf._base import plain_cython as cython

if not cython.compiled:
    from numpy import rint


def to_readable(points, factuals, up, down, nothing, placed):
    """Write each value rounded to its decimals, and the factual's own where it is that, nearly that, or no number.

    A feature with two decimals has 100 in `up`, one in hundreds 100 in `down`, and 1 in the other.
    """
    with cython.nogil:
        for i in range(points.shape[0]):
            for f in range(points.shape[1]):
                own = factuals[i, f]
                x = points[i, f]
                if x == own or x != x:
                    placed[i, f] = own
                    continue
                x = rint(x * up[f] / down[f]) / up[f] * down[f]
                placed[i, f] = own if abs(x - own) <= nothing[f] else x
