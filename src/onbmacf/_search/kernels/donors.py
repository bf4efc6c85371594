"""The fitted rows nearest to each factual, in the features that may change: where the values of changes come from."""

from __future__ import annotations

try:
    import cython
except ImportError:  # the source runs as it is
    from onbmacf._base import plain_cython as cython

INF = float("inf")
NAN = float("nan")


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


def gap(is_level, scale, absent, f, a, b):
    """Return what lies between two values of a feature."""
    if a == b or (a != a and b != b):
        return 0.0
    if a != a or b != b:
        return absent[f]
    return scale[f] if is_level[f] else abs(a - b) * scale[f]


def surfaces(own, is_level, scale, absent, centers, radii, near, apart):
    """Write how far factuals are from the surfaces of balls that are near them."""
    with cython.nogil:
        for r in range(own.shape[0]):
            for k in range(near.shape[1]):
                for j in range(near.shape[2]):
                    ball = near[r, k, j]
                    if ball < 0:
                        break
                    apart[r, k, j] = -radii[ball]
                    for f in range(own.shape[1]):
                        apart[r, k, j] += gap(is_level, scale, absent, f, own[r, f], centers[ball, f])


def depths(points, owner, own, is_level, scale, absent, centers, near, apart, changed, found):
    """Write how deep points lie in the balls of each label that are near their factual; -inf where there is none.

    A point is as far from a surface as its factual, but for the features that it changes; `changed` is room for them.
    """
    with cython.nogil:
        for i in range(points.shape[0]):
            r = owner[i]
            n = 0
            for f in range(points.shape[1]):
                if points[i, f] != own[r, f] and (points[i, f] == points[i, f] or own[r, f] == own[r, f]):
                    changed[n] = f
                    n += 1
            for k in range(near.shape[1]):
                best = INF
                for j in range(near.shape[2]):
                    ball = near[r, k, j]
                    if ball < 0:
                        break
                    total = apart[r, k, j]
                    for m in range(n):
                        f = changed[m]
                        total += gap(is_level, scale, absent, f, points[i, f], centers[ball, f])
                        total -= gap(is_level, scale, absent, f, own[r, f], centers[ball, f])
                    if total < best:
                        best = total
                found[i, k] = -best


def believe(scores, codes, slightly):
    """Let what the model said score highest, by a little at least, and what it did not say no higher than that.

    The last column stands for labels that no fitted row has. Where the model raised, nothing is known.
    """
    last = scores.shape[1] - 1
    with cython.nogil:
        for i in range(scores.shape[0]):
            said = codes[i] if codes[i] < last else last
            best, second = -INF, -INF
            for k in range(last + 1):
                best = scores[i, k] if scores[i, k] > best else best
                if k != said and scores[i, k] > second:
                    second = scores[i, k]
            for k in range(last + 1):
                if said < 0:
                    scores[i, k] = NAN
                elif k == said:
                    scores[i, k] = best if best > second + slightly else second + slightly
                elif scores[i, k] == best:
                    scores[i, k] = second if second < best else best
