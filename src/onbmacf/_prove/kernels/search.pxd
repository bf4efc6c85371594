cimport cython

cdef Py_ssize_t NEW, OPEN, CANDIDATE, FIRM
cdef double NEVER, ULP, TINY

cdef class Search:
    # The choices of all features, those of one after the other.
    cdef Py_ssize_t n_features
    cdef Py_ssize_t[::1] start
    cdef double[::1] cost
    cdef Py_ssize_t[::1] own
    cdef bint is_sum
    # What a point must meet.
    cdef double[::1] need
    cdef double[::1] firm
    cdef readonly double limit
    cdef Py_ssize_t most
    cdef Py_ssize_t[:, ::1] pairs
    cdef double[::1] amount
    # Boxes, one line each.
    cdef Py_ssize_t[:, ::1] lo  # per feature: the first choice
    cdef Py_ssize_t[:, ::1] hi  # and the last
    cdef double[::1] bound
    cdef Py_ssize_t[::1] kind
    cdef Py_ssize_t[::1] feature  # where to cut: a feature, -1 for a single point
    cdef Py_ssize_t[::1] place  # and the first choice of its upper part
    cdef Py_ssize_t[::1] age
    cdef Py_ssize_t[::1] heap  # boxes; the first `n_heap` entries are a heap
    cdef Py_ssize_t[::1] free  # boxes that are not in use; the first `n_free`
    cdef Py_ssize_t n_heap
    cdef Py_ssize_t n_free
    cdef Py_ssize_t n_made
    # Room for the box that is looked at.
    cdef Py_ssize_t[::1] first  # its cheapest point
    cdef Py_ssize_t[::1] point  # a point of it that may be an answer
    cdef double[::1] sums  # what a model gives a point

    cpdef void run(self, Py_ssize_t n_steps)
    cdef bint _is_stopped(self) noexcept nogil
    cdef void _expand(self, Py_ssize_t n_steps) noexcept nogil
    cdef void _enter(self, Py_ssize_t box) noexcept nogil
    cdef bint _comes_first(self, Py_ssize_t one, Py_ssize_t other) noexcept nogil
    cdef void _push(self, Py_ssize_t box, double bound, Py_ssize_t kind) noexcept nogil
    cdef Py_ssize_t _pop(self) noexcept nogil
    cdef Py_ssize_t _take_free(self) noexcept nogil
    cdef void _give_back(self, Py_ssize_t box) noexcept nogil
    cdef Py_ssize_t _cut(self, Py_ssize_t box) noexcept nogil
    cdef void _push_candidate(self, Py_ssize_t box, double cost, bint is_firm) noexcept nogil
    cdef void _push_point(self, double cost) noexcept nogil
    cdef double _cheapest(self, Py_ssize_t box) noexcept nogil
    cdef double _cost_of(self, Py_ssize_t[::1] point) noexcept nogil
    cdef bint _reaches(self, double[::1] least) noexcept nogil
    cdef bint _keeps(self, Py_ssize_t[::1] point) noexcept nogil
    @cython.locals(is_changed=bint)
    cdef Py_ssize_t _broken_pair(self, Py_ssize_t[::1] point) noexcept nogil
    @cython.locals(may_keep_low=bint, may_keep_high=bint)
    cdef bint _is_hopeless(self, Py_ssize_t box) noexcept nogil
    cdef double _least(self, Py_ssize_t feature, Py_ssize_t low, Py_ssize_t high) noexcept nogil
    cdef double _most(self, Py_ssize_t feature, Py_ssize_t low, Py_ssize_t high) noexcept nogil
    @cython.locals(is_low=bint)
    cdef void _cut_in_half(self, Py_ssize_t box) noexcept nogil
