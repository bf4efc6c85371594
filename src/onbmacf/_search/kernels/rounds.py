"""The loops of the rounds: which points of each factual to ask about next, given all that was asked before.

    Trace  ->  singles, combine, refine, pull  ->  points to ask about  ->  append  ->  Trace

Everything is in the caller's own numbers, one column per feature: levels are codes, a missing value is NaN. A proposal
writes raw values into `out` and the number of the factual into `owner`, in the order in which they matter, for a budget
may cut the list short. Margins are log odds: above 0 a point is accepted, and the gain of a change is what it adds.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # the source runs as it is
    from onbmacf._base import plain_cython as cython

if cython.compiled:
    from cython.cimports.libc.math import sqrt
else:
    from math import sqrt

SPARSITY = cython.declare(cython.double, 0.03)  # what one more changed feature costs, in units of distance
INF = cython.declare(cython.double, float("inf"))
NAN = cython.declare(cython.double, float("nan"))


@cython.cclass
class Features:
    """The features of a table, as a search sees them."""

    is_level: cython.char[::1]
    scale: cython.double[::1]  # what a number costs per unit, and another level
    absent: cython.double[::1]  # what it costs to fill in a missing value
    step: cython.double[::1]  # the smallest move of a number
    ranks: cython.double[:, ::1]  # fitted values at even ranks; of levels all, the most frequent first, NaN behind them
    salt: cython.double[::1]  # numbers whose sums tell sets of features apart
    power: cython.int  # costs add up as Manhattan (1), Euclidean (2) or Chebyshev (0)
    most_changes: cython.Py_ssize_t

    def __init__(self, is_level, scale, absent, step, ranks, salt, power, most_changes):
        self.is_level, self.scale, self.absent, self.step = is_level, scale, absent, step
        self.ranks, self.salt, self.power, self.most_changes = ranks, salt, power, most_changes


@cython.cclass
class Trace:
    """All points asked about, per factual; the first is the factual itself."""

    own: cython.double[:, ::1]  # factuals x features
    free: cython.char[:, ::1]  # which features may change
    points: cython.double[:, :, ::1]  # factuals x points x features
    margin: cython.double[:, ::1]
    base: cython.double[:, ::1]  # distance and price of changes
    key: cython.double[:, ::1]  # the set of changed features
    n_changed: cython.Py_ssize_t[:, ::1]
    only: cython.Py_ssize_t[:, ::1]  # the feature that changes alone; -1 for several
    size: cython.Py_ssize_t[::1]
    # what the singles of the factual at hand say, by feature and side (0: down, or levels; 1: up), cheapest first
    value: cython.double[:, :, ::1]
    cost: cython.double[:, :, ::1]
    gain: cython.double[:, :, ::1]
    count: cython.Py_ssize_t[:, ::1]
    use: cython.Py_ssize_t[::1]  # room: the features worth combining
    room: cython.double[::1]  # room for one point
    # room: the best few combinations
    top: cython.double[::1]
    top_feature: cython.Py_ssize_t[:, ::1]
    top_value: cython.double[:, ::1]
    top_from: cython.Py_ssize_t[::1]

    def __init__(self, own, free, points, margin, base, key, n_changed, only, size, value, cost, gain, count, use, room,
                 top, top_feature, top_value, top_from):  # fmt: skip
        self.own, self.free, self.points, self.margin = own, free, points, margin
        self.base, self.key, self.n_changed, self.only, self.size = base, key, n_changed, only, size
        self.value, self.cost, self.gain, self.count = value, cost, gain, count
        self.use, self.room = use, room
        self.top, self.top_feature, self.top_value, self.top_from = top, top_feature, top_value, top_from


# --- costs -----------------------------------------------------------------------------------------------------------


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def same(a: cython.double, b: cython.double) -> cython.bint:
    """Say whether two values are one; a missing one is the same as another."""
    return a == b or (a != a and b != b)


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def cost_of(features: Features, f: cython.Py_ssize_t, a: cython.double, b: cython.double) -> cython.double:
    """Return what it costs to change a feature from one value to another."""
    if same(a, b):
        return 0.0
    if a != a or b != b:
        return features.absent[f]
    if features.is_level[f]:
        return features.scale[f]
    return abs(a - b) * features.scale[f]


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def added(features: Features, total: cython.double, cost: cython.double) -> cython.double:
    """Return a sum of costs with one more."""
    if features.power == 1:
        return total + cost
    if features.power == 2:
        return total + cost * cost
    return cost if cost > total else total


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def finished(features: Features, total: cython.double) -> cython.double:
    """Return the distance that a sum of costs stands for."""
    return sqrt(total) if features.power == 2 else total


def append(
    trace: Trace,
    features: Features,
    points: cython.double[:, ::1],
    owner: cython.Py_ssize_t[::1],
    allowed: cython.char[::1],
    room: cython.Py_ssize_t[::1],
    row: cython.Py_ssize_t[::1],
    slot: cython.Py_ssize_t[::1],
) -> cython.Py_ssize_t:
    """Add the points that are new and allowed, as many per factual as it has room for; return how many.

    `row` and `slot` are told where each went.
    """
    n: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    f: cython.Py_ssize_t
    r: cython.Py_ssize_t
    s: cython.Py_ssize_t
    n_changed: cython.Py_ssize_t
    only: cython.Py_ssize_t
    total: cython.double
    key: cython.double
    is_new: cython.bint
    width: cython.Py_ssize_t = points.shape[1]
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


# --- round 1: every free feature alone ---------------------------------------------------------------------------------


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def place_of(ranks: cython.double[:, ::1], f: cython.Py_ssize_t, value: cython.double, after: cython.bint) -> cython.Py_ssize_t:
    """Return how many ranks lie below a value, or at most at it."""
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = ranks.shape[1]
    middle: cython.Py_ssize_t
    while low < high:
        middle = (low + high) // 2
        if ranks[f, middle] < value or (after and ranks[f, middle] == value):
            low = middle + 1
        else:
            high = middle
    return low


def singles(
    trace: Trace,
    features: Features,
    order: cython.Py_ssize_t[::1],
    shares: cython.double[::1],
    per_row: cython.Py_ssize_t,
    out: cython.double[:, ::1],
    owner: cython.Py_ssize_t[::1],
) -> cython.Py_ssize_t:
    """Propose each free feature alone, both ways, at values so many ranks away; of levels two in each turn.

    A turn goes over all features, in the order given, before the next: what is cut off is the least telling.
    """
    n: cython.Py_ssize_t = 0
    r: cython.Py_ssize_t
    turn: cython.Py_ssize_t
    j: cython.Py_ssize_t
    f: cython.Py_ssize_t
    g: cython.Py_ssize_t
    k: cython.Py_ssize_t
    side: cython.Py_ssize_t
    place: cython.Py_ssize_t
    move: cython.Py_ssize_t
    first: cython.Py_ssize_t
    last: cython.Py_ssize_t = features.ranks.shape[1] - 1
    own: cython.double
    value: cython.double
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


# --- what the singles say: an additive surrogate -----------------------------------------------------------------------


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def learn(trace: Trace, features: Features, r: cython.Py_ssize_t) -> cython.void:
    """Write down what each single change of a factual costs and gains."""
    f: cython.Py_ssize_t
    s: cython.Py_ssize_t
    side: cython.Py_ssize_t
    k: cython.Py_ssize_t
    n: cython.Py_ssize_t
    gain: cython.double
    cost: cython.double
    value: cython.double
    most: cython.Py_ssize_t = trace.value.shape[2]
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
        cost = cost_of(features, f, trace.own[r, f], value)
        k = n
        while k > 0 and (trace.cost[f, side, k - 1] > cost or (trace.cost[f, side, k - 1] == cost and trace.gain[f, side, k - 1] < gain)):
            trace.value[f, side, k] = trace.value[f, side, k - 1]
            trace.cost[f, side, k] = trace.cost[f, side, k - 1]
            trace.gain[f, side, k] = trace.gain[f, side, k - 1]
            k -= 1
        trace.value[f, side, k] = value
        trace.cost[f, side, k] = cost
        trace.gain[f, side, k] = gain
        trace.count[f, side] = n + 1


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def enough(trace: Trace, f: cython.Py_ssize_t, side: cython.Py_ssize_t, gain: cython.double) -> cython.Py_ssize_t:
    """Return the cheapest single of a feature that gains so much; -1 if none does."""
    k: cython.Py_ssize_t
    for k in range(trace.count[f, side]):
        if trace.gain[f, side, k] >= gain:
            return k
    return -1


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def reached(
    trace: Trace, features: Features, r: cython.Py_ssize_t, f: cython.Py_ssize_t, side: cython.Py_ssize_t, k: cython.Py_ssize_t, gain: cython.double
) -> cython.double:
    """Return the value at which a feature should gain so much, on a line from the single before to single k."""
    value: cython.double = trace.own[r, f]
    before: cython.double = 0.0
    if features.is_level[f] or value != value:
        return trace.value[f, side, k]
    if k > 0:
        value, before = trace.value[f, side, k - 1], trace.gain[f, side, k - 1]
    if trace.gain[f, side, k] <= before or gain <= before:
        return trace.value[f, side, k]
    return value + (trace.value[f, side, k] - value) * (gain - before) / (trace.gain[f, side, k] - before)


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def gain_at(trace: Trace, features: Features, r: cython.Py_ssize_t, f: cython.Py_ssize_t, value: cython.double) -> cython.double:
    """Return what a feature should gain at a value: on a line between the singles around it."""
    own: cython.double = trace.own[r, f]
    side: cython.Py_ssize_t = 1 if not features.is_level[f] and value > own else 0
    k: cython.Py_ssize_t
    low: cython.double = own
    before: cython.double = 0.0
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


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def worth(trace: Trace, f: cython.Py_ssize_t) -> cython.double:
    """Return the most that a feature gains per cost."""
    best: cython.double = 0.0
    side: cython.Py_ssize_t
    k: cython.Py_ssize_t
    own: cython.double
    for side in range(2):
        for k in range(trace.count[f, side]):
            own = trace.gain[f, side, k] / (trace.cost[f, side, k] + SPARSITY)
            if own > best:
                best = own
    return best


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def worthy(trace: Trace, most: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """List in `use` the features that gain most per cost, the best first; return how many."""
    n: cython.Py_ssize_t = 0
    f: cython.Py_ssize_t
    k: cython.Py_ssize_t
    own: cython.double
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


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def clear(trace: Trace) -> cython.void:
    """Forget the best combinations."""
    k: cython.Py_ssize_t
    for k in range(trace.top.shape[0]):
        trace.top[k] = INF


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def keep(
    trace: Trace, most: cython.Py_ssize_t, score: cython.double, start: cython.Py_ssize_t,
    f: cython.Py_ssize_t, u: cython.double, g: cython.Py_ssize_t, v: cython.double, h: cython.Py_ssize_t, w: cython.double,
) -> cython.void:  # fmt: skip
    """Keep a combination if it is among the best: up to three features set to values, from the point at a slot."""
    k: cython.Py_ssize_t = most - 1
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


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def emit_top(
    trace: Trace, r: cython.Py_ssize_t, most: cython.Py_ssize_t, out: cython.double[:, ::1], owner: cython.Py_ssize_t[::1], n: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Write the best combinations; return the number of points written so far."""
    k: cython.Py_ssize_t
    f: cython.Py_ssize_t
    j: cython.Py_ssize_t
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


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def pairs(trace: Trace, features: Features, r: cython.Py_ssize_t, n_use: cython.Py_ssize_t, need: cython.double, at_end: cython.bint, most: cython.Py_ssize_t) -> cython.void:
    """Keep the cheapest pairs whose gains add up to the need: a single of one feature, the least of another."""
    a: cython.Py_ssize_t
    b: cython.Py_ssize_t
    f: cython.Py_ssize_t
    g: cython.Py_ssize_t
    side: cython.Py_ssize_t
    other: cython.Py_ssize_t
    k: cython.Py_ssize_t
    m: cython.Py_ssize_t
    best: cython.double
    score: cython.double
    v: cython.double
    best_u: cython.double = 0.0
    best_v: cython.double = 0.0
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
                        v = trace.value[g, other, m] if at_end else reached(trace, features, r, g, other, m, need - trace.gain[f, side, k])
                        score = added(features, added(features, 0.0, trace.cost[f, side, k]), cost_of(features, g, trace.own[r, g], v))
                        score = finished(features, score)
                        if score < best:
                            best, best_u, best_v = score, trace.value[f, side, k], v
            if best < INF:
                keep(trace, most, best, 0, f, best_u, g, best_v, -1, 0.0)


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def triples(trace: Trace, features: Features, r: cython.Py_ssize_t, n_use: cython.Py_ssize_t, need: cython.double, most: cython.Py_ssize_t) -> cython.void:
    """Keep the cheapest triples: two features at the single that gains most or most per cost, the least of a third."""
    a: cython.Py_ssize_t
    b: cython.Py_ssize_t
    c: cython.Py_ssize_t
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    f: cython.Py_ssize_t
    g: cython.Py_ssize_t
    h: cython.Py_ssize_t
    m: cython.Py_ssize_t
    side: cython.Py_ssize_t
    u: cython.double
    v: cython.double
    w: cython.double
    gain: cython.double
    score: cython.double
    best: cython.double
    best_u: cython.double = 0.0
    best_v: cython.double = 0.0
    best_w: cython.double = 0.0
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


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def outstanding(trace: Trace, f: cython.Py_ssize_t, which: cython.Py_ssize_t) -> cython.double:
    """Return the value of a feature that gains most (0), or most per cost (1)."""
    side: cython.Py_ssize_t
    k: cython.Py_ssize_t
    best: cython.double = -INF
    own: cython.double
    value: cython.double = 0.0
    for side in range(2):
        for k in range(trace.count[f, side]):
            own = trace.gain[f, side, k]
            if which == 1:
                own = own / (trace.cost[f, side, k] + SPARSITY)
            if own > best:
                best, value = own, trace.value[f, side, k]
    return value


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def greedy(
    trace: Trace, features: Features, r: cython.Py_ssize_t, n_use: cython.Py_ssize_t, first: cython.Py_ssize_t, need: cython.double,
    out: cython.double[:, ::1], n: cython.Py_ssize_t,
) -> cython.bint:  # fmt: skip
    """Write a set that begins with one feature at its best and goes on with what gains most per cost, until enough."""
    f: cython.Py_ssize_t
    a: cython.Py_ssize_t
    k: cython.Py_ssize_t
    side: cython.Py_ssize_t
    best_f: cython.Py_ssize_t = first
    best_v: cython.double = outstanding(trace, first, 1)
    best: cython.double
    own: cython.double
    gain: cython.double
    left: cython.double = need
    v: cython.double
    turn: cython.Py_ssize_t
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


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def chain(
    trace: Trace, features: Features, r: cython.Py_ssize_t, s: cython.Py_ssize_t, need: cython.double,
    out: cython.double[:, ::1], owner: cython.Py_ssize_t[::1], n: cython.Py_ssize_t,
) -> cython.Py_ssize_t:  # fmt: skip
    """Write parts of an accepted point: its changes one by one, those that should gain most per cost first.

    The guess is scaled to what the whole point gained; written are the part that should just do, the one before and
    the next two.
    """
    f: cython.Py_ssize_t
    taken: cython.Py_ssize_t = 0
    best_f: cython.Py_ssize_t
    after: cython.Py_ssize_t = 0
    whole: cython.double = 0.0
    best: cython.double
    own: cython.double
    gain: cython.double
    best_gain: cython.double
    sum_: cython.double = 0.0
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


def combine(
    trace: Trace,
    features: Features,
    beliefs: cython.double[::1],
    sizes: cython.Py_ssize_t[::1],
    out: cython.double[:, ::1],
    owner: cython.Py_ssize_t[::1],
) -> cython.Py_ssize_t:
    """Propose combinations of singles that should be enough, at several beliefs in their sum.

    `sizes`: features looked at for pairs, for triples; pairs, triples and greedy sets per belief; donors followed.
    """
    n: cython.Py_ssize_t = 0
    r: cython.Py_ssize_t
    b: cython.Py_ssize_t
    a: cython.Py_ssize_t
    s: cython.Py_ssize_t
    best: cython.Py_ssize_t
    n_use: cython.Py_ssize_t
    n_few: cython.Py_ssize_t
    turn: cython.Py_ssize_t
    need: cython.double
    last: cython.double
    score: cython.double
    with cython.nogil:
        for r in range(trace.own.shape[0]):
            need = -trace.margin[r, 0]
            if not need > 0.0 or need == INF or trace.size[r] < 2:
                continue
            learn(trace, features, r)
            n_use = worthy(trace, sizes[0])
            n_few = n_use if n_use < sizes[1] else sizes[1]
            for b in range(beliefs.shape[0]):
                clear(trace)
                pairs(trace, features, r, n_use, need * beliefs[b], b == beliefs.shape[0] - 1, sizes[2])
                n = emit_top(trace, r, sizes[2], out, owner, n)
                if features.most_changes > 2:
                    clear(trace)
                    triples(trace, features, r, n_few, need * beliefs[b], sizes[3])
                    n = emit_top(trace, r, sizes[3], out, owner, n)
                for a in range(n_use if n_use < sizes[4] else sizes[4]):
                    if n < out.shape[0] and greedy(trace, features, r, n_use, trace.use[a], need * beliefs[b], out, n):
                        owner[n] = r
                        n += 1
            last = -INF
            for turn in range(sizes[5]):
                best, score = -1, INF
                for s in range(1, trace.size[r]):
                    if trace.margin[r, s] > 0.0 and trace.n_changed[r, s] > 1 and last < trace.base[r, s] < score:
                        best, score = s, trace.base[r, s]
                if best < 0:
                    break
                last = score
                n = chain(trace, features, r, best, need, out, owner, n)
    return n


# --- rounds 3 and on: drop, shrink, repair -----------------------------------------------------------------------------


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def differs_only_in(trace: Trace, r: cython.Py_ssize_t, s: cython.Py_ssize_t, t: cython.Py_ssize_t, f: cython.Py_ssize_t) -> cython.bint:
    """Say whether two points of a factual are the same but for one feature."""
    g: cython.Py_ssize_t
    for g in range(trace.own.shape[1]):
        if g != f and not same(trace.points[r, s, g], trace.points[r, t, g]):
            return False
    return True


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def shrink(
    trace: Trace, features: Features, r: cython.Py_ssize_t, s: cython.Py_ssize_t, f: cython.Py_ssize_t, parts: cython.Py_ssize_t,
    out: cython.double[:, ::1], owner: cython.Py_ssize_t[::1], n: cython.Py_ssize_t,
) -> cython.Py_ssize_t:  # fmt: skip
    """Write places of one number between the last value that was refused and the accepted one.

    Where margins are known at both ends, also where the line between them crosses 0.
    """
    own: cython.double = trace.own[r, f]
    here: cython.double = trace.points[r, s, f]
    low: cython.double = own
    margin: cython.double = trace.margin[r, 0] if trace.n_changed[r, s] == 1 else NAN
    value: cython.double
    at: cython.double
    step: cython.double = features.step[f]
    t: cython.Py_ssize_t
    g: cython.Py_ssize_t
    k: cython.Py_ssize_t
    n_steps: cython.double
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


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def whole_way(
    trace: Trace, features: Features, r: cython.Py_ssize_t, s: cython.Py_ssize_t,
    out: cython.double[:, ::1], owner: cython.Py_ssize_t[::1], n: cython.Py_ssize_t,
) -> cython.Py_ssize_t:  # fmt: skip
    """Write places on the way from a point back to its factual; levels stay."""
    f: cython.Py_ssize_t
    k: cython.Py_ssize_t
    share: cython.double
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


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def repair(trace: Trace, features: Features, r: cython.Py_ssize_t, n_use: cython.Py_ssize_t, limit: cython.double, most: cython.Py_ssize_t, belief: cython.double) -> cython.void:
    """Keep refused points that, with one change more or one farther, should be accepted and cost less than the limit.

    A point with a change dropped is among them, so a change may be exchanged for another.
    """
    s: cython.Py_ssize_t
    a: cython.Py_ssize_t
    f: cython.Py_ssize_t
    g: cython.Py_ssize_t
    k: cython.Py_ssize_t
    side: cython.Py_ssize_t
    need: cython.double
    before: cython.double
    total: cython.double
    value: cython.double
    most_worth: cython.double = 0.0
    n_changed: cython.Py_ssize_t
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
                    total = added(features, total, cost_of(features, g, trace.own[r, g], value if g == f else trace.points[r, s, g]))
                total = finished(features, total) + SPARSITY * n_changed
                if total < limit:
                    keep(trace, most, total, s, f, value, -1, 0.0, -1, 0.0)

@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def probe(
    trace: Trace, features: Features, r: cython.Py_ssize_t, limit: cython.double, most: cython.Py_ssize_t,
    out: cython.double[:, ::1], owner: cython.Py_ssize_t[::1], n: cython.Py_ssize_t,
) -> cython.Py_ssize_t:  # fmt: skip
    """Write the most promising refused points with one more change each, whether or not the sum of gains says enough.

    Features that do little alone may do much together, and only asking tells. Promising is what has gained most per
    cost; a change is the one of its feature that gains most and leaves the point cheaper than the limit.
    """
    s: cython.Py_ssize_t
    f: cython.Py_ssize_t
    g: cython.Py_ssize_t
    k: cython.Py_ssize_t
    side: cython.Py_ssize_t
    turn: cython.Py_ssize_t
    best: cython.Py_ssize_t
    last: cython.double = INF
    score: cython.double
    own: cython.double
    gain: cython.double
    at: cython.Py_ssize_t
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
                    if trace.base[r, best] + trace.cost[f, side, k] + SPARSITY < limit and trace.gain[f, side, k] > gain:
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


def refine(
    trace: Trace,
    features: Features,
    score: cython.double[:, ::1],
    sizes: cython.Py_ssize_t[::1],
    belief: cython.double,
    active: cython.char[::1],
    out: cython.double[:, ::1],
    owner: cython.Py_ssize_t[::1],
    chosen: cython.Py_ssize_t[:, ::1],
) -> cython.Py_ssize_t:
    """Propose what may be better than the best points known, one for each set of changed features.

    `score` is infinite where a point is not accepted. `sizes`: sets; places of a single change and of one among several;
    repairs; points per factual; refused points that are probed. `chosen` is room for the slots of the points that are refined.
    """
    n: cython.Py_ssize_t = 0
    first: cython.Py_ssize_t
    r: cython.Py_ssize_t
    s: cython.Py_ssize_t
    f: cython.Py_ssize_t
    g: cython.Py_ssize_t
    t: cython.Py_ssize_t
    k: cython.Py_ssize_t
    best: cython.Py_ssize_t
    n_use: cython.Py_ssize_t
    low: cython.double
    limit: cython.double
    is_known: cython.bint
    with cython.nogil:
        for r in range(trace.own.shape[0]):
            for k in range(sizes[0]):
                chosen[r, k] = -1
            if not active[r]:
                continue
            first = n
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
            n = emit_top(trace, r, sizes[3], out, owner, n)
            n = probe(trace, features, r, limit, sizes[5], out, owner, n)
            for t in range(sizes[0]):
                best = chosen[r, t]
                if best < 0 or n - first >= sizes[4]:
                    break
                if trace.n_changed[r, best] > 1:
                    for f in range(trace.own.shape[1]):
                        if same(trace.points[r, best, f], trace.own[r, f]) or n >= out.shape[0]:
                            continue
                        for g in range(trace.own.shape[1]):
                            out[n, g] = trace.points[r, best, g]
                        out[n, f] = trace.own[r, f]
                        owner[n] = r
                        n += 1
                for f in range(trace.own.shape[1]):
                    if features.is_level[f] or trace.own[r, f] != trace.own[r, f] or same(trace.points[r, best, f], trace.own[r, f]):
                        continue
                    k = sizes[1] if trace.n_changed[r, best] == 1 else sizes[2]
                    n = shrink(trace, features, r, best, f, k, out, owner, n)
                if trace.n_changed[r, best] > 1:
                    n = whole_way(trace, features, r, best, out, owner, n)
    return n


# --- weighing ----------------------------------------------------------------------------------------------------------


def weigh(
    trace: Trace,
    share: cython.double[:, ::1],
    price: cython.double[::1],
    total: cython.double[:, ::1],
    most: cython.Py_ssize_t,
    row: cython.Py_ssize_t[::1],
    slot: cython.Py_ssize_t[::1],
) -> cython.Py_ssize_t:
    """Write the score of each accepted point whose neighbours are known, infinity for all others.

    Return how many points must have their neighbours counted next, at most so many per factual, and where they are:
    the cheapest of those that could still be better than the best known.
    """
    n: cython.Py_ssize_t = 0
    r: cython.Py_ssize_t
    s: cython.Py_ssize_t
    k: cython.Py_ssize_t
    first: cython.Py_ssize_t
    count: cython.Py_ssize_t
    best: cython.double
    missing: cython.double
    with cython.nogil:
        for r in range(trace.own.shape[0]):
            best = INF
            for s in range(trace.size[r]):
                total[r, s] = INF
                if not trace.margin[r, s] > 0.0:
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
