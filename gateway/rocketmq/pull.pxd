import cython

from core.broker cimport Broker
from core.lmq.waiters cimport Reader
from core.message cimport StoredBatch
from core.metrics cimport DoorMetrics


cdef class HeldPull(Reader):
    cdef public PullService service
    cdef public object puller
    cdef public long long opaque
    cdef public int header_type
    cdef public int queue_ref
    cdef public bytes light_name
    cdef public long long offset
    cdef public long long count_max
    cdef public long long bytes_max
    cdef public object tags
    cdef public long long deadline_ms
    cdef public bint is_suspended


cdef class PullService:
    cdef Broker _broker
    cdef object _topics
    cdef object _subscriptions
    cdef DoorMetrics _metrics
    cdef dict _queues
    cdef StoredBatch _batch
    cdef int[::1] _picked

    @cython.locals(pull=HeldPull)
    cpdef pull(self, puller, request, long long now_ms)

    @cython.locals(ref=int, min_offset="long long", max_offset="long long")
    cdef bint _answer(self, HeldPull pull, waits_on) except -1

    cdef bint _answer_found(self, HeldPull pull, long long min_offset, long long max_offset) except -1

    @cython.locals(
        batch=StoredBatch, count="long long", size="long long", scanned="long long", count_max="long long",
        found=Py_ssize_t, wanted=Py_ssize_t, taken=Py_ssize_t, before="long long", records=list
    )
    cdef tuple _collect(self, HeldPull pull)
