import cython

from core.message cimport PublishBatch


cdef class Reader:
    cpdef bint on_ready(self, long long now_ms) except -1

    cpdef bint maybe_hand_on(self, PublishBatch batch, long long queue_offset) except -1

    cpdef on_stored(self)


@cython.final
cdef class Waiters:
    cdef dict _parked
    cdef int _only_ref
    cdef Reader _only

    cpdef bint is_waited_for(self, queue_ref) except -1

    cpdef Reader only(self, int queue_ref)

    cpdef list parked(self, queue_ref)

    @cython.locals(woken=dict)
    cpdef dict wake(self, list queue_refs)
