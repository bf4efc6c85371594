"""The fitted rows nearest to each factual, in the features that may change: where the values of changes come from."""

from __future__ import annotations

try:
    import cython
except ImportError:  # the source runs as it is
    from onbmacf._base import plain_cython as cython

INF = float("inf")


def nearest(own, free, is_level, scale, absent, rows, labels, wanted, radii, found, apart):
    """Write the rows of wanted labels with the least distance, less their radius; ties go to the lower row.

    A value that a row lacks is no change: the factual keeps its own. Costs add up whatever the metric: this only
    orders.
    """
    most = found.shape[1]
    with cython.nogil:
        for r in range(own.shape[0]):
            for k in range(most):
                found[r, k] = -1
                apart[r, k] = INF
            for i in range(rows.shape[0]):
                if not wanted[r, labels[i]]:
                    continue
                total = -radii[i]
                limit = apart[r, most - 1]
                for f in range(own.shape[1]):
                    if not free[r, f]:
                        continue
                    a, b = own[r, f], rows[i, f]
                    if a == b or b != b:
                        continue
                    if a != a:
                        total += absent[f]
                    elif is_level[f]:
                        total += scale[f]
                    else:
                        total += abs(a - b) * scale[f]
                    if total >= limit:
                        break
                if total >= limit:
                    continue
                k = most - 1
                while k > 0 and apart[r, k - 1] > total:
                    apart[r, k] = apart[r, k - 1]
                    found[r, k] = found[r, k - 1]
                    k -= 1
                apart[r, k] = total
                found[r, k] = i


def depths(points, owner, is_level, scale, absent, centers, radii, near, found):
    """Write how deep points lie in the balls of each label that are near their factual; -inf where there is none."""
    with cython.nogil:
        for i in range(points.shape[0]):
            for k in range(near.shape[1]):
                best = INF
                for j in range(near.shape[2]):
                    ball = near[owner[i], k, j]
                    if ball < 0:
                        break
                    total = -radii[ball]
                    for f in range(points.shape[1]):
                        a, b = points[i, f], centers[ball, f]
                        if a == b or (a != a and b != b):
                            continue
                        if a != a or b != b:
                            total += absent[f]
                        elif is_level[f]:
                            total += scale[f]
                        else:
                            total += abs(a - b) * scale[f]
                        if total >= best:
                            break
                    if total < best:
                        best = total
                found[i, k] = -best
