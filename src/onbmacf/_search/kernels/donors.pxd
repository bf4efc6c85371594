cimport cython

cdef double INF
cdef double NAN


@cython.locals(r=Py_ssize_t, i=Py_ssize_t, f=Py_ssize_t, k=Py_ssize_t, most=Py_ssize_t, total=double, limit=double, a=double, b=double)
cpdef object nearest(const double[:, ::1] factuals, const char[:, ::1] free, const char[::1] is_level, const double[::1] scale, const double[::1] absent, const double[:, ::1] rows, const Py_ssize_t[::1] labels, const char[:, ::1] wanted, const double[::1] radii, Py_ssize_t[:, ::1] found, double[:, ::1] apart)
@cython.locals(i=Py_ssize_t, k=Py_ssize_t, said=Py_ssize_t, last=Py_ssize_t, best=double, second=double)
cpdef object believe(double[:, ::1] scores, const Py_ssize_t[::1] codes, double slightly)
