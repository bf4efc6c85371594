# Numbers that the compiler must know: loops over a leaf are then of a known length, and metrics are told apart once.
cdef enum:
    LEAF = 128
    TOP = 16383
    GONE = 16384
    NUMBER = -1
    MANHATTAN = 0
    EUCLIDEAN = 1
    CHEBYSHEV = 2
