import cython

from core.message cimport StoredBatch
from gateway.mqtt.columns cimport RunColumns

cdef long long _WINDOW_MAX
cdef long long _SPAN_MIN
cdef long long _ID_COUNT
cdef int _FLAG_MARK
cdef int _FLAG_MARK_MASK
cdef int _FLAG_QOS_MASK
cdef Py_ssize_t _CAPACITY_MIN
cdef int _ONCE_SENT
cdef int _EXACT_SENT
cdef int _EXACT_RECEIVED
cdef int _EXACT_COMPLETE
cdef int _PUBACK
cdef int _PUBREC
cdef int _NOT_FOUND
cdef int _FAILED


cdef class InflightWindow:
    cdef public long long window_max
    cdef public long long head
    cdef public long long tail
    cdef public long long done_count
    cdef public Py_ssize_t touched_count
    cdef public list changed
    cdef int[::1] _touched
    cdef long long[::1] _floors
    cdef int[::1] _counts
    cdef long long[::1] _touched_at
    cdef long long _turn
    cdef long long _mask
    cdef long long[::1] _offsets
    cdef int[::1] _sources
    cdef int[::1] _states

    @cython.locals(size=Py_ssize_t, more=Py_ssize_t)
    cpdef add_source(self, Py_ssize_t source)

    @cython.locals(span="long long")
    cpdef long long room(self)

    cpdef long long next_id(self)

    cpdef int touched_source(self, Py_ssize_t i) except? -1

    cpdef int count_of(self, Py_ssize_t source) except? -1

    cpdef long long floor_of(self, Py_ssize_t source) except? -1

    cpdef long long source_of(self, long long number)

    cpdef long long offset_of(self, long long number)

    @cython.locals(source=int)
    cpdef long long any_source_of(self, long long number)

    cpdef int state_of(self, long long number) except -1

    @cython.locals(before="long long", i=Py_ssize_t, qos=int, state=int)
    cpdef long long push(self, StoredBatch batch, int source, int granted_qos=*) except -1

    cpdef long long push_one(self, int source, long long offset, int state=*) except -1

    cpdef restore(self, long long number, int source, long long offset, int state)

    cpdef skip_to(self, long long number)

    @cython.locals(number="long long", slot=Py_ssize_t)
    cpdef long long lowest_offset(self, int source, long long default) except? -1

    cpdef list exact_between(self, long long first, long long end)

    @cython.locals(number="long long", slot=Py_ssize_t)
    cpdef list exact_of(self, int source)

    @cython.locals(number="long long", slot=Py_ssize_t)
    cpdef list once_of(self, int source)

    @cython.locals(slot=Py_ssize_t)
    cdef void _enter(self, int source, long long offset, int state) except *

    @cython.locals(offsets="long long[::1]", sources="int[::1]", states="int[::1]", number="long long")
    cdef void _resize(self, long long capacity) except *

    @cython.locals(capacity="long long")
    cpdef shrink(self)

    @cython.locals(
        packet_ids="int[::1]", acked=Py_ssize_t, first_id="long long", in_flight="long long", ahead="long long",
        slot=Py_ssize_t, i=Py_ssize_t, is_recs=bint, wanted=int, is_known=bint,
    )
    cpdef Py_ssize_t acknowledge(self, RunColumns columns) except -1

    cpdef release(self, long long number)

    @cython.locals(slot=Py_ssize_t)
    cpdef drop(self, long long number)

    @cython.locals(slot=Py_ssize_t, source=int)
    cdef void _settle(self) except *

    cpdef long long next_unacked(self, long long number) except -1

    @cython.locals(count="long long", one="long long")
    cpdef long long unacked_before(self, long long number) except -1

    cpdef long long room_at(self, long long number) except? -1

    @cython.locals(count="long long", source=int, state=int, offset="long long", slot=Py_ssize_t, is_next=bint)
    cpdef long long run_length(self, long long number, long long count_max) except -1
