import cython

from core.message cimport StoredBatch
from core.pop.inflight cimport InFlight
from core.pop.journal cimport PopJournal
from core.pop.window cimport Window


cdef class PopDesk:
    cdef public object store
    cdef public PopJournal journal
    cdef public object on_shown
    cdef public object request_timer
    cdef public object timers
    cdef public object queues
    cdef public object offsets
    cdef public object endings
    cdef public object acknowledgers


cdef class PopQueue:
    cdef public bytes queue
    cdef public bytes group
    cdef public int queue_ref
    cdef public InFlight state
    cdef readonly long long fresh_from
    cdef PopDesk _desk
    cdef object _store
    cdef readonly object _timers
    cdef object _armed_ms

    @cython.locals(taken=Py_ssize_t)
    cpdef Py_ssize_t take(
        self, StoredBatch into, Py_ssize_t count_max, long long bytes_max, long long until_ms, long long now_ms
    ) except -1

    @cython.locals(window=Window, found=Py_ssize_t)
    cpdef Py_ssize_t peek(self, StoredBatch into, Py_ssize_t count_max) except -1

    @cython.locals(window=Window, offsets="long long[::1]", found=Py_ssize_t, consumed=Py_ssize_t, taken=Py_ssize_t)
    cdef Py_ssize_t _take_again(
        self, StoredBatch into, Py_ssize_t count_max, long long bytes_max, long long until_ms
    ) except -1

    cpdef ack_many(self, long long[::1] queue_offsets, Py_ssize_t count)

    cdef _check(self, Py_ssize_t wrong)
