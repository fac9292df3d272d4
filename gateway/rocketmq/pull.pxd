import cython

from core.broker cimport Broker
from core.cache_budget cimport Cache
from core.message cimport StoredBatch
from core.metrics cimport DoorMetrics
from gateway.rocketmq.picked_records cimport (
    copied_bytes_max, copy_records, count_fitting, pick_all, pick_tagged, sum_bodies
)
from gateway.rocketmq.held cimport Held
from lmq.remoting.commands cimport Command, encode_prefix
from gateway.rocketmq.fields cimport integer_field, text_field

cdef Py_ssize_t _HEAD_BYTES
cdef Py_ssize_t _OUT_BYTES


cdef class HeldPull(Held):
    cdef public PullService service
    cdef public object puller
    cdef public long long opaque
    cdef public int header_type
    cdef public bytes key
    cdef public int queue_ref
    cdef public bytes light_name
    cdef public long long offset
    cdef public long long count_max
    cdef public long long bytes_max
    cdef public object wanted
    cdef public bint is_open
    cdef public bint may_wait
    cdef public bint is_opening
    cdef public bint is_suspended


cdef class PullService:
    cdef Broker _broker
    cdef object _topics
    cdef object _groups
    cdef object _subscriptions
    cdef DoorMetrics _metrics
    cdef object _retried
    cdef Cache _queues
    cdef StoredBatch _batch
    cdef bint _is_away
    cdef int[::1] _picked
    cdef bytearray _out

    @cython.locals(pull=HeldPull, sys_flag="long long", topic=str, key=bytes, group=str)
    cpdef pull(self, puller, Command request, long long now_ms)

    @cython.locals(key=bytes, known=tuple, asked=tuple)
    cdef bytes _find_queue(self, HeldPull pull, str topic, Command request)

    cdef bint _is_open(self, HeldPull pull) except -1

    cdef _filter_of(self, Command request, str topic, long long sys_flag)

    cdef _commit(self, Command request, bytes key, bytes member)

    cdef tuple _ends(self, int queue_ref)

    @cython.locals(min_offset="long long", max_offset="long long")
    cdef bint _answer(self, HeldPull pull, waits_on, long long now_ms) except -1

    @cython.locals(header=bytes, end=Py_ssize_t, start=Py_ssize_t, out=bytearray)
    cdef bint _answer_found(
        self, HeldPull pull, long long min_offset, long long max_offset, long long now_ms
    ) except -1

    @cython.locals(
        batch=StoredBatch, count="long long", size="long long", scanned="long long", bodies="long long",
        bodies_max="long long", limit="long long",
        count_max="long long", scan_max="long long", found=Py_ssize_t, wanted=Py_ssize_t,
        taken=Py_ssize_t, before="long long", end=Py_ssize_t, expired=list
    )
    cdef Py_ssize_t _collect(self, HeldPull pull, long long now_ms) except -1

    cdef Py_ssize_t _pick(self, HeldPull pull) except -1

    cdef _make_room(self, Py_ssize_t size)
