import cython


cdef class Reader:
    cpdef bint on_ready(self, long long now_ms) except -1


@cython.final
cdef class Waiters:
    cdef dict _parked

    cpdef bint is_waited_for(self, queue_ref) except -1

    cpdef list parked(self, queue_ref)

    @cython.locals(woken=dict)
    cpdef dict wake(self, list queue_refs)
