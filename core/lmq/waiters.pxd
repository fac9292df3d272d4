import cython


cdef class Reader:
    cpdef bint on_ready(self, long long now_ms) except -1


@cython.final
cdef class Waiters:
    cdef dict _parked

    cpdef bint is_waited_for(self, queue_ref) except -1

    cpdef list parked(self, queue_ref)

    @cython.locals(counts=list, count="Py_ssize_t", queue_ref="Py_ssize_t")
    cpdef list reader_counts(self, Py_ssize_t first, Py_ssize_t end)

    @cython.locals(woken=dict)
    cpdef dict wake(self, list queue_refs)
