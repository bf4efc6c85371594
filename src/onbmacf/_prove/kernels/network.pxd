cimport cython

from onbmacf._prove.kernels.search cimport Search

cdef Py_ssize_t OPEN, HALVINGS
cdef double NEVER, SLACK

cdef class NetworkSearch(Search):
    # Layers; `unit_start` and `weight_start` are where each layer begins.
    cdef double[:, ::1] given
    cdef double[::1] fixed
    cdef Py_ssize_t[::1] is_line
    cdef double[:, ::1] line
    cdef double[::1] along
    cdef Py_ssize_t[::1] sizes
    cdef Py_ssize_t[::1] unit_start
    cdef double[::1] weights
    cdef Py_ssize_t[::1] weight_start
    cdef double[::1] bias
    cdef Py_ssize_t n_layers
    cdef Py_ssize_t n_first  # units of the first layer
    # Room for the box that is looked at: how far its features lead from its cheapest point, what they offer to a sum.
    cdef Py_ssize_t[::1] from_choice  # per feature: the first choice, counted over all features
    cdef Py_ssize_t[::1] to_choice
    cdef Py_ssize_t[::1] first_choice  # the cheapest
    cdef double[:, ::1] ways  # 4 x features of a line: how far up and down it, and how far per cost, from the cheapest
    cdef double[::1] rate  # per feature: the most gain per cost
    cdef double[::1] gain  # per feature: the most gain
    cdef Py_ssize_t[::1] best  # per feature: the choice that gives the most
    cdef Py_ssize_t[::1] bought  # per feature: 0 not at all, 1 in part, 2 whole
    cdef Py_ssize_t[::1] open  # the features that have more than one choice, the first `n_open` entries
    cdef Py_ssize_t n_open
    cdef double[::1] worth  # per choice of the feature that is looked at
    # Room for the units of that box.
    cdef double[::1] low  # per unit: the least that its sum can be
    cdef double[::1] high
    cdef double[::1] weight  # per unit: what one sum weighs it with, after the unit's line is taken
    cdef double[::1] raw  # per unit: the same before that
    cdef double[::1] gap  # per unit: how much its line gives away, as the condition weighs it
    cdef double[::1] settled  # per unit of the first layer: what it gets from features with one choice, and in any case

    cdef void _enter(self, Py_ssize_t box) noexcept nogil
    # The box.
    cdef void _measure(self, Py_ssize_t box) noexcept nogil
    cdef void _measure_line(self, Py_ssize_t feature) noexcept nogil
    # What features offer to a sum.
    cdef double _look(self, Py_ssize_t unit, double sign) noexcept nogil
    cdef double _look_at_line(self, Py_ssize_t feature, Py_ssize_t unit, double sign) noexcept nogil
    cdef double _look_at_choices(self, Py_ssize_t feature, Py_ssize_t unit, double sign) noexcept nogil
    @cython.locals(total=double)
    cdef double _weighed(self, double[:, ::1] table, Py_ssize_t line) noexcept nogil
    cdef Py_ssize_t _steepest(self) noexcept nogil
    cdef double _within(self, double budget) noexcept nogil
    # What every sum is at most.
    cdef void _bound_units(self, double budget) noexcept nogil
    cdef double _range_end(self, Py_ssize_t layer, Py_ssize_t unit, double sign) noexcept nogil
    cdef double _from_above(self, Py_ssize_t layer, Py_ssize_t unit, double sign) noexcept nogil
    cdef double _pass_down(self, Py_ssize_t layer) noexcept nogil
    # The bound of the box.
    cdef double _bound_of_all(self, double base) noexcept nogil
    cdef double _bound_of(self, Py_ssize_t k, double base) noexcept nogil
    cdef double _buy(self, double need, double base, double sum_) noexcept nogil
    cdef double _spend(self, double need, double base, double sum_) noexcept nogil
    cdef double _given_within(self, double distance) noexcept nogil
    # Where to cut, and which point to offer.
    @cython.locals(is_own_alone=bint)
    cdef void _choose_cut(self, Py_ssize_t box) noexcept nogil
    @cython.locals(passed=double)
    cdef void _leave_gaps(self) noexcept nogil
    @cython.locals(total=double, far=double, low=double, high=double)
    cdef double _gap_of(self, Py_ssize_t feature) noexcept nogil
    cdef void _add_up(self, Py_ssize_t[::1] point) noexcept nogil
    cdef bint _holds(self) noexcept nogil
    cdef void _take_back(self, Py_ssize_t feature) noexcept nogil
    cdef void _offer(self) noexcept nogil
