cimport cython
from libc.math cimport ceil, floor, sqrt

cdef double SPARSITY
cdef double INF
cdef double NAN
cdef unsigned long long PRIME
cdef unsigned long long LOW

cdef class Features:
    cdef const char[::1] is_level
    cdef const double[::1] scale  # what a number costs per unit, and another level
    cdef const double[::1] absent  # what it costs to fill in a missing value
    cdef const double[::1] step  # the smallest move of a number
    cdef const double[:, ::1] ranks  # fitted values at even ranks; of levels all, the most frequent first, NaN behind them
    cdef const unsigned long long[::1] salt  # numbers whose sums tell points and sets of features apart
    cdef int power  # costs add up as Manhattan (1), Euclidean (2) or Chebyshev (0)
    cdef Py_ssize_t most_changes
    cdef const double[::1] farther  # by which part of its way a number may go on to a rounder one

cdef class Trace:
    cdef const double[:, ::1] factuals  # x features
    cdef const char[:, ::1] free  # which features may change
    cdef double[:, :, ::1] points  # factuals x points x features
    cdef double[:, ::1] margin
    cdef double[:, ::1] base  # distance and price of changes
    cdef double[:, ::1] share  # of neighbours that have the point's label
    cdef Py_ssize_t[:, ::1] code  # the label
    cdef unsigned long long[:, :, ::1] bits  # the same memory as points
    cdef unsigned long long[:, ::1] hash  # the changed features and their values
    cdef unsigned long long[:, ::1] key  # the set of changed features
    cdef Py_ssize_t[:, ::1] n_changed
    cdef Py_ssize_t[:, ::1] only  # the feature that changes alone; -1 for several
    cdef Py_ssize_t[::1] size
    cdef int[:, ::1] places  # hash tables: a slot and 1, 0 where there is none
    # what the singles of the factual at hand say, by feature and side (0: down, or levels; 1: up), cheapest first
    cdef double[:, :, ::1] value
    cdef double[:, :, ::1] cost
    cdef double[:, :, ::1] gain
    cdef Py_ssize_t[:, ::1] count
    cdef Py_ssize_t[::1] use  # room: the features worth combining
    cdef double[::1] room  # room for one point
    # the best few combinations
    cdef double[::1] top
    cdef Py_ssize_t[:, ::1] top_feature
    cdef double[:, ::1] top_value
    cdef Py_ssize_t[::1] top_from
    cdef Py_ssize_t[:, ::1] chosen  # slots that are refined: for their distance, for their score
    cdef double[:, ::1] best  # per feature worth combining: its single that gains most, and most per cost
    cdef double[:, ::1] best_gain
    cdef double[:, ::1] best_cost

cdef bint same(double a, double b) noexcept nogil
cdef double cost_of(Features features, Py_ssize_t f, double a, double b) noexcept nogil
cdef double added(Features features, double total, double cost) noexcept nogil
cdef double finished(Features features, double total) noexcept nogil
cdef unsigned long long folded(unsigned long long x) noexcept nogil
@cython.locals(salt=cython.ulonglong)
cdef unsigned long long mix(Features features, Py_ssize_t f, unsigned long long bits) noexcept nogil
@cython.locals(i=Py_ssize_t, f=Py_ssize_t, n=Py_ssize_t, total=double)
cpdef object measure(Trace trace, Features features, const double[:, ::1] points, const Py_ssize_t[::1] owner, double[::1] apart, Py_ssize_t[::1] n_changed)
@cython.locals(i=Py_ssize_t, f=Py_ssize_t, r=Py_ssize_t, s=Py_ssize_t, total=double, key=cython.ulonglong)
cpdef object find_refused(Trace trace, Features features, const double[:, ::1] points, const Py_ssize_t[::1] owner, char[::1] refused)
@cython.locals(n=Py_ssize_t, i=Py_ssize_t, f=Py_ssize_t, r=Py_ssize_t, s=Py_ssize_t, at=Py_ssize_t, phase=Py_ssize_t, n_changed=Py_ssize_t, only=Py_ssize_t, total=double, key=cython.ulonglong, code=cython.ulonglong, is_new=bint, width=Py_ssize_t)
cpdef Py_ssize_t append(Trace trace, Features features, const double[:, ::1] points, const unsigned long long[:, ::1] bits, const Py_ssize_t[::1] owner, const char[::1] part, char[::1] allowed, Py_ssize_t[::1] first, Py_ssize_t[::1] room, Py_ssize_t[::1] row, Py_ssize_t[::1] slot, Py_ssize_t[::1] line)
@cython.locals(i=Py_ssize_t, k=Py_ssize_t, best=double, other=double, is_known=bint)
cpdef object margins(const double[:, ::1] scores, const Py_ssize_t[::1] codes, const char[:, ::1] wanted, const Py_ssize_t[::1] owner, double refused, double[::1] out)
@cython.locals(most=double, low=double, high=double, unit=double, best=double, near=double, turn=Py_ssize_t)
cpdef double rounder(Features features, Py_ssize_t f, double start, double value) noexcept nogil
@cython.locals(low=Py_ssize_t, high=Py_ssize_t, middle=Py_ssize_t)
cdef Py_ssize_t place_of(const double[:, ::1] ranks, Py_ssize_t f, double value, bint after) noexcept nogil
@cython.locals(n=Py_ssize_t, r=Py_ssize_t, turn=Py_ssize_t, j=Py_ssize_t, f=Py_ssize_t, g=Py_ssize_t, k=Py_ssize_t, side=Py_ssize_t, place=Py_ssize_t, move=Py_ssize_t, first=Py_ssize_t, last=Py_ssize_t, n_free=Py_ssize_t, start=double, value=double)
cpdef Py_ssize_t singles(Trace trace, Features features, const Py_ssize_t[::1] order, const double[::1] shares, const Py_ssize_t[::1] room, double[:, ::1] out, Py_ssize_t[::1] owner)
@cython.locals(f=Py_ssize_t, s=Py_ssize_t, side=Py_ssize_t, k=Py_ssize_t, n=Py_ssize_t, gain=double, cost=double, value=double, most=Py_ssize_t)
cdef void learn(Trace trace, Features features, Py_ssize_t r) noexcept nogil
@cython.locals(k=Py_ssize_t)
cdef Py_ssize_t enough(Trace trace, Py_ssize_t f, Py_ssize_t side, double gain) noexcept nogil
@cython.locals(value=double, before=double)
cdef double reached(Trace trace, Features features, Py_ssize_t r, Py_ssize_t f, Py_ssize_t side, Py_ssize_t k, double gain) noexcept nogil
@cython.locals(start=double, side=Py_ssize_t, k=Py_ssize_t, low=double, before=double)
cdef double gain_at(Trace trace, Features features, Py_ssize_t r, Py_ssize_t f, double value) noexcept nogil
@cython.locals(best=double, side=Py_ssize_t, k=Py_ssize_t, rate=double)
cdef double worth(Trace trace, Py_ssize_t f) noexcept nogil
@cython.locals(n=Py_ssize_t, f=Py_ssize_t, k=Py_ssize_t)
cdef Py_ssize_t worthy(Trace trace, Py_ssize_t most) noexcept nogil
@cython.locals(k=Py_ssize_t)
cdef void clear(Trace trace) noexcept nogil
@cython.locals(k=Py_ssize_t)
cdef void keep(Trace trace, Py_ssize_t most, double score, Py_ssize_t start, Py_ssize_t f, double u, Py_ssize_t g, double v, Py_ssize_t h, double w) noexcept nogil
@cython.locals(k=Py_ssize_t, f=Py_ssize_t, j=Py_ssize_t)
cdef Py_ssize_t emit_top(Trace trace, Py_ssize_t r, Py_ssize_t most, double[:, ::1] out, Py_ssize_t[::1] owner, Py_ssize_t n) noexcept nogil
@cython.locals(a=Py_ssize_t, b=Py_ssize_t, f=Py_ssize_t, g=Py_ssize_t, side=Py_ssize_t, other=Py_ssize_t, k=Py_ssize_t, m=Py_ssize_t, best=double, score=double, v=double, best_u=double, best_v=double)
cdef void pairs(Trace trace, Features features, Py_ssize_t r, Py_ssize_t n_use, double need, bint at_end, Py_ssize_t most) noexcept nogil
@cython.locals(a=Py_ssize_t, b=Py_ssize_t, c=Py_ssize_t, i=Py_ssize_t, j=Py_ssize_t, f=Py_ssize_t, g=Py_ssize_t, h=Py_ssize_t, m=Py_ssize_t, side=Py_ssize_t, u=double, v=double, w=double, gain=double, score=double, best=double, best_u=double, best_v=double, best_w=double)
cdef void triples(Trace trace, Features features, Py_ssize_t r, Py_ssize_t n_use, double need, Py_ssize_t most) noexcept nogil
@cython.locals(side=Py_ssize_t, k=Py_ssize_t, best=double, rate=double, value=double)
cdef double outstanding(Trace trace, Py_ssize_t f, Py_ssize_t which) noexcept nogil
@cython.locals(f=Py_ssize_t, a=Py_ssize_t, k=Py_ssize_t, side=Py_ssize_t, best_f=Py_ssize_t, best_v=double, best=double, rate=double, gain=double, left=double, v=double, turn=Py_ssize_t)
cdef bint greedy(Trace trace, Features features, Py_ssize_t r, Py_ssize_t n_use, Py_ssize_t first, double need, double[:, ::1] out, Py_ssize_t n) noexcept nogil
@cython.locals(f=Py_ssize_t, taken=Py_ssize_t, best_f=Py_ssize_t, after=Py_ssize_t, whole=double, best=double, rate=double, gain=double, best_gain=double, sum_=double)
cdef Py_ssize_t chain(Trace trace, Features features, Py_ssize_t r, Py_ssize_t s, double need, double[:, ::1] out, Py_ssize_t[::1] owner, Py_ssize_t n) noexcept nogil
@cython.locals(b=Py_ssize_t, a=Py_ssize_t, s=Py_ssize_t, best=Py_ssize_t, n_few=Py_ssize_t, turn=Py_ssize_t, need=double, last=double, score=double)
cdef Py_ssize_t combine(Trace trace, Features features, Py_ssize_t r, Py_ssize_t n_use, const double[::1] beliefs, const Py_ssize_t[::1] sizes, double[:, ::1] out, Py_ssize_t[::1] owner, Py_ssize_t n) noexcept nogil
@cython.locals(g=Py_ssize_t)
cdef bint differs_only_in(Trace trace, Py_ssize_t r, Py_ssize_t s, Py_ssize_t t, Py_ssize_t f) noexcept nogil
@cython.locals(key=cython.ulonglong, without=cython.ulonglong, start=double, here=double, low=double, value=double, t=Py_ssize_t, last=Py_ssize_t)
cdef Py_ssize_t last_refused(Trace trace, Features features, Py_ssize_t r, Py_ssize_t s, Py_ssize_t f) noexcept nogil
@cython.locals(start=double, here=double, low=double, margin=double, at=double, step=double, g=Py_ssize_t, k=Py_ssize_t, last=Py_ssize_t, n_steps=double)
cdef Py_ssize_t shrink(Trace trace, Features features, Py_ssize_t r, Py_ssize_t s, Py_ssize_t f, Py_ssize_t parts, double[:, ::1] out, Py_ssize_t[::1] owner, Py_ssize_t n) noexcept nogil
@cython.locals(r=Py_ssize_t, s=Py_ssize_t, f=Py_ssize_t, best=Py_ssize_t, low=double, gap=double)
cpdef object settle(Trace trace, Features features, const double[:, ::1] score, double part, char[::1] out)
@cython.locals(f=Py_ssize_t, k=Py_ssize_t, share=double, start=double)
cdef Py_ssize_t whole_way(Trace trace, Features features, Py_ssize_t r, Py_ssize_t s, double[:, ::1] out, Py_ssize_t[::1] owner, Py_ssize_t n) noexcept nogil
@cython.locals(s=Py_ssize_t, a=Py_ssize_t, f=Py_ssize_t, g=Py_ssize_t, k=Py_ssize_t, side=Py_ssize_t, need=double, before=double, total=double, less=double, value=double, most_worth=double, n_changed=Py_ssize_t)
cdef void repair(Trace trace, Features features, Py_ssize_t r, Py_ssize_t n_use, double limit, Py_ssize_t most, double belief) noexcept nogil
@cython.locals(f=Py_ssize_t, side=Py_ssize_t, k=Py_ssize_t, before=Py_ssize_t, here=Py_ssize_t, middle=Py_ssize_t, start=double, value=double, cost=double, wide=double)
cdef void explore(Trace trace, Features features, Py_ssize_t r, double limit, Py_ssize_t most) noexcept nogil
@cython.locals(s=Py_ssize_t, f=Py_ssize_t, g=Py_ssize_t, k=Py_ssize_t, side=Py_ssize_t, turn=Py_ssize_t, best=Py_ssize_t, last=double, score=double, rate=double, gain=double, at=Py_ssize_t)
cdef Py_ssize_t probe(Trace trace, Features features, Py_ssize_t r, double limit, Py_ssize_t most, double[:, ::1] out, Py_ssize_t[::1] owner, Py_ssize_t n) noexcept nogil
@cython.locals(s=Py_ssize_t, t=Py_ssize_t, k=Py_ssize_t, best=Py_ssize_t, low=double, limit=double, value=double, is_known=bint)
cdef double choose_sets(Trace trace, Py_ssize_t r, const double[:, ::1] score, Py_ssize_t which, Py_ssize_t most) noexcept nogil
@cython.locals(s=Py_ssize_t, f=Py_ssize_t, g=Py_ssize_t, t=Py_ssize_t, k=Py_ssize_t, best=Py_ssize_t, low=double, limit=double, is_known=bint)
cdef Py_ssize_t refine(Trace trace, Features features, Py_ssize_t r, const double[:, ::1] score, Py_ssize_t which, bint again, Py_ssize_t n_use, const Py_ssize_t[::1] sizes, double belief, double[:, ::1] out, Py_ssize_t[::1] owner, Py_ssize_t n) noexcept nogil
@cython.locals(here=double[:, ::1], mine=Py_ssize_t[::1], m=Py_ssize_t, each=Py_ssize_t, n=Py_ssize_t, k=Py_ssize_t, first=Py_ssize_t, r=Py_ssize_t, n_use=Py_ssize_t)
cpdef Py_ssize_t propose(Trace trace, Features features, const double[:, ::1] score, const double[::1] beliefs, const Py_ssize_t[::1] combined, const Py_ssize_t[::1] near, const Py_ssize_t[::1] good, double belief, const char[::1] active, double[:, ::1] out, Py_ssize_t[::1] owner, char[::1] part)
@cython.locals(factual=double, value=double, low=double, high=double)
cdef double between(Trace trace, Features features, Py_ssize_t r, Py_ssize_t f, double start, double goal, double share) noexcept nogil
@cython.locals(n=Py_ssize_t, r=Py_ssize_t, s=Py_ssize_t, f=Py_ssize_t, k=Py_ssize_t, near=Py_ssize_t, best=Py_ssize_t, one=Py_ssize_t, other=Py_ssize_t, goal=Py_ssize_t, start=double, share=double)
cpdef Py_ssize_t pull(Trace trace, Features features, const double[:, ::1] score, const char[::1] active, double[:, ::1] out, Py_ssize_t[::1] owner, Py_ssize_t[::1] label)
@cython.locals(r=Py_ssize_t, s=Py_ssize_t, t=Py_ssize_t, f=Py_ssize_t, at=Py_ssize_t, code=cython.ulonglong, sets=cython.ulonglong, old=cython.ulonglong, new=cython.ulonglong, bit=cython.ulonglong)
cpdef object find_needless(Trace trace, Features features, char[:, ::1] needless, Py_ssize_t[::1] looked)
@cython.locals(n=Py_ssize_t, r=Py_ssize_t, s=Py_ssize_t, k=Py_ssize_t, first=Py_ssize_t, count=Py_ssize_t, best=double, missing=double)
cpdef Py_ssize_t weigh(Trace trace, const double[::1] price, const char[:, ::1] needless, char[::1] is_open, double[:, ::1] total, double[:, ::1] lowest, Py_ssize_t most, Py_ssize_t[::1] row, Py_ssize_t[::1] slot)
