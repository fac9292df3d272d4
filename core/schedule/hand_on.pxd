import cython

from core cimport octets
from core.message cimport PublishBatch, Route, StoredBatch

cdef int _FLAG_MARK
cdef int _FLAG_MARK_MASK
cdef int _FLAG_RETAIN
cdef int _KEPT_BITS
cdef int _BORN_IPV6
cdef Py_ssize_t _BORN_HOST_AT
cdef Py_ssize_t _COUNT_MAX


cdef class HandOn:
    cdef object _publisher
    cdef PublishBatch _batch
    cdef public Py_ssize_t dropped

    @cython.locals(done=Py_ssize_t, end=Py_ssize_t, batch=PublishBatch)
    cpdef tuple publish(self, StoredBatch found, object rows, object place, long long now_ms)

    @cython.locals(
        batch=PublishBatch, extra=bytearray, routes=dict, at=Py_ssize_t, i=Py_ssize_t, is_ours=bint, index=object,
        flag=int,
    )
    cdef Py_ssize_t _fill(self, StoredBatch found, object rows, Py_ssize_t first, object place) except -1


cdef bint _is_ours(int flag)

@cython.locals(start=Py_ssize_t)
cdef bytes _born_host(StoredBatch found, Py_ssize_t i)
