import cython

from core.message cimport StoredBatch
from gateway.mqtt.codec cimport RunColumns

cdef long long _ID_COUNT
cdef int _FLAG_MARK
cdef int _FLAG_MARK_MASK
cdef int _FLAG_QOS_MASK
cdef Py_ssize_t _CAPACITY_MIN


cdef class InflightWindow:
    cdef public long long window_max
    cdef public long long head
    cdef public long long tail
    cdef public Py_ssize_t touched_count
    cdef int[::1] _touched
    cdef long long[::1] _floors
    cdef int[::1] _counts
    cdef long long[::1] _touched_at
    cdef long long _turn
    cdef long long _mask
    cdef long long[::1] _offsets
    cdef int[::1] _sources

    @cython.locals(size=Py_ssize_t, more=Py_ssize_t)
    cpdef add_source(self, Py_ssize_t source)

    cpdef long long room(self)

    cpdef long long next_id(self)

    cpdef int touched_source(self, Py_ssize_t i) except? -1

    cpdef int count_of(self, Py_ssize_t source) except? -1

    cpdef long long floor_of(self, Py_ssize_t source) except? -1

    cpdef long long source_of(self, long long number)

    cpdef long long offset_of(self, long long number)

    @cython.locals(before="long long", i=Py_ssize_t)
    cpdef long long push(self, StoredBatch batch, int source) except -1

    cpdef long long push_one(self, int source, long long offset) except -1

    @cython.locals(slot=Py_ssize_t)
    cdef void _enter(self, int source, long long offset) except *

    @cython.locals(offsets="long long[::1]", sources="int[::1]", number="long long")
    cdef void _resize(self, long long capacity) except *

    @cython.locals(capacity="long long")
    cpdef shrink(self)

    @cython.locals(
        packet_ids="int[::1]", acked=Py_ssize_t, first_id="long long", in_flight="long long", ahead="long long",
        slot=Py_ssize_t, i=Py_ssize_t,
    )
    cpdef Py_ssize_t acknowledge(self, RunColumns columns) except -1

    cpdef drop(self, long long number)

    @cython.locals(slot=Py_ssize_t, source=int)
    cdef void _settle(self) except *

    cpdef long long next_unacked(self, long long number) except -1

    @cython.locals(count="long long", source=int, offset="long long", slot=Py_ssize_t)
    cpdef long long run_length(self, long long number, long long count_max) except -1
