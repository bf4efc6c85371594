"""The loops of the rounds: which points of each factual to ask about next, given all that was asked before.

    Trace  ->  singles, combine, refine, pull  ->  points to ask about  ->  append  ->  Trace

Everything is in the caller's own numbers, one column per feature: levels are codes, a missing value is NaN. A proposal
writes raw values into `out` and the number of the factual into `owner`, in the order in which they matter, for a budget
may cut the list short. Margins are log odds: above 0 a point is accepted, and the gain of a change is what it adds.
"""

# ruff: noqa: B007, SIM102, SIM109 - compiled as C, for which these are the plain forms
from __future__ import annotations

import numpy as np

try:
    import cython
except ImportError:  # the source runs as it is
    from onbmacf._base import plain_cython as cython

if not cython.compiled:
    from math import sqrt

SPARSITY = 0.03  # what one more changed feature costs, in units of distance
MOST_SINGLES = 24  # of one feature, each way, that the surrogate knows
MOST_TOP = 32  # combinations that are kept at a time
MOST_USED = 24  # features that are combined
INF = float("inf")
NAN = float("nan")


class Features:
    """The features of a table, as a search sees them."""

    def __init__(self, is_level, scale, absent, step, ranks, salt, power, most_changes):
        self.is_level, self.scale, self.absent, self.step = is_level, scale, absent, step
        self.ranks, self.salt, self.power, self.most_changes = ranks, salt, power, most_changes


class Trace:
    """All points asked about, per factual; the first is the factual itself. Also room to work in."""

    def __init__(self, own, free, points, margin, base, key, n_changed, only, size):
        self.own, self.free, self.points, self.margin = own, free, points, margin
        self.base, self.key, self.n_changed, self.only, self.size = base, key, n_changed, only, size
        width = own.shape[1]
        self.value, self.cost, self.gain = np.empty((3, width, 2, MOST_SINGLES))
        self.count, self.use = np.zeros((width, 2), dtype=np.intp), np.zeros(min(width, MOST_USED), dtype=np.intp)
        self.room, self.top, self.top_value = np.empty(width), np.empty(MOST_TOP), np.empty((MOST_TOP, 3))
        self.top_feature, self.top_from = np.zeros((MOST_TOP, 3), dtype=np.intp), np.zeros(MOST_TOP, dtype=np.intp)


# --- costs --------------------------------------------------------------------------------------------------------


def same(a, b):
    """Say whether two values are one; a missing one is the same as another."""
    return a == b or (a != a and b != b)


def cost_of(features, f, a, b):
    """Return what it costs to change a feature from one value to another."""
    if same(a, b):
        return 0.0
    if a != a or b != b:
        return features.absent[f]
    if features.is_level[f]:
        return features.scale[f]
    return abs(a - b) * features.scale[f]


def added(features, total, cost):
    """Return a sum of costs with one more."""
    if features.power == 1:
        return total + cost
    if features.power == 2:
        return total + cost * cost
    return cost if cost > total else total


def finished(features, total):
    """Return the distance that a sum of costs stands for."""
    return sqrt(total) if features.power == 2 else total


def append(trace, features, points, owner, allowed, room, row, slot):
    """Add the points that are new and allowed, as many per factual as it has room for; return how many.

    `row` and `slot` are told where each went.
    """
    n = 0
    width = points.shape[1]
    with cython.nogil:
        for i in range(points.shape[0]):
            r = owner[i]
            if not allowed[i] or room[r] <= 0 or trace.size[r] >= trace.points.shape[1]:
                continue
            total, key, n_changed, only = 0.0, 0.0, 0, -1
            for f in range(width):
                if not same(points[i, f], trace.own[r, f]):
                    n_changed += 1
                    only = f
                    key += features.salt[f]
                    total = added(features, total, cost_of(features, f, trace.own[r, f], points[i, f]))
            if n_changed > features.most_changes or (n_changed == 0 and trace.size[r] > 0):
                continue
            total = finished(features, total) + SPARSITY * n_changed
            is_new = True
            for s in range(trace.size[r]):
                if trace.base[r, s] == total and trace.key[r, s] == key:
                    is_new = False
                    for f in range(width):
                        if not same(points[i, f], trace.points[r, s, f]):
                            is_new = True
                            break
                    if not is_new:
                        break
            if not is_new:
                continue
            s = trace.size[r]
            for f in range(width):
                trace.points[r, s, f] = points[i, f]
            trace.margin[r, s] = NAN
            trace.base[r, s] = total
            trace.key[r, s] = key
            trace.n_changed[r, s] = n_changed
            trace.only[r, s] = only if n_changed == 1 else -1
            trace.size[r] = s + 1
            room[r] -= 1
            row[n] = r
            slot[n] = s
            n += 1
    return n


# --- round 1: every free feature alone ----------------------------------------------------------------------------


def place_of(ranks, f, value, after):
    """Return how many ranks lie below a value, or at most at it."""
    low = 0
    high = ranks.shape[1]
    while low < high:
        middle = (low + high) // 2
        if ranks[f, middle] < value or (after and ranks[f, middle] == value):
            low = middle + 1
        else:
            high = middle
    return low


def singles(trace, features, order, shares, per_row, out, owner):
    """Propose each free feature alone, both ways, at values so many ranks away; of levels two in each turn.

    A turn goes over all features, in the order given, before the next: what is cut off is the least telling.
    """
    n = 0
    last = features.ranks.shape[1] - 1
    with cython.nogil:
        for r in range(trace.own.shape[0]):
            first = n
            for turn in range(shares.shape[0]):
                for j in range(order.shape[0]):
                    f = order[j]
                    if not trace.free[r, f]:
                        continue
                    own = trace.own[r, f]
                    for side in range(2):
                        if features.is_level[f]:
                            place, move = -1, -1
                            while move < 2 * turn + side and place < last:  # the next level that is not its own
                                place += 1
                                value = features.ranks[f, place]
                                if value != value:
                                    place = last
                                elif value != own:
                                    move += 1
                            if move < 2 * turn + side:
                                continue
                            value = features.ranks[f, place]
                        elif own != own:
                            place = cython.cast(cython.Py_ssize_t, (0.5 + (side - 0.5) * shares[turn]) * last + 0.5)
                            value = features.ranks[f, place]
                        else:
                            move = cython.cast(cython.Py_ssize_t, shares[turn] * last + 0.5)
                            move = move if move > 1 else 1
                            if side == 0:
                                place = place_of(features.ranks, f, own, False) - move
                            else:
                                place = place_of(features.ranks, f, own, True) - 1 + move
                            place = 0 if place < 0 else (last if place > last else place)
                            value = features.ranks[f, place]
                            if (side == 0 and not value < own) or (side == 1 and not value > own):
                                continue
                        if value != value or n - first >= per_row:
                            continue
                        for g in range(trace.own.shape[1]):
                            out[n, g] = trace.own[r, g]
                        out[n, f] = value
                        owner[n] = r
                        n += 1
    return n


# --- what the singles say: an additive surrogate ------------------------------------------------------------------


def learn(trace, features, r):
    """Write down what each single change of a factual costs and gains."""
    most = trace.value.shape[2]
    for f in range(trace.own.shape[1]):
        trace.count[f, 0] = 0
        trace.count[f, 1] = 0
    for s in range(1, trace.size[r]):
        f = trace.only[r, s]
        if f < 0 or trace.margin[r, s] != trace.margin[r, s]:
            continue
        value = trace.points[r, s, f]
        side = 1 if not features.is_level[f] and value > trace.own[r, f] else 0
        n = trace.count[f, side]
        if n >= most:
            continue
        gain = trace.margin[r, s] - trace.margin[r, 0]
        if not (-INF < gain < INF):  # the model raised: no line leads there
            continue
        cost = cost_of(features, f, trace.own[r, f], value)
        k = n
        while k > 0 and (
            trace.cost[f, side, k - 1] > cost
            or (trace.cost[f, side, k - 1] == cost and trace.gain[f, side, k - 1] < gain)
        ):
            trace.value[f, side, k] = trace.value[f, side, k - 1]
            trace.cost[f, side, k] = trace.cost[f, side, k - 1]
            trace.gain[f, side, k] = trace.gain[f, side, k - 1]
            k -= 1
        trace.value[f, side, k] = value
        trace.cost[f, side, k] = cost
        trace.gain[f, side, k] = gain
        trace.count[f, side] = n + 1


def enough(trace, f, side, gain):
    """Return the cheapest single of a feature that gains so much; -1 if none does."""
    for k in range(trace.count[f, side]):
        if trace.gain[f, side, k] >= gain:
            return k
    return -1


def reached(trace, features, r, f, side, k, gain):
    """Return the value at which a feature should gain so much, on a line from the single before to single k."""
    value = trace.own[r, f]
    before = 0.0
    if features.is_level[f] or value != value:
        return trace.value[f, side, k]
    if k > 0:
        value, before = trace.value[f, side, k - 1], trace.gain[f, side, k - 1]
    if trace.gain[f, side, k] <= before or gain <= before:
        return trace.value[f, side, k]
    return value + (trace.value[f, side, k] - value) * (gain - before) / (trace.gain[f, side, k] - before)


def gain_at(trace, features, r, f, value):
    """Return what a feature should gain at a value: on a line between the singles around it."""
    own = trace.own[r, f]
    side = 1 if not features.is_level[f] and value > own else 0
    low = own
    before = 0.0
    if same(value, own):
        return 0.0
    if features.is_level[f] or own != own:
        for k in range(trace.count[f, side]):
            if trace.value[f, side, k] == value:
                return trace.gain[f, side, k]
        return 0.0
    for k in range(trace.count[f, side]):
        if abs(trace.value[f, side, k] - own) >= abs(value - own):
            if trace.value[f, side, k] == low:
                return trace.gain[f, side, k]
            return before + (trace.gain[f, side, k] - before) * (value - low) / (trace.value[f, side, k] - low)
        low, before = trace.value[f, side, k], trace.gain[f, side, k]
    return before


def worth(trace, f):
    """Return the most that a feature gains per cost."""
    best = 0.0
    for side in range(2):
        for k in range(trace.count[f, side]):
            own = trace.gain[f, side, k] / (trace.cost[f, side, k] + SPARSITY)
            if own > best:
                best = own
    return best


def worthy(trace, most):
    """List in `use` the features that gain most per cost, the best first; return how many."""
    n = 0
    for f in range(trace.own.shape[1]):
        own = worth(trace, f)
        if own <= 0.0:
            continue
        k = n if n < most else most
        while k > 0 and worth(trace, trace.use[k - 1]) < own:
            if k < most:
                trace.use[k] = trace.use[k - 1]
            k -= 1
        if k < most:
            trace.use[k] = f
            n = n + 1 if n < most else most
    return n


def clear(trace):
    """Forget the best combinations."""
    for k in range(trace.top.shape[0]):
        trace.top[k] = INF


def keep(trace, most, score, start, f, u, g, v, h, w):
    """Keep a combination if it is among the best: up to three features set to values, from the point at a slot."""
    k = most - 1
    if k < 0 or not score < trace.top[k]:
        return
    while k > 0 and trace.top[k - 1] > score:
        trace.top[k] = trace.top[k - 1]
        trace.top_from[k] = trace.top_from[k - 1]
        trace.top_feature[k, 0], trace.top_value[k, 0] = trace.top_feature[k - 1, 0], trace.top_value[k - 1, 0]
        trace.top_feature[k, 1], trace.top_value[k, 1] = trace.top_feature[k - 1, 1], trace.top_value[k - 1, 1]
        trace.top_feature[k, 2], trace.top_value[k, 2] = trace.top_feature[k - 1, 2], trace.top_value[k - 1, 2]
        k -= 1
    trace.top[k] = score
    trace.top_from[k] = start
    trace.top_feature[k, 0], trace.top_value[k, 0] = f, u
    trace.top_feature[k, 1], trace.top_value[k, 1] = g, v
    trace.top_feature[k, 2], trace.top_value[k, 2] = h, w


def emit_top(trace, r, most, out, owner, n):
    """Write the best combinations; return the number of points written so far."""
    for k in range(most):
        if trace.top[k] == INF or n >= out.shape[0]:
            break
        for f in range(trace.own.shape[1]):
            out[n, f] = trace.points[r, trace.top_from[k], f]
        for j in range(3):
            if trace.top_feature[k, j] >= 0:
                out[n, trace.top_feature[k, j]] = trace.top_value[k, j]
        owner[n] = r
        n += 1
    return n


def pairs(trace, features, r, n_use, need, at_end, most):
    """Keep the cheapest pairs whose gains add up to the need: a single of one feature, the least of another."""
    best_u = 0.0
    best_v = 0.0
    for a in range(n_use):
        f = trace.use[a]
        for b in range(n_use):
            g = trace.use[b]
            if f == g:
                continue
            best = INF
            for side in range(2):
                for k in range(trace.count[f, side]):
                    if not 0.0 < trace.gain[f, side, k] < need:
                        continue
                    for other in range(2):
                        m = enough(trace, g, other, need - trace.gain[f, side, k])
                        if m < 0:
                            continue
                        v = (
                            trace.value[g, other, m]
                            if at_end
                            else reached(trace, features, r, g, other, m, need - trace.gain[f, side, k])
                        )
                        score = added(
                            features,
                            added(features, 0.0, trace.cost[f, side, k]),
                            cost_of(features, g, trace.own[r, g], v),
                        )
                        score = finished(features, score)
                        if score < best:
                            best, best_u, best_v = score, trace.value[f, side, k], v
            if best < INF:
                keep(trace, most, best, 0, f, best_u, g, best_v, -1, 0.0)


def triples(trace, features, r, n_use, need, most):
    """Keep the cheapest triples: two features at the single that gains most or most per cost, the least of a third."""
    best_u = 0.0
    best_v = 0.0
    best_w = 0.0
    for a in range(n_use):
        f = trace.use[a]
        for b in range(a):
            g = trace.use[b]
            for c in range(n_use):
                h = trace.use[c]
                if h == f or h == g:
                    continue
                best = INF
                for i in range(2):
                    u = outstanding(trace, f, i)
                    for j in range(2):
                        v = outstanding(trace, g, j)
                        gain = gain_at(trace, features, r, f, u) + gain_at(trace, features, r, g, v)
                        if gain >= need:
                            continue
                        for side in range(2):
                            m = enough(trace, h, side, need - gain)
                            if m < 0:
                                continue
                            w = reached(trace, features, r, h, side, m, need - gain)
                            score = added(features, 0.0, cost_of(features, f, trace.own[r, f], u))
                            score = added(features, score, cost_of(features, g, trace.own[r, g], v))
                            score = finished(features, added(features, score, cost_of(features, h, trace.own[r, h], w)))
                            if score < best:
                                best, best_u, best_v, best_w = score, u, v, w
                if best < INF:
                    keep(trace, most, best, 0, f, best_u, g, best_v, h, best_w)


def outstanding(trace, f, which):
    """Return the value of a feature that gains most (0), or most per cost (1)."""
    best = -INF
    value = 0.0
    for side in range(2):
        for k in range(trace.count[f, side]):
            own = trace.gain[f, side, k]
            if which == 1:
                own = own / (trace.cost[f, side, k] + SPARSITY)
            if own > best:
                best, value = own, trace.value[f, side, k]
    return value


def greedy(trace, features, r, n_use, first, need, out, n):
    """Write a set that begins with one feature at its best and goes on with what gains most per cost, until enough."""
    best_f = first
    best_v = outstanding(trace, first, 1)
    left = need
    for f in range(trace.own.shape[1]):
        out[n, f] = trace.own[r, f]
    for turn in range(n_use + 1):
        out[n, best_f] = best_v
        left -= gain_at(trace, features, r, best_f, best_v)
        if left <= 0.0:
            return True
        best = 0.0
        for a in range(n_use):
            f = trace.use[a]
            if not same(out[n, f], trace.own[r, f]):
                continue
            for side in range(2):
                for k in range(trace.count[f, side]):
                    gain, v = trace.gain[f, side, k], trace.value[f, side, k]
                    if gain > left:  # no more than is needed
                        v = reached(trace, features, r, f, side, k, left)
                        gain = left
                    own = gain / (cost_of(features, f, trace.own[r, f], v) + SPARSITY)
                    if own > best:
                        best, best_f, best_v = own, f, v
        if best == 0.0:
            return False
    return False


def chain(trace, features, r, s, need, out, owner, n):
    """Write parts of an accepted point: its changes one by one, those that should gain most per cost first.

    The guess is scaled to what the whole point gained; written are the part that should just do, the one before and
    the next two.
    """
    taken = 0
    after = 0
    whole = 0.0
    sum_ = 0.0
    for f in range(trace.own.shape[1]):
        trace.room[f] = trace.own[r, f]
        gain = gain_at(trace, features, r, f, trace.points[r, s, f])
        whole += gain if gain > 0.0 else 0.0
    gain = trace.margin[r, s] - trace.margin[r, 0]
    if whole <= 0.0 or gain <= 0.0:
        whole = gain = 1.0
    need = need * whole / gain
    while taken < trace.n_changed[r, s] - 1 and after < 3:
        best, best_f, best_gain = -INF, -1, 0.0
        for f in range(trace.own.shape[1]):
            if same(trace.points[r, s, f], trace.own[r, f]) or not same(trace.room[f], trace.own[r, f]):
                continue
            gain = gain_at(trace, features, r, f, trace.points[r, s, f])
            own = gain / (cost_of(features, f, trace.own[r, f], trace.points[r, s, f]) + SPARSITY)
            if own > best:
                best, best_f, best_gain = own, f, gain
        if best_f < 0:
            break
        trace.room[best_f] = trace.points[r, s, best_f]
        taken += 1
        sum_ += best_gain
        if sum_ >= 0.7 * need and n < out.shape[0]:
            for f in range(trace.own.shape[1]):
                out[n, f] = trace.room[f]
            owner[n] = r
            n += 1
        if sum_ >= need:
            after += 1
    return n


def combine(trace, features, beliefs, sizes, out, owner):
    """Propose combinations of singles that should be enough, at several beliefs in their sum.

    `sizes`: features looked at for pairs, for triples; pairs, triples and greedy sets per belief; donors followed.
    """
    n = 0
    each = out.shape[0] // trace.own.shape[0]
    with cython.nogil:
        for r in range(trace.own.shape[0]):
            need = -trace.margin[r, 0]
            if not need > 0.0 or need == INF or trace.size[r] < 2:
                continue
            part, mine, m = out[n : n + each], owner[n : n + each], 0  # no factual takes the room of another
            learn(trace, features, r)
            n_use = worthy(trace, sizes[0])
            n_few = n_use if n_use < sizes[1] else sizes[1]
            for b in range(beliefs.shape[0]):
                clear(trace)
                pairs(trace, features, r, n_use, need * beliefs[b], b == beliefs.shape[0] - 1, sizes[2])
                m = emit_top(trace, r, sizes[2], part, mine, m)
                if features.most_changes > 2:
                    clear(trace)
                    triples(trace, features, r, n_few, need * beliefs[b], sizes[3])
                    m = emit_top(trace, r, sizes[3], part, mine, m)
                for a in range(n_use if n_use < sizes[4] else sizes[4]):
                    if m < each and greedy(trace, features, r, n_use, trace.use[a], need * beliefs[b], part, m):
                        mine[m] = r
                        m += 1
            last = -INF
            for turn in range(sizes[5]):
                best, score = -1, INF
                for s in range(1, trace.size[r]):
                    if trace.margin[r, s] > 0.0 and trace.n_changed[r, s] > 1 and last < trace.base[r, s] < score:
                        best, score = s, trace.base[r, s]
                if best < 0:
                    break
                last = score
                m = chain(trace, features, r, best, need, part, mine, m)
            n += m
    return n


# --- rounds 3 and on: drop, shrink, repair ------------------------------------------------------------------------


def differs_only_in(trace, r, s, t, f):
    """Say whether two points of a factual are the same but for one feature."""
    for g in range(trace.own.shape[1]):
        if g != f and not same(trace.points[r, s, g], trace.points[r, t, g]):
            return False
    return True


def shrink(trace, features, r, s, f, parts, out, owner, n):
    """Write places of one number between the last value that was refused and the accepted one.

    Where margins are known at both ends, also where the line between them crosses 0.
    """
    own = trace.own[r, f]
    here = trace.points[r, s, f]
    low = own
    margin = trace.margin[r, 0] if trace.n_changed[r, s] == 1 else NAN
    step = features.step[f]
    for t in range(1, trace.size[r]):
        value = trace.points[r, t, f]
        if trace.margin[r, t] <= 0.0 and (own - value) * (value - here) >= 0.0 and abs(value - own) >= abs(low - own):
            if value != here and differs_only_in(trace, r, s, t, f):
                low, margin = value, trace.margin[r, t]
    n_steps = abs(here - low) / step
    if n_steps < 1.5:
        return n
    if margin == margin and margin > -INF:
        at = low + (here - low) * (-margin) / (trace.margin[r, s] - margin)
        at += step * 0.75 if here > low else -step * 0.75  # on the accepted side of the crossing
        if abs(at - low) < abs(here - low) and n < out.shape[0]:
            for g in range(trace.own.shape[1]):
                out[n, g] = trace.points[r, s, g]
            out[n, f] = at
            owner[n] = r
            n += 1
    parts = parts if parts + 1 < n_steps else cython.cast(cython.Py_ssize_t, n_steps - 0.5)
    for k in range(1, parts + 1):
        if n >= out.shape[0]:
            break
        for g in range(trace.own.shape[1]):
            out[n, g] = trace.points[r, s, g]
        out[n, f] = low + (here - low) * k / (parts + 1)
        owner[n] = r
        n += 1
    return n


def whole_way(trace, features, r, s, out, owner, n):
    """Write places on the way from a point back to its factual; levels stay."""
    for k in range(4):
        if n >= out.shape[0]:
            break
        share = 0.5 if k == 0 else (0.75 if k == 1 else (0.88 if k == 2 else 0.95))
        for f in range(trace.own.shape[1]):
            out[n, f] = trace.points[r, s, f]
            if not features.is_level[f] and trace.own[r, f] == trace.own[r, f]:
                out[n, f] = trace.own[r, f] + share * (trace.points[r, s, f] - trace.own[r, f])
        owner[n] = r
        n += 1
    return n


def repair(trace, features, r, n_use, limit, most, belief):
    """Keep refused points that, with one change more or one farther, should be accepted and cost less than the limit.

    A point with a change dropped is among them, so a change may be exchanged for another.
    """
    most_worth = 0.0
    for a in range(n_use):
        value = worth(trace, trace.use[a])
        most_worth = value if value > most_worth else most_worth
    for s in range(1, trace.size[r]):
        need = -trace.margin[r, s] * belief
        if not 0.0 <= need < INF or trace.base[r, s] + 0.5 * need / (most_worth + 1e-12) >= limit:
            continue
        for a in range(n_use):
            f = trace.use[a]
            before = 0.0
            n_changed = trace.n_changed[r, s]
            if not same(trace.points[r, s, f], trace.own[r, f]):
                before = gain_at(trace, features, r, f, trace.points[r, s, f])
            else:
                n_changed += 1
            if n_changed > features.most_changes:
                continue
            for side in range(2):
                k = enough(trace, f, side, before + need)
                if k < 0:
                    continue
                value = reached(trace, features, r, f, side, k, before + need)
                total = 0.0
                for g in range(trace.own.shape[1]):
                    total = added(
                        features,
                        total,
                        cost_of(features, g, trace.own[r, g], value if g == f else trace.points[r, s, g]),
                    )
                total = finished(features, total) + SPARSITY * n_changed
                if total < limit:
                    keep(trace, most, total, s, f, value, -1, 0.0, -1, 0.0)


def probe(trace, features, r, limit, most, out, owner, n):
    """Write the most promising refused points with one more change each, whether or not the sum of gains says enough.

    Features that do little alone may do much together, and only asking tells. Promising is what has gained most per
    cost; a change is the one of its feature that gains most and leaves the point cheaper than the limit.
    """
    last = INF
    for turn in range(most):
        best, score = -1, 0.0
        for s in range(1, trace.size[r]):
            if trace.margin[r, s] <= 0.0 and trace.base[r, s] < limit and trace.n_changed[r, s] < features.most_changes:
                own = (trace.margin[r, s] - trace.margin[r, 0]) / trace.base[r, s]
                if score < own < last:
                    best, score = s, own
        if best < 0:
            break
        last = score
        for f in range(trace.own.shape[1]):
            if not same(trace.points[r, best, f], trace.own[r, f]):
                continue
            for side in range(2):
                gain, at = -INF, -1
                for k in range(trace.count[f, side]):
                    if (
                        trace.base[r, best] + trace.cost[f, side, k] + SPARSITY < limit
                        and trace.gain[f, side, k] > gain
                    ):
                        gain, at = trace.gain[f, side, k], k
                for k in range(at, at + 2):  # the next one, too: together, the best may lie farther
                    if at < 0 or k >= trace.count[f, side] or n >= out.shape[0]:
                        break
                    for g in range(trace.own.shape[1]):
                        out[n, g] = trace.points[r, best, g]
                    out[n, f] = trace.value[f, side, k]
                    owner[n] = r
                    n += 1
    return n


def refine(trace, features, score, sizes, belief, active, out, owner, chosen):
    """Propose what may be better than the best points known, one for each set of changed features.

    `score` is infinite where a point is not accepted. `sizes`: sets; places of a single change and of one among
    several; repairs; points per factual; refused points that are probed. `chosen` is room for the slots of the points.
    """
    n = 0
    each = out.shape[0] // trace.own.shape[0]
    with cython.nogil:
        for r in range(trace.own.shape[0]):
            for k in range(sizes[0]):
                chosen[r, k] = -1
            if not active[r]:
                continue
            part, mine, m = out[n : n + each], owner[n : n + each], 0  # no factual takes the room of another
            learn(trace, features, r)
            n_use = worthy(trace, trace.use.shape[0])
            limit = INF
            for t in range(sizes[0]):
                best, low = -1, INF
                for s in range(1, trace.size[r]):
                    if score[r, s] < low:
                        is_known = False
                        for k in range(t):
                            if trace.key[r, chosen[r, k]] == trace.key[r, s]:
                                is_known = True
                        if not is_known:
                            best, low = s, score[r, s]
                if best < 0:
                    break
                chosen[r, t] = best
                limit = trace.base[r, best] if trace.base[r, best] < limit or t == 0 else limit
            clear(trace)
            repair(trace, features, r, n_use, limit, sizes[3], belief)
            m = emit_top(trace, r, sizes[3], part, mine, m)
            m = probe(trace, features, r, limit, sizes[5], part, mine, m)
            for t in range(sizes[0]):
                best = chosen[r, t]
                if best < 0 or m >= sizes[4]:
                    break
                if trace.n_changed[r, best] > 1:
                    for f in range(trace.own.shape[1]):
                        if same(trace.points[r, best, f], trace.own[r, f]) or m >= each:
                            continue
                        for g in range(trace.own.shape[1]):
                            part[m, g] = trace.points[r, best, g]
                        part[m, f] = trace.own[r, f]
                        mine[m] = r
                        m += 1
                for f in range(trace.own.shape[1]):
                    if (
                        features.is_level[f]
                        or trace.own[r, f] != trace.own[r, f]
                        or same(trace.points[r, best, f], trace.own[r, f])
                    ):
                        continue
                    k = sizes[1] if trace.n_changed[r, best] == 1 else sizes[2]
                    m = shrink(trace, features, r, best, f, k, part, mine, m)
                if trace.n_changed[r, best] > 1:
                    m = whole_way(trace, features, r, best, part, mine, m)
            n += m
    return n


# --- weighing -----------------------------------------------------------------------------------------------------


def find_needless(trace, needless):
    """Mark the accepted points one of whose changes can be undone: the point without it was accepted, too."""
    with cython.nogil:
        for r in range(trace.own.shape[0]):
            for s in range(1, trace.size[r]):
                needless[r, s] = 0
                if not trace.margin[r, s] > 0.0 or trace.n_changed[r, s] < 2:
                    continue
                for t in range(1, trace.size[r]):
                    if trace.n_changed[r, t] != trace.n_changed[r, s] - 1 or not trace.margin[r, t] > 0.0:
                        continue
                    n_other = 0
                    for f in range(trace.own.shape[1]):
                        if not same(trace.points[r, s, f], trace.points[r, t, f]):
                            n_other += 1 if same(trace.points[r, t, f], trace.own[r, f]) else 2
                            if n_other > 1:
                                break
                    if n_other == 1:
                        needless[r, s] = 1
                        break


def weigh(trace, share, price, needless, total, most, row, slot):
    """Write the score of each accepted point whose neighbours are known, infinity for all others.

    Return how many points must have their neighbours counted next, at most so many per factual, and where they are:
    the cheapest of those that could still be better than the best known.
    """
    n = 0
    with cython.nogil:
        for r in range(trace.own.shape[0]):
            best = INF
            for s in range(trace.size[r]):
                total[r, s] = INF
                if not trace.margin[r, s] > 0.0 or needless[r, s]:
                    continue
                if price[r] == 0.0:
                    total[r, s] = trace.base[r, s]
                elif share[r, s] == share[r, s]:
                    missing = 1.0 - share[r, s]
                    total[r, s] = trace.base[r, s] + price[r] * missing * sqrt(missing)  # to the power of 1.5
                    if total[r, s] < best:
                        best = total[r, s]
            if price[r] == 0.0:
                continue
            first, count = n, 0
            for s in range(trace.size[r]):
                if not trace.margin[r, s] > 0.0 or share[r, s] == share[r, s] or not trace.base[r, s] < best:
                    continue
                if needless[r, s]:
                    continue
                if count == most and not trace.base[r, s] < trace.base[r, slot[first + most - 1]]:
                    continue
                k = first + (count if count < most else most - 1)
                while k > first and trace.base[r, slot[k - 1]] > trace.base[r, s]:
                    slot[k] = slot[k - 1]
                    k -= 1
                slot[k] = s
                count = count + 1 if count < most else most
            for k in range(first, first + count):
                row[k] = r
            n = first + count
    return n
