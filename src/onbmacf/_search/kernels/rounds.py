"""The loops of the rounds: which points of each factual to ask about next, given all that was asked before.

    Trace  ->  singles, propose, pull  ->  points to ask about  ->  append  ->  Trace  ->  weigh  ->  scores

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
    from math import ceil, floor, sqrt

SPARSITY = 0.03  # what one more changed feature costs, in units of distance
MOST_SINGLES = 24  # of one feature, each way, that the surrogate knows
MOST_TOP = 32  # combinations that are kept at a time
MOST_USED = 24  # features that are combined
MOST_SETS = 16  # sets of changes that are refined at a time
PRIME = 2305843009213693951  # 2 ** 61 - 1: points and sets of features are told apart by sums modulo this
LOW = 4294967295  # the lower half of 64 bits
INF = float("inf")
NAN = float("nan")


class Features:
    """The features of a table, as a search sees them."""

    def __init__(self, is_level, scale, absent, step, ranks, salt, power, most_changes, farther=None):
        self.is_level, self.scale, self.absent, self.step = is_level, scale, absent, step
        self.ranks, self.salt, self.power, self.most_changes = ranks, salt, power, most_changes
        self.farther = np.zeros(len(scale)) if farther is None else farther


class Trace:
    """All points asked about, per factual; the first is the factual itself. Also room to work in."""

    def __init__(self, factuals, free, points, margin, base, share, code, hash, key, n_changed, only, size, places):
        self.factuals, self.free, self.points, self.bits = factuals, free, points, points.view(np.uint64)
        self.margin, self.base, self.share, self.code = margin, base, share, code
        self.hash, self.key, self.n_changed, self.only, self.size = hash, key, n_changed, only, size
        self.places = places
        width = factuals.shape[1]
        self.value, self.cost, self.gain = np.empty((3, width, 2, MOST_SINGLES))
        self.count, self.use = np.zeros((width, 2), dtype=np.intp), np.zeros(min(width, MOST_USED), dtype=np.intp)
        self.room, self.top, self.top_value = np.empty(width), np.empty(MOST_TOP), np.empty((MOST_TOP, 3))
        self.top_feature, self.top_from = np.zeros((MOST_TOP, 3), dtype=np.intp), np.zeros(MOST_TOP, dtype=np.intp)
        self.chosen = np.zeros((2, MOST_SETS), dtype=np.intp)
        self.best, self.best_gain, self.best_cost = np.empty((3, 2, MOST_USED))


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


def folded(x):
    """Return x modulo PRIME, without a division: 2 ** 61 is 1."""
    x = (x & PRIME) + (x >> 61)
    return x - PRIME if x >= PRIME else x


def mix(features, f, bits):
    """Return a number that stands for a feature at a value."""
    salt = features.salt[f]
    return folded((bits & LOW) * (salt >> 32) + (bits >> 32) * ((salt & LOW) >> 3) + salt)


def measure(trace, features, points, owner, apart, n_changed):
    """Write how far points are from their factuals, and how many features they change."""
    with cython.nogil:
        for i in range(points.shape[0]):
            total, n = 0.0, 0
            for f in range(points.shape[1]):
                if not same(points[i, f], trace.factuals[owner[i], f]):
                    n += 1
                    total = added(features, total, cost_of(features, f, trace.factuals[owner[i], f], points[i, f]))
            apart[i] = finished(features, total)
            n_changed[i] = n


def find_refused(trace, features, points, owner, refused):
    """Mark points of which one that changes the same features, and costs as much, was refused."""
    with cython.nogil:
        for i in range(points.shape[0]):
            r = owner[i]
            total, key = 0.0, 0
            for f in range(points.shape[1]):
                if not same(points[i, f], trace.factuals[r, f]):
                    key = folded(key + features.salt[f])
                    total = added(features, total, cost_of(features, f, trace.factuals[r, f], points[i, f]))
            total = finished(features, total)
            for s in range(1, trace.size[r]):
                if trace.key[r, s] == key and trace.margin[r, s] <= 0.0 and trace.base[r, s] >= total:
                    refused[i] = 1
                    break


def append(trace, features, points, bits, owner, part, allowed, first, room, row, slot, line):
    """Add the points that are new and allowed, as many per factual as it has room for; return how many.

    Points of part 0 come first, up to a number of their own per factual, then those of part 1, then what is left of
    part 0. `row` and `slot` are told where each went, `line` which it was.
    """
    n = 0
    width = points.shape[1]
    with cython.nogil:
        for phase in range(3):
            for i in range(points.shape[0]):
                r = owner[i]
                if part[i] != (phase == 1) or allowed[i] != (2 if phase == 2 else 1):
                    continue
                if room[r] <= 0 or trace.size[r] >= trace.points.shape[1]:
                    continue
                if phase == 0 and first[r] <= 0:
                    allowed[i] = 2
                    continue
                total, key, code, n_changed, only = 0.0, 0, 0, 0, -1
                for f in range(width):
                    if not same(points[i, f], trace.factuals[r, f]):
                        n_changed += 1
                        only = f
                        key = folded(key + features.salt[f])
                        code = folded(code + mix(features, f, bits[i, f]))
                        total = added(features, total, cost_of(features, f, trace.factuals[r, f], points[i, f]))
                if n_changed > features.most_changes or (n_changed == 0 and trace.size[r] > 0):
                    continue
                at = code % trace.places.shape[1]
                is_new = True
                while is_new and trace.places[r, at] > 0:
                    s = trace.places[r, at] - 1
                    if trace.hash[r, s] == code:
                        is_new = False
                        for f in range(width):
                            if not same(points[i, f], trace.points[r, s, f]):
                                is_new = True
                                break
                    at = at + 1 if at + 1 < trace.places.shape[1] else 0
                if not is_new:
                    continue
                at = code % trace.places.shape[1]
                while trace.places[r, at] > 0:
                    at = at + 1 if at + 1 < trace.places.shape[1] else 0
                s = trace.size[r]
                trace.places[r, at] = s + 1
                for f in range(width):
                    trace.points[r, s, f] = points[i, f]
                trace.margin[r, s] = NAN
                trace.base[r, s] = finished(features, total) + SPARSITY * n_changed
                trace.hash[r, s] = code
                trace.key[r, s] = key
                trace.n_changed[r, s] = n_changed
                trace.only[r, s] = only if n_changed == 1 else -1
                trace.size[r] = s + 1
                room[r] -= 1
                first[r] -= 1
                row[n] = r
                slot[n] = s
                line[n] = i
                n += 1
    return n


def margins(scores, codes, wanted, owner, refused, out):
    """Write what the best wanted label of each point scores more than the best other; -inf where a score is missing.

    Where that is a tie and the label another, the point is refused.
    """
    with cython.nogil:
        for i in range(scores.shape[0]):
            best, other, is_known = -INF, -INF, True
            for k in range(scores.shape[1]):
                if scores[i, k] != scores[i, k]:
                    is_known = False
                elif k < wanted.shape[1] and wanted[owner[i], k]:
                    best = scores[i, k] if scores[i, k] > best else best
                else:
                    other = scores[i, k] if scores[i, k] > other else other
            out[i] = best - other if is_known and best != other else (0.0 if is_known and best > -INF else -INF)
            if out[i] > 0.0:
                if codes[i] < 0 or codes[i] >= wanted.shape[1] or not wanted[owner[i], codes[i]]:
                    out[i] = refused


def rounder(features, f, start, value):
    """Return the roundest number a little farther from the start than a value: 24,000 for 23,917.46.

    It lies within the fitted values if the value does. All numbers of fewer digits in reach are tried, so what comes
    out has the fewest.
    """
    most = abs(value - start) * features.farther[f]
    if features.is_level[f] or not 0.0 < most < INF:
        return value
    low, high = features.ranks[f, 0], features.ranks[f, features.ranks.shape[1] - 1]
    unit, best = 1.0, value
    while unit > most:
        unit /= 10.0
    while unit * 10.0 <= most:
        unit *= 10.0
    for turn in range(16):  # a multiple of the first unit is in reach; of each larger one, only while one was before
        near = ceil(value / unit - 1e-9) if value > start else floor(value / unit + 1e-9)
        near *= unit
        if abs(near - value) > most or (low <= value <= high and not low <= near <= high):
            break
        best = near
        unit *= 10.0
    return best


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


def singles(trace, features, order, shares, room, out, owner):
    """Propose each free feature alone, both ways, at values so many ranks away; of levels two in each turn.

    A turn goes over all features, in the order given, before the next: what is cut off is the least telling. A factual
    has as many turns as its own room allows, at least one: no other in the call has a part in it.
    """
    n = 0
    last = features.ranks.shape[1] - 1
    with cython.nogil:
        for r in range(trace.factuals.shape[0]):
            first, n_free = n, 0
            for f in range(trace.factuals.shape[1]):
                n_free += trace.free[r, f] != 0
            for turn in range(shares.shape[0]):
                if turn > 0 and 2 * n_free * (turn + 1) > room[r]:
                    break
                for j in range(order.shape[0]):
                    f = order[j]
                    if not trace.free[r, f]:
                        continue
                    start = trace.factuals[r, f]
                    for side in range(2):
                        if features.is_level[f]:
                            place, move = -1, -1
                            while move < 2 * turn + side and place < last:  # the next level that is not its own
                                place += 1
                                value = features.ranks[f, place]
                                if value != value:
                                    place = last
                                elif value != start:
                                    move += 1
                            if move < 2 * turn + side:
                                continue
                            value = features.ranks[f, place]
                        elif start != start:
                            place = cython.cast(cython.Py_ssize_t, (0.5 + (side - 0.5) * shares[turn]) * last + 0.5)
                            value = features.ranks[f, place]
                        else:
                            move = cython.cast(cython.Py_ssize_t, shares[turn] * last + 0.5)
                            move = move if move > 1 else 1
                            if side == 0:
                                place = place_of(features.ranks, f, start, False) - move
                            else:
                                place = place_of(features.ranks, f, start, True) - 1 + move
                            place = 0 if place < 0 else (last if place > last else place)
                            value = rounder(features, f, start, features.ranks[f, place])
                            if (side == 0 and not value < start) or (side == 1 and not value > start):
                                continue
                        if value != value or n - first >= room[r]:
                            continue
                        for g in range(trace.factuals.shape[1]):
                            out[n, g] = trace.factuals[r, g]
                        out[n, f] = value
                        owner[n] = r
                        n += 1
    return n


# --- what the singles say: an additive surrogate ------------------------------------------------------------------


def learn(trace, features, r):
    """Write down what each single change of a factual costs and gains."""
    most = trace.value.shape[2]
    for f in range(trace.factuals.shape[1]):
        trace.count[f, 0] = 0
        trace.count[f, 1] = 0
    for s in range(1, trace.size[r]):
        f = trace.only[r, s]
        if f < 0 or trace.margin[r, s] != trace.margin[r, s]:
            continue
        value = trace.points[r, s, f]
        side = 1 if not features.is_level[f] and value > trace.factuals[r, f] else 0
        n = trace.count[f, side]
        if n >= most:
            continue
        gain = trace.margin[r, s] - trace.margin[r, 0]
        if not (-INF < gain < INF):  # the model raised: no line leads there
            continue
        cost = cost_of(features, f, trace.factuals[r, f], value)
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
    value = trace.factuals[r, f]
    before = 0.0
    if features.is_level[f] or value != value:
        return trace.value[f, side, k]
    if k > 0:
        value, before = trace.value[f, side, k - 1], trace.gain[f, side, k - 1]
    if trace.gain[f, side, k] <= before or gain <= before:
        return trace.value[f, side, k]
    value += (trace.value[f, side, k] - value) * (gain - before) / (trace.gain[f, side, k] - before)
    return rounder(features, f, trace.factuals[r, f], value)


def gain_at(trace, features, r, f, value):
    """Return what a feature should gain at a value: on a line between the singles around it."""
    start = trace.factuals[r, f]
    side = 1 if not features.is_level[f] and value > start else 0
    low = start
    before = 0.0
    if same(value, start):
        return 0.0
    if features.is_level[f] or start != start:
        for k in range(trace.count[f, side]):
            if trace.value[f, side, k] == value:
                return trace.gain[f, side, k]
        return 0.0
    for k in range(trace.count[f, side]):
        if abs(trace.value[f, side, k] - start) >= abs(value - start):
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
            rate = trace.gain[f, side, k] / (trace.cost[f, side, k] + SPARSITY)
            if rate > best:
                best = rate
    return best


def worthy(trace, most):
    """List in `use` the features that gain most per cost, the best first; return how many. `room` gets their worth."""
    n = 0
    for f in range(trace.factuals.shape[1]):
        trace.room[f] = worth(trace, f)
        if trace.room[f] <= 0.0:
            continue
        k = n if n < most else most
        while k > 0 and trace.room[trace.use[k - 1]] < trace.room[f]:
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
        for f in range(trace.factuals.shape[1]):
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
                            cost_of(features, g, trace.factuals[r, g], v),
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
        for i in range(2):
            u = outstanding(trace, f, i)
            trace.best[i, a] = u
            trace.best_gain[i, a] = gain_at(trace, features, r, f, u)
            trace.best_cost[i, a] = cost_of(features, f, trace.factuals[r, f], u)
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
                    for j in range(2):
                        gain = trace.best_gain[i, a] + trace.best_gain[j, b]
                        if gain >= need:
                            continue
                        for side in range(2):
                            m = enough(trace, h, side, need - gain)
                            if m < 0:
                                continue
                            w = reached(trace, features, r, h, side, m, need - gain)
                            score = added(features, added(features, 0.0, trace.best_cost[i, a]), trace.best_cost[j, b])
                            score = finished(
                                features, added(features, score, cost_of(features, h, trace.factuals[r, h], w))
                            )
                            if score < best:
                                best, best_u, best_v, best_w = score, trace.best[i, a], trace.best[j, b], w
                if best < INF:
                    keep(trace, most, best, 0, f, best_u, g, best_v, h, best_w)


def outstanding(trace, f, which):
    """Return the value of a feature that gains most (0), or most per cost (1)."""
    best = -INF
    value = 0.0
    for side in range(2):
        for k in range(trace.count[f, side]):
            rate = trace.gain[f, side, k]
            if which == 1:
                rate = rate / (trace.cost[f, side, k] + SPARSITY)
            if rate > best:
                best, value = rate, trace.value[f, side, k]
    return value


def greedy(trace, features, r, n_use, first, need, out, n):
    """Write a set that begins with one feature at its best and goes on with what gains most per cost, until enough."""
    best_f = first
    best_v = outstanding(trace, first, 1)
    left = need
    for f in range(trace.factuals.shape[1]):
        out[n, f] = trace.factuals[r, f]
    for turn in range(n_use + 1):
        out[n, best_f] = best_v
        left -= gain_at(trace, features, r, best_f, best_v)
        if left <= 0.0:
            return True
        best = 0.0
        for a in range(n_use):
            f = trace.use[a]
            if not same(out[n, f], trace.factuals[r, f]):
                continue
            for side in range(2):
                for k in range(trace.count[f, side]):
                    gain, v = trace.gain[f, side, k], trace.value[f, side, k]
                    if gain > left:  # no more than is needed
                        v = reached(trace, features, r, f, side, k, left)
                        gain = left
                    rate = gain / (cost_of(features, f, trace.factuals[r, f], v) + SPARSITY)
                    if rate > best:
                        best, best_f, best_v = rate, f, v
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
    for f in range(trace.factuals.shape[1]):
        trace.room[f] = trace.factuals[r, f]
        gain = gain_at(trace, features, r, f, trace.points[r, s, f])
        whole += gain if gain > 0.0 else 0.0
    gain = trace.margin[r, s] - trace.margin[r, 0]
    if whole <= 0.0 or gain <= 0.0:
        whole = gain = 1.0
    need = need * whole / gain
    while taken < trace.n_changed[r, s] - 1 and after < 3:
        best, best_f, best_gain = -INF, -1, 0.0
        for f in range(trace.factuals.shape[1]):
            if same(trace.points[r, s, f], trace.factuals[r, f]) or not same(trace.room[f], trace.factuals[r, f]):
                continue
            gain = gain_at(trace, features, r, f, trace.points[r, s, f])
            rate = gain / (cost_of(features, f, trace.factuals[r, f], trace.points[r, s, f]) + SPARSITY)
            if rate > best:
                best, best_f, best_gain = rate, f, gain
        if best_f < 0:
            break
        trace.room[best_f] = rounder(features, best_f, trace.factuals[r, best_f], trace.points[r, s, best_f])
        taken += 1
        sum_ += best_gain
        if sum_ >= 0.7 * need and n < out.shape[0]:
            for f in range(trace.factuals.shape[1]):
                out[n, f] = trace.room[f]
            owner[n] = r
            n += 1
        if sum_ >= need:
            after += 1
    return n


def combine(trace, features, r, n_use, beliefs, sizes, out, owner, n):
    """Write combinations of singles that should be enough, at several beliefs in their sum.

    `sizes`: features looked at for triples; pairs, triples and greedy sets per belief; donors followed.
    """
    need = -trace.margin[r, 0]
    if not need > 0.0 or need == INF or trace.size[r] < 2:
        return n
    n_few = n_use if n_use < sizes[0] else sizes[0]
    for b in range(beliefs.shape[0]):
        clear(trace)
        pairs(trace, features, r, n_use, need * beliefs[b], b == beliefs.shape[0] - 1, sizes[1])
        n = emit_top(trace, r, sizes[1], out, owner, n)
        if features.most_changes > 2:
            clear(trace)
            triples(trace, features, r, n_few, need * beliefs[b], sizes[2])
            n = emit_top(trace, r, sizes[2], out, owner, n)
        for a in range(n_use if n_use < sizes[3] else sizes[3]):
            if n < out.shape[0] and greedy(trace, features, r, n_use, trace.use[a], need * beliefs[b], out, n):
                owner[n] = r
                n += 1
    last = -INF
    for turn in range(sizes[4]):
        best, score = -1, INF
        for s in range(1, trace.size[r]):
            if trace.margin[r, s] > 0.0 and trace.n_changed[r, s] > 1 and last < trace.base[r, s] < score:
                best, score = s, trace.base[r, s]
        if best < 0:
            break
        last = score
        n = chain(trace, features, r, best, need, out, owner, n)
    return n


# --- rounds 3 and on: drop, shrink, repair ------------------------------------------------------------------------


def differs_only_in(trace, r, s, t, f):
    """Say whether two points of a factual are the same but for one feature."""
    for g in range(trace.factuals.shape[1]):
        if g != f and not same(trace.points[r, s, g], trace.points[r, t, g]):
            return False
    return True


def last_refused(trace, features, r, s, f):
    """Return the refused point nearest to an accepted one among those that differ in this number alone.

    It lies on the way from the factual, whose slot is returned where there is none.
    """
    start = trace.factuals[r, f]
    here = trace.points[r, s, f]
    low = start
    last = 0
    key = trace.key[r, s]
    without = folded(key + PRIME - features.salt[f])
    for t in range(1, trace.size[r]):
        if (trace.key[r, t] != key and trace.key[r, t] != without) or not trace.margin[r, t] <= 0.0:
            continue
        value = trace.points[r, t, f]
        if (start - value) * (value - here) >= 0.0 and abs(value - start) >= abs(low - start):
            if value != here and differs_only_in(trace, r, s, t, f):
                low, last = value, t
    return last


def shrink(trace, features, r, s, f, parts, out, owner, n):
    """Write places of one number between the last value that was refused and the accepted one.

    Where margins are known at both ends, also where the line between them crosses 0.
    """
    start = trace.factuals[r, f]
    here = trace.points[r, s, f]
    last = last_refused(trace, features, r, s, f)
    low = trace.points[r, last, f]
    margin = trace.margin[r, last] if last > 0 or trace.n_changed[r, s] == 1 else NAN
    step = features.step[f]
    n_steps = abs(here - low) / step
    if n_steps < 1.5:
        return n
    if margin == margin and margin > -INF:
        at = low + (here - low) * (-margin) / (trace.margin[r, s] - margin)
        at += step * 0.75 if here > low else -step * 0.75  # on the accepted side of the crossing
        if abs(at - low) < abs(here - low) and n < out.shape[0]:
            for g in range(trace.factuals.shape[1]):
                out[n, g] = trace.points[r, s, g]
            out[n, f] = rounder(features, f, start, at)
            owner[n] = r
            n += 1
    parts = parts if parts + 1 < n_steps else cython.cast(cython.Py_ssize_t, n_steps - 0.5)
    for k in range(1, parts + 1):
        if n >= out.shape[0]:
            break
        for g in range(trace.factuals.shape[1]):
            out[n, g] = trace.points[r, s, g]
        out[n, f] = rounder(features, f, start, low + (here - low) * k / (parts + 1))
        owner[n] = r
        n += 1
    return n


def settle(trace, features, score, part, out):
    """Say of which factuals the best point changes one number, and can be shortened by no more than a part of its cost.

    A level costs as much as any: another feature may well be cheaper.
    """
    with cython.nogil:
        for r in range(trace.factuals.shape[0]):
            out[r] = False
            best, low = -1, INF
            for s in range(1, trace.size[r]):
                if score[r, s] < low:
                    best, low = s, score[r, s]
            if best < 0 or trace.n_changed[r, best] != 1:
                continue
            f = trace.only[r, best]
            if features.is_level[f] or trace.factuals[r, f] != trace.factuals[r, f]:
                continue
            gap = abs(trace.points[r, best, f] - trace.points[r, last_refused(trace, features, r, best, f), f])
            out[r] = gap * features.scale[f] <= part * trace.base[r, best]


def whole_way(trace, features, r, s, out, owner, n):
    """Write places on the way from a point back to its factual; levels stay."""
    for k in range(4):
        if n >= out.shape[0]:
            break
        share = 0.5 if k == 0 else (0.75 if k == 1 else (0.88 if k == 2 else 0.95))
        for f in range(trace.factuals.shape[1]):
            out[n, f] = trace.points[r, s, f]
            if not features.is_level[f] and trace.factuals[r, f] == trace.factuals[r, f]:
                start = trace.factuals[r, f]
                out[n, f] = rounder(features, f, start, start + share * (trace.points[r, s, f] - start))
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
            if not same(trace.points[r, s, f], trace.factuals[r, f]):
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
                total = cost_of(features, f, trace.factuals[r, f], value)
                if total >= limit:
                    continue
                if features.power == 1:  # the same without a loop, but for the last bits
                    less = cost_of(features, f, trace.factuals[r, f], trace.points[r, s, f])
                    if trace.base[r, s] + total - less >= limit * 1.000001:
                        continue
                total = 0.0
                for g in range(trace.factuals.shape[1]):
                    total = added(
                        features,
                        total,
                        cost_of(features, g, trace.factuals[r, g], value if g == f else trace.points[r, s, g]),
                    )
                total = finished(features, total) + SPARSITY * n_changed
                if total < limit:
                    keep(trace, most, total, s, f, value, -1, 0.0, -1, 0.0)


def explore(trace, features, r, limit, most):
    """Keep single changes between values that were asked about and refused, where they would cost less than the limit.

    Answers may lie between: widest gaps first, in shares of the fitted rows, and the more so the cheaper they are.
    """
    for f in range(trace.factuals.shape[1]):
        start = trace.factuals[r, f]
        if features.is_level[f] or start != start or not trace.free[r, f]:
            continue
        for side in range(2):
            before = place_of(features.ranks, f, start, side == 1) - side  # the last rank that is its own or nearer
            for k in range(trace.count[f, side]):
                if trace.cost[f, side, k] >= limit and k > 0 and trace.cost[f, side, k - 1] >= limit:
                    break
                here = place_of(features.ranks, f, trace.value[f, side, k], side == 0) - (side == 0)
                middle = (before + here) // 2
                if middle != before and middle != here and 0 <= middle < features.ranks.shape[1]:
                    value = rounder(features, f, start, features.ranks[f, middle])
                    cost = cost_of(features, f, start, value) + SPARSITY
                    if cost < limit and value != start:
                        wide = here - before if side == 1 else before - here
                        keep(trace, most, wide * (cost - limit), 0, f, value, -1, 0.0, -1, 0.0)
                if trace.gain[f, side, k] + trace.margin[r, 0] > 0.0:
                    break
                before = here


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
                rate = (trace.margin[r, s] - trace.margin[r, 0]) / trace.base[r, s]
                if score < rate < last:
                    best, score = s, rate
        if best < 0:
            break
        last = score
        for f in range(trace.factuals.shape[1]):
            if not same(trace.points[r, best, f], trace.factuals[r, f]):
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
                    for g in range(trace.factuals.shape[1]):
                        out[n, g] = trace.points[r, best, g]
                    out[n, f] = trace.value[f, side, k]
                    owner[n] = r
                    n += 1
    return n


def choose_sets(trace, r, score, which, most):
    """List the best point of each set of changes, and return the least cost of them."""
    limit = INF
    for t in range(most):
        best, low = -1, INF
        for s in range(1, trace.size[r]):
            value = score[r, s]
            if which == 0:
                value = trace.base[r, s] if trace.margin[r, s] > 0.0 else INF
            if value < low:
                is_known = False
                for k in range(t):
                    if trace.key[r, trace.chosen[which, k]] == trace.key[r, s]:
                        is_known = True
                        break
                if not is_known:
                    best, low = s, value
        trace.chosen[which, t] = best
        if best < 0:
            break
        limit = trace.base[r, best] if trace.base[r, best] < limit else limit
    return limit


def refine(trace, features, r, score, which, again, n_use, sizes, belief, out, owner, n):
    """Write what may be better than the best points known, one for each set of changed features.

    Best is what costs least (`which` 0), or scores least (1): then what the former had is left out, unless `again`.
    `sizes`: sets; places of a single change and of one among several; repairs; refused points that are probed; gaps
    that are explored.
    """
    limit = choose_sets(trace, r, score, which, sizes[0])
    if which == 0 or again or trace.chosen[0, 0] < 0 or limit != trace.base[r, trace.chosen[0, 0]]:
        clear(trace)
        repair(trace, features, r, n_use, limit, sizes[3], belief)
        n = emit_top(trace, r, sizes[3], out, owner, n)
        n = probe(trace, features, r, limit, sizes[4], out, owner, n)
    for t in range(sizes[0]):
        best = trace.chosen[which, t]
        if best < 0:
            break
        is_known = False
        for k in range(sizes[0] if which == 1 and not again else 0):
            if trace.chosen[0, k] < 0:
                break
            if trace.chosen[0, k] == best:
                is_known = True
                break
        if is_known:
            continue
        if trace.n_changed[r, best] > 1:
            for f in range(trace.factuals.shape[1]):
                if same(trace.points[r, best, f], trace.factuals[r, f]) or n >= out.shape[0]:
                    continue
                for g in range(trace.factuals.shape[1]):
                    out[n, g] = trace.points[r, best, g]
                out[n, f] = trace.factuals[r, f]
                owner[n] = r
                n += 1
        for f in range(trace.factuals.shape[1]):
            if (
                features.is_level[f]
                or trace.factuals[r, f] != trace.factuals[r, f]
                or same(trace.points[r, best, f], trace.factuals[r, f])
            ):
                continue
            k = sizes[1] if trace.n_changed[r, best] == 1 else sizes[2]
            n = shrink(trace, features, r, best, f, k, out, owner, n)
        if trace.n_changed[r, best] > 1:
            n = whole_way(trace, features, r, best, out, owner, n)
        if t == 0:
            clear(trace)
            explore(trace, features, r, limit, sizes[5])
            n = emit_top(trace, r, sizes[5], out, owner, n)
    return n


def propose(trace, features, score, beliefs, combined, near, good, belief, active, out, owner, part):
    """Propose points of a round for the active factuals: what may be nearer (part 0), what may be better (1).

    `score` is infinite where a point is not accepted. `combined`, `near` and `good` are the sizes of `combine`, where
    singles are to be combined, and of `refine`. Every factual has room of its own: none takes that of another.
    """
    n = 0
    each = out.shape[0] // trace.factuals.shape[0]
    with cython.nogil:
        for r in range(trace.factuals.shape[0]):
            if not active[r]:
                continue
            here, mine, m = out[n : n + each], owner[n : n + each], 0
            learn(trace, features, r)
            n_use = worthy(trace, trace.use.shape[0])
            if combined.shape[0] > 0:
                m = combine(trace, features, r, n_use, beliefs, combined, here, mine, m)
            m = refine(trace, features, r, score, 0, False, n_use, near, belief, here, mine, m)
            for k in range(m):
                part[n + k] = 0
            first = m
            m = refine(trace, features, r, score, 1, combined.shape[0] > 0, n_use, good, belief, here, mine, m)
            for k in range(first, m):
                part[n + k] = 1
            n += m
    return n


# --- for the sake of neighbours -----------------------------------------------------------------------------------


def between(trace, features, r, f, start, goal, share):
    """Return a value on the way from one to another, or beyond; a change that is hardly one is left out."""
    factual = trace.factuals[r, f]
    if features.is_level[f] or factual != factual:
        return goal if share >= 0.5 else start
    value = start + share * (goal - start)
    low, high = features.ranks[f, 0], features.ranks[f, features.ranks.shape[1] - 1]
    low, high = factual if factual < low else low, factual if factual > high else high
    value = low if value < low else (high if value > high else value)
    return factual if abs(value - factual) * features.scale[f] < SPARSITY else rounder(features, f, factual, value)


def pull(trace, features, score, active, out, owner, label):
    """Propose places between the nearest accepted point and the best ones, and beyond it; return how many.

    Best are the one with the lowest score, and the two nearest in the interior of their label. `label` is told which
    label each place should get.
    """
    n = 0
    with cython.nogil:
        for r in range(trace.factuals.shape[0]):
            if not active[r]:
                continue
            near, best, one, other = -1, -1, -1, -1
            for s in range(1, trace.size[r]):
                if trace.margin[r, s] > 0.0 and (near < 0 or trace.base[r, s] < trace.base[r, near]):
                    near = s
                if score[r, s] < INF and (best < 0 or score[r, s] < score[r, best]):
                    best = s
            if near < 0:
                continue
            for s in range(1, trace.size[r]):
                if not trace.margin[r, s] > 0.0 or trace.share[r, s] != 1.0 or trace.code[r, s] != trace.code[r, near]:
                    continue
                if one < 0 or trace.base[r, s] < trace.base[r, one]:
                    one, other = s, one
                elif other < 0 or trace.base[r, s] < trace.base[r, other]:
                    other = s
            for k in range(13):
                goal = best if k < 3 else (one if k < 6 else other)
                if k < 9 and (goal < 0 or goal == near or (k >= 3 and goal == best)):
                    continue
                for f in range(trace.factuals.shape[1]):
                    start = trace.points[r, near, f]
                    if k < 9:
                        share = 0.25 * (k % 3 + 1)
                        out[n, f] = between(trace, features, r, f, start, trace.points[r, goal, f], share)
                    else:
                        share = 1.15 if k == 9 else (1.35 if k == 10 else (1.7 if k == 11 else 2.2))
                        out[n, f] = between(trace, features, r, f, trace.factuals[r, f], start, share)
                owner[n] = r
                label[n] = trace.code[r, near]
                n += 1
    return n


# --- weighing -----------------------------------------------------------------------------------------------------


def find_needless(trace, features, needless, looked):
    """Mark the accepted points one of whose changes can be undone: the point without it was accepted, too.

    `looked` holds how many points each factual had the last time: two of these are not compared again.
    """
    with cython.nogil:
        for r in range(trace.factuals.shape[0]):
            if looked[r] == trace.size[r]:
                continue
            old, new = 0, 0  # a bit for each 64th set of changes: what was not accepted is seldom looked for
            for s in range(1, trace.size[r]):
                if trace.margin[r, s] > 0.0:
                    bit = cython.cast(cython.ulonglong, 1) << (trace.key[r, s] & 63)
                    old |= bit
                    new |= bit if s >= looked[r] else 0
            for s in range(1, trace.size[r]):
                if needless[r, s] or not trace.margin[r, s] > 0.0 or trace.n_changed[r, s] < 2:
                    continue
                sets = old if s >= looked[r] else new
                for f in range(trace.factuals.shape[1]):
                    if needless[r, s] or same(trace.points[r, s, f], trace.factuals[r, f]):
                        continue
                    code = folded(trace.key[r, s] + PRIME - features.salt[f])
                    if not (sets >> (code & 63)) & 1:
                        continue
                    code = folded(trace.hash[r, s] + PRIME - mix(features, f, trace.bits[r, s, f]))
                    at = code % trace.places.shape[1]
                    while trace.places[r, at] > 0:
                        t = trace.places[r, at] - 1
                        if trace.hash[r, t] == code and trace.margin[r, t] > 0.0 and t != s:
                            if same(trace.points[r, t, f], trace.factuals[r, f]) and differs_only_in(trace, r, s, t, f):
                                needless[r, s] = 1
                                break
                        at = at + 1 if at + 1 < trace.places.shape[1] else 0
            looked[r] = trace.size[r]


def weigh(trace, price, needless, is_open, total, lowest, most, row, slot):
    """Write the score of each accepted point whose neighbours are known, infinity for all others; and the lowest.

    Return how many points must have their neighbours counted next, at most so many per factual, and where they are:
    the cheapest of those that could still be better than the best known. Factuals that have such stay open, and only
    open ones are weighed.
    """
    n = 0
    with cython.nogil:
        for r in range(trace.factuals.shape[0]):
            if not is_open[r]:
                continue
            is_open[r] = 0
            best = INF
            lowest[1, r] = INF
            for s in range(trace.size[r]):
                total[r, s] = INF
                if not trace.margin[r, s] > 0.0 or needless[r, s]:
                    continue
                if trace.base[r, s] < lowest[1, r]:
                    lowest[1, r] = trace.base[r, s]
                if price[r] == 0.0:
                    total[r, s] = trace.base[r, s]
                    best = lowest[1, r]
                elif trace.share[r, s] == trace.share[r, s]:
                    missing = 1.0 - trace.share[r, s]
                    total[r, s] = trace.base[r, s] + price[r] * missing * sqrt(missing)  # to the power of 1.5
                    if total[r, s] < best:
                        best = total[r, s]
            lowest[0, r] = best
            if price[r] == 0.0:
                continue
            first, count = n, 0
            for s in range(trace.size[r]):
                if not trace.margin[r, s] > 0.0 or needless[r, s]:
                    continue
                if trace.share[r, s] == trace.share[r, s] or not trace.base[r, s] < best:
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
                is_open[r] = 1
            n = first + count
    return n
