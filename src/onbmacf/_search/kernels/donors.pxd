cimport cython

cdef double INF


@cython.locals(r=Py_ssize_t, i=Py_ssize_t, f=Py_ssize_t, k=Py_ssize_t, most=Py_ssize_t, total=double, limit=double, a=double, b=double)
cpdef object nearest(const double[:, ::1] own, const char[:, ::1] free, const char[::1] is_level, const double[::1] scale, const double[::1] absent, const double[:, ::1] rows, const Py_ssize_t[::1] labels, const char[:, ::1] wanted, const double[::1] radii, Py_ssize_t[:, ::1] found, double[:, ::1] apart)
@cython.locals(i=Py_ssize_t, k=Py_ssize_t, j=Py_ssize_t, f=Py_ssize_t, ball=Py_ssize_t, total=double, best=double, a=double, b=double)
cpdef object depths(const double[:, ::1] points, const Py_ssize_t[::1] owner, const char[::1] is_level, const double[::1] scale, const double[::1] absent, const double[:, ::1] centers, const double[::1] radii, const Py_ssize_t[:, :, ::1] near, double[:, ::1] found)
