import cython

from core.broker cimport Broker
from core.lmq.expiry cimport take_expired
from core.lmq.waiters cimport Reader
from core.message cimport StoredBatch

cdef Py_ssize_t _TAKE_COUNT_MAX
cdef long long _TURN_BYTES_MAX


cdef class SharedQueue(Reader):
    cdef public str name
    cdef public bytes light_name
    cdef public bint is_durable
    cdef public bint is_auto_delete
    cdef public object owner
    cdef public dict arguments
    cdef readonly long long limit_ms
    cdef readonly long long lease_ms
    cdef public list consumers
    cdef public list streams
    cdef public long long first_offset
    cdef public bint has_exclusive
    cdef public int row
    cdef public bint is_deleted
    cdef public bint is_open
    cdef public bint is_passing
    cdef Broker _broker
    cdef StoredBatch _stored
    cdef readonly object opened
    cdef object _levels
    cdef readonly object terms
    cdef readonly object ruling
    cdef readonly bint has_dead_letters
    cdef readonly bint is_watched
    cdef readonly bint counts_deliveries
    cdef readonly bint is_stream
    cdef object _trim
    cdef object _pops
    cdef object _burial
    cdef object _expiries
    cdef long long _due_ms
    cdef bint _is_parked
    cdef bint _is_away
    cdef bint _is_dropping
    cdef long long _fresh_from
    cdef object _rota

    cpdef run_soon(self)

    @cython.locals(touched=dict, budget="long long", taken="long long")
    cpdef bint on_ready(self, long long now_ms) except -1

    @cython.locals(
        ready=Py_ssize_t, left=Py_ssize_t, share=Py_ssize_t, stored=StoredBatch, total="long long",
        count=Py_ssize_t, expired=list, fresh_from="long long"
    )
    cdef long long _hand_out(self, long long now_ms, dict touched) except -1
