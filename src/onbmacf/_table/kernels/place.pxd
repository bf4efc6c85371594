cimport cython
from libc.math cimport rint


@cython.locals(i=Py_ssize_t, f=Py_ssize_t, own=double, x=double)
cpdef object to_readable(const double[:, ::1] points, const double[:, ::1] factuals, const double[::1] up, const double[::1] down, const double[::1] nothing, double[:, ::1] placed)
