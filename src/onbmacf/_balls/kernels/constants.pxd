# Numbers that the compiler must know: loops over a leaf are then of a known length, and metrics are told apart once.
cdef enum:
    LEAF = 128
    TOGETHER = 16
    TOP = 16383
    GONE = 16384
    LACKING = -16384
    NUMBER = -1
    MANHATTAN = 0
    EUCLIDEAN = 1
    CHEBYSHEV = 2

cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__GNUC__)
    #define PROCESSOR_HAS_AVX2 __builtin_cpu_supports("avx2")
    #else
    #define PROCESSOR_HAS_AVX2 0
    #endif
    """
    bint PROCESSOR_HAS_AVX2
