import cython
from gateway cimport clocks, yield_calls

cdef long long _LONG_NS
cdef long long _PAUSE_NS_MIN
cdef long long _PAUSE_NS_MAX


cdef class GivingWay:
    cdef long long _not_before_ns
    cdef long long _calm_at_ns
    cdef long long _pause_ns

    cpdef long long read_ns(self) except? -1

    cpdef give_up_core(self)

    @cython.locals(began_ns="long long", ended_ns="long long", is_soon=bint)
    cpdef give_way(self)
