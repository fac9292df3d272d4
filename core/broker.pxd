import cython

from core.cache_budget cimport CacheBudget
from core.flows cimport Flows
from core.lmq.router cimport Router
from core.message cimport PublishBatch, Route, StoredBatch
from core.metrics cimport Metrics
from core.reader_turns cimport ReaderTurns


cdef class Broker(ReaderTurns):
    cdef readonly CacheBudget caches
    cdef public bytes parent_topic
    cdef public Metrics metrics
    cdef readonly Flows flows
    cdef public object room
    cdef readonly object long_names
    cdef public object request_timer
    cdef public Router router
    cdef public object retained
    cdef readonly object _retaining
    cdef readonly object detours
    cdef readonly object lifetimes
    cdef dict _limited
    cdef dict _levelled
    cdef dict _standing
    cdef public object consumer_offsets
    cdef readonly object lasting_endings
    cdef public object pop
    cdef readonly object timer
    cdef object _waiting_copies
    cdef bint _has_due

    cpdef route_topic(self, bytes topic)

    @cython.locals(is_limited=bint)
    cpdef publish_batch(self, PublishBatch batch, long long now_ms)

    cpdef long long max_offset(self, int queue_ref) except -1

    cpdef Py_ssize_t read(
        self, int queue_ref, long long offset, StoredBatch into, Py_ssize_t count_max, Py_ssize_t bytes_max
    ) except -1

    cpdef run_turn(self, long long now_ms)

    cpdef when_stored(self, long long ticket, then)

    cpdef when_durable(self, then)

    cpdef when_kept(self, then)
