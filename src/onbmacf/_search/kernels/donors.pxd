cimport cython

cdef double INF


@cython.locals(r=Py_ssize_t, i=Py_ssize_t, f=Py_ssize_t, k=Py_ssize_t, most=Py_ssize_t, total=double, limit=double, a=double, b=double)
cpdef object nearest(double[:, ::1] own, char[:, ::1] free, char[::1] is_level, double[::1] scale, double[::1] absent, double[:, ::1] rows, Py_ssize_t[::1] labels, char[:, ::1] wanted, double[::1] radii, Py_ssize_t[:, ::1] found, double[:, ::1] apart)
@cython.locals(i=Py_ssize_t, k=Py_ssize_t, j=Py_ssize_t, f=Py_ssize_t, ball=Py_ssize_t, total=double, best=double, a=double, b=double)
cpdef object depths(double[:, ::1] points, Py_ssize_t[::1] owner, char[::1] is_level, double[::1] scale, double[::1] absent, double[:, ::1] centers, double[::1] radii, Py_ssize_t[:, :, ::1] near, double[:, ::1] found)
