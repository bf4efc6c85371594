cimport cython

from onbmacf._prove.kernels.search cimport Search

cdef Py_ssize_t OPEN
cdef double NEVER, SLACK

cdef class AdditiveSearch(Search):
    cdef double[:, ::1] gains  # conditions x choices: what a choice adds to a condition
    cdef double[::1] distances  # all costs, sorted
    # Room for the box that is looked at: the outline of each feature, and where the buying stopped.
    cdef Py_ssize_t[::1] corner  # per choice: the corners of a feature's outline, from its start on
    cdef Py_ssize_t[::1] n_corners  # per feature
    cdef Py_ssize_t[::1] bought  # per feature: the corner that is bought
    cdef Py_ssize_t cut  # the feature that is bought in part, -1 if none is
    cdef Py_ssize_t cut_place  # and the first choice above that part
    cdef Py_ssize_t tightest  # the condition that sets the bound

    cdef void _enter(self, Py_ssize_t box) noexcept nogil
    cdef double _bound_of_all(self, Py_ssize_t box, double base) noexcept nogil
    cdef double _bound_of(self, Py_ssize_t k, Py_ssize_t box, double base) noexcept nogil
    @cython.locals(total=double, sum_=double)
    cdef double _buy(self, Py_ssize_t k, Py_ssize_t box) noexcept nogil
    cdef void _trace(self, Py_ssize_t k, Py_ssize_t feature, Py_ssize_t first, Py_ssize_t last) noexcept nogil
    cdef Py_ssize_t _steepest(self, Py_ssize_t k) noexcept nogil
    cdef void _leave_cut(self, Py_ssize_t k, Py_ssize_t feature, double cost, double lacks) noexcept nogil
    cdef double _spend(self, Py_ssize_t k, Py_ssize_t box, double base) noexcept nogil
    @cython.locals(best=Py_ssize_t, total=double)
    cdef double _give_within(self, Py_ssize_t k, Py_ssize_t box, double distance) noexcept nogil
    @cython.locals(total=double)
    cdef bint _meets(self, Py_ssize_t[::1] point, double[::1] least) noexcept nogil
    cdef void _offer(self) noexcept nogil
