"""The fitted rows nearest to each factual, in the features that may change: where the values of changes come from."""

from __future__ import annotations

try:
    import cython
except ImportError:  # the source runs as it is
    from onbmacf._base import plain_cython as cython

INF = float("inf")
NAN = float("nan")


def nearest(factuals, free, is_level, scale, absent, rows, labels, wanted, radii, found, apart):
    """Write the rows of wanted labels with the least distance, less their radius; ties go to the lower row.

    A value that a row lacks is no change: the factual keeps its own. Costs add up whatever the metric: this only
    orders.
    """
    most = found.shape[1]
    with cython.nogil:
        for r in range(factuals.shape[0]):
            for k in range(most):
                found[r, k] = -1
                apart[r, k] = INF
            for i in range(rows.shape[0]):
                if not wanted[r, labels[i]]:
                    continue
                total = -radii[i]
                limit = apart[r, most - 1]
                for f in range(factuals.shape[1]):
                    if not free[r, f]:
                        continue
                    a, b = factuals[r, f], rows[i, f]
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
