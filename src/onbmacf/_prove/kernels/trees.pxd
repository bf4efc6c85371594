cimport cython

from onbmacf._prove.kernels.search cimport Search

cdef Py_ssize_t OPEN, N_BUCKETS
cdef double NEVER, SLACK

cdef class TreeSearch(Search):
    # Trees, an entry per node.
    cdef Py_ssize_t[::1] split
    cdef Py_ssize_t[::1] left
    cdef Py_ssize_t[::1] right
    cdef Py_ssize_t[::1] after
    cdef Py_ssize_t[::1] upper
    cdef Py_ssize_t[::1] is_right
    cdef Py_ssize_t[::1] before
    cdef Py_ssize_t[::1] roots
    cdef double[:, ::1] values
    # Cells, an entry per split.
    cdef Py_ssize_t[::1] split_feature
    cdef Py_ssize_t[::1] split_place
    cdef Py_ssize_t[::1] table
    cdef Py_ssize_t[::1] counts
    # Paths, an entry per node: the feature of the split above, and its cells here and at the node before.
    cdef Py_ssize_t[::1] path_feature
    cdef Py_ssize_t[::1] path_low
    cdef Py_ssize_t[::1] path_high
    cdef Py_ssize_t[::1] low_before
    cdef Py_ssize_t[::1] high_before
    # Room for the box that is looked at.
    cdef double[::1] node_cost
    cdef double[::1] best  # per node
    cdef double[::1] votes  # per split: how much the trees' best sums differ on its sides; -1: the box is on one side
    cdef double[:, ::1] total  # conditions x buckets
    cdef double[:, ::1] stairs
    cdef Py_ssize_t[::1] met  # the nodes within the limit, in order
    cdef Py_ssize_t n_met

    cdef void _find_paths(self) noexcept nogil
    cdef void _keep_side(self, Py_ssize_t node, Py_ssize_t split) noexcept nogil
    cdef bint _is_side(self, Py_ssize_t split, Py_ssize_t cell, Py_ssize_t side) noexcept nogil
    cdef void _enter(self, Py_ssize_t box) noexcept nogil
    cdef double _bound_of(self, Py_ssize_t box, double base) noexcept nogil
    @cython.locals(bucket=Py_ssize_t)
    cdef void _visit(self, Py_ssize_t tree, Py_ssize_t box, double base) noexcept nogil
    cdef bint _is_open(self, Py_ssize_t node, Py_ssize_t box) noexcept nogil
    cdef double _cost_here(self, Py_ssize_t node, Py_ssize_t box) noexcept nogil
    cdef double _cost_between(self, Py_ssize_t feature, Py_ssize_t low, Py_ssize_t high) noexcept nogil
    @cython.locals(highest=double)
    cdef void _add_stairs(self) noexcept nogil
    @cython.locals(has_left=bint, has_right=bint)
    cdef void _vote(self, Py_ssize_t condition) noexcept nogil
    @cython.locals(goes_left=bint)
    cdef void _add_up(self) noexcept nogil
    cdef void _choose_cut(self, Py_ssize_t box) noexcept nogil

cpdef Py_ssize_t walk_down(
    Py_ssize_t[::1] left, Py_ssize_t[::1] right, Py_ssize_t[::1] first, Py_ssize_t[::1] order, Py_ssize_t[::1] upper,
    Py_ssize_t[::1] is_right, Py_ssize_t[::1] roots, Py_ssize_t[:, ::1] stack
) noexcept nogil
cpdef void link(
    Py_ssize_t[::1] left, Py_ssize_t[::1] right, Py_ssize_t[::1] upper, Py_ssize_t[::1] split, Py_ssize_t[::1] feature,
    Py_ssize_t[::1] after, Py_ssize_t[::1] before
) noexcept nogil
