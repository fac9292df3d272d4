import cython

from core.metrics cimport LoopMetrics

cdef long long _SHARE_NS
cdef long long _READS_NS
cdef long long _WAITING_NS
cdef long long _DEAR_NS
cdef long long _CHEAP_NS


@cython.final
cdef class Shares:
    cdef LoopMetrics _metrics
    cdef object _call_soon
    cdef object _now_ns
    cdef object _waiting
    cdef dict _spent_ns
    cdef bint _is_called
    cdef long long _used_ns
    cdef long long _cheap_ns
    cdef long long _began_ns
    cdef long long _until_ns

    cpdef bint may_read(self) except -1

    @cython.locals(spent_ns="long long")
    cpdef begin(self, sharer)

    cpdef bint is_over(self) except -1

    @cython.locals(took_ns="long long", spent_ns="long long")
    cpdef bint end(self, sharer) except -1

    cpdef long long begin_aside(self) except? 0

    cpdef end_aside(self, long long began_ns)

    cdef _count(self, long long took_ns)

    cpdef wait(self, sharer)

    cdef _call_next(self)
