import cython

from core.cache_budget cimport CacheBudget
from core.engine cimport Engine
from core.lmq.router cimport Router
from core.lmq.waiters cimport Reader, Waiters
from core.message cimport PublishBatch, Route, StoredBatch
from core.metrics cimport Metrics
from core.room cimport Room


cdef class Broker:
    cdef readonly Engine engine
    cdef readonly CacheBudget caches
    cdef public bytes parent_topic
    cdef public Metrics metrics
    cdef public Room room
    cdef public object schedule
    cdef public object request_timer
    cdef public object on_reader_error
    cdef public Router router
    cdef public object retained
    cdef readonly object _retaining
    cdef readonly object detours
    cdef readonly object lifetimes
    cdef dict _limited
    cdef dict _levelled
    cdef dict _standing
    cdef public object consumer_offsets
    cdef public object pop
    cdef readonly object timer
    cdef readonly Waiters _waiters
    cdef list _shown
    cdef list _grown
    cdef dict _requested
    cdef readonly object _awaited
    cdef bint _is_awaited
    cdef dict _put_off
    cdef bint _has_due
    cdef public bint has_work

    cpdef route_topic(self, bytes topic)

    @cython.locals(is_limited=bint)
    cpdef publish_batch(self, PublishBatch batch, long long now_ms)

    cpdef long long max_offset(self, int queue_ref) except -1

    cpdef Py_ssize_t read(
        self, int queue_ref, long long offset, StoredBatch into, Py_ssize_t count_max, Py_ssize_t bytes_max
    ) except -1

    cpdef request_run(self, Reader reader)

    cdef _wake_up(self)

    cpdef run_turn(self, long long now_ms)

    cpdef when_stored(self, long long ticket, then)

    cpdef when_durable(self, then)

    cpdef when_kept(self, then)

    @cython.locals(grown=list, ready=dict)
    cdef list _take_ready(self)

    cdef dict _put_some_off(self, dict ready)

    @cython.locals(reader=Reader, _=int)
    cdef _run_rounds(self, list readers, long long now_ms)

    cdef bint _run_reader(self, Reader reader, long long now_ms) except -1
