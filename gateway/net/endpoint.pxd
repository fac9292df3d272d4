import cython

from gateway.net.shares cimport Shares
from gateway.runtime.loop cimport Clock, CoarseTimer, TurnRunner


@cython.final
cdef class Endpoint:
    cdef public str name
    cdef public object paces
    cdef public object connect
    cdef public long long connections
    cdef public Clock clock
    cdef public CoarseTimer timer
    cdef public object table
    cdef public object limits
    cdef public dict refused
    cdef public TurnRunner turns
    cdef public object admission
    cdef public Shares shares
    cdef public object turn_away
    cdef public object events
    cdef public object ways

    cpdef release(self, str host, str refusal)
